//! A fork-join pool: [`run`] shares out task numbers among the caller and threads that spin for a moment between runs
//! before they sleep, so that a run costs about a microsecond while kernels follow each other.
//!
//! Each thread has a range of neighbouring tasks to itself and helps with the others' once it is through: tasks that lie
//! side by side read what lies side by side, and that is what a processor reads ahead.

mod cores;

use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

use cores::physical_cores;

/// How long a thread waits for the next run before it sleeps.
const SPIN: Duration = Duration::from_micros(50);

/// The gate: bit 0 is whether a run is open to more threads, bits 1 to 15 count the threads inside, the rest numbers
/// the runs. A thread enters by compare-and-swap, so it cannot enter a run that closed since it looked.
const OPEN: u64 = 1;
const INSIDE: u64 = 2;
const INSIDE_MASK: u64 = 0xfffe;
const RUN: u64 = 1 << 16;

thread_local! {
    /// Whether this thread is executing a task: a run from within a task stays on its thread.
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// What the open run does. The pointer is valid while the gate is open or threads are inside.
#[derive(Clone, Copy)]
struct Job {
    body: *const (dyn Fn(usize) + Sync),
    /// How many of [`Shared::ranges`] hold its tasks.
    ranges: usize,
}

/// Ranges of tasks a run has at most; more threads share them.
const RANGES: usize = 64;

/// The tasks of a run from `next` to `end` are not begun.
#[repr(align(128))]
struct Range {
    next: AtomicUsize,
    end: AtomicUsize,
}

struct Sleeper {
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

struct Shared {
    gate: AtomicU64,
    ranges: [Range; RANGES],
    /// Threads that came in, for each to begin with a range of its own.
    seats: AtomicUsize,
    job: std::cell::UnsafeCell<Option<Job>>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `job` is written only while the gate is shut with nobody inside, by the one caller that holds the pool's
// lock, and read only by threads that entered an open gate after that write (release and acquire on the gate). The
// body it points to is `Sync`.
unsafe impl Sync for Shared {}
// SAFETY: as for `Sync`; nothing in it belongs to a thread.
unsafe impl Send for Shared {}

struct Pool {
    shared: Arc<Shared>,
    workers: Vec<Arc<Sleeper>>,
    /// Threads a run uses, the caller among them.
    threads: usize,
}

fn pool() -> MutexGuard<'static, Pool> {
    static POOL: OnceLock<Mutex<Pool>> = OnceLock::new();
    let pool = POOL.get_or_init(|| {
        let shared = Shared {
            gate: AtomicU64::new(0),
            ranges: [const { Range { next: AtomicUsize::new(0), end: AtomicUsize::new(0) } }; RANGES],
            seats: AtomicUsize::new(0),
            job: std::cell::UnsafeCell::new(None),
            panic: Mutex::new(None),
        };
        THREADS.store(physical_cores(), Ordering::Relaxed);
        Mutex::new(Pool { shared: Arc::new(shared), workers: Vec::new(), threads: physical_cores() })
    });
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}

static THREADS: AtomicUsize = AtomicUsize::new(0);

/// How many threads kernels use, the caller's among them.
pub fn threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => pool().threads,
        threads => threads,
    }
}

/// Has kernels use `threads` threads, the caller's among them; 0 means one for each physical core.
pub fn set_threads(threads: usize) {
    let mut pool = pool();
    pool.threads = if threads == 0 { physical_cores() } else { threads.min(1024) };
    THREADS.store(pool.threads, Ordering::Relaxed);
}

