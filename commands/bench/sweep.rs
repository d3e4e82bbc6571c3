//! Requests at once over HTTP, by the same client whoever answers: one server alone, or two in turns.

use std::{io, time::Instant};

use futures_util::future::try_join_all;
use mettle::{
    chat::Model,
    server::{self, Config, Pool},
};
use tokio::{sync::oneshot, task::JoinHandle};

use super::{
    client::Client,
    prompts,
    row::{Kind, Progress, Ratio, Row, Run, Stream},
};
use crate::{args, error::Failure};

/// The model behind HTTP, in this process.
pub struct Served {
    pub client: Client,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<io::Result<()>>,
}

impl Served {
    /// Serves on a port of its own.
    pub async fn start(names: Vec<String>, model: Model) -> Result<Served, Failure> {
        let listener = server::bind("127.0.0.1", Some(0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let mut models = Pool::new();
        models.insert(names, model);
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server::run(listener, models, Config::default(), async { drop(stopped.await) }));
        Ok(Served { client: Client::connect("mettle", &url, None, None).await?, stop, serving })
    }

    /// Ends the server and frees the model.
    pub async fn stop(self) -> Result<(), Failure> {
        drop((self.client, self.stop));
        Ok(self.serving.await.expect("a server that panics is a bug")?)
    }
}

/// Rows by concurrency and server; where there are two servers, also the first's rates as shares of the second's.
pub async fn sweep(
    arguments: &args::Bench,
    clients: &[Client],
    progress: &Progress,
) -> Result<(Vec<Row>, Vec<Ratio>), Failure> {
    let prompt = arguments.prompt[0] as usize;
    let answer = arguments.answer as usize;
    let mut rows = Vec::new();
    let mut ratios = Vec::new();
    for &streams in &arguments.concurrency {
        let mut runs = vec![Vec::new(); clients.len()];
        for run in 0..arguments.repeat {
            for (client, runs) in clients.iter().zip(&mut runs) {
                progress.say(&format!("{streams} requests at once to {}", client.name));
                let seed = u64::from(streams) << 32 | u64::from(run) << 16;
                runs.push(Run::of(&together(client, streams, seed, [prompt, answer]).await?));
            }
        }
        if let [own, peer] = clients {
            let pairs = runs[0].iter().zip(&runs[1]).map(|(own, peer): (&Run, &Run)| own.rate / peer.rate).collect();
            ratios.push(Ratio { streams: streams as usize, of: own.name.clone(), to: peer.name.clone(), pairs });
        }
        rows.extend(clients.iter().zip(runs).map(|(client, runs)| Row {
            kind: Kind::Http,
            server: client.name.clone(),
            streams: streams as usize,
            prompt,
            answer,
            demand: None,
            runs,
        }));
    }
    Ok((rows, ratios))
}

/// So many requests sent at once, each with a prompt of its own.
async fn together(
    client: &Client,
    streams: u32,
    seed: u64,
    [prompt, answer]: [usize; 2],
) -> Result<Vec<Stream>, Failure> {
    let texts: Vec<String> = (0..streams).map(|stream| prompts::text(seed + u64::from(stream) + 1, prompt)).collect();
    let began = Instant::now();
    try_join_all(texts.iter().map(|text| client.answer(text, answer, began))).await
}
