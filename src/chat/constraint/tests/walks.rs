//! Random answers to random schemas: whatever the masks let through validates, by an independent validator.

use super::*;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

fn random_schema(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 8 } else { 14 }) {
        0 => random.one(&[json!({}), json!({"type": "null"}), json!({"type": "boolean"}), json!(true)]),
        1 => {
            let least = random.below(5);
            json!({"type": "string", "minLength": least, "maxLength": least + random.below(6)})
        }
        2 => json!({"type": "string", "pattern": random.one(&["^a+b?$", "[0-9]{2}", "^\\w+@\\w+$", "^(x|é)*$"])}),
        3 => {
            let formats = ["date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"];
            json!({"type": "string", "format": random.one(&formats)})
        }
        4 => {
            let least = random.below(300) as i64 - 150;
            json!({"type": "integer", "minimum": least, "exclusiveMaximum": least + 1 + random.below(200) as i64})
        }
        5 => json!({"type": "number", "exclusiveMinimum": -1.5, "maximum": random.below(100) as f64 / 8.0}),
        6 => {
            json!({"type": random.one(&["integer", "number"]), "multipleOf": random.one(&[json!(3), json!(0.25), json!(10)])})
        }
        7 => json!({"enum": [null, 12, -0.5, "a\"b\n", [1, "x"], {"k": {}}]}),
        8 | 9 => random_array(random, depth - 1),
        10..=12 => random_object(random, depth - 1),
        _ => json!({"anyOf": [random_schema(random, depth - 1), random_schema(random, depth - 1)]}),
    }
}

fn random_array(random: &mut Random, depth: usize) -> Value {
    let mut schema = json!({"type": "array", "items": random_schema(random, depth)});
    if random.below(2) == 0 {
        let least = random.below(3);
        schema["minItems"] = json!(least);
        schema["maxItems"] = json!(least + random.below(3));
    }
    if random.below(3) == 0 {
        schema["prefixItems"] = json!([random_schema(random, depth), random_schema(random, depth)]);
    }
    schema
}

fn random_object(random: &mut Random, depth: usize) -> Value {
    let names = ["a", "b\"", "é", "long name"];
    let count = random.below(4);
    let properties: Vec<(String, Value)> =
        names[..count].iter().map(|name| ((*name).to_owned(), random_schema(random, depth))).collect();
    let required: Vec<&str> = names[..count].iter().copied().filter(|_| random.below(2) == 0).collect();
    let mut schema =
        json!({"type": "object", "properties": serde_json::Map::from_iter(properties), "required": required});
    match random.below(4) {
        0 => schema["additionalProperties"] = json!(false),
        1 => schema["additionalProperties"] = random_schema(random, 0),
        2 => {
            schema["patternProperties"] = json!({"^x[0-9]$": random_schema(random, 0)});
            schema["additionalProperties"] = json!(false);
        }
        _ => {}
    }
    schema
}

/// An answer drawn from the masks alone; `None` where it does not come to an end.
fn walk(bench: &Bench, grammar: &Grammar, random: &mut Random) -> Option<String> {
    let (mut guide, mut bytes, mut taken) = (bench.guide(grammar), Vec::new(), Vec::new());
    for step in 0.. {
        taken = match guide.advise(&taken).unwrap() {
            Advice::End => break,
            Advice::Force(tokens) => tokens,
            Advice::Mask(mask) => {
                let ids: Vec<TokenId> = mask.iter().collect();
                let closes =
                    |id: &&TokenId| matches!(bench.tokenizer.bytes_of(id.0), b"" | b"\"" | b"}" | b"]" | b"," | b":");
                let closing: Vec<TokenId> = ids.iter().filter(closes).copied().collect();
                let closing = if step > 60 || random.below(3) == 0 { closing } else { vec![] };
                vec![random.one(if closing.is_empty() { &ids } else { &closing })]
            }
            Advice::Free => panic!("nothing is free"),
        };
        if taken.iter().any(|token| bench.stop_tokens.contains(&token.0)) {
            break;
        }
        bytes.extend(taken.iter().flat_map(|token| bench.tokenizer.bytes_of(token.0)));
        if step > 2000 {
            return None;
        }
    }
    Some(String::from_utf8(bytes).expect("answers are UTF-8"))
}

#[test]
fn every_answer_validates() {
    check(5, 50);
}

/// Takes minutes: `cargo test --release --lib walks -- --ignored`.
#[test]
#[ignore = "the same with more schemas"]
fn every_answer_of_many_validates() {
    (10..20).for_each(|seed| check(seed, 200));
}

fn check(seed: u64, schemas: usize) {
    let bench = Bench::starter().unwrap_or_else(Bench::bytes);
    let mut random = Random(seed);
    let (mut walked, mut refused) = (0, 0);
    for _ in 0..schemas {
        let schema = random_schema(&mut random, 3);
        let grammar = match bench.grammars.compile(&Format::JsonSchema(schema.clone())) {
            Ok(grammar) => grammar.unwrap(),
            Err(Error::Request { .. }) => {
                refused += 1;
                continue;
            }
            Err(error) => panic!("{schema}: {error}"),
        };
        let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        for _ in 0..3 {
            let Some(text) = walk(bench, &grammar, &mut random) else { continue };
            let value: Value = match serde_json::from_str(&text) {
                Ok(value) => value,
                // JSON has no largest number, its readers have.
                Err(error) if error.to_string().contains("number out of range") => continue,
                Err(error) => panic!("{schema}: {text}: {error}"),
            };
            let verdict = validator.validate(&value);
            assert!(verdict.is_ok(), "{schema}: {text}: {}", verdict.unwrap_err());
            walked += 1;
        }
    }
    eprintln!("{walked} answers validate; {refused} schemas were refused");
    assert!(walked > 2 * schemas && refused < schemas / 5, "{walked} answers, {refused} refused");
}
