//! OpenAI's error object, in a body and in the middle of a stream.

use serde::Serialize;

use crate::protocol::{Kind, Refusal, sse};

#[derive(Serialize)]
struct Envelope<'a> {
    error: Error<'a>,
}

#[derive(Serialize)]
struct Error<'a> {
    message: &'a str,
    r#type: &'static str,
    param: Option<&'a str>,
    code: Option<&'static str>,
}

/// The body of a refusal.
pub fn to_wire(refusal: &Refusal) -> String {
    sse::json(&envelope(refusal))
}

/// The frame of an answer that fails after it began.
pub(super) fn frame(refusal: &Refusal) -> String {
    sse::data(&envelope(refusal))
}

fn envelope(refusal: &Refusal) -> Envelope<'_> {
    let (r#type, code) = match refusal.kind {
        Kind::Invalid | Kind::UnknownPath | Kind::TooLarge => ("invalid_request_error", None),
        Kind::TooLong => ("invalid_request_error", Some("context_length_exceeded")),
        Kind::UnknownModel => ("invalid_request_error", Some("model_not_found")),
        Kind::Method => ("invalid_request_error", Some("method_not_supported")),
        Kind::Busy => ("rate_limit_error", Some("rate_limit_exceeded")),
        Kind::Closing => ("server_error", Some("server_closing")),
        Kind::Internal => ("server_error", None),
    };
    let param = refusal.field.as_deref().map(our_name_to_theirs);
    Envelope { error: Error { message: &refusal.message, r#type, param, code } }
}

/// The chat layer names fields in mettle's words.
fn our_name_to_theirs(field: &str) -> &str {
    match field {
        "template_variables" => "chat_template_kwargs",
        same => same,
    }
}
