//! The dialects of the public chat templates.

use std::path::Path;

use super::*;
use crate::chat::output::unknown_marks::warnings;

/// Templates, the types of the models that come with them where these matter, and the dialects they speak.
const TEMPLATES: &[(&str, &str, &str)] = &[
    ("Apertus-8B-Instruct", "apertus", "apertus"),
    ("Apriel-1.6-15b-Thinker-fixed", "", "apriel"),
    ("Bielik-11B-v3.0-Instruct", "llama", "hermes"),
    ("Cohere2MoE", "", "cohere"),
    ("CohereForAI-c4ai-command-r-plus-tool_use", "cohere", "command_r"),
    ("CohereForAI-c4ai-command-r7b-12-2024-tool_use", "cohere2", "cohere"),
    ("GigaChat3-10B-A1.8B", "deepseek_v3", "gigachat_v3"),
    ("GigaChat3.1-10B-A1.8B", "deepseek_v3", "gigachat"),
    ("HuggingFaceTB-SmolLM3-3B", "smollm3", "hermes"),
    ("Kimi-K2-Instruct", "", "kimi"),
    ("Kimi-K2-Thinking", "", "kimi"),
    ("MiMo-VL", "", "hermes"),
    ("MiniMax-M1", "", "minimax_m1"),
    ("Mistral-Small-3.2-24B-Instruct-2506", "mistral3", "mistral_ids"),
    ("NVIDIA-Nemotron-Nano-v2", "nemotron_h", "nemotron_nano"),
    ("NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "llama", "hermes"),
    ("NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "llama", "hermes"),
    ("Qwen-QwQ-32B", "qwen2", "hermes"),
    ("Qwen-Qwen2.5-7B-Instruct", "qwen2", "hermes"),
    ("Qwen-Qwen3-0.6B", "qwen3", "hermes"),
    ("Reka-Edge", "", "reka"),
    ("deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "llama", "deepseek_r1"),
    ("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "qwen2", "deepseek_r1"),
    ("deepseek-ai-DeepSeek-V3.1", "deepseek_v3", "deepseek_v31"),
    ("fireworks-ai-llama-3-firefunction-v2", "llama", "firefunction"),
    ("google-gemma-2-2b-it", "gemma2", "gemma"),
    ("ibm-granite-granite-3.3-2B-Instruct", "granite", "granite"),
    ("ibm-granite-granite-4.0", "granitemoehybrid", "granite_v4"),
    ("ibm-granite-granite-4.1", "granite", "granite_v4"),
    ("llama-cpp-deepseek-r1", "", "deepseek_r1"),
    ("llama-cpp-rwkv-world", "rwkv7", "auto"),
    ("meetkai-functionary-medium-v3.1", "llama", "functionary_v31"),
    ("meetkai-functionary-medium-v3.2", "llama", "functionary_v32"),
    ("meta-llama-Llama-3.1-8B-Instruct", "llama", "llama3"),
    ("meta-llama-Llama-3.2-3B-Instruct", "llama", "llama3"),
    ("meta-llama-Llama-3.3-70B-Instruct", "llama", "llama3"),
    ("microsoft-Phi-3.5-mini-instruct", "phi3", "auto"),
    ("mistralai-Ministral-3-14B-Reasoning-2512", "mistral3", "mistral_args"),
    ("mistralai-Mistral-Nemo-Instruct-2407", "mistral", "mistral"),
    ("moonshotai-Kimi-K2", "kimi_k2", "kimi"),
    ("openai-gpt-oss-120b", "gpt_oss", "harmony"),
    ("unsloth-Apriel-1.5", "", "apriel"),
    ("unsloth-mistral-Devstral-Small-2507", "mistral", "mistral_args"),
    ("upstage-Solar-Open-100B", "solar_open", "solar"),
];

/// More templates, some of which have other marks that look as if they set off calls or thoughts.
const MORE_TEMPLATES: &[(&str, &str, &str)] = &[
    ("ByteDance-Seed-OSS", "", "seed_oss"),
    ("GLM-4.6", "", "glm"),
    ("GLM-4.7-Flash", "", "glm47"),
    ("Kimi-K3", "", "kimi_k3"),
    ("LFM2-8B-A1B", "", "lfm2"),
    ("LFM2.5-8B-A1B", "", "lfm2"),
    ("LFM2.5-Instruct", "", "lfm2"),
    ("MiniMax-M2", "", "minimax"),
    ("MiniMax-M3", "", "minimax_m3"),
    ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "", "nemotron"),
    ("Qwen3-Coder", "", "qwen_xml"),
    ("Qwen3.5-4B", "", "qwen_xml"),
    ("Spark2.5", "", "spark"),
    ("StepFun3.5-Flash", "", "step3p5"),
    ("deepseek-ai-DeepSeek-V3.2", "", "deepseek_v32"),
    ("deepseek-ai-DeepSeek-V4", "", "deepseek_v4"),
    ("deepseek-ai-DeepSeek-V4-Flash-0731", "", "deepseek_v4"),
    ("google-gemma-4-31B-it", "", "gemma4"),
    ("google-gemma-4-31B-it-interleaved", "", "gemma4"),
    ("inclusionai-ling-3.0-flash", "", "ling"),
    ("muse-glimmer", "", "muse"),
    ("openbmb-MiniCPM5-1B", "", "minicpm"),
    ("poolside-Laguna-S-2.1", "", "laguna_s"),
    ("poolside-Laguna-XS-2.1", "", "laguna_xs"),
    ("poolside-Laguna-XS.2", "", "laguna_xs"),
    ("tencent-Hy3", "", "hunyuan"),
];

/// Texts of templates that are not among them.
#[test]
fn by_parts() {
    let check = |model_type: &str, template: &str, dialect: &str| {
        assert_eq!(named(model_type, template, Names::default()).name, dialect, "{model_type} {template}");
    };
    check("spark2_5", "", "spark");
    check("olmo3", "", "olmo3");
    check("longcat_flash", "", "longcat");
    check("", "{{ '<longcat_tool_call>' + call.name }}", "longcat");
    check("gemma3_text", "<start_of_turn>{{ '<start_function_call>call:' + call.name }}", "function_gemma");
    check("llama", "{{ '<|from|>assistant\\n<|recipient|>all\\n<|content|>' }}", "functionary_v2");
    check("llama", "<|start_header_id|>{{ '<|reserved_special_token_249|>' + call.name }}", "functionary_llama3");
    check("", "<functions>{{ tools }}</functions> … <function_calls>{{ calls }}</function_calls>", "olmo3");
    check(
        "llama",
        "<|start_header_id|> … When using tools, make calls in a single JSON array: [{\"name\": …}] … \"parameters\"",
        "xlam",
    );
}

fn named(model_type: &str, template: &str, names: Names<'_>) -> &'static Dialect {
    choose(model_type, template, names).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn public_templates() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/chat-templates");
    if !folder.is_dir() {
        eprintln!("skipped: no templates in {}", folder.display());
        return;
    }
    let all = TEMPLATES.iter().map(|row| (row, true)).chain(MORE_TEMPLATES.iter().map(|row| (row, false)));
    for ((file, model_type, expected), is_plain) in all {
        let template = std::fs::read_to_string(folder.join(format!("{file}.jinja"))).expect("a template");
        let dialect = named(model_type, &template, Names::default());
        assert_eq!(dialect.name, *expected, "{file}");
        if is_plain {
            assert_eq!(warnings(dialect, &template), [""; 0], "{file}");
        }
    }
}

#[test]
fn unknown_marks_are_reported() {
    let check = |template: &str, expected: &[&str]| {
        let dialect = named("llama", template, Names::default());
        assert_eq!(dialect.name, "auto");
        let warnings = warnings(dialect, template);
        let marks: Vec<&str> = warnings.iter().map(|warning| warning.split(" the mark ").nth(1).unwrap()).collect();
        assert_eq!(marks.len(), expected.len(), "{marks:?}");
        assert!(marks.iter().zip(expected).all(|(warning, mark)| warning.starts_with(mark)), "{marks:?}");
    };
    check("{{ messages }}", &[]);
    check("<think>{{ x }}</think> message['tool_calls'] {% if tool_calls %}", &[]);
    check("<|new:tool_call|>{{ x }}<|/new:tool_call|><tool_response>", &["<|new:tool_call|>", "<|/new:tool_call|>"]);
    check("'[BEGIN_THOUGHT]' + x + \"<my-thinking>\"", &["[BEGIN_THOUGHT]", "<my-thinking>"]);
}

#[test]
fn by_type_and_by_name() {
    let dialect = |model_type: &str, tools: Option<&'static str>, reasoning: Option<&'static str>| {
        named(model_type, "", Names { tools, reasoning })
    };
    assert_eq!(dialect("qwen3", None, None).name, "hermes");
    assert_eq!(dialect("nothing", None, None).name, "auto");
    assert_eq!(dialect("qwen3", Some("kimi"), None).tools[0].name, "kimi");
    let own = dialect("qwen3", Some("deepseek_v31"), Some("none"));
    assert!(own.tools.len() == 2 && own.reasoning.is_none());
    assert_eq!(dialect("qwen3", Some("xlam"), Some("cohere")).reasoning.as_ref().unwrap().open, ["<|START_THINKING|>"]);
    let error = choose("qwen3", "", Names { tools: Some("nope"), reasoning: None }).err().unwrap();
    assert!(error.contains("no tool format is called nope") && error.contains("hermes"), "{error}");
    let error = choose("qwen3", "", Names { tools: None, reasoning: Some("nope") }).err().unwrap();
    assert!(error.contains("no kind of reasoning is called nope") && error.contains("none"), "{error}");
}

#[test]
fn starts() {
    let check = |model_type: &str, tools: Option<&'static str>, prompt: &str, expected: Phase| {
        let names = Names { tools, reasoning: tools };
        assert_eq!(named(model_type, "", names).starts_in(prompt), expected, "{prompt:?}");
    };
    check("qwen3", None, "<think>\na user's\n</think><|im_start|>assistant\n", Phase::Text);
    check("qwen3", None, "<|im_start|>assistant\n<think>\n", Phase::Reasoning);
    check("qwen3", None, "<|im_start|>assistant\n<think>\n\n</think>\n\n", Phase::Text);
    check("", Some("deepseek_r1"), "<｜Assistant｜>", Phase::Reasoning);
    check("", Some("deepseek_r1"), "<｜Assistant｜><think>\n</think>", Phase::Text);
    check("", Some("apriel"), "<|begin_assistant|>\nHere are my reasoning steps:\n", Phase::Reasoning);
    check("", Some("cohere"), "<|CHATBOT_TOKEN|><|START_THINKING|><|END_THINKING|>", Phase::Text);
    check("", Some("harmony"), "…<|start|>assistant", Phase::Text);
    check("", Some("harmony"), "…<|start|>assistant<|channel|>analysis<|message|>", Phase::Reasoning);
    check("", Some("harmony"), "…<|start|>assistant<|channel|>final<|message|>", Phase::Text);
    check("", Some("llama3"), "<|start_header_id|>assistant<|end_header_id|>\n\n", Phase::Text);
}

/// What comes first in the table is chosen first.
#[test]
fn every_name_is_one() {
    let names: Vec<&str> = DIALECTS.iter().map(|row| row.name).collect();
    for (at, row) in DIALECTS.iter().enumerate() {
        assert!(!names[..at].contains(&row.name), "{}", row.name);
        for model_type in row.model_types {
            let first = DIALECTS.iter().find(|row| row.model_types.contains(model_type)).expect("itself");
            assert_eq!(first.name, row.name, "{model_type} stands in both");
        }
    }
    assert_eq!(Dialect::auto().name, "auto");
}
