//! From a chat completion's body to a [`chat::Request`]. All validation is here; what the model alone can judge, such
//! as the length of the prompt, is the chat layer's.

use std::{num::NonZeroUsize, sync::Arc};

use serde_json::{Map, Value, json};

use super::{
    chat::{ChatReply, Chunks},
    error, examples, format, message, thinking, tools,
};
use crate::{
    chat::{self, Dry, Field, Sampling},
    protocol::{Asked, Fields, Form, Notes, Peek, Refusal, Refused, Wire, expected, peek, sse},
};

/// The most stop strings of a request.
const STOPS: usize = 16;

/// Answers to one request, and tokens told of beside each token.
const ANSWERS: usize = 16;
const TOP_LOGPROBS: u64 = 20;

const fn form(name: &'static str, what: &'static str, holds: fn(&Value) -> bool, why: &'static str) -> Form {
    Form { name, what, holds, why }
}

/// Fields that change nothing about the answer.
const BOOKKEEPING: &[Form] = &[
    form("user", "a string", Value::is_string, "nothing is kept of who asked"),
    form("safety_identifier", "a string", Value::is_string, "nothing is kept of who asked"),
    form("metadata", "an object", Value::is_object, "nothing is stored here"),
    form("service_tier", "a string", Value::is_string, "there is one tier of service"),
    form("prompt_cache_key", "a string", Value::is_string, "every prompt's beginning is remembered as it is"),
    form("prompt_cache_retention", "a string", Value::is_string, "every prompt's beginning is remembered as it is"),
    form("verbosity", "a string", Value::is_string, "the model decides how much it says; tell it in the messages"),
    form("prediction", "an object", Value::is_object, "answers are not compared with what was expected"),
];

/// What other servers know and what does nothing here.
const OTHERS: &[(&str, &str)] = &[
    ("keep_alive", "models stay loaded"),
    ("cache_prompt", "every prompt's beginning is remembered"),
    ("id_slot", "requests are given rows as they come"),
    ("priority", "requests are answered in their order"),
    ("request_id", "answers have ids of their own"),
    ("skip_special_tokens", "special tokens are never text"),
    ("timings_per_token", "streams have no timings"),
    ("xtc_threshold", "it does nothing without xtc_probability"),
    ("mirostat_tau", "it does nothing without mirostat"),
    ("mirostat_eta", "it does nothing without mirostat"),
];

/// A field's name, why it cannot be honoured, and whether a value asks for nothing.
type Unsupported = (&'static str, &'static str, fn(&Value) -> bool);

/// What is known, here or elsewhere, and cannot be honoured.
const UNSUPPORTED: &[Unsupported] = &[
    ("store", "nothing is stored here; send false or leave it out", |value| *value == false),
    ("modalities", "answers are text only; send [\"text\"] or leave it out", |value| *value == json!(["text"])),
    ("audio", "answers are text only; leave it out", |_| false),
    ("functions", "tools have taken its place; send those", |value| *value == json!([])),
    ("function_call", "tool_choice has taken its place; send that", |_| false),
    ("web_search_options", "nothing is searched here; leave it out", |_| false),
    ("min_tokens", "no answer is made to be long; send 0 or leave it out", |value| *value == 0),
    ("stop_token_ids", "answers end at strings; send stop instead", |value| *value == json!([])),
    ("bad_words", "no strings are ruled out; send logit_bias instead", |value| *value == json!([])),
    ("prompt_logprobs", "only answers have log probabilities; leave it out", |value| *value == false),
    ("echo", "answers do not repeat the prompt; send false or leave it out", |value| *value == false),
    ("best_of", "every answer that is made is sent; send n instead", |value| *value == 1),
    ("use_beam_search", "answers are drawn token by token; leave it out", |value| *value == false),
    ("typical_p", "this sampler is not there; send 1 or leave it out", |value| value.as_f64() == Some(1.0)),
    ("top_a", "this sampler is not there; send 0 or leave it out", |value| value.as_f64() == Some(0.0)),
    ("mirostat", "this sampler is not there; send 0 or leave it out", |value| *value == 0),
    ("xtc_probability", "this sampler is not there; send 0 or leave it out", |value| value.as_f64() == Some(0.0)),
];

/// `POST /v1/chat/completions`
#[derive(Debug)]
pub struct ChatCompletions;

impl Wire for ChatCompletions {
    type Task = chat::Request;
    type Reply = ChatReply;

    const STREAM_TYPE: &'static str = sse::CONTENT_TYPE;
    const KEEP_ALIVE: &'static str = sse::KEEP_ALIVE;
    const EXAMPLES: &'static [&'static str] = examples::CHAT;

    fn peek(body: &[u8]) -> Option<Peek> {
        peek::json(body, "model", Some("n"))
    }

    fn from_wire(body: &[u8], model: &str, notes: &Notes) -> Result<Asked<chat::Request, ChatReply>, Refusal> {
        read(body, model, notes)
    }

    fn field_name(field: Field) -> String {
        error::field_name(field)
    }

    fn refused(refusal: &Refusal) -> Refused {
        error::refused(refusal)
    }
}

