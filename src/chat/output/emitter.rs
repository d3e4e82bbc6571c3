//! The events of an answer as parsers find them: text, thoughts and calls, without the white space between them that
//! belongs to the markup.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::nesting::Nesting;
use crate::chat::{Event, Phase, ToolEvent, dialect::CallIds};

/// Names of undeclared tools that are reported of one answer.
const REJECTED: usize = 8;

/// The events found so far.
#[derive(Debug)]
pub struct Output(Mutex<State>);

#[derive(Debug)]
struct State {
    events: Vec<Event>,
    phase: Phase,
    /// White space that is text if text follows, and markup if a call or a thought does.
    spaces: String,
    /// Whether a mark that is left out stands in `spaces`.
    dropped: bool,
    /// Whether white space that comes now only sets the next words off from a thought or a call.
    set_off: bool,
    /// Whether the phase has text that is not white space.
    begun: bool,
    /// Whether a call has interrupted the text: white space around it is text if more text follows.
    interrupted: bool,
    /// Whether the answer has text at all.
    answered: bool,
    line: Line,
    /// How many calls have begun.
    calls: usize,
    /// The arguments of the call that has begun and not ended.
    open_call: Option<Nesting>,
    /// The undeclared tools that were called.
    rejected: Vec<String>,
    /// No other call is looked for.
    calls_are_over: bool,
    /// What comes now is text, whatever it looks like.
    forbids_calls: bool,
    /// Hashed with a call's number, this makes its id.
    ids: u64,
    call_ids: CallIds,
}

/// Where in the text the last character stands, as far as that says whether a mark there is code.
#[derive(Debug, Default)]
struct Line {
    /// Within a block of code between fences.
    fenced: bool,
    /// The beginning of the current line, as far as it may be a fence.
    start: String,
    last: Option<char>,
}

impl Output {
    /// No events yet. `ids` should be random.
    pub fn new(phase: Phase, ids: u64, call_ids: CallIds) -> Output {
        let state = State {
            events: Vec::new(),
            phase,
            spaces: String::new(),
            dropped: false,
            set_off: phase == Phase::Reasoning,
            begun: false,
            interrupted: false,
            answered: false,
            line: Line::default(),
            calls: 0,
            open_call: None,
            rejected: Vec::new(),
            calls_are_over: false,
            forbids_calls: false,
            ids,
            call_ids,
        };
        Output(Mutex::new(state))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The events since the last time.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.lock().events)
    }

    /// What the answer is in the middle of.
    pub fn phase(&self) -> Phase {
        let state = self.lock();
        if state.open_call.is_some() { Phase::ToolCall } else { state.phase }
    }

    /// A thought or an answer begins.
    pub fn enter(&self, phase: Phase) {
        let mut state = self.lock();
        state.phase = phase;
        state.set_off = true;
        state.begun = false;
        state.interrupted = false;
        state.spaces.clear();
        state.line = Line::default();
    }

    /// More of the phase's own text. White space at its beginning is markup; at its end it waits for what follows.
    pub fn emit(&self, text: &str) {
        let mut state = self.lock();
        let text = if state.begun || !state.set_off { text } else { text.trim_start() };
        if text.is_empty() {
            return;
        }
        let certain = text.trim_end().len();
        if certain > 0 {
            let held = std::mem::take(&mut state.spaces);
            state.push(held + &text[..certain]);
            state.begun = true;
            state.dropped = false;
            state.interrupted = false;
        }
        state.spaces.push_str(&text[certain..]);
    }

    /// A mark that is left out: white space around it is text only if more text follows.
    pub fn drop_mark(&self) {
        self.lock().dropped = true;
    }

    /// Whether the answer has no text yet.
    pub fn is_blank(&self) -> bool {
        !self.lock().answered
    }

    /// Whether a mark that stood here would be code or a quotation, and no mark.
    pub fn in_code(&self) -> bool {
        let state = self.lock();
        state.line.fenced || state.spaces.is_empty() && state.line.last == Some('`')
    }

    /// Whether the text so far ends in a backtick.
    pub fn after_backtick(&self) -> bool {
        let state = self.lock();
        state.spaces.is_empty() && state.line.last == Some('`')
    }

    /// Whether this phase has any text.
    pub fn has_text(&self) -> bool {
        self.lock().begun
    }

    /// The end: white space that waited is text after all, unless it belongs to a call or another mark.
    pub fn finish(&self) {
        let mut state = self.lock();
        let held = std::mem::take(&mut state.spaces);
        let text =
            state.phase == Phase::Text && (state.begun || !state.set_off) && !state.dropped && !state.interrupted;
        if text && !held.is_empty() {
            state.push(held);
        }
    }

    /// A call begins. Of the white space on both sides of calls between two texts, the first there is is text.
    pub fn begin_call(&self, name: &str, id: Option<String>) {
        let mut state = self.lock();
        state.interrupted |= state.phase == Phase::Text && state.begun;
        if !state.interrupted {
            state.spaces.clear();
        }
        state.set_off = !state.interrupted || !state.spaces.is_empty();
        state.begun = false;
        let index = state.calls;
        let given = id.filter(|id| state.call_ids.allow(id));
        let id = given.unwrap_or_else(|| call_id(state.ids, index, state.call_ids));
        state.calls += 1;
        state.open_call = Some(Nesting::default());
        state.events.push(Event::ToolCall(ToolEvent::Begun { index, id, name: name.to_owned() }));
    }

    /// More of the open call's arguments.
    pub fn arguments(&self, piece: &str) {
        self.lock().arguments(piece);
    }

    /// The open call is complete.
    pub fn end_call(&self) {
        self.lock().end_call();
    }

    /// Ends a call that is broken off in the middle of a text that goes on: its JSON is closed behind what was good.
    pub fn close_broken(&self) {
        let mut state = self.lock();
        if let Some(nesting) = &state.open_call {
            let closing = nesting.closing();
            state.arguments(&closing);
            state.end_call();
        }
    }

    /// Whether a call has begun and not ended.
    pub fn is_call_open(&self) -> bool {
        self.lock().open_call.is_some()
    }

    /// A tool was called that nobody declared.
    pub fn reject(&self, name: &str) {
        let rejected = &mut self.lock().rejected;
        if rejected.len() < REJECTED && !name.is_empty() && !rejected.iter().any(|own| own == name) {
            rejected.push(name.to_owned());
        }
    }

    /// The undeclared tools that were called.
    pub fn rejected(&self) -> Vec<String> {
        self.lock().rejected.clone()
    }

    /// No other call is looked for.
    pub fn end_calls(&self) {
        self.lock().calls_are_over = true;
    }

    /// Whether no other call is looked for.
    pub fn calls_are_over(&self) -> bool {
        self.lock().calls_are_over
    }

    /// Says whether what comes now is text, whatever it looks like.
    pub fn forbid_calls(&self, forbids: bool) {
        self.lock().forbids_calls = forbids;
    }

    /// Whether what comes now is text, whatever it looks like.
    pub fn forbids_calls(&self) -> bool {
        self.lock().forbids_calls
    }

    /// How many calls have begun.
    pub fn calls(&self) -> usize {
        self.lock().calls
    }
}

