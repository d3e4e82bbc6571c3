//! One thread for many instances: what one of them does is nothing to the others.

use std::sync::{Arc, Mutex};

use super::*;

/// An instance that answers each number with its double, one a turn, and panics or fails where it is told to.
#[derive(Default)]
struct Doubler {
    jobs: Vec<(Doubling, Place)>,
    kept: usize,
    sheds: Arc<Mutex<Vec<usize>>>,
}

struct Doubling {
    number: i64,
    answer: std::sync::mpsc::Sender<Result<i64, String>>,
}

const PANICS: i64 = -1;
const FAILS: i64 = -2;

impl Instance for Doubler {
    type Job = Doubling;

    fn push(&mut self, job: Doubling, place: Place) {
        self.jobs.push((job, place));
    }

    fn tick(&mut self, _: Duration) -> Result<Progress, RunError> {
        match self.jobs.first().map(|(job, _)| job.number) {
            Some(PANICS) => panic!("the numbers ran out"),
            Some(FAILS) => return Err(RunError("no such number".into())),
            Some(_) => {
                let (Doubling { number, answer }, mut place) = self.jobs.remove(0);
                place.begin();
                place.end(Outcome::Finished);
                self.kept += 8;
                let _ = answer.send(Ok(2 * number));
            }
            None => {}
        }
        Ok(if self.jobs.is_empty() { Progress::Idle } else { Progress::Busy })
    }

    fn context(&self) -> usize {
        1
    }

    fn bytes(&self) -> usize {
        self.kept
    }

    fn shed(&mut self, bytes: usize) {
        self.kept = self.kept.saturating_sub(bytes);
        self.sheds.lock().expect("no panic").push(bytes);
    }

    fn close(&mut self, end: End) {
        for (job, place) in self.jobs.drain(..) {
            place.end(Outcome::Failed);
            let _ = job.answer.send(Err(format!("{end:?}")));
        }
    }
}

fn doubler(device: &Device, waiting: usize) -> Handle<Doubling> {
    let loading = device.load(Capacity { rows: 1, waiting }, |_| at_once(|| Ok::<_, ()>(Doubler::default())));
    loading.wait().expect("it loads")
}

/// What becomes of a number; `None` where it gets no answer.
fn double(handle: &Handle<Doubling>, number: i64) -> Result<Option<Result<i64, String>>, SubmitError> {
    let (answer, answered) = std::sync::mpsc::channel();
    handle.submit(Doubling { number, answer })?;
    Ok(answered.recv().ok())
}

fn on(device: &Device, script: Script) -> Handle<Job> {
    text::load_at_once(device, Limits::default(), || Ok::<_, ()>(Scripted::new(script))).wait().expect("it loads")
}

#[test]
fn an_instance_that_fails_is_dead_and_the_others_go_on() {
    for (number, reason) in [(PANICS, "the model panicked: the numbers ran out"), (FAILS, "no such number")] {
        let device = Device::start();
        let (chat, numbers) = (on(&device, script()), doubler(&device, 10));
        let stream = submit(&chat, &prompt(1, 4), 2000);
        assert_eq!(double(&numbers, 4), Ok(Some(Ok(8))));
        assert_eq!(numbers.health(), Health::Alive);
        assert_eq!(double(&numbers, number), Ok(Some(Err(format!("Failed({reason:?})")))));
        assert_eq!(double(&numbers, 4), Err(SubmitError::Dead { reason: reason.into() }));
        assert_eq!(numbers.reserve(1).err(), Some(SubmitError::Dead { reason: reason.into() }));
        assert_eq!(numbers.health(), Health::Dead { reason: reason.into() });
        numbers.close(Duration::from_secs(60));
        assert_eq!(numbers.health(), Health::Dead { reason: reason.into() }, "closing it is no news");
        let Stats { running, waiting, finished, failed, .. } = numbers.stats();
        assert_eq!((running, waiting, finished, failed), (0, 0, 1, 1));
        assert_eq!(collect(stream).1, expected(&prompt(1, 4), 2000));
        assert_eq!(double(&doubler(&device, 10), 5), Ok(Some(Ok(10))), "another one can be loaded");
    }
}

