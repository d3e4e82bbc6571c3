//! Tools, formats, thinking and several answers: what is taken, what is refused, and how they come back.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ChatCompletions, chat::ChatReply};
use crate::{
    chat::{
        self, Dry, Event, Finished, Format, Logprob, ParallelCalls, Phase, Reason, Thinking, TokenLogprob, ToolChoice,
        ToolEvent, ToolField,
    },
    protocol::{Asked, Completion, Fold, Notes, Refusal, Reply, Wire},
};

fn with(fields: Value) -> Result<Asked<chat::Request, ChatReply>, Refusal> {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let (Value::Object(body_fields), Value::Object(fields)) = (&mut body, fields) else { panic!("objects") };
    body_fields.extend(fields);
    ChatCompletions::from_wire(body.to_string().as_bytes(), "own", &Notes::new(false))
}

fn refused(fields: Value, field: &str, piece: &str) {
    let refusal = with(fields.clone()).expect_err(&fields.to_string());
    assert_eq!(refusal.field.as_deref(), Some(field), "{fields}: {}", refusal.message);
    assert!(refusal.message.contains(piece), "{fields}: {}", refusal.message);
}

fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}})
}

#[test]
fn tools() {
    let request = with(json!({"tools": [
        {"type": "function", "function": {"description": "d", "name": "f", "parameters": {"type": "object"}, "strict": true}},
        {"type": "function", "function": {"name": "g", "description": null}},
    ], "parallel_tool_calls": false, "tool_choice": "required"}));
    let chat = request.expect("tools").task;
    assert_eq!((chat.tool_use, chat.parallel_calls), (ToolChoice::Required, ParallelCalls::Forbidden));
    let parallel = |fields: Value| with(fields).expect("tools").task.parallel();
    let named = json!({"type": "function", "function": {"name": "f"}});
    let open = json!({"tools": [tool("f")]});
    let forced = json!({"tools": [tool("f")], "tool_choice": named});
    let asked = json!({"tools": [tool("f")], "tool_choice": named, "parallel_tool_calls": true});
    assert_eq!(
        [open, forced, asked].map(parallel),
        [ParallelCalls::Distinct, ParallelCalls::Forbidden, ParallelCalls::Allowed,]
    );
    let (f, g) = (&chat.tools[0], &chat.tools[1]);
    let fields = [ToolField::Description, ToolField::Name, ToolField::Parameters, ToolField::Strict];
    assert_eq!((f.name.as_str(), &f.parameters, f.strict), ("f", &json!({"type": "object"}), true));
    assert_eq!((f.description.as_deref(), f.given.as_slice()), (Some("d"), fields.as_slice()));
    assert_eq!((&g.parameters, g.strict, g.given.as_slice()), (&json!({}), false, &[ToolField::Name][..]));
    for (tools, field, piece) in [
        (json!("x"), "tools", "a list of tools"),
        (json!([7]), "tools[0]", "an object"),
        (json!([{"function": {"name": "f"}}]), "tools[0].type", "missing"),
        (json!([{"type": "web_search"}]), "tools[0].type", "\"function\""),
        (json!([{"type": "function"}]), "tools[0].function", "missing"),
        (json!([{"type": "function", "function": {}}]), "tools[0].function.name", "a name of"),
        (json!([{"type": "function", "function": {"name": "a b"}}]), "tools[0].function.name", "a name of"),
        (
            json!([{"type": "function", "function": {"name": "f", "parameters": []}}]),
            "tools[0].function.parameters",
            "JSON Schema",
        ),
        (json!([tool("f"), tool("f")]), "tools[1].function.name", "another tool"),
    ] {
        refused(json!({"tools": tools}), field, piece);
    }
}

