//! How each family of templates is told whether and how much to think.

use std::borrow::Cow;

use minijinja::Value;

use super::source::Source;
use crate::chat::{Message, Role, Thinking, prompt::conversation::Conversation};

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

/// How much to think, in the variables that this template reads; later ones win.
pub(super) fn variables(thinking: &Thinking, source: &Source) -> impl Iterator<Item = (&'static str, Value)> + use<> {
    let mut variables = Vec::new();
    if let Some(enabled) = enabled(thinking) {
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

/// The messages as Nemotron's second generation is to have them: it reads a flag in the last message that has one, and
/// takes it out again.
pub(super) fn flagged_messages<'c>(conversation: &'c Conversation<'_>, source: &Source) -> Cow<'c, [Message]> {
    let messages = Cow::Borrowed(conversation.messages.as_ref());
    let (Some(enabled), true) = (enabled(conversation.thinking), source.mentions("'/no_think' in content")) else {
        return messages;
    };
    let Some(index) = messages.iter().rposition(|message| message.role == Role::User) else { return messages };
    let mut messages = messages.into_owned();
    let flag = if enabled { " /think" } else { " /no_think" };
    let text = format!("{}{flag}", messages[index].text());
    messages[index].set_text(text);
    Cow::Owned(messages)
}

/// To ask for an effort is to ask for thoughts, and to ask for none of it is to ask for no thoughts.
fn enabled(thinking: &Thinking) -> Option<bool> {
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
