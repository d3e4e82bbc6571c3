//! Llama 3: a JSON object at the answer's beginning or behind a special token; behind that token also a call of a
//! built-in tool, or code for the interpreter.
//!
//! `{"name": "f", "parameters": {"x": 1}}`, `<|python_tag|>brave_search.call(query="x")`, `<|python_tag|>print(1)`

use super::{Envelope, Format, NAME, NotACall, Parsing, Region, Rules, in_name, object, pythonic};
use crate::chat::Tool;

/// What ends a message.
const ENDS: &[&str] = &["<|eom_id|>", "<|eot_id|>"];

pub static FORMAT: Format = Format {
    name: "llama",
    opens: &["<|python_tag|>"],
    bare: &['{', '['],
    parse,
    envelope: Envelope { open: "", between: "; ", close: "" },
    render: |call, _| object::render_as(call, "parameters"),
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        let input = &region.input;
        match input.peek_after(0).await.ok_or(NotACall)?.0 {
            '{' | '[' => object::calls(&region).await,
            _ => {
                let word = input.word(in_name, NAME).await;
                match word.as_deref().and_then(|word| word.strip_suffix(".call")) {
                    Some(name) if region.declares(name) && input.eat("(").await => {
                        pythonic::each(&region, region.call(name)?).await
                    }
                    // Cut here, it may be either.
                    _ if input.is_cut() => Err(NotACall),
                    _ => {
                        input.rewind();
                        region.code(ENDS).await.map(drop)
                    }
                }
            }
        }
    })
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    object::grammar_as(rules, tool, "parameters")
}
