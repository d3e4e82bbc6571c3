//! Two models on one device: an answer goes on while another model loads and while it makes vectors. What is held is the
//! order of turns, which no clock decides.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use mettle::{
    checkpoint::Checkpoint,
    engine::{
        Capacity, Device, EmbedJob, EmbedScheduler, End, Handle, Instance, Job, Limits, LoadStep, Loader, Place,
        Progress, RunError, Step, TokenId, text,
    },
    mlx::{self, Embedder, Loading},
};
use tokio::sync::{
    mpsc::{UnboundedReceiver, unbounded_channel},
    oneshot,
};

use super::golden::{FAST, Golden};
use crate::support::{self, collect, distance};

const CAPACITY: Capacity = Capacity { rows: 4, waiting: 4 };
/// Tokens of the answer that goes on meanwhile.
const ANSWER: usize = 600;

fn loading(name: &str) -> Loading {
    mlx::load(Arc::new(Checkpoint::open(&support::models().join(name)).expect("it opens")), FAST)
}

fn chat(device: &Device) -> Handle<Job> {
    let load = || loading("llama-bf16").text().then(|(runner, _)| runner);
    text::load(device, Limits::default(), load).wait().expect("it loads")
}

fn answer(chat: &Handle<Job>) -> UnboundedReceiver<Step> {
    let (steps, receiver) = unbounded_channel();
    chat.submit(Job::new(vec![1, 2, 3], ANSWER, steps)).expect("there is room");
    receiver
}

fn embed(handle: &Handle<EmbedJob>, rows: Vec<Vec<TokenId>>) -> Vec<Vec<f32>> {
    let (vectors, answer) = oneshot::channel();
    handle.submit(EmbedJob { rows, vectors }).expect("there is room");
    answer.blocking_recv().expect("a job ends with a reason").expect("vectors")
}

/// How many tokens the answer had whenever the other model had its turn.
#[derive(Clone, Default)]
struct Turns(Arc<Mutex<Vec<u64>>>);

impl Turns {
    fn note(&self, chat: &Handle<Job>) {
        self.0.lock().expect("no panic").push(chat.stats().generated_tokens);
    }

    /// Between any two turns of the other model, while the answer went on, it got a token. Gives how many turns those
    /// were.
    fn check(&self) -> usize {
        let turns = self.0.lock().expect("no panic");
        let during = turns.windows(2).filter(|pair| pair[0] >= 1 && pair[0] < ANSWER as u64);
        during.inspect(|pair| assert!(pair[1] > pair[0], "an answer waited for two turns: {turns:?}")).count()
    }
}

/// A loader that begins when the answer has a token, and notes its steps.
struct Noted<L> {
    loader: L,
    chat: Handle<Job>,
    turns: Turns,
}

impl<L: Loader> Loader for Noted<L> {
    type Output = L::Output;
    type Error = L::Error;

    fn step(&mut self, _: Duration) -> Result<LoadStep<L::Output>, L::Error> {
        if self.chat.stats().generated_tokens == 0 {
            return Ok(LoadStep::More(0.0));
        }
        self.turns.note(&self.chat);
        // A piece a turn.
        self.loader.step(Duration::ZERO)
    }
}

#[test]
fn an_answer_goes_on_while_a_model_loads() {
    for (name, steps) in [("bert", 10), ("qwen3_5", 19)] {
        let device = Device::start();
        let (chat, turns) = (chat(&device), Turns::default());
        let (noted, watched) = (turns.clone(), chat.clone());
        let loading = device.load(CAPACITY, move |counters| {
            let loader = Noted { loader: loading(name).embedder(), chat: watched, turns: noted };
            loader.then(move |embedder| EmbedScheduler::new(embedder, counters))
        });
        let steps_of_answer = answer(&chat);
        let embedder = loading.wait().expect("it loads");
        assert_eq!(turns.check(), steps - 1, "{name}: every step but the last is followed by one");
        assert_eq!(collect(steps_of_answer).tokens.len(), ANSWER);
        assert_eq!(embed(&embedder, vec![vec![TokenId(7)]]).len(), 1, "{name}");
    }
}

/// An instance that begins the answer in its second turn, and notes its turns.
struct Beside {
    embeddings: EmbedScheduler<Embedder>,
    chat: Handle<Job>,
    answer: Arc<Mutex<Option<UnboundedReceiver<Step>>>>,
    ticks: usize,
    turns: Turns,
}

