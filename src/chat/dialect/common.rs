//! Families that share their marks with many others, and the dialect of models of which nothing is known.

use super::{
    Dialect, Object, ReasoningTags, Syntax, ToolFormat,
    shared::{
        APERTUS, APRIEL, CALLING_TOOL, COHERE, DEEPSEEK_V4, DEEPSEEK_V31, DEEPSEEK_V32, FUNCTION_TAG, GEMMA4, GIGACHAT,
        GLM, GLM47, GRANITE, HERMES, HUNYUAN, K2_HORIZON, KIMI, KIMI_K3, LFM2, LLAMA, MINICPM, MINIMAX, MINIMAX_M3,
        MISTRAL, MISTRAL_ARGS, MUSE, NEMOTRON_NANO, OLMO3, PYTHONIC, QWEN_XML, SEED_OSS, SOLAR, TOOL_CODE,
    },
};

/// Their rows.
pub(super) static FAMILIES: &[Dialect] = &[
    Dialect {
        name: "granite",
        model_types: &["granite", "granitemoe"],
        template_tags: &["<|tool_call|>", "<|start_of_role|>"],
        stop_tokens: &["<|end_of_text|>"],
        drops: &["<response>", "</response>"],
        tools: &[&GRANITE, &HERMES],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "granite_v4",
        model_types: &["granitemoehybrid"],
        template_tags: &["<tool_call>", "<|start_of_role|>"],
        stop_tokens: &["<|end_of_text|>"],
        tools: &[&HERMES, &GRANITE],
        ..Dialect::PLAIN
    },
    // xLAM 2: a JSON list that is the whole answer, often in a block of code. Its template shows only how it is asked
    // for calls; they are a list or Qwen's.
    Dialect {
        name: "xlam",
        template_tags: &["make calls in a single JSON array"],
        tools: &[
            &ToolFormat::new("xlam", &["```json"], Syntax::Object(Object { close: "```", ..Object::PLAIN }))
                .bare(&['[', '{'])
                .within("[", ", ", "]"),
            &MISTRAL,
            &HERMES,
        ],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "llama4",
        model_types: &["llama4", "llama4_text"],
        template_tags: &["<|header_start|>", "<|python_start|>"],
        stop_tokens: &["<|eot|>", "<|eom|>"],
        reasoning: None,
        tools: &[&PYTHONIC, &LLAMA, &FUNCTION_TAG],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "llama3",
        model_types: &["mllama"],
        template_tags: &["<|start_header_id|>", "\"parameters\""],
        stop_tokens: &["<|eot_id|>", "<|eom_id|>"],
        reasoning: None,
        tools: &[&LLAMA, &PYTHONIC, &FUNCTION_TAG],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "qwen_xml",
        model_types: &["qwen3_5", "qwen3_5_moe", "qwen3_next"],
        template_tags: &["<tool_call>", "<function=", "<parameter="],
        stop_tokens: &["<|im_end|>"],
        tools: &[&QWEN_XML, &HERMES, &CALLING_TOOL],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "hermes",
        model_types: &["qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "smollm3"],
        template_tags: &["<tool_call>", "arguments"],
        stop_tokens: &["<|im_end|>"],
        tools: &[&HERMES, &QWEN_XML, &CALLING_TOOL],
        ..Dialect::PLAIN
    },
    // For models that nothing is known of: every mark that means only one thing, the most specific first.
    Dialect {
        name: "auto",
        reasoning: Some(ReasoningTags::between(
            &["<think>", "[THINK]", "<|START_THINKING|>", "<|inner_prefix|>"],
            &["</think>", "[/THINK]", "<|END_THINKING|>", "<|inner_suffix|>"],
        )),
        tools: &[
            // What it is made to write; the others are read.
            &HERMES,
            &QWEN_XML,
            &GLM47,
            &DEEPSEEK_V32,
            &KIMI,
            &KIMI_K3,
            &K2_HORIZON,
            &HUNYUAN,
            &MINIMAX_M3,
            &MINIMAX,
            &DEEPSEEK_V4,
            &GEMMA4,
            &SEED_OSS,
            &LFM2,
            &MUSE,
            &DEEPSEEK_V31,
            &SOLAR,
            &MISTRAL_ARGS,
            &COHERE,
            &APERTUS,
            &GIGACHAT,
            &NEMOTRON_NANO,
            &APRIEL,
            &GRANITE,
            &GLM,
            &MINICPM,
            &TOOL_CODE,
            &OLMO3,
            &FUNCTION_TAG,
            &CALLING_TOOL,
            &LLAMA,
            &PYTHONIC,
        ],
        ..Dialect::PLAIN
    },
];