impl State {
    fn arguments(&mut self, piece: &str) {
        if let Some(nesting) = &mut self.open_call {
            nesting.read(piece);
        }
        let index = self.calls - 1;
        match self.events.last_mut() {
            Some(Event::ToolCall(ToolEvent::Arguments { index: last, fragment })) if *last == index => {
                fragment.push_str(piece);
            }
            _ if piece.is_empty() => {}
            _ => self.events.push(Event::ToolCall(ToolEvent::Arguments { index, fragment: piece.to_owned() })),
        }
    }

    fn end_call(&mut self) {
        self.open_call = None;
        self.events.push(Event::ToolCall(ToolEvent::Ended { index: self.calls - 1 }));
    }

    fn push(&mut self, text: String) {
        self.line.push(&text);
        match self.phase {
            Phase::Reasoning => match self.events.last_mut() {
                Some(Event::Reasoning(last)) => last.push_str(&text),
                _ => self.events.push(Event::Reasoning(text)),
            },
            Phase::Text | Phase::ToolCall => {
                self.answered = true;
                match self.events.last_mut() {
                    Some(Event::Text(last)) => last.push_str(&text),
                    _ => self.events.push(Event::Text(text)),
                }
            }
        }
    }
}

impl Line {
    fn push(&mut self, text: &str) {
        for char in text.chars() {
            self.last = Some(char);
            if char == '\n' {
                self.start.clear();
            } else if self.start.len() < 8 {
                self.start.push(char);
                if self.start.trim_start() == "```" {
                    self.fenced = !self.fenced;
                }
            }
        }
    }
}

/// Characters from SplitMix64 over the answer's number and the call's.
fn call_id(seed: u64, index: usize, style: CallIds) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut state = seed ^ (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut digit = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        char::from(DIGITS[((z ^ (z >> 31)) % 36) as usize])
    };
    match style {
        CallIds::Long => format!("call_{}", (0..24).map(|_| digit()).collect::<String>()),
        CallIds::Nine => (0..9).map(|_| digit()).collect(),
    }
}
