//! What callers hold of an instance: a way to give it jobs, to look at it and to close it.

use std::{
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    places::{Capacity, Place, Places, SubmitError},
    stats::{Counters, Stats},
    thread::DeviceThread,
};

/// A loaded instance that takes jobs of type `J`. Clones share it; it is closed when the last of them is dropped.
pub struct Handle<J> {
    shared: Arc<Shared<J>>,
}

struct Shared<J> {
    inbox: Arc<Inbox<J>>,
    /// As long as there are handles, there is a thread.
    thread: Arc<DeviceThread>,
}

/// How an instance is.
#[derive(Debug, Clone, PartialEq)]
pub enum Health {
    /// This share of it, from 0 to 1, is loaded.
    Loading { done: f32 },
    /// It takes jobs.
    Alive,
    /// It was closed: it takes no more jobs, and may have some left.
    Closing,
    /// It failed and is gone; the reason says how.
    Dead { reason: String },
}

/// The way from callers to the device thread.
pub(super) struct Inbox<J> {
    mail: Mutex<Mail<J>>,
    gone: Condvar,
    places: Arc<Places>,
    counters: Arc<Counters>,
    context: OnceLock<usize>,
    bytes: AtomicUsize,
    /// Bytes that are to be given back.
    shed: AtomicUsize,
}

/// Under one lock, so that no job can come after the instance took its last look: it would never get an end.
struct Mail<J> {
    jobs: Vec<(J, Place)>,
    health: Health,
    /// When whatever is left is ended.
    deadline: Option<Instant>,
    /// The instance is dropped.
    gone: bool,
}

/// A place for one job, taken before any work is done for it. Dropping it gives the place back.
pub struct Permit<J> {
    handle: Handle<J>,
    is_used: bool,
}

impl<J> Handle<J> {
    pub(super) fn new(capacity: Capacity, counters: Arc<Counters>, thread: Arc<DeviceThread>) -> Handle<J> {
        let mail = Mail { jobs: Vec::new(), health: Health::Loading { done: 0.0 }, deadline: None, gone: false };
        let inbox = Inbox {
            mail: Mutex::new(mail),
            gone: Condvar::new(),
            places: Arc::new(Places::new(capacity, Arc::clone(&counters))),
            counters,
            context: OnceLock::new(),
            bytes: AtomicUsize::new(0),
            shed: AtomicUsize::new(0),
        };
        Handle { shared: Arc::new(Shared { inbox: Arc::new(inbox), thread }) }
    }

    pub(super) fn inbox(&self) -> &Arc<Inbox<J>> {
        &self.shared.inbox
    }

    /// Takes places for `count` jobs, all or none. Costs next to nothing, so it comes before the work on a request.
    ///
    /// # Errors
    /// [`SubmitError`]: too many jobs, or an instance that takes none.
    pub fn reserve(&self, count: usize) -> Result<Vec<Permit<J>>, SubmitError> {
        self.take(count)?;
        Ok((0..count).map(|_| self.permit()).collect())
    }

    fn take(&self, count: usize) -> Result<(), SubmitError> {
        self.inbox().mail().open()?;
        self.inbox().places.take(count)
    }

    /// For a place that was taken.
    fn permit(&self) -> Permit<J> {
        Permit { handle: self.clone(), is_used: false }
    }

    /// Gives the instance a job, if there is a place.
    ///
    /// # Errors
    /// See [`Handle::reserve`].
    pub fn submit(&self, job: J) -> Result<(), SubmitError> {
        self.take(1)?;
        self.permit().submit(job)
    }

    /// The counters of this moment.
    pub fn stats(&self) -> Stats {
        self.inbox().counters.snapshot()
    }

    /// The most tokens one job may hold.
    pub fn context(&self) -> usize {
        self.inbox().context.get().copied().unwrap_or(0)
    }

    /// How the instance is.
    pub fn health(&self) -> Health {
        self.inbox().mail().health.clone()
    }

    /// Memory that [`Handle::shed`] can free, in bytes.
    pub fn bytes(&self) -> usize {
        self.inbox().bytes.load(Ordering::Relaxed)
    }

    /// Has the instance give back this many bytes of what it keeps for later, soon.
    pub fn shed(&self, bytes: usize) {
        self.inbox().shed.fetch_add(bytes, Ordering::Relaxed);
        self.shared.thread.wake();
    }

