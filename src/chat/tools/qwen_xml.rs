//! Qwen3-Coder and Qwen 3.5: tags for the function and each parameter; the outer tag is often left out.
//!
//! `<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>`

use serde_json::Value;

use super::{Envelope, Format, NotACall, Parsing, Region, Rules};
use crate::chat::{Tool, ToolCall};

/// Bytes of a name.
const NAME: usize = 256;

pub static FORMAT: Format = Format {
    name: "qwen_xml",
    opens: &["<tool_call>", "<function="],
    bare: &[],
    parse,
    envelope: Envelope { open: "", between: "\n", close: "" },
    render,
    grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        let input = &region.input;
        let wrapped = region.opened_by == 0;
        if wrapped {
            input.skip_space().await;
            if !input.eat("<function=").await {
                return Err(NotACall);
            }
        }
        function(&region).await?;
        while wrapped {
            // Several functions may share one outer tag.
            input.skip_space().await;
            if !input.eat("<function=").await {
                break;
            }
            function(&region).await?;
        }
        input.skip_space().await;
        if wrapped && !input.eat("</tool_call>").await {
            input.rewind();
        }
        Ok(())
    })
}

/// From the function's name on.
async fn function(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    let name = input.word(|char| char != '>' && char != '\n' && char != '<', NAME).await.ok_or(NotACall)?;
    if !input.eat(">").await {
        return Err(NotACall);
    }
    let mut arguments = region.call(name.trim())?;
    loop {
        input.skip_space().await;
        if input.eat("<parameter=").await {
            let key = input.word(|char| char != '>' && char != '\n', NAME).await.ok_or(NotACall)?;
            if !input.eat(">").await {
                return Err(NotACall);
            }
            arguments.text(key.trim(), &["</parameter>"], true).await?;
        } else if input.eat("</function>").await {
            arguments.end();
            return Ok(());
        } else {
            return Err(NotACall);
        }
    }
}

fn render(call: &ToolCall, _: usize) -> String {
    let mut text = format!("<tool_call>\n<function={}>\n", call.name);
    for (name, value) in &call.arguments {
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        text += &format!("<parameter={name}>\n{value}\n</parameter>\n");
    }
    text + "</function>\n</tool_call>"
}

fn grammar(rules: &mut Rules, tool: &Tool) -> String {
    let mut text = format!("{} {}", rules.mark("<tool_call>"), rules.literal(&format!("\n<function={}>\n", tool.name)));
    for parameter in rules.parameters(tool) {
        let head = rules.literal(&format!("<parameter={}>\n", parameter.name));
        let value = match parameter.is_text {
            true => rules.text_until("\n</parameter>\n"),
            false => {
                let json = rules.json(&parameter.schema);
                format!("{json} {}", rules.literal("\n</parameter>\n"))
            }
        };
        text += &match parameter.required {
            true => format!(" {head} {value}"),
            false => format!(" ({head} {value})?"),
        };
    }
    format!("{text} {} {}", rules.literal("</function>\n"), rules.mark("</tool_call>"))
}
