//! What libFuzzer begins with, written before it reads its arguments: a corpus of recorded cases, and a dictionary.

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde_json::{Value, json};

use crate::{
    answers,
    chat::{Dialect, ToolCall, render_turn},
    literals,
    promises::MARKS,
    shapes,
};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn write(target: &str, seeds: impl IntoIterator<Item = Vec<u8>>) {
    let corpus = folder().join("corpus").join(target);
    fs::create_dir_all(&corpus).expect("a folder for the corpus");
    for (index, seed) in seeds.into_iter().enumerate() {
        fs::write(corpus.join(format!("seed-{index:05}")), seed).expect("a seed");
    }
}

fn write_dictionary<'a>(target: &str, words: impl IntoIterator<Item = &'a [u8]>) {
    let entry = |word: &[u8]| {
        let escaped = word.iter().map(|byte| match byte {
            b'"' | b'\\' => format!("\\{}", char::from(*byte)),
            b' '..=b'~' => char::from(*byte).to_string(),
            byte => format!("\\x{byte:02X}"),
        });
        format!("\"{}\"\n", escaped.collect::<String>())
    };
    // What is longer is not taken.
    let entries: BTreeSet<String> =
        words.into_iter().filter(|word| (1..=64).contains(&word.len())).map(entry).collect();
    fs::write(folder().join(format!("{target}.dict")), entries.into_iter().collect::<String>()).expect("a dictionary");
}

/// The answers of the tests' cases.
fn cases() -> BTreeSet<String> {
    let families = fs::read_dir(folder().join("../tests/data/dialects")).expect("the folder of cases");
    let families = families.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir());
    let files = families.flat_map(|family| fs::read_dir(family).expect("a folder of cases"));
    let mut answers = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(file.expect("an entry").path()).expect("a file of cases");
        for part in text.split("\n=== ").skip(1) {
            let (title, answer) = part.split_once('\n').unwrap_or((part, ""));
            if title.starts_with("answer") {
                // The tests' own mark of a space at the end of a line.
                answers.insert(answer.replace('␠', " "));
            }
        }
    }
    answers
}

