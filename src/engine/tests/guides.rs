//! Guided jobs: what they may say, what they are told, and that nobody else suffers.

use std::sync::{Arc, Mutex, mpsc};

use super::*;

/// A guide made of a function.
struct By<F>(F);

impl<F: FnMut(&[TokenId]) -> Result<Advice, String> + Send> Guide for By<F> {
    fn advise(&mut self, taken: &[TokenId]) -> Result<Advice, String> {
        self.0(taken)
    }
}

fn mask(ids: impl IntoIterator<Item = u32>) -> Advice {
    Advice::Mask(Arc::new(ids.into_iter().collect()))
}

fn force(ids: impl IntoIterator<Item = u32>) -> Advice {
    Advice::Force(ids.into_iter().map(TokenId).collect())
}

/// A job of the prompt 1, 2 with this guide; stop token 7.
fn guided(
    engine: &Handle<Job>,
    guide: impl FnMut(&[TokenId]) -> Result<Advice, String> + Send + 'static,
    change: impl FnOnce(Job) -> Job,
) -> UnboundedReceiver<Step> {
    let (steps, receiver) = unbounded_channel();
    let job =
        Job { guide: Some(Box::new(By(guide))), stop_tokens: vec![TokenId(7)], ..Job::new(vec![1, 2], 20, steps) };
    engine.submit(change(job)).expect("there is room");
    receiver
}

/// Gives these advices one after the other, the last one for ever.
fn playing(mut advices: Vec<Advice>) -> impl FnMut(&[TokenId]) -> Result<Advice, String> + Send + 'static {
    advices.reverse();
    move |_| Ok(if advices.len() > 1 { advices.pop().expect("two") } else { advices[0].clone() })
}

fn saying(answer: Vec<u32>) -> Script {
    Script { answer, ..script() }
}

#[test]
fn what_guides_say_is_said() {
    let check = |advices: Vec<Advice>, expected: &[u32], reason: Finish| {
        // Unguided, the model would say 5, 6, 7.
        let engine = engine(saying(vec![5, 6, 7]), Limits::default());
        let (_, answer, finish) = collect(guided(&engine, playing(advices.clone()), |job| job));
        assert_eq!((answer.as_slice(), finish), (expected, reason), "{advices:?}");
    };
    check(vec![Advice::Free], &[5, 6], Finish::Stop);
    check(vec![mask([4, 9]), Advice::Free], &[9, 6], Finish::Stop);
    // The stop token is as any other: only where the mask has it.
    check(vec![Advice::Free, Advice::Free, mask([2, 9]), Advice::Free], &[5, 6, 9, 5, 6], Finish::Stop);
    check(vec![mask([7])], &[], Finish::Stop);
    check(vec![Advice::End], &[], Finish::Stop);
    check(vec![Advice::Free, Advice::End], &[5], Finish::Stop);
    check(vec![force([9]), Advice::Free], &[9, 6], Finish::Stop);
    check(vec![force([9, 8, 10]), Advice::End], &[9, 8, 10], Finish::Stop);
    check(vec![force([9, 7, 10])], &[9], Finish::Stop);
    check(vec![force(100..115)], &[(100..115), (100..105)].into_iter().flatten().collect::<Vec<_>>(), Finish::Length);
}

#[test]
fn a_guided_job_changes_nothing_for_others() {
    let engine = engine(script(), Limits { prefill_chunk: 7, rows: 6, ..Limits::default() });
    // Allows and forces by what it was told alone.
    let guide = || {
        let mut last = 0;
        move |taken: &[TokenId]| {
            last = taken.last().map_or(last, |id| id.0);
            Ok(match last % 4 {
                0 => Advice::Free,
                1 => force([last + 1, last + 6, last / 2]),
                modulus => mask((0..1000).filter(|id| id % 5 == modulus)),
            })
        }
    };
    let alone = collect(guided(&engine, guide(), |job| job)).1;
    assert_eq!(alone.len(), 20);
    for _ in 0..20 {
        let jobs: Vec<_> = (0..5).map(|i| prompt(i, 1 + 5 * i as usize)).collect();
        let plain: Vec<_> = jobs.iter().map(|prompt| submit(&engine, prompt, 12)).collect();
        let guided: Vec<_> = (0..3).map(|_| guided(&engine, guide(), |job| job)).collect();
        for (prompt, steps) in jobs.iter().zip(plain) {
            assert_eq!(collect(steps).1, expected(prompt, 12));
        }
        guided.into_iter().for_each(|steps| assert_eq!(collect(steps).1, alone));
    }
}

