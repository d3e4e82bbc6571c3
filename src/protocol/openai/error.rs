//! OpenAI's error object, in a body and in the middle of a stream.

use serde::Serialize;

use crate::{
    chat::Field,
    protocol::{Kind, Refusal, Refused, sse},
};

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

/// A refusal as all of OpenAI's endpoints send it.
pub fn refused(refusal: &Refusal) -> Refused {
    Refused {
        status: refusal.kind.status(),
        content_type: "application/json",
        body: sse::json(&envelope(refusal)),
        retry_after: refusal.retry_after,
    }
}

/// The frame of an answer that fails after it began.
pub(super) fn frame(refusal: &Refusal) -> String {
    sse::data(&envelope(refusal))
}

fn envelope(refusal: &Refusal) -> Envelope<'_> {
    let (r#type, code) = match refusal.kind {
        Kind::Invalid | Kind::UnknownPath | Kind::TooLarge | Kind::TooSlow | Kind::Encoding | Kind::Forbidden => {
            ("invalid_request_error", None)
        }
        Kind::TooLong => ("invalid_request_error", Some("context_length_exceeded")),
        Kind::UnknownModel => ("invalid_request_error", Some("model_not_found")),
        Kind::Method => ("invalid_request_error", Some("method_not_supported")),
        Kind::Busy => ("rate_limit_error", Some("rate_limit_exceeded")),
        Kind::Closing => ("server_error", Some("server_closing")),
        Kind::Loading => ("server_error", Some("model_loading")),
        Kind::Failed => ("server_error", Some("model_failed")),
        Kind::Internal => ("server_error", None),
    };
    let param = refusal.field.as_deref();
    Envelope { error: Error { message: &refusal.message, r#type, param, code } }
}

/// Where a part of a request stands in the body.
pub(super) fn field_name(field: Field) -> String {
    let name = match field {
        Field::Model => "model",
        Field::Messages => "messages",
        Field::Part { message, part } => return format!("messages[{message}].content[{part}]"),
        Field::Name { message } => return format!("messages[{message}].name"),
        Field::Reasoning { message } => return format!("messages[{message}].reasoning_content"),
        Field::MaxTokens => "max_tokens",
        Field::Answers => "n",
        Field::LogitBias => "logit_bias",
        Field::TopLogprobs => "top_logprobs",
        Field::Tools => "tools",
        Field::Format => "response_format",
        Field::Thinking => "enable_thinking",
        Field::ThinkingEffort => "reasoning_effort",
        Field::ThinkingBudget => "thinking_budget",
        Field::TemplateVariables => "chat_template_kwargs",
        Field::Input(None) => "input",
        Field::Input(Some(index)) => return format!("input[{index}]"),
        Field::Dimensions => "dimensions",
    };
    name.to_owned()
}
