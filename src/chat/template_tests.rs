//! Templates of the tests' own, for each rule one.

use serde_json::{Map, Value as Json, json};

use super::super::{Message, Role};
use super::*;

fn message(role: Role, content: &str) -> Message {
    Message::new(role, content)
}

fn request(messages: Vec<Message>) -> Request {
    Request { messages, ..Request::default() }
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
    assert!(matches!(render_with("", &request), Err(Error::Request { field: "template_variables", .. })));
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
    assert!(render_with("{{ strftime_now('%!') }}", &request).unwrap_err().to_string().contains("no time format"));
}

#[test]
fn failures() {
    let request = request(vec![message(Role::User, "x")]);
    let check = |source: &str, piece: &str| match render_with(source, &request) {
        Err(Error::Request { field: "messages", message }) => assert!(message.contains(piece), "{message}"),
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
