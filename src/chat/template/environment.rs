//! Jinja as transformers sets it up for chat templates, with limits on what a template may use.

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior};

use super::text::text_of;
use super::{functions, methods};

/// Steps and pieces of 64 bytes that one rendering may take. A conversation of 200 messages takes some 100,000; an
/// endless template is stopped within seconds.
pub(super) const FUEL: u64 = 20_000_000;

/// What a template may nest: macros, includes, loops. The default overflows the stack of a thread with 2 MiB.
const RECURSION: usize = 100;

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
