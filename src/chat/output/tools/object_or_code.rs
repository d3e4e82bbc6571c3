//! A JSON object at the answer's beginning or behind a special token; behind that token also a call of a built-in tool,
//! or code for the interpreter.
//!
//! `{"name": "f", "parameters": {"x": 1}}`, `<|python_tag|>brave_search.call(query="x")`, `<|python_tag|>print(1)`

use super::{NAME, NotACall, Region, in_name, object, python};
use crate::chat::dialect::Object;

/// What is written.
pub(super) const WRITTEN: Object = Object { keys: ["name", "parameters"], ..Object::PLAIN };

/// Reads what stands there; code goes up to one of `ends`.
pub(super) async fn read(region: &Region, ends: &[&str]) -> Result<(), NotACall> {
    let input = &region.input;
    if let '{' | '[' = input.peek_after(0).await.ok_or(NotACall)?.0 {
        return object::calls(region).await;
    }
    let word = input.word(in_name, NAME).await;
    match word.as_deref().and_then(|word| word.strip_suffix(".call")) {
        Some(name) if region.declares(name) && input.eat("(").await => python::each(region, region.call(name)?).await,
        // Cut here, it may be either.
        _ if input.is_cut() => Err(NotACall),
        _ => {
            input.rewind();
            region.code(ends).await.map(drop)
        }
    }
}
