//! Every checkpoint gives mlx-lm's logits and mlx-lm's tokens.

use std::{fs, path::PathBuf, sync::Arc};

use mettle::{
    checkpoint::Checkpoint,
    engine::Limits,
    mlx::{self, KvBits, Options, Precision, Runner},
};
use serde_json::Value;

use crate::support::{self, cosine, distance, greedy};

/// A checkpoint and what mlx-lm makes of it in float32.
pub struct Golden {
    pub name: String,
    pub path: PathBuf,
    pub prompt: Vec<u32>,
    /// What follows the prompt, greedily.
    pub tokens: Vec<u32>,
    /// After each of the last tokens of the prompt.
    pub logits: Vec<Vec<f32>>,
}

impl Golden {
    fn read(path: PathBuf) -> Golden {
        let file = if path.is_dir() { path.join("golden.json") } else { path.with_extension("golden.json") };
        let text = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let json: Value = serde_json::from_slice(&text).expect("JSON");
        let field = |key: &str| json[key].clone();
        Golden {
            name: path.file_name().expect("a name").to_string_lossy().into_owned(),
            path,
            prompt: serde_json::from_value(field("prompt")).expect("ids"),
            tokens: serde_json::from_value(field("tokens")).expect("ids"),
            logits: serde_json::from_value(field("logits")).expect("rows"),
        }
    }

    /// The one of this name.
    pub fn of(name: &str) -> Golden {
        Golden::read(support::models().join(name))
    }

    /// Every folder and every GGUF.
    pub fn all() -> Vec<Golden> {
        let entries = fs::read_dir(support::models()).expect("a folder").map(|entry| entry.expect("an entry").path());
        let is_model = |path: &PathBuf| path.join("golden.json").exists() || path.extension() == Some("gguf".as_ref());
        let mut found: Vec<PathBuf> = entries.filter(is_model).collect();
        found.sort();
        assert!(found.len() >= 19, "checkpoints are missing: {found:?}");
        found.into_iter().map(Golden::read).collect()
    }

    /// The same rows by us.
    pub fn ours(&self, options: Options) -> Result<Vec<Vec<f32>>, String> {
        self.ours_by(&support::load(&self.path, options)?)
    }

    fn ours_by(&self, runner: &Runner) -> Result<Vec<Vec<f32>>, String> {
        let logits = runner.logits(&self.prompt).map_err(|error| error.to_string())?;
        let width = runner.vocabulary();
        assert_eq!(logits.len(), width * self.prompt.len(), "a row for each token");
        let skipped = self.prompt.len() - self.logits.len();
        Ok(logits.chunks_exact(width).skip(skipped).map(<[f32]>::to_vec).collect())
    }
}

pub const EXACT: Options = Options { precision: Precision::Exact, kv_bits: KvBits::Sixteen, mlx_ops: false };
pub const EXACT_BY_MLX: Options = Options { mlx_ops: true, ..EXACT };
pub const FAST: Options = Options { precision: Precision::Fast, ..EXACT };
/// Keys and values in 8 and in 4 bits.
pub const KV8: Options = Options { kv_bits: KvBits::Eight, ..FAST };
pub const KV4: Options = Options { kv_bits: KvBits::Four, ..FAST };
pub const FAST_BY_MLX: Options = Options { mlx_ops: true, ..FAST };

