//! All dialects, the more specific before the more general.

use super::{Dialect, Tags};
use crate::chat::{split::Answer, tools};

/// The tags that most families think between.
const THINK: Tags = Tags { open: &["<think>"], close: &["</think>"], always: false, calls_inside: true };

pub const DIALECTS: &[Dialect] = &[
    Dialect {
        name: "qwen_xml",
        model_types: &["qwen3_5", "qwen3_5_moe", "qwen3_next"],
        template_marks: &["<tool_call>", "<function=", "<parameter="],
        stop_tokens: &["<|im_end|>"],
        program: Answer::by_marks,
        reasoning: Some(THINK),
        tools: &[&tools::QWEN_XML, &tools::HERMES],
    },
    Dialect {
        name: "hermes",
        model_types: &["qwen2", "qwen2_moe", "qwen3", "qwen3_moe"],
        template_marks: &["<tool_call>", "\"arguments\""],
        stop_tokens: &["<|im_end|>"],
        program: Answer::by_marks,
        reasoning: Some(THINK),
        tools: &[&tools::HERMES, &tools::QWEN_XML],
    },
];
