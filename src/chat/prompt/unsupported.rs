//! What of a request a model of text makes nothing of: parts that it cannot read, which are refused, and parts that
//! its chat template leaves out, which are reported.

use crate::chat::{Error, Field, Part, Request};

/// Refuses pictures, sounds and documents.
pub(super) fn refuse_media(request: &Request) -> Result<(), Error> {
    for (message, content) in request.messages.iter().map(|message| &message.content).enumerate() {
        let said = content.iter().filter(|part| !matches!(part, Part::Reasoning(_) | Part::ToolCall(_)));
        for (part, what) in said.map(unreadable).enumerate() {
            let Some(what) = what else { continue };
            let problem = format!("this model takes text only and no {what}; leave it out, or ask another model");
            return Err(Error::Request { field: Field::Part { message, part }, message: problem });
        }
    }
    Ok(())
}

/// What of this part is no text, if anything is.
fn unreadable(part: &Part) -> Option<&'static str> {
    match part {
        Part::Text(_) | Part::Reasoning(_) | Part::ToolCall(_) => None,
        Part::ToolResult(result) => result.content.iter().find_map(unreadable),
        Part::Picture(_) => Some("pictures"),
        Part::Sound(_) => Some("sounds"),
        Part::Document(_) => Some("documents"),
    }
}

/// Names and reasoning of messages that did not reach this prompt.
pub(super) fn unrendered(request: &Request, prompt: &str) -> Vec<Field> {
    let mut fields = Vec::new();
    for (index, message) in request.messages.iter().enumerate() {
        if message.name.as_deref().is_some_and(|name| !holds(prompt, name)) {
            fields.push(Field::Name { message: index });
        }
        if message.reasoning().is_some_and(|text| !holds(prompt, &text)) {
            fields.push(Field::Reasoning { message: index });
        }
    }
    fields
}

/// Whether a prompt has the longest run of letters, digits and spaces of a text. What stands around it a template may
/// escape or trim.
fn holds(prompt: &str, text: &str) -> bool {
    let runs = text.split(|char: char| !char.is_alphanumeric() && char != ' ');
    runs.map(str::trim).max_by_key(|run| run.len()).is_none_or(|run| prompt.contains(run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{Media, Message, Role, ToolResult};

    fn field(request: &Request) -> Option<Field> {
        match refuse_media(request) {
            Err(Error::Request { field, .. }) => Some(field),
            _ => None,
        }
    }

    #[test]
    fn media_are_refused_where_they_stand() {
        let picture = || Part::Picture(Media::Url("x".to_owned()));
        let text = || Message::new(Role::User, "x");
        assert_eq!(field(&Request::new(vec![text()])), None);
        let thought = Message { content: vec![Part::Reasoning("x".to_owned())], ..text() };
        let request = Request::new(vec![text(), thought.with(Part::Text("x".to_owned())).with(picture())]);
        assert_eq!(field(&request), Some(Field::Part { message: 1, part: 1 }));
        let result = Part::ToolResult(ToolResult { call: None, content: vec![picture()] });
        let request = Request::new(vec![Message { content: vec![result], ..Message::new(Role::Tool, "") }]);
        assert_eq!(field(&request), Some(Field::Part { message: 0, part: 0 }));
    }

    #[test]
    fn what_a_template_leaves_out_is_found() {
        let named = Message { name: Some("Ann".to_owned()), ..Message::new(Role::User, "x") };
        let thought = Message::new(Role::Assistant, "y").with(Part::Reasoning("so \"it is\n".to_owned()));
        let request = Request::new(vec![named, thought]);
        let missing = [Field::Name { message: 0 }, Field::Reasoning { message: 1 }];
        assert_eq!(unrendered(&request, "x y"), missing);
        assert_eq!(unrendered(&request, "Ann: x so \\\"it is\\n y"), []);
    }
}