#[test]
fn tool_choices() {
    let choose = |choice: Value| with(json!({"tools": [tool("f"), tool("g")], "tool_choice": choice}));
    let chosen = |choice: Value| choose(choice).expect("a choice").task;
    assert_eq!(chosen(json!("none")).tool_use, ToolChoice::None);
    assert!(chosen(json!("none")).callable().is_empty());
    assert_eq!(chosen(json!({"type": "function", "function": {"name": "g"}})).tool_use, ToolChoice::Named("g".into()));
    let allowed = json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "g"}}]}});
    let chat = chosen(allowed);
    assert_eq!((chat.tool_use, chat.tools.len(), chat.tools[0].name.as_str()), (ToolChoice::Required, 1, "g"));
    for (choice, field, piece) in [
        (json!("maybe"), "tool_choice", "\"required\""),
        (json!(1), "tool_choice", "\"none\""),
        (json!({"type": "function"}), "tool_choice.function", "missing"),
        (json!({"type": "function", "function": {"name": "h"}}), "tool_choice.function.name", "there are: f, g"),
        (json!({"type": "allowed_tools"}), "tool_choice.allowed_tools", "missing"),
    ] {
        let refusal = choose(choice.clone()).expect_err("refused");
        assert_eq!(refusal.field.as_deref(), Some(field), "{choice}");
        assert!(refusal.message.contains(piece), "{}", refusal.message);
    }
    refused(json!({"tool_choice": "required"}), "tool_choice", "send tools as well");
}

#[test]
fn formats() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let format = |fields: Value| with(fields).expect("a format").task.format;
    let held = Format::JsonSchema(schema.clone());
    for fields in [
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": schema}}}),
        json!({"response_format": {"type": "json_object", "schema": schema}}),
        json!({"guided_json": schema}),
        json!({"guided_json": schema.to_string()}),
        json!({"structured_outputs": {"json": schema}}),
    ] {
        assert_eq!(format(fields), held);
    }
    assert_eq!(format(json!({"response_format": {"type": "json_object"}})), Format::JsonObject);
    assert_eq!(format(json!({"response_format": {"type": "regex", "regex": "a+"}})), Format::Regex("a+".into()));
    assert_eq!(format(json!({"guided_choice": ["a", "b"]})), Format::Choice(vec!["a".into(), "b".into()]));
    assert_eq!(format(json!({"grammar": "root ::= \"a\""})), Format::Ebnf("root ::= \"a\"".into()));
    assert_eq!(format(json!({"guided_grammar": "start: \"a\""})), Format::Lark("start: \"a\"".into()));
    for (fields, field, piece) in [
        (json!({"response_format": {}}), "response_format.type", "missing"),
        (json!({"response_format": {"type": "xml"}}), "response_format.type", "\"xml\""),
        (json!({"response_format": {"type": "json_schema"}}), "response_format.json_schema", "missing"),
        (
            json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}}),
            "response_format.json_schema.schema",
            "missing",
        ),
        (
            json!({"response_format": {"type": "json_schema", "json_schema": {"schema": 7}}}),
            "response_format.json_schema.schema",
            "JSON Schema",
        ),
        (json!({"response_format": {"type": "regex", "regex": ""}}), "response_format.regex", "not empty"),
        (json!({"guided_choice": []}), "guided_choice", "at least one"),
        (json!({"guided_json": "{"}), "guided_json", "no JSON"),
        (json!({"structured_outputs": {}}), "structured_outputs", "asks for nothing"),
        (json!({"response_format": {"type": "json_object"}, "guided_regex": "a"}), "guided_regex", "one of the two"),
    ] {
        refused(fields, field, piece);
    }
}

#[test]
fn thinking() {
    let thinking = |fields: Value| with(fields).expect("settings").task.thinking;
    let of = |enabled, effort: Option<&str>, budget| Thinking { enabled, effort: effort.map(str::to_owned), budget };
    assert_eq!(thinking(json!({})), of(None, None, None));
    assert_eq!(thinking(json!({"enable_thinking": true, "thinking_budget": 50})), of(Some(true), None, Some(50)));
    assert_eq!(thinking(json!({"reasoning_effort": "high"})), of(None, Some("high"), None));
    assert_eq!(thinking(json!({"reasoning_effort": "none"})), of(Some(false), Some("none"), None));
    assert_eq!(thinking(json!({"thinking": {"type": "enabled", "budget_tokens": 9}})), of(Some(true), None, Some(9)));
    assert_eq!(thinking(json!({"thinking": {"type": "disabled"}})), of(Some(false), None, None));
    assert_eq!(thinking(json!({"reasoning": {"effort": "low", "max_tokens": 7}})), of(None, Some("low"), Some(7)));
    refused(json!({"reasoning_effort": "huge"}), "reasoning_effort", "minimal");
    refused(json!({"thinking": {"type": "x"}}), "thinking.type", "enabled");
    refused(json!({"thinking_budget": -1}), "thinking_budget", "at least 0");
}

