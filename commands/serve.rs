//! `mettle serve`: a model behind HTTP until a signal ends it.

use std::{sync::Arc, time::Duration};

use mettle::{
    engine::Limits,
    server::{self, Config, Models},
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};

use crate::{
    args::Serve,
    error::Failure,
    load::{self, How, block_on},
    request,
};

/// Loads and serves until SIGTERM or Ctrl-C.
pub fn serve(arguments: Serve) -> Result<(), Failure> {
    block_on(async move {
        // First the port: a model may take minutes to load, and a port in use is known at once.
        let listener = server::bind(&arguments.host, arguments.port).await.map_err(|error| {
            Failure::new(error.to_string()).hint("leave out --port to take the next free one from 8000")
        })?;
        let address = listener.local_addr()?;
        let limits = limits(&arguments);
        let Serve { sources, device, format, .. } = &arguments;
        let thinking = request::thinking(&arguments.thinking);
        let how = How { sources, device, format, thinking: &thinking };
        // Who asks while the models are loaded is told to come back. A signal still ends the process at once then.
        let models = Models::default();
        let (arm, armed) = oneshot::channel();
        let stop = async {
            match armed.await {
                Ok(signals) => asked_to_stop(signals).await,
                // The models could not be loaded, and the process ends.
                Err(_) => std::future::pending().await,
            }
        };
        let serving = tokio::spawn(server::run(listener, models.clone(), config(&arguments), stop));
        let pool = load::load_all(&arguments.model, how, limits).await?;
        // Before anybody is told that the server is there: whoever hears it may send the signal at once.
        let _ = arm.send(Signals::new()?);
        models.set(pool);
        say!("serving at http://{address}");
        serving.await.map_err(|error| Failure::new(format!("the server failed: {error}")))??;
        Ok(())
    })
}

fn config(arguments: &Serve) -> Config {
    Config {
        max_body: arguments.max_body as usize * 1_000_000,
        grace: Duration::from_secs(arguments.grace.into()),
        stream_interval: arguments.stream_interval as usize,
        strict: arguments.strict,
        origins: arguments.cors_origin.clone(),
        warn: Arc::new(|warning| say!("warning: {warning}")),
        ..Config::default()
    }
}

fn limits(arguments: &Serve) -> Limits {
    Limits {
        rows: arguments.parallel as usize,
        waiting: arguments.max_queue as usize,
        prefill_chunk: arguments.prefill_chunk as usize,
        prefix_bytes: match arguments.prefix_memory {
            Some(megabytes) => megabytes as usize * 1_000_000,
            None => load::default_prefix_bytes(),
        },
    }
}

/// Ready at the first SIGTERM or Ctrl-C. A second one ends the process at once.
async fn asked_to_stop(mut signals: Signals) {
    signals.next().await;
    say!("stopping: running answers may finish; the same signal again ends them now");
    tokio::spawn(async move {
        signals.next().await;
        std::process::exit(130);
    });
}

/// SIGTERM and Ctrl-C, from now on.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
