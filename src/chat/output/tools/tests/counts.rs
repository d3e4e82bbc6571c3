//! How many cases each format has.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use super::*;

/// What makes cases.
const CASES: &[fn()] = &[
    apertus::cases,
    apriel::cases,
    calling_tool::cases,
    cohere::cases,
    command_r::cases,
    deepseek::cases,
    firefunction::cases,
    function_tag::cases,
    functionary::cases,
    functionary::llama3,
    functionary::version_2,
    gemma4::cases,
    gemma4::python,
    gigachat::cases,
    granite::cases,
    harmony::cases,
    hermes::cases,
    kimi::cases,
    llama::cases,
    minimax_m1::cases,
    minimax_m3::cases,
    mistral::cases,
    nemotron_nano::cases,
    others::inkling,
    others::kimi_k3,
    others::lfm2,
    others::olmo3,
    others::reka,
    others::ui_tars,
    pairs::cases,
    pythonic::cases,
    qwen_xml::cases,
    seed_oss::cases,
    solar::cases,
    tagged::cases,
    xlam::cases,
];

thread_local! {
    /// The cases of each dialect's first format, while they are counted instead of read.
    static COUNTED: RefCell<Option<BTreeMap<&'static str, BTreeSet<String>>>> = const { RefCell::new(None) };
}

/// Counts a case, where cases are only counted.
pub fn counted(dialect: &'static Dialect, case: &str) -> bool {
    COUNTED.with_borrow_mut(|counts| {
        let Some(counts) = counts else { return false };
        counts.entry(dialect.tools[0].name).or_default().insert(case.to_owned());
        true
    })
}

pub fn counting() -> bool {
    COUNTED.with_borrow(Option::is_some)
}

#[test]
fn every_format_has_ten_cases() {
    COUNTED.set(Some(BTreeMap::new()));
    CASES.iter().for_each(|cases| cases());
    let counts = COUNTED.take().expect("counting");
    let few: Vec<(&str, usize)> = FORMATS
        .iter()
        .map(|format| (format.name, counts.get(format.name).map_or(0, BTreeSet::len)))
        .filter(|(_, count)| *count < 10)
        .collect();
    assert!(few.is_empty(), "{few:?}");
}
