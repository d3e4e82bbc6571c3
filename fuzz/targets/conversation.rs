//! Conversations of any kind in templates of known shapes.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mettle_fuzz::{chat::Template, conversations, prompts, seeds, shapes};

static TEMPLATES: LazyLock<Vec<Template>> = LazyLock::new(|| {
    let load = |source: &String| prompts::template(source).expect("a template that loads");
    shapes::all().iter().map(load).collect()
});

fuzz_target!(init: seeds::of_conversations("conversation"), |data: &[u8]| {
    if let [shape, conversation @ ..] = data {
        let template = &TEMPLATES[usize::from(*shape) % TEMPLATES.len()];
        prompts::check(template, &conversations::request(conversation), false);
    }
});
