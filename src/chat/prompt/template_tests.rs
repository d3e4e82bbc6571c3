//! Templates of the tests' own, for each rule one.

use serde_json::{Map, Value as Json, json};

use super::*;
use crate::chat::{Message, Part, Request, Role, Thinking, Tool, ToolCall, ToolField};

fn message(role: Role, content: &str) -> Message {
    Message::new(role, content)
}

fn request(messages: Vec<Message>) -> Request {
    Request::new(messages)
}

pub(super) fn render_with(source: &str, request: &Request) -> Result<String, Error> {
    let template = Template::new(source.to_owned(), Some("<s>".to_owned()), Some("</s>".to_owned())).unwrap();
    template.render(request).map(|rendered| rendered.text)
}

fn check(source: &str, expected: &str) {
    let request = request(vec![message(Role::System, "be kind"), message(Role::User, "hé")]);
    assert_eq!(render_with(source, &request).unwrap(), expected, "{source}");
}

#[test]
fn variables() {
    check(
        "{{ bos_token }}{% for m in messages %}[{{ m.role }}:{{ m['content'] }}]{% endfor %}",
        "<s>[system:be kind][user:hé]",
    );
    check("{{ add_generation_prompt }} {{ tools is none }} {{ nothing is defined }}{{ nothing }}", "True True False");
    check("{{ messages[0].name is defined }}{{ messages[::-1][0].content.upper() }}", "FalseHÉ");
    let variables: Map<String, Json> = [("enable_thinking".to_owned(), json!(false))].into_iter().collect();
    let mut request = Request { template_variables: variables, ..request(vec![message(Role::User, "x")]) };
    assert_eq!(render_with("{{ enable_thinking is false }}", &request).unwrap(), "True");
    request.template_variables.insert("messages".to_owned(), json!([]));
    assert!(matches!(render_with("", &request), Err(Error::Request { field: Field::TemplateVariables, .. })));
}

#[test]
fn whitespace_and_tags_as_hugging_face_sets_them() {
    check("  {% if true %}\nx\n  {% endif %}\ny\n", "x\ny");
    check(
        "{% for i in range(9) %}{% if i == 1 %}{% continue %}{% elif i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}",
        "023",
    );
    check("a {%- generation -%} b {%- endgeneration %} c", "ab c");
    check("{% generation %}\nb\n{% endgeneration %}\nc", "b\nc");
    check("{{ tools is iterable }} {{ messages is iterable }} {{ 'x' is iterable }}", "False True True");
    check("{{ '<&>' }} {{ ' a,b '.strip().split(',') | join('+') }}", "<&> a+b");
}

#[test]
fn tojson_is_pythons() {
    check("{{ {'b': [1, 2.5], 'a': 'é<\"'} | tojson }}", "{\"b\": [1, 2.5], \"a\": \"é<\\\"\"}");
    check("{{ [{}, none] | tojson(indent=2) }}", "[\n  {},\n  null\n]");
    check("{{ {'b': 1, 'a': [2, 3]} | tojson(separators=(',', ':'), sort_keys=true) }}", "{\"a\":[2,3],\"b\":1}");
    check("{{ 'é' | tojson(ensure_ascii=true) }}", "\"\\u00e9\"");
    check("{{ messages[1] | tojson }}", "{\"role\": \"user\", \"content\": \"hé\"}");
    let error = render_with("{{ nothing | tojson }}", &request(vec![message(Role::User, "x")])).unwrap_err();
    assert!(error.to_string().contains("undefined has no JSON"), "{error}");
}

#[test]
fn the_time() {
    let request = request(vec![message(Role::User, "x")]);
    let year: u32 = render_with("{{ strftime_now('%Y') }}", &request).unwrap().parse().unwrap();
    assert!(year >= 2026, "{year}");
    // As glibc writes a time without a zone; what is no directive stays.
    for (format, expected) in
        [("[%z%Z]", "[]"), ("100 %", "100 %"), ("%!%Q%5%+%v", "%!%Q%5%+%v"), ("%%d %E", "%d %E"), ("é%t|%n", "é\t|\n")]
    {
        assert_eq!(render_with(&format!("{{{{ strftime_now('{format}') }}}}"), &request).unwrap(), expected);
    }
}

#[test]
fn failures() {
    let request = request(vec![message(Role::User, "x")]);
    let check = |source: &str, piece: &str| match render_with(source, &request) {
        Err(Error::Request { field: Field::Messages, message }) => assert!(message.contains(piece), "{message}"),
        other => panic!("{other:?}"),
    };
    check("{{ raise_exception('Only ' + 'users!') }}", "refuses these messages: Only users!");
    check("{% macro m() %}{{ raise_exception('deep') }}{% endmacro %}{{ m() }}", "refuses these messages: deep");
    check("{{ nothing.at.all }}", "undefined");
    let error = Template::new("{% if %}".to_owned(), None, None).unwrap_err().to_string();
    assert!(error.contains("chat template cannot be used"), "{error}");
}

