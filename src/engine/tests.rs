//! The engine on the scripted runner: any mistake in tokens, states or order shows in the answers.

mod device;
mod endings;
mod guides;
mod simulation;

use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{
    scripted::{Call, Log, Script, Scripted},
    *,
};

fn script() -> Script {
    Script { vocabulary: 1000, context: 4096, ..Script::default() }
}

fn engine(script: Script, limits: Limits) -> Handle<Job> {
    let loading = text::load_at_once(&Device::start(), limits, move || Ok::<_, ()>(Scripted::new(script)));
    loading.wait().expect("the scripted runner loads")
}

fn submit(engine: &Handle<Job>, prompt: &[u32], max_tokens: usize) -> UnboundedReceiver<Step> {
    let (steps, receiver) = unbounded_channel();
    engine.submit(Job::new(prompt.to_vec(), max_tokens, steps)).expect("there is room");
    receiver
}

/// (cached, answer, reason)
fn collect(mut steps: UnboundedReceiver<Step>) -> (usize, Vec<u32>, Finish) {
    let (mut started, mut answer) = (None, Vec::new());
    loop {
        match steps.blocking_recv().expect("a job ends with a reason") {
            Step::Started { cached } => assert!(started.replace(cached).is_none(), "started twice"),
            Step::Token(token) => answer.push(token.id.0),
            Step::Finished(reason) => {
                assert_eq!(steps.blocking_recv(), None, "nothing follows the reason");
                return (started.unwrap_or(0), answer, reason);
            }
        }
    }
}

fn expected(prompt: &[u32], count: usize) -> Vec<u32> {
    let mut state: Vec<u64> = prompt.iter().copied().map(u64::from).collect();
    let mut answer = Vec::with_capacity(count);
    for _ in 0..count {
        let next = Scripted::next(&script(), &state, 0);
        state.push(u64::from(next));
        answer.push(next);
    }
    answer
}

fn prompt(seed: u32, length: usize) -> Vec<u32> {
    (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) ^ seed.wrapping_mul(40_503)) % 997).collect()
}

