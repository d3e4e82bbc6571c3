//! JSON as Python's `json.dumps` writes it, for chat templates: models were trained on its spaces and its numbers.

use std::fmt::Write;

use serde_json::Value;

/// The arguments of `json.dumps` that templates use.
#[derive(Debug, Clone, Default)]
pub(super) struct Dumps {
    /// Spaces a level; `None` writes one line.
    pub indent: Option<usize>,
    /// Between items, and between key and value; `None` is Python's choice.
    pub separators: Option<(String, String)>,
    pub sort_keys: bool,
    pub ensure_ascii: bool,
}

impl Dumps {
    pub(super) fn write(&self, value: &Value) -> String {
        let (item, key) = match &self.separators {
            Some((item, key)) => (item.as_str(), key.as_str()),
            None if self.indent.is_some() => (",", ": "),
            None => (", ", ": "),
        };
        let mut writer = Writer { dumps: self, item, key, out: String::new() };
        writer.value(value, 0);
        writer.out
    }
}

struct Writer<'a> {
    dumps: &'a Dumps,
    item: &'a str,
    key: &'a str,
    out: String,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, level: usize) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
                Some(float) => self.out.push_str(&float_repr(float)),
                None => self.out.push_str(&number.to_string()),
            },
            Value::String(text) => self.string(text),
            Value::Array(items) => self.container(['[', ']'], level, items.iter(), |writer, item| {
                writer.value(item, level + 1);
            }),
            Value::Object(map) => {
                let mut entries: Vec<_> = map.iter().collect();
                if self.dumps.sort_keys {
                    entries.sort_by_key(|(key, _)| *key);
                }
                self.container(['{', '}'], level, entries.into_iter(), |writer, (key, value)| {
                    writer.string(key);
                    writer.out.push_str(writer.key);
                    writer.value(value, level + 1);
                });
            }
        }
    }

    fn container<T>(
        &mut self,
        brackets: [char; 2],
        level: usize,
        items: impl ExactSizeIterator<Item = T>,
        write: impl Fn(&mut Self, T),
    ) {
        self.out.push(brackets[0]);
        let empty = items.len() == 0;
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.out.push_str(self.item);
            }
            self.line(level + 1);
            write(self, item);
        }
        if !empty {
            self.line(level);
        }
        self.out.push(brackets[1]);
    }

    fn line(&mut self, level: usize) {
        if let Some(indent) = self.dumps.indent {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(' ', indent * level));
        }
    }

    fn string(&mut self, text: &str) {
        let quoted = Value::from(text).to_string();
        if !self.dumps.ensure_ascii {
            self.out.push_str(&quoted);
            return;
        }
        for char in quoted.chars() {
            if char.is_ascii() && char != '\u{7f}' {
                self.out.push(char);
            } else {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    write!(self.out, "\\u{unit:04x}").expect("writing to a string cannot fail");
                }
            }
        }
    }
}

/// A value as Python's `repr` writes it.
pub(super) fn repr(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(_) => Dumps::default().write(value),
        Value::String(text) => repr_text(text),
        Value::Array(items) => format!("[{}]", items.iter().map(repr).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| format!("{}: {}", repr_text(key), repr(value));
            format!("{{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Single quotes, or double ones where only that spares an escape.
fn repr_text(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for char in text.chars() {
        match char {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            char if char == quote => out.extend(['\\', char]),
            char if char.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(char))),
            char => out.push(char),
        }
    }
    out.push(quote);
    out
}

/// A float as Python writes it: the shortest digits that read back the same, with an exponent below 1e-4 and from
/// 1e16 on.
fn float_repr(float: f64) -> String {
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
    use serde_json::json;

    #[test]
    fn dumps() {
        let value = json!({"b": [1, 2.0, true, null], "a": {"é\"\n": "\u{1f600}"}, "e": [], "o": {}});
        let check = |dumps: Dumps, expected: &str| assert_eq!(dumps.write(&value), expected);
        check(
            Dumps::default(),
            "{\"b\": [1, 2.0, true, null], \"a\": {\"é\\\"\\n\": \"\u{1f600}\"}, \"e\": [], \"o\": {}}",
        );
        check(
            Dumps { indent: Some(2), sort_keys: true, ..Dumps::default() },
            "{\n  \"a\": {\n    \"é\\\"\\n\": \"\u{1f600}\"\n  },\n  \"b\": [\n    1,\n    2.0,\n    true,\n    null\n  ],\n  \
             \"e\": [],\n  \"o\": {}\n}",
        );
        check(
            Dumps { separators: Some((",".into(), ":".into())), ensure_ascii: true, ..Dumps::default() },
            "{\"b\":[1,2.0,true,null],\"a\":{\"\\u00e9\\\"\\n\":\"\\ud83d\\ude00\"},\"e\":[],\"o\":{}}",
        );
    }

    /// As CPython prints them.
    #[test]
    fn reprs() {
        let value = json!({"a": ["it's", "\"", "'\"", "\n\t\\é", true, null, 1.5, 2], "o": {}});
        assert_eq!(repr(&value), r#"{'a': ["it's", '"', '\'"', '\n\t\\é', True, None, 1.5, 2], 'o': {}}"#);
    }

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
