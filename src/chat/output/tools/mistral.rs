//! Mistral up to 2024: a list of JSON objects behind a special token. Later generations write the name before the
//! arguments; this reads them all.
//!
//! `[TOOL_CALLS][{"name": "f", "arguments": {"x": 1}, "id": "abcdefghi"}]`

use super::{Envelope, Format, NAME, NotACall, Parsing, Region, in_name, object};

pub(super) const OPEN: &str = "[TOOL_CALLS]";

pub static FORMAT: Format = Format {
    name: "mistral",
    opens: &[OPEN],
    bare: &[],
    parse,
    envelope: Envelope { open: "[TOOL_CALLS][", between: ", ", close: "]" },
    render: object::render_with_id,
    grammar: object::grammar_with_id,
};

pub(super) fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        region.input.skip_space().await;
        match region.input.is_next("[").await || region.input.is_next("{").await {
            true => object::calls(&region).await,
            false => named(&region).await,
        }
    })
}

/// `f{"x": 1}`, `f[ARGS]{"x": 1}` or `f[CALL_ID]abcdefghi[ARGS]{"x": 1}`.
async fn named(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    let name = input.word(in_name, NAME).await.ok_or(NotACall)?;
    input.skip_space().await;
    let id = match input.eat("[CALL_ID]").await {
        true => input.word(|char| char.is_ascii_alphanumeric() || "_-".contains(char), NAME).await,
        false => None,
    };
    input.eat("[ARGS]").await;
    input.skip_space().await;
    if !input.is_next("{").await {
        return Err(NotACall);
    }
    region.call_with_id(&name, id)?.object().await
}
