//! The real starter model against mlx-lm in float32, and against itself. `tests/data/models/README.md` says how
//! smollm2-135m.json was made. Every test skips, with a notice, where the model cannot be had.

use std::{path::Path, sync::OnceLock};

use mettle::{
    chat::{self, Message, Request, Role},
    checkpoint::Checkpoint,
    engine::{Handle, Job, Limits},
    mlx::{KvBits, Options, Precision, Runner},
};
use serde_json::Value;

use crate::support::{self, collect, cosine, distance, greedy, submit};

const EXACT: Options = Options { precision: Precision::Exact, kv_bits: KvBits::Sixteen, mlx_ops: false };
const FAST: Options = Options { precision: Precision::Fast, ..EXACT };

/// One prompt and what mlx-lm makes of it.
struct Golden {
    question: String,
    answer: String,
    prompt: Vec<u32>,
    /// Greedy.
    tokens: Vec<u32>,
    /// For each of `tokens`, the most likely ids before it and their logits, best first.
    top: Vec<(Vec<u32>, Vec<f32>)>,
    /// Every [`STRIDE`]th logit after the prompt, from [`START`].
    logits: Vec<f32>,
    /// Of the whole row.
    norm: f64,
}

const START: usize = 7;
const STRIDE: usize = 24;

fn goldens() -> Vec<Golden> {
    let text = std::fs::read(support::models().join("smollm2-135m.json")).expect("committed");
    let json: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(json["ids"], serde_json::json!({"start": START, "stride": STRIDE}));
    let golden = |prompt: &Value| {
        let field = |key: &str| prompt[key].clone();
        Golden {
            question: serde_json::from_value(field("question")).expect("text"),
            answer: serde_json::from_value(field("answer")).expect("text"),
            prompt: serde_json::from_value(field("prompt")).expect("ids"),
            tokens: serde_json::from_value(field("tokens")).expect("ids"),
            top: serde_json::from_value(field("top")).expect("pairs"),
            logits: serde_json::from_value(field("logits")).expect("numbers"),
            norm: serde_json::from_value(field("norm")).expect("a number"),
        }
    };
    let goldens: Vec<Golden> = json["prompts"].as_array().expect("a list").iter().map(golden).collect();
    assert_eq!((goldens.len(), goldens[0].tokens.len()), (10, 40));
    goldens
}

/// Our logits where mlx-lm drew its tokens, one row a token, as if we had drawn the same.
fn teacher_forced(runner: &Runner, golden: &Golden) -> Vec<Vec<f32>> {
    let (_, given) = golden.tokens.split_last().expect("tokens");
    let rows = runner.logits(&[&golden.prompt, given].concat()).unwrap_or_else(|error| panic!("{error}"));
    rows.chunks_exact(runner.vocabulary()).skip(golden.prompt.len() - 1).map(<[f32]>::to_vec).collect()
}

fn most_likely(row: &[f32]) -> u32 {
    (0..row.len()).fold(0, |best, id| if row[id] > row[best] { id } else { best }) as u32
}

/// How many tokens agree, and by how much the reference preferred its own where they do not.
fn agreement(golden: &Golden, rows: &[Vec<f32>]) -> (usize, Vec<f32>) {
    assert_eq!(rows.len(), golden.tokens.len());
    let mut gaps = Vec::new();
    for ((row, &token), (ids, logits)) in rows.iter().zip(&golden.tokens).zip(&golden.top) {
        let ours = most_likely(row);
        if ours != token {
            // A token that is not among the best is further off than the last of them.
            let place = ids.iter().position(|&id| id == ours).unwrap_or(ids.len() - 1);
            gaps.push(logits[0] - logits[place]);
        }
    }
    (rows.len() - gaps.len(), gaps)
}

fn load(path: &Path, options: Options) -> Runner {
    support::load(path, options).unwrap_or_else(|error| panic!("{error}"))
}

fn kept(row: &[f32]) -> Vec<f32> {
    row.iter().skip(START).step_by(STRIDE).copied().collect()
}

#[test]
fn fast_agrees_with_mlx_lm_token_by_token() {
    let Some(path) = support::starter() else { return };
    let runner = load(&path, FAST);
    let (mut agreed, mut all, mut gaps, mut angles) = (0, 0, Vec::new(), Vec::new());
    for golden in goldens() {
        let rows = teacher_forced(&runner, &golden);
        angles.push(cosine(&kept(&rows[0]), &golden.logits));
        let (same, apart) = agreement(&golden, &rows);
        (agreed, all) = (agreed + same, all + rows.len());
        gaps.extend(apart);
    }
    eprintln!("{agreed} of {all} tokens agree; gaps where they do not: {gaps:?}; prompts' cosines: {angles:.5?}");
    assert!(angles.iter().all(|angle| *angle >= 0.999), "{angles:.5?}");
    assert!(agreed * 100 >= all * 99, "{agreed} of {all} agree");
    assert!(gaps.iter().all(|gap| *gap < 0.25), "{gaps:?}");
}

