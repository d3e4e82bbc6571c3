//! HTTP: sockets, routes, and who is asked what. Reads bytes, leaves their meaning to `protocol`, and sends what it
//! makes of the model's events.
//!
//! The main path: [`bind`] takes a port, [`run`] serves the models of a [`Pool`] there until it is told to stop; a
//! request for a model's work goes through `routes::answer`, whatever its wire, and back through `reply`.

mod body;
mod cors;
mod encoding;
mod error;
mod ignored;
mod loading;
mod pool;
mod reply;
mod routes;
mod task;

use std::{
    future::{Future, IntoFuture},
    io,
    net::SocketAddr,
    pin::pin,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use axum::serve::ListenerExt;
use ignored::Remembered;
use tokio::{net::TcpListener, sync::oneshot, time::timeout};

pub use error::Error;
pub use pool::{Loaded, Loader, Pool};

/// The ports that are tried where none was asked for.
const PORTS: std::ops::RangeInclusive<u16> = 8000..=8099;

/// How long what was last written may take to reach its readers when the server closes.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Hears of what somebody who runs the server should know, a line each time.
pub type Warn = Arc<dyn Fn(&str) + Send + Sync>;

/// What the server allows.
#[derive(Clone)]
pub struct Config {
    /// The largest request body, in bytes.
    pub max_body: usize,
    /// How long running answers may go on after the shutdown began.
    pub grace: Duration,
    /// A stream that has nothing to say for this long sends a sign of life.
    pub keep_alive: Duration,
    /// Tokens that a chunk of a stream has; the first is sent at once.
    pub stream_interval: usize,
    /// How long a body may bring nothing new.
    pub body_patience: Duration,
    /// How long a request waits for its model to be loaded.
    pub load_patience: Duration,
    /// Refuses fields that no endpoint knows, instead of reporting that they do nothing.
    pub strict: bool,
    /// Origins whose pages may call the server beside this machine's, such as `https://chat.example`; `*` is all.
    pub origins: Vec<String>,
    /// Is told of fields that do nothing, once for each.
    pub warn: Warn,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            max_body: 32_000_000,
            grace: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            stream_interval: 1,
            body_patience: Duration::from_secs(30),
            load_patience: Duration::from_secs(300),
            strict: false,
            origins: Vec::new(),
            warn: Arc::new(|_| {}),
        }
    }
}

/// What every route can reach.
#[derive(Clone)]
struct App(Arc<Shared>);

struct Shared {
    models: Models,
    config: Config,
    ignored: Remembered,
    started: Instant,
}

impl App {
    fn new(models: Models, config: Config) -> App {
        App(Arc::new(Shared { models, config, ignored: Remembered::default(), started: Instant::now() }))
    }

    /// The models. Who asks before they are there is turned away by `loading`.
    fn models(&self) -> &Pool {
        self.0.models.0.get().expect("a request that comes before the models is turned away")
    }
}

/// The models of a server, which may come after it has begun to listen. Until then every request is told to come back.
#[derive(Clone, Default)]
pub struct Models(Arc<OnceLock<Pool>>);

impl Models {
    /// Here they are.
    ///
    /// # Panics
    /// If they came before.
    pub fn set(&self, models: Pool) {
        assert!(self.0.set(models).is_ok(), "models that come twice are a bug");
    }
}

impl From<Pool> for Models {
    fn from(pool: Pool) -> Models {
        let models = Models::default();
        models.set(pool);
        models
    }
}

/// Takes a port to listen at: the one given, or the first free one from 8000. Port 0 is any free port.
///
/// # Errors
/// The host is no address of this machine, or the port cannot be had.
pub async fn bind(host: &str, port: Option<u16>) -> Result<TcpListener, Error> {
    if let Some(port) = port {
        let address = resolve(host, port).await?;
        return TcpListener::bind(address).await.map_err(|source| Error::of_bind(address, source));
    }
    for port in PORTS {
        let address = resolve(host, port).await?;
        match TcpListener::bind(address).await {
            Err(source) if source.kind() == io::ErrorKind::AddrInUse => {}
            bound => return bound.map_err(|source| Error::of_bind(address, source)),
        }
    }
    Err(Error::NoFreePort { host: host.to_owned(), first: *PORTS.start(), last: *PORTS.end() })
}

/// The one address that a host's name means here. Listening at whichever of several is free would hide that another
/// server has the port.
async fn resolve(host: &str, port: u16) -> Result<SocketAddr, Error> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let unknown = |reason: String| Error::Host { host: host.to_owned(), reason };
    let mut addresses = tokio::net::lookup_host((bare, port)).await.map_err(|error| unknown(error.to_string()))?;
    addresses.next().ok_or_else(|| unknown("it has no address".to_owned()))
}

/// Serves until `shutdown` is ready; before the models are there, by a refusal that says when to come back. Then no connection is taken any more, running answers may finish within the
/// grace, what is left is ended with an error of its own, and the models' engines are closed.
///
/// # Errors
/// The listener broke.
pub async fn run(
    listener: TcpListener,
    models: impl Into<Models>,
    config: Config,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let grace = config.grace;
    let app = App::new(models.into(), config);
    // Frames of a stream are small and each is awaited: they must not wait for one another.
    let listener = listener.tap_io(|connection| {
        // A connection that refuses the option is slower, or gone already, and its reads say so.
        let _ = connection.set_nodelay(true);
    });
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = axum::serve(listener, routes::router(app.clone())).with_graceful_shutdown(async {
        let _ = stopped.await;
    });
    let mut serving = pin!(serving.into_future());
    tokio::select! {
        ended = &mut serving => return ended,
        () = shutdown => {}
    }
    drop(stop);
    let drained = timeout(grace, &mut serving).await;
    close(app).await;
    match drained {
        Ok(ended) => ended,
        // Closing the engines ended every answer; a connection that is still there then has no reader.
        Err(_) => timeout(LAST_WORDS, serving).await.unwrap_or(Ok(())),
    }
}

/// Closes the engines. That joins their threads, so it is kept off the runtime's.
async fn close(app: App) {
    // The one way for this to fail is a panic, which was reported when it happened.
    let _ = tokio::task::spawn_blocking(move || app.0.models.0.get().map(Pool::close)).await;
}

#[cfg(test)]
mod tests;