/// Reads a body; `model` is the one that answers where the request names none.
///
/// # Errors
/// [`Kind::Invalid`], with the field if it is a field's fault.
fn read(body: &[u8], model: &str, notes: &Notes) -> Result<Asked<chat::Request, ChatReply>, Refusal> {
    let mut fields = Fields::of_body(body, notes)?;
    let named = fields.string("model")?.filter(|name| !name.is_empty());
    let messages = message::from_wire(&mut fields)?;
    let (stream, include_usage) = streaming(&mut fields)?;
    let (tools, tool_use, parallel_calls) = tools::from_wire(&mut fields)?;
    let (dry, dry_breakers) = dry(&mut fields)?;
    let task = chat::Request {
        messages,
        max_tokens: max_tokens(&mut fields)?,
        sampling: sampling(&mut fields, dry)?,
        dry_breakers,
        ignore_eos: fields.bool("ignore_eos")?.unwrap_or(false),
        stop: stop(&mut fields)?,
        tools,
        tool_use,
        parallel_calls,
        format: format::from_wire(&mut fields)?,
        thinking: thinking::from_wire(&mut fields)?,
        continue_final: continue_final(&mut fields)?,
        answers: answers(&mut fields)?,
        logprobs: logprobs(&mut fields)?,
        template_variables: template_variables(&mut fields)?,
    };
    BOOKKEEPING.iter().try_for_each(|form| fields.ignore_form(form))?;
    OTHERS.iter().for_each(|(name, why)| fields.ignore(name, why));
    UNSUPPORTED.iter().try_for_each(|(name, why, asks_nothing)| fields.refuse(name, why, asks_nothing))?;
    fields.finish()?;
    let chunks = if include_usage { Chunks::WithUsage } else { Chunks::Plain };
    let model = named.unwrap_or_else(|| model.to_owned());
    let reply = ChatReply::new(model, chunks, task.answers.get(), task.logprobs.is_some());
    Ok(Asked { task, reply, stream })
}

fn streaming(fields: &mut Fields) -> Result<(bool, bool), Refusal> {
    let stream = fields.bool("stream")?.unwrap_or(false);
    let Some(mut options) = fields.object("stream_options")? else { return Ok((stream, false)) };
    let include_usage = options.bool("include_usage")?.unwrap_or(false);
    let unpadded = |value: &Value| (*value == false).then_some(());
    options.read("include_obfuscation", "false, because streams are not padded here", unpadded)?;
    options.finish()?;
    if !stream {
        let problem = "only a stream has these; send \"stream\": true as well, or leave them out";
        return Err(Refusal::field("stream_options", problem));
    }
    Ok((stream, include_usage))
}

/// The newer name wins where both are given.
fn max_tokens(fields: &mut Fields) -> Result<Option<usize>, Refusal> {
    let old = fields.count("max_tokens")?;
    Ok(fields.count("max_completion_tokens")?.or(old))
}

fn sampling(fields: &mut Fields, dry: Option<Dry>) -> Result<Sampling, Refusal> {
    let penalty = |number| (-2.0..=2.0).contains(&number);
    Ok(Sampling {
        temperature: fields.number("temperature", "a number between 0 and 2", |t| (0.0..=2.0).contains(&t))?,
        top_p: fields.number("top_p", "a number between 0 and 1", |p| (0.0..=1.0).contains(&p))?,
        top_k: fields.read("top_k", "a whole number of at least 0 (0 is off)", |k| u32::try_from(k.as_u64()?).ok())?,
        min_p: fields.number("min_p", "a number between 0 and 1", |p| (0.0..=1.0).contains(&p))?,
        repetition_penalty: fields.number("repetition_penalty", "a number above 0 (1 is off)", |by| by > 0.0)?,
        presence_penalty: fields.number("presence_penalty", "a number between -2 and 2", penalty)?,
        frequency_penalty: fields.number("frequency_penalty", "a number between -2 and 2", penalty)?,
        dry,
        logit_bias: logit_bias(fields)?,
        seed: fields.read("seed", "a whole number", |seed| seed.as_u64().or(seed.as_i64().map(i64::cast_unsigned)))?,
    })
}

fn answers(fields: &mut Fields) -> Result<NonZeroUsize, Refusal> {
    let what = format!("a whole number from 1 to {ANSWERS}");
    let count = |value: &Value| {
        let count = usize::try_from(value.as_u64()?).ok().filter(|count| *count <= ANSWERS)?;
        NonZeroUsize::new(count)
    };
    Ok(fields.read("n", &what, count)?.unwrap_or(NonZeroUsize::MIN))
}

fn logprobs(fields: &mut Fields) -> Result<Option<usize>, Refusal> {
    let wanted = fields.bool("logprobs")?.unwrap_or(false);
    let what = format!("a whole number from 0 to {TOP_LOGPROBS}");
    let top = fields.read("top_logprobs", &what, |value| value.as_u64().filter(|count| *count <= TOP_LOGPROBS))?;
    match (wanted, top) {
        (false, Some(_)) => Err(Refusal::field("top_logprobs", "send \"logprobs\": true as well")),
        (false, None) => Ok(None),
        (true, top) => Ok(Some(top.unwrap_or(0) as usize)),
    }
}

