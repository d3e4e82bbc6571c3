//! Embeddings: texts as vectors.

use serde::Serialize;
use serde_json::Value;

use super::error;
use crate::{
    chat::{EmbeddingInput, EmbeddingRequest, Embeddings, Field},
    protocol::{
        self, Asked, Fields, Fold, Kind, Notes, Peek, Refusal, Refused, Wire, expected, peek,
        sse::{self, json as to_json},
    },
};

/// Inputs of one request, as OpenAI limits them.
const INPUTS: usize = 2048;

const INPUT: &str = "a string, a list of strings, a list of token ids or a list of such lists";

/// `POST /v1/embeddings`
#[derive(Debug)]
pub struct EmbeddingsEndpoint;

impl Wire for EmbeddingsEndpoint {
    type Task = EmbeddingRequest;
    type Reply = EmbeddingsReply;

    const STREAM_TYPE: &'static str = sse::CONTENT_TYPE;
    const KEEP_ALIVE: &'static str = sse::KEEP_ALIVE;
    const EXAMPLES: &'static [&'static str] = &[r#"{"input": "hi"}"#];

    fn peek(body: &[u8]) -> Option<Peek> {
        peek::json(body, "model", None)
    }

    fn from_wire(body: &[u8], model: &str, notes: &Notes) -> Result<Asked<EmbeddingRequest, EmbeddingsReply>, Refusal> {
        let mut fields = Fields::of_body(body, notes)?;
        let named = fields.string("model")?.filter(|name| !name.is_empty());
        let inputs = inputs(fields.take("input"))?;
        let encoding = fields.read("encoding_format", "\"float\" or \"base64\"", encoding)?;
        let dimensions = fields.count("dimensions")?;
        fields.ignore("user", "nothing is kept of who asked");
        fields.finish()?;
        let model = named.unwrap_or_else(|| model.to_owned());
        let reply = EmbeddingsReply { model, encoding: encoding.unwrap_or(Encoding::Float) };
        Ok(Asked { task: EmbeddingRequest { inputs, dimensions }, reply, stream: false })
    }

    fn field_name(field: Field) -> String {
        error::field_name(field)
    }

    fn refused(refusal: &Refusal) -> Refused {
        error::refused(refusal)
    }
}

/// How numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Float,
    /// The bytes of each vector as single-precision numbers, the lowest byte first.
    Base64,
}

fn encoding(value: &Value) -> Option<Encoding> {
    match value.as_str()? {
        "float" => Some(Encoding::Float),
        "base64" => Some(Encoding::Base64),
        _ => None,
    }
}

fn inputs(value: Option<Value>) -> Result<Vec<EmbeddingInput>, Refusal> {
    let value = value.ok_or_else(|| Refusal::field("input", format!("missing; send {INPUT}")))?;
    match value {
        Value::String(text) => Ok(vec![text_input("input", text)?]),
        Value::Array(list) if list.is_empty() => {
            Err(Refusal::field("input", "the list is empty; send at least one text"))
        }
        // Numbers alone are one text's tokens.
        Value::Array(list) if list.iter().all(Value::is_number) => Ok(vec![tokens("input", &list)?]),
        Value::Array(list) if list.len() > INPUTS => {
            Err(Refusal::field("input", format!("expected at most {INPUTS} inputs, got {}", list.len())))
        }
        Value::Array(list) => {
            list.into_iter().enumerate().map(|(index, value)| input(&format!("input[{index}]"), value)).collect()
        }
        other => Err(expected("input", INPUT, &other)),
    }
}

fn input(path: &str, value: Value) -> Result<EmbeddingInput, Refusal> {
    match value {
        Value::String(text) => text_input(path, text),
        Value::Array(list) if !list.is_empty() => tokens(path, &list),
        other => Err(expected(path, "a string or a list of token ids, not empty", &other)),
    }
}

fn text_input(path: &str, text: String) -> Result<EmbeddingInput, Refusal> {
    if text.is_empty() {
        return Err(Refusal::field(path, "the text is empty; there is nothing to make a vector of"));
    }
    Ok(EmbeddingInput::Text(text))
}

fn tokens(path: &str, list: &[Value]) -> Result<EmbeddingInput, Refusal> {
    let id = |(index, value): (usize, &Value)| {
        let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
        id.ok_or_else(|| expected(&format!("{path}[{index}]"), "a token id, which is a whole number", value))
    };
    list.iter().enumerate().map(id).collect::<Result<_, _>>().map(EmbeddingInput::Tokens)
}

/// Writes the vectors of one request.
#[derive(Debug)]
pub struct EmbeddingsReply {
    model: String,
    encoding: Encoding,
}

#[derive(Serialize)]
struct List<'a> {
    object: &'static str,
    data: Vec<Embedding<'a>>,
    model: &'a str,
    usage: UsageWire,
}

#[derive(Serialize)]
struct Embedding<'a> {
    object: &'static str,
    index: usize,
    embedding: Numbers<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Numbers<'a> {
    Float(&'a [f32]),
    Base64(String),
}

