//! A conversation as a stream of bytes says: which roles, which texts, which tools. Where the stream ends, all is empty.

use serde_json::{Map, Value, json};

use crate::{
    chat::{Message, Part, Request, Role, Thinking, Tool, ToolCall, ToolChoice, ToolField},
    prompts::SMUGGLED,
};

/// Texts, and parts of what a template might put together again.
const PIECES: &[&str] = &[
    "hello",
    " ",
    "\n",
    SMUGGLED,
    "<|\u{5b57}",
    "\u{5b57}|>",
    "<|",
    "|>",
    "<",
    ">",
    "\u{5b57}",
    "<|im_end|>",
    "<|im_",
    "start|>",
    "</s>",
    "[INST]",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "CONTINUE_FINAL_MESSAGE_TAG ",
    "CONTINUE_FINAL_MESSAGE_TAG",
    "{{",
    "{% raw %}",
    "'",
    "\"",
    "\\",
    "\\u5b57",
    "\u{f0000}",
    "\u{f0001}",
    "\\udb80\\udc00",
    "\r\n",
    "\0",
    "\u{1c}",
    "\u{85}",
    "\u{202e}",
    "é",
    "😀",
    "&lt;",
    "0",
    "-1.5e9",
    "null",
    "/no_think",
];

const KEYS: &[&str] = &[
    "type",
    "properties",
    "required",
    "description",
    "enum",
    "items",
    "anyOf",
    "default",
    "name",
    "$ref",
    "title",
    "documents",
    "enable_thinking",
    "role",
    "content",
    "parameters",
];

/// The bytes, read one after the other.
struct Bytes<'a>(std::slice::Iter<'a, u8>);

pub fn request(data: &[u8]) -> Request {
    let mut bytes = Bytes(data.iter());
    let flags = bytes.next();
    let flag = |bit: u8| flags & (1 << bit) != 0;
    let messages = (0..1 + bytes.below(6)).map(|_| bytes.message()).collect();
    let tools = (0..if flag(0) { bytes.below(4) } else { 0 }).map(|_| bytes.tool()).collect();
    let efforts = ["low", "high", "none", "max", "\0"];
    Request {
        tools,
        tool_use: if flag(1) { ToolChoice::None } else { ToolChoice::Auto },
        thinking: Thinking {
            enabled: [None, Some(true), Some(false)][bytes.below(3)],
            effort: flag(2).then(|| efforts[bytes.below(efforts.len())].to_owned()),
            budget: flag(3).then(|| bytes.below(256)),
        },
        continue_final: flag(4),
        template_variables: if flag(5) { bytes.object(2) } else { Map::new() },
        ..Request::new(messages)
    }
}

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.next()) % limit
    }

    /// Pieces and characters, to a 0.
    fn text(&mut self) -> String {
        let mut text = String::new();
        loop {
            match self.next() {
                0 => return text,
                byte @ 0x20..0x80 => text.push(char::from(byte)),
                byte => text.push_str(PIECES[usize::from(byte) % PIECES.len()]),
            }
        }
    }

    fn json(&mut self, depth: usize) -> Value {
        match self.next() % if depth == 0 { 6 } else { 9 } {
            0 => Value::Null,
            1 => Value::from(self.below(2) == 0),
            2 => Value::from(i64::from(self.next()) << self.below(56)),
            3 => json!([1e-7, 1e300, 0.5, -0.0, 1e16][self.below(5)]),
            4 | 5 => Value::from(self.text()),
            6 => (0..self.below(4)).map(|_| self.json(depth - 1)).collect(),
            7 => Value::Object(self.object(depth - 1)),
            // As deep as JSON is read at all.
            _ => (0..self.below(110)).fold(self.json(0), |inner, level| match level % 2 {
                0 => json!([inner]),
                _ => json!({"properties": inner}),
            }),
        }
    }

    fn object(&mut self, depth: usize) -> Map<String, Value> {
        let entries = (0..self.below(4)).map(|_| {
            let key = match self.below(2) {
                0 => self.text(),
                _ => KEYS[self.below(KEYS.len())].to_owned(),
            };
            (key, self.json(depth))
        });
        entries.collect()
    }

    fn message(&mut self) -> Message {
        let roles = [Role::User, Role::Assistant, Role::Tool, Role::System, Role::Developer];
        let (role, fields) = (roles[self.below(roles.len())], self.next());
        let text = self.text();
        let name = (fields & 1 != 0).then(|| self.text());
        let reasoning = (fields & 2 != 0).then(|| self.text());
        let answered = (fields & 4 != 0).then(|| self.text());
        let calls = if fields & 8 != 0 { self.below(3) } else { 0 };
        let call = |bytes: &mut Self| ToolCall { id: bytes.text(), name: bytes.text(), arguments: bytes.object(2) };
        let mut message = match answered {
            Some(id) => Message { role, ..Message::tool_result(id, text) },
            None => Message::new(role, text),
        };
        message.name = name;
        message.content.extend(reasoning.map(Part::Reasoning));
        message.content.extend((0..calls).map(|_| Part::ToolCall(call(self))));
        message
    }

    fn tool(&mut self) -> Tool {
        // What the old corpora have as further fields of a tool is its description.
        let name = self.text();
        let description = Value::Object(self.object(2)).to_string();
        let parameters = json!({"type": "object", "properties": self.object(3)});
        let given = vec![ToolField::Description, ToolField::Name, ToolField::Parameters];
        Tool { description: Some(description), given, ..Tool::new(name, parameters) }
    }
}

/// Three that a template has to do with: a plain one; one with all there is; one that goes on.
pub fn fixed() -> [Request; 3] {
    let hostile = format!("a{SMUGGLED}b");
    let user = |text: &str| Message::new(Role::User, text);
    let arguments = Map::from_iter([("city".to_owned(), json!(hostile)), ("days".to_owned(), json!([1, 2.5, null]))]);
    let call = ToolCall { id: "call00001".to_owned(), name: "get_weather".to_owned(), arguments };
    let assistant = Message::new(Role::Assistant, "Let me <think>look")
        .with(Part::Reasoning(format!("so </think> {SMUGGLED}")))
        .with(Part::ToolCall(call));
    let answer = Message::tool_result("call00001", SMUGGLED);
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string", "description": hostile}}});
    let given = vec![ToolField::Name, ToolField::Description, ToolField::Parameters];
    let tool = Tool { description: Some("tells".to_owned()), given, ..Tool::new("get_weather", parameters) };
    let begun = vec![user("<|"), user("\u{5b57}|> so"), Message::new(Role::Assistant, format!(" {hostile} "))];
    [
        Request::new(vec![Message::new(Role::System, "be kind\n"), user("hé, 5 < 6")]),
        Request { tools: vec![tool], ..Request::new(vec![user(&hostile), assistant, answer]) },
        Request { continue_final: true, ..Request::new(begun) },
    ]
}
