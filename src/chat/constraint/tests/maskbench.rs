//! MaskBench's sample (guidance-ai/jsonschemabench): instances that two validators judged, through the mask. There are
//! no exceptions: what cannot be enforced is refused, and everything else is decided as the validators did.
//! `cargo test maskbench -- --nocapture` prints the times and what is refused.
//!
//! llguidance's own published figures, for version 0.6.7 and all 10,163 schemas: 7,765 pass, 2,373 are refused, 25 have a
//! valid instance that is rejected, none an invalid one that is accepted; a mask takes 36 µs in the median and 460 µs at
//! p99, 20 ms at most, a schema 1 ms to compile in the median.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::*;
use crate::schema::Cursor;

#[derive(Default)]
struct Counts {
    refused: Vec<String>,
    accepted: usize,
    rejected: usize,
    /// Valid ones that were rejected and invalid ones that were accepted.
    wrong: Vec<String>,
    compiling: Vec<(Duration, String)>,
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
    assert_eq!(counts.wrong, Vec::<String>::new());
    assert_eq!((paths.len(), counts.refused.len(), counts.accepted, counts.rejected), (500, 51, 562, 800));
}

fn try_schema(bench: &Bench, file: &Value, name: &str, counts: &mut Counts) {
    let began = Instant::now();
    let grammar = match bench.grammars.compile(&Format::JsonSchema(file["schema"].clone())) {
        Ok(grammar) => grammar.unwrap(),
        Err(error) => return counts.refused.push(format!("{name}: {error}")),
    };
    counts.compiling.push((began.elapsed(), name.to_owned()));
    for test in file["tests"].as_array().unwrap() {
        let mut data = test["data"].clone();
        put_in_order(&mut data, &Cursor::new(&file["schema"]));
        let text = data.to_string();
        let followed = bench.follow(&grammar, &text, |time| counts.masks.push(time));
        match (test["valid"] == true, followed) {
            (true, Ok(())) => counts.accepted += 1,
            (false, Err(_)) => counts.rejected += 1,
            (true, Err(error)) => counts.wrong.push(format!("{name}: valid, but {error}")),
            (false, Ok(())) => counts.wrong.push(format!("{name}: invalid, but accepted: {}", test["description"])),
        }
    }
}

/// Objects are written in their schema's order, and instances have any.
fn put_in_order(value: &mut Value, schema: &Cursor<'_>) {
    match value {
        Value::Object(fields) => {
            let place = |name: &str| schema.members().iter().position(|own| *own == name).unwrap_or(usize::MAX);
            let mut members: Vec<(String, Value)> = std::mem::take(fields).into_iter().collect();
            members.sort_by_key(|(name, _)| place(name));
            for (name, mut value) in members {
                if let Some(schema) = schema.member(&name) {
                    put_in_order(&mut value, &schema);
                }
                fields.insert(name, value);
            }
        }
        Value::Array(items) => {
            let schema = schema.item();
            items.iter_mut().for_each(|item| schema.iter().for_each(|schema| put_in_order(item, schema)));
        }
        _ => {}
    }
}

fn report(counts: &mut Counts) {
    let quantiles =
        |times: &[Duration]| [0.5, 0.9, 0.99, 1.0].map(|share| times[((times.len() - 1) as f64 * share) as usize]);
    counts.masks.sort();
    counts.compiling.sort();
    let compiling: Vec<Duration> = counts.compiling.iter().map(|(time, _)| *time).collect();
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
    eprintln!("slowest to compile: {:?}", &counts.compiling[counts.compiling.len() - 5..]);
    eprintln!("compiling {:?}", quantiles(&compiling));
    eprintln!("{} advices {:?}", counts.masks.len(), quantiles(&counts.masks));
}
