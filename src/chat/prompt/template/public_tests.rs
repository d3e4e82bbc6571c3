//! The public templates of ../shared/data rendered as transformers renders them (tests/data/templates/make.py).

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};
use sha2::{Digest, Sha256};

use super::{Rendered, Template, environment};
use crate::chat::{
    ControlToken, Error, LoadError, Message, Part, Request, Role, Thinking, Tool, ToolCall, ToolChoice, ToolField,
};
use crate::checkpoint::Templates;

/// Conversation, templates, and why ours is not what transformers makes of them.
const DIFFERENCES: &[(&str, &[&str], &str)] = &[(
    "null-content",
    &[
        "LFM2-8B-A1B",
        "LFM2.5-Instruct",
        "Qwen-QwQ-32B",
        "Qwen-Qwen3-0.6B",
        "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
        "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
        "ibm-granite-granite-3.3-2B-Instruct",
        "microsoft-Phi-3.5-mini-instruct",
        "unsloth-mistral-Devstral-Small-2507",
    ],
    "transformers drops a content that is null, and these fail without one; ours is an empty text",
)];

/// The templates' own difference, in every conversation that shows tools: this one adds a text to a `|safe` one, by
/// which jinja2 escapes the other text for HTML (`&#34;` in each tool's JSON), and minijinja does not.
const ESCAPES_TOOLS: &str = "meetkai-functionary-medium-v3.1";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The public templates, by name; none where they are not there, which is said.
pub(super) fn public_templates() -> Vec<(String, String)> {
    let folder = root().join("../shared/data/chat-templates");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        writeln!(std::io::stderr(), "skipped: no templates in {}", folder.display()).unwrap();
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// A template as make.py has it: the same special tokens, the same time.
pub(super) fn template(source: &str, controls: &[ControlToken]) -> Result<Template, LoadError> {
    template_with_fuel(source, controls, environment::FUEL)
}

pub(super) fn template_with_fuel(source: &str, controls: &[ControlToken], fuel: u64) -> Result<Template, LoadError> {
    let tokens = [("bos_token", "<s>"), ("eos_token", "</s>"), ("unk_token", "<unk>"), ("pad_token", "<pad>")];
    let tokens = tokens.map(|(name, token)| (name.to_owned(), token.to_owned())).to_vec();
    let clock = || chrono::NaiveDate::from_ymd_opt(2026, 2, 3).unwrap().and_hms_opt(4, 5, 6).unwrap();
    let templates = Templates { default: source.to_owned(), ..Templates::default() };
    Template::at((clock, fuel), templates, tokens, controls)
}

fn text(json: &Json, field: &str) -> Option<String> {
    json.get(field).and_then(Json::as_str).map(str::to_owned)
}

fn message(json: &Json) -> Message {
    let role = match json["role"].as_str().unwrap() {
        "system" => Role::System,
        "developer" => Role::Developer,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => Role::Tool,
    };
    let calls = json.get("tool_calls").and_then(Json::as_array).into_iter().flatten();
    let calls = calls.map(|call| ToolCall {
        id: text(call, "id").unwrap(),
        name: text(call, "name").unwrap(),
        arguments: call["arguments"].as_object().unwrap().clone(),
    });
    let said = text(json, "content").unwrap_or_default();
    let mut message = match text(json, "tool_call_id") {
        Some(id) => Message::tool_result(id, said),
        None => Message::new(role, said),
    };
    message.name = text(json, "name");
    message.content.extend(text(json, "reasoning").map(Part::Reasoning));
    message.content.extend(calls.map(Part::ToolCall));
    message
}

fn tool_field(name: &str) -> ToolField {
    match name {
        "name" => ToolField::Name,
        "description" => ToolField::Description,
        "parameters" => ToolField::Parameters,
        "strict" => ToolField::Strict,
        other => panic!("a tool has no {other}"),
    }
}

fn request(json: &Json) -> Request {
    let list = |field: &str| json.get(field).and_then(Json::as_array).cloned().unwrap_or_default();
    let tool = |json: &Json| Tool {
        name: text(json, "name").unwrap(),
        parameters: json["parameters"].clone(),
        description: text(json, "description"),
        strict: json.get("strict").and_then(Json::as_bool).unwrap_or(false),
        given: json.as_object().unwrap().keys().map(|key| tool_field(key)).collect(),
    };
    let thinking = json.get("thinking").cloned().unwrap_or_default();
    Request {
        tools: list("tools").iter().map(tool).collect(),
        tool_use: if json.get("tool_choice").is_some() { ToolChoice::None } else { ToolChoice::Auto },
        thinking: Thinking {
            enabled: thinking.get("enabled").and_then(Json::as_bool),
            effort: text(&thinking, "effort"),
            budget: thinking.get("budget").and_then(Json::as_u64).map(|budget| budget as usize),
        },
        continue_final: json.get("continue_final").is_some(),
        template_variables: json.get("variables").and_then(Json::as_object).cloned().unwrap_or_default(),
        ..Request::new(list("messages").iter().map(message).collect())
    }
}

/// The conversations, by name.
pub(super) fn conversations() -> Vec<(String, Request)> {
    let json = std::fs::read(root().join("tests/data/templates/conversations.json")).unwrap();
    let json: Vec<Map<String, Json>> = serde_json::from_slice(&json).unwrap();
    let json = json.into_iter().map(Json::Object);
    json.map(|json| (text(&json, "name").unwrap(), request(&json))).collect()
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

/// A rendering in make.py's words: what kind of outcome, and its text.
fn outcome(result: Result<Rendered, Error>) -> (&'static str, String) {
    match result {
        Ok(rendered) => ("", rendered.text),
        Err(error) => match error.to_string().split_once("refuses these messages: ") {
            Some((_, raised)) => ("!", raised.to_owned()),
            None => ("-", error.to_string()),
        },
    }
}

/// Where TEMPLATE_TEXTS names a folder, what is rendered is written there as `make.py --texts` writes it.
fn keep(name: &str, conversation: &str, kind: &str, text: &str) {
    if let Some(folder) = std::env::var_os("TEMPLATE_TEXTS") {
        let folder = PathBuf::from(folder).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(conversation), format!("{kind}{text}")).unwrap();
    }
}

#[test]
fn public_templates_render_as_transformers_does() {
    let templates = public_templates();
    if templates.is_empty() {
        return;
    }
    let expected = std::fs::read_to_string(root().join("tests/data/templates/outcomes.tsv")).unwrap();
    let expected: Vec<Vec<&str>> = expected.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    let conversations = conversations();
    let (mut same, mut both_fail, mut differ, mut wrong) = (0, 0, 0, Vec::new());
    for (name, source) in &templates {
        let row = expected.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{name}: run make.py"));
        assert_eq!(row[1], hex(source.as_bytes()), "{name} has changed: run make.py");
        let template = template(source, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
        for ((conversation, request), expected) in conversations.iter().zip(&row[2..]) {
            let (kind, text) = outcome(template.render(request));
            keep(name, conversation, kind, &text);
            let ours = if kind == "-" { "-".to_owned() } else { format!("{kind}{}", &hex(text.as_bytes())[..32]) };
            let known = DIFFERENCES.iter().any(|row| row.0 == conversation && row.1.contains(&name.as_str()))
                || name == ESCAPES_TOOLS && !request.callable().is_empty() && kind.is_empty();
            if ours == *expected {
                assert!(!known, "{name}, {conversation}: no difference any more");
                *(if kind.is_empty() { &mut same } else { &mut both_fail }) += 1;
            } else if known {
                differ += 1;
            } else {
                wrong.push(format!("{name}, {conversation}: {expected} expected, {kind}{}", ellipsis(&text)));
            }
        }
    }
    let counts = format!("{same} the same, {both_fail} fail in both, {differ} known to differ");
    writeln!(std::io::stderr(), "{counts}").unwrap();
    assert!(wrong.is_empty(), "{counts}, {} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(templates.len() >= 70 && same > 0);
}

fn ellipsis(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(160).collect();
    if chars.next().is_some() { start + "…" } else { start }
}
