//! Small templates of our own render as jinja2 renders them (tests/data/templates/make.py).

use std::path::Path;

use super::public_tests::template;
use crate::chat::{Message, Request, Role};

/// A piece of a template, and why it does not render as in jinja2.
const DIFFERENCES: &[(&str, &str)] = &[
    ("\\U0001f600", "minijinja knows no \\U escapes"),
    ("line\\\n", "minijinja keeps a backslash before the end of a line"),
    ("varargs", "minijinja's macros take what they name"),
    ("1 < \"a\"", "minijinja orders all values"),
    ("[1, \"a\"] | sort", "minijinja orders all values"),
    ("1 in \"abc\"", "minijinja looks for the number's text"),
    ("range(3) }}", "a range is printed as the list it stands for"),
    ("range(2) | tojson", "a range has a length, and so has JSON, as two lists added have"),
    (".items() | tojson", "a dict's items have a length, and so have JSON"),
    ("lipsum is", "text to fill pages with, at random: no prompt has it"),
    ("wordwrap", "not in minijinja, as urlize and xmlattr, which write HTML, are not"),
    ("pprint", "minijinja's breaks lines elsewhere"),
];

#[test]
fn expressions_render_as_in_jinja2() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/templates");
    let sources = std::fs::read_to_string(folder.join("expressions.txt")).unwrap();
    let expected = std::fs::read(folder.join("expressions.json")).unwrap();
    let expected: Vec<Option<String>> = serde_json::from_slice(&expected).unwrap();
    let request = Request::new(vec![Message::new(Role::User, "x")]);
    let mut wrong = Vec::new();
    for (source, expected) in sources.split("\n§\n").zip(&expected) {
        let rendered = template(source, &[]).map_err(|error| error.to_string());
        let rendered = rendered.and_then(|template| template.render(&request).map_err(|error| error.to_string()));
        let rendered = rendered.map(|rendered| rendered.text);
        let known = DIFFERENCES.iter().any(|(piece, _)| source.contains(piece));
        if (rendered.as_ref().ok() == expected.as_ref()) == known {
            wrong.push(format!("{source}\n  jinja2: {expected:?}\n  ours:   {rendered:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), expected.len(), wrong.join("\n"));
    assert!(expected.len() > 100);
}
