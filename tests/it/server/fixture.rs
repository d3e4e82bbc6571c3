//! A server in this process, over a model without weights: the scripted runner and a tokenizer of single bytes.

use std::{
    io,
    net::SocketAddr,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use mettle::{
    chat::{Model, ModelParts, Template, Tokenizer},
    engine::{
        Device, Limits,
        scripted::{Script, Scripted},
        text,
    },
    server::{self, Config, Pool},
};
use serde_json::{Value, json};
use tokio::{runtime::Runtime, sync::oneshot};

use super::client;

/// Ids below this are printable ASCII from the space on.
pub const PRINTABLE: u32 = 95;
/// The token that ends an answer.
pub const END: u32 = 256;

const TEMPLATE: &str = "{% if no %}{{ raise_exception(no) }}{% endif %}\
    {% for message in messages %}[{{ message.role }}:{{ message.name }}]{{ message.content }}{% endfor %}";

/// What is served, and how.
pub struct Setup {
    pub script: Script,
    pub limits: Limits,
    pub config: Config,
    /// Takes further models in.
    pub more: fn(&mut Pool),
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            script: Script { vocabulary: PRINTABLE, context: 4096, ..Script::default() },
            limits: Limits::default(),
            config: Config::default(),
            more: |_| {},
        }
    }
}

impl Setup {
    /// Every answer is this text, of ASCII.
    pub fn saying(text: &str) -> Setup {
        let mut setup = Setup::default();
        setup.script.answer = text.bytes().map(token).chain([END]).collect();
        setup
    }

    /// Every forward pass takes this long.
    pub fn slow(milliseconds: u64) -> Setup {
        let mut setup = Setup::default();
        setup.script.delay = Duration::from_millis(milliseconds);
        setup
    }
}

/// A server that runs until it is dropped.
pub struct Server {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Server {
    pub fn start(setup: Setup) -> Server {
        let Setup { script, limits, config, more } = setup;
        let loading = text::load_at_once(&Device::start(), limits, move || Ok::<_, io::Error>(Scripted::new(script)));
        let engine = loading.wait().expect("it loads");
        let template = Template::new(TEMPLATE.to_owned(), None, None).expect("a template");
        let model = Model::new(ModelParts::new(tokenizer(), Some(template), vec![END]), engine).expect("a model");
        let mut models = Pool::new();
        models.insert(vec!["tiny".to_owned(), "org/tiny-model".to_owned()], model);
        more(&mut models);

        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            Runtime::new()?.block_on(async {
                let listener = server::bind("127.0.0.1", Some(0)).await.expect("a port");
                tell.send(listener.local_addr()?).expect("the test waits");
                server::run(listener, models, config, async { drop(stopped.await) }).await
            })
        });
        Server { address: told.recv().expect("it listens"), stop: Some(stop), thread: Some(thread) }
    }

    /// What SIGTERM does.
    pub fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// How long it takes from now until the server has ended.
    pub fn wait(&mut self) -> Duration {
        let started = Instant::now();
        let thread = self.thread.take().expect("it ends once");
        thread.join().expect("no panic").expect("a clean end");
        started.elapsed()
    }

    /// The model's counters.
    pub fn counters(&self) -> Value {
        client::get(self.address, "/health").json()["models"][0].clone()
    }

    /// Waits until the counters are as `wanted`, which must be soon.
    pub fn until(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let counters = self.counters();
            if wanted(&counters) {
                return counters;
            }
            assert!(Instant::now() < deadline, "still {counters}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.expect("no panic").expect("a clean end");
            }
        }
    }
}

/// The token of a byte of ASCII.
fn token(byte: u8) -> u32 {
    match byte {
        b' '..=b'~' => u32::from(byte - b' '),
        control => PRINTABLE + u32::from(control),
    }
}

/// Single bytes: printable ASCII first, then the other bytes, then `<end>`.
pub fn tokenizer() -> Tokenizer {
    let printable = |byte: &u8| (b' '..=b'~').contains(byte);
    let (first, rest): (Vec<u8>, Vec<u8>) = (0..=u8::MAX).partition(printable);
    // GPT-2 writes bytes that are no printable characters as the characters from U+0100 on.
    let mut invisible = (0x100..).filter_map(char::from_u32);
    let spelled: Vec<(u8, char)> = (0..=u8::MAX)
        .map(|byte| match byte {
            0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => (byte, byte.into()),
            _ => (byte, invisible.next().expect("there are enough")),
        })
        .collect();
    let names = first.into_iter().chain(rest).map(|byte| spelled[usize::from(byte)].1.to_string());
    let vocab: serde_json::Map<String, Value> = names.zip(0u32..).map(|(name, id)| (name, json!(id))).collect();
    let byte_level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false});
    let json = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
        "added_tokens": [{"id": END, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true}],
        "pre_tokenizer": byte_level, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": []},
    });
    Tokenizer::from_json(json.to_string().as_bytes()).expect("a tokenizer")
}
