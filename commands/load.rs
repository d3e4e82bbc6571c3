//! From a name on the command line to a loaded model.

use std::{path::Path, sync::Arc, time::Instant};

use mettle::{
    chat::{self, Thinking},
    checkpoint::{self, Checkpoint},
    engine::{Device, EmbedScheduler, Handle, Job, Limits, LoadError, Loader, Loading, text},
    hub::{self, Hub},
    mlx::{self, Options, Precision, models::Kind},
    server,
};

use crate::{
    args::{self, FormatArgs, KvBits, Pull, Sources},
    environment::Environment,
    error::Failure,
};

/// Runs a future on a runtime of its own.
pub fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(future)
}

/// Downloads a model, with a display of how far it is.
pub async fn pull(arguments: Pull) -> Result<(), Failure> {
    let place = crate::pull::pull(&hub(&arguments.sources)?, &arguments.model, arguments.update).await?;
    Ok(crate::terminal::print(&place)?)
}

/// Resolves, downloads if need be, and loads. Without a name, the starter model, and a word on what else would fit.
pub async fn load(name: Option<&str>, how: How<'_>, limits: Limits) -> Result<chat::Model, Failure> {
    let How { sources, device, format, thinking } = how;
    let opened = open(name, sources).await?;
    let started = Instant::now();
    // First what the small files say, the architecture before all: that is known before the weights are read.
    mlx::models::find(&opened.checkpoint)?;
    let parts = opened.parts(format, thinking)?;
    let (engine, _) = opened.start(&Device::start(), device, limits)?;
    let model = model(parts, engine)?;
    say!("{} loaded in {:.1} s", opened.name(), started.elapsed().as_secs_f64());
    Ok(model)
}

/// Loads models of any kind, one after the other, onto one device thread. Without a name, the starter model.
pub async fn load_all(names: &[String], how: How<'_>, limits: Limits) -> Result<server::Pool, Failure> {
    let thread = Device::start();
    let mut pool = server::Pool::new();
    let names = if names.is_empty() { vec![None] } else { names.iter().map(|name| Some(name.as_str())).collect() };
    for name in names {
        let opened = open(name, how.sources).await?;
        let started = Instant::now();
        let model = opened.load(&thread, how, limits)?;
        say!("{} ({}) loaded in {:.1} s", opened.name(), model.kind(), started.elapsed().as_secs_f64());
        pool.insert(opened.names(), model);
    }
    Ok(pool)
}

/// Flags that say how to load.
#[derive(Clone, Copy)]
pub struct How<'a> {
    pub sources: &'a Sources,
    pub device: &'a args::Device,
    pub format: &'a FormatArgs,
    /// For requests that say nothing of it.
    pub thinking: &'a Thinking,
}

/// [`load`] without the loading.
pub async fn open(name: Option<&str>, sources: &Sources) -> Result<Opened, Failure> {
    let hub = hub(sources)?;
    if name.is_none() {
        say!("{}", suggestion(&hub));
    }
    let source = hub.resolve(name.unwrap_or(hub::STARTER))?;
    let path = crate::pull::fetch(&hub, &source).await?;
    let checkpoint = Checkpoint::open(&path)?;
    checkpoint.warnings().iter().for_each(|warning| say!("warning: {warning}"));
    Ok(Opened { source, checkpoint: Arc::new(checkpoint) })
}

/// A model on this machine, not loaded.
pub struct Opened {
    source: hub::Source,
    pub checkpoint: Arc<Checkpoint>,
}

impl Opened {
    /// Loads it as what it is: a model that writes text, or one that makes embeddings.
    fn load(&self, thread: &Device, how: How<'_>, limits: Limits) -> Result<server::Loaded, Failure> {
        Ok(match mlx::models::find(&self.checkpoint)?.kind {
            Kind::Text => self.text_model(thread, how, limits)?.into(),
            Kind::Embedding => self.embedding_model(thread, how.device, limits)?.into(),
        })
    }