/// Checks every checkpoint in every way before it fails, and says each one that did.
pub fn for_each(ways: &[Options], check: impl Fn(&Golden, Options) -> Result<(), String>) {
    let (goldens, mut failures) = (Golden::all(), Vec::new());
    for way in ways {
        for golden in &goldens {
            if let Err(error) = check(golden, *way) {
                failures.push(format!("{}, {way:?}: {error}", golden.name));
            }
        }
    }
    let all = ways.len() * goldens.len();
    assert!(failures.is_empty(), "{} of {all} failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn exact_logits_are_those_of_mlx_lm() {
    for_each(&[EXACT, EXACT_BY_MLX], |golden, options| {
        let apart = distance(&golden.ours(options)?.concat(), &golden.logits.concat());
        if apart <= 1e-4 { Ok(()) } else { Err(format!("{apart:.1e} apart")) }
    });
}

/// However small the pieces are that a model is loaded in, it is the same model, and costs the same.
#[test]
fn pieces_of_any_size_load_the_same_model() {
    for_each(&[EXACT, FAST, EXACT_BY_MLX], |golden, options| {
        let load = |bytes: usize| {
            let checkpoint = Checkpoint::open(&golden.path).map_err(|error| error.to_string())?;
            let mut loading = mlx::load(Arc::new(checkpoint), options).in_pieces_of(bytes);
            let mut steps = 1;
            loop {
                match loading.step().map_err(|error| error.to_string())? {
                    Some(loaded) => {
                        let cost = loaded.cost().clone();
                        let (runner, _) = loaded.text().map_err(|error| error.to_string())?;
                        return Ok::<_, String>((golden.ours_by(&runner)?, cost, steps));
                    }
                    None => steps += 1,
                }
            }
        };
        let (whole, whole_cost, few) = load(1 << 30)?;
        let (small, small_cost, many) = load(1)?;
        let apart = distance(&whole.concat(), &small.concat());
        match (apart == 0.0, whole_cost == small_cost, many > 2 * few) {
            (true, true, true) => Ok(()),
            (logits, cost, steps) => Err(format!("the same logits: {logits}, cost: {cost}; more steps: {steps}")),
        }
    });
}

#[test]
fn exact_tokens_are_those_of_mlx_lm() {
    for_each(&[EXACT, EXACT_BY_MLX], |golden, options| {
        let engine = support::engine(&golden.path, options, Limits::default());
        let tokens = greedy(&engine, &golden.prompt, golden.tokens.len()).tokens;
        if tokens == golden.tokens { Ok(()) } else { Err(format!("{tokens:?}, not {:?}", golden.tokens)) }
    });
}

/// Random weights carry an error further than trained ones: rounding to bf16 turns mlx-lm's own logits of the deepest of
/// these by a cosine of 0.95, and MLX's quantised product on a CPU sums in bf16. See `starter` for trained weights.
#[test]
fn fast_logits_are_close_to_those_of_mlx_lm() {
    for_each(&[FAST, KV8, KV4, FAST_BY_MLX], |golden, options| {
        let angle = cosine(&golden.ours(options)?.concat(), &golden.logits.concat());
        let bar = match (options.mlx_ops, options.kv_bits) {
            (false, KvBits::Sixteen) => 0.999,
            (false, KvBits::Eight) => 0.998,
            _ => 0.9,
        };
        if angle >= bar { Ok(()) } else { Err(format!("cosine {angle:.5}")) }
    });
}

/// What a batch, a chunk and a remembered prefix do to a sum must not reach the tokens.
#[test]
fn every_chunk_size_gives_the_same_tokens() {
    for_each(&[FAST, KV8, KV4, EXACT], |golden, options| {
        let answer = |prefill_chunk: usize| {
            let engine = support::engine(&golden.path, options, Limits { prefill_chunk, ..Limits::default() });
            greedy(&engine, &golden.prompt, 16).tokens
        };
        let whole = answer(512);
        let differs = [1, 7, 64].into_iter().find(|&chunk| answer(chunk) != whole);
        differs.map_or(Ok(()), |chunk| Err(format!("chunks of {chunk} differ")))
    });
}

#[test]
fn three_ragged_rows_together_answer_as_they_do_alone() {
    for_each(&[FAST, KV8, KV4, EXACT, EXACT_BY_MLX], |golden, options| {
        // Nothing is remembered, so that rows and singles compute the same.
        let limits = Limits { prefix_bytes: 0, ..Limits::default() };
        let engine = support::engine(&golden.path, options, limits);
        let reversed: Vec<u32> = golden.prompt.iter().rev().copied().collect();
        let jobs = [(&golden.prompt[..], 32), (&reversed[..17], 24), (&golden.prompt[3..8], 28)];
        let alone = jobs.map(|(prompt, count)| greedy(&engine, prompt, count));
        let together = jobs.map(|(prompt, count)| support::submit(&engine, prompt, count)).map(support::collect);
        let differs = (0..3).find(|&row| alone[row] != together[row]);
        let tell = |row: usize| format!("row {row}: {:?}, alone {:?}", together[row].tokens, alone[row].tokens);
        differs.map_or(Ok(()), |row| Err(tell(row)))
    });
}