#[derive(Serialize)]
struct UsageWire {
    prompt_tokens: usize,
    total_tokens: usize,
}

impl protocol::Reply for EmbeddingsReply {
    type Event = Embeddings;
    type Whole = Option<Embeddings>;

    /// Embeddings are not streamed: they come all at once.
    fn frames(&mut self, _: usize, event: Embeddings) -> String {
        self.written(&event)
    }

    fn body(self, answers: Vec<Option<Embeddings>>) -> Result<String, Refusal> {
        let vectors = answers.into_iter().flatten().next();
        let vectors = vectors.ok_or_else(|| Refusal::new(Kind::Internal, "there are no vectors"))?;
        Ok(self.written(&vectors))
    }
}

impl Fold<Embeddings> for Option<Embeddings> {
    fn add(&mut self, event: Embeddings) {
        *self = Some(event);
    }
}

impl EmbeddingsReply {
    fn written(&self, vectors: &Embeddings) -> String {
        let numbers = |vector: &'_ [f32]| base64(&vector.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>());
        let data = vectors.vectors.iter().enumerate().map(|(index, vector)| Embedding {
            object: "embedding",
            index,
            embedding: match self.encoding {
                Encoding::Float => Numbers::Float(vector),
                Encoding::Base64 => Numbers::Base64(numbers(vector)),
            },
        });
        let usage = UsageWire { prompt_tokens: vectors.tokens, total_tokens: vectors.tokens };
        to_json(&List { object: "list", data: data.collect(), model: &self.model, usage })
    }
}

/// Base64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 0x3f;
            text.push(if digit <= chunk.len() { char::from(DIGITS[value as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::Reply as _;

    fn read(body: Value) -> Result<Asked<EmbeddingRequest, EmbeddingsReply>, Refusal> {
        EmbeddingsEndpoint::from_wire(body.to_string().as_bytes(), "m", &Notes::new(false))
    }

    #[test]
    fn inputs_of_every_kind() {
        let inputs = |input: Value| read(json!({"input": input})).unwrap().task.inputs;
        let text = |text: &str| EmbeddingInput::Text(text.to_owned());
        assert_eq!(inputs(json!("hi")), [text("hi")]);
        assert_eq!(inputs(json!(["a", "b"])), [text("a"), text("b")]);
        assert_eq!(inputs(json!([1, 2])), [EmbeddingInput::Tokens(vec![1, 2])]);
        assert_eq!(inputs(json!([[1], [2, 3]])), [EmbeddingInput::Tokens(vec![1]), EmbeddingInput::Tokens(vec![2, 3])]);
        assert_eq!(inputs(json!(["a", [7]])), [text("a"), EmbeddingInput::Tokens(vec![7])]);
    }

    #[test]
    fn inputs_that_are_refused() {
        for (body, field, piece) in [
            (json!({}), "input", "missing"),
            (json!({"input": ""}), "input", "empty"),
            (json!({"input": []}), "input", "at least one"),
            (json!({"input": ["a", ""]}), "input[1]", "empty"),
            (json!({"input": ["a", []]}), "input[1]", "not empty"),
            (json!({"input": [1, -2]}), "input[1]", "token id"),
            (json!({"input": [1.5]}), "input[0]", "token id"),
            (json!({"input": [[4_294_967_296_u64]]}), "input[0][0]", "token id"),
            (json!({"input": {"a": 1}}), "input", "a list of strings"),
            (json!({"input": vec!["x"; INPUTS + 1]}), "input", "at most 2048"),
            (json!({"input": "a", "dimensions": 0}), "dimensions", "at least 1"),
            (json!({"input": "a", "encoding_format": "hex"}), "encoding_format", "base64"),
        ] {
            let refusal = read(body.clone()).expect_err(&body.to_string());
            assert_eq!(refusal.field.as_deref(), Some(field), "{refusal:?}");
            assert!(refusal.message.contains(piece), "{refusal:?}");
        }
    }

    #[test]
    fn vectors_are_written_in_order() {
        let written = |encoding: &str| {
            let asked = read(json!({"input": ["a", "b"], "encoding_format": encoding, "model": "own"})).unwrap();
            let vectors = Embeddings { vectors: vec![vec![0.5, -1.0], vec![0.0, 2.0]], tokens: 7 };
            let body = asked.reply.body(vec![Some(vectors)]).unwrap();
            serde_json::from_str::<Value>(&body).unwrap()
        };
        let body = written("float");
        assert_eq!(
            body,
            json!({"object": "list", "model": "own", "usage": {"prompt_tokens": 7, "total_tokens": 7}, "data": [
                {"object": "embedding", "index": 0, "embedding": [0.5, -1.0]},
                {"object": "embedding", "index": 1, "embedding": [0.0, 2.0]},
            ]})
        );
        assert_eq!(written("base64")["data"][0]["embedding"], "AAAAPwAAgL8=");
    }

    #[test]
    fn base64_of_every_length() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
