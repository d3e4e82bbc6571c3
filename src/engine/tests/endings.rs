//! How jobs end when something goes wrong around them: the model, the moment, or the job itself.

use super::*;

#[test]
fn a_panic_outside_of_a_pass_fails_its_job_only() {
    let engine = engine(Script { panics: vec![(Call::Cut, 0)], ..script() }, Limits::default());
    assert_eq!(collect(submit(&engine, &prompt(1, 4), 5)).2, Finish::Length, "there is nothing to cut yet");
    let (_, _, reason) = collect(submit(&engine, &prompt(1, 4), 5));
    assert_eq!(reason, Finish::Failed("the model panicked: Cut 0 panics as the script says".into()));
    assert_eq!(collect(submit(&engine, &prompt(2, 4), 5)).2, Finish::Length, "the engine goes on");
}

#[test]
fn whoever_has_an_answer_finds_the_counters_as_it_left_them() {
    let engine = engine(script(), Limits::default());
    for done in 1..300 {
        collect(submit(&engine, &prompt(1, 4), 2));
        let Stats { running, waiting, finished, prefix_entries, .. } = engine.stats();
        assert_eq!((running, waiting, finished, prefix_entries), (0, 0, done, 1));
    }
}

#[test]
fn every_job_taken_while_the_engine_closes_has_its_reason() {
    for _ in 0..50 {
        let engine = engine(script(), Limits::default());
        let submitting: Vec<_> = (0..3)
            .map(|_| {
                let engine = engine.clone();
                std::thread::spawn(move || {
                    let mut taken = Vec::new();
                    loop {
                        let (steps, receiver) = unbounded_channel();
                        match engine.submit(Job::new(vec![1, 2], 1, steps)) {
                            Ok(()) => taken.push(receiver),
                            Err(SubmitError::Full { .. }) => std::thread::yield_now(),
                            Err(SubmitError::Closed) => return taken,
                            Err(error) => panic!("{error}"),
                        }
                    }
                })
            })
            .collect();
        engine.close(Duration::ZERO);
        for steps in submitting.into_iter().flat_map(|thread| thread.join().expect("no panic")) {
            collect(steps);
        }
        assert_eq!((engine.stats().waiting, engine.stats().running), (0, 0));
    }
}

#[test]
fn an_answer_of_no_tokens_is_refused() {
    let engine = engine(script(), Limits::default());
    let (_, answer, reason) = collect(submit(&engine, &prompt(1, 4), 0));
    assert!(answer.is_empty() && matches!(&reason, Finish::Failed(text) if text.contains("max_tokens")), "{reason:?}");
    assert_eq!(collect(submit(&engine, &prompt(1, 4), 1)).1, expected(&prompt(1, 4), 1));
}
