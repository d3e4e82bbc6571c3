//! Answers in each format of calls alone; what was called is written and read again.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mettle_fuzz::{answers::Case, chat::Dialect, dialects, seeds};

static FORMATS: LazyLock<Vec<&Dialect>> = LazyLock::new(dialects::of_one_format);

fuzz_target!(init: seeds::of_answers("tools", &FORMATS), |data: &[u8]| {
    if let Some(case) = Case::new(&FORMATS, data) {
        let parts = case.check();
        case.check_written(&parts);
    }
});
