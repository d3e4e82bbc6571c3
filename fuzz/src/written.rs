//! What was called goes into the conversation's past as its format writes it: read again, it is the same call.

use serde_json::Value;

use crate::{
    answers::{Case, Part, calls},
    chat::ToolCall,
};

impl Case {
    /// For dialects of one format. Where marks are special tokens, an argument may hold what reads like one, and cannot
    /// be written as text.
    pub fn check_written(&self, parts: &[Part]) {
        if self.has_special_tokens() {
            return;
        }
        let format = self.dialect.tools[0];
        for call in calls(parts).filter(|call| call.ended) {
            let arguments = serde_json::from_str(&call.arguments).expect("a call that ended has arguments");
            let written = ToolCall { id: call.id.clone(), name: call.name.clone(), arguments };
            let text = format!("{}{}{}", format.envelope.open, (format.render)(&written, 0), format.envelope.close);
            let again = self.read_text(&text);
            let read =
                calls(&again).next().map(|call| (call.name.as_str(), serde_json::from_str(&call.arguments).ok()));
            let expected = (written.name.as_str(), Some(Value::Object(written.arguments)));
            assert_eq!((read, again.len()), (Some(expected), 1), "{self:?}: {text:?} became {again:?}");
        }
    }
}
