//! How each family of templates is told whether and how much to think.

use minijinja::Value;

use super::source::Source;
use crate::chat::{Message, Request, Role};

/// What of [`Thinking`](crate::chat::Thinking) a template obeys, found by rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThinkingControl {
    /// Thinking can be switched on and off.
    pub switch: bool,
    /// There are degrees of it.
    pub effort: bool,
    /// The model is told how many tokens it may think.
    pub budget: bool,
}

/// A variable that switches thinking.
struct Switch {
    variable: &'static str,
    /// Only for templates that mention this too.
    with: &'static str,
    on: Option<Setting>,
    off: Setting,
}

#[derive(Clone, Copy)]
enum Setting {
    Flag(bool),
    Text(&'static str),
    Number(u64),
}

const SWITCHES: &[Switch] = &[
    // Qwen 3, GLM, SmolLM 3, Nemotron 3, Gemma 4, Laguna, Apertus …
    flag("enable_thinking"),
    // DeepSeek V3.1 and later, Granite 3, Kimi K3
    flag("thinking"),
    // Cohere
    flag("reasoning"),
    // MiniMax M3
    Switch {
        variable: "thinking_mode",
        with: "disabled",
        on: Some(Setting::Text("enabled")),
        off: Setting::Text("disabled"),
    },
    // Hunyuan 3
    Switch {
        variable: "reasoning_effort",
        with: "no_think",
        on: Some(Setting::Text("high")),
        off: Setting::Text("no_think"),
    },
    // Solar
    Switch { variable: "reasoning_effort", with: "\"minimal\"", on: None, off: Setting::Text("minimal") },
    // Seed-OSS
    Switch { variable: "thinking_budget", with: "", on: None, off: Setting::Number(0) },
];

const fn flag(variable: &'static str) -> Switch {
    Switch { variable, with: "", on: Some(Setting::Flag(true)), off: Setting::Flag(false) }
}

/// gpt-oss, DeepSeek V4, Hunyuan 3, Solar; Kimi K3; Muse.
const EFFORTS: &[&str] = &["reasoning_effort", "thinking_effort", "reasoning_strength"];

/// What the request wishes, in the variables that this template reads; later ones win.
pub(super) fn variables(request: &Request, source: &Source) -> impl Iterator<Item = (&'static str, Value)> {
    let thinking = &request.thinking;
    let mut variables = Vec::new();
    if let Some(enabled) = enabled(request) {
        let switches =
            SWITCHES.iter().filter(|switch| source.mentions(switch.variable) && source.mentions(switch.with));
        let settings = switches.filter_map(|switch| {
            let setting = if enabled { switch.on } else { Some(switch.off) };
            setting.map(|setting| (switch.variable, setting.value()))
        });
        variables.extend(settings);
    }
    if let Some(effort) = thinking.effort.as_deref().filter(|effort| *effort != "none") {
        let known = EFFORTS.iter().filter(|variable| source.mentions(variable));
        variables.extend(known.map(|variable| (*variable, Value::from(effort))));
    }
    if let Some(budget) = thinking.budget.filter(|_| source.mentions("thinking_budget")) {
        variables.push(("thinking_budget", Value::from(budget)));
    }
    variables.into_iter()
}

/// Nemotron's second generation reads a flag in the last message that has one and takes it out again.
pub(super) fn flag_messages(request: &Request, source: &Source, messages: &mut [Message]) {
    let (Some(enabled), true) = (enabled(request), source.mentions("'/no_think' in content")) else {
        return;
    };
    if let Some(message) = messages.iter_mut().rev().find(|message| message.role == Role::User) {
        let flag = if enabled { " /think" } else { " /no_think" };
        let text = format!("{}{flag}", message.text());
        message.set_text(text);
    }
}

/// An effort is a wish to think, and none of it a wish not to.
fn enabled(request: &Request) -> Option<bool> {
    let thinking = &request.thinking;
    thinking.enabled.or_else(|| Some(thinking.effort.as_deref()? != "none"))
}

impl Setting {
    fn value(self) -> Value {
        match self {
            Setting::Flag(flag) => Value::from(flag),
            Setting::Text(text) => Value::from(text),
            Setting::Number(number) => Value::from(number),
        }
    }
}
