//! The real binary as a user runs it: a command that answers, or a server on a port of its own.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

/// `mettle` with these arguments, no terminal, and no cache but the one named.
pub fn mettle(arguments: &[&str], cache: Option<&Path>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mettle"));
    command.args(arguments).stdin(Stdio::null());
    if let Some(cache) = cache {
        command.env("METTLE_CACHE_DIR", cache).env("HF_HOME", cache.join("hub"));
    }
    command
}

/// Runs it to its end.
pub fn run(arguments: &[&str], cache: Option<&Path>) -> Output {
    mettle(arguments, cache).output().expect("the binary runs")
}

/// What a failed command said on stderr. Panics if it did not fail.
pub fn complaint(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "it should fail cleanly: {said}");
    said
}

/// `mettle serve` on a free port; killed when dropped.
pub struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts `mettle serve` with these arguments and waits until it listens.
    pub fn start(arguments: &[&str]) -> Server {
        let all: Vec<&str> = ["serve", "--port", "0"].iter().chain(arguments).copied().collect();
        let mut child = mettle(&all, None).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut said = Vec::new();
        let url = loop {
            let Some(Ok(line)) = lines.next() else { panic!("the server ended before it listened: {said:?}") };
            if let Some(at) = line.find("http://") {
                break line[at..].split_whitespace().next().expect("an address").to_owned();
            }
            said.push(line);
        };
        // Whatever it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Server { child, url }
    }

    /// `http://127.0.0.1:port`
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The exit code, if it ends in time.
    pub fn wait(&mut self, patience: Duration) -> Option<i32> {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("it can be asked") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
