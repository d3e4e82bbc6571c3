//! Every format's grammar, as llguidance reads it: it accepts what the format writes, and nothing cut.

use std::sync::Arc;

use llguidance::{Matcher, ParserFactory, api::TopLevelGrammar, toktrie::ApproximateTokEnv};

use super::*;
use crate::chat::tools::Rules;

/// A grammar for one call of this tool, envelope and all.
fn matcher(format: &Format, tool: &Tool) -> Matcher {
    let none = |_: &str| None;
    let mut rules = Rules::new(&none);
    let call = (format.grammar)(&mut rules, tool);
    let (open, close) = (rules.literal(format.envelope.open), rules.literal(format.envelope.close));
    let grammar = format!("start: {open} {call} {close}\n{}", rules.text());
    let env = ApproximateTokEnv::single_byte_env();
    let factory = ParserFactory::new_simple(&env).expect("a factory");
    let parser = factory.create_parser(TopLevelGrammar::from_lark(grammar.clone()));
    Matcher::new(Ok(parser.unwrap_or_else(|error| panic!("{}: {error}\n{grammar}", format.name))))
}

/// How many bytes the grammar accepts, and whether it may end there.
fn accepts(matcher: &Matcher, text: &str) -> (usize, bool) {
    let mut matcher = matcher.deep_clone();
    let tokens: Vec<u32> = text.bytes().map(u32::from).collect();
    let count = matcher.try_consume_tokens(&tokens).expect("a grammar that goes on");
    (count, matcher.is_accepting().expect("a grammar that goes on"))
}

fn check_accepted(format: &Format, index: usize, arguments: Value) {
    let tool = &tools()[index];
    let Value::Object(arguments) = arguments else { panic!("an object") };
    let call = ToolCall { id: "abc123def".to_owned(), name: tool.name.clone(), arguments };
    let written = format!("{}{}{}", format.envelope.open, (format.render)(&call, 0), format.envelope.close);
    let matcher = matcher(format, tool);
    let (count, ends) = accepts(&matcher, &written);
    let rest = written.get(count..).unwrap_or("…");
    assert!(count == written.len() && ends, "{} stops before {rest:?} of {written}", format.name);
}

#[test]
fn grammars_accept_what_formats_write() {
    for format in FORMATS {
        for text in TEXTS {
            check_accepted(
                format,
                1,
                json!({"path": "a/b", "content": text, "tags": [text, ""], "options": {"mode": 420}}),
            );
        }
        check_accepted(format, 0, json!({"city": "Paris"}));
        check_accepted(format, 0, json!({"city": "5", "days": -3, "metric": true, "limit": 1.5, "unit": "f"}));
        check_accepted(format, 2, json!({}));
        check_accepted(format, 3, json!({"q": null, "any": "x"}));
        check_accepted(format, 3, json!({"q": "null and void"}));
    }
}

#[test]
fn grammars_refuse_what_schemas_do() {
    for format in FORMATS {
        let refused = |index: usize, arguments: Value, schema: &str| {
            let Value::Object(arguments) = arguments else { panic!("an object") };
            let tool = &tools()[index];
            let call = ToolCall { id: "abc123def".to_owned(), name: tool.name.clone(), arguments };
            let written = format!("{}{}{}", format.envelope.open, (format.render)(&call, 0), format.envelope.close);
            let (count, _) = accepts(&matcher(format, tool), &written);
            assert!(count < written.len(), "{} lets {written} pass, against {schema}", format.name);
        };
        refused(0, json!({"days": 3}), "required");
        refused(0, json!({"city": "Paris", "unit": "kelvin"}), "enum");
        refused(0, json!({"city": "Paris", "days": "many"}), "integer");
    }
}
