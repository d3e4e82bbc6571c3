//! What several tests need: the starter model, a folder to edit a checkpoint in, and answers from an engine.

mod edited;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use mettle::{
    checkpoint::Checkpoint,
    engine::{Device, Finish, Handle, Job, Limits, Step, text},
    hub::{self, Hub},
    mlx::{self, Loaded, Options, Runner},
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

pub use edited::Edited;

/// Where the tiny checkpoints are.
pub fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/models")
}

/// The starter model's GGUF: METTLE_TEST_STARTER, or where `mettle pull` puts it, downloaded at the first call.
/// `None`, with a notice, where it cannot be had; METTLE_TEST_STARTER=required makes that a failure.
pub fn starter() -> Option<PathBuf> {
    static STARTER: OnceLock<Option<PathBuf>> = OnceLock::new();
    STARTER.get_or_init(|| real_model(hub::STARTER, "METTLE_TEST_STARTER")).clone()
}

/// The folder of all-MiniLM-L6-v2: METTLE_TEST_MINILM, or as [`starter`].
pub fn minilm() -> Option<PathBuf> {
    static MINILM: OnceLock<Option<PathBuf>> = OnceLock::new();
    MINILM.get_or_init(|| real_model("all-minilm-l6-v2", "METTLE_TEST_MINILM")).clone()
}

/// The model of an alias, or the one that a variable names.
fn real_model(alias: &str, variable: &str) -> Option<PathBuf> {
    let wanted = std::env::var(variable).ok();
    let required = wanted.as_deref() == Some("required");
    if let Some(path) = wanted.filter(|_| !required) {
        assert!(Path::new(&path).exists(), "{variable} names {path}, which is not there");
        return Some(path.into());
    }
    let home = std::env::home_dir().unwrap_or_else(std::env::temp_dir);
    let cache = std::env::var_os("METTLE_CACHE_DIR").map_or(home.join(".cache/mettle"), PathBuf::from);
    let hub = Hub::new(hub::Config {
        hub_cache: cache.join("test-hub"),
        cache,
        // The alias names a hub too, which some machines cannot see; the package is enough.
        endpoint: "http://127.0.0.1:9".into(),
        python: "python3".into(),
        ..hub::Config::default()
    });
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let fetched = hub.resolve(alias).map(|source| runtime.block_on(hub.fetch(&source, &|_| ())));
    match fetched.expect("it is an alias") {
        Ok(path) => Some(path),
        Err(error) if required => panic!("{variable}=required, but: {error}"),
        Err(error) => {
            eprintln!("skipped: {alias} cannot be had: {error}");
            None
        }
    }
}

/// The model that writes text of the checkpoint at `path`, or why there is none.
pub fn load(path: &Path, options: Options) -> Result<Runner, String> {
    let checkpoint = Checkpoint::open(path).map_err(|error| error.to_string())?;
    let loaded = mlx::load(Arc::new(checkpoint), options).finish();
    loaded.and_then(Loaded::text).map(|(runner, _)| runner).map_err(|error| error.to_string())
}

/// A device thread with the checkpoint at `path`.
pub fn engine(path: &Path, options: Options, limits: Limits) -> Handle<Job> {
    let path = path.to_owned();
    let loading = text::load_at_once(&Device::start(), limits, move || load(&path, options));
    loading.wait().unwrap_or_else(|error| panic!("{error}"))
}

/// What a job said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Tokens of the prompt that were remembered.
    pub cached: usize,
    pub tokens: Vec<u32>,
}

/// Submits a greedy job of exactly `count` tokens.
pub fn submit(engine: &Handle<Job>, prompt: &[u32], count: usize) -> UnboundedReceiver<Step> {
    let (steps, receiver) = unbounded_channel();
    engine.submit(Job::new(prompt.to_vec(), count, steps)).expect("there is room");
    receiver
}

/// Waits for the end of a job.
pub fn collect(mut steps: UnboundedReceiver<Step>) -> Answer {
    let mut answer = Answer { cached: 0, tokens: Vec::new() };
    loop {
        match steps.blocking_recv().expect("a job ends with a reason") {
            Step::Started { cached } => answer.cached = cached,
            Step::Token(token) => answer.tokens.push(token.id.into()),
            Step::Finished(Finish::Length) => return answer,
            Step::Finished(reason) => panic!("it ended with {reason:?} after {answer:?}"),
        }
    }
}

/// `count` greedy tokens.
pub fn greedy(engine: &Handle<Job>, prompt: &[u32], count: usize) -> Answer {
    collect(submit(engine, prompt, count))
}

/// How far apart two rows of logits are at most, relative to the largest of the reference.
pub fn distance(ours: &[f32], reference: &[f32]) -> f32 {
    assert_eq!(ours.len(), reference.len(), "rows of different widths");
    let largest = reference.iter().fold(0f32, |largest, logit| largest.max(logit.abs()));
    let differences = ours.iter().zip(reference).map(|(ours, reference)| (ours - reference).abs() / largest);
    // Not `max`, which would swallow a NaN.
    differences
        .fold(0.0, |worst, difference| if difference > worst || difference.is_nan() { difference } else { worst })
}

/// The cosine of the angle between two rows of logits.
pub fn cosine(ours: &[f32], reference: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(ours, reference) / (dot(ours, ours) * dot(reference, reference)).sqrt()
}
