//! What the device thread asks of a loaded model of any kind, and of one that is being loaded.

use std::time::{Duration, Instant};

use super::{failure::RunError, places::Place};

/// A loaded model of any kind. It is made on the device thread, lives there and is dropped there, so it may own arrays.
///
/// A panic in any of its functions, or an error of [`Instance::tick`], is its end: the device thread calls
/// [`Instance::close`] with [`End::Failed`] and drops it. Other instances go on.
pub trait Instance {
    /// What it does for a caller, together with the way back: a channel that the instance sends results to.
    type Job: Send + 'static;

    /// Takes a job in. `place` is the job's place among those that the instance may hold: [`Place::begin`] when the job
    /// stops waiting and is computed, [`Place::end`] before the caller is sent the last word, so that who has an answer
    /// finds the counters as it left them.
    fn push(&mut self, job: Self::Job, place: Place);

    /// One turn: one forward pass, or less where its work has smaller steps. All instances have their turns one after
    /// the other, so a long one holds up the others. `time` is about what the others' turns take together: one that has
    /// a choice takes as long.
    ///
    /// # Errors
    /// The instance cannot go on. What fails a single job is that job's own end.
    fn tick(&mut self, time: Duration) -> Result<Progress, RunError>;

    /// The most tokens one job may hold.
    fn context(&self) -> usize;

    /// Memory that [`Instance::shed`] can give back, in bytes. Asked after every turn.
    fn bytes(&self) -> usize;

    /// Gives back at least this many bytes of what it keeps for later, or all of it.
    fn shed(&mut self, bytes: usize);

    /// Ends every job it has.
    fn close(&mut self, end: End);
}

/// How long the steps of some work take: what a turn has time for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// The longest step, forgotten little by little.
    longest: Duration,
}

impl Pace {
    /// Does steps until the next one might end behind the turn's `time`, but one at least, or until one gives something.
    ///
    /// # Errors
    /// The first step's that fails.
    pub fn steps<T, E>(
        &mut self,
        time: Duration,
        mut step: impl FnMut() -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        let began = Instant::now();
        loop {
            let before = began.elapsed();
            if let Some(done) = step()? {
                return Ok(Some(done));
            }
            self.longest = (began.elapsed() - before).max(self.longest * 7 / 8);
            if began.elapsed() + self.longest > time {
                return Ok(None);
            }
        }
    }
}

/// Whether an instance has more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It has jobs, and wants another turn.
    Busy,
    /// It has none. It is not asked again before the next [`Instance::push`].
    Idle,
}

/// Why all jobs of an instance end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The instance is closing.
    Closing,
    /// The instance failed; the text says how.
    Failed(String),
}

/// Something that is loaded onto the device in steps. It lives on the device thread, where a step is a turn between
/// those of the running instances.
pub trait Loader {
    type Output;
    type Error;

    /// Loads as much as the time allows, at least a piece such as some rows of a matrix.
    ///
    /// # Errors
    /// It cannot be loaded. It is dropped then.
    fn step(&mut self, time: Duration) -> Result<LoadStep<Self::Output>, Self::Error>;

    /// Makes something of what is loaded, on the device thread as well.
    fn then<T, F: FnOnce(Self::Output) -> T>(self, make: F) -> Then<Self, F>
    where
        Self: Sized,
    {
        Then { loader: self, make: Some(make) }
    }
}

/// What a loader has come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LoadStep<T> {
    /// There is more to load; this share of all, from 0 to 1, is done.
    More(f32),
    /// It is loaded.
    Loaded(T),
}

/// A loader with something to do when it is through. See [`Loader::then`].
pub struct Then<L, F> {
    loader: L,
    make: Option<F>,
}

impl<T, L: Loader, F: FnOnce(L::Output) -> T> Loader for Then<L, F> {
    type Output = T;
    type Error = L::Error;

    fn step(&mut self, time: Duration) -> Result<LoadStep<T>, L::Error> {
        Ok(match self.loader.step(time)? {
            LoadStep::More(done) => LoadStep::More(done),
            LoadStep::Loaded(output) => {
                let make = self.make.take().expect("a loader that is asked again after its end is a bug");
                LoadStep::Loaded(make(output))
            }
        })
    }
}

/// A loader of one step.
pub fn at_once<T, E, F: FnOnce() -> Result<T, E>>(load: F) -> AtOnce<F> {
    AtOnce(Some(load))
}

/// See [`at_once`].
pub struct AtOnce<F>(Option<F>);

impl<T, E, F: FnOnce() -> Result<T, E>> Loader for AtOnce<F> {
    type Output = T;
    type Error = E;

    fn step(&mut self, _: Duration) -> Result<LoadStep<T>, E> {
        let load = self.0.take().expect("a loader that is asked again after its end is a bug");
        load().map(LoadStep::Loaded)
    }
}
