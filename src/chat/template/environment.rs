//! Jinja as transformers sets it up for chat templates, with limits on what a template may use.

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};

use super::{functions, methods};

/// Steps and pieces of 64 bytes that one rendering may take: a conversation of 200 messages takes some 100,000, and an
/// endless template stops within two seconds.
pub(super) const FUEL: u64 = 20_000_000;

/// What a template may nest: macros, includes, loops. The default overflows the stack of a thread with 2 MiB.
const RECURSION: usize = 100;

/// An environment without templates.
pub(super) fn environment(clock: functions::Clock) -> Environment<'static> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("jinja's own delimiters are valid"));
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(RECURSION);
    environment.set_unknown_method_callback(methods::call);
    environment.add_function("raise_exception", functions::raise_exception);
    environment.add_function("strftime_now", move |format: &str| functions::strftime_now(clock(), format));
    environment.add_filter("tojson", functions::tojson);
    // Jinja's none is not iterable, and `tools is iterable and tools | length > 0` relies on it.
    environment.add_test("iterable", |value: Value| !value.is_none() && value.try_iter().is_ok());
    environment
}

/// `{% generation %}…{% endgeneration %}` marks the assistant's part for training and renders as its content, with a
/// scope of its own: what `{% with %}` does.
pub(super) fn without_generation_blocks(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let Some(end) = rest[start..].find("%}").map(|length| start + length) else {
            break;
        };
        let tag = rest[start + 2..end].trim_matches(['-', '+']).trim();
        let replacement = match tag {
            "generation" => Some("with"),
            "endgeneration" => Some("endwith"),
            _ => None,
        };
        match replacement {
            Some(replacement) => {
                out.push_str(&rest[..start]);
                out.push_str(&rest[start..end + 2].replacen(tag, replacement, 1));
            }
            None => out.push_str(&rest[..end + 2]),
        }
        rest = &rest[end + 2..];
    }
    out.push_str(rest);
    out
}
