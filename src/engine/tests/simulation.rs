//! Ten thousand jobs of every kind, through every kind of runner, by seeds: whatever happens around a job, it ends once,
//! in bounded time, with the answer it gets alone and one token a step, or with as much of it as it got.
//!
//! The rounds of the device thread are driven by hand, so that a seed always gives the same run.

use std::{collections::VecDeque, sync::Arc};

use super::*;
use crate::engine::{
    rounds::{Hosted, Order, Rounds},
    thread::DeviceThread,
};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    /// Once in so many times.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

const STOP: TokenId = TokenId(7);
const VOCABULARY: u32 = 60;

/// A job that can be made more than once.
#[derive(Debug, Clone)]
struct Spec {
    prompt: TokenPrompt,
    max_tokens: usize,
    is_guided: bool,
    is_penalised: bool,
    logprobs: Option<usize>,
    /// After so many tokens its reader goes away.
    cancelled_after: Option<usize>,
}

impl Spec {
    fn random(random: &mut Random) -> Spec {
        // Few beginnings, so that many prompts share one.
        let (beginning, shared) = (random.below(4), random.below(40));
        let rest = random.below(20);
        let mut tokens: Vec<TokenId> = (0..shared).map(|i| TokenId((i * 7 + beginning) as u32 % VOCABULARY)).collect();
        tokens.extend((0..=rest).map(|_| TokenId(random.below(VOCABULARY as usize) as u32)));
        let mut media = Vec::new();
        if random.once_in(8) && tokens.len() > 12 {
            let length = 1 + random.below(6);
            media.push(Media { start: 5, length, hash: random.below(2) as u64, data: Arc::new(()) });
        }
        Spec {
            prompt: TokenPrompt { tokens, media },
            max_tokens: 1 + random.below(40),
            is_guided: random.once_in(6),
            is_penalised: random.once_in(6),
            logprobs: random.once_in(6).then(|| random.below(3)),
            cancelled_after: random.once_in(8).then(|| random.below(12)),
        }
    }

    fn job(&self) -> (Job, UnboundedReceiver<Step>) {
        let (steps, receiver) = unbounded_channel();
        let mut job = Job::new(Vec::<TokenId>::new(), self.max_tokens, steps);
        job.prompt = self.prompt.clone();
        job.stop_tokens = vec![STOP];
        job.logprobs = self.logprobs;
        job.guide = self.is_guided.then(|| Box::new(Leading::default()) as Box<dyn Guide>);
        if self.is_penalised {
            job.sampling.repetition_penalty = Some(1.5);
        }
        (job, receiver)
    }
}

/// A guide that lets, forbids, forces, ends and fails, by what it is told alone.
#[derive(Default)]
struct Leading {
    last: u32,
    told: usize,
    forced: VecDeque<TokenId>,
}

impl Guide for Leading {
    fn advise(&mut self, taken: &[TokenId]) -> Result<Advice, String> {
        for id in taken {
            self.told += 1;
            self.last = id.0;
            self.forced.pop_front();
        }
        if self.forced.is_empty() && self.last % 5 == 1 && self.told > 0 {
            self.forced = (1..5).map(|step| TokenId((self.last + 3 * step) % VOCABULARY)).collect();
        }
        if !self.forced.is_empty() {
            return Ok(Advice::Force(self.forced.iter().copied().collect()));
        }
        match self.last {
            58 => Err("58 is too much".into()),
            59 if self.told > 0 => Ok(Advice::End),
            last if last % 5 < 3 => {
                let allowed = (0..VOCABULARY).filter(|id| id % 3 == last % 3);
                Ok(Advice::Mask(Arc::new(allowed.collect())))
            }
            _ => Ok(Advice::Free),
        }
    }
}

/// A device without a thread of its own.
struct House {
    rounds: Rounds,
    thread: Arc<DeviceThread>,
}

impl House {
    fn new() -> House {
        House { rounds: Rounds::default(), thread: Arc::new(DeviceThread::start(|_| {})) }
    }

