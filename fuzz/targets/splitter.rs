//! Answers in the dialects of the table.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mettle_fuzz::{answers::Case, chat::Dialect, dialects, seeds};

static DIALECTS: LazyLock<Vec<&Dialect>> = LazyLock::new(dialects::all);

fuzz_target!(init: seeds::of_answers("splitter", &DIALECTS), |data: &[u8]| {
    if let Some(case) = Case::new(&DIALECTS, data) {
        case.check();
    }
});
