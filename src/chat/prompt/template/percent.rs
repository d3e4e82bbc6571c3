//! Python's formatting with percent signs, for the filter `format` and the operator `%`.

use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use super::{format_strings::MOST, functions::wrong};
use crate::chat::python::{float_repr, repr_of, text_of};

/// `format % values`: a tuple's items one by one, a dict's by their names, anything else alone.
pub(super) fn formatted(state: &State, format: &str, values: &Value) -> Result<String, Error> {
    let items = if values.is_tuple() { values.try_iter()?.collect() } else { vec![values.clone()] };
    let mut formatting = Formatting { state, values, items: items.into_iter(), named: values.kind() == ValueKind::Map };
    let mut out = String::with_capacity(format.len());
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        rest = formatting.field(after, &mut out)?;
    }
    out.push_str(rest);
    // Only what has no items may be left over, as a dict or a list.
    let left = formatting.items.next().is_some();
    let may_stay = formatting.named || values.kind() == ValueKind::Seq && !values.is_tuple();
    if left && !may_stay {
        return Err(wrong("there are more values than the format string takes"));
    }
    Ok(out)
}

/// The values that are left.
struct Formatting<'a> {
    state: &'a State<'a, 'a>,
    values: &'a Value,
    items: std::vec::IntoIter<Value>,
    named: bool,
}

/// What stands between a percent sign and its letter.
#[derive(Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
}

impl Formatting<'_> {
    /// Writes the field that `text` begins with, and returns what follows it.
    fn field<'t>(&mut self, text: &'t str, out: &mut String) -> Result<&'t str, Error> {
        let (key, mut rest) = match text.strip_prefix('(') {
            Some(named) => {
                let (key, rest) = named.split_once(')').ok_or_else(|| wrong("a key of the format has no end"))?;
                (Some(key), rest)
            }
            None => (None, text),
        };
        let mut spec = Spec::default();
        while let Some(flag) = rest.chars().next().filter(|char| "-+ 0#".contains(*char)) {
            match flag {
                '-' => spec.left = true,
                '+' => spec.plus = true,
                ' ' => spec.space = true,
                '0' => spec.zero = true,
                _ => spec.alternate = true,
            }
            rest = &rest[1..];
        }
        rest = self.width(rest, &mut spec)?;
        if let Some(precise) = rest.strip_prefix('.') {
            let (precision, after) = self.number(precise)?;
            spec.precision = Some(usize::try_from(precision).unwrap_or(0));
            rest = after;
        }
        rest = rest.trim_start_matches(['h', 'l', 'L']);
        let letter = rest.chars().next().ok_or_else(|| wrong("the format ends within a field"))?;
        self.state.consume_fuel(1 + (spec.width + spec.precision.unwrap_or(0)) as u64 / 64)?;
        let value = match key {
            _ if letter == '%' => Value::from("%"),
            Some(key) if self.named => self.named(key)?,
            Some(_) => return Err(wrong("the format names its values and gets no dict")),
            None => self.next()?,
        };
        out.push_str(&spec.write(self.state, letter, &value)?);
        Ok(&rest[letter.len_utf8()..])
    }

    fn named(&self, key: &str) -> Result<Value, Error> {
        let value = self.values.get_attr(key)?;
        if value.is_undefined() {
            return Err(wrong(format!("the format names {key:?}, which it is not given")));
        }
        Ok(value)
    }

    fn width<'t>(&mut self, text: &'t str, spec: &mut Spec) -> Result<&'t str, Error> {
        let (width, rest) = self.number(text)?;
        spec.left |= width < 0;
        spec.width = usize::try_from(width.unsigned_abs()).unwrap_or(0);
        Ok(rest)
    }

    /// Digits, or a star, which takes a value.
    fn number<'t>(&mut self, text: &'t str) -> Result<(i64, &'t str), Error> {
        let (number, rest) = match text.strip_prefix('*') {
            Some(rest) => (self.next()?.as_i64().ok_or_else(|| wrong("a * takes a number"))?, rest),
            None => {
                let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
                (text[..end].parse().unwrap_or(if end == 0 { 0 } else { i64::MAX }), &text[end..])
            }
        };
        if number.unsigned_abs() > MOST {
            return Err(wrong(format!("{number} characters in a format are too many; {MOST} is the most")));
        }
        Ok((number, rest))
    }

    fn next(&mut self) -> Result<Value, Error> {
        self.items.next().ok_or_else(|| wrong("there are fewer values than the format string takes"))
    }
}

impl Spec {
    fn write(&self, state: &State, letter: char, value: &Value) -> Result<String, Error> {
        let text = match letter {
            '%' => return Ok("%".to_owned()),
            's' => text_of(state, value)?.into_owned(),
            'r' => repr_of(state, value)?,
            'a' => ascii(&repr_of(state, value)?),
            'c' => match value.as_str() {
                Some(text) if text.chars().count() == 1 => text.to_owned(),
                Some(_) => return Err(wrong("%c takes one character")),
                None => {
                    let char = value.as_i64().and_then(|code| char::from_u32(u32::try_from(code).ok()?));
                    char.ok_or_else(|| wrong("%c takes one character or its number"))?.to_string()
                }
            },
            'd' | 'i' | 'u' | 'o' | 'x' | 'X' => return self.whole(letter, value),
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => return self.float(letter, value),
            other => return Err(wrong(format!("a format has no %{other}"))),
        };
        let text = match self.precision {
            Some(most) => text.chars().take(most).collect(),
            None => text,
        };
        Ok(self.padded("", &text, false))
    }