    /// Begins to load a runner, in some steps.
    fn load(&mut self, script: Script, limits: Limits, steps: usize) -> Handle<Job> {
        let counters = Arc::new(Counters::default());
        let handle = Handle::new(limits.capacity(), Arc::clone(&counters), Arc::clone(&self.thread));
        let inbox = Arc::clone(handle.inbox());
        let (sender, _) = std::sync::mpsc::channel();
        let loader = move || {
            let runner = Stepwise { script, left: steps };
            runner.then(move |runner| text::Scheduler::new(runner, limits, counters))
        };
        let order: Order = Box::new(move || vec![Hosted::boxed(loader, inbox, sender)]);
        self.rounds.take(&mut vec![order]);
        handle
    }
}

struct Stepwise {
    script: Script,
    left: usize,
}

impl Loader for Stepwise {
    type Output = Scripted;
    type Error = ();

    fn step(&mut self, _: Duration) -> Result<LoadStep<Scripted>, ()> {
        self.left = self.left.saturating_sub(1);
        Ok(match self.left {
            0 => LoadStep::Loaded(Scripted::new(self.script.clone())),
            _ => LoadStep::More(0.5),
        })
    }
}

/// A job on its way.
struct Running {
    spec: Spec,
    instance: usize,
    /// `None` after its end, or when its reader went away.
    steps: Option<UnboundedReceiver<Step>>,
    cached: Option<usize>,
    answer: Vec<TokenId>,
    finish: Option<Finish>,
    /// Rounds without a token, since the first.
    idle: usize,
}

impl Running {
    /// Reads what has come.
    fn read(&mut self) {
        self.idle += 1;
        let Some(steps) = &mut self.steps else { return };
        while let Ok(step) = steps.try_recv() {
            assert!(self.finish.is_none(), "nothing follows the end");
            match step {
                Step::Started { cached } => assert!(self.cached.replace(cached).is_none(), "it starts once"),
                Step::Token(drawn) => {
                    assert!(self.cached.is_some(), "it starts first");
                    assert_eq!(drawn.logprobs.is_some(), self.spec.logprobs.is_some());
                    self.answer.push(drawn.id);
                    self.idle = 0;
                }
                Step::Finished(finish) => self.finish = Some(finish),
            }
        }
        // Guides think on threads of their own, but a turn waits for them; so a row that answers has a token every other
        // turn at least, or where passes accept none, every fourth.
        assert!(self.answer.is_empty() || self.finish.is_some() || self.idle <= 4, "it starves: {:?}", self.spec);
        let is_cancelled = self.spec.cancelled_after.is_some_and(|after| self.answer.len() >= after);
        if is_cancelled || self.finish.is_some() {
            self.steps = None;
        }
    }

    fn is_over(&self) -> bool {
        self.steps.is_none()
    }
}

/// How an instance is set up.
struct Setup {
    script: Script,
    limits: Limits,
    may_fail: bool,
}

impl Setup {
    fn random(random: &mut Random) -> Setup {
        let mut script = Script { vocabulary: VOCABULARY, context: 90, ..Script::default() };
        script.recurrent = random.once_in(2);
        script.pipelined = random.once_in(2);
        script.drafts = random.below(5);
        let may_fail = random.once_in(3);
        if may_fail {
            let calls = [Call::Submit, Call::Collect, Call::Cut, Call::Bytes];
            script.panics = (0..4).map(|_| (calls[random.below(4)], random.below(200))).collect();
            script.fails = (0..4).map(|_| (calls[random.below(2)], random.below(200))).collect();
            // After that the instance is dead.
            script.fails.extend(random.once_in(3).then(|| (Call::LeaveOut, random.below(200))));
        }
        let limits = Limits {
            rows: 1 + random.below(6),
            waiting: random.below(12),
            prefill_chunk: 1 + random.below(40),
            prefix_bytes: [0, 2000, 1 << 20][random.below(3)],
        };
        Setup { script, limits, may_fail }
    }
}

/// One seed: two instances, a third that is loaded on the way, and about a hundred jobs.
struct Simulation {
    random: Random,
    house: House,
    setups: Vec<Setup>,
    handles: Vec<Handle<Job>>,
    jobs: Vec<Running>,
    refused: usize,
}

