//! The time as Python's `strftime` writes it with C's locale, of a time without a zone.

use std::fmt::Write;

use chrono::NaiveDateTime;

/// What it writes as chrono does.
const SAME: &str = "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyY";

/// A directive that is none stays as it is, as glibc leaves it.
pub(super) fn strftime(now: NaiveDateTime, format: &str) -> String {
    let mut out = String::with_capacity(format.len() * 2);
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let flags = after.len() - after.trim_start_matches(['-', '_', '0', '^', '#']).len();
        let digits = after[flags..].len() - after[flags..].trim_start_matches(|char: char| char.is_ascii_digit()).len();
        // E and O ask for other calendars and digits, which C's locale does not have.
        let modifier = usize::from(after[flags + digits..].starts_with(['E', 'O']));
        let at = flags + digits + modifier;
        let letter = after[at..].chars().next();
        let written = letter.filter(|_| digits == 0).and_then(|letter| directive(now, &after[..flags], letter));
        match (written, letter) {
            (Some(written), Some(letter)) => {
                out.push_str(&written);
                rest = &after[at + letter.len_utf8()..];
            }
            _ => {
                out.push('%');
                rest = after;
            }
        }
    }
    out + rest
}

fn directive(now: NaiveDateTime, flags: &str, letter: char) -> Option<String> {
    let mut out = String::new();
    match letter {
        '%' => out.push('%'),
        // Of a time without a zone these are empty.
        'z' | 'Z' => {}
        'f' => write!(out, "{:06}", now.and_utc().timestamp_subsec_micros()).ok()?,
        letter if SAME.contains(letter) => {
            let padding = flags.chars().rfind(|flag| "-_0".contains(*flag)).map(String::from).unwrap_or_default();
            write!(out, "{}", now.format(&format!("%{padding}{letter}"))).ok()?;
        }
        _ => return None,
    }
    Some(if flags.contains(['^', '#']) { out.to_uppercase() } else { out })
}