    /// A model that writes text, and makes embeddings of its hidden states with the same weights.
    fn text_model(&self, thread: &Device, how: How<'_>, limits: Limits) -> Result<chat::Model, Failure> {
        let parts = self.parts(how.format, how.thinking)?;
        let checkpoint = self.checkpoint.clone();
        let options = options(how.device);
        let (sender, dimensions) = std::sync::mpsc::channel();
        let (text, embedding) = thread.load_both([limits.capacity(); 2], move |[writing, reading]| {
            mlx::load(checkpoint, options).text().then(move |(runner, embedder)| {
                let _ = sender.send(embedder.cost().dim);
                (text::Scheduler::new(runner, limits, writing), EmbedScheduler::new(embedder, reading))
            })
        });
        let mut model = model(parts, finished(text)?)?;
        let engine = embedding.wait().map_err(|error| Failure::new(error.to_string()))?;
        let dimensions = dimensions.recv().expect("what is loaded has said its dimensions; its silence is a bug");
        let vectors = Box::new(chat::EngineVectors { engine, dimensions });
        model.set_embeddings(chat::EmbeddingModel::new(Arc::clone(model.tokenizer()), vectors));
        Ok(model)
    }

    fn embedding_model(
        &self,
        thread: &Device,
        device: &args::Device,
        limits: Limits,
    ) -> Result<chat::EmbeddingModel, Failure> {
        let tokenizer = chat::Tokenizer::from_source(&self.checkpoint.tokenizer()?)?;
        tokenizer.warnings().iter().for_each(|warning| say!("warning: {warning}"));
        let checkpoint = self.checkpoint.clone();
        let options = options(device);
        let (sender, dimensions) = std::sync::mpsc::channel();
        let loading = thread.load(limits.capacity(), move |counters| {
            mlx::load(checkpoint, options).embedder().then(move |embedder| {
                let _ = sender.send(embedder.cost().dim);
                EmbedScheduler::new(embedder, counters)
            })
        });
        let engine = finished(loading)?;
        let dimensions = dimensions.recv().expect("what is loaded has said its dimensions; its silence is a bug");
        Ok(chat::EmbeddingModel::new(Arc::new(tokenizer), Box::new(chat::EngineVectors { engine, dimensions })))
    }

    /// Loads it onto this device thread. Says what its tokens cost.
    pub fn start(
        &self,
        thread: &Device,
        device: &args::Device,
        limits: Limits,
    ) -> Result<(Handle<Job>, mlx::Cost), Failure> {
        let options = options(device);
        let checkpoint = self.checkpoint.clone();
        let (sender, cost) = std::sync::mpsc::channel();
        let loading = text::load(thread, limits, move || {
            mlx::load(checkpoint, options).text().then(move |(runner, embedder)| {
                let _ = sender.send(embedder.cost().clone());
                runner
            })
        });
        let engine = finished(loading)?;
        let cost = cost.recv().expect("what is loaded has said its cost; its silence is a bug");
        Ok((engine, cost))
    }

    /// Its text side. `thinking` is for requests that say nothing of it.
    pub fn parts(&self, format: &FormatArgs, thinking: &Thinking) -> Result<chat::ModelParts, Failure> {
        let names = chat::Names { tools: format.tool_format.as_deref(), reasoning: format.reasoning_format.as_deref() };
        let (mut parts, warnings) = chat::ModelParts::open(&self.checkpoint, names)?;
        warnings.iter().for_each(|warning| say!("warning: {warning}"));
        // What vocabulary and tokenizer were made of.
        mlx::release_freed();
        if let Some(alias) = self.source.alias {
            let settings = alias.sampling.iter().map(|(name, number)| (name.as_str(), *number));
            parts.sampling = parts.sampling.or(&chat::Sampling::named(settings));
        }
        parts.thinking = thinking.clone();
        Ok(parts)
    }