/// Calls `body` with each of 0..tasks once, on this thread and the pool's, and returns when all are done. Callers on
/// several threads take turns; a call from within a task runs on its own thread.
///
/// # Panics
/// If a task panics: tasks not yet begun are dropped, and the panic is passed on when the others have ended.
pub fn run(tasks: usize, body: impl Fn(usize) + Sync) {
    if tasks <= 1 || WITHIN.get() || threads() == 1 {
        return (0..tasks).for_each(body);
    }
    let mut pool = pool();
    let helpers = pool.threads.min(tasks) - 1;
    while pool.workers.len() < helpers {
        pool.spawn();
    }
    let shared = &*pool.shared;
    let body: &(dyn Fn(usize) + Sync) = &body;
    // SAFETY: only the lifetime is dropped; `close` below returns when no thread can reach the job any more.
    let body: *const (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(body) };
    let ranges = (helpers + 1).min(RANGES);
    for (index, range) in shared.ranges[..ranges].iter().enumerate() {
        range.next.store(index * tasks / ranges, Ordering::Relaxed);
        range.end.store((index + 1) * tasks / ranges, Ordering::Relaxed);
    }
    shared.seats.store(0, Ordering::Relaxed);
    let job = Job { body, ranges };
    // SAFETY: this thread holds the pool's lock and the last run closed, so nobody reads the job now.
    unsafe { *shared.job.get() = Some(job) };
    shared.gate.fetch_add(RUN | OPEN, Ordering::SeqCst);
    for worker in &pool.workers[..helpers] {
        if worker.asleep.swap(false, Ordering::SeqCst) {
            worker.thread.get().expect("a worker that sleeps has started").unpark();
        }
    }
    shared.work(job);
    shared.close();
    let panic = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
    drop(pool);
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

/// [`run`] where the work, about that many bytes or operations, is worth waking others for; else on this thread.
pub(crate) fn run_worth(work: usize, tasks: usize, body: impl Fn(usize) + Sync) {
    /// A few microseconds' worth.
    const LEAST: usize = 64 << 10;
    if work < LEAST {
        return (0..tasks).for_each(body);
    }
    run(tasks, body);
}

impl Shared {
    /// Takes tasks until none is left.
    fn work(&self, job: Job) {
        WITHIN.set(true);
        let seat = self.seats.fetch_add(1, Ordering::Relaxed);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            for turn in 0..job.ranges {
                let range = &self.ranges[(seat + turn) % job.ranges];
                let end = range.end.load(Ordering::Relaxed);
                loop {
                    let task = range.next.fetch_add(1, Ordering::Relaxed);
                    if task >= end {
                        break;
                    }
                    // SAFETY: the job lives until `close` returns, which waits for this thread.
                    unsafe { (*job.body)(task) }
                }
            }
        }));
        WITHIN.set(false);
        if let Err(panic) = outcome {
            // Far from overflow, and past every task.
            self.ranges.iter().for_each(|range| range.next.store(usize::MAX / 2, Ordering::Relaxed));
            *self.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
        }
    }

    /// Lets no more threads in and waits for those inside.
    fn close(&self) {
        self.gate.fetch_and(!OPEN, Ordering::SeqCst);
        let mut turns = 0u32;
        while self.gate.load(Ordering::Acquire) & INSIDE_MASK != 0 {
            turns += 1;
            if turns < 10_000 {
                std::hint::spin_loop();
            } else {
                // The thread waited for may have lost its core to this one.
                thread::yield_now();
            }
        }
    }

    /// Enters the open run, if there is one that this thread has not been in.
    fn enter(&self, last: &mut u64) -> bool {
        let gate = self.gate.load(Ordering::SeqCst);
        if gate & OPEN == 0 || gate / RUN == *last {
            return false;
        }
        let entered = self.gate.compare_exchange_weak(gate, gate + INSIDE, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        if entered {
            *last = gate / RUN;
        }
        entered
    }

    fn serve(&self, sleeper: &Sleeper) {
        let mut last = 0;
        loop {
            if self.enter(&mut last) {
                // SAFETY: this thread is inside the open gate, so the job is written and stays.
                let job = unsafe { *self.job.get() }.expect("an open run has a job");
                self.work(job);
                self.gate.fetch_sub(INSIDE, Ordering::SeqCst);
            }
            let begin = Instant::now();
            while !self.may_enter(last) && begin.elapsed() < SPIN {
                (0..32).for_each(|_| std::hint::spin_loop());
            }
            if !self.may_enter(last) {
                // The caller opens the gate and then looks who sleeps; this thread says that it sleeps and then looks
                // at the gate. So one of them sees the other.
                sleeper.asleep.store(true, Ordering::SeqCst);
                while sleeper.asleep.load(Ordering::SeqCst) && !self.may_enter(last) {
                    thread::park();
                }
                sleeper.asleep.store(false, Ordering::SeqCst);
            }
        }
    }

    fn may_enter(&self, last: u64) -> bool {
        let gate = self.gate.load(Ordering::SeqCst);
        gate & OPEN != 0 && gate / RUN != last
    }
}

impl Pool {
    fn spawn(&mut self) {
        let sleeper = Arc::new(Sleeper { asleep: AtomicBool::new(false), thread: OnceLock::new() });
        let (shared, own) = (self.shared.clone(), sleeper.clone());
        let started = thread::Builder::new().name(format!("mlx-cpu-{}", self.workers.len() + 1)).spawn(move || {
            own.thread.set(thread::current()).expect("a worker starts once");
            shared.serve(&own);
        });
        // Without the thread the tasks are done by those there are.
        if started.is_err() {
            sleeper.thread.get_or_init(thread::current);
        }
        self.workers.push(sleeper);
    }
}

#[cfg(test)]
mod tests;
