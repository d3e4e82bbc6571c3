//! A glance at a body before anything is made of it: what decides whether there is room for the request at all.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// What a request that may have to be turned away is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peek {
    /// The model's name; `None` leaves the choice to the server.
    pub model: Option<String>,
    /// How many answers are asked for, at least 1.
    pub answers: usize,
}

/// Looks for these fields of a JSON object, without keeping anything else of it. `None` where the body is no JSON
/// object: whoever reads it in full says what is wrong.
pub fn json(body: &[u8], model: &'static str, answers: Option<&'static str>) -> Option<Peek> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    deserializer.deserialize_map(Head { model, answers }).ok()
}

struct Head {
    model: &'static str,
    answers: Option<&'static str>,
}

impl<'de> Visitor<'de> for Head {
    type Value = Peek;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Peek, A::Error> {
        let mut peek = Peek { model: None, answers: 1 };
        // A field that comes twice counts the last time, as it does where the body is read in full.
        while let Some(name) = map.next_key::<String>()? {
            if name == self.model {
                peek.model = match map.next_value()? {
                    Scalar::Text(text) => Some(text).filter(|text| !text.is_empty()),
                    _ => None,
                };
            } else if Some(name.as_str()) == self.answers {
                peek.answers = match map.next_value()? {
                    Scalar::Number(number) => usize::try_from(number).unwrap_or(usize::MAX).max(1),
                    _ => 1,
                };
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(peek)
    }
}

/// A value, as far as a glance goes.
enum Scalar {
    Text(String),
    Number(u64),
    Other,
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::Text(text.to_owned()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
        Ok(Scalar::Number(number))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Scalar, E> {
        Ok(Scalar::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Scalar, E> {
        Ok(Scalar::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Scalar, E> {
        Ok(Scalar::Other)
    }

    fn visit_unit<E>(self) -> Result<Scalar, E> {
        Ok(Scalar::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Scalar, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glance() {
        let peek = |body: &str| json(body.as_bytes(), "model", Some("n"));
        let of = |model: Option<&str>, answers| Some(Peek { model: model.map(str::to_owned), answers });
        assert_eq!(peek("{}"), of(None, 1));
        assert_eq!(peek(r#"{"messages": [{"model": "x", "n": 5}], "n": 3, "model": "a/b"}"#), of(Some("a/b"), 3));
        assert_eq!(peek(r#"{"model": "", "n": null}"#), of(None, 1));
        assert_eq!(peek(r#"{"model": [1], "n": {"n": 2}}"#), of(None, 1));
        assert_eq!(peek(r#"{"model": "a", "model": "b", "n": -1}"#), of(Some("b"), 1));
        assert_eq!(peek(r#"{"n": 18446744073709551615}"#), of(None, usize::MAX));
        for wrong in ["", "[]", "{", "7", "{\"a\": }", &format!("{{\"a\": {}", "[".repeat(100_000))] {
            assert_eq!(peek(wrong), None, "{}", &wrong[..wrong.len().min(20)]);
        }
    }
}
