//! A model's chat template: Jinja, with what Hugging Face's `apply_chat_template` adds to it.

mod braces;
mod continued;
mod controls;
mod counters;
mod definition;
mod environment;
mod fallback;
mod format_strings;
mod functions;
mod methods;
mod operators;
mod percent;
mod plain;
mod probe;
mod source;
mod syntax;
mod text_filters;
mod thinking;
mod time;
mod variables;

use minijinja::{Environment, ErrorKind, Value};

use super::conversation::Conversation;
use crate::{
    chat::{ControlToken, Error, Field, LoadError, Rendered},
    checkpoint::Templates,
};
use controls::Controls;
pub(super) use definition::definition;
use fallback::Fallback;
use plain::Search;
use source::Source;
use variables::{Mark, Texts};

/// A model's compiled chat templates.
pub struct Template {
    environment: Environment<'static>,
    clock: functions::Clock,
    default: Entry,
    /// For requests with tools, where the model has one of its own.
    tool_use: Option<Entry>,
    /// Variables for every rendering: `bos_token`, `eos_token` …
    special_tokens: Vec<(String, String)>,
    /// Whether tools given by a request reach the prompt.
    knows_tools: bool,
}

/// One template of the environment.
struct Entry {
    name: &'static str,
    source: Source,
    controls: Controls,
}

impl Template {
    /// A lone template, of a tokenizer without control tokens.
    pub fn new(source: String, bos_token: Option<String>, eos_token: Option<String>) -> Result<Template, LoadError> {
        let tokens = [("bos_token", bos_token), ("eos_token", eos_token)];
        let tokens = tokens.into_iter().filter_map(|(name, token)| Some((name.to_owned(), token?))).collect();
        Template::open(Templates { default: source, ..Templates::default() }, tokens, &[])
    }

    /// Compiles a model's templates. `special_tokens` are variables for them (`bos_token` …), `controls` what the
    /// tokenizer takes for a control token wherever it stands.
    pub fn open(
        templates: Templates,
        special_tokens: Vec<(String, String)>,
        controls: &[ControlToken],
    ) -> Result<Template, LoadError> {
        Template::with_fuel(templates, special_tokens, controls, environment::FUEL)
    }

    /// [`Template::open`], with a limit of its own on what a rendering may take.
    pub(crate) fn with_fuel(
        templates: Templates,
        special_tokens: Vec<(String, String)>,
        controls: &[ControlToken],
        fuel: u64,
    ) -> Result<Template, LoadError> {
        Template::at((|| chrono::Local::now().naive_local(), fuel), templates, special_tokens, controls)
    }

    /// [`Template::with_fuel`], by another clock.
    fn at(
        (clock, fuel): (functions::Clock, u64),
        templates: Templates,
        special_tokens: Vec<(String, String)>,
        controls: &[ControlToken],
    ) -> Result<Template, LoadError> {
        let mut environment = environment::environment(clock, fuel);
        for (name, text) in &templates.files {
            add(&mut environment, name.clone(), text)?;
        }
        let default = Entry::add(&mut environment, ("chat template", &templates.default), &templates, controls)?;
        let tool_use = match &templates.tool_use {
            Some(text) => Some(Entry::add(&mut environment, ("tool_use template", text), &templates, controls)?),
            None => None,
        };
        let mut template = Template { environment, clock, default, tool_use, special_tokens, knows_tools: false };
        template.knows_tools = probe::knows_tools(&template);
        Ok(template)
    }

