//! Jinja as transformers sets it up for chat templates, with limits on what a template may use.

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior};

use super::{functions, methods};
use crate::chat::python::text_of;

/// Steps and pieces of 64 bytes that one rendering may take. With the public templates 200 short messages take up to
/// 0.6 million, and 1000 of 4 kB up to 4 million (Reka's alone, which adds its prompt up message by message, is refused
/// there). An endless template is stopped within seconds.
pub(super) const FUEL: u64 = 40_000_000;

/// What a template may nest: a macro's call costs 5, an include 10. Half of minijinja's default, as unoptimised frames
/// take much of a thread's stack.
const RECURSION: usize = 250;

/// An environment without templates.
pub(super) fn environment(clock: functions::Clock, fuel: u64) -> Environment<'static> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("jinja's own delimiters are valid"));
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_fuel(Some(fuel));
    environment.set_recursion_limit(RECURSION);
    environment.set_unknown_method_callback(methods::call);
    environment.set_formatter(|out, state, value| {
        out.write_str(&text_of(state, value)?).map_err(|_| Error::from(ErrorKind::WriteFailure))
    });
    functions::add_to(&mut environment, clock);
    environment
}
