//! Families whose calls are tags, or a notation of their own.

use super::{
    Braces, Dialect, Layout, MessageKind, Messages, Object, ObjectMessage, Pairs, Program, ReasoningTags, Syntax,
    ToolFormat, Turns,
    shared::{
        DEEPSEEK_V4, DEEPSEEK_V32, GEMMA4, GLM, GLM_PAIRS, GLM47, HERMES, HERMES_OBJECT, HUNYUAN, K2_HORIZON, KIMI_K3,
        LFM2, MINICPM, MINIMAX, MINIMAX_M3, MUSE, OLMO3, PYTHONIC, QWEN_FUNCTIONS, SEED_OSS, TOOL_CODE,
    },
};

/// Their rows.
pub(super) static FAMILIES: &[Dialect] = &[
    Dialect {
        name: "kimi_k3",
        model_types: &["kimi_k3"],
        template_tags: &["<|open|>", "<|close|>"],
        stop_tokens: &["<|end_of_msg|>"],
        drops: &["<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>", "<|end_of_msg|>"],
        reasoning: Some(ReasoningTags::between(
            &["<|open|>think<|sep|>"],
            &["<|close|>think<|sep|>", "<|open|>response<|sep|>"],
        )),
        tools: &[&KIMI_K3],
        turns: Some(Turns { end: "<|close|>think<|sep|>", begin: "", text: "<|open|>response<|sep|>" }),
        ..Dialect::PLAIN
    },
    Dialect {
        name: "k2_horizon",
        model_types: &["k2_horizon"],
        template_tags: &["<ifm|tool_call"],
        stop_tokens: &["<|ifm|im_end|>", "<|ifm|endoftext|>"],
        reasoning: Some(ReasoningTags::between(
            &["<ifm|think>", "<ifm|think_fast>", "<ifm|think_faster>"],
            &["</ifm|think>", "</ifm|think_fast>", "</ifm|think_faster>"],
        )),
        tools: &[&K2_HORIZON],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "hunyuan",
        model_types: &["hy_v3"],
        template_tags: &["<｜hy_User{}｜>", "<arg_key{}>"],
        stop_tokens: &["<｜hy_eos:opensource｜>"],
        reasoning: Some(ReasoningTags::between(
            &["<think:opensource>", "<think>"],
            &["</think:opensource>", "</think>"],
        )),
        tools: &[&HUNYUAN],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "minimax_m3",
        model_types: &["minimax_m3", "minimax_m3_vl"],
        template_tags: &["]<]minimax[>["],
        stop_tokens: &["[e~["],
        reasoning: Some(ReasoningTags::between(&["<mm:think>"], &["</mm:think>"])),
        tools: &[&MINIMAX_M3],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "minimax",
        model_types: &["minimax_m2"],
        template_tags: &["<minimax:tool_call>"],
        stop_tokens: &["[e~["],
        tools: &[&MINIMAX],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "deepseek_v32",
        model_types: &["deepseek_v32"],
        template_tags: &["｜DSML｜", "'function_calls>"],
        stop_tokens: &["<｜end▁of▁sentence｜>"],
        tools: &[&DEEPSEEK_V32],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "deepseek_v4",
        model_types: &["deepseek_v4"],
        template_tags: &["｜DSML｜", "'tool_calls>"],
        stop_tokens: &["<｜end▁of▁sentence｜>"],
        tools: &[&DEEPSEEK_V4],
        ..Dialect::PLAIN
    },
    // A thought may be opened twice.
    Dialect {
        name: "gemma4",
        model_types: &["gemma4", "gemma4_text"],
        template_tags: &["<|tool_call>call:"],
        stop_tokens: &["<turn|>", "<|tool_response>"],
        drops: &["<|channel>"],
        reasoning: Some(ReasoningTags::between(&["<|channel>thought"], &["<channel|>"]).again()),
        tools: &[&GEMMA4, &TOOL_CODE],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "function_gemma",
        template_tags: &["<start_function_call>"],
        stop_tokens: &["<end_of_turn>", "<start_function_response>"],
        reasoning: None,
        // Gemma 4's notation with other tokens.
        tools: &[&ToolFormat::new(
            "function_gemma",
            &["<start_function_call>"],
            Syntax::Braces(Braces { call: ["<start_function_call>", "<end_function_call>"], quote: "<escape>" }),
        )],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "longcat",
        model_types: &["longcat_flash", "longcat_flash_ngram"],
        template_tags: &["<longcat_tool_call>"],
        stop_tokens: &["</longcat_s>"],
        reasoning: Some(ReasoningTags::between(&["<longcat_think>"], &["</longcat_think>"])),
        // GLM's pairs under other names.
        tools: &[&ToolFormat::new(
            "longcat",
            &["<longcat_tool_call>"],
            Syntax::Pairs(&[Pairs {
                call: ["<longcat_tool_call>", "</longcat_tool_call>"],
                key: ["<longcat_arg_key>", "</longcat_arg_key>"],
                value: ["<longcat_arg_value>", "</longcat_arg_value>"],
                ..GLM_PAIRS
            }]),
        )
        .within("", "\n", "")],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "gemma",
        model_types: &["gemma2", "gemma3", "gemma3_text", "gemma3n"],
        template_tags: &["<start_of_turn>"],
        stop_tokens: &["<end_of_turn>"],
        reasoning: None,
        tools: &[&TOOL_CODE],
        ..Dialect::PLAIN
    },
    // What it says of its budget within a thought is part of the thought.
    Dialect {
        name: "seed_oss",
        model_types: &["seed_oss"],
        template_tags: &["<seed:tool_call>"],
        stop_tokens: &["<seed:eos>"],
        reasoning: Some(ReasoningTags::between(&["<seed:think>"], &["</seed:think>"])),
        tools: &[&SEED_OSS],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "muse",
        model_types: &["muse_glimmer", "muse_glimmer_text"],
        template_tags: &["<atem:function_calls>"],
        stop_tokens: &["<|eot|>"],
        program: Program::Messages(Messages {
            open: "<|start|>assistant",
            kinds: &[("<|message|>", MessageKind::ThoughtIf("to=self"))],
            ends: &["<|eom|>", "<|eot|>"],
        }),
        reasoning: Some(
            ReasoningTags::between(&[" to=self<|message|>"], &["<|eom|><|start|>assistant to=user<|message|>"]).again(),
        ),
        tools: &[&MUSE],
        turns: Some(Turns { end: "<|eom|>", begin: "<|start|>assistant", text: " to=user<|message|>" }),
        ..Dialect::PLAIN
    },
    // Inkling of Thinking Machines.
    Dialect {
        name: "inkling",
        model_types: &["inkling_mm_model", "inkling_model"],
        template_tags: &["<|content_invoke_tool_json|>"],
        stop_tokens: &["<|content_model_end_sampling|>"],
        program: Program::Messages(Messages {
            open: "<|message_model|>",
            kinds: &[
                ("<|content_thinking|>", MessageKind::Thought),
                ("<|content_text|>", MessageKind::Text),
                ("<|content_invoke_tool_json|>", MessageKind::Call),
            ],
            ends: &["<|end_message|>", "<|content_model_end_sampling|>"],
        }),
        reasoning: Some(
            ReasoningTags::between(&["<|content_thinking|>"], &["<|end_message|><|message_model|><|content_text|>"])
                .again(),
        ),
        tools: &[&ToolFormat::new(
            "inkling",
            &["<|content_invoke_tool_json|>"],
            Syntax::ObjectMessage(ObjectMessage {
                message: "<|message_model|>",
                mark: "<|content_invoke_tool_json|>",
                arguments: "args",
            }),
        )
        .within("", "<|end_message|><|message_model|>", "<|end_message|>")],
        turns: Some(Turns { end: "<|end_message|>", begin: "<|message_model|>", text: "<|content_text|>" }),
        ..Dialect::PLAIN
    },
    // GLM 5 is as 4.7.
    Dialect {
        name: "glm47",
        model_types: &["glm4_moe_lite", "glm_moe_dsa"],
        template_tags: &["[gMASK]", "</arg_key><arg_value>"],
        stop_tokens: &["<|user|>", "<|observation|>", "<|endoftext|>"],
        drops: &["<|begin_of_box|>", "<|end_of_box|>"],
        tools: &[&GLM47, &HERMES],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "glm",
        model_types: &["glm4_moe", "glm4v_moe", "glm4v"],
        template_tags: &["[gMASK]", "<arg_key>"],
        stop_tokens: &["<|user|>", "<|observation|>", "<|endoftext|>"],
        drops: &["<|begin_of_box|>", "<|end_of_box|>"],
        tools: &[&GLM, &HERMES],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "laguna_xs",
        template_tags: &["〈|EOS|〉", "<arg_key>argument-key</arg_key>\\n"],
        stop_tokens: &["</assistant>", "〈|EOS|〉"],
        // GLM's tags, and a line end after each call.
        tools: &[&ToolFormat::new("laguna", &["<tool_call>"], Syntax::Pairs(&[GLM_PAIRS])).within("", "\n", "\n")],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "laguna_s",
        model_types: &["laguna"],
        template_tags: &["〈|EOS|〉", "<arg_key>"],
        stop_tokens: &["</assistant>", "〈|EOS|〉"],
        tools: &[&GLM47],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "spark",
        model_types: &["spark2_5"],
        template_tags: &["<|Bot|>", "<arg_key>"],
        stop_tokens: &["<｜end▁of▁sentence｜>"],
        tools: &[&GLM47],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "ling",
        model_types: &["bailing_moe_v3"],
        template_tags: &["<role>ASSISTANT</role>", "<arg_key>"],
        stop_tokens: &["<|role_end|>"],
        // GLM's tags with line ends of its own.
        tools: &[
            &ToolFormat::new(
                "ling",
                &["<tool_call>"],
                Syntax::Pairs(&[Pairs { call: ["<tool_call>", "\n</tool_call>"], tail: "", ..GLM_PAIRS }]),
            )
            .within("", "\n", ""),
            &HERMES,
        ],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "minicpm",
        template_tags: &["<param name=", "<function name="],
        stop_tokens: &["<|im_end|>"],
        tools: &[&MINICPM, &HERMES],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "nemotron",
        model_types: &["nemotron_h"],
        template_tags: &["<function=", "truncate_history_thinking"],
        stop_tokens: &["<|im_end|>"],
        // Qwen's tags, and a line end after each call.
        tools: &[
            &ToolFormat::new("nemotron", &["<tool_call>", "<function="], Syntax::Functions(QWEN_FUNCTIONS))
                .within("", "\n", "\n"),
            &HERMES,
        ],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "step3p5",
        model_types: &["step3p5", "step3p7"],
        template_tags: &["<function=", "<im_patch>"],
        stop_tokens: &["<|im_end|>"],
        // Qwen's tags, and nothing between calls.
        tools: &[
            &ToolFormat::new("step3p5", &["<tool_call>", "<function="], Syntax::Functions(QWEN_FUNCTIONS)),
            &HERMES,
        ],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "lfm2",
        model_types: &["lfm2", "lfm2_moe", "lfm2_vl"],
        template_tags: &["List of tools: "],
        stop_tokens: &["<|im_end|>"],
        tools: &[&LFM2, &PYTHONIC],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "reka",
        template_tags: &["<REKA_IMG_TOKEN>"],
        stop_tokens: &["<sep>"],
        // Hermes, in ASCII and without line ends between calls.
        tools: &[&ToolFormat::new(
            "reka",
            &["<tool_call>"],
            Syntax::Object(Object { layout: Layout::Ascii, ..HERMES_OBJECT }),
        )],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "olmo3",
        model_types: &["olmo3"],
        template_tags: &["<functions>", "<function_calls>"],
        stop_tokens: &["<|im_end|>"],
        tools: &[&OLMO3],
        ..Dialect::PLAIN
    },
    // Models of Qwen's types, which nothing in their configuration tells apart: an alias names them.
    Dialect {
        name: "ui_tars",
        stop_tokens: &["<|im_end|>"],
        program: Program::Actions,
        reasoning: Some(ReasoningTags::between(&["Thought:"], &[])),
        tools: &[&ToolFormat::new("ui_tars", &["Action:"], Syntax::Actions).within("Action: ", "\n\n", "")],
        ..Dialect::PLAIN
    },
];
