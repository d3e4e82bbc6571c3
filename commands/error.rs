//! How a command ends: what went wrong in a line, what to do about it in the next.

use std::process::ExitCode;

use mettle::{
    chat::{self, Field},
    checkpoint, hub, mlx, server,
};

/// A command that failed.
#[derive(Debug)]
pub struct Failure {
    /// None where nothing is left to say.
    message: Option<String>,
    hint: Option<String>,
    code: u8,
}

/// What a command ends with, beside 0, 1 for a failure, and 2 for a mistake in the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The answer is cut off at the limit of tokens.
    Cut = 3,
    /// The answer was stopped because it repeated itself.
    Looped = 4,
    /// Ctrl-C, as a shell has it.
    Interrupted = 130,
    /// Whoever read the output went away, as a shell has it: SIGPIPE.
    Closed = 141,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure { message: Some(message.into()), hint: None, code: 1 }
    }

    /// Adds what to do about it.
    pub fn hint(self, hint: impl Into<String>) -> Failure {
        Failure { hint: Some(hint.into()), ..self }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message.as_deref().unwrap_or_default())
    }
}

impl From<hub::Error> for Failure {
    fn from(error: hub::Error) -> Failure {
        Failure { hint: error.hint(), ..Failure::new(error.to_string()) }
    }
}

macro_rules! plain {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                Failure::new(error.to_string())
            }
        })*
    };
}
plain!(checkpoint::Error, mlx::Error, chat::LoadError, server::Error);

impl From<Ending> for Failure {
    fn from(ending: Ending) -> Failure {
        Failure { message: None, hint: None, code: ending as u8 }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        match error.kind() {
            // Who reads has enough.
            std::io::ErrorKind::BrokenPipe => Ending::Closed.into(),
            _ => Failure::new(error.to_string()),
        }
    }
}

impl From<chat::Error> for Failure {
    fn from(error: chat::Error) -> Failure {
        match &error {
            chat::Error::Request { field, message } => match flag(*field) {
                Some(flag) => Failure::new(format!("{flag}: {message}")),
                None => Failure::new(message),
            },
            _ => Failure::new(error.to_string()),
        }
    }
}

/// The flag that sets this part of a request, where one does.
fn flag(field: Field) -> Option<&'static str> {
    match field {
        Field::MaxTokens => Some("--max-tokens"),
        Field::Tools => Some("--tools"),
        Field::Format => Some("--json, --schema, --regex or --grammar"),
        Field::Thinking | Field::ThinkingEffort => Some("--think"),
        Field::ThinkingBudget => Some("--thinking-budget"),
        Field::Model
        | Field::Messages
        | Field::Part { .. }
        | Field::Name { .. }
        | Field::Reasoning { .. }
        | Field::Answers
        | Field::LogitBias
        | Field::TopLogprobs
        | Field::TemplateVariables
        | Field::Input(_)
        | Field::Dimensions => None,
    }
}

/// Prints a failure to stderr, if there is anything to say.
pub fn exit_code(outcome: Result<(), Failure>) -> ExitCode {
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    if let Some(message) = failure.message {
        // In a line, as the last one is what scripts show.
        let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        say!("error: {}", lines.join(" "));
    }
    if let Some(hint) = failure.hint {
        say!("hint: {hint}");
    }
    ExitCode::from(failure.code)
}
