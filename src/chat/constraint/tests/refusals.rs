//! Formats that are refused, with what is wrong and where.

use super::*;

fn refusal(bench: &Bench, format: &Format) -> String {
    match bench.grammars.compile(format) {
        Err(Error::Request { field: Field::Format, message }) => message,
        Err(other) => panic!("{format:?}: {other}"),
        Ok(_) => panic!("{format:?} is accepted"),
    }
}

/// Each schema is refused, and the message has all these pieces.
fn check(cases: &[(Value, &[&str])]) {
    let bench = Bench::bytes();
    for (schema, pieces) in cases {
        let message = refusal(bench, &Format::JsonSchema(schema.clone()));
        assert!(pieces.iter().all(|piece| message.contains(piece)), "{schema}: {message}");
        assert!(!message.contains(['\n', '\u{1b}']) && !message.contains("coerce"), "{schema}: {message}");
    }
}

#[test]
fn keywords_that_cannot_be_enforced() {
    let string = json!({"type": "string"});
    let cases: Vec<(Value, &[&str])> = vec![
        (json!({"not": {"minLength": 3}}), &["\"not\"", "#:"]),
        (json!({"if": string, "then": {"minLength": 1}}), &["\"if\""]),
        (json!({"dependentRequired": {"a": ["b"]}}), &["\"dependentRequired\""]),
        (json!({"dependentSchemas": {"a": string}}), &["\"dependentSchemas\""]),
        (json!({"dependencies": {"a": ["b"]}}), &["\"dependencies\""]),
        (json!({"propertyNames": {"pattern": "^a"}, "properties": {"b": true}}), &["\"propertyNames\""]),
        (json!({"propertyNames": {"maxLength": 3}}), &["\"propertyNames\""]),
        (json!({"type": "array", "contains": string}), &["\"contains\""]),
        (json!({"type": "array", "uniqueItems": true}), &["\"uniqueItems\""]),
        (json!({"unevaluatedProperties": false}), &["\"unevaluatedProperties\""]),
        (json!({"unevaluatedItems": string}), &["\"unevaluatedItems\""]),
        (json!({"$dynamicRef": "#a"}), &["\"$dynamicRef\""]),
        (json!({"$recursiveRef": "#"}), &["\"$recursiveRef\""]),
        (json!({"type": "string", "nullable": "yes"}), &["\"nullable\"", "true or false"]),
        (json!({"divisibleBy": 3}), &["\"divisibleBy\"", "multipleOf"]),
        (json!({"disallow": "string"}), &["\"disallow\""]),
        (json!({"extends": string}), &["\"extends\""]),
        (json!({"x-guidance": {"lenient": true}}), &["\"x-guidance\""]),
        (json!({"type": "string", "format": "idn-email"}), &["\"format\" \"idn-email\"", "pattern"]),
        (json!({"not": {"type": "integer"}}), &["\"not\""]),
        (json!({"oneOf": [{"minLength": 1}, {"maxLength": 3}]}), &["\"oneOf\"", "anyOf"]),
        (json!({"properties": {"a": true}, "minProperties": 3}), &["\"minProperties\""]),
        (json!({"properties": {"a": true}, "maxProperties": 3}), &["\"maxProperties\""]),
        (json!({"type": "string", "pattern": "(?=a)b"}), &["\"pattern\"", "look-around"]),
        (json!({"type": "string", "pattern": "(a)\\1"}), &["\"pattern\"", "backreferences"]),
        (json!({"enum": [{"a": 9_007_199_254_740_993_i64}]}), &["\"enum\"", "53 bits"]),
        (json!({"maximum": 18_446_744_073_709_551_615_u64}), &["\"maximum\"", "53 bits"]),
    ];
    check(&cases);
}

#[test]
fn the_place_is_named() {
    let deep = |schema: Value| json!({"properties": {"a/b": {"items": {"anyOf": [{"type": "null"}, schema]}}}});
    const PLACE: &str = "#/properties/a~1b/items/anyOf/1:";
    let referred = json!({"$ref": "#/$defs/x", "$defs": {"x": {"allOf": [{"not": {"const": 1}}]}, "unused": {"not": {"const": 1}}}});
    let cases: Vec<(Value, &[&str])> = vec![
        (deep(json!({"not": {"minLength": 1}})), &[PLACE, "\"not\""]),
        (deep(json!({"type": "string", "format": "regex"})), &[PLACE, "\"regex\""]),
        (deep(json!({"type": "string", "pattern": "["})), &[PLACE, "\"pattern\""]),
        (deep(json!({"oneOf": [{"minLength": 1}, {"maxLength": 3}]})), &[PLACE, "\"oneOf\""]),
        (referred, &["#/$defs/x/allOf/0:", "\"not\""]),
    ];
    check(&cases);
}

