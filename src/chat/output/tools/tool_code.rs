//! Gemma 3: Python in a block of code, or assigned to a variable of that name.
//!
//! `` ```tool_code\nprint(f(x=1))\n``` ``, `tool_code = f(x=1)`

use super::{Envelope, Format, NotACall, Parsing, Region, pythonic, statement};

pub static FORMAT: Format = Format {
    name: "tool_code",
    opens: &["```tool_code", "tool_code ="],
    bare: &[],
    parse,
    envelope: Envelope { open: "```tool_code\n", between: "\n", close: "\n```" },
    render: |call, _| pythonic::render(call),
    grammar: pythonic::grammar,
};

fn parse(region: Region) -> Parsing {
    Box::pin(async move {
        let input = &region.input;
        line(&region).await?;
        let block = region.opened_by == 0;
        loop {
            input.skip_space().await;
            let over = if block { input.eat("```").await } else { input.eat("print(tool_code)").await };
            if over || input.peek().await.is_none() {
                return Ok(());
            }
            if !block {
                input.rewind();
                return Ok(());
            }
            line(&region).await?;
        }
    })
}

/// A call, which may be assigned or printed.
async fn line(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    input.skip_space().await;
    let printed = input.eat("print(").await;
    while let Some(variable) = statement::named(region).await {
        for _ in 0..=variable.chars().count() {
            input.next().await;
        }
        input.skip_space().await;
    }
    input.eat("default_api.").await;
    let name = statement::name(region).await?;
    statement::arguments(region, region.call(&name)?).await?;
    if printed {
        input.skip_space().await;
        input.eat(")").await;
    }
    Ok(())
}