#[test]
fn exact_is_mlx_lm() {
    let Some(path) = support::starter() else { return };
    let runner = load(&path, EXACT);
    for golden in goldens() {
        let question = &golden.question;
        let rows = teacher_forced(&runner, &golden);
        // The golden's own rounding and mlx-lm's order of sums are part of this.
        let apart = distance(&kept(&rows[0]), &golden.logits);
        assert!(apart <= 1e-4, "{question}: {apart:.1e} apart");
        let norm = rows[0].iter().map(|logit| f64::from(*logit).powi(2)).sum::<f64>().sqrt();
        assert!((norm / golden.norm - 1.0).abs() <= 1e-4, "{question}: norm {norm}, not {}", golden.norm);
        for (index, (row, (ids, logits))) in rows.iter().zip(&golden.top).enumerate() {
            let ours: Vec<f32> = ids.iter().map(|&id| row[id as usize]).collect();
            let apart = distance(&ours, logits);
            assert!(apart <= 1e-4, "{question}: {apart:.1e} apart at token {index}");
        }
        let (agreed, gaps) = agreement(&golden, &rows);
        assert_eq!(agreed, rows.len(), "{question}: {gaps:?}");
    }
}

/// The model as `mettle serve` has it: the default precision and limits.
fn serving(path: &Path) -> &'static Handle<Job> {
    static ENGINE: OnceLock<Handle<Job>> = OnceLock::new();
    ENGINE.get_or_init(|| support::engine(path, Options::default(), Limits::default()))
}

fn cold(path: &Path) -> &'static Handle<Job> {
    static ENGINE: OnceLock<Handle<Job>> = OnceLock::new();
    let limits = Limits { prefix_bytes: 0, ..Limits::default() };
    ENGINE.get_or_init(|| support::engine(path, Options::default(), limits))
}

#[test]
fn prompts_are_rendered_and_tokenised_as_the_reference_was() {
    let Some(path) = support::starter() else { return };
    let checkpoint = Checkpoint::open(&path).expect("it opens");
    let parts = chat::ModelParts::open(&checkpoint, chat::Names::default());
    let (parts, warnings) = parts.expect("tokenizer and template");
    let model = chat::Model::new(parts, serving(&path).clone()).expect("a model");
    assert_eq!(warnings, [""; 0]);
    for golden in goldens() {
        let message = Message::new(Role::User, golden.question.clone());
        let request = Request::new(vec![message]);
        assert_eq!(model.prompt(&request).expect("a prompt").tokens, golden.prompt, "{}", golden.question);
        assert_eq!(model.tokenizer().decode(&golden.tokens), golden.answer, "{}", golden.question);
    }
}

#[test]
fn warm_is_cold() {
    let Some(path) = support::starter() else { return };
    let (warm, cold) = (serving(&path), cold(&path));
    for golden in goldens().iter().take(3) {
        let expected = greedy(cold, &golden.prompt, 24);
        assert_eq!(expected.cached, 0);
        // The system message is shared, so even the first is warm after the first of all.
        greedy(warm, &golden.prompt, 24);
        let again = greedy(warm, &golden.prompt, 24);
        assert_eq!((again.cached, &again.tokens), (golden.prompt.len() - 1, &expected.tokens), "{}", golden.question);
        // The conversation goes on with another question.
        let further = [&golden.prompt[..], &expected.tokens, &golden.prompt[20..]].concat();
        let answer = greedy(warm, &further, 24);
        assert_eq!(answer.cached, golden.prompt.len() + 23);
        assert_eq!(answer.tokens, greedy(cold, &further, 24).tokens, "{}", golden.question);
    }
}

#[test]
fn a_batch_of_eight_answers_as_eight_singles() {
    let Some(path) = support::starter() else { return };
    let (goldens, engine) = (goldens(), cold(&path));
    let prompts = goldens.iter().take(8).map(|golden| &golden.prompt);
    let alone: Vec<_> = prompts.clone().map(|prompt| greedy(engine, prompt, 24)).collect();
    let steps: Vec<_> = prompts.map(|prompt| submit(engine, prompt, 24)).collect();
    let together: Vec<_> = steps.into_iter().map(collect).collect();
    for ((golden, alone), together) in goldens.iter().zip(&alone).zip(&together) {
        assert_eq!(together, alone, "{}", golden.question);
    }
}
