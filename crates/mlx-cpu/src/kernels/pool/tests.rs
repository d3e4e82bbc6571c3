//! The pool: every task once, panics passed on, nested and concurrent callers.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::*;
use crate::kernels::testing::with_threads;

#[test]
fn every_task_runs_once_on_any_number_of_threads() {
    for threads in 1..=4 {
        with_threads(threads, || {
            for tasks in [0, 1, 2, 7, 100] {
                let runs: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                run(tasks, |task| {
                    runs[task].fetch_add(1, Relaxed);
                });
                assert!(runs.iter().all(|runs| runs.load(Relaxed) == 1), "{threads} threads, {tasks} tasks");
            }
        });
    }
}

#[test]
fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
    with_threads(3, || {
        for bad in [0, 5, 49] {
            let panic = catch_unwind(|| run(50, |task| assert_ne!(task, bad, "task {bad} fails"))).unwrap_err();
            assert!(panic.downcast_ref::<String>().unwrap().contains("fails"));
            let count = AtomicUsize::new(0);
            run(20, |_| {
                count.fetch_add(1, Relaxed);
            });
            assert_eq!(count.load(Relaxed), 20);
        }
    });
}

#[test]
fn nested_and_concurrent_callers_finish() {
    with_threads(3, || {
        let count = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        run(4, |_| {
                            run(3, |_| {
                                count.fetch_add(1, Relaxed);
                            });
                        });
                    }
                });
            }
        });
        assert_eq!(count.load(Relaxed), 3 * 50 * 4 * 3);
    });
}

#[test]
fn sleeping_threads_wake() {
    with_threads(2, || {
        for _ in 0..20 {
            thread::sleep(Duration::from_micros(300));
            let count = AtomicUsize::new(0);
            run(8, |_| {
                count.fetch_add(1, Relaxed);
            });
            assert_eq!(count.load(Relaxed), 8);
        }
    });
}