impl Simulation {
    fn new(seed: u64) -> Simulation {
        let mut simulation = Simulation {
            random: Random(seed),
            house: House::new(),
            setups: Vec::new(),
            handles: Vec::new(),
            jobs: Vec::new(),
            refused: 0,
        };
        simulation.load(1);
        simulation.load(1);
        simulation
    }

    fn load(&mut self, steps: usize) {
        let setup = Setup::random(&mut self.random);
        self.handles.push(self.house.load(setup.script.clone(), setup.limits, steps));
        self.setups.push(setup);
    }

    /// Submits a job somewhere. True where it was taken.
    fn submit(&mut self) -> bool {
        let spec = Spec::random(&mut self.random);
        let instance = self.random.below(self.handles.len());
        let (job, receiver) = spec.job();
        let handle = &self.handles[instance];
        let submitted = match self.random.once_in(2) {
            true => handle.submit(job),
            false => handle.reserve(1).and_then(|mut permits| permits.remove(0).submit(job)),
        };
        match submitted {
            Ok(()) => {
                let steps = Some(receiver);
                let answer = Vec::new();
                self.jobs.push(Running { spec, instance, steps, cached: None, answer, finish: None, idle: 0 });
                return true;
            }
            Err(SubmitError::Full { retry_after, .. }) => assert!(retry_after >= 1),
            Err(SubmitError::Dead { .. }) => assert!(self.setups[instance].may_fail),
            Err(SubmitError::Closed) => assert!(matches!(handle.health(), Health::Loading { .. })),
            Err(error) => panic!("{error}"),
        }
        self.refused += 1;
        false
    }

    fn round(&mut self) -> bool {
        let busy = self.house.rounds.round();
        self.jobs.iter_mut().for_each(Running::read);
        for (handle, setup) in self.handles.iter().zip(&self.setups) {
            assert!(handle.stats().prefix_bytes <= setup.limits.prefix_bytes as u64, "within the budget");
            assert!(handle.stats().running <= setup.limits.rows as u64, "no more than there are rows");
        }
        busy
    }

    /// Runs until every one of `count` jobs is over.
    fn run(&mut self, count: usize) {
        let mut left = count;
        while left > 0 {
            for _ in 0..self.random.below(4).min(left) {
                left -= usize::from(self.submit());
            }
            self.round();
            if left == count / 2 && self.handles.len() == 2 {
                self.load(10);
            }
            if self.handles.iter().all(|handle| matches!(handle.health(), Health::Dead { .. })) {
                break;
            }
        }
        let work = |job: &Running| job.spec.prompt.tokens.len() + job.spec.max_tokens;
        let mut rounds = 4 * self.jobs.iter().filter(|job| !job.is_over()).map(work).sum::<usize>() + 20;
        while self.jobs.iter().any(|job| !job.is_over()) {
            assert!(rounds > 0, "a job does not end");
            rounds -= 1;
            self.round();
        }
        while self.round() {}
    }

    /// What must hold when all is over. `plain` answers one job alone, one token a step.
    fn check(&self, mut plain: impl FnMut(&Spec) -> (Vec<TokenId>, Finish)) {
        for job in &self.jobs {
            let (answer, finish) = plain(&job.spec);
            match &job.finish {
                Some(own) if *own == finish => assert_eq!(job.answer, answer, "{:?}", job.spec),
                Some(Finish::Failed(reason)) => {
                    assert!(self.setups[job.instance].may_fail, "{reason}");
                    assert!(answer.starts_with(&job.answer), "{:?}", job.spec);
                }
                Some(other) => panic!("{other:?} instead of {finish:?}: {:?}", job.spec),
                None => {
                    assert!(job.spec.cancelled_after.is_some());
                    assert!(answer.starts_with(&job.answer), "{:?}", job.spec);
                }
            }
        }
        for (index, handle) in self.handles.iter().enumerate() {
            self.check_counters(index, handle);
        }
    }

