//! The device thread's work: round after round, in which every instance has a turn, and one of those that load.

use std::{
    mem,
    sync::{Arc, mpsc::Sender},
    time::{Duration, Instant},
};

use super::{
    failure::{RunError, guarded},
    handle::Inbox,
    instance::{End, Instance, LoadStep, Loader, Progress},
    places::Place,
};

/// Makes slots, on the device thread.
pub(super) type Order = Box<dyn FnOnce() -> Vec<Box<dyn Slot>> + Send>;

/// All that the device thread owns.
#[derive(Default)]
pub(super) struct Rounds {
    seats: Vec<Seat>,
}

/// A slot, and how long its last turn took.
struct Seat {
    slot: Box<dyn Slot>,
    took: Duration,
}

/// A turn may take as long as this, however short the others' turns are: less than a token of a small model takes.
const SHORT: Duration = Duration::from_millis(3);

/// A loaded or loading instance of any kind.
pub(super) trait Slot {
    fn is_loading(&self) -> bool;

    /// Takes what has come and does one turn of work, which should take so long. Does not panic.
    fn turn(&mut self, time: Duration) -> Turn;

    /// Ends it at once.
    fn close(&mut self);
}

/// What came of a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Busy,
    /// Nothing is to be done before somebody wakes the thread.
    Idle,
    /// The instance is dropped.
    Gone,
}

impl Rounds {
    /// Takes what is to be loaded.
    pub fn take(&mut self, orders: &mut Vec<Order>) {
        let slots = orders.drain(..).flat_map(|order| order());
        self.seats.extend(slots.map(|slot| Seat { slot, took: Duration::ZERO }));
    }

    /// A turn for every instance, then one for one that loads. Each may take as long as those of all others together,
    /// so that a stream beside one other instance is at most halved. False where there is nothing left to do.
    pub fn round(&mut self) -> bool {
        let mut busy = false;
        let mut all: Duration = self.seats.iter().map(|seat| seat.took).sum();
        self.seats.retain_mut(|seat| {
            if seat.slot.is_loading() {
                return true;
            }
            let others = all - seat.took;
            let turn = seat.turn(others.max(SHORT));
            all = others + seat.took;
            busy |= turn == Turn::Busy;
            turn != Turn::Gone
        });
        if let Some(loading) = self.seats.iter().position(|seat| seat.slot.is_loading()) {
            // The next one that loads has the next turn.
            let mut seat = self.seats.remove(loading);
            let turn = seat.turn(all.saturating_sub(seat.took).max(SHORT));
            if turn != Turn::Gone {
                // Others need not wait for what is done.
                seat.took = Duration::ZERO;
                self.seats.push(seat);
            }
            return true;
        }
        busy
    }

    /// Ends everything.
    pub fn close(&mut self) {
        for mut seat in self.seats.drain(..) {
            seat.slot.close();
        }
    }
}

impl Seat {
    fn turn(&mut self, time: Duration) -> Turn {
        let began = Instant::now();
        let turn = self.slot.turn(time);
        self.took = if turn == Turn::Busy { began.elapsed() } else { Duration::ZERO };
        turn
    }
}

/// Why an instance was not loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError<E> {
    #[error(transparent)]
    Failed(E),
    #[error("{0}; this is a bug, please report it")]
    Panicked(RunError),
    #[error("the device is closed")]
    Closed,
}

/// An instance and the way to it.
pub(super) struct Hosted<L: Loader>
where
    L::Output: Instance,
{
    stage: Stage<L>,
    inbox: Arc<Inbox<<L::Output as Instance>::Job>>,
    /// Jobs on their way in; empty between turns.
    arrived: Vec<(<L::Output as Instance>::Job, Place)>,
    outcome: Sender<Result<(), LoadError<L::Error>>>,
}

enum Stage<L: Loader> {
    Loading(L),
    Running { instance: L::Output, progress: Progress },
    Gone,
}

