//! What an answer must be, as a grammar that says for every token which may come next. Compiled and run by llguidance;
//! here are our tokenizer as it sees it, the formats a request may ask for, and what is refused of them.

mod ebnf;
mod guide;
mod recent;
mod schema;
mod vocabulary;

use std::sync::{Arc, OnceLock};

use llguidance::{
    Matcher, ParserFactory, api::TopLevelGrammar, earley::SlicedBiasComputer, toktrie::InferenceCapabilities,
};
use serde_json::{Value, json};

pub(in crate::chat) use guide::{AnswerGuide, Thinking};
pub(in crate::chat) use schema::text_format;

use crate::chat::{Error, Field, Format, Tokenizer};
use recent::Recent;
use schema::Problem;

/// How many subschemas are tried by themselves to find the one that is refused.
const SEARCHED: usize = 64;

/// Compiles grammars for one model. The tokenizer's trie is built when the first one is asked for.
pub(in crate::chat) struct Grammars {
    tokenizer: Arc<Tokenizer>,
    stop_tokens: Vec<u32>,
    factory: OnceLock<Result<ParserFactory, String>>,
    recent: Recent,
}

/// A grammar, ready for any number of answers.
pub(in crate::chat) struct Grammar(Matcher);

impl Grammar {
    /// For one answer, which shares nothing with others.
    pub(in crate::chat) fn matcher(&self) -> Matcher {
        self.0.deep_clone()
    }
}

impl Grammars {
    pub(in crate::chat) fn new(tokenizer: Arc<Tokenizer>, stop_tokens: Vec<u32>) -> Grammars {
        Grammars { tokenizer, stop_tokens, factory: OnceLock::new(), recent: Recent::default() }
    }

    /// The grammar of a format; `None` for text, which may be anything.
    ///
    /// # Errors
    /// A format that is none, or that cannot be enforced: names what is wrong, and of a schema where.
    pub(in crate::chat) fn compile(&self, format: &Format) -> Result<Option<Grammar>, Error> {
        match format {
            Format::Text => Ok(None),
            format => self.recent.get(format!("{format:?}"), || self.create_format(format)).map(Some),
        }
    }

    fn create_format(&self, format: &Format) -> Result<Grammar, Error> {
        let grammar = match format {
            Format::Text => return Err(Error::Internal("text is no grammar; this is a bug".to_owned())),
            Format::JsonObject => return self.schema(&json!({"type": "object"})),
            Format::JsonSchema(schema) => return self.schema(schema),
            Format::Regex(regex) => TopLevelGrammar::from_regex(regex),
            Format::Lark(lark) => return self.create_lark(lark),
            Format::Ebnf(text) => {
                let lark = ebnf::to_lark(text).map_err(|message| wrong(format!("the grammar is wrong: {message}")))?;
                TopLevelGrammar::from_lark(lark)
            }
            Format::Choice(choices) => TopLevelGrammar::from_lark(one_of(choices)?),
        };
        self.create(grammar)?.map_err(|message| wrong(format!("the grammar cannot be used: {message}")))
    }

    /// The grammar of a text in llguidance's dialect of Lark. JSON Schemas in it (`%json { … }`) are checked as those
    /// of a request are; `<[id]>` is one special token.
    pub(in crate::chat) fn lark(&self, lark: &str) -> Result<Grammar, Error> {
        self.recent.get(lark.to_owned(), || self.create_lark(lark))
    }

    fn create_lark(&self, lark: &str) -> Result<Grammar, Error> {
        let lark = with_prepared_schemas(lark).map_err(|problem| wrong(located(&problem)))?;
        let grammar = self.create(TopLevelGrammar::from_lark(lark))?;
        grammar.map_err(|message| wrong(format!("the grammar cannot be used: {message}")))
    }

    fn schema(&self, schema: &Value) -> Result<Grammar, Error> {
        let prepared = schema::prepare(schema).map_err(|problem| wrong(located(&problem)))?;
        self.create(TopLevelGrammar::from_json_schema(prepared.clone()))?.map_err(|message| {
            let path = self.find(&prepared, &message);
            wrong(located(&Problem { path, message: schema::explained(&message) }))
        })
    }

    /// Compiles. The outer error is ours, the inner one the grammar's.
    fn create(&self, grammar: TopLevelGrammar) -> Result<Result<Grammar, String>, Error> {
        let parser = self.factory()?.create_parser(grammar);
        let mut matcher = Matcher::new(parser);
        if let Some(error) = matcher.get_error() {
            return Ok(Err(guide::reason(&error)));
        }
        // A warning is something that was not enforced.
        match matcher.grammar_warnings().first() {
            Some(warning) => Ok(Err(guide::reason(warning))),
            None => Ok(Ok(Grammar(matcher))),
        }
    }