fn wait(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn any_chunk_size_gives_the_same_answer() {
    let prompt = prompt(1, 23);
    for recurrent in [false, true] {
        for prefill_chunk in 1..30 {
            let limits = Limits { prefill_chunk, ..Limits::default() };
            let engine = engine(Script { recurrent, ..script() }, limits);
            let (cached, answer, reason) = collect(submit(&engine, &prompt, 9));
            assert_eq!((cached, reason), (0, Finish::Length));
            assert_eq!(answer, expected(&prompt, 9), "chunks of {prefill_chunk}, recurrent {recurrent}");
        }
    }
}

#[test]
fn a_batch_answers_as_singles_do() {
    let engine = engine(script(), Limits { prefill_chunk: 7, rows: 5, ..Limits::default() });
    let jobs: Vec<(Vec<u32>, usize)> = (0..24).map(|i| (prompt(i, 1 + 5 * i as usize), 1 + i as usize % 13)).collect();
    let steps: Vec<_> = jobs.iter().map(|(prompt, count)| submit(&engine, prompt, *count)).collect();
    for ((prompt, count), steps) in jobs.iter().zip(steps) {
        let (_, answer, reason) = collect(steps);
        assert_eq!((answer, reason), (expected(prompt, *count), Finish::Length));
    }
}

#[test]
fn a_warm_answer_is_the_cold_one() {
    for recurrent in [false, true] {
        let engine = engine(Script { recurrent, ..script() }, Limits { prefill_chunk: 16, ..Limits::default() });
        let first = prompt(3, 50);
        let (cached, cold, _) = collect(submit(&engine, &first, 10));
        assert_eq!(cached, 0);
        let (cached, warm, _) = collect(submit(&engine, &first, 10));
        assert_eq!((cached, &warm), (49, &cold), "the same again computes one prompt token, recurrent {recurrent}");
        // The next turn of the conversation starts with all of this one.
        let next: Vec<u32> = first.iter().chain(&cold).copied().chain(prompt(4, 8)).collect();
        let (cached, answer, _) = collect(submit(&engine, &next, 5));
        assert_eq!(cached, 59, "all but the token drawn last is remembered, recurrent {recurrent}");
        assert_eq!(answer, expected(&next, 5));
        // A prompt that leaves the remembered one half-way: at any token, or at the last boundary.
        let branch: Vec<u32> = first[..40].iter().copied().chain(prompt(5, 10)).collect();
        let (cached, answer, _) = collect(submit(&engine, &branch, 5));
        assert_eq!(cached, if recurrent { 32 } else { 40 });
        assert_eq!(answer, expected(&branch, 5));
    }
}

#[test]
fn a_prompt_all_requests_begin_with_is_found_to_its_last_token() {
    let engine = engine(Script { recurrent: true, ..script() }, Limits { prefill_chunk: 16, ..Limits::default() });
    let ask = |seed| {
        let asked: Vec<u32> = prompt(9, 75).into_iter().chain([990 + seed]).chain(prompt(seed, 20)).collect();
        let (cached, answer, _) = collect(submit(&engine, &asked, 3));
        assert_eq!(answer, expected(&asked, 3));
        cached
    };
    // The second shows where they part, at 75, but finds a chunk's end before that; all others find it.
    assert_eq!([ask(1), ask(2), ask(3), ask(4)], [0, 64, 75, 75]);
    // Two beginnings that share next to nothing leave no state behind where they part.
    let before = engine.stats().prefix_entries;
    let ask = |tokens: [u32; 5]| assert_eq!(collect(submit(&engine, &tokens, 1)).0, 0);
    ask([991, 992, 1, 2, 3]);
    ask([991, 992, 4, 5, 6]);
    assert_eq!(engine.stats().prefix_entries, before + 4, "two prompts, each without and with its last token");
}

#[test]
fn a_long_prompt_does_not_drive_out_all_others() {
    let limits = Limits { prefill_chunk: 16, prefix_bytes: 4 * 10_000, ..Limits::default() };
    let engine = engine(Script { recurrent: true, ..script() }, limits);
    let (talk, long) = (prompt(1, 50), prompt(2, 2000));
    collect(submit(&engine, &talk, 2));
    collect(submit(&engine, &long, 2));
    let few = engine.stats().prefix_entries;
    assert!(few < 20, "{few} states of two prompts");
    assert_eq!(collect(submit(&engine, &talk, 2)).0, 49);
    let other_end: Vec<u32> = long[..1990].iter().copied().chain(prompt(3, 9)).collect();
    let (cached, answer, _) = collect(submit(&engine, &other_end, 2));
    assert_eq!((cached, answer), (1984, expected(&other_end, 2)), "the last chunk's state is there");
}

#[test]
fn random_prompts_with_shared_beginnings_never_hit_falsely() {
    for recurrent in [false, true] {
        let limits = Limits { prefill_chunk: 5, rows: 3, prefix_bytes: 4 * 400, ..Limits::default() };
        let engine = engine(Script { recurrent, ..script() }, limits);
        let mut random = 1u64;
        let mut below = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % bound
        };
        for _ in 0..150 {
            let prompts: Vec<Vec<u32>> =
                (0..3).map(|_| (0..1 + below(30)).map(|_| below(2) as u32).collect()).collect();
            let steps: Vec<_> = prompts.iter().map(|prompt| submit(&engine, prompt, 4)).collect();
            for (prompt, steps) in prompts.iter().zip(steps) {
                let (cached, answer, _) = collect(steps);
                assert!(cached < prompt.len());
                assert_eq!(answer, expected(prompt, 4), "cached {cached} of {prompt:?}");
            }
            assert!(engine.stats().prefix_bytes <= 4 * 400, "within the budget");
        }
        assert!(engine.stats().cached_tokens > 100, "the test hits at all");
    }
}

