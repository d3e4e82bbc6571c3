//! `mettle pull`: brings a model to this machine and shows how far it is. `run` and `serve` use the same display.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mettle::hub::{Error, Event, Hub, Source, bytes};

use crate::terminal;

/// What a model's download looks like: a bar on a terminal, a line for each tenth anywhere else, on stderr.
struct Display {
    name: String,
    /// Hidden where stderr is no terminal.
    bar: ProgressBar,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Bytes of the whole download, once the hub has said.
    total: Option<u64>,
    /// The tenth that is announced next.
    tenth: u64,
}

/// Downloads the model called `name` if it is not here, and says where it is. With `update`, a branch that has moved on is followed.
///
/// # Errors
/// As [`Hub::resolve`] and [`Hub::fetch`].
pub async fn pull(hub: &Hub, name: &str, update: bool) -> Result<String, Error> {
    let source = hub.resolve(name)?;
    let display = Display::new(&source.name);
    let show = |event| display.show(event);
    let path = if update { hub.update(&source, &show).await } else { hub.fetch(&source, &show).await };
    display.bar.finish_and_clear();
    Ok(format!("{} is here: {}\n", source.name, path?.display()))
}

/// As [`Hub::fetch`], with the display; says nothing if the model is here.
///
/// # Errors
/// As [`Hub::fetch`].
pub async fn fetch(hub: &Hub, source: &Source) -> Result<PathBuf, Error> {
    let display = Display::new(&source.name);
    let path = hub.fetch(source, &|event| display.show(event)).await;
    display.bar.finish_and_clear();
    path
}

impl Display {
    fn new(name: &str) -> Display {
        let bar = if std::io::stderr().is_terminal() && !terminal::is_dumb() {
            ProgressBar::no_length()
        } else {
            ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())
        };
        bar.set_style(style("{spinner} {msg}"));
        Display { name: name.to_string(), bar, state: Mutex::new(State { total: None, tenth: 1 }) }
    }

    fn show(&self, event: Event) {
        match event {
            Event::Trying { place } if place == self.name => self.say(&format!("looking for {place}")),
            Event::Trying { place } => self.say(&format!("looking for {} at {place}", self.name)),
            Event::Failed { reason, .. } => self.line(&format!("{reason}; trying the next source")),
            Event::Older { place, commit } => self.line(&format!(
                "warning: the newest commit of {place} is not here, and the network may not be used: taking {commit}"
            )),
            Event::Waiting { file } => self.say(&format!("waiting for another download of {file}")),
            Event::Checking { file } => self.bar.set_message(terminal::plain(&format!("checking {file}")).into_owned()),
            Event::Size { files, bytes: total } => self.begin(files, total),
            Event::Bytes { done } => self.advance(done),
        }
    }

    fn begin(&self, files: usize, total: Option<u64>) {
        self.bar.set_style(match total {
            Some(_) => style("{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta}"),
            None => style("{spinner} {msg} {decimal_bytes} {decimal_bytes_per_sec}"),
        });
        if let Some(total) = total {
            self.bar.set_length(total);
        }
        self.bar.enable_steady_tick(Duration::from_millis(100));
        self.state.lock().expect("a display that panics is a bug").total = total;
        let size = total.map_or(String::new(), |total| format!(", {}", bytes(total)));
        let plural = if files == 1 { "" } else { "s" };
        self.say(&format!("downloading {} ({files} file{plural}{size})", self.name));
    }

    fn advance(&self, done: u64) {
        self.bar.set_position(done);
        let mut state = self.state.lock().expect("a display that panics is a bug");
        let Some(total) = state.total.filter(|total| *total > 0) else {
            return;
        };
        let tenths = done.saturating_mul(10) / total;
        if tenths >= state.tenth {
            state.tenth = tenths + 1;
            self.plain(&format!("{} {} % of {}", self.name, tenths * 10, bytes(total)));
        }
    }

    /// What goes on now: the bar's text, or a line.
    fn say(&self, text: &str) {
        self.bar.set_message(terminal::plain(text).into_owned());
        self.plain(text);
    }

    /// What should stay to be read.
    fn line(&self, text: &str) {
        self.bar.println(terminal::plain(text));
        self.plain(text);
    }

    /// A line for those who see no bar.
    fn plain(&self, text: &str) {
        if self.bar.is_hidden() {
            say!("{text}");
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a template of our own that does not parse is a bug")
}
