//! A model's chat template: Jinja, with what Hugging Face's `apply_chat_template` adds to it.

mod continued;
mod controls;
mod definition;
mod environment;
mod format_strings;
mod functions;
mod knowledge;
mod methods;
mod plain;
mod source;
mod syntax;
mod telling;
mod text;
mod thinking;
mod variables;

use minijinja::{Environment, ErrorKind, Value};

use crate::chat::{ControlToken, Error, Field, LoadError, Request};
use crate::checkpoint::Templates;
use controls::Controls;
pub(super) use definition::definition;
use knowledge::Knowledge;
use plain::Search;
use source::Source;
use telling::Telling;
pub use thinking::ThinkingControl;
use variables::Mark;

/// A model's compiled chat templates.
pub struct Template {
    environment: Environment<'static>,
    clock: functions::Clock,
    default: Entry,
    /// For requests with tools, where the model has one of its own.
    tool_use: Option<Entry>,
    /// Variables for every rendering: `bos_token`, `eos_token` …
    special_tokens: Vec<(String, String)>,
    knowledge: Knowledge,
}

/// One template of the environment.
struct Entry {
    name: &'static str,
    source: Source,
    controls: Controls,
}

/// A prompt as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub text: String,
    /// Bytes of `text` that are someone's words, though they read like control tokens: to be encoded as plain text.
    /// In order, without overlaps.
    pub plain: Vec<std::ops::Range<usize>>,
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
        Template::at(|| chrono::Local::now().naive_local(), fuel, templates, special_tokens, controls)
    }

    /// [`Template::with_fuel`], by another clock.
    fn at(
        clock: functions::Clock,
        fuel: u64,
        templates: Templates,
        special_tokens: Vec<(String, String)>,
        controls: &[ControlToken],
    ) -> Result<Template, LoadError> {
        let mut environment = environment::environment(clock, fuel);
        for (name, text) in &templates.files {
            add(&mut environment, name.clone(), text)?;
        }
        let default = Entry::add(&mut environment, "chat template", &templates.default, &templates, controls)?;
        let tool_use = match &templates.tool_use {
            Some(text) => Some(Entry::add(&mut environment, "tool_use template", text, &templates, controls)?),
            None => None,
        };
        let knowledge = Knowledge::default();
        let mut template = Template { environment, clock, default, tool_use, special_tokens, knowledge };
        template.knowledge = Knowledge::of(&template);
        Ok(template)
    }

    /// The prompt for a conversation, up to where the answer begins, or to the end of the last message where that is
    /// to be continued. A developer's message is rendered as the system's where the template does not know developers.
    pub fn render(&self, request: &Request) -> Result<Rendered, Error> {
        if let Some(name) =
            ["messages", "tools"].into_iter().find(|&name| request.template_variables.contains_key(name))
        {
            let message = format!("the template's variable {name:?} comes from the request itself and cannot be set");
            return Err(Error::Request { field: Field::TemplateVariables, message });
        }
        let entry = self.entry(request);
        let search = Search::new(&entry.controls);
        let text = self.render_text(entry, request, &|speaker, text| search.look(speaker, text))?;
        let plain = search.plain_ranges(&text, |mark| self.render_text(entry, request, mark))?;
        Ok(Rendered { text, plain })
    }

    /// Whether tools given by a request reach the prompt.
    pub fn knows_tools(&self) -> bool {
        self.knowledge.tools
    }

    /// Whether the template's text has this in it.
    pub fn mentions(&self, text: &str) -> bool {
        self.default.source.mentions(text)
    }

    /// Whether messages of the role tool reach the prompt.
    pub fn knows_tool_role(&self) -> bool {
        self.knowledge.tool_role
    }

    /// Whether reasoning of an answer in progress (before its tool's result) reaches the prompt.
    pub fn knows_reasoning(&self) -> bool {
        self.knowledge.reasoning
    }

    /// What of a request's wishes about thinking changes the prompt.
    pub fn thinking_control(&self) -> ThinkingControl {
        self.knowledge.thinking
    }

    fn entry(&self, request: &Request) -> &Entry {
        let with_tools = !variables::shown_tools(request).is_empty();
        self.tool_use.as_ref().filter(|_| with_tools).unwrap_or(&self.default)
    }

    fn render_text(&self, entry: &Entry, request: &Request, mark: Mark<'_>) -> Result<String, Error> {
        let continued = continued::content(request)?;
        let mut first = None;
        let told = Telling::all(request).find_map(|telling| match self.render_as(entry, request, telling, mark) {
            // It would only take as long again.
            Err(error) if raised(&error).is_some() || error.kind() == ErrorKind::OutOfFuel => Some(Err(error)),
            Err(error) => {
                first.get_or_insert(error);
                None
            }
            rendered => Some(rendered),
        });
        let rendered = told.or(first.map(Err)).expect("a request that is not told is a bug");
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
        request: &Request,
        telling: Telling,
        mark: Mark<'_>,
    ) -> Result<String, minijinja::Error> {
        let tokens = self.special_tokens.iter().map(|(name, token)| (name.clone(), Value::from(token.as_str())));
        let variables = variables::variables(request, &entry.source, telling, (self.clock)(), mark);
        let template = self.environment.get_template(entry.name).expect("a template that is not there is a bug");
        template.render(Value::from_pairs(tokens.chain(variables)))
    }
}

impl Entry {
    fn add(
        environment: &mut Environment<'static>,
        name: &'static str,
        text: &str,
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