#[test]
fn closing_one_instance_leaves_the_others() {
    let device = Device::start();
    let (first, second) = (on(&device, script()), on(&device, script()));
    let (kept, ended) = (submit(&first, &prompt(1, 4), 500), submit(&second, &prompt(2, 4), 4000));
    second.close(Duration::ZERO);
    assert_eq!(second.health(), Health::Closing);
    assert_eq!(collect(ended).2, Finish::Closing);
    assert_eq!(collect(kept).1, expected(&prompt(1, 4), 500));
    // The last handle of an instance closes it; jobs that it has end.
    let orphan = submit(&first, &prompt(3, 4), 4000);
    drop(first);
    assert_eq!(collect(orphan).2, Finish::Closing);
    device.close();
    let loading = device.load(Capacity { rows: 1, waiting: 0 }, |_| at_once(|| Ok::<_, ()>(Doubler::default())));
    assert_eq!(loading.wait().err(), Some(LoadError::Closed));
}

#[test]
fn closing_the_device_ends_all() {
    let device = Device::start();
    let chat = on(&device, script());
    let stream = submit(&chat, &prompt(1, 4), 4000);
    device.close();
    assert_eq!(collect(stream).2, Finish::Closing);
    assert_eq!(chat.health(), Health::Closing);
    let (steps, _receiver) = unbounded_channel();
    assert_eq!(chat.submit(Job::new(vec![1], 1, steps)), Err(SubmitError::Closed));
    chat.close(Duration::from_secs(60));
}

/// Loads in steps, and notes how many passes there were before each.
struct Slow {
    steps: usize,
    log: Log,
    seen: Arc<Mutex<Vec<usize>>>,
}

impl Loader for Slow {
    type Output = Doubler;
    type Error = String;

    fn step(&mut self, _: Duration) -> Result<LoadStep<Doubler>, String> {
        let mut seen = self.seen.lock().expect("no panic");
        seen.push(self.log.passes().len());
        Ok(match seen.len() < self.steps {
            true => LoadStep::More(seen.len() as f32 / self.steps as f32),
            false => LoadStep::Loaded(Doubler::default()),
        })
    }
}

#[test]
fn a_load_takes_turns_with_running_streams() {
    let device = Device::start();
    let log = Log::default();
    let chat = on(&device, Script { log: log.clone(), ..script() });
    let stream = submit(&chat, &prompt(1, 4), 4000);
    wait("it answers", || chat.stats().generated_tokens > 2);
    let (seen, others) = (Arc::default(), Arc::default());
    let slow = |seen: &Arc<Mutex<Vec<usize>>>| {
        let (log, seen) = (log.clone(), Arc::clone(seen));
        device.load(Capacity { rows: 1, waiting: 1 }, |_| Slow { steps: 50, log, seen })
    };
    let (one, other) = (slow(&seen), slow(&others));
    assert!(matches!(one.health(), Health::Loading { .. }));
    assert_eq!(double(&one.wait().expect("it loads"), 3), Ok(Some(Ok(6))));
    other.wait().expect("it loads");
    assert!(chat.stats().running == 1, "the stream runs through all of it");
    drop(stream);
    let mut all: Vec<usize> = [seen, others].iter().flat_map(|seen| seen.lock().expect("no panic").clone()).collect();
    all.sort_unstable();
    assert_eq!(all.len(), 100);
    assert!(all.windows(2).all(|pair| pair[1] - pair[0] >= 1), "a pass between any two steps: {all:?}");
}

#[test]
fn a_load_that_nobody_waits_for_ends() {
    let device = Device::start();
    let seen: Arc<Mutex<Vec<usize>>> = Arc::default();
    let loader = Slow { steps: usize::MAX, log: Log::default(), seen: Arc::clone(&seen) };
    let loading = device.load(Capacity { rows: 1, waiting: 1 }, |_| loader);
    wait("it loads", || seen.lock().expect("no panic").len() > 3);
    drop(loading);
    wait("the loader is dropped", || Arc::strong_count(&seen) == 1);
}