#[test]
fn several_answers_and_their_probabilities() {
    let chat = with(json!({"n": 3, "logprobs": true, "top_logprobs": 2})).expect("a request").task;
    assert_eq!((chat.answers.get(), chat.logprobs), (3, Some(2)));
    refused(json!({"n": 0}), "n", "from 1 to 16");
    refused(json!({"top_logprobs": 2}), "top_logprobs", "\"logprobs\": true");
    refused(json!({"logprobs": true, "top_logprobs": 21}), "top_logprobs", "from 0 to 20");
    refused(
        json!({"continue_final_message": true, "add_generation_prompt": true}),
        "add_generation_prompt",
        "opposite",
    );
    assert!(
        with(json!({"add_generation_prompt": false, "continue_final_message": true}))
            .expect("both")
            .task
            .continue_final
    );
}

#[test]
fn dry() {
    let chat = with(json!({"dry_multiplier": 0.8, "dry_penalty_last_n": -1})).expect("dry").task;
    let expected = Dry { multiplier: 0.8, base: 1.75, allowed_length: 2, range: None, breakers: Arc::default() };
    assert_eq!(chat.sampling.dry, Some(expected));
    assert_eq!(chat.dry_breakers, ["\n", ":", "\"", "*"]);
    refused(json!({"dry_base": 2.0}), "dry_base", "dry_multiplier");
    refused(json!({"dry_multiplier": -1}), "dry_multiplier", "at least 0");
}

fn call(index: usize) -> Vec<Event> {
    let arguments = |fragment: &str| Event::ToolCall(ToolEvent::Arguments { index, fragment: fragment.to_owned() });
    vec![
        Event::ToolCall(ToolEvent::Begun { index, id: format!("call_{index}"), name: "f".to_owned() }),
        arguments("{\"x\":"),
        arguments("1}"),
        Event::ToolCall(ToolEvent::Ended { index }),
    ]
}

fn events() -> Vec<Event> {
    let token = |id: u32, logprob: f32| TokenLogprob { id, bytes: vec![b'a'], logprob };
    let mut events = vec![
        Event::Started { prompt_tokens: 5, cached_tokens: 4 },
        Event::Reasoning("so".to_owned()),
        Event::Logprob(Logprob { token: token(1, -0.5), top: vec![token(2, f32::NEG_INFINITY)] }),
        Event::Text("Hi".to_owned()),
    ];
    events.extend([call(0), call(1)].concat());
    let reason = Reason::ToolCalls;
    events.push(Event::Finished(Finished { reason, completion_tokens: 9, reasoning_tokens: 2, rejected: Vec::new() }));
    events
}

