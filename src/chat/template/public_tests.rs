//! The public templates of ../shared/data rendered as transformers renders them (tests/data/templates/make.py).

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};
use sha2::{Digest, Sha256};

use super::{Rendered, Template};
use crate::chat::{ControlToken, Error, LoadError, Message, Request, Role, Thinking, Tool, ToolCall, ToolChoice};
use crate::checkpoint::Templates;

/// Template, conversation, and why ours is not transformers' there.
const DIFFERENCES: &[(&str, &str, &str)] = &[];

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
    let tokens = [("bos_token", "<s>"), ("eos_token", "</s>"), ("unk_token", "<unk>"), ("pad_token", "<pad>")];
    let tokens = tokens.map(|(name, token)| (name.to_owned(), token.to_owned())).to_vec();
    let date = chrono::NaiveDate::from_ymd_opt(2026, 2, 3).unwrap().and_hms_opt(4, 5, 6).unwrap();
    assert_eq!(date.to_string(), "2026-02-03 04:05:06");
    Template::at(Templates { default: source.to_owned(), ..Templates::default() }, tokens, controls, || {
        chrono::NaiveDate::default().and_time(chrono::NaiveTime::MIN) + chrono::TimeDelta::seconds(1_770_091_506)
    })
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
    let tool_calls = calls.map(|call| ToolCall {
        id: text(call, "id").unwrap(),
        name: text(call, "name").unwrap(),
        arguments: call["arguments"].as_object().unwrap().clone(),
    });
    Message {
        name: text(json, "name"),
        reasoning: text(json, "reasoning"),
        tool_calls: tool_calls.collect(),
        tool_call_id: text(json, "tool_call_id"),
        ..Message::new(role, text(json, "content").unwrap_or_default())
    }
}

fn request(json: &Json) -> Request {
    let list = |field: &str| json.get(field).and_then(Json::as_array).cloned().unwrap_or_default();
    let tool = |json: &Json| Tool {
        name: text(json, "name").unwrap(),
        parameters: json["parameters"].clone(),
        strict: false,
        definition: json.as_object().unwrap().clone(),
    };
    let thinking = json.get("thinking").cloned().unwrap_or_default();
    Request {
        messages: list("messages").iter().map(message).collect(),
        tools: list("tools").iter().map(tool).collect(),
        tool_choice: if json.get("tool_choice").is_some() { ToolChoice::None } else { ToolChoice::Auto },
        thinking: Thinking {
            enabled: thinking.get("enabled").and_then(Json::as_bool),
            effort: text(&thinking, "effort"),
            budget: thinking.get("budget").and_then(Json::as_u64).map(|budget| budget as usize),
        },
        continue_final: json.get("continue_final").is_some(),
        template_variables: json.get("variables").and_then(Json::as_object).cloned().unwrap_or_default(),
        ..Request::default()
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
    let (mut same, mut both_fail, mut wrong) = (0, 0, Vec::new());
    for (name, source) in &templates {
        let row = expected.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{name}: run make.py"));
        assert_eq!(row[1], hex(source.as_bytes()), "{name} has changed: run make.py");
        let template = template(source, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
        for ((conversation, request), expected) in conversations.iter().zip(&row[2..]) {
            let (kind, text) = outcome(template.render(request));
            keep(name, conversation, kind, &text);
            let ours = if kind == "-" { "-".to_owned() } else { format!("{kind}{}", &hex(text.as_bytes())[..32]) };
            let known = DIFFERENCES.iter().any(|row| (row.0, row.1) == (name.as_str(), conversation.as_str()));
            if ours == *expected {
                assert!(!known, "{name}, {conversation}: no difference any more");
                *(if kind.is_empty() { &mut same } else { &mut both_fail }) += 1;
            } else if !known {
                wrong.push(format!("{name}, {conversation}: {expected} expected, {kind}{}", ellipsis(&text)));
            }
        }
    }
    let counts = format!("{same} the same, {both_fail} fail in both, {} known to differ", DIFFERENCES.len());
    writeln!(std::io::stderr(), "{counts}").unwrap();
    assert!(wrong.is_empty(), "{counts}, {} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(templates.len() >= 70 && same > 0);
}

fn ellipsis(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(160).collect();
    if chars.next().is_some() { start + "…" } else { start }
}