    /// Takes no more jobs, lets the ones there are finish for `grace`, ends the rest, and returns when the instance's
    /// memory is free. Blocks; where it is closed or dead already, returns at once.
    pub fn close(&self, grace: Duration) {
        self.inbox().close(Instant::now() + grace);
        self.shared.thread.wake();
        let mail = self.inbox().mail();
        let gone = self.inbox().gone.wait_while(mail, |mail| !mail.gone);
        drop(gone.unwrap_or_else(PoisonError::into_inner));
    }
}

impl<J> Clone for Handle<J> {
    fn clone(&self) -> Handle<J> {
        Handle { shared: Arc::clone(&self.shared) }
    }
}

impl<J> std::fmt::Debug for Handle<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Handle({:?})", self.health())
    }
}

impl<J> Drop for Shared<J> {
    fn drop(&mut self) {
        self.inbox.close(Instant::now());
        self.thread.wake();
    }
}

impl<J> Permit<J> {
    /// Gives the job to the instance.
    ///
    /// # Errors
    /// The instance was closed or died after the permit was given.
    pub fn submit(mut self, job: J) -> Result<(), SubmitError> {
        let inbox = self.handle.inbox();
        let mut mail = inbox.mail();
        mail.open()?;
        mail.jobs.push((job, Place::of_waiting(&inbox.places)));
        drop(mail);
        // The place is the job's from here on.
        self.is_used = true;
        self.handle.shared.thread.wake();
        Ok(())
    }
}

impl<J> Drop for Permit<J> {
    fn drop(&mut self) {
        if !self.is_used {
            self.handle.inbox().places.give_back(1);
        }
    }
}

impl<J> std::fmt::Debug for Permit<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Permit")
    }
}

impl<J> Mail<J> {
    /// Whether jobs are taken.
    fn open(&self) -> Result<(), SubmitError> {
        match &self.health {
            Health::Alive => Ok(()),
            Health::Dead { reason } => Err(SubmitError::Dead { reason: reason.clone() }),
            Health::Loading { .. } | Health::Closing => Err(SubmitError::Closed),
        }
    }
}

impl<J> Inbox<J> {
    fn mail(&self) -> MutexGuard<'_, Mail<J>> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No job is taken from here on, and what is left at this time is ended.
    pub(super) fn close(&self, at: Instant) {
        let mut mail = self.mail();
        mail.deadline = Some(mail.deadline.map_or(at, |before| before.min(at)));
        if !matches!(mail.health, Health::Dead { .. }) {
            mail.health = Health::Closing;
        }
    }

    /// Moves the jobs that have come into `arrived`; says when the instance is to end, if it is.
    pub(super) fn collect(&self, arrived: &mut Vec<(J, Place)>) -> Option<Instant> {
        let mut mail = self.mail();
        arrived.append(&mut mail.jobs);
        mail.deadline
    }

    /// How many bytes are to be given back.
    pub(super) fn asked_to_shed(&self) -> usize {
        self.shed.swap(0, Ordering::Relaxed)
    }

    pub(super) fn is_closing(&self) -> bool {
        self.mail().deadline.is_some()
    }

    pub(super) fn set_loading(&self, done: f32) {
        let mut mail = self.mail();
        if let Health::Loading { .. } = mail.health {
            mail.health = Health::Loading { done };
        }
    }

    /// Jobs are taken from here on, unless it was closed meanwhile.
    pub(super) fn set_alive(&self, context: usize) {
        // It is set once; a second instance of one inbox would be a bug without consequence.
        let _ = self.context.set(context);
        let mut mail = self.mail();
        if let Health::Loading { .. } = mail.health {
            mail.health = Health::Alive;
        }
    }

    pub(super) fn set_bytes(&self, bytes: usize) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// No job is taken from here on, because the instance failed.
    pub(super) fn set_dead(&self, reason: &str) {
        self.mail().health = Health::Dead { reason: reason.to_owned() };
    }

    /// The instance is dropped.
    pub(super) fn set_gone(&self) {
        let mut mail = self.mail();
        mail.gone = true;
        if let Health::Loading { .. } | Health::Alive = mail.health {
            mail.health = Health::Closing;
        }
        drop(mail);
        self.set_bytes(0);
        self.gone.notify_all();
    }
}
