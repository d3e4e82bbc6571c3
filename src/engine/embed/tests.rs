//! The instance over the scripted encoder, on a device thread.

use tokio::sync::oneshot;

use super::*;
use crate::engine::{Capacity, Device, Handle, Health, Loading, SubmitError, at_once, places::Places};

type Answer = oneshot::Receiver<Result<Vec<Vec<f32>>, EmbedError>>;

fn script() -> EncoderScript {
    EncoderScript {
        context: 300,
        fails_at: Some(TokenId(13)),
        panics_at: Some(TokenId(99)),
        steps: 2,
        ..EncoderScript::default()
    }
}

fn start(device: &Device, script: &EncoderScript) -> Handle<EmbedJob> {
    let script = script.clone();
    let capacity = Capacity { rows: 4, waiting: 8 };
    let loading: Loading<EmbedJob, RunError> = device.load(capacity, move |counters| {
        at_once(move || Ok(EmbedScheduler::new(ScriptedEncoder::new(script), counters)))
    });
    loading.wait().expect("it loads")
}

fn row(first: u32, length: u32) -> Vec<TokenId> {
    (first..first + length).map(TokenId).collect()
}

fn submit(handle: &Handle<EmbedJob>, rows: &[Vec<TokenId>]) -> Answer {
    let (vectors, answer) = oneshot::channel();
    handle.submit(EmbedJob { rows: rows.to_vec(), vectors }).expect("there is room");
    answer
}

fn vectors(answer: Answer) -> Result<Vec<Vec<f32>>, EmbedError> {
    answer.blocking_recv().expect("a job ends with a reason")
}

fn expected(rows: &[Vec<TokenId>]) -> Vec<Vec<f32>> {
    rows.iter().map(|row| ScriptedEncoder::vector(row)).collect()
}

#[test]
fn rows_come_back_in_order_whatever_they_were_computed_with() {
    let (device, script) = (Device::start(), script());
    let handle = start(&device, &script);
    assert_eq!(handle.context(), 300);
    let jobs: Vec<Vec<Vec<TokenId>>> = (1..7)
        .map(|job| (0..3 * job).map(|index| row(1000 * job + 10 * index, 1 + (7 * index) % 90)).collect())
        .collect();
    let answers: Vec<Answer> = jobs.iter().map(|rows| submit(&handle, rows)).collect();
    for (rows, answer) in jobs.iter().zip(answers) {
        assert_eq!(vectors(answer), Ok(expected(rows)));
    }
    let computed: usize = script.passes.lock().expect("passes").iter().flatten().sum();
    let asked: usize = jobs.iter().flatten().map(Vec::len).sum();
    assert_eq!((computed, handle.stats().prompt_tokens as usize), (asked, asked));
    let stats = handle.stats();
    assert_eq!((stats.finished, stats.failed, stats.running, stats.waiting), (6, 0, 0, 0));
}

#[test]
fn a_text_that_does_not_fit_ends_its_job_alone() {
    let (device, script) = (Device::start(), script());
    let handle = start(&device, &script);
    for tokens in [0, 301] {
        let answer = submit(&handle, &[row(1, 5), row(1000, tokens as u32)]);
        assert_eq!(vectors(answer), Err(EmbedError::Length { tokens, context: 300 }));
    }
    assert_eq!(vectors(submit(&handle, &[row(1000, 300)])), Ok(expected(&[row(1000, 300)])));
    assert_eq!(vectors(submit(&handle, &[])), Ok(Vec::new()));
}

#[test]
fn a_failed_pass_ends_the_jobs_in_it() {
    let (device, script) = (Device::start(), script());
    let handle = start(&device, &script);
    let failed = vectors(submit(&handle, &[row(13, 1)]));
    assert_eq!(failed, Err(EmbedError::Failed("the pass fails as the script says".into())));
    assert_eq!(vectors(submit(&handle, &[row(100, 4)])), Ok(expected(&[row(100, 4)])));
    assert_eq!((handle.stats().failed, handle.stats().finished), (1, 1));
}

#[test]
fn a_panic_ends_this_instance_and_no_other() {
    let (device, script) = (Device::start(), script());
    let (dies, lives) = (start(&device, &script), start(&device, &script));
    let answer = vectors(submit(&dies, &[row(99, 1)]));
    assert!(matches!(&answer, Err(EmbedError::Failed(why)) if why.contains("panicked")), "{answer:?}");
    let (vectors_sender, _answer) = oneshot::channel();
    let refused = dies.submit(EmbedJob { rows: vec![row(1, 1)], vectors: vectors_sender });
    assert!(matches!(refused, Err(SubmitError::Dead { .. })), "{refused:?}");
    assert!(matches!(dies.health(), Health::Dead { .. }));
    assert_eq!(vectors(submit(&lives, &[row(100, 4)])), Ok(expected(&[row(100, 4)])));
}

#[test]
fn a_small_job_does_not_wait_for_a_large_one() {
    let counters = Arc::new(Counters::default());
    let places = Arc::new(Places::new(Capacity { rows: 4, waiting: 0 }, Arc::clone(&counters)));
    places.take(2).expect("there is room");
    let mut instance = EmbedScheduler::new(ScriptedEncoder::new(script()), Arc::clone(&counters));
    let mut push = |rows: Vec<Vec<TokenId>>| {
        let (vectors, answer) = oneshot::channel();
        instance.push(EmbedJob { rows, vectors }, Place::of_waiting(&places));
        answer
    };
    let large = push((0..4000).map(|index| row(1000 + index, 200)).collect());
    let mut small = push(vec![row(200, 3)]);
    for _ in 0..6 {
        assert_eq!(instance.tick(Duration::ZERO), Ok(Progress::Busy));
    }
    assert_eq!(small.try_recv(), Ok(Ok(expected(&[row(200, 3)]))));
    assert_eq!(counters.snapshot().running, 1);
    drop(large);
    assert_eq!(instance.tick(Duration::ZERO), Ok(Progress::Idle));
    assert_eq!((counters.snapshot().cancelled, counters.snapshot().running), (1, 0));
}

#[test]
fn the_budget_follows_what_a_step_takes() {
    const TURN: Duration = Duration::from_millis(12);
    let milliseconds = Duration::from_millis;
    // 64 tokens in 2 ms: four times as many fit.
    assert_eq!(next_budget(64, 64, milliseconds(2), TURN), (64 + 256) / 2);
    assert_eq!(next_budget(512, 512, milliseconds(16), TURN), (512 + 256) / 2);
    assert_eq!(next_budget(512, 10, milliseconds(16), TURN), 512, "too few tokens to tell");
    assert_eq!(next_budget(2048, 2048, milliseconds(1), TURN), MOST);
    assert_eq!(next_budget(32, 300, milliseconds(900), TURN), FIRST / 2);
}
