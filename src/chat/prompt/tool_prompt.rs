//! Tools for models whose chat template has no place for them: what there is and how to call it goes into the system
//! message, past calls and their results into the text of the conversation, in the dialect's own form.

use std::borrow::Cow;

use serde_json::{Map, json};

use crate::chat::{
    Dialect, Message, Request, Role, Template, Tool, ToolCall,
    dialect::CallIds,
    output::tools::{Envelope, Format},
    python::dumps,
};

/// The request as the template can render it.
pub(in crate::chat) fn tools<'a>(request: &'a Request, template: &Template, dialect: &Dialect) -> Cow<'a, Request> {
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
pub(in crate::chat) fn written(calls: &[ToolCall], format: &Format) -> String {
    let Envelope { open, between, close } = format.envelope;
    let calls: Vec<String> = calls.iter().enumerate().map(|(index, call)| (format.render)(call, index)).collect();
    format!("{open}{}{close}", calls.join(between))
}

/// The request with ids that the dialect's template takes: the same id everywhere for the same id.
pub(in crate::chat) fn ids(request: Cow<'_, Request>, ids: CallIds) -> Cow<'_, Request> {
    let fits = |id: &String| id.is_empty() || ids.allow(id);
    let fit = |message: &Message| {
        message.tool_calls.iter().all(|call| fits(&call.id)) && message.tool_call_id.iter().all(fits)
    };
    if request.messages.iter().all(fit) {
        return request;
    }
    let mut request = request.into_owned();
    for message in &mut request.messages {
        let known = message.tool_calls.iter_mut().map(|call| &mut call.id).chain(&mut message.tool_call_id);
        for id in known.filter(|id| !id.is_empty() && !ids.allow(id)) {
            // FNV-1a, in nine letters and digits.
            let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            let mut hash = id.bytes().fold(0xcbf2_9ce4_8422_2325, fold);
            *id = (0..9)
                .map(|_| {
                    let digit = char::from_digit((hash % 36) as u32, 36).expect("a digit below the base");
                    hash /= 36;
                    digit
                })
                .collect();
        }
    }
    Cow::Owned(request)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_another_shape_become_nine_characters_and_stay_pairs() {
        let call = |id: &str| ToolCall { id: id.to_owned(), name: "f".to_owned(), arguments: Map::new() };
        let request = |id: &str| Request {
            messages: vec![
                Message { tool_calls: vec![call(id)], ..Message::new(Role::Assistant, "") },
                Message { tool_call_id: Some(id.to_owned()), ..Message::new(Role::Tool, "4") },
            ],
            ..Request::default()
        };
        let own = request("call_0123456789abcdefghijklmn");
        let fitted = ids(Cow::Borrowed(&own), CallIds::Nine).into_owned();
        let id = &fitted.messages[0].tool_calls[0].id;
        assert!(CallIds::Nine.allow(id), "{id}");
        assert_eq!(fitted.messages[1].tool_call_id.as_ref(), Some(id));
        assert_eq!(*ids(Cow::Borrowed(&own), CallIds::Long), own);
        let nine = request("abcDEF123");
        assert_eq!(*ids(Cow::Borrowed(&nine), CallIds::Nine), nine);
    }
}
