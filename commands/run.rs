//! `mettle run`: one answer to one prompt, or a plain chat in the terminal.

use std::{
    io::{IsTerminal, Read, Write},
    time::Instant,
};

use mettle::{
    chat::{Event, Finished, Message, Model, Overrides, Reason, Request, Role},
    engine::Limits,
};
use rustyline::error::ReadlineError;

use crate::{
    args::Run,
    error::Failure,
    load::{self, block_on},
};

pub fn run(arguments: Run) -> Result<(), Failure> {
    let prompt = prompt(&arguments)?;
    block_on(async move {
        let limits = Limits { rows: 1, prefix_bytes: load::default_prefix_bytes(), ..Limits::default() };
        let loaded = load::load(arguments.model.as_deref(), &arguments.sources, &arguments.device, limits).await?;
        let mut chat = Chat::new(loaded.model, &arguments);
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

/// A conversation and how to continue it.
struct Chat {
    model: Model,
    request: Request,
    verbose: bool,
}

impl Chat {
    fn new(model: Model, arguments: &Run) -> Chat {
        let sampling = Overrides {
            temperature: arguments.temperature,
            top_p: arguments.top_p,
            seed: arguments.seed,
            ..Overrides::default()
        };
        let messages = arguments.system.iter().map(|text| message(Role::System, text.clone())).collect();
        let max_tokens = arguments.max_tokens.map(|tokens| tokens as usize);
        let request = Request { messages, sampling, max_tokens, ..Request::default() };
        Chat { model, request, verbose: arguments.verbose }
    }

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
        self.request.messages.push(message(Role::User, prompt));
        let started = Instant::now();
        let mut events = self.model.generate(&self.request)?;
        let (mut answer, mut first, mut usage) = (String::new(), None, (0, 0));
        let reason = loop {
            let event = tokio::select! {
                event = events.next() => event,
                _ = tokio::signal::ctrl_c() => None,
            };
            match event {
                Some(Event::Started { prompt_tokens, cached_tokens }) => usage = (prompt_tokens, cached_tokens),
                Some(Event::Text(text)) => {
                    first.get_or_insert_with(Instant::now);
                    print!("{text}");
                    std::io::stdout().flush()?;
                    answer += &text;
                }
                Some(Event::Finished(Finished { reason, completion_tokens, .. })) => {
                    println!();
                    self.report(usage, completion_tokens, started, first);
                    break reason;
                }
                Some(_) => {}
                None => {
                    println!();
                    break Reason::Stop;
                }
            }
        };
        if matches!(reason, Reason::Length(_)) {
            eprintln!("(cut: the answer reached its limit of tokens)");
        }
        self.request.messages.push(message(Role::Assistant, answer));
        Ok(reason)
    }

    fn report(&self, (prompt, cached): (usize, usize), tokens: usize, started: Instant, first: Option<Instant>) {
        if !self.verbose {
            return;
        }
        let first = first.unwrap_or_else(Instant::now);
        let (prefill, decode) = (first - started, first.elapsed());
        let rate = |count: usize, seconds: f64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        eprintln!(
            "prompt {prompt} tokens ({cached} remembered), first token after {:.2} s; answer {tokens} tokens, {:.1} tokens/s",
            prefill.as_secs_f64(),
            rate(tokens.saturating_sub(1), decode.as_secs_f64()),
        );
    }
}

fn message(role: Role, content: String) -> Message {
    Message::new(role, content)
}