impl Instance for Beside {
    type Job = EmbedJob;

    fn push(&mut self, job: EmbedJob, place: Place) {
        self.embeddings.push(job, place);
    }

    fn tick(&mut self, _: Duration) -> Result<Progress, RunError> {
        self.ticks += 1;
        if self.ticks == 2 {
            *self.answer.lock().expect("no panic") = Some(answer(&self.chat));
        }
        self.turns.note(&self.chat);
        // A layer a turn.
        self.embeddings.tick(Duration::ZERO)
    }

    fn context(&self) -> usize {
        self.embeddings.context()
    }

    fn bytes(&self) -> usize {
        self.embeddings.bytes()
    }

    fn shed(&mut self, bytes: usize) {
        self.embeddings.shed(bytes);
    }

    fn close(&mut self, end: End) {
        self.embeddings.close(end);
    }
}

#[test]
fn an_answer_goes_on_while_texts_are_embedded() {
    let device = Device::start();
    let (chat, turns, begun) = (chat(&device), Turns::default(), Arc::new(Mutex::new(None)));
    let (watched, noted, answer) = (chat.clone(), turns.clone(), Arc::clone(&begun));
    let loading = device.load(CAPACITY, move |counters| {
        loading("bert").embedder().then(move |embedder| Beside {
            embeddings: EmbedScheduler::new(embedder, counters),
            chat: watched,
            answer,
            ticks: 0,
            turns: noted,
        })
    });
    let embedder = loading.wait().expect("it loads");
    let row = |index: u32| (0..100).map(|at| TokenId(1 + (7 * index + 3 * at) % 250)).collect();
    let rows: Vec<Vec<TokenId>> = (0..400).map(row).collect();
    let vectors = embed(&embedder, rows.clone());
    let steps = begun.lock().expect("no panic").take().expect("it began");
    assert_eq!(collect(steps).tokens.len(), ANSWER);
    assert!(turns.check() >= 5, "turns beside the answer: {turns:?}", turns = turns.0);
    let alone = embed(&embedder, vec![rows[399].clone()]);
    assert_eq!(alone[0], vectors[399], "company changes a vector");
}

/// One model's weights write and read: the answer is that of the model alone, and so are the vectors.
#[test]
fn a_model_that_writes_and_embeds_with_the_same_weights() {
    let (device, golden) = (Device::start(), Golden::of("llama-bf16"));
    let limits = Limits::default();
    let (chat, embedder) = device.load_both([limits.capacity(), CAPACITY], move |[writing, reading]| {
        loading("llama-bf16").text().then(move |(runner, embedder)| {
            (text::Scheduler::new(runner, limits, writing), EmbedScheduler::new(embedder, reading))
        })
    });
    let (chat, embedder) = (chat.wait().expect("it loads"), embedder.wait().expect("it loads"));
    let row: Vec<TokenId> = golden.prompt[..20].iter().copied().map(TokenId).collect();
    let vectors = embed(&embedder, vec![row.clone()]);
    let tokens = support::greedy(&chat, &golden.prompt, 16).tokens;
    let expected = support::greedy(&support::engine(&golden.path, FAST, Limits::default()), &golden.prompt, 16).tokens;
    assert_eq!(tokens, expected);
    let alone = loading("llama-bf16").finish().expect("it loads").embedder();
    assert!(distance(&alone.embed(&[&golden.prompt[..20]]).expect("a vector")[0], &vectors[0]) <= 1e-6);
    drop(chat);
    assert_eq!(embed(&embedder, vec![row]), vectors, "the one goes on without the other");
}

/// Where the loader fails, both that would share what it loads say so.
#[test]
fn a_load_of_two_that_fails() {
    let device = Device::start();
    let limits = Limits::default();
    let (chat, embedder) = device.load_both([limits.capacity(), CAPACITY], move |[writing, reading]| {
        loading("bert").text().then(move |(runner, embedder)| {
            (text::Scheduler::new(runner, limits, writing), EmbedScheduler::new(embedder, reading))
        })
    });
    let error = chat.wait().expect_err("it writes no text").to_string();
    assert!(error.contains("writes no text"), "{error}");
    assert!(embedder.wait().is_err());
}
