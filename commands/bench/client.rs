//! A client of any OpenAI-compatible server: one streamed chat completion, timed as it comes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{prompts, row::Stream};
use crate::error::Failure;

const CONNECT: Duration = Duration::from_secs(10);
/// Longer silence is a broken connection. A long prompt in a long queue is silent, too.
const SILENCE: Duration = Duration::from_secs(600);
/// Characters of a refusal that are shown.
const SHOWN: usize = 400;

/// A server and how to ask it.
#[derive(Clone)]
pub struct Client {
    /// What rows call it.
    pub name: String,
    http: reqwest::Client,
    /// Without `/v1`.
    url: String,
    model: String,
    key: Option<String>,
    /// Whether the server knows the field `ignore_eos`; where it does not, answers may be shorter than asked for.
    ignores_eos: bool,
}

impl Client {
    /// Asks for one short answer, so that the server is there, loaded and understood. Without a `model`, the first
    /// that the server lists.
    ///
    /// # Errors
    /// The server is not there or refuses: with its address and what it said.
    pub async fn connect(name: &str, url: &str, model: Option<String>, key: Option<String>) -> Result<Client, Failure> {
        // One provider of cryptography for the process; a second call finds it in place, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().connect_timeout(CONNECT).read_timeout(SILENCE).build();
        let http = http.map_err(|error| Failure::new(format!("no client for {url}: {}", chain(&error))))?;
        let mut client = Client {
            name: name.to_owned(),
            http,
            url: url.to_owned(),
            model: model.unwrap_or_default(),
            key,
            ignores_eos: true,
        };
        if client.model.is_empty() {
            client.model = client.first_model().await?;
        }
        let hello = |client: Client| async move { client.answer(&prompts::text(0, 16), 4, Instant::now()).await };
        if let Err(failure) = hello(client.clone()).await {
            if !failure.to_string().contains("ignore_eos") {
                return Err(failure);
            }
            say!("{} does not know ignore_eos: its answers may be shorter than asked for", client.name);
            client.ignores_eos = false;
            hello(client.clone()).await?;
        }
        Ok(client)
    }

    async fn first_model(&self) -> Result<String, Failure> {
        let path = "/v1/models";
        let mut response = self.send(self.http.get(self.address(path)), path).await?;
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|error| self.broke(path, &error))? {
            body.extend_from_slice(&bytes);
        }
        let list: Value = serde_json::from_slice(&body).unwrap_or_default();
        let named = list["data"][0]["id"].as_str().map(str::to_owned);
        named.ok_or_else(|| {
            let said = shown(&String::from_utf8_lossy(&body));
            Failure::new(format!("{} lists no model: {said}", self.address(path))).hint("name one with --against-model")
        })
    }

    /// One greedy answer of `tokens` tokens. Times count from `began`.
    ///
    /// # Errors
    /// The server refuses, breaks off, or does not tell how many tokens there were.
    pub async fn answer(&self, prompt: &str, tokens: usize, began: Instant) -> Result<Stream, Failure> {
        let path = "/v1/chat/completions";
        let mut body = json!({
            "model": self.model, "messages": [{"role": "user", "content": prompt}], "max_tokens": tokens,
            "temperature": 0, "stream": true, "stream_options": {"include_usage": true},
        });
        if self.ignores_eos {
            body["ignore_eos"] = true.into();
        }
        let request = self.http.post(self.address(path)).header("content-type", "application/json");
        let mut response = self.send(request.body(body.to_string()), path).await?;
        let mut answer = Answer { began, arrivals: Vec::new(), end: None, usage: Value::Null, done: false };
        let mut line = Vec::new();
        while !answer.done {
            let Some(bytes) = response.chunk().await.map_err(|error| self.broke(path, &error))? else { break };
            for &byte in &bytes {
                match byte {
                    b'\n' => answer.take(&std::mem::take(&mut line)).map_err(|said| self.wrong(path, &said))?,
                    byte => line.push(byte),
                }
            }
        }
        answer.finish().map_err(|said| self.wrong(path, &said))
    }

    async fn send(&self, request: reqwest::RequestBuilder, path: &str) -> Result<reqwest::Response, Failure> {
        let request = match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        };
        let address = self.address(path);
        let response = request.send().await.map_err(|error| {
            Failure::new(format!("{address} cannot be reached: {}", chain(&error))).hint("is the server running?")
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let said = response.text().await.unwrap_or_else(|error| chain(&error));
        Err(Failure::new(format!("{address} answered {status}: {}", shown(&said))))
    }

    fn address(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    fn broke(&self, path: &str, error: &reqwest::Error) -> Failure {
        self.wrong(path, &format!("the answer broke off: {}", chain(error)))
    }

    fn wrong(&self, path: &str, said: &str) -> Failure {
        Failure::new(format!("{} answered 200 OK, but {said}", self.address(path)))
    }
}

/// An answer that is being read.
struct Answer {
    began: Instant,
    arrivals: Vec<f64>,
    /// When the reason to end came.
    end: Option<f64>,
    usage: Value,
    done: bool,
}

impl Answer {
    /// Takes a line of the stream of events; says what is wrong with it.
    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        let line = String::from_utf8_lossy(line);
        let Some(data) = line.trim_end().strip_prefix("data:").map(str::trim_start) else { return Ok(()) };
        if data == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let event: Value =
            serde_json::from_str(data).map_err(|error| format!("one event is no JSON ({error}): {}", shown(data)))?;
        if !event["error"].is_null() {
            return Err(format!("the answer failed: {}", shown(data)));
        }
        let now = self.began.elapsed().as_secs_f64();
        let choice = &event["choices"][0];
        let says = |field: &str| choice["delta"][field].as_str().is_some_and(|text| !text.is_empty());
        if ["content", "reasoning_content", "reasoning"].into_iter().any(says) {
            self.arrivals.push(now);
        }
        if !choice["finish_reason"].is_null() {
            self.end = Some(now);
        }
        if event["usage"].is_object() {
            self.usage = event["usage"].clone();
        }
        Ok(())
    }

    fn finish(self) -> Result<Stream, String> {
        let Some(end) = self.end else {
            return Err(format!("the answer broke off after {} pieces of text", self.arrivals.len()));
        };
        let count = |value: &Value| value.as_u64().map(|count| count as usize);
        let (Some(prompt), Some(answer)) =
            (count(&self.usage["prompt_tokens"]), count(&self.usage["completion_tokens"]))
        else {
            return Err("the stream ended without usage, so its tokens are not known".into());
        };
        // Tokens that are no text, such as the end of a turn that is gone past, have come by the end.
        let arrivals = if self.arrivals.is_empty() { vec![end] } else { self.arrivals };
        let cached = count(&self.usage["prompt_tokens_details"]["cached_tokens"]).unwrap_or(0);
        Ok(Stream { prompt, cached, answer, arrivals, end })
    }
}

/// An error with its reasons.
fn chain(error: &dyn std::error::Error) -> String {
    let reasons = std::iter::successors(error.source(), |error| error.source());
    std::iter::once(error.to_string()).chain(reasons.map(ToString::to_string)).collect::<Vec<_>>().join(": ")
}

fn shown(text: &str) -> String {
    match text.trim().char_indices().nth(SHOWN) {
        None => text.trim().to_owned(),
        Some((at, _)) => format!("{}…", &text.trim()[..at]),
    }
}
