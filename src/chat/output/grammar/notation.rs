//! Rules for values in notations that are not JSON, but have its structure.

use serde_json::Value;

use super::{
    Rules,
    kept::unkept,
    values::{resolved, with_definitions},
};
use crate::chat::{constraint::grammar::text_format, python, schema::Shape};

/// What strings stand between.
#[derive(Debug, Clone, Copy)]
pub(in crate::chat::output) enum Quotes {
    /// Python's own.
    Python,
    /// This on either side, without escapes.
    Mark(&'static str),
}

impl Quotes {
    /// A string of this schema.
    fn rule(self, rules: &mut Rules, schema: &Value) -> String {
        match self {
            Quotes::Python => python_string(rules, schema),
            Quotes::Mark(quote) => {
                let text = rules.string(schema, quote).unwrap_or_else(|| rules.text_until(quote));
                format!("{} {text}", rules.literal(quote))
            }
        }
    }
}

/// How a notation writes what JSON has its own ways for.
pub(in crate::chat::output) struct Notation {
    /// What strings stand between.
    pub string: Quotes,
    /// A key, quotes and all.
    pub key: fn(&str) -> String,
    pub words: [&'static str; 3],
    pub comma: &'static str,
    pub colon: &'static str,
    /// Whether keys come in alphabetical order.
    pub sorted: bool,
    /// Whether an argument that is an object is JSON all the same.
    pub json_objects: bool,
    /// Whether JSON is read as well as the notation itself.
    pub json: bool,
}

impl Notation {
    /// As Python's `repr`.
    pub(in crate::chat::output) const PYTHON: Notation = Notation {
        string: Quotes::Python,
        key: |name| python::repr(&Value::from(name)),
        words: ["True", "False", "None"],
        comma: ", ",
        colon: ": ",
        sorted: false,
        json_objects: false,
        json: true,
    };

    /// A value of this schema.
    pub(in crate::chat::output) fn value(&self, rules: &mut Rules, schema: &Value) -> String {
        self.at(rules, schema, 1)
    }

    /// Tells rules of one notation, and those of arguments as such, from others.
    fn kind(&self, is_argument: bool) -> String {
        format!("{:?}{}{}", self.words, self.comma, is_argument && self.json_objects)
    }

    fn at(&self, rules: &mut Rules, schema: &Value, depth: usize) -> String {
        match schema.get("$ref") {
            Some(_) => rules.once(&self.kind(depth == 1), schema, |rules| self.of(rules, schema, depth)),
            None => self.of(rules, schema, depth),
        }
    }

    fn of(&self, rules: &mut Rules, schema: &Value, depth: usize) -> String {
        let node = resolved(schema);
        if self.json && unkept(&node).is_some() {
            return rules.json(&node);
        }
        rules.keep(&node);
        if let Some(values) = node["enum"].as_array().cloned().or_else(|| Some(vec![node.get("const")?.clone()])) {
            let (texts, others): (Vec<Value>, Vec<Value>) = values.into_iter().partition(Value::is_string);
            let mut choices: Vec<String> = others.iter().map(|value| self.constant(rules, value)).collect();
            if !texts.is_empty() {
                choices.push(self.string.rule(rules, &serde_json::json!({"enum": texts})));
            }
            return rules.rule(&choices.join(" | "));
        }
        if let Some(parts) = ["anyOf", "oneOf"].iter().find_map(|list| node[*list].as_array()) {
            let choices: Vec<String> =
                parts.iter().map(|part| self.at(rules, &with_definitions(part, &node), depth + 1)).collect();
            return rules.rule(&choices.join(" | "));
        }
        let Some(types) = Shape::of(schema.clone()).types() else { return self.any(rules) };
        let mut choices = Vec::new();
        if types.string {
            choices.push(self.string.rule(rules, &node));
        }
        if types.integer || types.number {
            let mut number = node.clone();
            number["type"] = Value::from(if types.number { "number" } else { "integer" });
            choices.push(rules.json(&number));
        }
        let words = [types.boolean, types.boolean, types.null];
        choices
            .extend(self.words.iter().zip(words).filter(|(_, allowed)| *allowed).map(|(word, _)| rules.literal(word)));
        if types.array {
            choices.push(self.array(rules, &node, depth));
        }
        if types.object && self.json_objects && depth == 1 {
            let mut object = node.clone();
            object["type"] = Value::from("object");
            choices.push(rules.json(&object));
        } else if types.object {
            let members = self.members(rules, &node, depth);
            choices.push(format!("{} {members} {}", rules.literal("{"), rules.literal("}")));
        }
        rules.rule(&choices.join(" | "))
    }

    fn constant(&self, rules: &Rules, value: &Value) -> String {
        let [yes, no, null] = self.words;
        match value {
            Value::Bool(true) => rules.literal(yes),
            Value::Bool(false) => rules.literal(no),
            Value::Null => rules.literal(null),
            other => rules.literal(&other.to_string()),
        }
    }

