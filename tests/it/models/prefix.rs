//! A prompt that starts from a remembered prefix gets the answer it gets cold.

use mettle::{engine::Limits, mlx::Options};

use super::golden::{EXACT, EXACT_BY_MLX, FAST, Golden, KV4, KV8, for_each};
use crate::support::{self, Answer, greedy};

const COUNT: usize = 16;

fn limits(prefill_chunk: usize, prefix_bytes: usize) -> Limits {
    Limits { prefill_chunk, prefix_bytes, ..Limits::default() }
}

/// Whether states of this checkpoint can be cut anywhere; a recurrent one is remembered where a chunk ended.
fn cuts(golden: &Golden) -> bool {
    !golden.name.starts_with("qwen3_5")
}

/// What a warm engine is asked, in this order: the prompt, how many of its tokens it should know, and what that shows.
fn questions(golden: &Golden, half: usize, answer: &[u32]) -> Vec<(Vec<u32>, usize, &'static str)> {
    let prompt = &golden.prompt;
    let tail: Vec<u32> = prompt.iter().rev().take(11).copied().collect();
    let branch = [&prompt[..half], &tail].concat();
    let further = [&prompt[..], answer, &tail].concat();
    vec![
        (prompt.clone(), 0, "cold"),
        (prompt.clone(), prompt.len() - 1, "the same prompt"),
        (branch, half, "a branch"),
        // The last token of an answer is drawn and not computed.
        (further, prompt.len() + answer.len() - 1, "the conversation goes on"),
        (prompt.clone(), prompt.len() - 1, "the first prompt, after others started from its state"),
    ]
}

fn check(golden: &Golden, options: Options) -> Result<(), String> {
    let half = golden.prompt.len() / 2;
    // A chunk ends where the branch will leave, which recurrent states need.
    let warm = support::engine(&golden.path, options, limits(half, 1 << 30));
    let cold = support::engine(&golden.path, options, limits(512, 0));
    let first = greedy(&cold, &golden.prompt, COUNT).tokens;
    for (prompt, cached, what) in questions(golden, half, &first) {
        let (ours, expected) = (greedy(&warm, &prompt, COUNT), greedy(&cold, &prompt, COUNT).tokens);
        if ours != (Answer { cached, tokens: expected.clone() }) {
            return Err(format!("{what}: {ours:?}, cold {expected:?}, {cached} should be cached"));
        }
    }
    Ok(())
}

#[test]
fn warm_is_cold() {
    for_each(&[FAST, KV8, KV4, EXACT, EXACT_BY_MLX], check);
}

/// Keys and values lie in pages of 32, and MLX's own grow by 256: a branch just before, on and behind both edges.
#[test]
fn branches_at_the_edge_of_a_page() {
    for golden in ["llama-bf16", "llama-window"].map(Golden::of) {
        assert!(cuts(&golden) && golden.prompt.len() > 258);
        for options in [FAST, KV8, KV4, EXACT, EXACT_BY_MLX] {
            let warm = support::engine(&golden.path, options, limits(512, 1 << 30));
            let cold = support::engine(&golden.path, options, limits(512, 0));
            greedy(&warm, &golden.prompt, 1);
            for shared in [31, 32, 33, 255, 256, 257, 258] {
                let branch = [&golden.prompt[..shared], &golden.prompt[2..7]].concat();
                let expected = Answer { cached: shared, tokens: greedy(&cold, &branch, COUNT).tokens };
                assert_eq!(greedy(&warm, &branch, COUNT), expected, "{}, {options:?}, {shared}", golden.name);
            }
            let again = greedy(&warm, &golden.prompt, COUNT);
            assert_eq!(again, Answer { cached: 299, tokens: greedy(&cold, &golden.prompt, COUNT).tokens });
        }
    }
}

#[test]
fn a_recurrent_state_is_not_cut_where_no_chunk_ended() {
    let golden = Golden::of("qwen3_5");
    assert!(!cuts(&golden));
    let (warm, cold) = [1 << 30, 0].map(|bytes| support::engine(&golden.path, EXACT, limits(16, bytes))).into();
    greedy(&warm, &golden.prompt, COUNT);
    for (shared, cached) in [(39, 39), (38, 32), (33, 32), (32, 32), (31, 16), (15, 0)] {
        let branch = [&golden.prompt[..shared], &golden.prompt[20..29]].concat();
        let expected = Answer { cached, tokens: greedy(&cold, &branch, COUNT).tokens };
        assert_eq!(greedy(&warm, &branch, COUNT), expected, "{shared} shared");
    }
}

#[test]
fn rows_that_start_from_one_state_do_not_disturb_each_other() {
    for name in ["llama-q4", "qwen3_5-q4"] {
        let golden = Golden::of(name);
        let half = golden.prompt.len() / 2;
        for options in [FAST, KV8, KV4, EXACT, EXACT_BY_MLX] {
            let warm = support::engine(&golden.path, options, limits(half, 1 << 30));
            let cold = support::engine(&golden.path, options, limits(512, 0));
            greedy(&warm, &golden.prompt, 1);
            let branch = |by: usize| [&golden.prompt[..half], &golden.prompt[by..by + 5]].concat();
            let together = [1, 2, 3].map(|by| support::submit(&warm, &branch(by), 24)).map(support::collect);
            for (by, answer) in (1..).zip(together) {
                let expected = Answer { cached: half, tokens: greedy(&cold, &branch(by), 24).tokens };
                assert_eq!(answer, expected, "{name}, {options:?}, branch {by}");
            }
        }
    }
}
