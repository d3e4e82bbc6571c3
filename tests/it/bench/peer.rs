//! A server that plays prepared answers, one a connection, and notes what it was asked.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

/// An answer of two pieces of text.
pub const GOOD: &str = concat!(
    "200 data: {\"choices\": [{\"delta\": {\"content\": \"a\"}, \"finish_reason\": null}]}\n\n",
    ": a comment\n\n",
    "data: {\"choices\": [{\"delta\": {\"content\": \"b\"}, \"finish_reason\": null}]}\n\n",
    "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"stop\"}]}\n\n",
    "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 7, \"completion_tokens\": 2, ",
    "\"prompt_tokens_details\": {\"cached_tokens\": 3}}}\n\n",
    "data: [DONE]\n\n",
);

pub struct Peer {
    pub url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Peer {
    /// `answers` are a status, a space and a body; after the last there are no more.
    pub fn start(answers: &[&str]) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answers, notes): (Vec<String>, _) = (answers.iter().map(|&answer| answer.into()).collect(), asked.clone());
        // Ends with its last answer, or with the test.
        std::thread::spawn(move || {
            for answer in answers {
                let (stream, _) = listener.accept().expect("a connection");
                notes.lock().expect("notes").push(play(stream, &answer));
            }
        });
        Peer { url, asked }
    }

    /// Head and body of every request so far.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("notes").clone()
    }
}

fn play(mut stream: TcpStream, answer: &str) -> String {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let (mut request, mut length) = (String::new(), 0);
    loop {
        let from = request.len();
        reader.read_line(&mut request).expect("a line of the head");
        let line = request[from..].trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().expect("a length");
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the body");
    request += &String::from_utf8(body).expect("UTF-8");
    let (status, body) = answer.split_once(' ').expect("a status and a body");
    let head = format!("HTTP/1.1 {status} Said\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
    // A client that has heard enough may be gone.
    let _ = stream.write_all(&[head.as_bytes(), body.as_bytes()].concat());
    request
}
