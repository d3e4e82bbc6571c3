//! What a measurement yields: a row is a setting, with what every run of it gave.

use std::{cell::Cell, io::IsTerminal, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// One answer of a run. Times are in seconds since the run began.
pub struct Stream {
    /// Tokens of the prompt, and how many of them were remembered.
    pub prompt: usize,
    pub cached: usize,
    /// Tokens of the answer.
    pub answer: usize,
    /// When tokens, or pieces of text, arrived; at least one.
    pub arrivals: Vec<f64>,
    pub end: f64,
}

impl Stream {
    /// When the first token or piece of text arrived, in seconds.
    pub fn first(&self) -> f64 {
        self.arrivals[0]
    }
}

/// What a row measures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Prefill,
    Decode,
    /// The prompt is new, was asked before, or begins like one that was.
    Cold,
    Warm,
    Shared,
    Http,
}

impl Kind {
    /// What reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Prefill => "prefill",
            Kind::Decode => "decode",
            Kind::Cold => "prefix cold",
            Kind::Warm => "prefix warm",
            Kind::Shared => "prefix half shared",
            Kind::Http => "http",
        }
    }
}

/// What limits a measurement, for each of the tokens that its rate counts.
#[derive(Clone, Copy)]
pub enum Demand {
    /// Bytes that must be read.
    Bytes(f64),
    /// Products that must be added up.
    Products(f64),
}

/// A setting and its runs.
pub struct Row {
    pub kind: Kind,
    /// Who answered: the engine in this process, or a server.
    pub server: String,
    pub streams: usize,
    /// Tokens that were asked for; over HTTP the prompt's are about as many.
    pub prompt: usize,
    pub answer: usize,
    pub demand: Option<Demand>,
    pub runs: Vec<Run>,
}

/// What one run of all streams gave.
#[derive(Clone, Copy)]
pub struct Run {
    /// Tokens a second of all streams together: of prompts for a prefill and its kin, else of answers.
    pub rate: f64,
    /// Tokens a second of one stream between its first and its last.
    pub each: f64,
    /// Seconds to the first token, the median of the streams.
    pub first: f64,
    /// Tokens of all streams.
    pub prompt: usize,
    pub cached: usize,
    pub answer: usize,
}

impl Run {
    /// Prompts that are read: the rate is that of the prompts' tokens until the first token.
    pub fn reading(streams: &[Stream]) -> Run {
        let rate = streams.iter().map(|stream| stream.prompt as f64 / stream.first()).sum();
        Run { rate, ..Run::of(streams) }
    }

    /// Answers that are written together: the rate counts the time when all of them were being written, or all the
    /// time where the last began when the first had ended.
    pub fn writing(streams: &[Stream]) -> Run {
        let bounds = |time: fn(&Stream) -> f64| Spread::of(streams.iter().map(time));
        let first = bounds(Stream::first);
        let end = bounds(|stream| stream.end);
        let (from, to) = if first.max < end.min { (first.max, end.min) } else { (first.min, end.max) };
        let within = |time: &&f64| **time > from && **time <= to;
        let tokens: usize = streams.iter().map(|stream| stream.arrivals.iter().filter(within).count()).sum();
        Run { rate: per_second(tokens, to - from), ..Run::of(streams) }
    }

    /// Requests from the first's sending to the last's end: what their senders see.
    pub fn of(streams: &[Stream]) -> Run {
        let total = |count: fn(&Stream) -> usize| streams.iter().map(count).sum();
        let answer = total(|stream| stream.answer);
        let last = streams.iter().map(|stream| stream.end).fold(0.0, f64::max);
        let each = |stream: &Stream| per_second(stream.answer.saturating_sub(1), stream.end - stream.first());
        Run {
            rate: per_second(answer, last),
            each: median(streams.iter().map(each)),
            first: median(streams.iter().map(Stream::first)),
            prompt: total(|stream| stream.prompt),
            cached: total(|stream| stream.cached),
            answer,
        }
    }

    /// The share of the prompts' tokens that were remembered.
    pub fn hits(&self) -> f64 {
        self.cached as f64 / self.prompt as f64
    }
}

/// What one server's rate is of another's, pair by pair.
pub struct Ratio {
    pub streams: usize,
    pub of: String,
    pub to: String,
    pub pairs: Vec<f64>,
}

/// Median, smallest and largest.
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// Zeros where there is no value.
    pub fn of(values: impl Iterator<Item = f64>) -> Spread {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (values.first(), values.last()) else {
            return Spread { median: 0.0, min: 0.0, max: 0.0 };
        };
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Spread { median, min, max }
    }
}

/// The middle value; 0 where there is none.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    Spread::of(values).median
}

/// 0 where no time passed, as in an answer that came in one piece.
fn per_second(count: usize, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

/// What goes on, on a terminal.
pub struct Progress {
    bar: ProgressBar,
    runs: Cell<u64>,
}

impl Progress {
    /// Shows nothing where stderr is no terminal.
    pub fn new() -> Progress {
        let bar = if std::io::stderr().is_terminal() {
            ProgressBar::no_length()
        } else {
            ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())
        };
        let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
        bar.set_style(style.expect("a template of our own that does not parse is a bug"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { bar, runs: Cell::new(0) }
    }

    /// Shows what is being measured.
    pub fn say(&self, what: &str) {
        self.runs.set(self.runs.get() + 1);
        self.bar.set_message(format!("run {}: {what}", self.runs.get()));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
