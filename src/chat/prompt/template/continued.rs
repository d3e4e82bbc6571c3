//! Going on with the last message: the prompt ends where that message's content does.

use std::borrow::Cow;

use crate::chat::python::is_space;
use crate::chat::{Error, Field, Role, prompt::conversation::Conversation};

/// What transformers puts behind the content to find its end again. Some templates look for it by this name.
pub(super) const TAG: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

/// The content that is gone on with, if any is.
pub(super) fn content<'c>(conversation: &'c Conversation<'_>) -> Result<Option<Cow<'c, str>>, Error> {
    match conversation.messages.last() {
        Some(message) if conversation.continue_final && message.role == Role::Assistant => Ok(Some(message.text())),
        _ if conversation.continue_final => {
            Err(wrong("only the assistant's own message can be continued, and the last message is not the assistant's"))
        }
        _ => Ok(None),
    }
}

/// Cuts a rendering, in which the content is followed by [`TAG`], behind the content. A template that trims the
/// content has trimmed the tag's space too, and what it trims is then trimmed before the tag.
pub(super) fn cut(rendered: &mut String, content: &str) -> Result<(), Error> {
    let Some(at) = rendered.rfind(TAG.trim_end()).filter(|_| rendered.contains(content.trim_matches(is_space))) else {
        return Err(wrong(
            "the last message cannot be continued: the model's chat template does not render it as it is",
        ));
    };
    let keeps_spaces = rendered[at..].starts_with(TAG);
    rendered.truncate(at);
    if !keeps_spaces {
        rendered.truncate(rendered.trim_end_matches(is_space).len());
    }
    Ok(())
}

fn wrong(message: &str) -> Error {
    Error::Request { field: Field::Messages, message: message.to_owned() }
}
