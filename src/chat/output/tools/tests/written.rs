//! What formats write is what the families' own chat templates do: as jinja2 3.1 renders two calls in an assistant's
//! turn with the public templates.

use super::*;

const ARGUMENTS: &str = r#"{"city": "Île \"x\"\n<a>", "days": 3, "metric": true, "limit": 1.5}"#;

/// `expected` has `$` where the first call's arguments stand.
fn check(name: &str, count: usize, expected: &str) {
    let format = FORMATS.iter().find(|format| format.name == name).expect("a format of this name");
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: serde_json::from_str(arguments).expect("an object"),
    };
    let calls = [call("abc123def", "get_weather", ARGUMENTS), call("abc123deg", "now", "{}")];
    let calls: Vec<String> =
        calls[..count].iter().enumerate().map(|(index, call)| (format.render)(call, index)).collect();
    let written = format!("{}{}{}", format.envelope.open, calls.join(format.envelope.between), format.envelope.close);
    assert_eq!(written, expected.replace("$", ARGUMENTS), "{name}");
}

#[test]
fn as_templates_do() {
    // Qwen2.5-7B-Instruct, Qwen3-0.6B, QwQ-32B, MiMo-VL, Hermes-3-Llama-3.1-8B, granite-4.0, Bielik-11B-v3.0
    check(
        "hermes",
        2,
        "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": $}\n</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
    );
    // Mistral-Nemo-Instruct-2407
    check(
        "mistral",
        2,
        "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": $, \"id\": \"abc123def\"}, {\"name\": \"now\", \"arguments\": {}, \"id\": \"abc123deg\"}]",
    );
    // Mistral-Small-3.2-24B-Instruct-2506
    check(
        "mistral_ids",
        2,
        "[TOOL_CALLS]get_weather[CALL_ID]abc123def[ARGS]$[TOOL_CALLS]now[CALL_ID]abc123deg[ARGS]{}",
    );
    // Ministral-3-14B-Reasoning-2512, Devstral-Small-2507
    check("mistral_args", 2, "[TOOL_CALLS]get_weather[ARGS]$[TOOL_CALLS]now[ARGS]{}");
    // DeepSeek-R1-Distill-Qwen-32B, DeepSeek-R1-Distill-Llama-8B
    check(
        "deepseek",
        2,
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n$\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    );
    // DeepSeek-V3.1
    check(
        "deepseek_v31",
        2,
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>$<｜tool▁call▁end｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    );
    // Kimi-K2
    check(
        "kimi",
        2,
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>$<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
    );
    // gpt-oss-120b, which writes one call a turn
    check("harmony", 1, "<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>$<|call|>");
    // Llama-3.1-8B-Instruct, Llama-3.2-3B-Instruct, Llama-3.3-70B-Instruct, one call a turn
    check("llama", 1, "{\"name\": \"get_weather\", \"parameters\": $}");
    // functionary-medium-v3.1
    check("function_tag", 2, "<function=get_weather>$</function><function=now>{}</function>");
    // functionary-medium-v3.2
    check("functionary", 2, ">>>get_weather\n$>>>now\n{}");
    // llama-3-firefunction-v2
    check(
        "firefunction",
        2,
        " functools[{\"name\": \"get_weather\", \"arguments\": $}, {\"name\": \"now\", \"arguments\": {}}]",
    );
    // c4ai-command-r7b-12-2024, Cohere2MoE
    check(
        "cohere",
        2,
        "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"get_weather\", \"parameters\": $},\n    {\"tool_call_id\": \"1\", \"tool_name\": \"now\", \"parameters\": {}}\n]<|END_ACTION|>",
    );
    // GigaChat3.1-10B-A1.8B, one call a turn
    check("gigachat", 1, "<|function_call|>{\"name\": \"get_weather\", \"arguments\": $}");
    // GigaChat3-10B-A1.8B, one call a turn
    check("gigachat_v3", 1, "function call<|role_sep|>\n{\"name\": \"get_weather\", \"arguments\": $}");
    // Apertus-8B-Instruct
    check("apertus", 2, "<|tools_prefix|>[{\"get_weather\": $}, {\"now\": {}}]<|tools_suffix|>");
    // Apriel-1.5, Apriel-1.6-15b-Thinker
    check(
        "apriel",
        2,
        "<tool_calls>[{\"name\": \"get_weather\", \"arguments\": $, \"id\": \"abc123def\"}, {\"name\": \"now\", \"arguments\": {}, \"id\": \"abc123deg\"}]</tool_calls>",
    );
    // MiniMax-M1
    check(
        "minimax_m1",
        2,
        "<tool_calls>\n{\"name\": \"get_weather\", \"arguments\": $}\n{\"name\": \"now\", \"arguments\": {}}\n</tool_calls>",
    );
    // NVIDIA-Nemotron-Nano-v2
    check(
        "nemotron_nano",
        2,
        "<TOOLCALL>[{\"name\": \"get_weather\", \"arguments\": $}, {\"name\": \"now\", \"arguments\": {}}]</TOOLCALL>",
    );
    // Solar-Open-100B
    check(
        "solar",
        2,
        "<|tool_calls|><|tool_call:begin|>abc123def<|tool_call:name|>get_weather<|tool_call:args|>$<|tool_call:end|><|tool_call:begin|>abc123deg<|tool_call:name|>now<|tool_call:args|>{}<|tool_call:end|>",
    );
    // c4ai-command-r-plus
    check(
        "command_r",
        2,
        "Action:\n```json\n[\n    {\n        \"tool_name\": \"get_weather\",\n        \"parameters\": {\n            \"city\": \"Île \\\"x\\\"\\n<a>\",\n            \"days\": 3,\n            \"metric\": true,\n            \"limit\": 1.5\n        }\n    },\n    {\n        \"tool_name\": \"now\",\n        \"parameters\": {}\n    }\n]```",
    );
}

/// MeetKai's jinja_templates/v2.txt and v2.llama3.txt.
#[test]
fn functionary_2() {
    check(
        "functionary_v2",
        2,
        "<|from|>assistant\n<|recipient|>get_weather\n<|content|>$\n<|from|>assistant\n<|recipient|>now\n<|content|>{}",
    );
    check("functionary_llama3", 2, "<|reserved_special_token_249|>get_weather\n$<|reserved_special_token_249|>now\n{}");
}
