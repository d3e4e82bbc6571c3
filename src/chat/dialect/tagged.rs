//! Dialects whose calls are tags, or notations of their own.

use super::{
    Dialect, Tags, Turns,
    table::{self, THINK},
};
use crate::chat::output::{
    splitter::{Answer, Kind, Messages, Style},
    tools,
};

/// A dialect of marks that thinks as most do.
const MARKS: Dialect = Dialect { reasoning: Some(THINK), ..table::MARKS };

const fn thoughts(open: &'static [&'static str], close: &'static [&'static str]) -> Option<Tags> {
    Some(Tags { open, close, ..THINK })
}

/// [`thoughts`] that may begin again.
const fn thoughts_again(open: &'static [&'static str], close: &'static [&'static str]) -> Option<Tags> {
    Some(Tags { open, close, again: true, ..THINK })
}

static GLM_STYLE: Style = Style { drops: &["<|begin_of_box|>", "<|end_of_box|>"], ends: &[] };
/// A thought may be opened twice.
static GEMMA_STYLE: Style = Style { drops: &["<|channel>"], ends: &[] };
static KIMI_STYLE: Style = Style {
    drops: &["<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>", "<|end_of_msg|>"],
    ends: &[],
};
static MUSE_MESSAGES: Messages = Messages {
    open: "<|start|>assistant",
    kinds: &[("<|message|>", Kind::ThoughtIf("to=self"))],
    style: Style { drops: &[], ends: &["<|eom|>", "<|eot|>"] },
};
static INKLING_MESSAGES: Messages = Messages {
    open: "<|message_model|>",
    kinds: &[
        ("<|content_thinking|>", Kind::Thought),
        ("<|content_text|>", Kind::Text),
        ("<|content_invoke_tool_json|>", Kind::Call),
    ],
    style: Style { drops: &[], ends: &["<|end_message|>", "<|content_model_end_sampling|>"] },
};

pub(super) const NEMOTRON: Dialect = Dialect {
    name: "nemotron",
    model_types: &["nemotron_h"],
    template_marks: &["<function=", "truncate_history_thinking"],
    stop_tokens: &["<|im_end|>"],
    tools: &[&tools::NEMOTRON, &tools::HERMES],
    ..MARKS
};

pub(super) const STEP3P5: Dialect = Dialect {
    name: "step3p5",
    model_types: &["step3p5", "step3p7"],
    template_marks: &["<function=", "<im_patch>"],
    stop_tokens: &["<|im_end|>"],
    tools: &[&tools::STEP3P5, &tools::HERMES],
    ..MARKS
};

/// GLM 5 is as 4.7.
pub(super) const GLM47: Dialect = Dialect {
    name: "glm47",
    model_types: &["glm4_moe_lite", "glm_moe_dsa"],
    template_marks: &["[gMASK]", "</arg_key><arg_value>"],
    stop_tokens: &["<|user|>", "<|observation|>", "<|endoftext|>"],
    program: |answer| answer.styled(&GLM_STYLE).by_marks(),
    tools: &[&tools::GLM47, &tools::HERMES],
    ..MARKS
};

pub(super) const GLM: Dialect = Dialect {
    name: "glm",
    model_types: &["glm4_moe", "glm4v_moe", "glm4v"],
    template_marks: &["[gMASK]", "<arg_key>"],
    tools: &[&tools::GLM, &tools::HERMES],
    ..GLM47
};

pub(super) const LAGUNA_XS: Dialect = Dialect {
    name: "laguna_xs",
    model_types: &[],
    template_marks: &["〈|EOS|〉", "<arg_key>argument-key</arg_key>\\n"],
    tools: &[&tools::LAGUNA],
    ..LAGUNA
};

pub(super) const LAGUNA: Dialect = Dialect {
    name: "laguna_s",
    model_types: &["laguna"],
    template_marks: &["〈|EOS|〉", "<arg_key>"],
    stop_tokens: &["</assistant>", "〈|EOS|〉"],
    tools: &[&tools::GLM47],
    ..MARKS
};

pub(super) const SPARK: Dialect = Dialect {
    name: "spark",
    model_types: &["spark2_5"],
    template_marks: &["<|Bot|>", "<arg_key>"],
    stop_tokens: &["<｜end▁of▁sentence｜>"],
    tools: &[&tools::GLM47],
    ..MARKS
};

