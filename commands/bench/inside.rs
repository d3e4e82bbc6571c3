//! Measurements of the engine in this process: jobs go the way the server's go.

use std::time::Instant;

use futures_util::future::try_join_all;
use mettle::{
    engine::{Finish, Handle, Job, Step},
    mlx::Cost,
};
use tokio::sync::mpsc::unbounded_channel;

use super::{
    prompts,
    row::{Demand, Kind, Progress, Row, Run, Stream},
};
use crate::{
    args::{self, Measure},
    error::Failure,
};

/// What is measured without HTTP, and by what.
pub struct Inside<'a> {
    arguments: &'a args::Bench,
    engine: &'a Handle<Job>,
    cost: &'a Cost,
    progress: &'a Progress,
    vocabulary: usize,
    /// `--prompt` and `--context` where they are used, as far as they fit the model's context together with what
    /// follows them.
    lengths: Vec<usize>,
    contexts: Vec<usize>,
    answer: usize,
}

impl<'a> Inside<'a> {
    /// # Errors
    /// Where nothing of a list fits the model's context.
    pub fn new(
        arguments: &'a args::Bench,
        engine: &'a Handle<Job>,
        cost: &'a Cost,
        progress: &'a Progress,
    ) -> Result<Inside<'a>, Failure> {
        let answer = arguments.answer as usize;
        let wanted = |measures: &[Measure]| measures.iter().any(|measure| arguments.only.contains(measure));
        let mut lengths = Vec::new();
        if wanted(&[Measure::Prefill, Measure::Prefix]) {
            lengths = fitting("--prompt", &arguments.prompt, 1, engine.context())?;
        }
        let mut contexts = Vec::new();
        if wanted(&[Measure::Decode]) {
            contexts = fitting("--context", &arguments.context, answer, engine.context())?;
        }
        Ok(Inside { arguments, engine, cost, progress, vocabulary: cost.vocabulary, lengths, contexts, answer })
    }

    /// All that was asked for and needs no HTTP.
    pub async fn measure(&self) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        self.jobs(vec![self.prompt(0, 0, 16)], 2).await?;
        let wanted = |measure| self.arguments.only.contains(&measure);
        if wanted(Measure::Prefill) {
            for &length in &self.lengths {
                rows.push(self.prefill(length).await?);
            }
        }
        if wanted(Measure::Decode) {
            for &context in &self.contexts {
                rows.push(self.decode(context, 1).await?);
            }
            for &batch in self.arguments.batch.iter().filter(|&&batch| batch > 1) {
                rows.push(self.decode(self.contexts[0], batch as usize).await?);
            }
        }
        if wanted(Measure::Prefix) {
            rows.extend(self.prefix(self.lengths[self.lengths.len() / 2]).await?);
        }
        Ok(rows)
    }

    async fn prefill(&self, length: usize) -> Result<Row, Failure> {
        let mut runs = Vec::new();
        for run in 0..self.arguments.repeat {
            self.progress.say(&format!("prefill of {length} tokens"));
            runs.push(Run::reading(&self.jobs(vec![self.prompt(run, 0, length)], 1).await?));
        }
        Ok(self.row(Kind::Prefill, [1, length, 1], Some(Demand::Products(self.cost.products_to_read(length))), runs))
    }

    /// Answers of `batch` sequences at a time, each after `context` tokens.
    async fn decode(&self, context: usize, batch: usize) -> Result<Row, Failure> {
        // An answer follows at least one token. The prompts are the same in every run: only the first has to read them.
        let prompt = context.max(1);
        let prompts: Vec<_> = (0..batch).map(|stream| self.prompt(stream as u32, 1, prompt)).collect();
        let mut runs = Vec::new();
        for _ in 0..self.arguments.repeat {
            self.progress.say(&format!("decode of {batch} after {context} tokens"));
            runs.push(Run::writing(&self.jobs(prompts.clone(), self.answer).await?));
        }
        let bytes = self.cost.bytes_to_write(batch, prompt + self.answer / 2);
        Ok(self.row(Kind::Decode, [batch, prompt, self.answer], Some(Demand::Bytes(bytes)), runs))
    }

    /// A prompt that is new, the same again, and one that shares its first half.
    async fn prefix(&self, length: usize) -> Result<Vec<Row>, Failure> {
        let mut runs: [Vec<Run>; 3] = Default::default();
        for run in 0..self.arguments.repeat {
            let whole = self.prompt(run, 2, length);
            let mut half = self.prompt(run, 3, length);
            half[..length / 2].copy_from_slice(&whole[..length / 2]);
            for (runs, prompt) in runs.iter_mut().zip([whole.clone(), whole, half]) {
                self.progress.say(&format!("remembered prompts of {length} tokens"));
                runs.push(Run::reading(&self.jobs(vec![prompt], 1).await?));
            }
        }
        let kinds = [Kind::Cold, Kind::Warm, Kind::Shared];
        Ok(kinds.into_iter().zip(runs).map(|(kind, runs)| self.row(kind, [1, length, 1], None, runs)).collect())
    }

    fn row(&self, kind: Kind, [streams, prompt, answer]: [usize; 3], demand: Option<Demand>, runs: Vec<Run>) -> Row {
        Row { kind, server: "engine".into(), streams, prompt, answer, demand, runs }
    }

    /// Different for every run and purpose, and for every length, so that nothing of it is remembered.
    fn prompt(&self, run: u32, purpose: u64, length: usize) -> Vec<u32> {
        let seed = (length as u64) << 32 | u64::from(run) << 8 | purpose;
        prompts::ids(seed, length, self.vocabulary)
    }

    /// Runs jobs of `answer` greedy tokens each together.
    async fn jobs(&self, prompts: Vec<Vec<u32>>, answer: usize) -> Result<Vec<Stream>, Failure> {
        let began = Instant::now();
        try_join_all(prompts.into_iter().map(|prompt| self.job(prompt, answer, began))).await
    }

    async fn job(&self, prompt: Vec<u32>, answer: usize, began: Instant) -> Result<Stream, Failure> {
        let (sender, mut steps) = unbounded_channel();
        let mut stream = Stream { prompt: prompt.len(), cached: 0, answer: 0, arrivals: Vec::new(), end: 0.0 };
        self.engine.submit(Job::new(prompt, answer, sender)).map_err(|error| Failure::new(error.to_string()))?;
        loop {
            match steps.recv().await {
                Some(Step::Started { cached }) => stream.cached = cached,
                Some(Step::Token(_)) => stream.arrivals.push(began.elapsed().as_secs_f64()),
                Some(Step::Finished(Finish::Length)) if stream.arrivals.len() == answer => break,
                Some(Step::Finished(Finish::Failed(reason))) => return Err(Failure::new(reason)),
                other => {
                    let got = stream.arrivals.len();
                    return Err(Failure::new(format!("an answer ended after {got} of {answer} tokens: {other:?}")));
                }
            }
        }
        stream.answer = answer;
        stream.end = stream.arrivals[answer - 1];
        Ok(stream)
    }
}

/// The lengths that leave room for `after` more tokens. The others are left out, and that is said.
fn fitting(option: &str, lengths: &[u32], after: usize, context: usize) -> Result<Vec<usize>, Failure> {
    let (fit, long): (Vec<usize>, Vec<usize>) =
        lengths.iter().map(|&length| length as usize).partition(|length| length + after <= context);
    let said: Vec<String> = long.iter().map(usize::to_string).collect();
    let said = format!("{option} {}: with {after} more, that does not fit a context of {context}", said.join(","));
    match (fit.is_empty(), long.is_empty()) {
        (true, _) => return Err(Failure::new(said).hint("ask for shorter ones")),
        (false, true) => {}
        (false, false) => say!("left out {said}"),
    }
    Ok(fit)
}