    /// What it was asked by.
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// What it may be called: the name it was asked by, its repository, its file.
    pub fn names(&self) -> Vec<String> {
        names(&self.source, self.checkpoint.path())
    }
}

/// A model's text side over the engine that has its weights.
pub fn model(parts: chat::ModelParts, engine: Handle<Job>) -> Result<chat::Model, Failure> {
    chat::Model::new(parts, engine)
        .map_err(|error| Failure::from(error).hint("serve it without --think and --thinking-budget"))
}

/// Waits until it is loaded.
fn finished<J>(loading: Loading<J, mlx::Error>) -> Result<Handle<J>, Failure> {
    loading.wait().map_err(|error| match error {
        LoadError::Failed(error) => Failure::from(error),
        other => Failure::new(other.to_string()),
    })
}

/// How to compute. Sets the process's number of threads, too.
fn options(device: &args::Device) -> Options {
    if let Some(threads) = device.threads {
        mlx::set_threads(threads as usize);
    }
    Options {
        precision: if device.exact { Precision::Exact } else { Precision::Fast },
        kv_bits: match device.kv_bits {
            KvBits::Sixteen => mlx::KvBits::Sixteen,
            KvBits::Eight => mlx::KvBits::Eight,
            KvBits::Four => mlx::KvBits::Four,
        },
        mlx_ops: device.mlx_ops,
    }
}

/// Memory for remembered prompts where the user did not say: an eighth of the machine's.
pub fn default_prefix_bytes() -> usize {
    (memory() / 8) as usize
}

/// This machine's, in bytes.
pub fn memory() -> u64 {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    system.total_memory()
}

fn hub(sources: &Sources) -> Result<Hub, Failure> {
    let environment = Environment::new();
    Ok(Hub::new(hub::Config {
        hub_cache: environment.hub_cache()?,
        cache: environment.cache()?,
        models: sources.models.clone(),
        home: environment.home().map(Path::to_owned),
        endpoint: sources.endpoint.clone(),
        token: environment.token()?,
        offline: sources.offline || environment.is_offline(),
        python: sources.python.clone(),
        architectures: mlx::models::names().into_iter().map(str::to_owned).collect(),
        judge: Some(judge),
    }))
}

/// Whether a GGUF of which the first part is here can be run.
fn judge(name: &str, part: &Path, size: u64) -> Result<Option<()>, String> {
    match checkpoint::is_gguf_readable(Path::new(name), part, size) {
        Ok(readable) => Ok(readable.then_some(())),
        Err(error) => Err(error.message()),
    }
}

/// What to run instead of the starter on this machine.
fn suggestion(hub: &Hub) -> String {
    let memory = memory();
    let bigger: Vec<String> = hub
        .fits(memory)
        .into_iter()
        .rev()
        .filter(|alias| alias.alias != hub::STARTER)
        .take(3)
        .map(|alias| format!("{} ({})", alias.alias, hub::bytes(alias.size)))
        .collect();
    let starter = format!("No model named: running the starter, {}.", hub::STARTER);
    if bigger.is_empty() {
        return starter;
    }
    format!("{starter} With {} of memory, these fit too: {}.", hub::bytes(memory), bigger.join(", "))
}

fn names(source: &hub::Source, path: &Path) -> Vec<String> {
    let mut names = vec![source.name.clone()];
    names.extend(source.places.iter().filter_map(|place| match place {
        hub::Place::Repo(repo) => Some(repo.repo.clone()),
        _ => None,
    }));
    // A folder's name may have dots of its own: only a file's ending is none of its name.
    let own = if path.is_dir() { path.file_name() } else { path.file_stem() };
    names.extend(own.map(|own| own.to_string_lossy().into_owned()));
    names.extend(source.alias.iter().flat_map(|alias| alias.also.iter().cloned()));
    names.dedup();
    names
}
