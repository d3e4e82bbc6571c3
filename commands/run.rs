//! `mettle run`: one answer to one prompt, or a plain chat in the terminal.

use std::{
    io::{IsTerminal, Read},
    time::Instant,
};

use mettle::{
    chat::{Event, Message, Model, Part, Phase, Reason, Request, Role, Thinking, ToolCall},
    engine::Limits,
    protocol::{Call, Completion, Fold, Usage},
};
use rustyline::error::ReadlineError;

use crate::{
    args::Run,
    error::{Ending, Failure},
    load::{self, How, block_on},
    page::Page,
    request,
};

/// Loads the model, then answers the prompt or chats until the input ends.
pub fn run(arguments: Run) -> Result<(), Failure> {
    let prompt = prompt(&arguments)?;
    let request = request::of(&arguments)?;
    block_on(async move {
        let limits = Limits { rows: 1, prefix_bytes: load::default_prefix_bytes(), ..Limits::default() };
        let Run { sources, device, format, .. } = &arguments;
        let how = How { sources, device, format, thinking: &Thinking::default() };
        let model = load::load(arguments.model.as_deref(), how, limits).await?;
        let mut chat = Chat { model, request, verbose: arguments.verbose };
        match prompt {
            Some(prompt) => match chat.answer(prompt).await? {
                Some(Reason::Failed(text)) => Err(Failure::new(text)),
                Some(Reason::Length(_)) => Err(Ending::Cut.into()),
                Some(Reason::Loop(_)) => Err(Ending::Looped.into()),
                Some(_) => Ok(()),
                None => Err(Ending::Interrupted.into()),
            },
            None => chat.converse().await,
        }
    })
}

/// The one prompt: the argument, standard input where that is no terminal, or both, what is asked about first. `None`
/// asks for one after the other.
fn prompt(arguments: &Run) -> Result<Option<String>, Failure> {
    let asked = arguments.prompt.as_deref().filter(|text| *text != "-");
    let reads = arguments.prompt.as_deref() == Some("-") || !std::io::stdin().is_terminal();
    let piped = if reads { piped()? } else { String::new() };
    match (piped.trim(), asked) {
        ("", None) if reads => Err(Failure::new("there is no prompt: standard input was empty")
            .hint("mettle run MODEL \"a question\", or run it in a terminal")),
        ("", asked) => Ok(asked.map(str::to_owned)),
        (piped, None) => Ok(Some(piped.to_owned())),
        (piped, Some(asked)) => Ok(Some(format!("{piped}\n\n{asked}"))),
    }
}

fn piped() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|error| {
        Failure::new(format!("standard input is not UTF-8 at byte {}", error.utf8_error().valid_up_to()))
    })
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
        say!("Ctrl-C stops an answer, Ctrl-D leaves.");
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
                Ok(Some(Reason::Failed(text))) => say!("error: {text}"),
                Ok(_) => {}
                Err(failure) => {
                    // Such as a conversation that has outgrown the context: the turn is taken back, the chat goes on.
                    self.request.messages.pop();
                    crate::error::exit_code(Err(failure));
                }
            }
        }
    }

    /// Prints the answer as it comes and adds both sides to the conversation. Ctrl-C ends it early, and then
    /// there is no reason.
    async fn answer(&mut self, prompt: String) -> Result<Option<Reason>, Failure> {
        self.request.messages.push(Message::new(Role::User, prompt));
        let started = Instant::now();
        let mut answers = self.model.generate(&self.request)?;
        let mut page = Page::new();
        let mut completion = Completion::default();
        let mut first = None;
        let reason = loop {
            let event = tokio::select! {
                event = answers.next() => event,
                _ = tokio::signal::ctrl_c() => None,
            };
            let Some((_, event)) = event else { break None };
            if !matches!(event, Event::Started { .. }) {
                first.get_or_insert_with(Instant::now);
            }
            page.show(&event)?;
            completion.add(event);
            if let Some(reason) = &completion.reason {
                break Some(reason.clone());
            }
        };
        page.end()?;
        self.report(completion.usage, started, first);
        match &reason {
            Some(Reason::Length(phase)) => say!("(cut off: {} reached the limit of tokens)", named(*phase)),
            Some(Reason::Loop(phase)) => say!("(stopped: {} repeated itself without end)", named(*phase)),
            _ => {}
        }
        self.request.messages.push(message(completion));
        Ok(reason)
    }

    fn report(&self, usage: Usage, started: Instant, first: Option<Instant>) {
        if !self.verbose {
            return;
        }
        let Usage { prompt, cached, completion, reasoning } = usage;
        let first = first.unwrap_or_else(Instant::now);
        let prefill = (first - started).as_secs_f64();
        let decode = first.elapsed().as_secs_f64();
        let speed = if decode > 0.0 { completion.saturating_sub(1) as f64 / decode } else { 0.0 };
        say!(
            "prompt {prompt} tokens ({cached} cached), first token after {prefill:.2} s; answer {completion} tokens \
             ({reasoning} of reasoning), {speed:.1} tokens/s"
        );
    }
}

/// The answer as a message of the conversation. A call that was cut off is left out.
fn message(completion: Completion) -> Message {
    let call = |call: Call| {
        let arguments = serde_json::from_str(&call.arguments).ok()?;
        Some(ToolCall { id: call.id, name: call.name, arguments })
    };
    let reasoning = Some(completion.reasoning).filter(|text| !text.is_empty());
    let mut content = Vec::new();
    content.extend(reasoning.map(Part::Reasoning));
    content.push(Part::Text(completion.text));
    content.extend(completion.calls.into_iter().filter_map(call).map(Part::ToolCall));
    Message { role: Role::Assistant, name: None, content }
}

fn named(phase: Phase) -> &'static str {
    match phase {
        Phase::Reasoning => "the reasoning",
        Phase::Text => "the answer",
        Phase::ToolCall => "the tool call",
    }
}
