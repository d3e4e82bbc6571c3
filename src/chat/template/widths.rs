//! Widths and precisions in format strings. minijinja writes as many characters as one asks for, unpaid by `.format`, and
//! panics over a precision that Rust's own formatting does not take.

use minijinja::{Error, ErrorKind, State};

/// What a width may be.
const MOST: u64 = 9999;

/// Pays for a format string with percent signs: `'%5.2f'`.
pub(super) fn pay_percents(state: &State, format: &str) -> Result<(), Error> {
    let format = format.replace("%%", "");
    let spec = |part: &str| {
        let spec = part.strip_prefix('(').and_then(|named| named.split_once(')')).map_or(part, |(_, spec)| spec);
        spec.split(|char: char| !"+-# .0123456789".contains(char)).next().map(str::to_owned)
    };
    pay(state, format.split('%').skip(1).filter_map(spec))
}

/// Pays for a format string with braces: `'{:>5}'`.
pub(super) fn pay_braces(state: &State, format: &str) -> Result<(), Error> {
    let format = format.replace("{{", "");
    pay(state, format.split('{').skip(1).filter_map(|part| part.split('}').next().map(str::to_owned)))
}

fn pay(state: &State, specs: impl Iterator<Item = String>) -> Result<(), Error> {
    for spec in specs {
        for digits in spec.split(|char: char| !char.is_ascii_digit()).filter(|digits| !digits.is_empty()) {
            let width = digits.parse().unwrap_or(u64::MAX);
            if width > MOST {
                let message = format!("a format asks for a width of {digits}; {MOST} is the most");
                return Err(Error::new(ErrorKind::InvalidOperation, message));
            }
            state.consume_fuel(width / 64)?;
        }
    }
    Ok(())
}
