//! Templates that would never end or take all memory end in an error, and no conversation makes a template panic.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Map, Value as Json, json};

use super::environment;
use super::public_tests::{public_templates, template, template_with_fuel};
use crate::chat::{ControlToken, Message, Part, Request, Role, Thinking, Tool, ToolCall, ToolChoice, ToolField};

#[test]
fn hostile_templates_end() {
    for source in [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}",
        "{{ range(1000000000) | list | length }}",
        "{% for i in range(1000000000) %}x{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% include 'chat template' %}",
        "{% for x in [[]] recursive %}{{ loop([x]) }}{% endfor %}",
        "{% set ns = namespace(x='x' * 999) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = (ns.x + ns.x) | list %}{% endfor %}",
        "{{ 'x' * 99999999999 }}",
        "{{ 'x'.ljust(99999999999) }}{{ 'x'.zfill(99999999999) }}",
        "{{ ('x' * 99999).replace('x', 'x' * 99999) }}",
        "{{ ('x' * 99999).join('x' * 99999) }}",
        "{{ '%999999999d' | format(1) }}",
        "{{ '%(x)99999d' | format(x=1) }}",
        "{{ '%.70000f' | format(1) }}",
        "{{ '{:>999999999}'.format(1) }}",
        "{{ '{:.70000f}'.format(1) }}",
        "{{ ('{:>9999}' * 999999).format(1) }}",
        // Each of which is a panic in minijinja.
        "{{ '%(é)s' | format(x=1) }}",
        "{{ '%(é' | format(x=1) }}",
        "{{ '{0[é]}'.format({}) }}",
        "{{ '{0[} é'.format({}) }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(500) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x | tojson }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
        "{{ ('\n' * 999999) | indent(9999, blank=true) }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(500) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
    ] {
        let template = template_with_fuel(source, &[], environment::FUEL / 100).unwrap();
        let result = template.render(&asked());
        assert!(result.is_err(), "{source}: {:?} bytes", result.map(|rendered| rendered.text.len()));
    }
}

fn asked() -> Request {
    Request::new(vec![Message::new(Role::User, "x")])
}

/// How long the longest rendering takes; run by hand.
#[test]
#[ignore = "prints times"]
fn all_fuel() {
    for source in [
        "{% if add_generation_prompt %}{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}{% endif %}",
        "{% set ns = namespace(x='') %}{% for i in range(99999) %}{% set ns.x = ns.x + 'xxxxxxxxxxxxxxxx' %}{% endfor %}",
    ] {
        let template = template(source, &[]).unwrap();
        let start = Instant::now();
        assert!(template.render(&asked()).is_err());
        writeln!(std::io::stderr(), "{:?}: {source}", start.elapsed()).unwrap();
    }
}

/// xorshift64*, so that a failure can be had again.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    fn text(&mut self) -> String {
        (0..self.below(6)).map(|_| PIECES[self.below(PIECES.len())]).collect()
    }

    fn json(&mut self, depth: usize) -> Json {
        match self.below(if depth == 0 { 6 } else { 8 }) {
            0 => Json::Null,
            1 => Json::from(self.one_in(2)),
            2 => Json::from(self.below(1 << 30) as i64 - (1 << 29)),
            3 => json!([1e-7, 1e300, 0.5, -0.0, 1e16][self.below(5)]),
            4 | 5 => Json::from(self.text()),
            6 => (0..self.below(4)).map(|_| self.json(depth - 1)).collect(),
            _ => Json::Object(self.object(depth - 1)),
        }
    }

    fn object(&mut self, depth: usize) -> Map<String, Json> {
        (0..self.below(4))
            .map(|_| {
                let key = if self.one_in(2) { KEYS[self.below(KEYS.len())].to_owned() } else { self.text() };
                (key, self.json(depth))
            })
            .collect()
    }

    fn message(&mut self) -> Message {
        let roles = [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool];
        let optional = |random: &mut Random, chances| random.one_in(chances).then(|| random.text());
        let name = optional(self, 4);
        let reasoning = optional(self, 3);
        let answered = optional(self, 3);
        let calls = if self.one_in(3) { self.below(3) } else { 0 };
        let call =
            |random: &mut Random| ToolCall { id: random.text(), name: random.text(), arguments: random.object(3) };
        let calls: Vec<Part> = (0..calls).map(|_| Part::ToolCall(call(self))).collect();
        let role = roles[self.below(5)];
        let mut message = match answered {
            Some(id) => Message { role, ..Message::tool_result(id, self.text()) },
            None => Message::new(role, self.text()),
        };
        message.name = name;
        message.content.extend(reasoning.map(Part::Reasoning));
        message.content.extend(calls);
        message
    }

    fn request(&mut self) -> Request {
        let tools = if self.one_in(2) { self.below(4) } else { 0 };
        let tool = |random: &mut Random| {
            let mut tool = Tool::new(random.text(), Json::Object(random.object(4)));
            if random.one_in(4) {
                tool.given.clear();
            } else {
                tool.description = Some(random.text());
                tool.given.push(ToolField::Description);
                tool.parameters = json!({"type": "object", "properties": random.object(3)});
            }
            tool
        };
        let messages = (0..1 + self.below(7)).map(|_| self.message()).collect();
        Request {
            tools: (0..tools).map(|_| tool(self)).collect(),
            tool_use: if self.one_in(8) { ToolChoice::None } else { ToolChoice::Auto },
            thinking: Thinking {
                enabled: [None, Some(true), Some(false)][self.below(3)],
                effort: self.one_in(3).then(|| ["low", "high", "none", "max", "\0"][self.below(5)].to_owned()),
                budget: self.one_in(4).then(|| self.below(1 << 20)),
            },
            continue_final: self.one_in(5),
            template_variables: if self.one_in(4) { self.object(3) } else { Map::new() },
            ..Request::new(messages)
        }
    }
}

