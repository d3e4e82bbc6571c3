//! Bodies that have, together, every field that the endpoints know: what becomes of each is read off them.

/// Of chat completions.
pub(super) const CHAT: &[&str] = &[
    r#"{
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "x"},
                {"type": "image_url", "image_url": {"url": "x"}},
                {"type": "input_audio", "input_audio": {"data": "x", "format": "x"}},
                {"type": "file", "file": {"file_data": "x"}}
            ]},
            {"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}
        ],
        "stream": true,
        "stream_options": {},
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "response_format": {"type": "json_schema", "json_schema": {"schema": {}}},
        "reasoning": {},
        "thinking": {}
    }"#,
    r#"{
        "messages": [{"role": "user", "content": "x"}],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": [{"function": {"name": "f"}}]}},
        "structured_outputs": {"json_object": true}
    }"#,
    r#"{"messages": [{"role": "user", "content": "x"}], "response_format": {"type": "json_object"}}"#,
    r#"{"messages": [{"role": "user", "content": "x"}], "response_format": {"type": "regex", "regex": "x"}}"#,
    r#"{"messages": [{"role": "user", "content": "x"}], "response_format": {"type": "choice", "choice": ["x"]}}"#,
    r#"{"messages": [{"role": "user", "content": "x"}], "response_format": {"type": "grammar", "grammar": "x"}}"#,
];
