//! Families whose calls are JSON between marks of their own.

use super::{
    CallIds, Dialect, Layout, Mistral, Object, Program, ReasoningTags, Recipient, Recipients, Syntax, ToolFormat,
    Turns,
    shared::{
        APERTUS, APRIEL, COHERE, DEEPSEEK, DEEPSEEK_V31, FUNCTION_TAG, GIGACHAT, KIMI, LLAMA, MISTRAL, MISTRAL_ARGS,
        NEMOTRON_NANO, SOLAR,
    },
};

/// Their rows.
pub(super) static FAMILIES: &[Dialect] = &[
    // gpt-oss: a message to a tool, in the commentary channel.
    Dialect {
        name: "harmony",
        model_types: &["gpt_oss"],
        template_tags: &["<|channel|>", "<|message|>", "commentary"],
        stop_tokens: &["<|return|>", "<|call|>"],
        program: Program::Channels,
        reasoning: Some(ReasoningTags {
            calls_inside: false,
            again: true,
            ..ReasoningTags::between(
                &["<|channel|>analysis<|message|>"],
                &["<|end|><|start|>assistant<|channel|>final<|message|>"],
            )
        }),
        tools: &[&ToolFormat::new(
            "harmony",
            &["<|start|>assistant to=", "<|channel|>commentary to=", "<|channel|>analysis to="],
            Syntax::Harmony,
        )],
        turns: Some(Turns { end: "<|end|>", begin: "<|start|>assistant", text: "<|channel|>final<|message|>" }),
        ..Dialect::PLAIN
    },
    Dialect {
        name: "kimi",
        model_types: &["kimi_k2"],
        template_tags: &["<|tool_calls_section_begin|>"],
        stop_tokens: &["<|im_end|>"],
        tools: &[&KIMI],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "deepseek_v31",
        template_tags: &["<｜tool▁sep｜>", "<think></think>"],
        stop_tokens: &["<｜end▁of▁sentence｜>"],
        tools: &[&DEEPSEEK_V31, &DEEPSEEK],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "deepseek_r1",
        template_tags: &["<｜tool▁sep｜>", "<｜Assistant｜><think>\\n"],
        stop_tokens: &["<｜end▁of▁sentence｜>"],
        reasoning: Some(ReasoningTags { always: true, ..ReasoningTags::THINK }),
        tools: &[&DEEPSEEK, &DEEPSEEK_V31],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "deepseek",
        model_types: &["deepseek_v2", "deepseek_v3"],
        template_tags: &["<｜tool▁sep｜>"],
        stop_tokens: &["<｜end▁of▁sentence｜>"],
        tools: &[&DEEPSEEK, &DEEPSEEK_V31],
        ..Dialect::PLAIN
    },
    // Mistral Small 3.2: the name, the call's id and its arguments, each behind a special token.
    Dialect {
        name: "mistral_ids",
        template_tags: &["[TOOL_CALLS]", "[CALL_ID]"],
        reasoning: Some(MISTRAL_THINK),
        tools: &[&ToolFormat::new("mistral_ids", &["[TOOL_CALLS]"], Syntax::Mistral(Mistral::Ids))],
        call_ids: CallIds::Nine,
        ..Dialect::PLAIN
    },
    Dialect {
        name: "mistral_args",
        model_types: &["mistral3", "ministral", "ministral3"],
        template_tags: &["[TOOL_CALLS]", "[ARGS]"],
        reasoning: Some(MISTRAL_THINK),
        tools: &[&MISTRAL_ARGS],
        call_ids: CallIds::Nine,
        ..Dialect::PLAIN
    },
    Dialect {
        name: "mistral",
        model_types: &["mistral", "mixtral"],
        template_tags: &["[TOOL_CALLS]"],
        reasoning: Some(MISTRAL_THINK),
        tools: &[&MISTRAL],
        call_ids: CallIds::Nine,
        ..Dialect::PLAIN
    },
    // Functionary 3.2: a recipient's name on a line, and JSON. Text goes to the recipient `all`.
    Dialect {
        name: "functionary_v32",
        template_tags: &[">>>all\\n", "<|start_header_id|>"],
        stop_tokens: &["<|eot_id|>", "<|eom_id|>"],
        program: Program::Recipients(Recipients { open: ">>>", all: "all\n" }),
        drops: &[">>>all\n"],
        reasoning: None,
        tools: &[&ToolFormat::new(
            "functionary",
            &[">>>"],
            Syntax::Recipient(Recipient {
                opens: &[">>>"],
                begin: "\n",
                ends: &[">>>all\n", "<|eot_id|>", "<|eom_id|>"],
                begun: true,
            }),
        )
        .within("", ">>>", "")],
        ..Dialect::PLAIN
    },
    // Functionary 2: messages from the assistant to a tool. Text goes to the recipient `all`.
    Dialect {
        name: "functionary_v2",
        template_tags: &["<|from|>", "<|recipient|>"],
        stop_tokens: &["<|stop|>"],
        program: Program::Recipients(Recipients { open: "<|recipient|>", all: "all\n<|content|>" }),
        drops: &["<|from|>assistant\n<|recipient|>all\n<|content|>"],
        reasoning: None,
        tools: &[&ToolFormat::new(
            "functionary_v2",
            &["<|from|>assistant\n<|recipient|>", "<|recipient|>"],
            Syntax::Recipient(Recipient {
                opens: &["<|from|>assistant\n<|recipient|>", "<|recipient|>"],
                begin: "\n<|content|>",
                ends: &[
                    "<|from|>assistant\n<|recipient|>all\n<|content|>",
                    "<|from|>assistant\n<|recipient|>",
                    "<|stop|>",
                ],
                begun: true,
            }),
        )
        .within("", "\n<|from|>assistant\n<|recipient|>", "")],
        ..Dialect::PLAIN
    },
    // Functionary 2.5, of Llama 3: a special token, the name on a line, and JSON.
    Dialect {
        name: "functionary_llama3",
        template_tags: &["<|reserved_special_token_249|>"],
        stop_tokens: &["<|eot_id|>"],
        reasoning: None,
        tools: &[&ToolFormat::new(
            "functionary_llama3",
            &["<|reserved_special_token_249|>"],
            Syntax::Recipient(Recipient {
                opens: &["<|reserved_special_token_249|>"],
                begin: "\n",
                ends: &["<|reserved_special_token_249|>", "<|eot_id|>"],
                begun: false,
            }),
        )],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "functionary_v31",
        template_tags: &["'<function='", "<|start_header_id|>"],
        stop_tokens: &["<|eot_id|>", "<|eom_id|>"],
        reasoning: None,
        tools: &[&FUNCTION_TAG, &LLAMA],
        ..Dialect::PLAIN
    },
    // FireFunction 2: the word `functools`, which is also a module of Python, and a JSON list.
    Dialect {
        name: "firefunction",
        template_tags: &["functools["],
        stop_tokens: &["<|eot_id|>"],
        reasoning: None,
        tools: &[&ToolFormat::new(
            "firefunction",
            &["functools"],
            Syntax::Object(Object { lead: "[", ..Object::PLAIN }),
        )
        .within(" functools[", ", ", "]")],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "cohere",
        model_types: &["cohere2", "cohere2_moe"],
        template_tags: &["<|START_ACTION|>"],
        stop_tokens: &["<|END_OF_TURN_TOKEN|>"],
        drops: &["<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"],
        reasoning: Some(ReasoningTags::between(&["<|START_THINKING|>"], &["<|END_THINKING|>"]).again()),
        tools: &[&COHERE],
        ..Dialect::PLAIN
    },
    // Cohere Command R and R+: the word `Action:`, and a JSON list in a block of code.
    Dialect {
        name: "command_r",
        model_types: &["cohere"],
        template_tags: &["<|CHATBOT_TOKEN|>", "Action:"],
        stop_tokens: &["<|END_OF_TURN_TOKEN|>"],
        reasoning: None,
        tools: &[&ToolFormat::new(
            "command_r",
            &["Action:"],
            Syntax::Object(Object {
                lead: "```json",
                close: "```",
                keys: ["tool_name", "parameters"],
                layout: Layout::Indented,
                ..Object::PLAIN
            }),
        )
        .within("Action:\n```json\n[\n", ",\n", "\n]```")],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "gigachat",
        template_tags: &["<|role_sep|>", "<|function_call|>"],
        drops: &["<|message_sep|>"],
        reasoning: None,
        tools: &[&GIGACHAT],
        ..Dialect::PLAIN
    },
    // GigaChat 3: a message of the role `function call` with a JSON object in it.
    Dialect {
        name: "gigachat_v3",
        template_tags: &["<|role_sep|>", "function call"],
        drops: &["<|message_sep|>"],
        reasoning: None,
        tools: &[&ToolFormat::new(
            "gigachat_v3",
            &["<|function_call|>", "function call<|role_sep|>"],
            Syntax::Object(Object {
                around: ["function call<|role_sep|>\n", ""],
                close: "<|message_sep|>",
                ..Object::PLAIN
            }),
        )
        .within("", "<|message_sep|>\n\n", "")],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "apertus",
        model_types: &["apertus"],
        template_tags: &["<|tools_prefix|>"],
        stop_tokens: &["<|assistant_end|>"],
        reasoning: Some(ReasoningTags::between(&["<|inner_prefix|>"], &["<|inner_suffix|>"])),
        tools: &[&APERTUS],
        ..Dialect::PLAIN
    },
    Dialect {
        name: "apriel",
        template_tags: &["<tool_calls>[", "[BEGIN FINAL RESPONSE]"],
        stop_tokens: &["<|end|>"],
        drops: &["[END FINAL RESPONSE]", "<|end|>"],
        reasoning: Some(ReasoningTags {
            always: true,
            ..ReasoningTags::between(&["<thinking>"], &["[BEGIN FINAL RESPONSE]", "</thinking>"])
        }),
        tools: &[&APRIEL],
        ..Dialect::PLAIN
    },
    // MiniMax M1: a line of JSON a call, in one tag around all.
    Dialect {
        name: "minimax_m1",
        model_types: &["minimax", "minimax_m1", "minimax_text_01"],
        template_tags: &["<tool_calls>", "<beginning_of_sentence>"],
        stop_tokens: &["<end_of_sentence>"],
        tools: &[&ToolFormat::new(
            "minimax_m1",
            &["<tool_calls>"],
            Syntax::Object(Object { close: "</tool_calls>", ..Object::PLAIN }),
        )
        .within("<tool_calls>\n", "\n", "\n</tool_calls>")],
        ..Dialect::PLAIN
    },
    Dialect { name: "nemotron_nano", template_tags: &["<TOOLCALL>"], tools: &[&NEMOTRON_NANO], ..Dialect::PLAIN },
    Dialect {
        name: "solar",
        model_types: &["solar_open"],
        template_tags: &["<|tool_call:begin|>"],
        stop_tokens: &["<|calls|>"],
        drops: &["<|begin|>assistant", "<|content|>", "<|calls|>"],
        reasoning: Some(ReasoningTags {
            calls_inside: false,
            again: true,
            ..ReasoningTags::between(&["<|think|>"], &["<|end|>"])
        }),
        tools: &[&SOLAR],
        turns: Some(Turns { end: "<|end|>", begin: "<|begin|>assistant", text: "<|content|>" }),
        ..Dialect::PLAIN
    },
];

const MISTRAL_THINK: ReasoningTags = ReasoningTags::between(&["[THINK]", "<think>"], &["[/THINK]", "</think>"]);
