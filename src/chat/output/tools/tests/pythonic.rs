//! Calls as lists of Python expressions: Llama 4's prompt format (llama.com), BFCL's examples.

use serde_json::json;

use super::*;
use crate::chat::output::tools::pythonic::FORMAT;

#[test]
pub fn cases() {
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&FORMAT, case, text, calls);
    let paris = ("get_weather", json!({"city": "Paris"}));
    check("[get_weather(city=\"Paris\")]", "", std::slice::from_ref(&paris));
    check("<|python_start|>[get_weather(city='Paris')]<|python_end|>", "", std::slice::from_ref(&paris));
    check(
        "I look.\n<|python_start|>[get_weather(city='Paris')]<|python_end|> ok",
        "I look.\nok",
        std::slice::from_ref(&paris),
    );
    check(
        "[get_weather(city=\"Paris\", days=3, metric=True, limit=-1.5), now(), now( )]",
        "",
        &[
            ("get_weather", json!({"city": "Paris", "days": 3, "metric": true, "limit": -1.5})),
            ("now", json!({})),
            ("now", json!({})),
        ],
    );
    check(
        "[get_weather('Paris', 3, metric = False,),]",
        "",
        &[("get_weather", json!({"city": "Paris", "days": 3, "metric": false}))],
    );
    check(
        "[get_weather(city=75001, days=\"2\", unit=\"c\")]",
        "",
        &[("get_weather", json!({"city": "75001", "days": 2, "unit": "c"}))],
    );
    check(
        "[write_file(path=\"a.py\", content=\"print(\\\"hi\\\")\\nx = [1, 2]\", tags=['a', \"b, c\"], options={'mode': 7})]",
        "",
        &[(
            "write_file",
            json!({"path": "a.py", "content": "print(\"hi\")\nx = [1, 2]", "tags": ["a", "b, c"], "options": {"mode": 7}}),
        )],
    );
    // Quotes that nobody escaped.
    check(
        "[write_file(content=\"print(\"hi\"), say \"no\", then\", path='it's (a) 'b', c)')]",
        "",
        &[("write_file", json!({"content": "print(\"hi\"), say \"no\", then", "path": "it's (a) 'b', c)"}))],
    );
    check(
        "[write_file(path=\"\"\"a\"b\"\"\", content='''\nline\n'''), now()]",
        "",
        &[("write_file", json!({"path": "a\"b", "content": "\nline\n"})), ("now", json!({}))],
    );
    check(
        "[write_file(path=\"\", content=\"é \\u00e9 \u{1f600} </tool_call> [now()]\")]",
        "",
        &[("write_file", json!({"path": "", "content": "é é \u{1f600} </tool_call> [now()]"}))],
    );
    check("[mcp.search-all(q=None, any=[True, {}])]", "", &[("mcp.search-all", json!({"q": null, "any": [true, {}]}))]);
    // Tuples, escapes that JSON does not have, and words without quotes.
    check(
        "[write_file(path=\"\\x41\\102\\0\\u00e9\\U0001f600\", tags=('a)', \"b\",), content='\\a\\v\\\n\\q\\9')]",
        "",
        &[("write_file", json!({"path": "AB\0é\u{1f600}", "tags": ["a)", "b"], "content": "\u{7}\u{b}\\q\\9"}))],
    );
    check(
        "[mcp.search-all(any=((1, 2), []), q=())]",
        "",
        &[("mcp.search-all", json!({"any": [[1, 2], []], "q": "[]"}))],
    );
    check("[get_weather(city=Paris, unit=c)]", "", &[("get_weather", json!({"city": "Paris", "unit": "c"}))]);
    check("[get_weather({\"city\": \"Paris\"})]", "", std::slice::from_ref(&paris));
    check("[rm(path='/')]", "[rm(path='/')]", &[]);
    check("[now] is a link, [now](x) too.", "[now] is a link, [now](x) too.", &[]);
    check("[1] says [now()]", "[1] says [now()]", &[]);
    check("Call [now()] for the time.", "Call [now()] for the time.", &[]);
    check("[now(), rm()] x", ", rm()] x", &[("now", json!({}))]);
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}
