//! The rules of the house, read off the sources as text: who may name whom, which words stay where, how long a file
//! and a function may be, and that nothing lies about forgotten. What clippy can check stands in `[lints]` of
//! Cargo.toml.
//!
//! `source`, `mask`, `paths` and `modules` read the sources; the other files have a rule each; `planted` breaks every
//! rule on purpose.

mod forgotten;
mod hosts;
mod mask;
mod measure;
mod modules;
mod paths;
mod planted;
mod sizes;
mod source;
mod wall_time;
mod who;
mod words;

use source::Source;

/// Every breach of the rules in these sources, a line each.
fn breaches(sources: &[Source]) -> Vec<String> {
    let each = sources.iter().flat_map(|source| {
        let rules = [sizes::sizes, words::words, wall_time::wall_time];
        rules.into_iter().flat_map(|rule| rule(source))
    });
    let all = [who::layers, who::circles, forgotten::orphans, forgotten::syntaxes];
    each.chain(all.into_iter().flat_map(|rule| rule(sources))).collect()
}

#[test]
fn the_sources_keep_the_rules() {
    let mut found = breaches(&source::sources());
    found.extend(hosts::hosts());
    assert!(found.is_empty(), "{} breaches:\n{}", found.len(), found.join("\n"));
}
