//! A client as plain as can be: one connection, one request, every byte of the answer in view.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

/// An answer in full.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The data of its events, each without `data: `; comments are left out.
    pub fn frames(&self) -> Vec<String> {
        assert_eq!((self.status, self.header("content-type")), (200, Some("text/event-stream")), "{}", self.body);
        let frames = self.body.split_terminator("\n\n").filter(|frame| !frame.starts_with(':'));
        frames.map(|frame| frame.strip_prefix("data: ").expect("data").to_owned()).collect()
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    stream
}

/// A connection that has sent this request and read nothing.
pub fn begin(address: SocketAddr, method: &str, path: &str, body: &[u8]) -> TcpStream {
    let mut stream = connect(address);
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat()).expect("the request is sent");
    stream
}

pub fn get(address: SocketAddr, path: &str) -> Answer {
    finish(begin(address, "GET", path, b""))
}

pub fn post(address: SocketAddr, body: &[u8]) -> Answer {
    post_to(address, "/v1/chat/completions", body)
}

pub fn post_to(address: SocketAddr, path: &str, body: &[u8]) -> Answer {
    finish(begin(address, "POST", path, body))
}

/// Reads the answer to its end.
pub fn finish(stream: TcpStream) -> Answer {
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line of the head");
        line.trim_end().to_owned()
    };
    let status = line().split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let mut headers = Vec::new();
    loop {
        let line = line();
        let Some((name, value)) = line.split_once(": ") else { break };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let mut body = Vec::new();
    reader.read_to_end(&mut body).expect("the body");
    let mut answer = Answer { status, headers, body: String::new() };
    let chunked = answer.header("transfer-encoding") == Some("chunked");
    answer.body = String::from_utf8(if chunked { joined(&body) } else { body }).expect("UTF-8");
    answer
}

/// The data of a chunked body, which must be complete.
fn joined(mut rest: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").expect("a chunk's size");
        let size = std::str::from_utf8(&rest[..end]).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.expect("a size");
        if size == 0 {
            return data;
        }
        data.extend_from_slice(&rest[end + 2..][..size]);
        rest = &rest[end + 2 + size + 2..];
    }
}

/// Reads until `wanted` has come by; what was read.
pub fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let (mut seen, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&seen).into_owned();
        if text.contains(wanted) {
            return text;
        }
        let count = stream.read(&mut chunk).expect("more");
        assert!(count > 0, "the connection ended before {wanted:?}: {text}");
        seen.extend_from_slice(&chunk[..count]);
    }
}