#[test]
fn a_reader_that_goes_frees_its_row() {
    let log = Log::default();
    let slow = Script { delay: Duration::from_millis(2), log: log.clone(), ..script() };
    let engine = engine(slow, Limits { rows: 1, prefill_chunk: 4, ..Limits::default() });
    let answering = submit(&engine, &prompt(1, 4), 100_000);
    wait("the first runs", || engine.stats().generated_tokens > 3);
    let waiting = submit(&engine, &prompt(2, 4), 100);
    assert_eq!(engine.stats().waiting, 1);
    drop(waiting);
    wait("the waiting one is gone", || engine.stats().waiting == 0 && engine.stats().cancelled == 1);
    let passes = log.passes().len();
    drop(answering);
    wait("the answering one is gone", || engine.stats().running == 0);
    assert!(log.passes().len() <= passes + 2, "freed within a tick");
    let in_prompt = submit(&engine, &prompt(3, 4000), 5);
    wait("the prompt is half read", || engine.stats().running == 1);
    drop(in_prompt);
    wait("the reading one is gone", || engine.stats().running == 0);
    let stats = engine.stats();
    assert_eq!((stats.cancelled, stats.finished, stats.waiting), (3, 0, 0));
    assert!(log.passes().last().expect("passes").iter().sum::<usize>() <= 4);
}

#[test]
fn a_long_prompt_stalls_answers_by_one_chunk_at_most() {
    let log = Log::default();
    let limits = Limits { prefill_chunk: 8, ..Limits::default() };
    let engine = engine(Script { log: log.clone(), delay: Duration::from_millis(1), ..script() }, limits);
    let answering = submit(&engine, &prompt(1, 3), 500);
    wait("the first answers", || engine.stats().generated_tokens > 2);
    let (_, _, reason) = collect(submit(&engine, &prompt(2, 400), 2));
    assert_eq!(reason, Finish::Length);
    drop(answering);
    let passes = log.passes();
    let with_chunk: Vec<&Vec<usize>> = passes.iter().filter(|pass| pass.contains(&8)).collect();
    assert_eq!(with_chunk.len(), 50, "the prompt's 400 tokens");
    assert!(
        with_chunk.iter().all(|pass| **pass == [1, 8]),
        "the answer goes on in each of these passes: {with_chunk:?}"
    );
    assert!(passes.iter().all(|pass| pass.iter().sum::<usize>() <= 8 + 2), "a chunk and the answers: {passes:?}");
}

#[test]
fn a_short_prompt_need_not_wait_for_a_long_one() {
    let log = Log::default();
    let limits = Limits { prefill_chunk: 8, ..Limits::default() };
    let engine = engine(Script { log: log.clone(), delay: Duration::from_millis(1), ..script() }, limits);
    let long = submit(&engine, &prompt(1, 2000), 1);
    wait("the long prompt is being read", || engine.stats().running == 1);
    let short = prompt(2, 20);
    let answer = submit(&engine, &short, 1);
    let waiting = log.passes().len();
    assert_eq!(collect(answer).1, expected(&short, 1));
    // It has three chunks, each after one of the long prompt's; the last of 4 tokens leaves as many to the long one. The
    // pass that ran meanwhile is another.
    let passes = log.passes();
    let last = passes.iter().position(|pass| pass.contains(&4)).expect("the short prompt has a last chunk");
    assert!(last <= waiting + 7, "{waiting}: {:?}", &passes[..=last]);
    assert_eq!(passes[last], [4, 4], "the budget is used up");
    assert_eq!(collect(long).1, expected(&prompt(1, 2000), 1));
}

#[test]
fn a_failed_pass_fails_its_rows_only() {
    let second = |call| vec![(call, 1)];
    let failing = [Call::Submit, Call::Collect].map(|call| Script { fails: second(call), ..script() });
    let panicking = [Call::Submit, Call::Collect].map(|call| Script { panics: second(call), ..script() });
    for script in failing.into_iter().chain(panicking) {
        let engine = engine(script, Limits::default());
        let (_, answer, reason) = collect(submit(&engine, &prompt(1, 4), 5));
        assert!(matches!(reason, Finish::Failed(_)), "{reason:?}");
        assert_eq!(answer.len(), 1);
        let (cached, answer, reason) = collect(submit(&engine, &prompt(1, 4), 5));
        assert_eq!((cached, reason), (0, Finish::Length), "nothing of a failed pass is remembered");
        assert_eq!(answer, expected(&prompt(1, 4), 5));
        assert_eq!((engine.stats().failed, engine.stats().finished), (1, 1));
    }
}

