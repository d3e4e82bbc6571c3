//! What models write that imitate how other programs put their calls into a conversation's past. It is read, and never
//! taught.
//!
//! `[Calling tool: f({"x": 1})]`

use super::{Envelope, Format, NAME, NotACall, Parsing, Region, Rules, in_name, object, pythonic};
use crate::chat::Tool;

pub static FORMAT: Format = Format {
    name: "calling_tool",
    opens: &["[Calling tool:", "[Calling tool=", "[Calling tool "],
    bare: &[],
    parse,
    envelope: Envelope { open: "", between: "\n", close: "" },
    render: |call, _| format!("[Calling tool: {}({})]", call.name, object::dumps(&call.arguments)),
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        let input = &region.input;
        input.skip_space().await;
        let name = input.word(in_name, NAME).await.ok_or(NotACall)?;
        if !input.eat("(").await {
            return Err(NotACall);
        }
        let arguments = region.call(&name)?;
        input.skip_space().await;
        match input.is_next("{").await {
            true => pythonic::all(&region, arguments).await?,
            false => pythonic::each(&region, arguments).await?,
        }
        region.close("]").await;
        Ok(())
    })
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let head = rules.literal(&format!("[Calling tool: {}(", tool.name));
    format!("{head} {} {}", rules.json(&tool.parameters), rules.literal(")]"))
}
