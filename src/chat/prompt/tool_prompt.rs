//! Tools for models whose chat template has no place for them: what there is and how to call it goes into the system
//! message, past calls and their results into the text of the conversation, in the dialect's own form.

use std::borrow::Cow;

use serde_json::{Map, json};

use super::template::definition;
use crate::chat::{
    Dialect, Message, Part, Request, Role, Template, Tool, ToolCall,
    dialect::{CallIds, ToolFormat},
    output::tools::render_turn,
    python::dumps,
};

/// The request as the template can render it.
pub(in crate::chat) fn tools<'a>(request: &'a Request, template: &Template, dialect: &Dialect) -> Cow<'a, Request> {
    let past = |message: &Message| message.tool_calls().next().is_some() || message.role == Role::Tool;
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
                let text = format!("{}\n\n{lesson}", first.text());
                first.set_text(text);
            }
            _ => taught.messages.insert(0, Message::new(Role::System, lesson)),
        }
    }
    Cow::Owned(taught)
}

/// One message of the conversation, in text.
fn add(messages: &mut Vec<Message>, message: &Message, format: &ToolFormat) {
    match message.role {
        Role::Tool => {
            let result = format!("<tool_response>\n{}\n</tool_response>", message.text());
            match messages.last_mut() {
                // The results of one turn's calls stand together.
                Some(last) if last.role == Role::User && last.text().starts_with("<tool_response>\n") => {
                    let text = format!("{}\n{result}", last.text());
                    last.set_text(text);
                }
                _ => messages.push(Message::new(Role::User, result)),
            }
        }
        _ if message.tool_calls().next().is_none() => messages.push(message.clone()),
        _ => {
            let calls: Vec<ToolCall> = message.tool_calls().cloned().collect();
            let calls = render_turn(format, &calls);
            let text = message.text();
            let text = if text.is_empty() { calls } else { format!("{text}\n{calls}") };
            let mut message = message.clone();
            message.content.retain(|part| !matches!(part, Part::ToolCall(_)));
            message.set_text(text);
            messages.push(message);
        }
    }
}

/// The request with ids that the dialect's template takes: the same id everywhere for the same id.
pub(in crate::chat) fn ids(request: Cow<'_, Request>, ids: CallIds) -> Cow<'_, Request> {
    let fits = |id: &String| id.is_empty() || ids.allow(id);
    if request.messages.iter().flat_map(Message::call_ids).all(fits) {
        return request;
    }
    let mut request = request.into_owned();
    for message in &mut request.messages {
        for id in message.call_ids_mut().filter(|id| !id.is_empty() && !ids.allow(id)) {
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
fn lesson(tools: &[Tool], format: &ToolFormat) -> String {
    let line = |tool: &Tool| {
        let tool = json!({"type": "function", "function": definition(tool)});
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
        render_turn(format, &[example]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_another_shape_become_nine_characters_and_stay_pairs() {
        let call = |id: &str| ToolCall { id: id.to_owned(), name: "f".to_owned(), arguments: Map::new() };
        let request = |id: &str| {
            let assistant = Message::new(Role::Assistant, "").with(Part::ToolCall(call(id)));
            Request::new(vec![assistant, Message::tool_result(id, "4")])
        };
        let own = request("call_0123456789abcdefghijklmn");
        let fitted = ids(Cow::Borrowed(&own), CallIds::Nine).into_owned();
        let id = &fitted.messages[0].tool_calls().next().unwrap().id;
        assert!(CallIds::Nine.allow(id), "{id}");
        assert_eq!(fitted.messages[1].answered_call(), Some(id.as_str()));
        assert_eq!(*ids(Cow::Borrowed(&own), CallIds::Long), own);
        let nine = request("abcDEF123");
        assert_eq!(*ids(Cow::Borrowed(&nine), CallIds::Nine), nine);
    }
}
