//! All dialects, the more specific before the more general.

use super::{Dialect, Tags, tagged};
use crate::chat::{split::Answer, tools};

/// The tags that most families think between.
pub(super) const THINK: Tags = Tags { open: &["<think>"], close: &["</think>"], always: false, calls_inside: true };

pub const DIALECTS: &[Dialect] = &[
    tagged::KIMI_K3,
    tagged::K2_HORIZON,
    tagged::HUNYUAN,
    tagged::MINIMAX_M3,
    tagged::MINIMAX,
    tagged::DEEPSEEK_V32,
    tagged::DEEPSEEK_V4,
    tagged::GEMMA4,
    tagged::GEMMA,
    tagged::SEED_OSS,
    tagged::MUSE,
    tagged::INKLING,
    tagged::GLM47,
    tagged::GLM,
    tagged::LAGUNA_XS,
    tagged::LAGUNA,
    tagged::SPARK,
    tagged::LING,
    tagged::MINICPM,
    tagged::NEMOTRON,
    tagged::STEP3P5,
    tagged::LFM2,
    tagged::REKA,
    tagged::UI_TARS,
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
