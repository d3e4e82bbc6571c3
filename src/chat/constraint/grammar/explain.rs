//! What llguidance says of a schema, in our words where its own would not help.

/// The message of a refusal.
pub(super) fn explained(message: &str) -> String {
    let begins = |text: &str| message.starts_with(text);
    if begins("oneOf constraints") {
        return "\"oneOf\" cannot be enforced while the answer is written where an instance of one schema may be one of \
                another; use anyOf, or give each schema a required property with a const of its own"
            .to_owned();
    }
    if begins("min/maxProperties only") {
        return "\"minProperties\" and \"maxProperties\" cannot be enforced beside properties that are not required"
            .to_owned();
    }
    match message.strip_prefix("Unknown format: ") {
        Some(format) => format!("\"format\" {format:?} is not known; leave it out or use pattern"),
        None if begins("regex parse error") => format!("\"pattern\" cannot be used: {message}"),
        None => message.to_owned(),
    }
}
