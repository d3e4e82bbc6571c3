//! All dialects, the more specific before the more general.

use super::{CallIds, Dialect, Tags, Turns, tagged};
use crate::chat::output::{
    splitter::{Answer, Style, recipients},
    tools,
};

/// The tags that most families think between.
pub(super) const THINK: Tags =
    Tags { open: &["<think>"], close: &["</think>"], always: false, calls_inside: true, again: false };

/// A dialect of marks, for rows to begin with.
pub(super) const MARKS: Dialect = Dialect {
    name: "",
    model_types: &[],
    template_marks: &[],
    stop_tokens: &[],
    program: Answer::by_marks,
    reasoning: None,
    tools: &[],
    call_ids: CallIds::Long,
    turns: None,
};

static GRANITE: Style = Style { drops: &["<response>", "</response>"], ends: &[] };
static COHERE: Style =
    Style { drops: &["<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"], ends: &[] };
static SOLAR: Style = Style { drops: &["<|begin|>assistant", "<|content|>", "<|calls|>"], ends: &[] };
static GIGACHAT: Style = Style { drops: &["<|message_sep|>"], ends: &[] };
static APRIEL: Style = Style { drops: &["[END FINAL RESPONSE]", "<|end|>"], ends: &[] };

pub const DIALECTS: &[Dialect] = &[
    tagged::KIMI_K3,
    tagged::K2_HORIZON,
    tagged::HUNYUAN,
    tagged::MINIMAX_M3,
    tagged::MINIMAX,
    tagged::DEEPSEEK_V32,
    tagged::DEEPSEEK_V4,
    tagged::GEMMA4,
    tagged::FUNCTION_GEMMA,
    tagged::LONGCAT,
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
    tagged::OLMO3,
    tagged::UI_TARS,
    Dialect {
        name: "harmony",
        model_types: &["gpt_oss"],
        template_marks: &["<|channel|>", "<|message|>", "commentary"],
        stop_tokens: &["<|return|>", "<|call|>"],
        program: Answer::by_channels,
        reasoning: Some(Tags {
            open: &["<|channel|>analysis<|message|>"],
            close: &["<|end|><|start|>assistant<|channel|>final<|message|>"],
            calls_inside: false,
            again: true,
            ..THINK
        }),
        tools: &[&tools::HARMONY],
        turns: Some(Turns { end: "<|end|>", begin: "<|start|>assistant", text: "<|channel|>final<|message|>" }),
        ..MARKS
    },
    Dialect {
        name: "kimi",
        model_types: &["kimi_k2"],
        template_marks: &["<|tool_calls_section_begin|>"],
        stop_tokens: &["<|im_end|>"],
        reasoning: Some(THINK),
        tools: &[&tools::KIMI],
        ..MARKS
    },
    Dialect {
        name: "deepseek_v31",
        template_marks: &["<｜tool▁sep｜>", "<think></think>"],
        stop_tokens: &["<｜end▁of▁sentence｜>"],
        reasoning: Some(THINK),
        tools: &[&tools::DEEPSEEK_V31, &tools::DEEPSEEK],
        ..MARKS
    },
    Dialect {
        name: "deepseek_r1",
        template_marks: &["<｜tool▁sep｜>", "<｜Assistant｜><think>\\n"],
        stop_tokens: &["<｜end▁of▁sentence｜>"],
        reasoning: Some(Tags { always: true, ..THINK }),
        tools: &[&tools::DEEPSEEK, &tools::DEEPSEEK_V31],
        ..MARKS
    },
    Dialect {
        name: "deepseek",
        model_types: &["deepseek_v2", "deepseek_v3"],
        template_marks: &["<｜tool▁sep｜>"],
        stop_tokens: &["<｜end▁of▁sentence｜>"],
        reasoning: Some(THINK),
        tools: &[&tools::DEEPSEEK, &tools::DEEPSEEK_V31],
        ..MARKS
    },
    Dialect {
        name: "mistral_ids",
        template_marks: &["[TOOL_CALLS]", "[CALL_ID]"],
        reasoning: Some(MISTRAL_THINK),
        tools: &[&tools::MISTRAL_IDS],
        call_ids: CallIds::Nine,
        ..MARKS
    },
    Dialect {
        name: "mistral_args",
        model_types: &["mistral3", "ministral", "ministral3"],
        template_marks: &["[TOOL_CALLS]", "[ARGS]"],
        reasoning: Some(MISTRAL_THINK),
        tools: &[&tools::MISTRAL_ARGS],
        call_ids: CallIds::Nine,
        ..MARKS
    },
    Dialect {
        name: "mistral",
        model_types: &["mistral", "mixtral"],
        template_marks: &["[TOOL_CALLS]"],
        reasoning: Some(MISTRAL_THINK),
        tools: &[&tools::MISTRAL],
        call_ids: CallIds::Nine,
        ..MARKS
    },
    Dialect {
        name: "functionary_v32",
        template_marks: &[">>>all\\n", "<|start_header_id|>"],
        stop_tokens: &["<|eot_id|>", "<|eom_id|>"],
        program: |answer| answer.by_recipients(&recipients::V3),
        tools: &[&tools::FUNCTIONARY],
        ..MARKS
    },
    Dialect {
        name: "functionary_v2",
        template_marks: &["<|from|>", "<|recipient|>"],
        stop_tokens: &["<|stop|>"],
        program: |answer| answer.by_recipients(&recipients::V2),
        tools: &[&tools::FUNCTIONARY_V2],
        ..MARKS
    },
    Dialect {
        name: "functionary_llama3",
        template_marks: &["<|reserved_special_token_249|>"],
        stop_tokens: &["<|eot_id|>"],
        tools: &[&tools::FUNCTIONARY_LLAMA3],
        ..MARKS
    },
    Dialect {
        name: "functionary_v31",
        template_marks: &["'<function='", "<|start_header_id|>"],
        stop_tokens: &["<|eot_id|>", "<|eom_id|>"],
        tools: &[&tools::FUNCTION_TAG, &tools::LLAMA],
        ..MARKS
    },
    Dialect {
        name: "firefunction",
        template_marks: &["functools["],
        stop_tokens: &["<|eot_id|>"],
        tools: &[&tools::FIREFUNCTION],
        ..MARKS
    },
    Dialect {
        name: "cohere",
        model_types: &["cohere2", "cohere2_moe"],
        template_marks: &["<|START_ACTION|>"],
        stop_tokens: &["<|END_OF_TURN_TOKEN|>"],
        program: |answer| answer.styled(&COHERE).by_marks(),
        reasoning: Some(Tags { open: &["<|START_THINKING|>"], close: &["<|END_THINKING|>"], again: true, ..THINK }),
        tools: &[&tools::COHERE],
        ..MARKS
    },
    Dialect {
        name: "command_r",
        model_types: &["cohere"],
        template_marks: &["<|CHATBOT_TOKEN|>", "Action:"],
        stop_tokens: &["<|END_OF_TURN_TOKEN|>"],
        tools: &[&tools::COMMAND_R],
        ..MARKS
    },
    Dialect {
        name: "gigachat",
        template_marks: &["<|role_sep|>", "<|function_call|>"],
        program: |answer| answer.styled(&GIGACHAT).by_marks(),
        tools: &[&tools::GIGACHAT],
        ..MARKS
    },
    Dialect {
        name: "gigachat_v3",
        template_marks: &["<|role_sep|>", "function call"],
        program: |answer| answer.styled(&GIGACHAT).by_marks(),
        tools: &[&tools::GIGACHAT_V3],
        ..MARKS
    },
    Dialect {
        name: "apertus",
        model_types: &["apertus"],
        template_marks: &["<|tools_prefix|>"],
        stop_tokens: &["<|assistant_end|>"],
        reasoning: Some(Tags { open: &["<|inner_prefix|>"], close: &["<|inner_suffix|>"], ..THINK }),
        tools: &[&tools::APERTUS],
        ..MARKS
    },
    Dialect {
        name: "apriel",
        template_marks: &["<tool_calls>[", "[BEGIN FINAL RESPONSE]"],
        stop_tokens: &["<|end|>"],
        program: |answer| answer.styled(&APRIEL).by_marks(),
        reasoning: Some(Tags {
            open: &["<thinking>"],
            close: &["[BEGIN FINAL RESPONSE]", "</thinking>"],
            always: true,
            ..THINK
        }),
        tools: &[&tools::APRIEL],
        ..MARKS
    },
    Dialect {
        name: "minimax_m1",
        model_types: &["minimax", "minimax_m1", "minimax_text_01"],
        template_marks: &["<tool_calls>", "<beginning_of_sentence>"],
        stop_tokens: &["<end_of_sentence>"],
        reasoning: Some(THINK),
        tools: &[&tools::MINIMAX_M1],
        ..MARKS
    },
    Dialect {
        name: "nemotron_nano",
        template_marks: &["<TOOLCALL>"],
        reasoning: Some(THINK),
        tools: &[&tools::NEMOTRON_NANO],
        ..MARKS
    },
    Dialect {
        name: "solar",
        model_types: &["solar_open"],
        template_marks: &["<|tool_call:begin|>"],
        stop_tokens: &["<|calls|>"],
        program: |answer| answer.styled(&SOLAR).by_marks(),
        reasoning: Some(Tags { open: &["<|think|>"], close: &["<|end|>"], calls_inside: false, again: true, ..THINK }),
        tools: &[&tools::SOLAR],
        turns: Some(Turns { end: "<|end|>", begin: "<|begin|>assistant", text: "<|content|>" }),
        ..MARKS
    },
    Dialect {
        name: "granite",
        model_types: &["granite", "granitemoe"],
        template_marks: &["<|tool_call|>", "<|start_of_role|>"],
        stop_tokens: &["<|end_of_text|>"],
        program: |answer| answer.styled(&GRANITE).by_marks(),
        reasoning: Some(THINK),
        tools: &[&tools::GRANITE, &tools::HERMES],
        ..MARKS
    },
    Dialect {
        name: "granite_v4",
        model_types: &["granitemoehybrid"],
        template_marks: &["<tool_call>", "<|start_of_role|>"],
        stop_tokens: &["<|end_of_text|>"],
        reasoning: Some(THINK),
        tools: &[&tools::HERMES, &tools::GRANITE],
        ..MARKS
    },
    // Its template shows only how it is asked for calls; they are a list or Qwen's.
    Dialect {
        name: "xlam",
        template_marks: &["make calls in a single JSON array"],
        reasoning: Some(THINK),
        tools: &[&tools::XLAM, &tools::MISTRAL, &tools::HERMES],
        ..MARKS
    },
    Dialect {
        name: "llama4",
        model_types: &["llama4", "llama4_text"],
        template_marks: &["<|header_start|>", "<|python_start|>"],
        stop_tokens: &["<|eot|>", "<|eom|>"],
        tools: &[&tools::PYTHONIC, &tools::LLAMA, &tools::FUNCTION_TAG],
        ..MARKS
    },
    Dialect {
        name: "llama3",
        model_types: &["mllama"],
        template_marks: &["<|start_header_id|>", "\"parameters\""],
        stop_tokens: &["<|eot_id|>", "<|eom_id|>"],
        tools: &[&tools::LLAMA, &tools::PYTHONIC, &tools::FUNCTION_TAG],
        ..MARKS
    },
    Dialect {
        name: "qwen_xml",
        model_types: &["qwen3_5", "qwen3_5_moe", "qwen3_next"],
        template_marks: &["<tool_call>", "<function=", "<parameter="],
        stop_tokens: &["<|im_end|>"],
        reasoning: Some(THINK),
        tools: &[&tools::QWEN_XML, &tools::HERMES, &tools::CALLING_TOOL],
        ..MARKS
    },
    Dialect {
        name: "hermes",
        model_types: &["qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "smollm3"],
        template_marks: &["<tool_call>", "arguments"],
        stop_tokens: &["<|im_end|>"],
        reasoning: Some(THINK),
        tools: &[&tools::HERMES, &tools::QWEN_XML, &tools::CALLING_TOOL],
        ..MARKS
    },
    // For models that nothing is known of: every mark that means only one thing, the most specific first.
    Dialect {
        name: "auto",
        reasoning: Some(Tags {
            open: &["<think>", "[THINK]", "<|START_THINKING|>", "<|inner_prefix|>"],
            close: &["</think>", "[/THINK]", "<|END_THINKING|>", "<|inner_suffix|>"],
            ..THINK
        }),
        tools: &[
            // What it is made to write; the others are read.
            &tools::HERMES,
            &tools::QWEN_XML,
            &tools::GLM47,
            &tools::DEEPSEEK_V32,
            &tools::KIMI,
            &tools::KIMI_K3,
            &tools::K2_HORIZON,
            &tools::HUNYUAN,
            &tools::MINIMAX_M3,
            &tools::MINIMAX,
            &tools::DEEPSEEK_V4,
            &tools::GEMMA4,
            &tools::SEED_OSS,
            &tools::LFM2,
            &tools::MUSE,
            &tools::DEEPSEEK_V31,
            &tools::SOLAR,
            &tools::MISTRAL_ARGS,
            &tools::COHERE,
            &tools::APERTUS,
            &tools::GIGACHAT,
            &tools::NEMOTRON_NANO,
            &tools::APRIEL,
            &tools::GRANITE,
            &tools::GLM,
            &tools::MINICPM,
            &tools::TOOL_CODE,
            &tools::OLMO3,
            &tools::FUNCTION_TAG,
            &tools::CALLING_TOOL,
            &tools::LLAMA,
            &tools::PYTHONIC,
        ],
        ..MARKS
    },
];

const MISTRAL_THINK: Tags = Tags { open: &["[THINK]", "<think>"], close: &["[/THINK]", "</think>"], ..THINK };
