//! Tools for models whose chat template has no place for them: what there is and how to call it goes into the system
//! message, past calls and their results into the text of the conversation, in the dialect's own form.

use std::borrow::Cow;

use serde_json::{Map, json};

use super::{
    Dialect, Message, Request, Role, Template, Tool, ToolCall,
    python::dumps,
    tools::{Envelope, Format},
};

/// The request as the template can render it.
pub(super) fn tools<'a>(request: &'a Request, template: &Template, dialect: &Dialect) -> Cow<'a, Request> {
    let past = |message: &Message| !message.tool_calls.is_empty() || message.role == Role::Tool;
    let spoken = !request.callable().is_empty() || request.messages.iter().any(past);
    let Some(format) = dialect.tools.first().filter(|_| spoken && !template.knows_tools()) else {
        return Cow::Borrowed(request);
    };
    let mut taught = Request { messages: Vec::new(), ..request.clone() };
    for message in &request.messages {
        add(&mut taught.messages, message, format);
    }
    if !request.callable().is_empty() {
        let lesson = lesson(request.callable(), format);
        match taught.messages.first_mut() {
            Some(first) if matches!(first.role, Role::System | Role::Developer) => {
                first.content = format!("{}\n\n{lesson}", first.content);
            }
            _ => taught.messages.insert(0, Message::new(Role::System, lesson)),
        }
    }
    Cow::Owned(taught)
}

/// One message of the conversation, in text.
fn add(messages: &mut Vec<Message>, message: &Message, format: &Format) {
    match message.role {
        Role::Tool => {
            let result = format!("<tool_response>\n{}\n</tool_response>", message.content);
            match messages.last_mut() {
                // The results of one turn's calls stand together.
                Some(last) if last.role == Role::User && last.content.starts_with("<tool_response>\n") => {
                    last.content = format!("{}\n{result}", last.content);
                }
                _ => messages.push(Message::new(Role::User, result)),
            }
        }
        _ if message.tool_calls.is_empty() => messages.push(message.clone()),
        role => {
            let calls = written(&message.tool_calls, format);
            let content = match message.content.is_empty() {
                true => calls,
                false => format!("{}\n{calls}", message.content),
            };
            messages.push(Message { content, tool_calls: Vec::new(), ..Message { role, ..message.clone() } });
        }
    }
}

/// Calls of one turn, as the format writes them.
pub(super) fn written(calls: &[ToolCall], format: &Format) -> String {
    let Envelope { open, between, close } = format.envelope;
    let calls: Vec<String> = calls.iter().enumerate().map(|(index, call)| (format.render)(call, index)).collect();
    format!("{open}{}{close}", calls.join(between))
}

/// What the model is told of its tools.
fn lesson(tools: &[Tool], format: &Format) -> String {
    let line = |tool: &Tool| {
        let tool = json!({"type": "function", "function": tool.definition});
        dumps(&tool)
    };
    let list: Vec<String> = tools.iter().map(line).collect();
    let example = ToolCall {
        id: "1".to_owned(),
        name: "NAME".to_owned(),
        arguments: Map::from_iter([("ARGUMENT".to_owned(), json!("VALUE"))]),
    };
    format!(
        "You have these tools, one JSON description a line:\n{}\n\nTo call a tool, answer with its name and arguments \
         exactly in this form:\n{}\nThe result comes back between <tool_response> and </tool_response>. Call a tool only \
         where it helps; otherwise answer in plain text.",
        list.join("\n"),
        written(&[example], format),
    )
}
