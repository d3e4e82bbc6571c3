//! A call as a line of Python.
//!
//! `f(x=1, "text")`

use super::{Arguments, NAME, NotACall, Region, in_name};
use crate::chat::dialect::{PythonArguments, Statements};

impl Statements {
    /// Reads lines behind a mark.
    pub(super) async fn read(&self, region: &Region) -> Result<(), NotACall> {
        match self {
            Statements::Calls(close) => calls(region, close).await,
            Statements::Code { fences: [open, close], .. } if region.is_opened_by(open) => block(region, close).await,
            Statements::Code { printed, .. } => assigned(region, printed).await,
        }
    }

    /// How arguments are written.
    pub(super) fn arguments(&self) -> PythonArguments {
        match self {
            Statements::Calls(_) => PythonArguments::Json,
            Statements::Code { .. } => PythonArguments::Words,
        }
    }
}

/// Calls up to this mark.
async fn calls(region: &Region, close: &str) -> Result<(), NotACall> {
    loop {
        region.input.skip_space().await;
        if region.input.eat(close).await {
            return Ok(());
        }
        let name = name(region).await?;
        arguments(region, region.call(&name)?).await?;
    }
}

/// Lines of code up to the end of their block.
async fn block(region: &Region, close: &str) -> Result<(), NotACall> {
    loop {
        line(region).await?;
        region.input.skip_space().await;
        if region.input.eat(close).await || region.input.peek().await.is_none() {
            return Ok(());
        }
    }
}

/// A line whose value is assigned, and may be printed by this.
async fn assigned(region: &Region, printed: &str) -> Result<(), NotACall> {
    line(region).await?;
    region.input.skip_space().await;
    if !region.input.eat(printed).await && region.input.peek().await.is_some() {
        region.input.rewind();
    }
    Ok(())
}

/// A call, which may be assigned or printed.
async fn line(region: &Region) -> Result<(), NotACall> {
    let input = &region.input;
    input.skip_space().await;
    let printed = input.eat("print(").await;
    while let Some(variable) = named(region).await {
        for _ in 0..=variable.chars().count() {
            input.next().await;
        }
        input.skip_space().await;
    }
    input.eat("default_api.").await;
    let name = name(region).await?;
    arguments(region, region.call(&name)?).await?;
    if printed {
        input.skip_space().await;
        input.eat(")").await;
    }
    Ok(())
}

/// A function's name, and its parenthesis.
pub(super) async fn name(region: &Region) -> Result<String, NotACall> {
    let input = &region.input;
    let name = input.word(in_name, NAME).await.ok_or(NotACall)?;
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

/// The word before an equals sign, and the space between them, where these are next.
pub(super) async fn named(region: &Region) -> Option<String> {
    let mut name = String::new();
    while name.len() < NAME {
        match region.input.peek_at(name.len()).await? {
            '=' if !name.is_empty() => return Some(name),
            ' ' if !name.is_empty() => name.push(' '),
            char if (char.is_alphanumeric() || char == '_') && !name.ends_with(' ') => name.push(char),
            _ => return None,
        }
    }
    None
}
