//! `mettle bench`: how fast a model is here, through the engine and through HTTP, beside what this machine can do at
//! most, and beside another server under the same load.

mod client;
mod csv;
mod document;
mod inside;
mod machine;
mod prompts;
mod row;
mod sweep;
mod table;

use std::time::Duration;

use mettle::{
    chat::{Message, Model, Request, Role, Thinking},
    engine::{Device, Handle, Job, Limits},
    mlx,
};

use crate::{
    args::{self, Measure},
    error::Failure,
    load::{self, Opened, block_on},
};
use client::Client;
use inside::Inside;
use machine::Memory;
use row::{Demand, Progress, Ratio, Row, median};
use sweep::Served;

/// Everything that was found out.
struct Report<'a> {
    arguments: &'a args::Bench,
    /// `None` where only another server was measured.
    subject: Option<Subject>,
    rows: Vec<Row>,
    ratios: Vec<Ratio>,
}

/// The model that was measured in this process, and what it ran on.
struct Subject {
    name: String,
    cost: mlx::Cost,
    processor: Option<mlx::Processor>,
    roofline: Option<mlx::Roofline>,
    memory: Memory,
}

/// Measures what the flags ask for and prints the report.
pub fn bench(arguments: args::Bench) -> Result<(), Failure> {
    block_on(async move {
        let peer = match &arguments.against {
            Some(url) => {
                let model = arguments.against_model.clone();
                let key = arguments.api_key.clone();
                Some(Client::connect(url, url, model, key).await?)
            }
            None => None,
        };
        let report = match peer {
            Some(peer) if arguments.model.is_none() => {
                let progress = Progress::new();
                let (rows, ratios) = sweep::sweep(&arguments, &[peer], &progress).await?;
                Report { arguments: &arguments, subject: None, rows, ratios }
            }
            peer => measure(&arguments, peer).await?,
        };
        let text = match (arguments.json, arguments.csv) {
            (true, _) => format!("{:#}\n", document::json(&report)),
            (_, true) => csv::csv(&report),
            _ => format!("{}\n", table::table(&report)),
        };
        Ok(crate::terminal::print(&text)?)
    })
}

/// Loads the model and measures all that is asked for.
async fn measure(arguments: &args::Bench, peer: Option<Client>) -> Result<Report<'_>, Failure> {
    let opened = load::open(arguments.model.as_deref(), &arguments.sources).await?;
    let (engine, cost) = opened.start(&Device::start(), &arguments.device, limits(arguments))?;
    let loaded = machine::resident();
    let progress = Progress::new();
    let mut rows = Vec::new();
    // A peer can only be measured over HTTP, and so is the model beside it.
    if peer.is_none() {
        let inside = Inside::new(arguments, &engine, &cost, &progress)?;
        rows.extend(inside.measure().await?);
    }
    let (mut ratios, concurrency) = (Vec::new(), peer.is_some() || arguments.only.contains(&Measure::Concurrency));
    let mut served = None;
    if concurrency && let Some(model) = answering(&opened, &engine, peer.is_some() || arguments.only.len() == 1)? {
        let own = served.insert(Served::start(opened.names(), model).await?).client.clone();
        let clients: Vec<Client> = [own].into_iter().chain(peer).collect();
        let (swept, compared) = sweep::sweep(arguments, &clients, &progress).await?;
        rows.extend(swept);
        ratios = compared;
    }
    let memory = Memory { loaded, now: machine::resident(), peak: machine::peak() };
    if let Some(served) = served {
        served.stop().await?;
    }
    // After the model, so that neither the one's buffer nor the other's threads are in the way.
    engine.close(Duration::ZERO);
    progress.say("measuring what this machine can do");
    let processor = mlx::processor()?;
    let roofline = processor.is_some().then(|| mlx::roofline(machine::roofline_buffer()));
    let subject = Subject { name: opened.name().to_owned(), cost, processor, roofline, memory };
    Ok(Report { arguments, subject: Some(subject), rows, ratios })
}

/// The engine is the one that `mettle serve` has, with as many rows as the largest setting needs.
fn limits(arguments: &args::Bench) -> Limits {
    let rows = arguments.batch.iter().chain(&arguments.concurrency).max();
    Limits {
        rows: rows.map_or(1, |&rows| rows as usize),
        prefill_chunk: arguments.prefill_chunk as usize,
        prefix_bytes: load::default_prefix_bytes(),
        ..Limits::default()
    }
}

/// The model's text side. A model that cannot chat, for want of a tokenizer or a template, is measured without HTTP
/// and that is said, unless HTTP is all that was asked for.
fn answering(opened: &Opened, engine: &Handle<Job>, only: bool) -> Result<Option<Model>, Failure> {
    let hello = Message::new(Role::User, "hello");
    let request = Request::new(vec![hello]);
    let parts = opened.parts(&args::FormatArgs::default(), &Thinking::default());
    let model = parts.and_then(|parts| load::model(parts, engine.clone()));
    match model.and_then(|model| model.prompt(&request).map_err(Failure::from).map(|_| model)) {
        Ok(model) => Ok(Some(model)),
        Err(failure) if only => Err(failure),
        Err(failure) => {
            say!("not measured over HTTP: {failure}");
            Ok(None)
        }
    }
}

/// How much of what the machine could do a row's rate is, where one thing limits it and is known.
fn share(report: &Report, row: &Row) -> Option<f64> {
    let roofline = report.subject.as_ref()?.roofline?;
    let rate = median(row.runs.iter().map(|run| run.rate));
    Some(match row.demand? {
        Demand::Bytes(bytes) => rate * bytes / roofline.reads,
        Demand::Products(products) => rate * products / roofline.products,
    })
}