/// For a target that reads answers in these dialects: the cases of the tests, and what each format writes.
pub fn of_answers(target: &str, dialects: &[&'static Dialect]) {
    let cases = cases();
    let mut seeds = Vec::new();
    for (index, dialect) in dialects.iter().enumerate() {
        let index = u8::try_from(index).expect("a dialect for each byte");
        let opens: Vec<&str> = dialect.tools.iter().flat_map(|format| format.opens).copied().collect();
        let mentions = |case: &&String| opens.iter().any(|open| case.contains(open));
        let written = dialect.tools.iter().flat_map(|format| {
            let calls = calls();
            [render_turn(format, &calls[..1]), format!("Hello.\n{}", render_turn(format, &calls))]
        });
        let answers = cases.iter().filter(mentions).cloned().chain(written);
        for (number, answer) in answers.enumerate() {
            let mut seed = vec![index, u8::try_from(number % 4).expect("less than 4"), 0x80];
            // The tests' own marks around special tokens.
            seed.extend(answer.replace(['⟪', '⟫'], "\0").bytes().map(|byte| if byte == 0 { 0xfe } else { byte }));
            seeds.push(seed);
        }
    }
    write(target, seeds);
    write_dictionary(target, MARKS.iter().map(|mark| mark.as_bytes()).chain([&[answers::CUT][..], b"\xfe"]));
}

fn calls() -> [ToolCall; 3] {
    let call = |name: &str, arguments: Value| {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        ToolCall { id: "call00001".to_owned(), name: name.to_owned(), arguments }
    };
    [
        call("get_weather", json!({"city": "Île \"x\"\n", "days": 3, "metric": true, "limit": 1.5})),
        call("write_file", json!({"path": "p", "content": "a < b", "tags": ["x", ""], "options": {"mode": 420}})),
        call("now", json!({})),
    ]
}

/// For a target that reads templates: those of the tests and the shapes, and some that nest.
pub fn of_templates(target: &str) {
    let mut tests = literals::of("src/chat/prompt/template/limit_tests.rs");
    tests.extend(literals::of("src/chat/prompt/template_tests.rs"));
    tests.extend(literals::of("src/chat/prompt/template/plain_tests.rs"));
    let expressions = fs::read_to_string(folder().join("../tests/data/templates/expressions.txt"));
    tests.extend(expressions.expect("the expressions").lines().map(str::to_owned));
    let templates = tests.into_iter().filter(|text| text.contains('{')).chain(shapes::all()).chain(nested());
    write(target, templates.map(String::into_bytes));
    let words = literals::of("src/chat/prompt/template");
    write_dictionary(target, words.iter().map(String::as_bytes).chain(JINJA.iter().map(|word| word.as_bytes())));
}

/// Each of Jinja's ways to nest, a thousandfold.
fn nested() -> impl Iterator<Item = String> {
    let many = |open: &str, middle: &str, close: &str| open.repeat(1000) + middle + &close.repeat(1000);
    [
        format!("{{{{ {} }}}}", many("(", "1", ")")),
        format!("{{{{ {} }}}}", many("[", "", "]")),
        format!("{{{{ {} }}}}", many("{1:", "1", "}")),
        format!("{{{{ {} }}}}", many("not ", "1", "")),
        format!("{{{{ {} }}}}", many("-", "1", "")),
        format!("{{{{ 1{} }}}}", many("", "", "+1")),
        format!("{{{{ 1{} }}}}", many("", "", "**1")),
        format!("{{{{ 1{} }}}}", many("", "", " ~ 1")),
        format!("{{{{ 1{} }}}}", many("", "", " and 1")),
        format!("{{{{ 1{} }}}}", many("", "", " if 1 else 1")),
        format!("{{{{ 1{} }}}}", many("", "", " < 1")),
        format!("{{{{ 1{} }}}}", many("", "", "|e")),
        format!("{{{{ x{} }}}}", many("", "", ".x")),
        format!("{{{{ x{} }}}}", many("", "", "[0]")),
        format!("{{{{ x{} }}}}", many("", "", "()")),
        many("{% if 1 %}", "", "{% endif %}"),
        format!("{{% if 1 %}}{}{{% endif %}}", many("", "", "{% elif 1 %}")),
        many("{% for x in [1] %}", "", "{% endfor %}"),
        many("{% with %}", "", "{% endwith %}"),
        many("{% set x %}", "", "{% endset %}"),
        many("{% macro m() %}", "", "{% endmacro %}"),
        many("{% filter e %}", "", "{% endfilter %}"),
        many("{% block x %}", "", "{% endblock %}"),
        many("{% call x() %}", "", "{% endcall %}"),
    ]
    .into_iter()
}

const JINJA: &[&str] = &[
    "{{ ",
    " }}",
    "{% ",
    " %}",
    "{%- ",
    " -%}",
    "{# ",
    " #}",
    "if ",
    "elif ",
    "else",
    "endif",
    "for ",
    " in ",
    "endfor",
    "recursive",
    "set ",
    "endset",
    "macro ",
    "endmacro",
    "call",
    "endcall",
    "filter ",
    "endfilter",
    "with ",
    "endwith",
    "block ",
    "endblock",
    "extends ",
    "include ",
    "import ",
    "from ",
    "raw",
    "endraw",
    "do ",
    "break",
    "continue",
    "generation",
    "endgeneration",
    " is ",
    " not ",
    " and ",
    " or ",
    "none",
    "true",
    "false",
    "loop.",
    "loop(",
    "index0",
    "namespace(",
    "range(",
    "dict(",
    "messages",
    "messages[0]",
    "m.content",
    ".content",
    ".role",
    ".tool_calls",
    ".function",
    ".arguments",
    ".items()",
    "tools",
    "[::-1]",
    "[1:]",
    "|map(attribute=",
    "|selectattr(",
    "|rejectattr(",
    "|groupby(",
    "|batch(",
    "|slice(",
    "|tojson",
    "|length",
    "|join",
    "|list",
    "|replace(",
    "|string",
    "|sort",
    "|unique",
    "|reverse",
    "|first",
    "|last",
    "|sum",
    "|dictsort",
    "|items",
    "|format(",
    "|default(",
    "|int",
    "|float",
    "|round",
    "|abs",
    "|title",
    "|upper",
    "|lower",
    "|urlencode",
    "|wordwrap(",
    "|center(",
    "|truncate(",
    "|zip(",
    "|chain",
    ".format(",
    ".split(",
    ".strip(",
    ".replace(",
    ".join(",
    ".ljust(",
    ".zfill(",
    ".encode(",
    "99999999",
    "-1",
    "1e308",
    "0x7fffffffffffffff",
    " ** ",
    " // ",
    " % ",
    " ~ ",
    " if ",
    " else ",
    "'x' * ",
];

/// For a target that renders conversations: a few for each template.
pub fn of_conversations(target: &str) {
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    let shapes = 0..shapes::all().len();
    let seeds: Vec<Vec<u8>> = shapes
        .flat_map(|shape| [64, 256, 512].map(|length| (shape, length)))
        .map(|(shape, length)| [shape as u8].into_iter().chain((0..length).map(|_| random())).collect())
        .collect();
    write(target, seeds);
    write_dictionary(target, literals::of("src/chat/prompt/template").iter().map(String::as_bytes));
}
