//! Functionary's calls: the model cards of 3.2, whose prompt ends with `>>>`, and of 2 and 2.5, and MeetKai's
//! tests/prompt_test_v2.txt and prompt_test_v2.llama3.txt.

use super::{json::check_json, *};
use crate::chat::output::tools::{FUNCTIONARY_LLAMA3, FUNCTIONARY_V2, functionary::FORMAT};

#[test]
pub fn cases() {
    check_json(&FORMAT, ">>>", |calls| {
        calls.iter().map(|(name, arguments)| format!(">>>{name}\n{arguments}")).collect()
    });
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named("functionary_v32"), case, "", text, calls);
    };
    let (now, paris) = (("now", json!({})), ("get_weather", json!({"city": "Paris"})));
    check("all\nHello.", "Hello.", &[]);
    check("all\nI look.\n>>>get_weather\n{\"city\": \"Paris\"}", "I look.", std::slice::from_ref(&paris));
    check("get_weather\n{\"city\": \"Paris\"}>>>now\n{}", "", &[paris.clone(), now.clone()]);
    check("now\n{}\n>>>all\nDone.", "Done.", &[now]);
    check("all\n>>> print(1)\n1", ">>> print(1)\n1", &[]);
    check("all\nallow all\nof it", "allow all\nof it", &[]);
    check("rm\n{}", "rm\n{}", &[]);
    check("Hello.", "Hello.", &[]);
    check("", "", &[]);
}

/// Functionary 2, whose prompt ends with `<|from|>assistant\n<|recipient|>`.
#[test]
pub fn version_2() {
    let open = "<|from|>assistant\n<|recipient|>";
    check_json(&FUNCTIONARY_V2, open, |calls| {
        let call = |(name, arguments): &(&str, &str)| format!("{open}{name}\n<|content|>{arguments}");
        calls.iter().map(call).collect::<Vec<_>>().join("\n")
    });
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named("functionary_v2"), case, "", text, calls);
    };
    let (now, paris) = (("now", json!({})), ("get_weather", json!({"city": "Paris"})));
    check("all\n<|content|>Hello.", "Hello.", &[]);
    check(
        "all\n⟪<|content|>⟫I look.\n⟪<|from|>⟫assistant\n⟪<|recipient|>⟫get_weather\n⟪<|content|>⟫{\"city\": \"Paris\"}",
        "I look.",
        std::slice::from_ref(&paris),
    );
    let two = format!("get_weather\n<|content|>{{\"city\": \"Paris\"}}\n{open}now\n<|content|>{{}}");
    check(&two, "", &[paris, now.clone()]);
    check(&format!("now\n<|content|>{{}}\n{open}all\n<|content|>Done."), "Done.", &[now]);
    check("rm\n<|content|>{}", "rm\n<|content|>{}", &[]);
    check("all\n<|content|>The mark <|recipient|> is a token.", "The mark <|recipient|> is a token.", &[]);
    check("Hello.", "Hello.", &[]);
    check("", "", &[]);
}

/// Functionary 2.5, of Llama 3.
#[test]
pub fn llama3() {
    check_json(&FUNCTIONARY_LLAMA3, "<|reserved_special_token_249|>", |calls| {
        let call = |(name, arguments): &(&str, &str)| format!("<|reserved_special_token_249|>{name}\n{arguments}");
        calls.iter().map(call).collect()
    });
    check(
        &FUNCTIONARY_LLAMA3,
        "I look.⟪<|reserved_special_token_249|>⟫now\n{}⟪<|reserved_special_token_249|>⟫now\n{}",
        "I look.",
        &[("now", json!({})), ("now", json!({}))],
    );
}

/// Python needs no JSON.
#[test]
fn code() {
    let tools = [tools(), vec![interpreter()]].concat();
    let message = "<|from|>assistant\n<|recipient|>";
    let two =
        format!("python\n<|content|>l = [1]\nl[0]\n{message}now\n<|content|>{{}}\n{message}all\n<|content|>Done.");
    for (dialect, case) in [
        ("functionary_v32", "python\nl = [1]\nl[0]>>>all\nDone."),
        ("functionary_v2", &two),
        ("functionary_v2", "python\n<|content|>l = [1]\nl[0]\n<|from|>assistant\n<|recipient|>all\n<|content|>Done."),
    ] {
        let whole = read_with(named(dialect), &tools, &[Piece::Text(case)], &[], Splitter::complete);
        assert_eq!(whole.calls[0].arguments, "{\"code\":\"l = [1]\\nl[0]\"}", "{dialect}");
        assert_eq!(whole.text, "Done.", "{dialect}");
    }
}

#[test]
fn writes_what_it_reads() {
    [&FORMAT, &FUNCTIONARY_V2, &FUNCTIONARY_LLAMA3].into_iter().for_each(check_rendered);
}