#[test]
fn developers() {
    let request = request(vec![message(Role::Developer, "x")]);
    assert_eq!(render_with("{{ messages[0].role }}", &request).unwrap(), "system");
    let knows = "{% if messages[0].role == 'developer' %}yes{% endif %}";
    assert_eq!(render_with(knows, &request).unwrap(), "yes");
}

#[test]
fn continued_messages() {
    let turns = |content: &str| Request {
        continue_final: true,
        ..request(vec![message(Role::User, "q"), message(Role::Assistant, content)])
    };
    let check = |source: &str, content: &str, expected: &str| {
        assert_eq!(render_with(source, &turns(content)).unwrap(), expected, "{source}");
    };
    let plain = "{% for m in messages %}[{{ m.content }}]{% endfor %}{% if add_generation_prompt %}no{% endif %}";
    check(plain, "so ", "[q][so ");
    check(plain, "", "[q][");
    let trimmed = "{% for m in messages %}[{{ m.content | trim }}]{% endfor %}";
    check(trimmed, " so ", "[q][so");
    check(trimmed, "q", "[q][q");
    let refused = |source: &str, request: &Request, piece: &str| {
        let error = render_with(source, request).unwrap_err().to_string();
        assert!(error.contains(piece), "{error}");
    };
    refused("{{ messages[0].content }}", &turns("x"), "does not render it as it is");
    refused("{{ messages[1].content | upper }}", &turns("x"), "does not render it as it is");
    let asked = Request { continue_final: true, ..request(vec![message(Role::User, "q")]) };
    refused(plain, &asked, "not the assistant's");
}

fn open(default: &str, tool_use: Option<&str>, files: &[(&str, &str)]) -> Template {
    let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let templates = Templates { default: default.to_owned(), tool_use: tool_use.map(str::to_owned), files };
    Template::open(templates, Vec::new(), &[]).unwrap()
}

#[test]
fn named_and_included_templates() {
    let given = vec![ToolField::Strict, ToolField::Parameters, ToolField::Name];
    let tool = Tool { strict: true, given, ..Tool::new("f", json!({"z": 1, "a": 2})) };
    let plain = request(vec![message(Role::User, "x")]);
    let mut with_tools = Request { tools: vec![tool], ..plain.clone() };
    let expected = "tools {\"strict\": true, \"parameters\": {\"z\": 1, \"a\": 2}, \"name\": \"f\"}";
    let template = open("plain {{ tools is none }}", Some("tools {{ tools[0].function | tojson }}"), &[]);
    assert_eq!(template.render(&plain).unwrap().text, "plain True");
    assert_eq!(template.render(&with_tools).unwrap().text, expected);
    with_tools.tool_use = crate::chat::ToolChoice::None;
    assert_eq!(template.render(&with_tools).unwrap().text, "plain True");
    let template = open("{% include 'b.jinja' %}", None, &[("b.jinja", "<{{ messages[0].content }}>")]);
    assert_eq!(template.render(&plain).unwrap().text, "<x>");
    let outside = open("{% include '../b.jinja' %}", None, &[("b.jinja", "x")]);
    assert!(outside.render(&plain).unwrap_err().to_string().contains("../b.jinja"));
    let itself = open("{% include 'chat_template.jinja' %}", None, &[("chat_template.jinja", "file")]);
    assert_eq!(itself.render(&plain).unwrap().text, "file");
}

#[test]
fn what_a_template_knows() {
    let knows = |source: &str| open(source, None, &[]).knows_tools();
    let contents = "{% for m in messages %}{{ m.content }}{% endfor %}";
    assert!(!knows(contents));
    assert!(!knows("{% for m in messages if m.role != 'tool' %}{{ m.content }}{% endfor %}"));
    assert!(knows("{{ tools | tojson }}{{ messages | tojson }}"));
    assert!(!knows("{% if tools %}{{ raise_exception('no') }}{% endif %}"));
    let check = |source: &str, switch: bool, effort: bool, budget: bool| {
        assert_eq!(obeys(source), [switch, effort, budget], "{source}");
    };
    check(contents, false, false, false);
    check("{{ enable_thinking }}", true, false, false);
    check("{{ reasoning_effort }}", false, true, false);
    check("{{ thinking_budget }}", true, false, true);
}

/// Whether a template obeys a request to think or not, an effort and a budget: whether two requests make two prompts.
fn obeys(source: &str) -> [bool; 3] {
    let template = open(source, None, &[]);
    let rendered = |thinking: Thinking| {
        let request = Request { thinking, ..request(vec![message(Role::User, "Hello")]) };
        // An effort that the template refuses is one it knows.
        template.render(&request).ok()
    };
    let enabled = |enabled| Thinking { enabled: Some(enabled), ..Thinking::default() };
    let effort = |effort: &str| Thinking { effort: Some(effort.to_owned()), ..enabled(true) };
    let budget = |budget| Thinking { budget: Some(budget), ..Thinking::default() };
    let differ = |one: Thinking, other: Thinking| rendered(one) != rendered(other);
    [
        differ(enabled(true), enabled(false)),
        differ(effort("low"), effort("high")) || differ(effort("high"), effort("max")),
        differ(budget(512), budget(4096)),
    ]
}

