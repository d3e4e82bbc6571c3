//! Rules for values in notations that are not JSON, but have its structure.

use serde_json::{Map, Value, json};

use super::{Rules, values::with_type};
use crate::{
    chat::{Tool, python},
    schema::{self, Cursor, text_pattern},
};

/// What a schema says of strings.
const OF_STRINGS: [&str; 4] = ["pattern", "minLength", "maxLength", "format"];

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
    fn rule(self, rules: &mut Rules<'_>, schema: &Cursor<'_>) -> String {
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
    pub(in crate::chat::output) fn value(&self, rules: &mut Rules<'_>, schema: &Cursor<'_>) -> String {
        self.at(rules, schema, 1)
    }

    /// The members of a tool's arguments, without braces around them.
    pub(in crate::chat::output) fn arguments(&self, rules: &mut Rules<'_>, tool: &Tool) -> String {
        self.arguments_with(rules, tool, &|name| self.key(name))
    }

    /// [`Notation::arguments`] with what `key` writes before each value.
    pub(in crate::chat::output) fn arguments_with(
        &self,
        rules: &mut Rules<'_>,
        tool: &Tool,
        key: &dyn Fn(&str) -> String,
    ) -> String {
        let object = rules.described(&tool.parameters);
        self.listed(rules, &object, 0, key)
    }

    /// Tells rules of one notation, and those of arguments as such, from others.
    fn kind(&self, is_argument: bool) -> String {
        format!("{:?}{}{}", self.words, self.comma, is_argument && self.json_objects)
    }

    fn key(&self, name: &str) -> String {
        format!("{}{}", (self.key)(name), self.colon)
    }

    fn at(&self, rules: &mut Rules<'_>, schema: &Cursor<'_>, depth: usize) -> String {
        match schema.reference() {
            Some(reference) => rules.once(&self.kind(depth == 1), reference, |rules| self.of(rules, schema, depth)),
            None => self.of(rules, schema, depth),
        }
    }

    fn of(&self, rules: &mut Rules<'_>, schema: &Cursor<'_>, depth: usize) -> String {
        let place = schema.resolved();
        if self.json && schema::unsupported(&place).is_some() {
            return rules.json(&place.standalone());
        }
        rules.check_supported(&place);
        if let Some(values) = place.constants() {
            return self.constants(rules, values);
        }
        if let Some(parts) = place.choices() {
            let choices: Vec<String> = parts.iter().map(|part| self.at(rules, part, depth + 1)).collect();
            return rules.rule(&choices.join(" | "));
        }
        self.of_types(rules, &place, depth)
    }

    /// One of these values.
    fn constants(&self, rules: &mut Rules<'_>, values: &[Value]) -> String {
        let (texts, others): (Vec<&Value>, Vec<&Value>) = values.iter().partition(|value| value.is_string());
        let mut choices: Vec<String> = others.iter().map(|value| self.constant(rules, value)).collect();
        if !texts.is_empty() {
            choices.push(self.string.rule(rules, &Cursor::new(&json!({"enum": texts}))));
        }
        rules.rule(&choices.join(" | "))
    }

    /// A value of the types that a schema allows, which lists none and is no reference.
    fn of_types(&self, rules: &mut Rules<'_>, place: &Cursor<'_>, depth: usize) -> String {
        let Some(types) = place.types() else { return self.any(rules) };
        let mut choices = Vec::new();
        if types.string {
            choices.push(self.string.rule(rules, place));
        }
        if types.integer || types.number {
            let number = if types.number { "number" } else { "integer" };
            choices.push(rules.json(&with_type(&place.standalone(), number)));
        }
        let words = self.words.iter().zip([types.boolean, types.boolean, types.null]);
        choices.extend(words.filter(|(_, allowed)| *allowed).map(|(word, _)| rules.literal(word)));
        if types.array {
            choices.push(self.array(rules, place, depth));
        }
        if types.object && self.json_objects && depth == 1 {
            choices.push(rules.json(&with_type(&place.standalone(), "object")));
        } else if types.object {
            let members = self.members(rules, place, depth);
            choices.push(format!("{} {members} {}", rules.literal("{"), rules.literal("}")));
        }
        rules.rule(&choices.join(" | "))
    }

    fn constant(&self, rules: &Rules<'_>, value: &Value) -> String {
        let [yes, no, null] = self.words;
        match value {
            Value::Bool(true) => rules.literal(yes),
            Value::Bool(false) => rules.literal(no),
            Value::Null => rules.literal(null),
            other => rules.literal(&other.to_string()),
        }
    }

    fn array(&self, rules: &mut Rules<'_>, place: &Cursor<'_>, depth: usize) -> String {
        let item = match place.single("items").filter(|items| items.node().is_object()) {
            Some(items) => self.at(rules, &items, depth + 1),
            None => self.any(rules),
        };
        let least = place.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let most = place.get("maxItems").and_then(Value::as_u64);
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
    fn members(&self, rules: &mut Rules<'_>, object: &Cursor<'_>, depth: usize) -> String {
        let object = object.resolved();
        rules.check_members(&object);
        self.listed(rules, &object, depth, &|name| self.key(name))
    }

    /// The members of an object, which was checked, with what `key` writes before each value.
    fn listed(&self, rules: &mut Rules<'_>, object: &Cursor<'_>, depth: usize, key: &dyn Fn(&str) -> String) -> String {
        let mut properties: Vec<(&str, Cursor<'_>)> = object.properties().collect();
        if properties.is_empty() {
            return if depth == 0 { String::new() } else { self.unnamed(rules, object, depth) };
        }
        if self.sorted {
            properties.sort_by_key(|(name, _)| name.to_lowercase());
        }
        // What may follow once a member was written, and what may come before any was.
        let mut after = String::new();
        let mut before = String::new();
        for (name, schema) in properties.iter().rev() {
            let value = self.at(rules, schema, depth + 1);
            let key = rules.literal(&key(name));
            let member = rules.rule(&format!("{key} {value}"));
            let mut first = format!("{member} {after}");
            let mut next = format!("{} {member} {after}", rules.literal(self.comma));
            if !object.requires(name) {
                let nothing = |text: &str| if text.is_empty() { "\"\"".to_owned() } else { text.to_owned() };
                first = format!("{first} | {}", nothing(&before));
                next = format!("{next} | {}", nothing(&after));
            }
            before = rules.rule(&first);
            after = rules.rule(&next);
        }
        before
    }

    /// The members of an object that describes none by name.
    fn unnamed(&self, rules: &mut Rules<'_>, object: &Cursor<'_>, depth: usize) -> String {
        match object.single("additionalProperties") {
            Some(schema) if *schema.node() == false => String::new(),
            Some(schema) if schema.node().is_object() => {
                let value = self.at(rules, &schema, depth + 1);
                self.members_of(rules, &value)
            }
            _ => self.any_members(rules),
        }
    }

    fn any_members(&self, rules: &mut Rules) -> String {
        let any = self.any(rules);
        self.members_of(rules, &any)
    }

    /// Members of any name with values of this rule.
    fn members_of(&self, rules: &mut Rules<'_>, value: &str) -> String {
        let (comma, colon) = (rules.literal(self.comma), rules.literal(self.colon));
        let key = if (self.key)("k") == "k" {
            rules.rule("/[A-Za-z0-9_]+/")
        } else {
            self.string.rule(rules, &Cursor::new(&json!({"type": "string"})))
        };
        rules.rule(&format!("({key} {colon} {value} ({comma} {key} {colon} {value})*)?"))
    }

    /// Any value at all.
    fn any(&self, rules: &mut Rules) -> String {
        rules.once(&self.kind(false), "any value", |rules| {
            let comma = rules.literal(self.comma);
            let string = self.string.rule(rules, &Cursor::new(&json!({"type": "string"})));
            let number = rules.json(&json!({"type": "number"}));
            let words = self.words.map(|word| rules.literal(word)).join(" | ");
            let any = self.any(rules);
            let members = self.members_of(rules, &any);
            let open = rules.literal("{");
            let close = rules.literal("}");
            format!("{string} | {number} | {words} | \"[\" ({any} ({comma} {any})*)? \"]\" | {open} {members} {close}")
        })
    }
}

/// A string as Python writes it; one whose schema says more than that only as JSON does.
fn python_string(rules: &mut Rules<'_>, schema: &Cursor<'_>) -> String {
    if let Some(texts) = schema.get("enum").and_then(Value::as_array) {
        let choices: Vec<String> = texts.iter().map(|text| rules.literal(&python::repr(text))).collect();
        return rules.rule(&choices.join(" | "));
    }
    let said = OF_STRINGS.iter().filter_map(|keyword| Some((keyword.to_string(), schema.get(keyword)?.clone())));
    let mut only: Map<String, Value> = said.collect();
    if only.is_empty() {
        return rules.rule(r#"/'([^'\\\n]|\\.)*'/ | /"([^"\\\n]|\\.)*"/"#);
    }
    only.insert("type".to_owned(), Value::from("string"));
    let json = rules.json(&Value::Object(only));
    let format = schema.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| text_pattern(format).is_none()) {
        return json;
    }
    let mut terms = rules.terms(schema);
    terms.push(r"/[^'\\\n]*/".to_owned());
    let quoted = rules.lexeme(&format!("\"'\" ({}) \"'\"", terms.join(" & ")));
    format!("({json} | {quoted})")
}
