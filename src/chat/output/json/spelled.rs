//! A value as JSON spells it. Its numbers are text, since a double would change long ones and those with zeros at their
//! end; and of members that have the same name the first counts.

use std::{collections::HashSet, fmt};

use serde_json::Value;

use super::{DEPTH, is_number};

/// Digits that an exponent may stand for.
const DIGITS: usize = 400;

/// A value whose numbers keep their spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spelled {
    /// A number, `true`, `false` or `null`.
    Plain(String),
    /// A string, without its quotes.
    Text(String),
    /// An array.
    List(Vec<Spelled>),
    /// An object.
    Members(Vec<(String, Spelled)>),
}

impl Spelled {
    /// The value of a text that is JSON.
    pub fn of(json: &str) -> Option<Spelled> {
        let mut rest = json;
        let value = value(&mut rest, 0)?;
        rest.trim_start().is_empty().then_some(value)
    }

    /// An object of these; of those with the same name the first counts.
    pub fn members(members: impl IntoIterator<Item = (String, Spelled)>) -> Spelled {
        let mut names = HashSet::new();
        Spelled::Members(members.into_iter().filter(|(name, _)| names.insert(name.clone())).collect())
    }
}

impl fmt::Display for Spelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spelled::Plain(text) => f.write_str(text),
            Spelled::Text(text) => write!(f, "{}", Value::from(text.as_str())),
            Spelled::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Spelled::Members(members) => {
                f.write_str("{")?;
                for (index, (name, value)) in members.iter().enumerate() {
                    write!(f, "{}{}:{value}", if index == 0 { "" } else { "," }, Value::from(name.as_str()))?;
                }
                f.write_str("}")
            }
        }
    }
}

fn value(rest: &mut &str, depth: usize) -> Option<Spelled> {
    *rest = rest.trim_start();
    if depth > DEPTH + 1 {
        return None;
    }
    if eat(rest, '{') {
        let mut members = Vec::new();
        while !ends(rest, '}', members.is_empty())? {
            *rest = rest.trim_start();
            let name = string(rest)?;
            eat(rest, ':').then_some(())?;
            members.push((name, value(rest, depth + 1)?));
        }
        return Some(Spelled::members(members));
    }
    if eat(rest, '[') {
        let mut items = Vec::new();
        while !ends(rest, ']', items.is_empty())? {
            items.push(value(rest, depth + 1)?);
        }
        return Some(Spelled::List(items));
    }
    if rest.starts_with('"') {
        return string(rest).map(Spelled::Text);
    }
    let end = rest.find(|char: char| !char.is_ascii_alphanumeric() && !"+-.".contains(char)).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    *rest = after;
    (is_number(word) || ["true", "false", "null"].contains(&word)).then(|| Spelled::Plain(word.to_owned()))
}

/// Takes this character if it is next behind white space.
fn eat(rest: &mut &str, char: char) -> bool {
    let found = rest.trim_start().strip_prefix(char);
    *rest = found.unwrap_or(rest);
    found.is_some()
}

/// Takes the end of a container, or the comma before what is not its first part; `None` where neither is next.
fn ends(rest: &mut &str, end: char, is_first: bool) -> Option<bool> {
    if eat(rest, end) {
        return Some(true);
    }
    (is_first || eat(rest, ',')).then_some(false)
}

fn string(rest: &mut &str) -> Option<String> {
    let mut escaped = true;
    let end = rest.char_indices().find(|(_, char)| {
        let ends = *char == '"' && !escaped;
        escaped = *char == '\\' && !escaped;
        ends
    });
    let (text, after) = rest.split_at(end?.0 + 1);
    *rest = after;
    serde_json::from_str(text).ok()
}

/// The digits of a number that is whole, however it is spelled: `5.0`, `1e3`.
pub(super) fn whole(number: &str) -> Option<String> {
    if !is_number(number) {
        return None;
    }
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{before}{after}");
    // Where the point stands in all of the digits.
    let point = isize::try_from(before.len()).ok()?.checked_add(exponent.parse().ok()?)?;
    let point = usize::try_from(point.max(0)).ok().filter(|point| *point <= all.len() + DIGITS)?;
    let (kept, rest) = all.split_at(point.min(all.len()));
    if rest.contains(|digit| digit != '0') {
        return None;
    }
    let kept = format!("{kept}{}", "0".repeat(point - kept.len()));
    let kept = kept.trim_start_matches('0');
    Some(if kept.is_empty() { format!("{sign}0") } else { format!("{sign}{kept}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_spelling() {
        for text in ["1.10", "-0.0", "1e400", "12345678901234567890123", r#"{"a":[1.0,null],"":{"\"\n":"é"}}"#] {
            assert_eq!(Spelled::of(text).expect(text).to_string(), text);
        }
        let first = Spelled::of(r#"{"a": 1, "b": 2, "a": 3}"#).expect("JSON");
        assert_eq!(first.to_string(), r#"{"a":1,"b":2}"#);
        for text in ["", "1 2", "01", "{\"a\" 1}", "[1,]", "[1 2]", "{,}", "\"a", "nul", "{1:2}"] {
            assert_eq!(Spelled::of(text), None, "{text}");
        }
    }

    #[test]
    fn whole_numbers() {
        for (number, expected) in [("5", "5"), ("5.00", "5"), ("-1.5e1", "-15"), ("1e25", "10000000000000000000000000")]
        {
            assert_eq!(whole(number).as_deref(), Some(expected));
        }
        assert_eq!(whole("12345678901234567890123.0").as_deref(), Some("12345678901234567890123"));
        assert_eq!(whole("0.0e9").as_deref(), Some("0"));
        assert_eq!(whole("100e-2").as_deref(), Some("1"));
        for number in ["1.5", "15e-1", "1e999999999", "x", "true"] {
            assert_eq!(whole(number), None, "{number}");
        }
    }
}
