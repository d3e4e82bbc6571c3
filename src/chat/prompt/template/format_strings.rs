//! What minijinja's formatting cannot take: it writes as many characters as a width asks for, unpaid by `.format`, and
//! panics over a precision that is too great for Rust's own formatting and over a key that is not ASCII.

use minijinja::{Error, ErrorKind, State};

/// What a width or a precision may be.
pub(super) const MOST: u64 = 9999;

/// A key's text, and what says how the value is written.
type Field<'a> = (&'a str, &'a str);

/// Checks and pays for a format string with braces: `'{:>5}'`, `'{0[key]}'`.
pub(super) fn check_braces(state: &State, format: &str) -> Result<(), Error> {
    let format = format.replace("{{", "");
    format.split('{').skip(1).try_for_each(|part| {
        let field = part.split('}').next().unwrap_or_default();
        check(state, field.split_once(':').unwrap_or((field, "")))
    })
}

fn check(state: &State, (key, spec): Field<'_>) -> Result<(), Error> {
    if !key.is_ascii() || key.matches('[').count() != key.matches(']').count() {
        return Err(wrong(format!("the key {key:?} cannot be read")));
    }
    for digits in spec.split(|char: char| !char.is_ascii_digit()).filter(|digits| !digits.is_empty()) {
        let width = digits.parse().unwrap_or(u64::MAX);
        if width > MOST {
            return Err(wrong(format!("{digits} characters are too many; {MOST} is the most")));
        }
        state.consume_fuel(width / 64)?;
    }
    Ok(())
}

fn wrong(what: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("in a format string, {what}"))
}
