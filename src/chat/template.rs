//! A model's chat template: Jinja, with what Hugging Face's `apply_chat_template` adds to it.

use std::fmt::Write;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, Serde};
use minijinja::{Environment, ErrorKind, Value};

use super::python::Dumps;
use super::{Error, LoadError, Request, Role};

const NAME: &str = "chat";

/// A compiled chat template.
pub struct Template {
    environment: Environment<'static>,
    bos_token: Option<String>,
    eos_token: Option<String>,
    knows_developer: bool,
}

/// What a template says by `raise_exception`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Raised(String);

impl Template {
    /// Compiles a template. `bos_token` and `eos_token` are the texts that it may write.
    pub fn new(source: String, bos_token: Option<String>, eos_token: Option<String>) -> Result<Template, LoadError> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.expect("jinja's own delimiters are valid"));
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", strftime_now);
        environment.add_filter("tojson", tojson);
        // Jinja's none is not iterable, and `tools is iterable and tools | length > 0` relies on it.
        environment.add_test("iterable", |value: Value| !value.is_none() && value.try_iter().is_ok());
        let knows_developer = source.contains("developer");
        environment
            .add_template_owned(NAME, without_generation_blocks(&source))
            .map_err(|error| LoadError::Template(error.to_string()))?;
        Ok(Template { environment, bos_token, eos_token, knows_developer })
    }

    /// The prompt for a conversation, up to where the answer begins. A developer's message is rendered as the
    /// system's where the template does not know developers.
    pub fn render(&self, request: &Request) -> Result<String, Error> {
        let messages: Vec<Value> = request
            .messages
            .iter()
            .map(|message| {
                let mut fields = vec![
                    ("role", Value::from(self.role(message.role))),
                    ("content", Value::from(message.content.as_str())),
                ];
                fields.extend(message.name.as_deref().map(|name| ("name", Value::from(name))));
                Value::from_pairs(fields)
            })
            .collect();
        let mut variables = vec![
            ("messages".to_owned(), Value::from(messages)),
            ("add_generation_prompt".to_owned(), Value::from(true)),
            ("tools".to_owned(), Value::from(())),
            ("documents".to_owned(), Value::from(())),
        ];
        variables.extend(self.bos_token.as_deref().map(|token| ("bos_token".to_owned(), Value::from(token))));
        variables.extend(self.eos_token.as_deref().map(|token| ("eos_token".to_owned(), Value::from(token))));
        if request.template_variables.contains_key("messages") {
            let message =
                "the template's variable \"messages\" is the conversation itself and cannot be set".to_owned();
            return Err(Error::Request { field: "template_variables", message });
        }
        // Later entries of the same name win.
        variables
            .extend(request.template_variables.iter().map(|(name, value)| (name.clone(), Value::from(Serde(value)))));
        let template = self.environment.get_template(NAME).expect("a template that is not there is a bug");
        template.render(Value::from_pairs(variables)).map_err(|error| refused(&error))
    }

    fn role(&self, role: Role) -> &'static str {
        match role {
            Role::System => "system",
            Role::Developer if self.knows_developer => "developer",
            Role::Developer => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Template").field("bos_token", &self.bos_token).field("eos_token", &self.eos_token).finish()
    }
}

/// The template's own words where it raised an exception, else what went wrong in it.
fn refused(error: &minijinja::Error) -> Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(Raised(message)) = current.downcast_ref() {
            let message = format!("the model's chat template refuses these messages: {message}");
            return Error::Request { field: "messages", message };
        }
        cause = current.source();
    }
    Error::Request {
        field: "messages",
        message: format!("the model's chat template failed on these messages: {error}"),
    }
}

fn raise_exception(message: String) -> Result<Value, minijinja::Error> {
    Err(minijinja::Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
}

/// The local time in a format of C's `strftime`.
fn strftime_now(format: &str) -> Result<String, minijinja::Error> {
    let mut text = String::new();
    match write!(text, "{}", chrono::Local::now().format(format)) {
        Ok(()) => Ok(text),
        Err(_) => Err(minijinja::Error::new(ErrorKind::InvalidOperation, format!("{format:?} is no time format"))),
    }
}

/// `json.dumps` with the defaults of Hugging Face's filter: non-ASCII text stays as it is.
fn tojson(value: Value, arguments: Rest<Value>, options: Kwargs) -> Result<String, minijinja::Error> {
    if value.is_undefined() {
        return Err(minijinja::Error::new(ErrorKind::UndefinedError, "undefined has no JSON"));
    }
    let json = serde_json::to_value(&value)
        .map_err(|error| minijinja::Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    let separators = match options.get::<Option<Vec<String>>>("separators")?.as_deref() {
        Some([item, key]) => Some((item.clone(), key.clone())),
        None => None,
        Some(_) => {
            return Err(minijinja::Error::new(ErrorKind::InvalidOperation, "separators are a pair"));
        }
    };
    let dumps = Dumps {
        indent: options.get("indent")?,
        separators,
        sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        ensure_ascii: match arguments.first() {
            Some(argument) => argument.is_true(),
            None => options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        },
    };
    options.assert_all_used()?;
    Ok(dumps.write(&json))
}

/// `{% generation %}…{% endgeneration %}` marks the assistant's part for training and renders as its content, which is
/// what `{% if true %}` does.
fn without_generation_blocks(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let Some(end) = rest[start..].find("%}").map(|length| start + length) else {
            break;
        };
        let tag = rest[start + 2..end].trim_matches(['-', '+']).trim();
        let replacement = match tag {
            "generation" => Some("if true"),
            "endgeneration" => Some("endif"),
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

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