    fn array(&self, rules: &mut Rules, node: &Value, depth: usize) -> String {
        let item = match node.get("items").filter(|items| items.is_object()) {
            Some(items) => self.at(rules, &with_definitions(items, node), depth + 1),
            None => self.any(rules),
        };
        let least = node["minItems"].as_u64().unwrap_or(0);
        let most = node["maxItems"].as_u64();
        let more = match most {
            Some(most) => format!("{{{},{}}}", least.saturating_sub(1), most.saturating_sub(1)),
            None => format!("{{{},}}", least.saturating_sub(1)),
        };
        let some = format!("{item} ({} {item}){more}", rules.literal(self.comma));
        let items = match (least, most) {
            (_, Some(0)) => String::new(),
            (0, _) => format!("({some})?"),
            _ => some,
        };
        format!("{} {items} {}", rules.literal("["), rules.literal("]"))
    }

    /// The members of an object between its braces.
    pub(in crate::chat::output) fn members(&self, rules: &mut Rules, schema: &Value, depth: usize) -> String {
        let key = |name: &str| format!("{}{}", (self.key)(name), self.colon);
        self.named(rules, schema, depth, &key)
    }

    /// [`Notation::members`] with what `key` writes before each value.
    pub(in crate::chat::output) fn named(
        &self,
        rules: &mut Rules,
        schema: &Value,
        depth: usize,
        key: &dyn Fn(&str) -> String,
    ) -> String {
        let node = if depth == 0 { rules.described(schema) } else { resolved(schema) };
        rules.keep_members(&node);
        let shape = Shape::of(node.clone());
        let properties = node["properties"].as_object().cloned().unwrap_or_default();
        let mut names: Vec<String> = properties.keys().cloned().collect();
        if names.is_empty() {
            return match node.get("additionalProperties") {
                _ if depth == 0 => String::new(),
                Some(Value::Bool(false)) => String::new(),
                Some(Value::Object(_)) => {
                    let value = self.at(rules, &with_definitions(&node["additionalProperties"], &node), depth + 1);
                    self.members_of(rules, &value)
                }
                _ => self.any_members(rules),
            };
        }
        if self.sorted {
            names.sort_by_key(|name| name.to_lowercase());
        }
        // What may follow once a member was written, and what may come before any was.
        let (mut after, mut before) = (String::new(), String::new());
        for name in names.iter().rev() {
            let value = self.at(rules, &with_definitions(&properties[name], &node), depth + 1);
            let key = rules.literal(&key(name));
            let member = rules.rule(&format!("{key} {value}"));
            let (first, next) =
                (format!("{member} {after}"), format!("{} {member} {after}", rules.literal(self.comma)));
            let none = |text: &str| if text.is_empty() { "\"\"".to_owned() } else { text.to_owned() };
            let (first, next) = match shape.requires(name) {
                true => (first, next),
                false => (format!("{first} | {}", none(&before)), format!("{next} | {}", none(&after))),
            };
            (before, after) = (rules.rule(&first), rules.rule(&next));
        }
        before
    }

    fn any_members(&self, rules: &mut Rules) -> String {
        let any = self.any(rules);
        self.members_of(rules, &any)
    }

    /// Members of any name with values of this rule.
    fn members_of(&self, rules: &mut Rules, value: &str) -> String {
        let (comma, colon) = (rules.literal(self.comma), rules.literal(self.colon));
        let key = match (self.key)("k") == "k" {
            true => rules.rule("/[A-Za-z0-9_]+/"),
            false => self.string.rule(rules, &serde_json::json!({"type": "string"})),
        };
        rules.rule(&format!("({key} {colon} {value} ({comma} {key} {colon} {value})*)?"))
    }

    /// Any value at all.
    fn any(&self, rules: &mut Rules) -> String {
        rules.once(&self.kind(false), &Value::Null, |rules| {
            let comma = rules.literal(self.comma);
            let string = self.string.rule(rules, &serde_json::json!({"type": "string"}));
            let number = rules.json(&serde_json::json!({"type": "number"}));
            let words = self.words.map(|word| rules.literal(word)).join(" | ");
            let any = self.any(rules);
            let members = self.members_of(rules, &any);
            let (open, close) = (rules.literal("{"), rules.literal("}"));
            format!("{string} | {number} | {words} | \"[\" ({any} ({comma} {any})*)? \"]\" | {open} {members} {close}")
        })
    }
}

/// A string as Python writes it; one whose schema says more than that only as JSON does.
fn python_string(rules: &mut Rules, schema: &Value) -> String {
    if let Some(texts) = schema["enum"].as_array() {
        let choices: Vec<String> = texts.iter().map(|text| rules.literal(&python::repr(text))).collect();
        return rules.rule(&choices.join(" | "));
    }
    let says = ["pattern", "minLength", "maxLength", "format"];
    if says.iter().any(|key| schema.get(*key).is_some()) {
        let mut only = schema.clone();
        only["type"] = Value::from("string");
        let json = rules.json(&only);
        if schema["format"].as_str().is_some_and(|format| text_format(format).is_none()) {
            return json;
        }
        let mut terms = rules.terms(schema);
        terms.push(r"/[^'\\\n]*/".to_owned());
        let quoted = rules.lexeme(&format!("\"'\" ({}) \"'\"", terms.join(" & ")));
        return format!("({json} | {quoted})");
    }
    rules.rule(r#"/'([^'\\\n]|\\.)*'/ | /"([^"\\\n]|\\.)*"/"#)
}
