//! How much a model is to think, in the several ways clients say it.

use serde_json::Value;

use super::fields::{Fields, expected};
use crate::{chat::Thinking, protocol::Refusal};

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
    if let Some(value) = fields.take("reasoning") {
        let mut reasoning = Fields::of("reasoning", value)?;
        thinking.effort = reasoning.read("effort", EFFORT, effort)?.or(thinking.effort);
        thinking.budget = reasoning.read("max_tokens", BUDGET, count)?.or(thinking.budget);
        thinking.enabled = reasoning.bool("enabled")?.or(thinking.enabled);
        reasoning.finish("known are effort, max_tokens and enabled")?;
    }
    match fields.take("thinking") {
        None => {}
        Some(Value::Bool(enabled)) => thinking.enabled = Some(enabled),
        Some(value @ Value::Object(_)) => {
            let mut wish = Fields::of("thinking", value)?;
            let enabled =
                wish.read("type", "\"enabled\", \"disabled\" or \"auto\"", |kind| match kind.as_str()? {
                    "enabled" => Some(Some(true)),
                    "disabled" => Some(Some(false)),
                    "auto" | "adaptive" => Some(None),
                    _ => None,
                })?;
            thinking.enabled = enabled.flatten().or(thinking.enabled);
            thinking.budget = wish.read("budget_tokens", BUDGET, count)?.or(thinking.budget);
            wish.finish("known are type and budget_tokens")?;
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
