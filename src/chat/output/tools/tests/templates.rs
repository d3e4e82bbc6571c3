//! Calls as the families' own templates write them, and the dialects that templates are of.

use std::path::Path;

use serde_json::json;

use super::*;
use crate::chat::dialect::DIALECTS;

/// What jinja2 3.1 makes of `templates` for a user's "Hi" and an assistant's calls, from behind the "Hi": the golden
/// values of formats, by template. Written by jinja2 with transformers' settings and its `tojson`.
const RENDERED: &str = include_str!("rendered.json");

fn calls(index: usize) -> Vec<ToolCall> {
    let call = |(index, (name, arguments)): (usize, (&str, Value))| {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        ToolCall { id: format!("call_{index}"), name: name.to_owned(), arguments }
    };
    let calls = match index {
        0 => vec![(
            "write_file",
            json!({"path": "a/b \"c\".txt", "content": "if a < b && c:\n    x = 'é'\n", "tags": ["it's", "</x>", ""], "options": {"mode": 420}}),
        )],
        1 => vec![
            ("get_weather", json!({"city": "Paris", "days": 3, "metric": true, "limit": 1.5, "unit": "c"})),
            ("now", json!({})),
        ],
        _ => vec![("now", json!({}))],
    };
    calls.into_iter().enumerate().map(call).collect()
}

#[test]
fn formats_write_as_templates_do() {
    let rendered: Map<String, Value> = serde_json::from_str(RENDERED).unwrap();
    for (template, golden) in &rendered {
        let name = golden["format"].as_str().unwrap();
        let format = FORMATS.iter().find(|format| format.name == name).unwrap_or_else(|| panic!("{name}"));
        for (index, turn) in golden["turns"].as_array().unwrap().iter().enumerate() {
            let Some(turn) = turn.as_str() else { continue };
            let calls = calls(index);
            let written: Vec<String> =
                calls.iter().enumerate().map(|(index, call)| (format.render)(call, index)).collect();
            let envelope = &format.envelope;
            let written = format!("{}{}{}", envelope.open, written.join(envelope.between), envelope.close);
            assert!(turn.contains(&written), "{template} writes {turn:?}, {name} {written:?}");
        }
    }
}

/// The first row whose marks are all in a template.
#[test]
fn templates_find_their_dialects() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/chat-templates");
    if !folder.exists() {
        println!("skipped: no {}", folder.display());
        return;
    }
    for (template, dialect) in [
        ("ByteDance-Seed-OSS", "seed_oss"),
        ("GLM-4.6", "glm"),
        ("GLM-4.7-Flash", "glm47"),
        ("Kimi-K3", "kimi_k3"),
        ("LFM2-8B-A1B", "lfm2"),
        ("LFM2.5-8B-A1B", "lfm2"),
        ("LFM2.5-Instruct", "lfm2"),
        ("MiniMax-M2", "minimax"),
        ("MiniMax-M3", "minimax_m3"),
        ("MiMo-VL", "hermes"),
        ("Bielik-11B-v3.0-Instruct", "hermes"),
        ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "nemotron"),
        ("Qwen3-Coder", "qwen_xml"),
        ("Qwen3.5-4B", "qwen_xml"),
        ("Reka-Edge", "reka"),
        ("Spark2.5", "spark"),
        ("StepFun3.5-Flash", "step3p5"),
        ("deepseek-ai-DeepSeek-V3.2", "deepseek_v32"),
        ("deepseek-ai-DeepSeek-V4", "deepseek_v4"),
        ("deepseek-ai-DeepSeek-V4-Flash-0731", "deepseek_v4"),
        ("google-gemma-2-2b-it", "gemma"),
        ("google-gemma-4-31B-it", "gemma4"),
        ("google-gemma-4-31B-it-interleaved", "gemma4"),
        ("inclusionai-ling-3.0-flash", "ling"),
        ("muse-glimmer", "muse"),
        ("openbmb-MiniCPM5-1B", "minicpm"),
        ("poolside-Laguna-S-2.1", "laguna_s"),
        ("poolside-Laguna-XS-2.1", "laguna_xs"),
        ("poolside-Laguna-XS.2", "laguna_xs"),
        ("tencent-Hy3", "hunyuan"),
    ] {
        let text = std::fs::read_to_string(folder.join(format!("{template}.jinja"))).unwrap();
        let marked = |row: &&Dialect| {
            !row.template_marks.is_empty() && row.template_marks.iter().all(|mark| text.contains(mark))
        };
        let found = DIALECTS.iter().find(marked).map(|row| row.name);
        assert_eq!(found, Some(dialect), "{template}");
    }
}