/// `continue_final_message`; `add_generation_prompt` says the opposite of the same thing.
fn continue_final(fields: &mut Fields) -> Result<bool, Refusal> {
    let continues = fields.bool("continue_final_message")?.unwrap_or(false);
    match fields.bool("add_generation_prompt")? {
        Some(begins) if begins == continues => {
            let problem = "an answer either begins anew or goes on with the last message: send the opposite of \
                continue_final_message, or leave it out";
            Err(Refusal::field("add_generation_prompt", problem))
        }
        _ => Ok(continues),
    }
}

/// DRY, and the texts that no repetition reaches across.
fn dry(fields: &mut Fields) -> Result<(Option<Dry>, Vec<String>), Refusal> {
    let multiplier = fields.number("dry_multiplier", "a number of at least 0 (0 is off)", |by| by >= 0.0)?;
    let base = fields.number("dry_base", "a number of at least 1", |base| base >= 1.0)?;
    let count = |value: &Value| value.as_u64().map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    let allowed_length = fields.read("dry_allowed_length", "a whole number of at least 0", count)?;
    // -1 is all, as in llama.cpp.
    let last = |value: &Value| match value.as_i64()? {
        -1 => Some(None),
        count => usize::try_from(count).ok().map(Some),
    };
    let range = fields.read("dry_penalty_last_n", "a whole number of at least 0, or -1 for all", last)?;
    let breakers = fields.read("dry_sequence_breakers", "a list of strings", |value| {
        value.as_array()?.iter().map(|breaker| breaker.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
    })?;
    let alone = multiplier.is_none();
    for (name, given) in [
        ("dry_base", base.is_some()),
        ("dry_allowed_length", allowed_length.is_some()),
        ("dry_penalty_last_n", range.is_some()),
        ("dry_sequence_breakers", breakers.is_some()),
    ] {
        if alone && given {
            return Err(Refusal::field(name, "it does nothing without dry_multiplier; send that as well"));
        }
    }
    let dry = multiplier.map(|multiplier| Dry {
        multiplier,
        base: base.unwrap_or(Dry::BASE),
        allowed_length: allowed_length.unwrap_or(Dry::ALLOWED_LENGTH),
        range: range.flatten(),
        breakers: Arc::default(),
    });
    Ok((dry, breakers.unwrap_or_else(|| chat::Request::DRY_BREAKERS.map(str::to_owned).into())))
}

fn logit_bias(fields: &mut Fields) -> Result<Vec<(u32, f32)>, Refusal> {
    let what = "an object of numbers between -100 and 100 by token id";
    let Some(value) = fields.take("logit_bias") else { return Ok(Vec::new()) };
    let Value::Object(entries) = value else { return Err(expected("logit_bias", what, &value)) };
    let read = |(id, bias): (String, Value)| {
        let Ok(token) = id.parse::<u32>() else {
            return Err(Refusal::field(
                "logit_bias",
                format!("{id:?} is not the id of a token, which is a whole number"),
            ));
        };
        let number = bias.as_f64().filter(|bias| (-100.0..=100.0).contains(bias));
        let number =
            number.ok_or_else(|| expected(&format!("logit_bias.{id}"), "a number between -100 and 100", &bias))?;
        Ok((token, number as f32))
    };
    entries.into_iter().map(read).collect()
}

fn stop(fields: &mut Fields) -> Result<Vec<String>, Refusal> {
    let strings = match fields.take("stop") {
        None => Vec::new(),
        Some(Value::Array(strings)) if strings.len() <= STOPS => {
            let numbered = strings.into_iter().enumerate();
            let named = numbered.map(|(index, value)| (format!("stop[{index}]"), value));
            named.map(|(path, value)| stop_string(&path, value)).collect::<Result<_, _>>()?
        }
        Some(Value::Array(strings)) => {
            return Err(Refusal::field("stop", format!("expected at most {STOPS} strings, got {}", strings.len())));
        }
        Some(string @ Value::String(_)) => vec![stop_string("stop", string)?],
        Some(other) => return Err(expected("stop", "a string or a list of strings", &other)),
    };
    Ok(strings)
}

fn stop_string(path: &str, value: Value) -> Result<String, Refusal> {
    match value {
        Value::String(string) if string.is_empty() => {
            Err(Refusal::field(path, "an empty string would end every answer at once; leave it out"))
        }
        Value::String(string) => Ok(string),
        other => Err(expected(path, "a string", &other)),
    }
}

fn template_variables(fields: &mut Fields) -> Result<Map<String, Value>, Refusal> {
    match fields.take("chat_template_kwargs") {
        None => Ok(Map::new()),
        Some(Value::Object(variables)) => Ok(variables),
        Some(other) => Err(expected("chat_template_kwargs", "an object of variables for the chat template", &other)),
    }
}
