//! GGML's grammars as Lark, and what is wrong with some.

use super::*;

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (text, expected) in [
        ("", "no rule named root"),
        ("a ::= \"x\"", "no rule named root"),
        ("root ::= a", "rule \"a\" is used but not defined"),
        ("root ::= \"x\"\nroot ::= \"y\"", "line 2: the rule \"root\" is defined twice"),
        ("root = \"x\"", "line 1: expected ::="),
        ("root ::= \"x", "line 1: a text has no closing quote"),
        ("root ::= [a", "no closing ]"),
        ("root ::= []", "matches nothing"),
        ("root ::= [z-a]", "is empty"),
        ("root ::= (\"x\"", "expected )"),
        ("root ::= \"x\" )", "did not expect ')'"),
        ("root ::=\n\"\\q\"", "line 2: the escape \\q"),
        ("root ::= \"\\x4\"", "2 digits"),
        ("root ::= \"a\"{3,2}", "cannot be"),
        ("root ::= \"a\"{x}", "expected a number"),
        ("root ::= \"a\"{2", "expected }"),
        ("root ::= \"a\"{99999}", "too many"),
        ("root ::= !<x>", "not supported"),
        ("root ::= < x>", "a token is written"),
        ("root ::= *", "did not expect '*'"),
        (&format!("root ::= {}", "(".repeat(5000)), "lie in each other"),
    ] {
        let error = to_lark(text).unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn what_needs_no_recursion_is_one_terminal() {
    let text = "root ::= sign? [0-9]+ # a number\nsign ::= \"+\" | \"-\"";
    let lark = "start: W0\nT0: ((T1)? (/[\\u{30}-\\u{39}]/)+)\nT1: (\"+\" | \"-\")\nW0: T0\n";
    assert_eq!(to_lark(text).unwrap(), lark);
    let text = "root ::= \"(\" \" \"* root? \")\" <|x|>";
    let lark = "start: r0\nr0: (W0 (r0)? W1 <|x|>)\nW0: (\"(\" (\" \")*)\nW1: (\")\")\n";
    assert_eq!(to_lark(text).unwrap(), lark);
}