/// What a client puts together of the chunks is what the whole answer says.
#[test]
fn streamed_or_not() {
    let asked = || with(json!({"stream": true, "logprobs": true, "n": 2, "stream_options": {"include_usage": true}}));
    let mut stream = asked().expect("a request").reply;
    let mut wholes = vec![Completion::default(), Completion::default()];
    let mut frames = String::new();
    for event in events() {
        for (answer, whole) in wholes.iter_mut().enumerate() {
            frames += &stream.frames(answer, event.clone());
            whole.add(event.clone());
        }
    }
    let body: Value =
        serde_json::from_str(&asked().expect("a request").reply.body(wholes).expect("a body")).expect("JSON");
    let frames: Vec<&str> =
        frames.split_terminator("\n\n").map(|frame| frame.strip_prefix("data: ").expect("data")).collect();
    assert_eq!(frames.iter().filter(|frame| **frame == "[DONE]").count(), 1);
    let chunks: Vec<Value> =
        frames[..frames.len() - 1].iter().map(|frame| serde_json::from_str(frame).expect("JSON")).collect();
    assert_eq!(chunks.last().expect("usage")["usage"], body["usage"]);
    assert_eq!(body["usage"]["completion_tokens"], 18);
    assert_eq!(body["usage"]["prompt_tokens"], 5);
    assert_eq!(body["usage"]["completion_tokens_details"]["reasoning_tokens"], 4);
    for answer in 0..2 {
        let mut message =
            json!({"role": null, "content": "", "reasoning_content": "", "tool_calls": [], "refusal": null});
        let (mut logprobs, mut reason) = (Vec::new(), Value::Null);
        for choice in chunks.iter().flat_map(|chunk| chunk["choices"].as_array().expect("choices")) {
            if choice["index"] != answer {
                continue;
            }
            let delta = &choice["delta"];
            for field in ["content", "reasoning_content"] {
                if let Some(text) = delta[field].as_str() {
                    message[field] = json!(format!("{}{text}", message[field].as_str().expect("text")));
                }
            }
            if delta["role"].is_string() {
                message["role"] = delta["role"].clone();
            }
            for call in delta["tool_calls"].as_array().into_iter().flatten() {
                let calls = message["tool_calls"].as_array_mut().expect("calls");
                let index = call["index"].as_u64().expect("an index") as usize;
                match calls.get_mut(index) {
                    Some(known) => {
                        let arguments = format!(
                            "{}{}",
                            known["function"]["arguments"].as_str().expect("text"),
                            call["function"]["arguments"].as_str().expect("text")
                        );
                        known["function"]["arguments"] = json!(arguments);
                    }
                    None => calls.push(json!({"id": call["id"], "type": call["type"], "function": call["function"]})),
                }
            }
            logprobs.extend(choice["logprobs"]["content"].as_array().cloned().unwrap_or_default());
            if !choice["finish_reason"].is_null() {
                reason = choice["finish_reason"].clone();
            }
        }
        let whole = &body["choices"][answer];
        assert_eq!((&whole["message"], &whole["finish_reason"]), (&message, &reason));
        assert_eq!(whole["logprobs"]["content"], json!(logprobs));
        assert_eq!(logprobs[0]["top_logprobs"][0], json!({"token": "a", "logprob": -9999.0, "bytes": [97]}));
        assert_eq!(message["tool_calls"][1]["function"], json!({"name": "f", "arguments": "{\"x\":1}"}));
    }
}

#[test]
fn a_cut_is_told() {
    let whole = |reason: Reason, rejected: &[&str]| {
        let rejected = rejected.iter().map(|name| (*name).to_owned()).collect();
        let finished = Finished { reason, completion_tokens: 1, reasoning_tokens: 0, rejected };
        let mut whole = Completion::default();
        whole.add(Event::Finished(finished));
        let body = with(json!({})).expect("a request").reply.body(vec![whole]).expect("a body");
        let body: Value = serde_json::from_str(&body).expect("JSON");
        (body["choices"][0]["finish_reason"].clone(), body["choices"][0]["finish_details"].clone())
    };
    assert_eq!(whole(Reason::Stop, &["g"]), (json!("stop"), json!({"type": "stop", "rejected_calls": ["g"]})));
    assert_eq!(
        whole(Reason::Length(Phase::Reasoning), &[]),
        (json!("length"), json!({"type": "length", "in": "reasoning"}))
    );
    assert_eq!(whole(Reason::Loop(Phase::Text), &[]), (json!("length"), json!({"type": "loop", "in": "text"})));
    assert_eq!(whole(Reason::StopString("x".into()), &[]), (json!("stop"), json!({"type": "stop", "stop": "x"})));
    assert_eq!(whole(Reason::Stop, &[]), (json!("stop"), Value::Null));
}

/// Misspelled keywords and formats that nobody defines are told of by their places.
#[test]
fn what_a_schema_says_in_vain_is_told() {
    let schema = json!({"properties": {"a": {"type": "string", "maxlength": 3, "format": "password"}}});
    let body = json!({
        "model": "m", "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    });
    let notes = Notes::new(false);
    ChatCompletions::from_wire(body.to_string().as_bytes(), "own", &notes).expect("a request");
    let ignored: Vec<String> = notes.ignored().into_iter().map(|ignored| ignored.path).collect();
    let place = |path: &str, keyword: &str| format!("{path}#/properties/a/{keyword}");
    let (tool, format) = ("tools[0].function.parameters", "response_format");
    for (path, keyword) in [(tool, "maxlength"), (tool, "format"), (format, "maxlength"), (format, "format")] {
        assert!(ignored.contains(&place(path, keyword)), "{keyword} of {path}: {ignored:?}");
    }
}
