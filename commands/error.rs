//! How a command ends: what went wrong in a line, what to do about it in the next.

use std::process::ExitCode;

use mettle::{
    chat::{self, Field},
    checkpoint, hub, mlx, server,
};

/// A command that failed.
#[derive(Debug)]
pub struct Failure {
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), hint: None }
    }

    /// Adds what to do about it.
    pub fn hint(self, hint: impl Into<String>) -> Failure {
        Failure { hint: Some(hint.into()), ..self }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<hub::Error> for Failure {
    fn from(error: hub::Error) -> Failure {
        Failure { message: error.to_string(), hint: error.hint() }
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
plain!(checkpoint::Error, mlx::Error, chat::LoadError, server::Error, std::io::Error);

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

/// Prints a failure to stderr. The code is 0 or 1.
pub fn exit_code(outcome: Result<(), Failure>) -> ExitCode {
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    eprintln!("error: {}", failure.message);
    if let Some(hint) = failure.hint {
        eprintln!("hint: {hint}");
    }
    ExitCode::FAILURE
}
