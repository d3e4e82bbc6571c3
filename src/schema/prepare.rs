//! A schema in the form in which llguidance enforces it. By itself llguidance ignores keywords that the schema's draft
//! does not have and takes options out of the schema; here every keyword that restricts instances is enforced, or the
//! schema is refused with the keyword and where it stands.

use serde_json::{Map, Value, json};

use super::{
    check::{Problem, check},
    cursor::for_each_child,
    format::{json_pattern, number_format},
    keyword::{Use, keyword},
    names::by_value,
    simplify::simplified,
    types::named_types,
};

/// What may stand between two tokens of JSON: a space, or a line's end and its indentation. JSON allows any amount,
/// which a weak model may go on with for ever; this much is how JSON is printed.
const WHITESPACE: &str = r"[ \t]|\r?\n[ \t]{0,64}";

/// Characters behind a backslash where names are told apart by their spelling: each has one, and none by its number.
const ESCAPES: &str = "nrbtf\\\"";

/// An equivalent schema as llguidance is to have it: without what restricts nothing, and with mettle's options.
///
/// # Errors
/// What cannot be enforced, and where it stands.
pub fn prepare(schema: &Value) -> Result<Value, Problem> {
    let mut schema = match simplified(schema) {
        Value::Bool(true) => json!({}),
        other => other,
    };
    if !schema.is_object() {
        let message =
            "a schema is an object; of false, nothing would be an instance, and of {\"not\": {}} neither".to_owned();
        return Err(Problem { path: "#".into(), message });
    }
    check(&schema)?;
    rewrite(&mut schema);
    let mut options = json!({"whitespace_pattern": WHITESPACE});
    if !by_value(&mut schema) {
        options["json_allowed_escapes"] = json!(ESCAPES);
    }
    schema["x-guidance"] = options;
    Ok(schema)
}

/// Writes a schema and all below it in what llguidance knows in every draft.
fn rewrite(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    let is_numeric = !named_types(fields).contains(&"string");
    fields.retain(|name, _| !keyword(name).is_some_and(|keyword| matches!(keyword.becomes, Use::Refused(_))));
    if let Some(value) = fields.remove("const") {
        // The older drafts have no const.
        let constant = json!({"enum": [value]});
        and(fields, constant);
    }
    let format = fields.get("format").and_then(Value::as_str).and_then(number_format);
    if let Some(restriction) = format.filter(|_| is_numeric) {
        fields.remove("format");
        and(fields, restriction);
    }
    if let Some(pattern) = fields.get("format").and_then(Value::as_str).and_then(json_pattern) {
        fields.remove("format");
        restrict(fields, "pattern", json!(pattern));
    }
    if fields.contains_key("multipleOf") {
        // Beyond this, who reads the answer rounds, and a multiple may be none any more.
        let exact = (1u64 << f64::MANTISSA_DIGITS) as f64;
        restrict(fields, "minimum", json!(-exact));
        restrict(fields, "maximum", json!(exact));
    }
    for_each_child(fields, rewrite);
}

/// Sets a keyword, beside one of the same name if there is one.
fn restrict(fields: &mut Map<String, Value>, keyword: &str, value: Value) {
    if fields.contains_key(keyword) {
        and(fields, json!({keyword: value}));
    } else {
        fields.insert(keyword.to_owned(), value);
    }
}

/// Restricts a schema further.
fn and(fields: &mut Map<String, Value>, restriction: Value) {
    match fields.get_mut("allOf") {
        Some(Value::Array(all)) => all.push(restriction),
        _ => {
            fields.insert("allOf".into(), json!([restriction]));
        }
    }
}