#[test]
fn a_full_queue_says_so() {
    let slow = Script { delay: Duration::from_millis(5), ..script() };
    let engine = engine(slow, Limits { rows: 2, waiting: 3, ..Limits::default() });
    let running: Vec<_> = (0..2).map(|i| submit(&engine, &prompt(i, 4), 100_000)).collect();
    wait("two run", || engine.stats().running == 2);
    let waiting: Vec<_> = (0..3).map(|i| submit(&engine, &prompt(i, 4), 1)).collect();
    let (steps, _receiver) = unbounded_channel();
    let job = Job::new(vec![1], 1, steps);
    assert_eq!(engine.submit(job), Err(SubmitError::Full { waiting: 3, limit: 3, retry_after: 1 }));
    drop(running);
    for steps in waiting {
        assert_eq!(collect(steps).2, Finish::Length);
    }
}

#[test]
fn stop_tokens_end_and_are_not_sent() {
    let engine = engine(Script { answer: vec![5, 6, 7, 8], ..script() }, Limits::default());
    let (steps, receiver) = unbounded_channel();
    engine.submit(Job { stop_tokens: vec![TokenId(7)], ..Job::new(vec![1, 2], 50, steps) }).expect("there is room");
    assert_eq!(collect(receiver), (0, vec![5, 6], Finish::Stop));
}

#[test]
fn the_context_ends_answers_and_refuses_prompts() {
    let engine = engine(Script { context: 10, ..script() }, Limits::default());
    let (_, answer, reason) = collect(submit(&engine, &prompt(1, 7), 100));
    assert_eq!((answer.len(), reason), (3, Finish::Length));
    let (_, _, reason) = collect(submit(&engine, &prompt(1, 10), 1));
    assert_eq!(reason, Finish::Failed("a prompt of 10 tokens does not fit a context of 10".into()));
}

#[test]
fn closing_lets_answers_finish_until_the_grace_is_over() {
    let slow = || Script { delay: Duration::from_millis(1), ..script() };
    let patient = engine(slow(), Limits::default());
    let steps = submit(&patient, &prompt(1, 4), 20);
    patient.clone().close(Duration::from_secs(10));
    assert_eq!(collect(steps).2, Finish::Length);
    let (steps, _receiver) = unbounded_channel();
    let job = Job::new(vec![1], 1, steps);
    assert_eq!(patient.submit(job), Err(SubmitError::Closed));
    patient.close(Duration::ZERO);

    let hasty = engine(slow(), Limits { rows: 1, ..Limits::default() });
    let running = submit(&hasty, &prompt(1, 4), 100_000);
    let waiting = submit(&hasty, &prompt(2, 4), 100_000);
    hasty.close(Duration::from_millis(20));
    assert_eq!((collect(running).2, collect(waiting).2), (Finish::Closing, Finish::Closing));
}

#[test]
fn a_load_that_fails_is_the_starters_error() {
    let device = Device::start();
    let failed = text::load_at_once(&device, Limits::default(), || Err::<Scripted, _>("no such model")).wait();
    assert_eq!(failed.err(), Some(LoadError::Failed("no such model")));
    let failed = text::load_at_once(&device, Limits::default(), || -> Result<Scripted, ()> { panic!("no memory") });
    let panicked = LoadError::Panicked(RunError("the model's loader panicked: no memory".into()));
    assert_eq!(failed.wait().err(), Some(panicked));
}

#[test]
fn the_random_stream_is_the_requests_own() {
    let a = Sampling { seed: Some(1), ..Sampling::default() };
    let b = Sampling { seed: Some(2), ..Sampling::default() };
    let mean = (0..4000).map(|i| f64::from(a.uniform(i))).sum::<f64>() / 4000.0;
    assert!((0.48..0.52).contains(&mean), "mean {mean}");
    assert!((0..100).all(|i| (0.0..1.0).contains(&a.uniform(i)) && a.uniform(i) == a.uniform(i)));
    assert!((0..100).filter(|&i| a.uniform(i) == b.uniform(i)).count() < 3);
}
