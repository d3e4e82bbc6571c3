//! What the fast mode (activations in two int8, keys and values in f16) costs in accuracy on the real starter model,
//! beside the exact mode, which the starter's other tests hold to mlx-lm. Skips where the model cannot be had.

use std::path::Path;

use mettle::{
    chat::Tokenizer,
    checkpoint::Checkpoint,
    mlx::{Options, Precision, Runner},
};

use crate::support::{self, cosine};

/// Tokens computed from one start.
const WINDOW: usize = 512;

const QUESTIONS: [&str; 20] = [
    "What is the capital of France?",
    "Write one sentence about the ocean.",
    "Explain how a bicycle stays upright.",
    "Translate 'good morning' into Spanish.",
    "List three uses of a paper clip.",
    "What is 17 times 23?",
    "Who wrote Pride and Prejudice?",
    "Give me a recipe for pancakes.",
    "def fibonacci(n):",
    "Why is the sky blue?",
    "Summarise the water cycle in two sentences.",
    "What does HTTP status 404 mean?",
    "Name the planets of the solar system.",
    "Write a haiku about autumn.",
    "How do I reverse a list in Python?",
    "What is the difference between a virus and a bacterium?",
    "Tell me a joke about cats.",
    "Convert 100 degrees Fahrenheit to Celsius.",
    "What happened in 1969?",
    "{\"name\": \"Ada\", \"born\":",
];

struct Models {
    exact: Runner,
    fast: Runner,
    tokenizer: Tokenizer,
}

impl Models {
    fn load(path: &Path) -> Models {
        let checkpoint = Checkpoint::open(path).unwrap_or_else(|error| panic!("{error}"));
        let load = |precision| support::load(path, Options { precision, ..Options::default() });
        let tokenizer = Tokenizer::from_source(&checkpoint.tokenizer().expect("a tokenizer")).expect("it loads");
        Models {
            exact: load(Precision::Exact).unwrap_or_else(|error| panic!("{error}")),
            fast: load(Precision::Fast).unwrap_or_else(|error| panic!("{error}")),
            tokenizer,
        }
    }
}

fn logits(runner: &Runner, tokens: &[u32]) -> Vec<f32> {
    runner.logits(tokens).unwrap_or_else(|error| panic!("{error}"))
}

fn most_likely(row: &[f32]) -> usize {
    (0..row.len()).fold(0, |best, id| if row[id] > row[best] { id } else { best })
}

/// The negative logarithm of the probability of token `id`.
fn loss(row: &[f32], id: u32) -> f64 {
    let largest = row.iter().fold(f32::NEG_INFINITY, |largest, logit| largest.max(*logit));
    let sum: f64 = row.iter().map(|logit| f64::from(logit - largest).exp()).sum();
    sum.ln() - f64::from(row[id as usize] - largest)
}

#[test]
fn logits_after_twenty_prompts_point_the_same_way() {
    let Some(path) = support::starter() else { return };
    let models = Models::load(&path);
    for question in QUESTIONS {
        let text = format!("<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n");
        let tokens = models.tokenizer.encode(&text, false).expect("tokens");
        let last = |runner: &Runner| logits(runner, &tokens).split_off((tokens.len() - 1) * runner.vocabulary());
        let angle = cosine(&last(&models.fast), &last(&models.exact));
        assert!(angle >= 0.9999, "{question}: cosine {angle}");
    }
}

#[test]
fn a_real_text_has_the_same_tokens_and_perplexity() {
    let Some(path) = support::starter() else { return };
    let models = Models::load(&path);
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/text/moby-dick.txt");
    let tokens = models.tokenizer.encode(&std::fs::read_to_string(text).expect("committed"), false).expect("tokens");
    let (mut agreed, mut seen, mut exact_loss, mut fast_loss) = (0, 0, 0.0, 0.0);
    for window in tokens.chunks(WINDOW) {
        let (exact, fast) = (logits(&models.exact, window), logits(&models.fast, window));
        let width = models.exact.vocabulary();
        for ((exact, fast), &next) in exact.chunks(width).zip(fast.chunks(width)).zip(&window[1..]) {
            agreed += usize::from(most_likely(exact) == most_likely(fast));
            seen += 1;
            exact_loss += loss(exact, next);
            fast_loss += loss(fast, next);
        }
    }
    let perplexity = |loss: f64| (loss / seen as f64).exp();
    let (exact, fast) = (perplexity(exact_loss), perplexity(fast_loss));
    eprintln!("{agreed} of {seen} most likely tokens agree; perplexity {fast:.4}, exact {exact:.4}");
    assert!(seen >= 2000, "{seen} positions");
    assert!(agreed * 1000 >= seen * 995, "{agreed} of {seen} agree");
    assert!((fast / exact - 1.0).abs() <= 0.001, "perplexity {fast}, exact {exact}");
}