    fn factory(&self) -> Result<&ParserFactory, Error> {
        let factory = self.factory.get_or_init(|| {
            let environment = vocabulary::environment(&self.tokenizer, &self.stop_tokens);
            let abilities = InferenceCapabilities { ff_tokens: true, ..InferenceCapabilities::default() };
            let slices = SlicedBiasComputer::general_slices();
            let mut factory =
                ParserFactory::new(&environment, abilities, &slices).map_err(|error| error.to_string())?;
            factory.quiet();
            factory.limits_mut().verbose_errors = false;
            Ok(factory)
        });
        let failed = |error: &String| Error::Internal(format!("the tokenizer cannot be used with grammars: {error}"));
        factory.as_ref().map_err(failed)
    }

    /// Where in a schema stands what is refused with this message: the innermost subschema that is refused with it by
    /// itself.
    fn find(&self, root: &Value, message: &str) -> String {
        let (mut path, mut schema, mut left) = ("#".to_owned(), root, SEARCHED);
        let definitions = ["$defs", "definitions", "$schema"].map(|key| (key, root.get(key)));
        while let Some(fields) = schema.as_object() {
            let refused = schema::children(fields).into_iter().find(|(_, child)| {
                left = left.saturating_sub(1);
                let Value::Object(mut fields) = (*child).clone() else { return false };
                for (key, value) in definitions {
                    value.into_iter().for_each(|value| drop(fields.insert(key.to_owned(), value.clone())));
                }
                let grammar = TopLevelGrammar::from_json_schema(fields.into());
                left > 0 && matches!(self.create(grammar), Ok(Err(other)) if other == message)
            });
            let Some((step, child)) = refused else { break };
            path.push_str(&step);
            schema = child;
        }
        path
    }
}

impl std::fmt::Debug for Grammars {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Grammars")
    }
}

fn wrong(message: String) -> Error {
    Error::Request { field: Field::Format, message }
}

fn located(problem: &Problem) -> String {
    let Problem { path, message } = problem;
    format!("the schema cannot be used: at {path}: {message}")
}

/// The grammar of one of these texts. One terminal, so that one which begins another is a choice of its own.
fn one_of(choices: &[String]) -> Result<String, Error> {
    if choices.is_empty() {
        return Err(wrong("there are no choices; give at least one".to_owned()));
    }
    let choices: Vec<String> = choices.iter().map(|choice| literal(choice)).collect();
    Ok(format!("start: CHOICE\nCHOICE: {}", choices.join(" | ")))
}

/// A format as an expression of Lark, to stand in a larger grammar.
///
/// # Errors
/// Text, which is no grammar, or one that is wrong.
pub(in crate::chat) fn as_lark(format: &Format) -> Result<String, Error> {
    Ok(match format {
        Format::Text => return Err(Error::Internal("text is no grammar; this is a bug".to_owned())),
        Format::JsonObject => "%json {\"type\": \"object\"}".to_owned(),
        Format::JsonSchema(schema) => format!("%json {schema}"),
        Format::Regex(regex) => format!("%lark {{\nstart: /{}/\n}}", between_slashes(regex)),
        Format::Lark(lark) => format!("%lark {{\n{lark}\n}}"),
        Format::Ebnf(text) => {
            let lark = ebnf::to_lark(text).map_err(|message| wrong(format!("the grammar is wrong: {message}")))?;
            format!("%lark {{\n{lark}\n}}")
        }
        Format::Choice(choices) => format!("%lark {{\n{}\n}}", one_of(choices)?),
    })
}

/// A regular expression as Lark writes it between slashes.
fn between_slashes(regex: &str) -> String {
    let (mut out, mut escaped) = (String::new(), false);
    for char in regex.chars() {
        match char {
            '\n' => out.push_str(if escaped { "n" } else { "\\n" }),
            '/' if !escaped => out.push_str("\\/"),
            char => out.push(char),
        }
        escaped = char == '\\' && !escaped;
    }
    out
}

/// A text as Lark writes one, in JSON's way.
pub(in crate::chat) fn literal(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// The text with each `%json { … }` prepared. Strings, regular expressions and comments are passed over.
fn with_prepared_schemas(lark: &str) -> Result<String, Problem> {
    let (mut out, mut rest) = (String::with_capacity(lark.len()), lark);
    while let Some(next) = rest.chars().next() {
        let length = match next {
            '"' => 1 + end_of_quoted(&rest[1..], '"'),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '/' => 1 + end_of_quoted(&rest[1..], '/'),
            '%' if rest.starts_with("%json") => {
                let json = &rest["%json".len()..];
                let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
                if let Some(Ok(schema)) = values.next() {
                    out.push_str(&format!("%json {}", schema::prepare(&schema)?));
                    rest = &json[values.byte_offset()..];
                    continue;
                }
                1
            }
            other => other.len_utf8(),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    Ok(out)
}

/// Where what is quoted ends, its closing quote included.
fn end_of_quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, char) in text.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if char == quote => return at + char.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests;