pub(super) const LING: Dialect = Dialect {
    name: "ling",
    model_types: &["bailing_moe_v3"],
    template_marks: &["<role>ASSISTANT</role>", "<arg_key>"],
    stop_tokens: &["<|role_end|>"],
    tools: &[&tools::LING, &tools::HERMES],
    ..MARKS
};

pub(super) const HUNYUAN: Dialect = Dialect {
    name: "hunyuan",
    model_types: &["hy_v3"],
    template_marks: &["<｜hy_User{}｜>", "<arg_key{}>"],
    stop_tokens: &["<｜hy_eos:opensource｜>"],
    reasoning: thoughts(&["<think:opensource>", "<think>"], &["</think:opensource>", "</think>"]),
    tools: &[&tools::HUNYUAN],
    ..MARKS
};

pub(super) const K2_HORIZON: Dialect = Dialect {
    name: "k2_horizon",
    model_types: &["k2_horizon"],
    template_marks: &["<ifm|tool_call"],
    stop_tokens: &["<|ifm|im_end|>", "<|ifm|endoftext|>"],
    reasoning: thoughts(
        &["<ifm|think>", "<ifm|think_fast>", "<ifm|think_faster>"],
        &["</ifm|think>", "</ifm|think_fast>", "</ifm|think_faster>"],
    ),
    tools: &[&tools::K2_HORIZON],
    ..MARKS
};

pub(super) const DEEPSEEK_V32: Dialect = Dialect {
    name: "deepseek_v32",
    model_types: &["deepseek_v32"],
    template_marks: &["｜DSML｜", "'function_calls>"],
    stop_tokens: &["<｜end▁of▁sentence｜>"],
    tools: &[&tools::DEEPSEEK_V32],
    ..MARKS
};

pub(super) const DEEPSEEK_V4: Dialect = Dialect {
    name: "deepseek_v4",
    model_types: &["deepseek_v4"],
    template_marks: &["｜DSML｜", "'tool_calls>"],
    tools: &[&tools::DEEPSEEK_V4],
    ..DEEPSEEK_V32
};

pub(super) const GEMMA4: Dialect = Dialect {
    name: "gemma4",
    model_types: &["gemma4", "gemma4_text"],
    template_marks: &["<|tool_call>call:"],
    stop_tokens: &["<turn|>", "<|tool_response>"],
    program: |answer| answer.styled(&GEMMA_STYLE).by_marks(),
    reasoning: thoughts_again(&["<|channel>thought"], &["<channel|>"]),
    tools: &[&tools::GEMMA4, &tools::TOOL_CODE],
    ..MARKS
};

pub(super) const FUNCTION_GEMMA: Dialect = Dialect {
    name: "function_gemma",
    template_marks: &["<start_function_call>"],
    stop_tokens: &["<end_of_turn>", "<start_function_response>"],
    reasoning: None,
    tools: &[&tools::FUNCTION_GEMMA],
    ..MARKS
};

pub(super) const LONGCAT: Dialect = Dialect {
    name: "longcat",
    model_types: &["longcat_flash", "longcat_flash_ngram"],
    template_marks: &["<longcat_tool_call>"],
    stop_tokens: &["</longcat_s>"],
    reasoning: thoughts(&["<longcat_think>"], &["</longcat_think>"]),
    tools: &[&tools::LONGCAT],
    ..MARKS
};

pub(super) const GEMMA: Dialect = Dialect {
    name: "gemma",
    model_types: &["gemma2", "gemma3", "gemma3_text", "gemma3n"],
    template_marks: &["<start_of_turn>"],
    stop_tokens: &["<end_of_turn>"],
    reasoning: None,
    tools: &[&tools::TOOL_CODE],
    ..MARKS
};

pub(super) const MINIMAX: Dialect = Dialect {
    name: "minimax",
    model_types: &["minimax_m2"],
    template_marks: &["<minimax:tool_call>"],
    stop_tokens: &["[e~["],
    tools: &[&tools::MINIMAX],
    ..MARKS
};