    /// The prompt for a conversation, up to where the answer begins, or to the end of the last message where that is
    /// to be continued. A developer's message is rendered as the system's where the template does not know developers.
    ///
    /// # Errors
    /// What the template refuses, or fails on.
    pub fn render<'a>(&self, conversation: impl Into<Conversation<'a>>) -> Result<Rendered, Error> {
        let conversation = &conversation.into();
        let own = ["messages", "tools"].into_iter().find(|&name| conversation.variables.contains_key(name));
        if let Some(name) = own {
            let message = format!("the template's variable {name:?} comes from the request itself and cannot be set");
            return Err(Error::Request { field: Field::TemplateVariables, message });
        }
        let entry = self.entry(conversation);
        let search = Search::new(&entry.controls);
        let text = self.render_text(entry, conversation, &|speaker, text| search.look(speaker, text))?;
        let plain = search.plain_ranges(&text, |mark| self.render_text(entry, conversation, mark))?;
        Ok(Rendered { text, plain })
    }

    /// Whether tools given by a request reach the prompt.
    pub fn knows_tools(&self) -> bool {
        self.knows_tools
    }

    /// Whether the template's text has this in it.
    pub fn mentions(&self, text: &str) -> bool {
        self.default.source.mentions(text)
    }

    fn entry(&self, conversation: &Conversation<'_>) -> &Entry {
        self.tool_use.as_ref().filter(|_| !conversation.tools.is_empty()).unwrap_or(&self.default)
    }

    fn render_text(&self, entry: &Entry, conversation: &Conversation<'_>, mark: Mark<'_>) -> Result<String, Error> {
        let continued = continued::content(conversation)?;
        let mut first = None;
        let settled = Fallback::all(conversation).find_map(|fallback| {
            match self.render_as(entry, conversation, fallback, mark) {
                // It would only take as long again.
                Err(error) if raised(&error).is_some() || error.kind() == ErrorKind::OutOfFuel => Some(Err(error)),
                Err(error) => {
                    first.get_or_insert(error);
                    None
                }
                rendered => Some(rendered),
            }
        });
        let rendered = settled.or(first.map(Err)).expect("a conversation that is never rendered is a bug");
        let mut text = rendered.map_err(|error| refused(&error))?;
        if let Some(content) = continued {
            let marked = mark(variables::Speaker::Assistant, &content);
            continued::cut(&mut text, marked.as_deref().unwrap_or(&content))?;
        }
        Ok(text)
    }

    fn render_as(
        &self,
        entry: &Entry,
        conversation: &Conversation<'_>,
        fallback: Fallback,
        mark: Mark<'_>,
    ) -> Result<String, minijinja::Error> {
        let tokens = self.special_tokens.iter().map(|(name, token)| (name.clone(), Value::from(token.as_str())));
        let texts = Texts { source: &entry.source, fallback, mark };
        let variables = variables::variables(conversation, &texts, (self.clock)());
        let template = self.environment.get_template(entry.name).expect("a template that is not there is a bug");
        template.render(Value::from_pairs(tokens.chain(variables)))
    }
}

impl Entry {
    fn add(
        environment: &mut Environment<'static>,
        (name, text): (&'static str, &str),
        templates: &Templates,
        controls: &[ControlToken],
    ) -> Result<Entry, LoadError> {
        add(environment, name.to_owned(), text)?;
        let mut all = text.to_owned();
        // A text that is not mentioned is not included.
        for (_, included) in templates.files.iter().filter(|(file, _)| text.contains(file.as_str())) {
            all.push_str(included);
        }
        let controls = Controls::new(controls, &all);
        let variables = environment.get_template(name).expect("it was added").undeclared_variables(false);
        Ok(Entry { name, source: Source::new(all, variables), controls })
    }
}

fn add(environment: &mut Environment<'static>, name: String, text: &str) -> Result<(), LoadError> {
    let text = syntax::rewritten(text);
    environment.add_template_owned(name, text).map_err(|error| LoadError::Template(error.to_string()))
}

impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Template").field("special_tokens", &self.special_tokens).finish_non_exhaustive()
    }
}

/// The template's own words where it raised an exception.
fn raised(error: &minijinja::Error) -> Option<&str> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if let Some(functions::Raised(message)) = current.downcast_ref() {
            return Some(message);
        }
        cause = current.source();
    }
    None
}

fn refused(error: &minijinja::Error) -> Error {
    let message = match raised(error) {
        Some(message) => format!("the model's chat template refuses these messages: {message}"),
        None => format!("the model's chat template failed on these messages: {error}"),
    };
    Error::Request { field: Field::Messages, message }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;

#[cfg(test)]
mod expression_tests;

#[cfg(test)]
mod limit_tests;

#[cfg(test)]
mod plain_tests;

#[cfg(test)]
mod public_tests;