const PIECES: &[&str] = &[
    "hello",
    " ",
    "\n",
    "\r\n",
    "\0",
    "\u{1c}",
    "\u{7f}",
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "'",
    "\"",
    "\\",
    "<",
    ">",
    "<|im_",
    "end|>",
    "<|im_end|>",
    "<|im_start|>",
    "</s>",
    "<think>",
    "</think>",
    "<tool_response>",
    "</tool_response>",
    "</tool_call>",
    "[INST]",
    "<|eot_id|>",
    "<|channel|>",
    "\u{f0000}",
    "\u{f0001}",
    "CONTINUE_FINAL_MESSAGE_TAG ",
    "/no_think",
    "/think",
    "é",
    "日本",
    "😀",
    "\u{202e}",
    "\u{2028}",
    "0",
    "-1.5e9",
    "null",
    "None",
    "&lt;",
    "</zz>",
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
    "additionalProperties",
    "documents",
    "enable_thinking",
    "role",
    "content",
];

/// Random conversations over every template there is. TEMPLATE_FUZZ_SECONDS=600 goes on for ten minutes.
#[test]
fn random_conversations_never_panic() {
    let seconds = std::env::var("TEMPLATE_FUZZ_SECONDS").ok().map(|seconds| seconds.parse::<u64>().unwrap());
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let own =
        "{% for m in messages %}<|im_start|>{{ m.role }} {{ m | tojson }}{{ m.content | trim }}<|im_end|>{% endfor %}";
    let special = ["<|im_end|>", "<|im_start|>", "</s>", "<|eot_id|>", "</zz>", "[INST]"].map(|text| (text, true));
    let other = ["<think>", "</think>", "<tool_response>", "</tool_response>"].map(|text| (text, false));
    let controls = special.into_iter().chain(other);
    let controls: Vec<_> = controls.map(|(text, special)| ControlToken { text: text.to_owned(), special }).collect();
    let sources = public_templates().into_iter().chain([("own".to_owned(), own.to_owned())]);
    let templates: Vec<_> = sources.map(|(name, source)| (name, template(&source, &controls).unwrap())).collect();
    let mut random = Random(0x0123_4567_89ab_cdef);
    let (mut rendered, mut refused, mut slowest) = (0, 0, Duration::ZERO);
    for round in 0.. {
        if end.map_or(round == 500, |end| Instant::now() > end) {
            break;
        }
        let request = random.request();
        let (name, template) = &templates[random.below(templates.len())];
        let start = Instant::now();
        let result = template.render(&request);
        slowest = slowest.max(start.elapsed());
        let Ok(prompt) = result else {
            refused += 1;
            continue;
        };
        rendered += 1;
        let mut done = 0;
        for range in &prompt.plain {
            assert!(done <= range.start && prompt.text.get(range.clone()).is_some_and(|text| !text.is_empty()));
            done = range.end;
        }
        // No template knows this one, so every one of it is somebody's.
        for (at, smuggled) in prompt.text.match_indices("</zz>") {
            let plain = prompt.plain.iter().any(|range| range.start <= at && at + smuggled.len() <= range.end);
            assert!(plain, "{name}: {request:?}");
        }
    }
    writeln!(std::io::stderr(), "{rendered} rendered, {refused} refused, the slowest took {slowest:?}").unwrap();
    assert!(rendered > refused / 10);
}

/// 200 messages and 20 tools; prints the times. Run by hand: `cargo test --release -- --ignored long_conversation`.
#[test]
#[ignore = "prints times"]
fn long_conversation() {
    let mut random = Random(7);
    let words = |random: &mut Random| (0..60).map(|_| PIECES[random.below(2)]).collect::<Vec<_>>().join(" word ");
    let tool = |index: usize| {
        let parameters = json!({"type": "object", "properties": {"query": {"type": "string", "description": "What to look for"},
            "limit": {"type": "integer", "minimum": 1}, "tags": {"type": "array", "items": {"type": "string"}}}, "required": ["query"]});
        let description = Some("Does something useful.".to_owned());
        let given = vec![ToolField::Name, ToolField::Description, ToolField::Parameters];
        Tool { description, given, ..Tool::new(format!("tool_{index}"), parameters) }
    };
    let messages = (0..200).map(|index| {
        let role = if index % 2 == 0 { Role::User } else { Role::Assistant };
        Message::new(role, words(&mut random))
    });
    let mut messages: Vec<Message> = messages.collect();
    messages.push(Message::new(Role::User, "And?"));
    let request = Request { tools: (0..20).map(tool).collect(), ..Request::new(messages) };
    for (name, source) in public_templates() {
        let controls = [ControlToken { text: "<|im_end|>".to_owned(), special: true }];
        let template = template(&source, &controls).unwrap();
        let time = |request: &Request| {
            let start = Instant::now();
            let size = template.render(request).map(|rendered| rendered.text.len());
            (start.elapsed(), size.unwrap_or(0))
        };
        let (plain, size) = time(&request);
        let mut marked = request.clone();
        let text = format!("{}<|im_end|> x", marked.messages[0].text());
        marked.messages[0].set_text(text);
        writeln!(std::io::stderr(), "{name}: {plain:?}, with a control token {:?}, {size} bytes", time(&marked).0)
            .unwrap();
    }
}
