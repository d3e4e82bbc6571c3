//! No test fails on wall time: a busy machine would fail it. A test counts work instead.

use super::{mask, paths, source::Source, words};

/// What measures a time. A deadline that a test waits for in vain is none: it only ends a test that hangs.
const CLOCKS: &[&str] = &["elapsed", "duration_since"];

/// Assertions about how long something took.
pub fn wall_time(source: &Source) -> Vec<String> {
    let code = &source.code;
    let times: Vec<&str> = paths::words(code, "let").filter_map(|start| measured(&code[start + 3..])).collect();
    let mut found = Vec::new();
    for (start, _) in code.match_indices("assert") {
        let call = &code[start..];
        let Some(open) = call.find('(').filter(|open| call[..*open].ends_with('!')) else { continue };
        let Some(length) = mask::close(&call[open..]) else { continue };
        // What stands behind the condition is its message, which may well say how long it took.
        let arguments = paths::split(&call[open + 1..open + length - 1]);
        let compared = arguments.iter().take(if call.starts_with("assert!") { 1 } else { 2 });
        let is_time = |text: &&&str| CLOCKS.iter().chain(&times).any(|word| words::has(text, word));
        if compared.filter(is_time).count() > 0 {
            let line = 1 + code[..start].matches('\n').count();
            found.push(format!("{}:{line}: asserts how long something took; count work instead", source.path));
        }
    }
    found
}

/// The name that a `let` gives to a measured time.
fn measured(rest: &str) -> Option<&str> {
    let statement = &rest[..rest.find(';')?];
    let (name, value) = statement.split_once('=')?;
    let name = name.split(':').next()?.trim().trim_start_matches("mut ");
    let is_name = !name.is_empty() && name.chars().all(paths::is_word);
    (is_name && value.trim().ends_with(".elapsed()")).then_some(name)
}
