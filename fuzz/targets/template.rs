//! Templates of any text; the conversations stay the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mettle_fuzz::{conversations, prompts, seeds};

fuzz_target!(init: seeds::of_templates("template"), |data: &[u8]| {
    let source = String::from_utf8_lossy(data);
    if let Ok(template) = prompts::template(&source) {
        for request in conversations::fixed() {
            prompts::check(&template, &request, prompts::may_spell(&source));
        }
    }
});
