//! Strings as models write them: raw newlines, quotes that were not escaped, escapes of two languages.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::{At, Input, NotJson, Place, Sink, literal};

/// Bytes of an argument's name.
const WORD: usize = 100;

/// A string, in quotes of either kind, or in three of them where Python has it so.
pub(super) async fn string(input: &Input, sink: &mut dyn Sink, at: At) -> Result<(), NotJson> {
    let quote = input.next().await.ok_or(NotJson)?;
    let two = String::from_iter([quote, quote]);
    let triple = matches!(at.place, Place::Argument | Place::Statement) && input.eat(&two).await;
    let python = at.python || quote == '\'';
    sink.json("\"");
    loop {
        let plain = |char: char| char != quote && char != '\\' && char != '"' && char >= ' ';
        input.take_while(plain, |piece| sink.json(piece)).await;
        match input.peek().await.ok_or(NotJson)? {
            '\\' => escape(input, sink, python).await?,
            char if char == quote => {
                let done = if triple { quotes(input, quote).await } else { ends(input, at.place).await };
                let done = done.ok_or(NotJson)?;
                input.next().await;
                if done {
                    input.eat(if triple { &two } else { "" }).await;
                    sink.json("\"");
                    return Ok(());
                }
                sink.json(if quote == '"' { "\\\"" } else { "'" });
            }
            '"' => {
                input.next().await;
                sink.json("\\\"");
            }
            control => {
                input.next().await;
                sink.json(&escaped(control));
            }
        }
    }
}

fn escaped(char: char) -> String {
    let quoted = Value::from(char.to_string()).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Whether two more quotes follow the one that is next.
async fn quotes(input: &Input, quote: char) -> Option<bool> {
    Some(input.peek_at(1).await? == quote && input.peek_at(2).await? == quote)
}

/// Whether the quote that is next ends the string: what follows it must be able to follow a string here. `None` where
/// the text ends before that is certain.
async fn ends(input: &Input, place: Place) -> Option<bool> {
    if place == Place::Alone {
        return Some(true);
    }
    let (char, after) = input.peek_after(1).await?;
    Some(match (place, char) {
        (Place::Key, char) => char == ':',
        (Place::Member, '}') | (Place::Item, ']' | ',') | (Place::Element, ')' | ',') => true,
        (Place::Member, ',') => matches!(input.peek_after(after).await?.0, '"' | '\'' | '}'),
        (Place::Argument, ')') => ends_call(input, after).await?,
        (Place::Statement, ')') => match input.peek_at(after).await {
            Some(char) => "\n\r)`;<".contains(char),
            // In the middle of a string there may be a parenthesis, too.
            None => input.is_complete().then_some(true)?,
        },
        (Place::Argument | Place::Statement, ',') => begins_argument(input, after).await?,
        _ => false,
    })
}

/// Whether what follows after `skipped` bytes can follow a call, as what follows a parenthesis inside a string hardly
/// can: the end of the list, or another call.
async fn ends_call(input: &Input, skipped: usize) -> Option<bool> {
    match input.peek_after(skipped).await? {
        (',', after) => match input.peek_after(after).await? {
            (']', _) => Some(true),
            (first, at) => Some(word_ahead(input, first, at, "_.-/:").await?.1 == '('),
        },
        (char, _) => Some("];)<`".contains(char)),
    }
}

/// Whether an argument, with or without its name, or the end of the arguments begins after `skipped` bytes.
async fn begins_argument(input: &Input, skipped: usize) -> Option<bool> {
    let (first, at) = input.peek_after(skipped).await?;
    if !first.is_alphabetic() && first != '_' {
        return Some(first.is_ascii_digit() || "\"'[{-)".contains(first));
    }
    let (word, then) = word_ahead(input, first, at, "_").await?;
    Some(then == '=' || literal(&word).is_some())
}

/// The word that begins with `first`, goes on after `at` bytes and may have these characters in it, and what follows.
async fn word_ahead(input: &Input, first: char, mut at: usize, others: &str) -> Option<(String, char)> {
    let mut word = String::from(first);
    while word.len() < WORD {
        let char = input.peek_at(at).await?;
        if !char.is_alphanumeric() && !others.contains(char) {
            break;
        }
        at += char.len_utf8();
        word.push(char);
    }
    let (then, _) = input.peek_after(at).await?;
    Some((word, then))
}

/// What follows a backslash. An escape that is none is a backslash that was meant.
async fn escape(input: &Input, sink: &mut dyn Sink, python: bool) -> Result<(), NotJson> {
    input.next().await;
    match input.peek().await.ok_or(NotJson)? {
        char @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => {
            input.next().await;
            sink.json(&format!("\\{char}"));
        }
        '\'' => {
            input.next().await;
            sink.json("'");
        }
        'u' => unicode(input, sink).await?,
        char if python => python_escape(input, sink, char).await?,
        _ => sink.json("\\\\"),
    }
    Ok(())
}

/// An escape that only Python has.
async fn python_escape(input: &Input, sink: &mut dyn Sink, char: char) -> Result<(), NotJson> {
    let code = match char {
        'x' => code(input, 1, 2..=2, 16).await?,
        'U' => code(input, 1, 8..=8, 16).await?,
        '0'..='7' => code(input, 0, 1..=3, 8).await?,
        // A line that goes on in the next.
        '\n' => {
            input.next().await;
            return Ok(());
        }
        'a' | 'v' => {
            input.next().await;
            Some(if char == 'a' { 7 } else { 11 })
        }
        _ => None,
    };
    sink.json(
        &code.map_or("\\\\".to_owned(), |code| escaped(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))),
    );
    Ok(())
}

/// The character of `\uXXXX`, of a pair of them where it takes two; U+FFFD where it is half of one; what stands there
/// where there are no four digits.
async fn unicode(input: &Input, sink: &mut dyn Sink) -> Result<(), NotJson> {
    let Some(first) = code(input, 1, 4..=4, 16).await? else {
        sink.json("\\\\");
        return Ok(());
    };
    let mut char = char::from_u32(first);
    // Half a pair at the end of a text that was cut is neither a character nor a mistake.
    let is_half = (0xd800..0xdc00).contains(&first) && input.peek().await.ok_or(NotJson)? == '\\';
    if is_half && input.peek_at(1).await.ok_or(NotJson)? == 'u' {
        input.next().await;
        match code(input, 1, 4..=4, 16).await? {
            Some(second) => char = char::decode_utf16([first as u16, second as u16]).next().and_then(Result::ok),
            None => {
                sink.json(&escaped(char::REPLACEMENT_CHARACTER));
                sink.json("\\\\");
                return Ok(());
            }
        }
    }
    sink.json(&escaped(char.unwrap_or(char::REPLACEMENT_CHARACTER)));
    Ok(())
}

/// So many digits after a letter or none, which are taken where they stand there.
async fn code(input: &Input, letters: usize, count: RangeInclusive<usize>, radix: u32) -> Result<Option<u32>, NotJson> {
    let mut code = 0;
    let mut digits = 0;
    while digits < *count.end() {
        let Some(digit) = input.peek_at(letters + digits).await.ok_or(NotJson)?.to_digit(radix) else { break };
        code = code * radix + digit;
        digits += 1;
    }
    if digits < *count.start() {
        return Ok(None);
    }
    for _ in 0..letters + digits {
        input.next().await;
    }
    Ok(Some(code))
}
