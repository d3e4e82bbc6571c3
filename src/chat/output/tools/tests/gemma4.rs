//! Gemma's calls: Gemma 4's template and model card, the same in FunctionGemma's tokens (mlx-lm's parser), and Python as
//! Gemma 3 writes it.

use std::slice::from_ref;

use serde_json::json;

use super::*;
use crate::chat::output::tools::{FUNCTION_GEMMA, GEMMA4, TOOL_CODE};

/// A case in Gemma 4's tokens in FunctionGemma's.
fn translated(case: &str) -> String {
    let case = case.replace("<|tool_call>", "<start_function_call>").replace("<tool_call|>", "<end_function_call>");
    case.replace("<|\"|>", "<escape>")
}

/// Checks the same case in either.
fn check_both(case: &str, text: &str, calls: &[(&str, Value)]) {
    check(&GEMMA4, case, text, calls);
    let in_its_tokens = |value: &Value| {
        let json = translated(&value.to_string()).replace("<|\\\"|>", "<escape>");
        serde_json::from_str(&json).expect("JSON")
    };
    let calls: Vec<(&str, Value)> = calls.iter().map(|(name, value)| (*name, in_its_tokens(value))).collect();
    check(&FUNCTION_GEMMA, &translated(case), &translated(text), &calls);
}

#[test]
pub fn cases() {
    let check = check_both;
    let paris = ("get_weather", json!({"city": "Paris"}));
    check("<|tool_call>call:get_weather{city:<|\"|>Paris<|\"|>}<tool_call|>", "", from_ref(&paris));
    check(
        "Sure. <|tool_call>call:get_weather{ city : <|\"|>Paris<|\"|> , }<tool_call|> So.",
        "Sure. So.",
        from_ref(&paris),
    );
    check(
        "<|tool_call>call:now{}<tool_call|><|tool_call>call:now{}<tool_call|>",
        "",
        &[("now", json!({})), ("now", json!({}))],
    );
    check(
        "<|tool_call>call:get_weather{city:<|\"|>5<|\"|>,days:<|\"|>5<|\"|>,metric:true,limit:-1.5e3,unit:c}<tool_call|>",
        "",
        &[("get_weather", json!({"city": "5", "days": 5, "metric": true, "limit": -1.5e3, "unit": "c"}))],
    );
    check(
        "<|tool_call>call:write_file{content:<|\"|>a {b: \"c\"}, }\n'd' \\n <tool_call|> é<|\"|>,options:{mode:7},path:<|\"|><|\"|>,tags:[<|\"|>x,]<|\"|>,<|\"|><|\"|>]}<tool_call|>",
        "",
        &[(
            "write_file",
            json!({"content": "a {b: \"c\"}, }\n'd' \\n <tool_call|> é", "options": {"mode": 7}, "path": "", "tags": ["x,]", ""]}),
        )],
    );
    check(
        "<|tool_call>call:get_weather{\"city\":\"say \\\"Paris\\\"\"}<tool_call|>",
        "",
        &[("get_weather", json!({"city": "say \"Paris\""}))],
    );
    check("<|tool_call>call:get_weather{<|\"|>city<|\"|>:<|\"|>Paris<|\"|>}", "", from_ref(&paris));
    check(
        "<|tool_call>call:mcp.search-all{any:{a:[1,None,true,[]],b:{}},q:null}<tool_call|>",
        "",
        &[("mcp.search-all", json!({"any": {"a": [1, null, true, []], "b": {}}, "q": null}))],
    );
    // As the template does not write them.
    check("<|tool_call>:get_weather{city:<|\"|>Paris<|\"|>}<tool_call|>", "", from_ref(&paris));
    check(
        "<|tool_call>call:get_weather(city:Paris,days:3)<tool_call|>",
        "",
        &[("get_weather", json!({"city": "Paris", "days": 3}))],
    );
    check(
        "<|tool_call>call:now{}call:get_weather{city:<|\"|>Paris<|\"|>}<tool_call|>So.",
        "So.",
        &[("now", json!({})), paris.clone()],
    );
    check("<|tool_call>call:rm{}<tool_call|>", "<|tool_call>call:rm{}<tool_call|>", &[]);
    check("A <|tool_call> is a mark.", "A <|tool_call> is a mark.", &[]);
    check("`<|tool_call>call:now{}<tool_call|>`", "`<|tool_call>call:now{}<tool_call|>`", &[]);
    check("<|tool_call>call:get_weather{city:<|\"|>Paris<|\"|>} and so on", "and so on", from_ref(&paris));
    check("<|tool_call>call:get_weather{city:<|\"|>Paris<|\"|>; oops}", "; oops}", from_ref(&paris));
}

