//! What an answer must be, as a grammar that says for every token which may come next. Compiled and run by llguidance;
//! here are our tokenizer as it sees it, the formats a request may ask for, and what is refused of them.

mod ebnf;
mod explain;
mod lark;
mod recent;
mod vocabulary;

use std::sync::{Arc, OnceLock};

use llguidance::{
    Matcher, ParserFactory, api::TopLevelGrammar, earley::SlicedBiasComputer, toktrie::InferenceCapabilities,
};
use serde_json::{Value, json};

pub(super) use lark::as_lark;
pub(super) use recent::Key;
use recent::Recent;

use crate::{
    chat::{Error, Field, Format, Tokenizer},
    schema::{self, Problem},
};

/// How many subschemas are tried by themselves to find the one that is refused.
const SEARCHED: usize = 64;

/// Compiles grammars for one model. The tokenizer's trie is built when the first one is asked for.
pub(super) struct Grammars {
    tokenizer: Arc<Tokenizer>,
    stop_tokens: Vec<u32>,
    factory: OnceLock<Result<ParserFactory, String>>,
    recent: Recent,
}

/// A grammar, ready for any number of answers.
pub(super) struct Grammar(Matcher);

impl Grammar {
    /// For one answer, which shares nothing with others.
    pub(super) fn matcher(&self) -> Matcher {
        self.0.deep_clone()
    }
}

impl Grammars {
    pub(super) fn new(tokenizer: Arc<Tokenizer>, stop_tokens: Vec<u32>) -> Grammars {
        Grammars { tokenizer, stop_tokens, factory: OnceLock::new(), recent: Recent::default() }
    }

    /// The tokenizer of the model.
    pub(super) fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Fails where an answer cannot be held to this schema.
    pub(super) fn check(&self, schema: &Value) -> Result<(), Error> {
        self.recent.get(Key::new("schema", schema.to_string()), || self.schema(schema)).map(drop)
    }

    /// The grammar of a format; `None` for text, which may be anything.
    ///
    /// # Errors
    /// A format that is none, or that cannot be enforced: names what is wrong, and of a schema where.
    pub(super) fn compile(&self, format: &Format) -> Result<Option<Grammar>, Error> {
        match format {
            Format::Text => Ok(None),
            format => self.recent.get(Key::of(format), || self.create_format(format)).map(Some),
        }
    }

    fn create_format(&self, format: &Format) -> Result<Grammar, Error> {
        let grammar = match format {
            Format::Text => return Err(Error::Internal("text is no grammar; this is a bug".to_owned())),
            Format::JsonObject => return self.schema(&json!({"type": "object"})),
            Format::JsonSchema(schema) => return self.schema(schema),
            Format::Regex(regex) => TopLevelGrammar::from_regex(regex),
            Format::Lark(text) => {
                let prepared = lark::with_prepared_schemas(text).map_err(|problem| wrong(problem.to_string()))?;
                TopLevelGrammar::from_lark(prepared)
            }
            Format::Ebnf(text) => {
                let lark = ebnf::to_lark(text).map_err(|message| wrong(format!("the grammar is wrong: {message}")))?;
                TopLevelGrammar::from_lark(lark)
            }
            Format::Choice(choices) => TopLevelGrammar::from_lark(lark::one_of(choices)?),
        };
        self.create(grammar)?.map_err(|message| wrong(format!("the grammar cannot be used: {message}")))
    }

    /// The grammar of a text in llguidance's dialect of Lark, whose JSON Schemas (`%json { … }`) are prepared.
    /// `<[id]>` is one special token.
    pub(super) fn lark(&self, lark: String) -> Result<Grammar, Error> {
        let grammar = self.create(TopLevelGrammar::from_lark(lark))?;
        grammar.map_err(|message| wrong(format!("the grammar cannot be used: {message}")))
    }

    /// The grammar that was made of the same source, or a new one. What fails is not remembered.
    pub(super) fn remembered(&self, key: Key, make: impl FnOnce() -> Result<Grammar, Error>) -> Result<Grammar, Error> {
        self.recent.get(key, make)
    }

    fn schema(&self, schema: &Value) -> Result<Grammar, Error> {
        let prepared = schema::prepare(schema).map_err(|problem| wrong(problem.to_string()))?;
        self.create(TopLevelGrammar::from_json_schema(prepared.clone()))?.map_err(|message| {
            let path = self.find(&prepared, &message);
            wrong(Problem { path, message: explain::explained(&message) }.to_string())
        })
    }

    /// Compiles. The outer error is ours, the inner one the grammar's.
    fn create(&self, grammar: TopLevelGrammar) -> Result<Result<Grammar, String>, Error> {
        let parser = self.factory()?.create_parser(grammar);
        let mut matcher = Matcher::new(parser);
        if let Some(error) = matcher.get_error() {
            return Ok(Err(reason(&error)));
        }
        // A warning is something that was not enforced.
        match matcher.grammar_warnings().first() {
            Some(warning) => Ok(Err(reason(warning))),
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

/// What llguidance says, in one line and without what it says to its own developers.
pub(super) fn reason(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    let text = text.split("\n<").next().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
