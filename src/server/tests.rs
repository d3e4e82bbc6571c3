//! A wire of no vendor: its own fields, frames, refusals and statuses, served by the same handler. And what that
//! handler does when far more is asked of it than it can take.

use std::{
    num::NonZeroUsize,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use super::*;
use crate::{
    chat::{
        self, Event, Field, Message, ModelParts, Role, Template,
        made_tokenizers::{byte_level, load},
    },
    engine::{
        Device, Limits,
        scripted::{Script, Scripted},
        text,
    },
    protocol::{Asked, Completion, Fields, Kind, Notes, Peek, Refusal, Refused, Reply, Wire, peek},
};

/// `POST /pigeon`: `{"ask": …, "who": …, "times": …, "live": …}`
struct Pigeon;

/// Requests of the crowd that were read in full.
static READ: AtomicUsize = AtomicUsize::new(0);

impl Wire for Pigeon {
    type Task = chat::Request;
    type Reply = PigeonReply;

    const STREAM_TYPE: &'static str = "application/x-ndjson";
    const KEEP_ALIVE: &'static str = "\n";
    const EXAMPLES: &'static [&'static str] = &[r#"{"ask": "x"}"#];

    fn peek(body: &[u8]) -> Option<Peek> {
        peek::json(body, "who", Some("times"))
    }

    fn from_wire(body: &[u8], model: &str, notes: &Notes) -> Result<Asked<chat::Request, PigeonReply>, Refusal> {
        let mut fields = Fields::of_body(body, notes)?;
        let who = fields.string("who")?.unwrap_or_else(|| model.to_owned());
        let ask = fields.needed("ask")?;
        let count = |value: &Value| NonZeroUsize::new(usize::try_from(value.as_u64()?).ok()?);
        let times = fields.read("times", "a number", count)?.unwrap_or(NonZeroUsize::MIN);
        let live = fields.bool("live")?.unwrap_or(false);
        fields.finish()?;
        if ask == "crowd" {
            READ.fetch_add(1, Ordering::Relaxed);
        }
        let max_tokens = Some(if ask == "crowd" { 1000 } else { 3 });
        let messages = vec![Message::new(Role::User, ask)];
        let task = chat::Request { answers: times, max_tokens, ..chat::Request::new(messages) };
        Ok(Asked { task, reply: PigeonReply { who }, stream: live })
    }

    fn field_name(field: Field) -> String {
        let name = match field {
            Field::Model => "who",
            Field::Answers => "times",
            _ => "ask",
        };
        name.to_owned()
    }

    fn refused(refusal: &Refusal) -> Refused {
        Refused {
            status: if refusal.kind == Kind::Busy { 529 } else { refusal.kind.status() },
            content_type: "application/problem+json",
            body: json!({"oops": refusal.message, "where": refusal.field}).to_string(),
            retry_after: refusal.retry_after,
        }
    }
}

struct PigeonReply {
    who: String,
}

impl Reply for PigeonReply {
    type Event = Event;
    type Whole = Completion;

    fn frames(&mut self, answer: usize, event: Event) -> String {
        match event {
            Event::Text(text) => json!({"coo": text, "from": answer}).to_string() + "\n",
            Event::Finished(finished) => match Refusal::of_end(&finished.reason) {
                None => json!({"over": answer}).to_string() + "\n",
                Some(refusal) => Pigeon::refused(&refusal).body + "\n",
            },
            _ => String::new(),
        }
    }

    fn body(self, answers: Vec<Completion>) -> Result<String, Refusal> {
        answers.iter().try_for_each(|answer| answer.reason().map(drop))?;
        let coos: Vec<String> = answers.into_iter().map(|answer| answer.text).collect();
        Ok(json!({"coos": coos, "who": self.who}).to_string())
    }
}

/// A server with this one route, over a model that says "HI" again and again, a token in so many milliseconds.
async fn serve(limits: Limits, milliseconds: u64) -> SocketAddr {
    let script = Script {
        answer: vec![3 + 72, 3 + 73],
        vocabulary: 261,
        context: 4096,
        delay: Duration::from_millis(milliseconds),
        ..Script::default()
    };
    let loading = text::load_at_once(&Device::start(), limits, move || Ok::<_, String>(Scripted::new(script)));
    let template = Template::new("{{ messages[0].content }}".to_owned(), None, None).unwrap();
    let tokenizer = load(byte_level("smollm"));
    let parts = ModelParts::new(tokenizer, Some(template), vec![1]);
    let model = chat::Model::new(parts, loading.wait().unwrap()).unwrap();
    let mut models = Pool::new();
    models.insert(vec!["dove".to_owned()], model);
    let app = App::new(models.into(), Config::default());
    let listener = bind("127.0.0.1", Some(0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = routes::router_of(vec![routes::wire::<Pigeon>("/pigeon")], app);
    tokio::spawn(axum::serve(listener, router).into_future());
    address
}

async fn begin(address: SocketAddr, body: &Value) -> TcpStream {
    let body = body.to_string();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head =
        format!("POST /pigeon HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).await.unwrap();
    stream
}

async fn answer(address: SocketAddr, body: Value) -> String {
    let mut answer = String::new();
    begin(address, &body).await.read_to_string(&mut answer).await.unwrap();
    answer.to_lowercase()
}

#[tokio::test]
async fn a_wire_of_its_own_is_one_type_and_one_row() {
    let address = serve(Limits::default(), 0).await;
    let check = |answer: &str, pieces: &[&str]| {
        assert!(pieces.iter().all(|piece| answer.contains(piece)), "{pieces:?} in {answer}");
    };
    let whole = answer(address, json!({"ask": "x", "times": 2, "crumbs": 1})).await;
    check(&whole, &["http/1.1 200", "x-mettle-ignored: crumbs", r#"{"coos":["hih","hih"],"who":"dove"}"#]);
    let stream = answer(address, json!({"ask": "x", "live": true})).await;
    check(&stream, &["content-type: application/x-ndjson", r#"{"coo":"h","from":0}"#, r#"{"over":0}"#]);
    let refused = answer(address, json!({"live": true})).await;
    check(&refused, &["http/1.1 400", "application/problem+json", r#""where":"ask""#]);
    check(&answer(address, json!({"ask": "x", "who": "hawk"})).await, &["http/1.1 404", r#""where":"who""#]);
    check(&answer(address, json!("x")).await, &["http/1.1 400", r#""where":null"#]);
    let many = answer(address, json!({"ask": "x", "times": 265})).await;
    check(&many, &["http/1.1 400", r#""where":"times""#, "265 answers at once are more than the 264"]);
}

/// 300 at once against 8 rows and a queue of 8: 16 are taken, and nobody else's request is even read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_is_turned_away_before_any_work() {
    let limits = Limits { rows: 8, waiting: 8, ..Limits::default() };
    // Nobody is through before all have been told.
    let address = serve(limits, 500).await;
    let mut crowd = JoinSet::new();
    for _ in 0..300 {
        crowd.spawn(async move {
            let mut stream = begin(address, &json!({"ask": "crowd", "live": true})).await;
            let mut head = [0; 400];
            let read = stream.read(&mut head).await.unwrap();
            (String::from_utf8_lossy(&head[..read]).to_lowercase(), stream)
        });
    }
    let heads = crowd.join_all().await;
    let taken = heads.iter().filter(|(head, _)| head.starts_with("http/1.1 200")).count();
    let refused = heads.iter().filter(|(head, _)| head.starts_with("http/1.1 529") && head.contains("retry-after: "));
    assert_eq!((taken, refused.count(), READ.load(Ordering::Relaxed)), (16, 284, 16));
}