pub(super) const MINIMAX_M3: Dialect = Dialect {
    name: "minimax_m3",
    model_types: &["minimax_m3", "minimax_m3_vl"],
    template_marks: &["]<]minimax[>["],
    stop_tokens: &["[e~["],
    reasoning: thoughts(&["<mm:think>"], &["</mm:think>"]),
    tools: &[&tools::MINIMAX_M3],
    ..MARKS
};

pub(super) const LFM2: Dialect = Dialect {
    name: "lfm2",
    model_types: &["lfm2", "lfm2_moe", "lfm2_vl"],
    template_marks: &["List of tools: "],
    stop_tokens: &["<|im_end|>"],
    tools: &[&tools::LFM2, &tools::PYTHONIC],
    ..MARKS
};

pub(super) const MINICPM: Dialect = Dialect {
    name: "minicpm",
    template_marks: &["<param name=", "<function name="],
    stop_tokens: &["<|im_end|>"],
    tools: &[&tools::MINICPM, &tools::HERMES],
    ..MARKS
};

/// What it says of its budget within a thought is part of the thought.
pub(super) const SEED_OSS: Dialect = Dialect {
    name: "seed_oss",
    model_types: &["seed_oss"],
    template_marks: &["<seed:tool_call>"],
    stop_tokens: &["<seed:eos>"],
    reasoning: thoughts(&["<seed:think>"], &["</seed:think>"]),
    tools: &[&tools::SEED_OSS],
    ..MARKS
};

pub(super) const MUSE: Dialect = Dialect {
    name: "muse",
    model_types: &["muse_glimmer", "muse_glimmer_text"],
    template_marks: &["<atem:function_calls>"],
    stop_tokens: &["<|eot|>"],
    program: |answer| answer.by_messages(&MUSE_MESSAGES),
    reasoning: thoughts_again(&[" to=self<|message|>"], &["<|eom|><|start|>assistant to=user<|message|>"]),
    tools: &[&tools::MUSE],
    turns: Some(Turns { end: "<|eom|>", begin: "<|start|>assistant", text: " to=user<|message|>" }),
    ..MARKS
};

pub(super) const INKLING: Dialect = Dialect {
    name: "inkling",
    model_types: &["inkling_mm_model", "inkling_model"],
    template_marks: &["<|content_invoke_tool_json|>"],
    stop_tokens: &["<|content_model_end_sampling|>"],
    program: |answer| answer.by_messages(&INKLING_MESSAGES),
    reasoning: thoughts_again(&["<|content_thinking|>"], &["<|end_message|><|message_model|><|content_text|>"]),
    tools: &[&tools::INKLING],
    turns: Some(Turns { end: "<|end_message|>", begin: "<|message_model|>", text: "<|content_text|>" }),
    ..MARKS
};

pub(super) const KIMI_K3: Dialect = Dialect {
    name: "kimi_k3",
    model_types: &["kimi_k3"],
    template_marks: &["<|open|>", "<|close|>"],
    stop_tokens: &["<|end_of_msg|>"],
    program: |answer| answer.styled(&KIMI_STYLE).by_marks(),
    reasoning: thoughts(&["<|open|>think<|sep|>"], &["<|close|>think<|sep|>", "<|open|>response<|sep|>"]),
    tools: &[&tools::KIMI_K3],
    turns: Some(Turns { end: "<|close|>think<|sep|>", begin: "", text: "<|open|>response<|sep|>" }),
    ..MARKS
};

/// Models of Qwen's types, which nothing in their configuration tells apart: an alias names them.
pub(super) const UI_TARS: Dialect = Dialect {
    name: "ui_tars",
    stop_tokens: &["<|im_end|>"],
    program: Answer::by_actions,
    reasoning: thoughts(&["Thought:"], &[]),
    tools: &[&tools::UI_TARS],
    ..MARKS
};

pub(super) const OLMO3: Dialect = Dialect {
    name: "olmo3",
    model_types: &["olmo3"],
    template_marks: &["<functions>", "<function_calls>"],
    stop_tokens: &["<|im_end|>"],
    tools: &[&tools::OLMO3],
    ..MARKS
};

pub(super) const REKA: Dialect = Dialect {
    name: "reka",
    template_marks: &["<REKA_IMG_TOKEN>"],
    stop_tokens: &["<sep>"],
    tools: &[&tools::REKA],
    ..MARKS
};
