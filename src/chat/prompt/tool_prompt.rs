//! Tools for models whose chat template has no place for them: what there is and how to call it goes into the system
//! message, past calls and their results into the text of the conversation, in the dialect's own form.

use std::borrow::Cow;

use serde_json::{Map, json};

use super::{
    conversation::Conversation,
    template::{Template, definition},
};
use crate::chat::{
    Dialect, Message, Part, Role, Tool, ToolCall,
    dialect::{CallIds, ToolFormat},
    output::tools::render_turn,
    python::dumps,
};

/// The conversation as the template can render it.
pub(super) fn with_tools<'a>(
    conversation: Conversation<'a>,
    template: &Template,
    dialect: &Dialect,
) -> Conversation<'a> {
    let is_past = |message: &Message| message.tool_calls().next().is_some() || message.role == Role::Tool;
    let needs_tools = !conversation.tools.is_empty() || conversation.messages.iter().any(is_past);
    let Some(format) = dialect.tools.first().filter(|_| needs_tools && !template.knows_tools()) else {
        return conversation;
    };
    let mut messages = Vec::new();
    for message in conversation.messages.iter() {
        add(&mut messages, message, format);
    }
    if !conversation.tools.is_empty() {
        let prompt = tool_prompt(conversation.tools, format);
        match messages.first_mut() {
            Some(first) if matches!(first.role, Role::System | Role::Developer) => {
                let text = format!("{}\n\n{prompt}", first.text());
                first.set_text(text);
            }
            _ => messages.insert(0, Message::new(Role::System, prompt)),
        }
    }
    Conversation { messages: Cow::Owned(messages), ..conversation }
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

/// The conversation with ids that the dialect's template takes: the same id everywhere for the same id.
pub(super) fn with_ids(mut conversation: Conversation<'_>, ids: CallIds) -> Conversation<'_> {
    let fits = |id: &String| id.is_empty() || ids.allow(id);
    if conversation.messages.iter().flat_map(Message::call_ids).all(fits) {
        return conversation;
    }
    for message in conversation.messages.to_mut() {
        for id in message.call_ids_mut().filter(|id| !id.is_empty() && !ids.allow(id)) {
            *id = nine_letters(id);
        }
    }
    conversation
}

/// FNV-1a of an id, in nine letters and digits.
fn nine_letters(id: &str) -> String {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut hash = id.bytes().fold(0xcbf2_9ce4_8422_2325, fold);
    let digit = |_| {
        let digit = char::from_digit((hash % 36) as u32, 36).expect("a digit below the base");
        hash /= 36;
        digit
    };
    (0..9).map(digit).collect()
}

/// What the system message says of the tools.
fn tool_prompt(tools: &[Tool], format: &ToolFormat) -> String {
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
    use crate::chat::Request;

    #[test]
    fn ids_of_another_shape_become_nine_characters_and_stay_pairs() {
        let call = |id: &str| ToolCall { id: id.to_owned(), name: "f".to_owned(), arguments: Map::new() };
        let request = |id: &str| {
            let assistant = Message::new(Role::Assistant, "").with(Part::ToolCall(call(id)));
            Request::new(vec![assistant, Message::tool_result(id, "4")])
        };
        let own = request("call_0123456789abcdefghijklmn");
        let fitted = with_ids(Conversation::from(&own), CallIds::Nine).messages.into_owned();
        let id = &fitted[0].tool_calls().next().unwrap().id;
        assert!(CallIds::Nine.allow(id), "{id}");
        assert_eq!(fitted[1].answered_call(), Some(id.as_str()));
        assert_eq!(with_ids(Conversation::from(&own), CallIds::Long).messages, own.messages);
        let nine = request("abcDEF123");
        assert_eq!(with_ids(Conversation::from(&nine), CallIds::Nine).messages, nine.messages);
    }
}
