//! Qwen3-Coder and Qwen 3.5: tags for the function and each parameter; the outer tag is often left out.
//!
//! `<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>`

use super::{End, Envelope, Format, NotACall, Parsing, Region, Rules, Spelling};
use crate::chat::{Tool, ToolCall};

/// Bytes of a name.
const NAME: usize = 256;

pub static FORMAT: Format = Format {
    name: "qwen_xml",
    opens: &["<tool_call>", "<function="],
    bare: &[],
    parse,
    envelope: Envelope { open: "", between: "\n", close: "" },
    render: |call, _| render(call, &QWEN),
    grammar: |rules, tool| grammar(rules, tool, &QWEN),
};

const QWEN: Tags = Tags { all: ["<tool_call>", "</tool_call>"], newline: "\n", spelling: Spelling::Python };

/// What differs between the families that write so.
pub(super) struct Tags {
    pub all: [&'static str; 2],
    /// Around a value.
    pub newline: &'static str,
    pub spelling: Spelling,
}

pub(super) fn parse(region: Region) -> Parsing {
    Box::pin(async move { calls(&region, &QWEN).await })
}

/// Reads what follows a mark, the first of which is the tag around calls.
pub(super) async fn calls(region: &Region, tags: &Tags) -> Result<(), NotACall> {
    let input = &region.input;
    let wrapped = region.opened_by == 0;
    if wrapped {
        input.skip_space().await;
        if !input.eat("<function=").await {
            return Err(NotACall);
        }
    }
    loop {
        function(region, tags).await?;
        input.skip_space().await;
        // Several functions may share one outer tag.
        if !wrapped || !input.eat("<function=").await {
            break;
        }
    }
    if !input.eat(tags.all[1]).await {
        input.rewind();
    }
    Ok(())
}

/// From the function's name on.
async fn function(region: &Region, tags: &Tags) -> Result<(), NotACall> {
    let input = &region.input;
    let name = input.word(|char| char != '>' && char != '\n' && char != '<', NAME).await.ok_or(NotACall)?;
    if !input.eat(">").await {
        return Err(NotACall);
    }
    let mut arguments = region.call(name.trim())?;
    input.skip_space().await;
    if input.is_next("{").await {
        arguments.object().await?;
        input.skip_space().await;
        let closed = input.eat("</function>").await;
        input.pin();
        return if closed { Ok(()) } else { Err(NotACall) };
    }
    loop {
        input.skip_space().await;
        if input.eat("<parameter=").await {
            let key = input.word(|char| char != '>' && char != '\n', NAME).await.ok_or(NotACall)?;
            if !input.eat(">").await {
                return Err(NotACall);
            }
            let end = End { trim: !tags.newline.is_empty(), ..End::tag(&["</parameter>"]) };
            arguments.text(key.trim(), end).await?;
        } else if input.eat("</function>").await || input.is_next(tags.all[1]).await {
            arguments.end();
            return Ok(());
        } else {
            return Err(NotACall);
        }
    }
}

pub(super) fn render(call: &ToolCall, tags: &Tags) -> String {
    let ([open, close], newline) = (tags.all, tags.newline);
    let mut text = format!("{open}\n<function={}>\n", call.name);
    for (name, value) in &call.arguments {
        text += &format!("<parameter={name}>{newline}{}{newline}</parameter>\n", tags.spelling.text(value));
    }
    format!("{text}</function>\n{close}")
}

pub(super) fn grammar(rules: &mut Rules, tool: &Tool, tags: &Tags) -> String {
    let ([open, close], newline) = (tags.all, tags.newline);
    let head = rules.literal(&format!("{open}\n<function={}>\n", tool.name));
    let parameters = rules.arguments(tool, tags.spelling, &format!("{newline}</parameter>\n"), |name| {
        format!("<parameter={name}>{newline}")
    });
    format!("{head} {parameters} {}", rules.literal(&format!("</function>\n{close}")))
}
