//! What values of `format` stand for, as patterns of strings and ranges of numbers.

use serde_json::{Value, json};

/// The formats of numbers in OpenAPI, as what they restrict.
pub fn number_format(format: &str) -> Option<Value> {
    let whole = |minimum: f64, maximum: f64| {
        let types = ["integer", "null", "boolean", "array", "object"];
        Some(json!({"type": types, "minimum": minimum, "maximum": maximum}))
    };
    match format {
        "int32" => whole(i32::MIN.into(), i32::MAX.into()),
        // The greatest that a double holds, and its negative, which the range's compiler can negate again.
        "int64" => whole(-9_223_372_036_854_774_784.0, 9_223_372_036_854_774_784.0),
        "float" | "double" => Some(json!({})),
        _ => None,
    }
}

/// A day of the calendar: of February, the 29th in leap years only.
const DAY: &str = "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)\
    |02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";
const TIME: &str =
    r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:[zZ]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";

/// RFC 3339's formats as a pattern. llguidance's own leave open days that no year has, and leap seconds, which only a
/// few moments had.
pub fn calendar_pattern(format: &str) -> Option<String> {
    match format {
        "date" => Some(format!("^{DAY}$")),
        "time" => Some(format!("^{TIME}$")),
        "date-time" => Some(format!("^{DAY}[tT]{TIME}$")),
        _ => None,
    }
}

/// A format of strings as a pattern, for strings without quotes, which llguidance cannot read as JSON.
pub fn text_pattern(format: &str) -> Option<String> {
    const UUID: &str = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$";
    const BYTE: &str = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    const LABEL: &str = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
    const ATOM: &str = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+";
    match format {
        "uuid" => Some(UUID.to_owned()),
        "ipv4" => Some(format!(r"^{BYTE}(?:\.{BYTE}){{3}}$")),
        "hostname" => Some(format!(r"^{LABEL}(?:\.{LABEL}){{0,3}}$")),
        "email" => Some(format!(r"^{ATOM}(?:\.{ATOM})*@{LABEL}(?:\.{LABEL})+$")),
        other => calendar_pattern(other),
    }
}
