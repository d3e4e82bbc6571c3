//! What a template makes use of, found by rendering small conversations with it.

use serde_json::{Map, json};

use super::{Template, ThinkingControl};
use crate::chat::{Message, Part, Request, Role, Thinking, Tool, ToolCall, ToolField};

/// Words that no template has of its own.
const WORDS: [&str; 3] = ["mettle_probes_tools", "mettle_probes_results", "mettle_probes_reasoning"];

/// What reaches the prompt.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Knowledge {
    pub tools: bool,
    pub tool_role: bool,
    pub reasoning: bool,
    pub thinking: ThinkingControl,
}

impl Knowledge {
    pub(super) fn of(template: &Template) -> Knowledge {
        let rendered = template.render(&called()).map(|rendered| rendered.text).unwrap_or_default();
        let asked = Request { tools: vec![tool()], ..asked(Thinking::default()) };
        let with_tools = template.render(&asked).map(|rendered| rendered.text).unwrap_or_default();
        Knowledge {
            tools: with_tools.contains(WORDS[0]),
            tool_role: rendered.contains(WORDS[1]),
            reasoning: rendered.contains(WORDS[2]),
            thinking: thinking(template),
        }
    }
}

/// A wish is obeyed where two answers to it make two prompts.
fn thinking(template: &Template) -> ThinkingControl {
    let differ = |one: Thinking, other: Thinking| {
        let (one, other) = (template.render(&asked(one)), template.render(&asked(other)));
        // An effort that the template refuses is one it knows.
        one.ok() != other.ok()
    };
    let enabled = |enabled| Thinking { enabled: Some(enabled), ..Thinking::default() };
    let effort = |effort: &str| Thinking { effort: Some(effort.to_owned()), ..enabled(true) };
    let budget = |budget| Thinking { budget: Some(budget), ..Thinking::default() };
    ThinkingControl {
        switch: differ(enabled(true), enabled(false)),
        effort: differ(effort("low"), effort("high")) || differ(effort("high"), effort("max")),
        budget: differ(budget(512), budget(4096)),
    }
}

fn asked(thinking: Thinking) -> Request {
    Request { thinking, ..Request::new(vec![Message::new(Role::User, "Hello")]) }
}

/// A tool was called and has answered.
fn called() -> Request {
    let call = ToolCall { id: "call00001".to_owned(), name: WORDS[0].to_owned(), arguments: Map::new() };
    let assistant =
        Message::new(Role::Assistant, "").with(Part::Reasoning(WORDS[2].to_owned())).with(Part::ToolCall(call));
    let answer = Message { name: Some(WORDS[0].to_owned()), ..Message::tool_result("call00001", WORDS[1]) };
    let thinking = Thinking { enabled: Some(true), ..Thinking::default() };
    let messages = vec![Message::new(Role::User, "Hello"), assistant, answer];
    Request { tools: vec![tool()], thinking, ..Request::new(messages) }
}

fn tool() -> Tool {
    let parameters = json!({"type": "object", "properties": {}});
    let given = vec![ToolField::Name, ToolField::Description, ToolField::Parameters];
    Tool { description: Some(String::new()), given, ..Tool::new(WORDS[0], parameters) }
}