#[test]
fn three_hundred_at_once_are_sixteen_and_284_refusals() {
    let limits = Limits { rows: 8, waiting: 8, ..Limits::default() };
    let slow = Script { delay: Duration::from_millis(1), ..script() };
    let engine = engine(slow, limits);
    let taken: Vec<_> = (0..300).map(|_| engine.reserve(1)).collect();
    let refused = taken.iter().filter(|taken| matches!(taken, Err(SubmitError::Full { waiting: 8, limit: 8, .. })));
    assert_eq!(refused.count(), 284);
    let steps: Vec<_> = (0..)
        .zip(taken.into_iter().flatten().flatten())
        .map(|(seed, permit)| {
            let (steps, receiver) = unbounded_channel();
            permit.submit(Job::new(prompt(seed, 5), 3, steps)).expect("there is a place");
            (seed, receiver)
        })
        .collect();
    assert_eq!(steps.len(), 16);
    for (seed, steps) in steps {
        assert_eq!(collect(steps).1, expected(&prompt(seed, 5), 3));
    }
    let Stats { running, waiting, finished, .. } = engine.stats();
    assert_eq!((running, waiting, finished), (0, 0, 16));
}

#[test]
fn permits_are_places() {
    let engine = engine(script(), Limits { rows: 2, waiting: 3, ..Limits::default() });
    assert_eq!(engine.reserve(6).err(), Some(SubmitError::TooMany { asked: 6, limit: 5 }));
    let three = engine.reserve(3).expect("there are five");
    let full = |waiting| Some(SubmitError::Full { waiting, limit: 3, retry_after: 1 });
    assert_eq!(engine.reserve(3).err(), full(1), "all or none");
    let two = engine.reserve(2).expect("two are left");
    assert_eq!(engine.reserve(1).err(), full(3));
    assert_eq!((engine.stats().waiting, engine.stats().running), (0, 0), "nothing is asked for yet");
    drop(three);
    let again = engine.reserve(3).expect("they were given back");
    engine.close(Duration::ZERO);
    let (steps, _receiver) = unbounded_channel();
    let permit = two.into_iter().next().expect("two");
    assert_eq!(permit.submit(Job::new(vec![1], 1, steps)), Err(SubmitError::Closed));
    drop(again);
}

#[test]
fn who_is_refused_hears_when_to_come_again() {
    let places = Arc::new(places::Places::new(Capacity { rows: 2, waiting: 4 }, Arc::default()));
    let retry_after = |count| match places.take(count) {
        Err(SubmitError::Full { retry_after, .. }) => retry_after,
        other => panic!("{other:?}"),
    };
    places.take(6).expect("there are six");
    assert_eq!(retry_after(1), 1, "nothing is known yet");
    places.note_run(10_000_000);
    // Two rows of ten seconds each: one place in five seconds.
    assert_eq!([retry_after(1), retry_after(2), retry_after(3)], [5, 10, 15]);
    for _ in 0..100 {
        places.note_run(1000);
    }
    assert_eq!(retry_after(4), 1, "what is recent counts");
}

#[test]
fn memory_is_given_back_when_asked() {
    let engine = engine(script(), Limits::default());
    for seed in 0..5 {
        collect(submit(&engine, &prompt(seed, 100), 1));
    }
    wait("they are remembered", || engine.bytes() == 5 * 400);
    engine.shed(500);
    wait("two are gone", || engine.bytes() == 3 * 400 && engine.stats().prefix_entries == 3);
    engine.shed(usize::MAX);
    wait("all are gone", || engine.bytes() == 0);
}

#[test]
fn a_turn_has_as_many_steps_as_it_has_time_for() {
    let steps_of = |time: Duration, pace: &mut Pace, lengths: &[u64]| {
        let mut lengths = lengths.iter();
        let mut count = 0;
        let step = || {
            let Some(&length) = lengths.next() else { return Ok(Some(())) };
            std::thread::sleep(Duration::from_millis(length));
            count += 1;
            Ok::<_, ()>(None)
        };
        let done = pace.steps(time, step).expect("no step fails");
        (count, done)
    };
    let mut pace = Pace::default();
    assert_eq!(steps_of(Duration::ZERO, &mut pace, &[5, 5]), (1, None), "one at least");
    assert_eq!(steps_of(Duration::from_secs(60), &mut pace, &[1, 5, 0]), (3, Some(())), "until one is the last");
    assert_eq!(
        steps_of(Duration::from_millis(3), &mut pace, &[0, 0]),
        (1, None),
        "the longest is not forgotten at once"
    );
}