    fn whole(&self, letter: char, value: &Value) -> Result<String, Error> {
        let number = match number_of(value) {
            Some(_) if value.is_integer() => i128::try_from(value.clone()).ok(),
            Some(float) if float.is_finite() && matches!(letter, 'd' | 'i' | 'u') => Some(float as i128),
            Some(_) if value.kind() == ValueKind::Bool => Some(i128::from(value.is_true())),
            _ => None,
        };
        let number = number.ok_or_else(|| wrong(format!("%{letter} takes a whole number")))?;
        let size = number.unsigned_abs();
        let (prefix, digits) = match letter {
            'o' => ("0o", format!("{size:o}")),
            'x' => ("0x", format!("{size:x}")),
            'X' => ("0X", format!("{size:X}")),
            _ => ("", size.to_string()),
        };
        let zeros = "0".repeat(self.precision.unwrap_or(0).saturating_sub(digits.len()));
        let prefix = if self.alternate { prefix } else { "" };
        let head = format!("{}{prefix}", self.sign(number < 0));
        Ok(self.padded(&head, &format!("{zeros}{digits}"), true))
    }

    fn float(&self, letter: char, value: &Value) -> Result<String, Error> {
        let number = number_of(value).ok_or_else(|| wrong(format!("%{letter} takes a number")))?;
        let size = number.abs();
        let precision = self.precision.unwrap_or(6);
        let digits = match letter.to_ascii_lowercase() {
            _ if !size.is_finite() => float_repr(size),
            'f' => format!("{size:.precision$}"),
            'e' => scientific(size, precision),
            _ => general(size, precision.max(1), self.alternate),
        };
        let digits = if letter.is_ascii_uppercase() { digits.to_uppercase() } else { digits };
        let negative = number.is_sign_negative() && !number.is_nan();
        Ok(self.padded(self.sign(negative), &digits, size.is_finite()))
    }

    fn sign(&self, negative: bool) -> &'static str {
        if negative {
            "-"
        } else if self.plus {
            "+"
        } else if self.space {
            " "
        } else {
            ""
        }
    }

    /// A number is filled by zeros behind its sign, if so asked.
    fn padded(&self, head: &str, body: &str, number: bool) -> String {
        let missing = self.width.saturating_sub(head.chars().count() + body.chars().count());
        if self.left {
            format!("{head}{body}{}", " ".repeat(missing))
        } else if self.zero && number {
            format!("{head}{}{body}", "0".repeat(missing))
        } else {
            format!("{}{head}{body}", " ".repeat(missing))
        }
    }
}

fn number_of(value: &Value) -> Option<f64> {
    match value.kind() {
        ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
        ValueKind::Number => f64::try_from(value.clone()).ok(),
        _ => None,
    }
}

/// With an exponent of two digits at least, as C writes it.
fn scientific(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    let (digits, exponent) = text.split_once('e').expect("a number written with an exponent has one");
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// So many digits that count, without zeros at the end, as C's `%g`.
fn general(number: f64, precision: usize, keeps_zeros: bool) -> String {
    let rounded = scientific(number, precision - 1);
    let (digits, exponent) = rounded.split_once('e').expect("it was written with one");
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let trimmed = |digits: &str| {
        let ends_in_zeros = digits.contains('.') && !keeps_zeros;
        if ends_in_zeros { digits.trim_end_matches('0').trim_end_matches('.').to_owned() } else { digits.to_owned() }
    };
    if exponent < -4 || exponent >= precision as i64 {
        return format!("{}e{}", trimmed(digits), &rounded[digits.len() + 1..]);
    }
    let places = usize::try_from(precision as i64 - 1 - exponent).unwrap_or(0);
    trimmed(&format!("{number:.places$}"))
}

/// As Python's `ascii` spells it.
fn ascii(text: &str) -> String {
    let mut out = String::new();
    for char in text.chars() {
        match u32::from(char) {
            0..=0x7f => out.push(char),
            code @ 0..=0xff => out.push_str(&format!("\\x{code:02x}")),
            code @ 0..=0xffff => out.push_str(&format!("\\u{code:04x}")),
            code => out.push_str(&format!("\\U{code:08x}")),
        }
    }
    out
}

/// `left % right`: of a string the formatting, of numbers the remainder, which has the divisor's sign.
pub(super) fn operator(state: &State, left: &Value, right: &Value) -> Result<Value, Error> {
    if let Some(format) = left.as_str() {
        return formatted(state, format, right).map(Value::from);
    }
    let (Some(dividend), Some(divisor)) = (number_of(left), number_of(right)) else {
        return Err(wrong(format!("% takes two numbers, or a format string, and not {}", left.kind())));
    };
    if divisor == 0.0 {
        return Err(wrong("the divisor of % is zero"));
    }
    let whole = |value: &Value| match value.kind() {
        ValueKind::Bool => Some(i128::from(value.is_true())),
        _ if value.is_integer() => i128::try_from(value.clone()).ok(),
        _ => None,
    };
    if let (Some(dividend), Some(divisor)) = (whole(left), whole(right)) {
        let rest = dividend.checked_rem(divisor).unwrap_or(0);
        return Ok(Value::from(if rest != 0 && (rest < 0) != (divisor < 0) { rest + divisor } else { rest }));
    }
    let rest = dividend % divisor;
    Ok(Value::from(if rest != 0.0 && (rest < 0.0) != (divisor < 0.0) { rest + divisor } else { rest }))
}
