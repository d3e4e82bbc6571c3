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
fn calendar_pattern(format: &str) -> Option<String> {
    match format {
        "date" => Some(format!("^{DAY}$")),
        "time" => Some(format!("^{TIME}$")),
        "date-time" => Some(format!("^{DAY}[tT]{TIME}$")),
        _ => None,
    }
}

/// What strings of these formats are is known to llguidance.
const ENFORCED: [&str; 7] = ["duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"];

/// Formats that JSON Schema defines and that cannot be enforced while an answer is written.
const REFUSED: [&str; 6] = ["idn-email", "idn-hostname", "iri", "iri-reference", "uri-template", "regex"];

/// Whether a format says something of values of these types. One that nobody defines is an annotation (2020-12,
/// validation, 7.2.1), and so is one of other types.
pub fn restricts(format: &str, types: &[&str]) -> bool {
    if !types.contains(&"string") {
        return number_format(format).is_some();
    }
    ENFORCED.contains(&format) || is_refused(format) || json_pattern(format).is_some()
}

/// Whether a format is defined, and cannot be enforced.
pub fn is_refused(format: &str) -> bool {
    REFUSED.contains(&format)
}

/// Formats that are patterns here: those that llguidance does not know, and those that it is wider about.
pub fn json_pattern(format: &str) -> Option<String> {
    const POINTER: &str = "(?:/(?:[^~/]|~[01])*)*";
    const SCHEME: &str = "[A-Za-z][A-Za-z0-9+.-]*:";
    const CHAR: &str = "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";
    const NO_COLON: &str = "(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})";
    const HOST: &str = "[A-Za-z0-9._~-]*(?::[0-9]*)?";
    match format {
        "json-pointer" => Some(format!("^{POINTER}$")),
        "relative-json-pointer" => Some(format!("^(?:0|[1-9][0-9]*)(?:#|{POINTER})$")),
        // RFC 3986, 4.1, without users in hosts and addresses in brackets.
        "uri-reference" => {
            let any = format!("//{HOST}(?:/{CHAR}*)*|/(?:{CHAR}+(?:/{CHAR}*)*)?");
            let rest = format!("(?:/{CHAR}*)*");
            let after = format!(r"(?:\?(?:{CHAR}|[/?])*)?(?:#(?:{CHAR}|[/?])*)?");
            Some(format!("^(?:(?:{SCHEME})?(?:{any})|{SCHEME}{CHAR}+{rest}|{SCHEME}|{NO_COLON}+{rest})?{after}$"))
        }
        other => calendar_pattern(other),
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
        other => json_pattern(other),
    }
}
