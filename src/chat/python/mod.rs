//! Values as Python writes them, which is what models were trained on: JSON (`json.dumps`), `str` and `repr`. For chat
//! templates, and for the calls of those families that write Python.

mod json;
mod repr;

use minijinja::{Error, ErrorKind, State};

pub(super) use json::{Dumps, dumps};
pub(super) use repr::{is_space, repr, repr_of, text_of};

/// As deep as a value may be nested to be written; JSON's readers stop at 128 levels.
const DEPTH: usize = 150;

/// Fails where a value is nested too deep to be written. Charges the template for one more piece of it: a list that
/// holds another twice, which does the same, soon has no end.
fn charge(state: &State, depth: usize) -> Result<(), Error> {
    if depth > DEPTH {
        let message = format!("a value is nested deeper than {DEPTH} levels");
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    state.consume_fuel(1)
}

/// A float as Python writes it: the shortest digits that read back the same, with an exponent below 1e-4 and from
/// 1e16 on.
pub(super) fn float_repr(float: f64) -> String {
    if !float.is_finite() {
        return format!("{float}").to_lowercase();
    }
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        return format!("{float:?}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As CPython's `repr` prints them.
    #[test]
    fn floats() {
        for (float, expected) in [
            (0.1, "0.1"),
            (1.0, "1.0"),
            (-2.5, "-2.5"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.25e-7, "1.25e-07"),
            (0.0, "0.0"),
        ] {
            assert_eq!(float_repr(float), expected);
        }
    }
}