#[test]
fn a_guide_is_told_every_token_in_order() {
    for (logprobs, chunk) in [(None, 512), (Some(0), 512), (None, 3)] {
        let engine = engine(script(), Limits { prefill_chunk: chunk, ..Limits::default() });
        let told = Arc::new(Mutex::new(Vec::new()));
        let (all, mut forced) = (Arc::clone(&told), 0);
        let guide = move |taken: &[TokenId]| {
            all.lock().expect("no panic").push(taken.to_vec());
            forced += 1;
            Ok(if forced % 2 == 0 { force(100..105) } else { Advice::Free })
        };
        let (_, answer, _) = collect(guided(&engine, guide, |job| Job { logprobs, ..job }));
        let told = told.lock().expect("no panic");
        assert!(told[0].is_empty());
        let concatenated = told.concat();
        assert_eq!(concatenated, answer[..concatenated.len()], "the last one need not be told");
        assert!(concatenated.len() + 5 >= answer.len());
        let most = told.iter().map(Vec::len).max();
        assert_eq!(most, Some(if logprobs.is_some() { 1 } else { chunk.min(5) }));
    }
}

#[test]
fn forced_tokens_are_computed_in_one_pass() {
    let log = Log::default();
    let engine = engine(Script { log: log.clone(), ..script() }, Limits::default());
    let advices = vec![Advice::Free, force([10, 11, 12, 13]), Advice::Free];
    let (_, answer, _) = collect(guided(&engine, playing(advices), |job| Job { max_tokens: 7, ..job }));
    // The prompt, the first token, four forced ones (the first of which that pass drew), and what follows them.
    assert_eq!(log.passes(), [[2], [1], [4], [1]]);
    assert_eq!(answer[1..5], [10, 11, 12, 13]);
    let so_far: Vec<u32> = [1, 2].into_iter().chain(answer[..5].iter().copied()).collect();
    assert_eq!(answer[5..], expected(&so_far, 2), "the state holds them");
    assert_eq!(engine.stats().generated_tokens, 7);
}

type Advise = Box<dyn FnMut() -> Result<Advice, String> + Send>;

#[test]
fn a_guide_that_fails_fails_its_job_only() {
    let engine = engine(script(), Limits { rows: 8, ..Limits::default() });
    let cases: Vec<(Advise, &str)> = vec![
        (Box::new(|| Err("the lexer is too complex".into())), "the lexer is too complex"),
        (Box::new(|| panic!("an index is out of range")), "panicked: an index is out of range"),
        (Box::new(|| Ok(mask([]))), "allows no token"),
        (Box::new(|| Ok(Advice::Force(vec![]))), "allows no token"),
    ];
    for (mut fails, piece) in cases {
        let beside = submit(&engine, &prompt(1, 4), 30);
        let mut told = 0;
        let guide = move |taken: &[TokenId]| {
            told += taken.len();
            if told < 5 { Ok(Advice::Free) } else { fails() }
        };
        let (_, answer, reason) = collect(guided(&engine, guide, |job| job));
        assert_eq!(answer, expected(&[1, 2], 5));
        assert!(matches!(&reason, Finish::Failed(text) if text.contains(piece)), "{reason:?}");
        assert_eq!(collect(beside).1, expected(&prompt(1, 4), 30));
    }
    assert_eq!(engine.stats().failed, 4);
}

#[test]
fn a_guide_thinks_while_the_model_computes() {
    let log = Log::default();
    let engine = engine(Script { log: log.clone(), ..script() }, Limits::default());
    let mut told = 0;
    let guide = move |taken: &[TokenId]| {
        told += taken.len();
        // The pass that this advice is for begins without waiting for it.
        wait("the pass begins", || log.passes().len() > told);
        Ok(Advice::Free)
    };
    assert_eq!(collect(guided(&engine, guide, |job| job)).1, expected(&[1, 2], 20));
}

#[test]
fn a_job_cancelled_while_its_guide_thinks_is_gone() {
    let engine = engine(script(), Limits { rows: 1, ..Limits::default() });
    let (thinking, began) = mpsc::channel();
    let (release, held) = mpsc::channel::<()>();
    let guide = move |_: &[TokenId]| {
        let _ = thinking.send(());
        let _ = held.recv();
        Ok(Advice::Free)
    };
    let steps = guided(&engine, guide, |job| job);
    began.recv().expect("it thinks");
    let next = submit(&engine, &prompt(2, 4), 3);
    drop(steps);
    drop(release);
    assert_eq!(collect(next).1, expected(&prompt(2, 4), 3));
    assert_eq!((engine.stats().cancelled, engine.stats().running), (1, 0));
    engine.close(Duration::ZERO);
}

#[test]
fn log_probabilities_come_with_every_token_that_asks() {
    let engine = engine(script(), Limits::default());
    for (logprobs, advice) in
        [(Some(3), Advice::Free), (Some(0), mask([500])), (Some(50), force([4, 5, 6])), (None, force([4, 5]))]
    {
        let mut steps = guided(&engine, playing(vec![advice]), |job| Job { logprobs, ..job });
        let mut count = 0;
        while let Some(step) = steps.blocking_recv() {
            let Step::Token(drawn) = step else { continue };
            let expected = logprobs.map(|top| Box::new(Scripted::logprobs(&script(), drawn.id, top)));
            assert_eq!(drawn.logprobs, expected);
            count += 1;
        }
        assert_eq!(count, 20);
    }
}