/// What public templates obey, as their model cards say.
#[test]
fn thinking_of_public_templates() {
    let templates = public_tests::public_templates();
    let check = |name: &str, switch: bool, effort: bool, budget: bool| {
        let Some((_, source)) = templates.iter().find(|(found, _)| found == name) else {
            assert!(templates.is_empty(), "{name}");
            return;
        };
        assert_eq!(obeys(source), [switch, effort, budget], "{name}");
    };
    check("Qwen-Qwen3-0.6B", true, false, false);
    check("Qwen-Qwen2.5-7B-Instruct", false, false, false);
    check("deepseek-ai-DeepSeek-V3.1", true, false, false);
    check("deepseek-ai-DeepSeek-V4", true, true, false);
    check("openai-gpt-oss-120b", false, true, false);
    check("HuggingFaceTB-SmolLM3-3B", true, false, false);
    check("NVIDIA-Nemotron-Nano-v2", true, false, false);
    check("ByteDance-Seed-OSS", true, false, true);
    check("tencent-Hy3", true, true, false);
    check("MiniMax-M3", true, false, false);
    check("Kimi-K3", true, true, false);
    check("GLM-4.6", true, false, false);
    check("ibm-granite-granite-3.3-2B-Instruct", true, false, false);
    check("upstage-Solar-Open-100B", true, true, false);
}

/// A template that fails on a request as it is gets it in another way, and one that does not gets it as it is.
#[test]
fn a_request_told_in_other_ways() {
    let call = ToolCall {
        id: "call_1".to_owned(),
        name: "f".to_owned(),
        arguments: json!({"x": [1, "é"]}).as_object().unwrap().clone(),
    };
    let called = message(Role::Assistant, "").with(Part::ToolCall(call));
    let bare = Tool::new("f", json!({"properties": {"x": {"type": "array"}}}));
    let request = Request { tools: vec![bare], ..request(vec![message(Role::User, "x"), called]) };
    let rendered = |source: &str| open(source, None, &[]).render(&request).map(|rendered| rendered.text);
    let arguments = "messages[1].tool_calls[0].function.arguments";
    assert_eq!(rendered(&format!("{{{{ {arguments} | tojson }}}}")).unwrap(), "{\"x\": [1, \"é\"]}");
    assert_eq!(rendered(&format!("{{{{ 'f: ' + {arguments} }}}}")).unwrap(), "f: {\"x\": [1, \"é\"]}");
    let description = "'d: ' + tools[0].function.description + tools[0].function.parameters.properties.x.description";
    assert_eq!(rendered(&format!("{{{{ {description} }}}}")).unwrap(), "d: ");
    assert_eq!(rendered(&format!("{{{{ {description} + {arguments} }}}}")).unwrap(), "d: {\"x\": [1, \"é\"]}");
    assert_eq!(rendered("{{ tools[0].function.description is defined }}").unwrap(), "False");
    // The first failure is the one that is told, and an exception is none to be got round.
    let failed = |source: &str| rendered(source).unwrap_err().to_string();
    assert!(failed("{{ 'a' + none }}").contains("failed on these messages"));
    let strict =
        "{% if messages[1].tool_calls[0].function.arguments is mapping %}{{ raise_exception('no') }}{% endif %}";
    assert!(failed(strict).ends_with("refuses these messages: no"));
}

/// Firefunction's template is told of functions as text, and of a day.
#[test]
fn functions_as_text() {
    let tool = Tool { given: vec![ToolField::Name], ..Tool::new("f", json!({})) };
    let plain = request(vec![message(Role::User, "x")]);
    let with_tools = Request { tools: vec![tool], ..plain.clone() };
    let template = open("{{ functions + ' ' + datetime }}", None, &[]);
    assert!(template.knows_tools());
    let day = chrono::Local::now().format("%Y-%m-%d").to_string();
    assert_eq!(template.render(&plain).unwrap().text, format!("[] {day}"));
    let listed = "[\n    {\n        \"name\": \"f\"\n    }\n]";
    assert_eq!(template.render(&with_tools).unwrap().text, format!("{listed} {day}"));
    let set = json!({"datetime": "now"}).as_object().unwrap().clone();
    assert_eq!(template.render(&Request { template_variables: set, ..plain.clone() }).unwrap().text, "[] now");
    // Not where a template knows tools.
    let both = open("{{ tools }}{{ functions is defined }}{{ datetime is defined }}", None, &[]);
    assert_eq!(both.render(&plain).unwrap().text, "NoneFalseFalse");
}

/// Kimi K2's template has lists that grow and shrink.
#[test]
fn lists_that_change() {
    let source = "{% set ns = namespace(ids=[]) %}{% for m in messages %}{% set _ = ns.ids.append(m.content) %}\
                  {% endfor %}{% set a = ns.ids.pop(0) %}{% set b = ns.ids.pop() %}{{ a ~ b ~ ns.ids }}";
    let request = request(["x", "y", "z"].map(|content| message(Role::User, content)).to_vec());
    assert_eq!(open(source, None, &[]).render(&request).unwrap().text, "xz['y']");
}
