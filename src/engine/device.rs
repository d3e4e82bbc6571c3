//! The device thread and the way in. Arrays are born, used and freed on this one thread; everybody else holds an
//! [`Engine`], which is a sender.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::Ordering,
        mpsc::{Receiver, Sender, TryRecvError, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::{Job, Runner, Stats, scheduler::Scheduler, stats::Counters};

/// What the engine may take on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Sequences computed together.
    pub rows: usize,
    /// Jobs that may wait for a row.
    pub waiting: usize,
    /// Tokens of a prompt in one forward pass. Running answers wait this long at most.
    pub prefill_chunk: usize,
    /// Memory for remembered prefixes, in bytes.
    pub prefix_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { rows: 8, waiting: 256, prefill_chunk: 512, prefix_bytes: 1 << 30 }
    }
}

/// Why a job was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    #[error("{waiting} jobs are waiting already, the limit is {limit}")]
    Full { waiting: usize, limit: usize },
    #[error("the engine is closed")]
    Closed,
}

/// A loaded model's device thread. Clones share it; it ends with the last of them.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    inbox: Mutex<Inbox>,
    counters: Arc<Counters>,
    thread: Mutex<Option<JoinHandle<()>>>,
    limits: Limits,
    context: usize,
}

/// The way in. Under one lock with `closed`, so that no job can come after the message that closes: the device thread
/// would be gone, and the job without a reason.
struct Inbox {
    messages: Sender<Message>,
    closed: bool,
}

enum Message {
    Job(Job),
    /// Take no more, and end what is left at this time.
    Close(Instant),
}

impl Engine {
    /// Starts a device thread and loads the model on it; returns when that is done.
    ///
    /// # Errors
    /// What `load` returns.
    ///
    /// # Panics
    /// If `load` panics, with its panic.
    pub fn start<R, E>(limits: Limits, load: impl FnOnce() -> Result<R, E> + Send + 'static) -> Result<Engine, E>
    where
        R: Runner + 'static,
        E: Send + 'static,
    {
        let (sender, messages) = channel();
        let (ready, loaded) = channel();
        let counters = Arc::new(Counters::default());
        let on_device = counters.clone();
        let thread = std::thread::Builder::new()
            .name("device".into())
            .spawn(move || {
                let runner = match load() {
                    Ok(runner) => runner,
                    Err(error) => return drop(ready.send(Err(error))),
                };
                let _ = ready.send(Ok(runner.context()));
                work(&mut Scheduler::new(runner, limits, on_device), &messages);
            })
            .expect("the system starts a thread");
        let context = match loaded.recv() {
            Ok(loaded) => loaded?,
            Err(_) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("the thread says how loading went, or panics"),
            },
        };
        let inbox = Mutex::new(Inbox { messages: sender, closed: false });
        Ok(Engine { shared: Arc::new(Shared { inbox, counters, thread: Mutex::new(Some(thread)), limits, context }) })
    }

    /// Puts a job into the inbox.
    ///
    /// # Errors
    /// [`SubmitError::Full`] when too many wait, [`SubmitError::Closed`] after [`Engine::close`].
    pub fn submit(&self, job: Job) -> Result<(), SubmitError> {
        let inbox = self.inbox();
        if inbox.closed {
            return Err(SubmitError::Closed);
        }
        let limit = self.shared.limits.waiting;
        // Every row that is free takes a job at once, so the queue proper starts behind the rows.
        let waiting = &self.shared.counters.waiting;
        let taken = waiting.fetch_add(1, Ordering::AcqRel) as usize;
        let free = self.shared.limits.rows.saturating_sub(self.stats().running as usize);
        let sent = match taken < limit + free {
            true => inbox.messages.send(Message::Job(job)).map_err(|_| SubmitError::Closed),
            false => Err(SubmitError::Full { waiting: taken, limit }),
        };
        sent.inspect_err(|_| {
            waiting.fetch_sub(1, Ordering::AcqRel);
        })
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.shared.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counters of this moment.
    pub fn stats(&self) -> Stats {
        self.shared.counters.snapshot()
    }

    /// The most tokens a sequence may hold.
    pub fn context(&self) -> usize {
        self.shared.context
    }

    /// Takes no more jobs, lets the ones there are finish for `grace`, ends the rest with [`Finish::Closing`], and
    /// returns when the device thread is gone and the model's memory is free. Blocks; a second call returns at once.
    pub fn close(&self, grace: Duration) {
        {
            let mut inbox = self.inbox();
            inbox.closed = true;
            // A thread that is gone needs no word.
            let _ = inbox.messages.send(Message::Close(Instant::now() + grace));
        }
        let thread = self.shared.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the device thread was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// The device thread's life: sleep while there is nothing to do, otherwise tick.
fn work<R: Runner>(scheduler: &mut Scheduler<R>, messages: &Receiver<Message>) {
    let mut deadline: Option<Instant> = None;
    loop {
        if scheduler.is_idle() && deadline.is_none() {
            match messages.recv() {
                Ok(Message::Job(job)) => scheduler.push(job),
                Ok(Message::Close(at)) => deadline = Some(at),
                Err(_) => return,
            }
        }
        loop {
            match messages.try_recv() {
                Ok(Message::Job(job)) => scheduler.push(job),
                Ok(Message::Close(at)) => deadline = Some(deadline.map_or(at, |before| before.min(at))),
                Err(TryRecvError::Empty) => break,
                // Nobody is left to read the answers.
                Err(TryRecvError::Disconnected) => deadline = Some(Instant::now()),
            }
            // Nothing but earlier deadlines can follow a deadline.
            if deadline.is_some_and(|at| at <= Instant::now()) {
                break;
            }
        }
        if deadline.is_some_and(|at| scheduler.is_idle() || at <= Instant::now()) {
            return scheduler.close();
        }
        scheduler.tick();
    }
}
