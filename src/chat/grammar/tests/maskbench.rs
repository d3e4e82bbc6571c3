//! MaskBench's sample (guidance-ai/jsonschemabench): instances that were judged by two validators, through the mask.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::*;

#[derive(Default)]
struct Counts {
    refused: Vec<String>,
    accepted: usize,
    rejected: usize,
    /// Valid ones that were rejected and invalid ones that were accepted.
    wrong: Vec<String>,
    compiling: Vec<Duration>,
    masks: Vec<Duration>,
}

#[test]
fn maskbench() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/maskbench-500");
    let Ok(entries) = fs::read_dir(&folder) else {
        eprintln!("skipped: {} is not there", folder.display());
        return;
    };
    let bench = Bench::starter().unwrap_or_else(Bench::bytes);
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut counts = Counts::default();
    for path in &paths {
        let file: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        try_schema(bench, &file, &path.file_stem().unwrap().to_string_lossy(), &mut counts);
    }
    report(&mut counts);
}

fn try_schema(bench: &Bench, file: &Value, name: &str, counts: &mut Counts) {
    let began = Instant::now();
    let grammar = match bench.grammars.compile(&Format::JsonSchema(file["schema"].clone())) {
        Ok(grammar) => grammar.unwrap(),
        Err(error) => return counts.refused.push(format!("{name}: {error}")),
    };
    counts.compiling.push(began.elapsed());
    for test in file["tests"].as_array().unwrap() {
        let text = test["data"].to_string();
        let followed = bench.follow(&grammar, &text, |time| counts.masks.push(time));
        match (test["valid"] == true, followed) {
            (true, Ok(())) => counts.accepted += 1,
            (false, Err(_)) => counts.rejected += 1,
            (true, Err(error)) => counts.wrong.push(format!("{name}: valid, but {error}")),
            (false, Ok(())) => counts.wrong.push(format!("{name}: invalid, but accepted: {}", test["description"])),
        }
    }
}

fn report(counts: &mut Counts) {
    let quantiles = |times: &mut Vec<Duration>| {
        times.sort();
        [0.5, 0.9, 0.99, 1.0].map(|share| times[((times.len() - 1) as f64 * share) as usize])
    };
    for line in counts.refused.iter().chain(&counts.wrong) {
        eprintln!("{line}");
    }
    eprintln!(
        "refused {}, accepted {}, rejected {}, wrong {}",
        counts.refused.len(),
        counts.accepted,
        counts.rejected,
        counts.wrong.len()
    );
    eprintln!("compiling {:?}", quantiles(&mut counts.compiling));
    eprintln!("{} advices {:?}", counts.masks.len(), quantiles(&mut counts.masks));
}
