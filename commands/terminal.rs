//! What is printed, and how: whoever reads may go away at any time, and what others wrote may not steer a terminal.

use std::{
    borrow::Cow,
    fmt::Arguments,
    io::{self, IsTerminal, Write},
};

/// A line on stderr.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::terminal::say(format_args!($($text)*))
    };
}

/// Prints a line on stderr. Where nobody reads it any more, it is lost.
pub fn say(text: Arguments) {
    let text = text.to_string();
    let _ = writeln!(io::stderr(), "{}", plain(&text));
}

/// Prints on stdout, at once.
///
/// # Errors
/// Whoever read it is gone, or it cannot be written.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Without control characters but line breaks and tabs: others clear a terminal, name its window or write to the
/// clipboard.
pub fn plain(text: &str) -> Cow<'_, str> {
    let steers = |char: char| char.is_control() && !matches!(char, '\n' | '\t');
    if text.contains(steers) { Cow::Owned(text.replace(steers, "")) } else { Cow::Borrowed(text) }
}

/// Whether stdout is a terminal that may be given colours: not one that cannot (`TERM=dumb`), and not where nobody
/// wants any (`NO_COLOR`, <https://no-color.org>).
pub fn has_colours() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !unwanted && !is_dumb()
}

/// Whether the terminal can only go on writing.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_left_out() {
        for (text, expected) in [
            ("a\tb\nc é 😀", "a\tb\nc é 😀"),
            ("\x1b[2J\x1b]0;owned\x07x", "[2J]0;ownedx"),
            ("over\rwritten\x08\x7f\u{9b}31m\0", "overwritten31m"),
        ] {
            assert_eq!(plain(text), expected);
        }
    }
}