#[test]
fn schemas_that_are_none() {
    let draft7 = "http://json-schema.org/draft-07/schema#";
    let cases: Vec<(Value, &[&str])> = vec![
        (json!(false), &["false"]),
        (json!({"not": {}}), &["false"]),
        (json!({"type": "object", "properties": {"a": {"not": {}}}, "required": ["a"]}), &["Unsatisfiable"]),
        (json!("string"), &["object"]),
        (json!({"items": {"type": "text"}}), &["text"]),
        (json!({"type": 3}), &["\"type\""]),
        (json!({"type": "string", "required": true}), &["\"required\""]),
        (json!({"properties": ["a"]}), &["\"properties\""]),
        (json!({"type": "string", "minLength": -1}), &["\"minLength\""]),
        (json!({"multipleOf": 0}), &["\"multipleOf\""]),
        (json!({"properties": {"a": 3}}), &["#/properties/a:", "schema"]),
        (json!({"$ref": "https://example.com/a.json"}), &["example.com"]),
        (json!({"$ref": "other.json"}), &["other.json"]),
        (json!({"$ref": "file:///etc/passwd"}), &["passwd"]),
        (json!({"$ref": "#/$defs/none"}), &["#/$defs/none", "refers to nothing"]),
        (json!({"$schema": draft7, "prefixItems": [true]}), &["\"prefixItems\""]),
        (json!({"type": "object", "properties": {"a": false}, "required": ["a"]}), &["Unsatisfiable"]),
        (json!({"type": "string", "minLength": 3, "maxLength": 2}), &["Unsatisfiable"]),
    ];
    check(&cases);
}

#[test]
fn what_restricts_nothing_is_no_reason() {
    let bench = Bench::bytes();
    for schema in [
        json!({"uniqueItems": false, "nullable": false, "propertyNames": {"type": "string"}, "dependencies": {}, "then": {"not": 1}}),
        json!({"if": {"type": "string"}}),
        json!({"title": "A", "x-order": 3, "example": {"not": 1}, "default": {"if": 1}, "$comment": "not"}),
        json!({"properties": {"not": {"type": "string"}, "if": true}, "enum": [{"not": "x"}]}),
        json!({"$defs": {"unused": {"not": {"const": 1}}}}),
    ] {
        bench.compile(&Format::JsonSchema(schema));
    }
}

#[test]
fn schemas_too_large_are_refused_by_a_limit() {
    let wide: Vec<Value> = (0..60_000).map(|i| json!({"type": "string", "maxLength": i})).collect();
    let mut product = json!({"type": "object"});
    for i in 0..12 {
        let options: Vec<Value> =
            (0..6).map(|j| json!({"properties": {format!("p{i}"): {"const": j}, format!("q{i}{j}"): true}})).collect();
        product = json!({"allOf": [product, {"anyOf": options}]});
    }
    for schema in [json!({"anyOf": wide}), product] {
        let message = refusal(Bench::bytes(), &Format::JsonSchema(schema));
        assert!(message.len() < 500, "{message}");
        // The work is counted, and ends at a limit: nothing is found to be wrong after all of it.
        assert!(["too large", "too big", "too many"].iter().any(|limit| message.contains(limit)), "{message}");
    }
}

#[test]
fn other_formats() {
    let bench = Bench::bytes();
    for (format, piece) in [
        (Format::Regex("(".into()), "unclosed group"),
        (Format::Regex("(?=a)b".into()), "look-around"),
        (Format::Lark("start: x".into()), "x"),
        (Format::Lark("start: %json {\"type\": \"string\", \"not\": {\"const\": \"a\"}}".into()), "\"not\""),
        (Format::Lark("start: %json {\"x-guidance\": {\"lenient\": true}}".into()), "\"x-guidance\""),
        (Format::Lark("start: <|nobody|>".into()), "nobody"),
        (Format::Lark("start: <[9999]>".into()), "9999"),
        (Format::Ebnf("root ::= x".into()), "rule \"x\""),
        (Format::Choice(vec![]), "no choices"),
    ] {
        let message = refusal(bench, &format);
        assert!(message.contains(piece) && !message.contains('\n'), "{format:?}: {message}");
    }
}