#[test]
fn special_tokens() {
    let case = "⟪<|tool_call>⟫call:get_weather{city:⟪<|\"|>⟫a <|\"|> b⟪<|\"|>⟫}⟪<tool_call|>⟫";
    check_both(case, "", &[("get_weather", json!({"city": "a <|\"|> b"}))]);
}

#[test]
pub fn python() {
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&TOOL_CODE, case, text, calls);
    let paris = ("get_weather", json!({"city": "Paris"}));
    let now = ("now", json!({}));
    check("```tool_code\nget_weather(city=\"Paris\")\n```", "", from_ref(&paris));
    check("Sure.\n```tool_code\nprint(get_weather(city='Paris'))\n```\nSo.", "Sure.\nSo.", from_ref(&paris));
    check("```tool_code\nx = default_api.get_weather(\"Paris\")\nprint(now())\n```", "", &[paris.clone(), now.clone()]);
    check("tool_code = get_weather(city=\"Paris\")\nprint(tool_code)", "", from_ref(&paris));
    check("tool_code = now()\nSo.", "So.", from_ref(&now));
    check(
        "```tool_code\nget_weather(city='it\\'s, \"x\"', days=3, metric=True, limit=1.5)\n```",
        "",
        &[("get_weather", json!({"city": "it's, \"x\"", "days": 3, "metric": true, "limit": 1.5}))],
    );
    check(
        "```tool_code\nwrite_file(path=\"a.py\", content=\"\"\"def f(x):\n    return [\"é\", x]\n\"\"\", tags=['x', ''], options={'mode': 7})\n```",
        "",
        &[(
            "write_file",
            json!({"path": "a.py", "content": "def f(x):\n    return [\"é\", x]\n", "tags": ["x", ""], "options": {"mode": 7}}),
        )],
    );
    check("```tool_code\nrm(path='x')\n```", "```tool_code\nrm(path='x')\n```", &[]);
    check("The tool_code = is text.", "The tool_code = is text.", &[]);
    check("```python\nnow()\n```", "```python\nnow()\n```", &[]);
    check("```tool_code\nnow()", "", from_ref(&now));
}

#[test]
fn thoughts() {
    let now = ("now", json!({}));
    let check = |case: &str, reasoning: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named("gemma4"), case, reasoning, text, calls)
    };
    check("<|channel>thought\nso\n<channel|>Yes.", "so", "Yes.", &[]);
    check("<|channel>thought\nso<channel|><|channel>thought\nand so<channel|>Yes.", "soand so", "Yes.", &[]);
    check("Hm.<|channel>thought\nso<channel|>Yes.", "so", "Hm.Yes.", &[]);
    check("<|channel>thought\nso <|tool_call>call:now{}<tool_call|><channel|>Yes.", "so", "Yes.", from_ref(&now));
    check("<channel|>Yes.", "", "Yes.", &[]);
    check("<|channel><|channel>thought\nso<channel|>Yes.", "so", "Yes.", &[]);
    check("<|channel>thought\nso<channel|>tool_code = now()", "so", "", from_ref(&now));
    check("<|channel>thought\nso ```tool_code\nnow()\n```", "so", "", &[now]);
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&GEMMA4);
    check_rendered(&FUNCTION_GEMMA);
    check_rendered(&TOOL_CODE);
}
