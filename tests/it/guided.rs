//! The real starter model under guidance: answers that are what their format says, log probabilities that are the
//! model's own. Every test skips, with a notice, where the model cannot be had.

use mettle::{
    chat::{Event, Format, Message, Model, ModelParts, Names, Reason, Request, Role, Sampling},
    checkpoint::Checkpoint,
    engine::{Job, Limits, Step},
    mlx::{KvBits, Options, Precision},
};
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;

use crate::support;

fn ask(question: &str, format: Format) -> Request {
    let sampling = Sampling { temperature: Some(1.5), seed: Some(7), ..Sampling::default() };
    let messages = vec![Message::new(Role::User, question)];
    Request { sampling, format, max_tokens: Some(300), ..Request::new(messages) }
}

fn answer(model: &Model, request: &Request) -> (String, Reason) {
    let (mut events, mut text) = (model.generate(request).unwrap_or_else(|error| panic!("{error}")), String::new());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    loop {
        match runtime.block_on(events.next()).expect("an end").1 {
            Event::Text(part) => text.push_str(&part),
            Event::Finished(finished) => return (text, finished.reason),
            _ => {}
        }
    }
}

#[test]
fn answers_are_what_their_format_says() {
    let Some(path) = support::starter() else { return };
    let checkpoint = Checkpoint::open(&path).expect("it opens");
    let engine = support::engine(&path, Options::default(), Limits::default());
    let parts = ModelParts::open(&checkpoint, Names::default()).expect("tokenizer and template").0;
    let model = Model::new(parts, engine).expect("a model");
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "age": {"type": "integer", "minimum": 0, "maximum": 130},
            "tags": {"type": "array", "items": {"enum": ["red", "green"]}, "maxItems": 3}
        },
        "required": ["name", "age", "tags"],
        "additionalProperties": false
    });
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    std::thread::scope(|scope| {
        for question in ["Describe a person.", "What is the capital of France?", "Say something red."] {
            let format = Format::JsonSchema(schema.clone());
            let (model, validator) = (&model, &validator);
            scope.spawn(move || {
                let (text, reason) = answer(model, &ask(question, format));
                assert_eq!(reason, Reason::Stop, "{text}");
                let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
                assert!(validator.is_valid(&value), "{text}");
            });
        }
        let model = &model;
        scope.spawn(move || {
            let (text, reason) = answer(model, &ask("Yes or no?", Format::Choice(vec!["yes".into(), "no".into()])));
            assert!(reason == Reason::Stop && ["yes", "no"].contains(&text.as_str()), "{text}");
        });
    });
}

#[test]
fn mlx_draws_what_masks_allow() {
    let Some(path) = support::starter() else { return };
    let checkpoint = Checkpoint::open(&path).expect("it opens");
    let engine = support::engine(&path, Options { mlx_ops: true, ..Options::default() }, Limits::default());
    let parts = ModelParts::open(&checkpoint, Names::default()).expect("tokenizer and template").0;
    let model = Model::new(parts, engine).expect("a model");
    for temperature in [0.0, 1.5] {
        let mut request = ask("Yes or no?", Format::Regex("[xyz]{3}".into()));
        request.sampling.temperature = Some(temperature);
        let (text, reason) = answer(&model, &request);
        assert!(reason == Reason::Stop && text.len() == 3 && text.bytes().all(|byte| b"xyz".contains(&byte)), "{text}");
    }
}

#[test]
fn log_probabilities_are_the_models_own() {
    let Some(path) = support::starter() else { return };
    let options = Options { precision: Precision::Exact, kv_bits: KvBits::Sixteen, ..Options::default() };
    let (prompt, count) = ((100..120).collect::<Vec<u32>>(), 6);
    let engine = support::engine(&path, options, Limits::default());
    let (sender, mut steps) = unbounded_channel();
    let job = Job::new(prompt.clone(), count, sender);
    // Neither penalties nor bias show in them.
    let sampling =
        mettle::engine::Sampling { repetition_penalty: Some(1.3), logit_bias: vec![(5, 3.0)], ..job.sampling };
    engine.submit(Job { logprobs: Some(4), sampling, ..job }).expect("there is room");
    let mut drawn = Vec::new();
    while let Some(step) = steps.blocking_recv() {
        if let Step::Token(token) = step {
            drawn.push(token);
        }
    }
    let tokens: Vec<u32> = drawn.iter().map(|drawn| drawn.id.into()).collect();
    let runner = support::load(&path, options).expect("it loads");
    let logits = runner.logits(&[&prompt[..], &tokens[..count - 1]].concat()).expect("logits");
    let rows = logits.chunks_exact(runner.vocabulary()).skip(prompt.len() - 1);
    for (row, drawn) in rows.zip(&drawn) {
        let sum: f64 = row.iter().map(|logit| f64::from(*logit).exp()).sum();
        let expected = |id: u32| f64::from(row[id as usize]) - sum.ln();
        let told = drawn.logprobs.as_ref().expect("they were asked for");
        assert!((f64::from(told.drawn) - expected(drawn.id.into())).abs() < 1e-3);
        assert_eq!(told.top.len(), 4);
        assert!(told.top.iter().all(|(id, logprob)| (f64::from(*logprob) - expected((*id).into())).abs() < 1e-3));
        assert!(told.top.is_sorted_by(|a, b| a.1 >= b.1));
    }
}