impl<L: Loader + 'static> Hosted<L>
where
    L::Output: Instance,
{
    pub fn boxed(
        make: impl FnOnce() -> L,
        inbox: Arc<Inbox<<L::Output as Instance>::Job>>,
        outcome: Sender<Result<(), LoadError<L::Error>>>,
    ) -> Box<dyn Slot> {
        let made = guarded("the model's loader", make);
        let mut hosted = Hosted { stage: Stage::Gone, inbox, arrived: Vec::new(), outcome };
        match made {
            Ok(loader) => hosted.stage = Stage::Loading(loader),
            Err(panic) => hosted.refuse(LoadError::Panicked(panic)),
        }
        Box::new(hosted)
    }

    /// One step of loading.
    fn load(&mut self, time: Duration) -> Turn {
        let Stage::Loading(loader) = &mut self.stage else { return Turn::Gone };
        if self.inbox.is_closing() {
            self.refuse(LoadError::Closed);
            return Turn::Gone;
        }
        match guarded("the model's loader", || loader.step(time)) {
            Ok(Ok(LoadStep::More(done))) => self.inbox.set_loading(done),
            Ok(Ok(LoadStep::Loaded(instance))) => self.start(instance),
            Ok(Err(error)) => self.refuse(LoadError::Failed(error)),
            Err(panic) => self.refuse(LoadError::Panicked(panic)),
        }
        if matches!(self.stage, Stage::Gone) { Turn::Gone } else { Turn::Busy }
    }

    fn start(&mut self, instance: L::Output) {
        match guarded("the model", || instance.context()) {
            Ok(context) => {
                self.stage = Stage::Running { instance, progress: Progress::Idle };
                self.inbox.set_alive(context);
                // Whoever gave up waiting has dropped the handle, and that closes the instance.
                let _ = self.outcome.send(Ok(()));
            }
            Err(panic) => self.refuse(LoadError::Panicked(panic)),
        }
    }

    fn refuse(&mut self, error: LoadError<L::Error>) {
        self.forget();
        let _ = self.outcome.send(Err(error));
    }

    /// Takes the jobs that have come, and does one turn of work.
    fn work(&mut self, time: Duration) -> Turn {
        let deadline = self.inbox.collect(&mut self.arrived);
        let Stage::Running { instance, progress } = &mut self.stage else { return Turn::Gone };
        let (inbox, arrived) = (&self.inbox, &mut self.arrived);
        let turned = guarded("the model", || {
            if !arrived.is_empty() {
                *progress = Progress::Busy;
                arrived.drain(..).for_each(|(job, place)| instance.push(job, place));
            }
            let bytes = inbox.asked_to_shed();
            if bytes > 0 {
                instance.shed(bytes);
            }
            let is_over = deadline.is_some_and(|at| *progress == Progress::Idle || at <= Instant::now());
            if is_over {
                instance.close(End::Closing);
                return Ok(Turn::Gone);
            }
            if *progress == Progress::Busy {
                *progress = instance.tick(time)?;
            }
            inbox.set_bytes(instance.bytes());
            // One that is closing ends in its next turn.
            Ok(if *progress == Progress::Busy || deadline.is_some() { Turn::Busy } else { Turn::Idle })
        });
        match turned.and_then(|turn| turn) {
            Ok(Turn::Gone) => self.forget(),
            Ok(turn) => return turn,
            Err(error) => self.die(&error),
        }
        Turn::Gone
    }

    /// The instance failed: its jobs end, those on their way as well, and it is dropped.
    fn die(&mut self, error: &RunError) {
        self.inbox.set_dead(&error.0);
        self.inbox.collect(&mut self.arrived);
        if let Stage::Running { instance, .. } = &mut self.stage {
            let arrived = &mut self.arrived;
            // What panics here again has no better end to offer; its jobs see their channels closed.
            let _ = guarded("the model", || {
                arrived.drain(..).for_each(|(job, place)| instance.push(job, place));
                instance.close(End::Failed(error.0.clone()));
            });
        }
        self.forget();
    }

    /// Drops whatever there is.
    fn forget(&mut self) {
        let stage = mem::replace(&mut self.stage, Stage::Gone);
        let _ = guarded("the model", || drop(stage));
        self.arrived.clear();
        self.inbox.set_gone();
    }
}

impl<L: Loader + 'static> Slot for Hosted<L>
where
    L::Output: Instance,
{
    fn is_loading(&self) -> bool {
        matches!(self.stage, Stage::Loading(_))
    }

    fn turn(&mut self, time: Duration) -> Turn {
        match &self.stage {
            Stage::Loading(_) => self.load(time),
            Stage::Running { .. } => self.work(time),
            Stage::Gone => Turn::Gone,
        }
    }

    fn close(&mut self) {
        self.inbox.close(Instant::now());
        match &self.stage {
            Stage::Loading(_) => self.refuse(LoadError::Closed),
            Stage::Running { .. } => {
                self.work(SHORT);
            }
            Stage::Gone => {}
        }
    }
}
