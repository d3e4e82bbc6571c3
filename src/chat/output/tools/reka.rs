//! Reka Edge: hermes, in ASCII and without line ends between calls.
//!
//! `<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>`

use serde_json::Value;

use super::{Envelope, Format, HERMES};
use crate::chat::python::Dumps;

pub static FORMAT: Format = Format {
    name: "reka",
    opens: HERMES.opens,
    bare: &[],
    parse: HERMES.parse,
    envelope: Envelope { open: "", between: "", close: "" },
    render: |call, _| {
        let dumps = Dumps { ensure_ascii: true, ..Dumps::default() };
        let arguments = dumps.json(&Value::Object(call.arguments.clone()));
        format!("<tool_call>\n{{\"name\": \"{}\", \"arguments\": {arguments}}}\n</tool_call>", call.name)
    },
    grammar: HERMES.grammar,
};
