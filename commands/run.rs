//! `mettle run`: one answer to one prompt, or a plain chat in the terminal.

use std::{
    io::{IsTerminal, Read},
    path::Path,
    time::Instant,
};

use mettle::{
    chat::{Event, Message, Model, Part, Phase, Reason, Request, Role, ToolCall},
    engine::Limits,
    protocol::{Call, Usage, Whole, openai},
};
use rustyline::error::ReadlineError;
use serde_json::{Value, json};

use crate::{
    args::{OutputArgs, Run, ThinkingArgs},
    error::Failure,
    load::{self, How, block_on},
    page::Page,
};

pub fn run(arguments: Run) -> Result<(), Failure> {
    let (prompt, request) = (prompt(&arguments)?, request(&arguments)?);
    block_on(async move {
        let limits = Limits { rows: 1, prefix_bytes: load::default_prefix_bytes(), ..Limits::default() };
        let Run { sources, device, format, .. } = &arguments;
        let how = How { sources, device, format };
        let loaded = load::load(arguments.model.as_deref(), how, limits).await?;
        let mut chat = Chat { model: loaded.model, request, verbose: arguments.verbose };
        match prompt {
            Some(prompt) => match chat.answer(prompt).await? {
                Reason::Failed(text) => Err(Failure::new(text)),
                _ => Ok(()),
            },
            None => chat.converse().await,
        }
    })
}

/// The one prompt: the argument, or standard input where that is no terminal. `None` asks for one after the other.
fn prompt(arguments: &Run) -> Result<Option<String>, Failure> {
    let piped = match arguments.prompt.as_deref() {
        Some("-") => true,
        Some(text) => return Ok(Some(text.to_owned())),
        None => !std::io::stdin().is_terminal(),
    };
    if !piped {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Failure::new(format!("standard input is not UTF-8 at byte {}", error.utf8_error().valid_up_to()))
    })?;
    match text.trim() {
        "" => Err(Failure::new("there is no prompt: standard input was empty")
            .hint("mettle run MODEL \"a question\", or run it in a terminal")),
        text => Ok(Some(text.to_owned())),
    }
}

/// The request of these flags, without a message. Read as a request over HTTP is, so that both mean the same.
fn request(arguments: &Run) -> Result<Request, Failure> {
    let OutputArgs { tools, tool_choice, json, schema, regex, grammar } = &arguments.output;
    let mut body = json!({
        "messages": [{"role": "user", "content": ""}],
        "temperature": arguments.temperature,
        "top_p": arguments.top_p,
        "seed": arguments.seed,
        "max_tokens": arguments.max_tokens,
        "tools": tools.as_deref().map(read_json).transpose()?,
    });
    wish(&mut body, &arguments.thinking);
    body["tool_choice"] = match tool_choice.as_deref() {
        Some(name) if !["auto", "none", "required"].contains(&name) => {
            json!({"type": "function", "function": {"name": name}})
        }
        choice => json!(choice),
    };
    body["response_format"] = match (json, schema, regex, grammar) {
        (true, ..) => json!({"type": "json_object"}),
        (_, Some(file), ..) => json!({"type": "json_schema", "json_schema": {"schema": read_json(file)?}}),
        (_, _, Some(regex), _) => json!({"type": "regex", "regex": regex}),
        (.., Some(file)) => json!({"type": "grammar", "grammar": read(file)?}),
        _ => Value::Null,
    };
    let mut request = openai::chat::Request::from_wire(body.to_string().as_bytes())
        .map_err(|refusal| Failure::new(refusal.message))?
        .chat;
    request.messages = arguments.system.iter().map(|text| Message::new(Role::System, text.clone())).collect();
    Ok(request)
}

/// Adds to a request's body how much to think.
pub fn wish(body: &mut Value, thought: &ThinkingArgs) {
    body["thinking_budget"] = json!(thought.thinking_budget);
    match thought.think.as_deref() {
        Some("on") => body["enable_thinking"] = json!(true),
        Some("off") => body["enable_thinking"] = json!(false),
        effort => body["reasoning_effort"] = json!(effort),
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| Failure::new(format!("{} cannot be read: {error}", file.display())))
}

