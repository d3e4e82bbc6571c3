//! How much a model is to think, in the several ways clients say it.

use serde_json::Value;

use crate::{
    chat::Thinking,
    protocol::{Fields, Refusal, expected},
};

const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];
const EFFORT: &str = "none, minimal, low, medium, high, xhigh or max";
const BUDGET: &str = "a whole number of tokens, at least 0";

/// `reasoning_effort`, `reasoning`, `thinking`, `enable_thinking` and `thinking_budget`.
pub(super) fn from_wire(fields: &mut Fields) -> Result<Thinking, Refusal> {
    let mut thinking = Thinking {
        enabled: fields.bool("enable_thinking")?,
        effort: fields.read("reasoning_effort", EFFORT, effort)?,
        budget: fields.read("thinking_budget", BUDGET, count)?,
    };
    if let Some(mut reasoning) = fields.object("reasoning")? {
        thinking.effort = reasoning.read("effort", EFFORT, effort)?.or(thinking.effort);
        thinking.budget = reasoning.read("max_tokens", BUDGET, count)?.or(thinking.budget);
        thinking.enabled = reasoning.bool("enabled")?.or(thinking.enabled);
        reasoning.ignore("exclude", "the reasoning stands in a field of its own, which clients may leave alone");
        reasoning.ignore("summary", "reasoning is given as it is");
        reasoning.finish()?;
    }
    match fields.take("thinking") {
        None => {}
        Some(Value::Bool(enabled)) => thinking.enabled = Some(enabled),
        Some(value @ Value::Object(_)) => {
            let mut settings = Fields::of("thinking", value, fields.notes())?;
            let enabled =
                settings.read("type", "\"enabled\", \"disabled\" or \"auto\"", |kind| match kind.as_str()? {
                    "enabled" => Some(Some(true)),
                    "disabled" => Some(Some(false)),
                    "auto" | "adaptive" => Some(None),
                    _ => None,
                })?;
            thinking.enabled = enabled.flatten().or(thinking.enabled);
            thinking.budget = settings.read("budget_tokens", BUDGET, count)?.or(thinking.budget);
            settings.finish()?;
        }
        Some(other) => return Err(expected("thinking", "true, false or an object", &other)),
    }
    // No effort and no budget are ways to say: do not think.
    if thinking.effort.as_deref() == Some("none") || thinking.budget == Some(0) {
        thinking.enabled = thinking.enabled.or(Some(false));
    }
    Ok(thinking)
}

fn effort(value: &Value) -> Option<String> {
    value.as_str().filter(|effort| EFFORTS.contains(effort)).map(str::to_owned)
}

fn count(value: &Value) -> Option<usize> {
    value.as_u64().map(|count| usize::try_from(count).unwrap_or(usize::MAX))
}