    fn check_counters(&self, index: usize, handle: &Handle<Job>) {
        let own: Vec<&Running> = self.jobs.iter().filter(|job| job.instance == index).collect();
        let Stats { running, waiting, finished, cancelled, failed, prompt_tokens, cached_tokens, .. } = handle.stats();
        assert_eq!((running, waiting), (0, 0));
        assert_eq!(finished + cancelled + failed, own.len() as u64, "every job ends once");
        let has_failed = |job: &&&Running| matches!(job.finish, Some(Finish::Failed(_)));
        assert!(failed >= own.iter().filter(has_failed).count() as u64);
        let started = || own.iter().filter(|job| job.cached.is_some());
        let (prompts, cached): (usize, usize) =
            started().fold((0, 0), |sum, job| (sum.0 + job.spec.prompt.tokens.len(), sum.1 + job.cached.unwrap_or(0)));
        // The start of one that was cancelled may not have been read.
        assert!(prompt_tokens >= prompts as u64 && cached_tokens >= cached as u64);
        let drawn: usize = own.iter().map(|job| job.answer.len() + usize::from(job.finish == Some(Finish::Stop))).sum();
        let is_quiet = own.iter().all(|job| job.spec.cancelled_after.is_none() && !job.spec.is_guided);
        if is_quiet && !self.setups[index].may_fail {
            assert_eq!(handle.stats().generated_tokens, drawn as u64);
            assert_eq!(prompt_tokens, prompts as u64);
        }
        let Capacity { rows, waiting } = self.setups[index].limits.capacity();
        match handle.health() {
            Health::Alive => drop(handle.reserve(rows + waiting).expect("all places are free again")),
            Health::Dead { .. } => assert!(self.setups[index].may_fail),
            other => panic!("{other:?}"),
        }
    }
}

/// The answers of jobs by themselves.
struct Plain {
    house: House,
    handle: Handle<Job>,
}

impl Plain {
    fn new() -> Plain {
        let mut house = House::new();
        let limits = Limits { rows: 1, waiting: 0, prefix_bytes: 0, ..Limits::default() };
        let handle = house.load(Script { vocabulary: VOCABULARY, context: 90, ..Script::default() }, limits, 1);
        house.rounds.round();
        Plain { house, handle }
    }

    fn answer(&mut self, spec: &Spec) -> (Vec<TokenId>, Finish) {
        let (job, mut steps) = spec.job();
        self.handle.submit(job).expect("there is nobody else");
        while self.house.rounds.round() {}
        let mut answer = Vec::new();
        loop {
            match steps.try_recv().expect("it is over") {
                Step::Started { .. } => {}
                Step::Token(drawn) => answer.push(drawn.id),
                Step::Finished(finish) => return (answer, finish),
            }
        }
    }
}

fn simulate(seeds: std::ops::Range<u64>) {
    let mut plain = Plain::new();
    let (mut jobs, mut whole, mut failed, mut cached, mut dead) = (0, 0, 0, 0, 0);
    for seed in seeds {
        let mut simulation = Simulation::new(seed);
        simulation.run(100);
        simulation.check(|spec| plain.answer(spec));
        jobs += simulation.jobs.len();
        let ends = |end: fn(&Finish) -> bool| {
            simulation.jobs.iter().filter_map(|job| job.finish.as_ref()).filter(|f| end(f)).count()
        };
        whole += ends(|finish| matches!(finish, Finish::Stop | Finish::Length));
        failed += ends(|finish| matches!(finish, Finish::Failed(_)));
        cached += simulation.jobs.iter().filter(|job| job.cached.is_some_and(|cached| cached > 0)).count();
        dead += simulation.handles.iter().filter(|handle| matches!(handle.health(), Health::Dead { .. })).count();
    }
    eprintln!("{jobs} jobs, {whole} whole, {failed} failed, {cached} from a prefix, {dead} instances dead");
    assert!(jobs > 2300 && whole > 1200 && failed > 50 && cached > 300 && dead > 0);
}

#[test]
fn jobs_0_to_2500() {
    simulate(0..25);
}

#[test]
fn jobs_2500_to_5000() {
    simulate(25..50);
}

#[test]
fn jobs_5000_to_7500() {
    simulate(50..75);
}

#[test]
fn jobs_7500_to_10000() {
    simulate(75..103);
}