fn read_json(file: &Path) -> Result<Value, Failure> {
    serde_json::from_str(&read(file)?).map_err(|error| Failure::new(format!("{} is not JSON: {error}", file.display())))
}

/// A conversation and how to continue it.
struct Chat {
    model: Model,
    request: Request,
    verbose: bool,
}

impl Chat {
    /// Prompt after prompt until the input ends.
    async fn converse(&mut self) -> Result<(), Failure> {
        eprintln!("Ctrl-C stops an answer, Ctrl-D leaves.");
        let mut editor = rustyline::DefaultEditor::new()
            .map_err(|error| Failure::new(format!("the terminal cannot be used for input: {error}")))?;
        loop {
            let line = match editor.readline("> ") {
                Ok(line) if line.trim().is_empty() => continue,
                Ok(line) => line,
                Err(ReadlineError::Interrupted) => continue,
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(Failure::new(format!("the terminal failed: {error}"))),
            };
            // History is a convenience; a line that cannot be kept is still answered.
            let _ = editor.add_history_entry(&line);
            match self.answer(line).await {
                Ok(Reason::Failed(text)) => eprintln!("error: {text}"),
                Ok(_) => {}
                Err(failure) => {
                    // Such as a conversation that has outgrown the context: the turn is taken back, the chat goes on.
                    self.request.messages.pop();
                    crate::error::exit_code(Err(failure));
                }
            }
        }
    }

    /// Prints the answer as it comes and adds both sides to the conversation. Ctrl-C ends it early.
    async fn answer(&mut self, prompt: String) -> Result<Reason, Failure> {
        self.request.messages.push(Message::new(Role::User, prompt));
        let started = Instant::now();
        let mut answers = self.model.generate(&self.request)?;
        let (mut page, mut whole, mut first) = (Page::new(), Whole::default(), None);
        let reason = loop {
            let event = tokio::select! {
                event = answers.next() => event,
                _ = tokio::signal::ctrl_c() => None,
            };
            let Some((_, event)) = event else { break Reason::Stop };
            if !matches!(event, Event::Started { .. }) {
                first.get_or_insert_with(Instant::now);
            }
            page.show(&event)?;
            whole.add(event);
            if let Some(reason) = &whole.reason {
                break reason.clone();
            }
        };
        page.end()?;
        self.report(whole.usage, started, first);
        match &reason {
            Reason::Length(phase) => eprintln!("(cut: {} reached the limit of tokens)", what(*phase)),
            Reason::Loop(phase) => eprintln!("(stopped: {} repeated itself without end)", what(*phase)),
            _ => {}
        }
        self.request.messages.push(remembered(whole));
        Ok(reason)
    }

    fn report(&self, usage: Usage, started: Instant, first: Option<Instant>) {
        if !self.verbose {
            return;
        }
        let Usage { prompt, cached, completion, reasoning } = usage;
        let first = first.unwrap_or_else(Instant::now);
        let (prefill, decode) = (first - started, first.elapsed());
        let rate = |count: usize, seconds: f64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        eprintln!(
            "prompt {prompt} tokens ({cached} remembered), first token after {:.2} s; answer {completion} tokens \
             ({reasoning} of thought), {:.1} tokens/s",
            prefill.as_secs_f64(),
            rate(completion.saturating_sub(1), decode.as_secs_f64()),
        );
    }
}

/// What the conversation keeps of an answer: a call that was cut is none.
fn remembered(whole: Whole) -> Message {
    let call = |call: Call| {
        let arguments = serde_json::from_str(&call.arguments).ok()?;
        Some(ToolCall { id: call.id, name: call.name, arguments })
    };
    let mut message = Message { role: Role::Assistant, name: None, content: Vec::new() };
    message.content.extend(Some(whole.reasoning).filter(|text| !text.is_empty()).map(Part::Reasoning));
    message.content.push(Part::Text(whole.text));
    message.content.extend(whole.calls.into_iter().filter_map(call).map(Part::ToolCall));
    message
}

fn what(phase: Phase) -> &'static str {
    match phase {
        Phase::Reasoning => "the thought",
        Phase::Text => "the answer",
        Phase::ToolCall => "the tool call",
    }
}
