//! A call as a line of Python.
//!
//! `f(x=1, "text")`

use super::{Arguments, NotACall, Region};

/// Bytes of a name.
const NAME: usize = 256;

/// A function's name, and its parenthesis.
pub(super) async fn name(region: &Region) -> Result<String, NotACall> {
    let input = &region.input;
    let name = input.word(|char| char.is_alphanumeric() || "_.-/:".contains(char), NAME).await.ok_or(NotACall)?;
    if input.eat("(").await { Ok(name) } else { Err(NotACall) }
}

/// The arguments and the parenthesis that closes them. Ends the call.
pub(super) async fn arguments(region: &Region, mut arguments: Arguments) -> Result<(), NotACall> {
    let input = &region.input;
    let members = arguments.shape().members();
    let mut position = 0;
    loop {
        input.skip_space().await;
        if input.eat(")").await {
            arguments.end();
            return Ok(());
        }
        let name = match named(region).await {
            Some(name) => {
                for _ in 0..=name.chars().count() {
                    input.next().await;
                }
                name.trim().to_owned()
            }
            None => members.get(position).ok_or(NotACall)?.clone(),
        };
        arguments.statement(&name).await?;
        position += 1;
        input.skip_space().await;
        if !input.eat(",").await && !input.is_next(")").await {
            return Err(NotACall);
        }
    }
}

/// The word before an equals sign, where that is next.
pub(super) async fn named(region: &Region) -> Option<String> {
    let mut name = String::new();
    while name.len() < NAME {
        match region.input.peek_at(name.len()).await? {
            '=' if !name.is_empty() => return Some(name),
            char if char.is_alphanumeric() || "_ ".contains(char) => name.push(char),
            _ => return None,
        }
    }
    None
}
