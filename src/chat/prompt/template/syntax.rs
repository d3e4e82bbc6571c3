//! The things of a template's text that are written anew before minijinja reads it.

use super::functions::ITERATED;
use super::operators;

/// `{% generation %}…{% endgeneration %}` marks the assistant's part for training and renders as its content, with a
/// scope of its own: what `{% with %}` does. And a loop over none, an error in Python, is an empty one in minijinja:
/// each loop is given a filter that fails there. And a list of a namespace that grows or shrinks by its methods, which
/// transformers refuses and Kimi K2's template does, becomes another list. What operators do otherwise, [`operators`] has.
pub(super) fn rewritten(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + source.len() / 16);
    let mut rest = source;
    let marks = ["{%", "{#", "{{"];
    while let Some(start) = marks.iter().filter_map(|mark| rest.find(mark)).min() {
        let (before, after) = rest.split_at(start);
        out.push_str(before);
        if after.starts_with("{#") {
            let end = after.find("#}").map_or(after.len(), |end| end + 2);
            out.push_str(&after[..end]);
            rest = &after[end..];
            continue;
        }
        if let Some(end) = end_of_raw(after) {
            out.push_str(&after[..end]);
            rest = &after[end..];
            continue;
        }
        let tag = after.starts_with("{%");
        // A dict's own braces may stand in front of an expression's.
        let close = if tag { "%}" } else { "}}" };
        let ends = |(at, _, depth): &(usize, char, i32)| after[*at..].starts_with(close) && (tag || *depth == 1);
        let end = outside_strings(after).find(ends).map_or(after.len(), |(at, ..)| at);
        if tag {
            push_tag(&after[..end], &mut out);
        } else {
            out.push_str(&operators::rewritten_tag(&after[..end]));
        }
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

/// Where `{% raw %}…{% endraw %}` ends, if the text begins with one.
fn end_of_raw(text: &str) -> Option<usize> {
    let word = |tag: &str| {
        tag.trim_start_matches(['-', '+'])
            .trim_start()
            .split(|char: char| !char.is_alphabetic())
            .next()
            .map(str::to_owned)
    };
    if word(text.strip_prefix("{%")?)? != "raw" {
        return None;
    }
    let end = text.match_indices("{%").find(|(at, _)| word(&text[at + 2..]).as_deref() == Some("endraw"));
    Some(end.and_then(|(at, _)| text[at..].find("%}").map(|close| at + close + 2)).unwrap_or(text.len()))
}

/// Writes a tag, from its `{%` to before its `%}`.
fn push_tag(tag: &str, out: &mut String) {
    let inner = tag.trim_start_matches(['{', '%', '-', '+']).trim_start();
    let word = inner.split(|char: char| !char.is_alphanumeric()).next().unwrap_or_default();
    match word {
        "generation" => out.push_str(&tag.replacen("generation", "with", 1)),
        "endgeneration" => out.push_str(&tag.replacen("endgeneration", "endwith", 1)),
        "for" => match iterable(inner) {
            Some(iterable) => {
                let start = tag.len() - inner.len() + iterable.start;
                let end = tag.len() - inner.len() + iterable.end;
                let (head, iterable, tail) = (&tag[..start], &tag[start..end], &tag[end..]);
                let (iterable, tail) = (operators::rewritten(iterable), operators::rewritten_tag(tail));
                out.extend([head, " (", &iterable, ")|", ITERATED, " ", &tail]);
            }
            None => out.push_str(tag),
        },
        "set" => match changed_list(tag) {
            Some(changed) => out.push_str(&changed),
            None => out.push_str(&operators::rewritten_tag(tag)),
        },
        _ => out.push_str(&operators::rewritten_tag(tag)),
    }
}

/// `set _ = a.b.append(x)`, `set x = a.b.pop()` and `set x = a.b.pop(0)` as assignments to `a.b`.
fn changed_list(tag: &str) -> Option<String> {
    let (head, value) = tag.split_once('=')?;
    let end = value.trim_end_matches(['-', '+']);
    let close = &value[end.len()..];
    let call = end.trim().strip_suffix(')')?;
    let (callee, argument) = call.split_once('(')?;
    // One call, and nothing around it.
    if outside_strings(argument).any(|(.., depth)| depth < 0) {
        return None;
    }
    let (list, method) = callee.rsplit_once('.')?;
    if !list.contains('.') || !list.chars().all(|char| char.is_alphanumeric() || "_.".contains(char)) {
        return None;
    }
    let item = match (method, argument.trim()) {
        ("append", item) if !item.is_empty() => return Some(format!("{{%- set {list} = {list} + [{item}] {close}")),
        ("pop", "") => "-1",
        ("pop", "0") => "0",
        _ => return None,
    };
    let rest = if item == "0" { "1:" } else { ":-1" };
    Some(format!("{head}= {list}[{item}] -%}}{{%- set {list} = {list}[{rest}] {close}"))
}

/// What `for … in …` runs over: up to the loop's own `if`, to `recursive` or to the end.
fn iterable(tag: &str) -> Option<std::ops::Range<usize>> {
    let is_word = |at: usize, word: &str| {
        let mut before = tag[..at].chars().rev();
        let mut after = tag[at..].strip_prefix(word).map(str::chars)?;
        let apart = |char: Option<char>| char.is_none_or(|char| !char.is_alphanumeric() && char != '_');
        (apart(before.next()) && apart(after.next())).then_some(())
    };
    let mut words = outside_strings(tag).filter(|(.., depth)| *depth == 0).map(|(at, ..)| at);
    let start = words.find(|&at| is_word(at, "in").is_some())? + "in".len();
    let end = words.find(|&at| is_word(at, "if").or_else(|| is_word(at, "recursive")).is_some());
    Some(start..end.unwrap_or_else(|| tag.trim_end_matches(['-', '+']).len()))
}

/// The characters of code that stand in no string, with their place and the depth of brackets around them.
fn outside_strings(code: &str) -> impl Iterator<Item = (usize, char, i32)> {
    let (mut quote, mut escaped, mut depth) = (None, false, 0);
    code.char_indices().filter_map(move |(at, char)| {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if char == '\\' => escaped = true,
            Some(mark) if char == mark => quote = None,
            Some(_) => {}
            None => {
                match char {
                    '\'' | '"' => quote = Some(char),
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth -= 1,
                    _ => {}
                }
                return (quote.is_none()).then_some((at, char, depth));
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_and_generation_blocks() {
        for (source, expected) in [
            ("a{% generation %}b{%- endgeneration -%}", "a{% with %}b{%- endwith -%}"),
            ("{% for x in y %}", "{% for x in ( y )|iterated %}"),
            ("{%- for k, v in d.items() if v in [1] -%}", "{%- for k, v in ( d.items() )|iterated if v in [1] -%}"),
            (
                "{% for x in ['if', \"%}\" if a else b] recursive %}",
                "{% for x in ( ['if', \"%}\" if a else b] )|iterated recursive %}",
            ),
            ("{% for x in y[1:]-%}", "{% for x in ( y[1:])|iterated -%}"),
            ("{# {% for x in y %} #}{% set for_x = 'in' %}", "{# {% for x in y %} #}{% set for_x = 'in' %}"),
            ("{% for x", "{% for x"),
            ("{%- set _ = ns.ids.append(f(x) + ')') -%}", "{%- set ns.ids = ns.ids + [f(x) + ')'] -%}"),
            ("{% set x = ns.ids.pop(0) %}", "{% set x = ns.ids[0] -%}{%- set ns.ids = ns.ids[1:] %}"),
            ("{% set x = ns.ids.pop()-%}", "{% set x = ns.ids[-1] -%}{%- set ns.ids = ns.ids[:-1] -%}"),
            ("{% set x = ids.append(1) %}", "{% set x = ids.append(1) %}"),
            ("{% set x = f(a.b).pop(1) + (2) %}", "{% set x = f(a.b).pop(1) + (2) %}"),
            ("{% set x = a.b.append(1) + (2) %}", "{% set x = a.b.append(1) + (2) %}"),
        ] {
            assert_eq!(rewritten(source), expected);
        }
    }
}
