//! The two things of a template's text that are written anew before minijinja reads it.

use super::functions::ITERATED;

/// `{% generation %}…{% endgeneration %}` marks the assistant's part for training and renders as its content, with a
/// scope of its own: what `{% with %}` does. And a loop over none, an error in Python, is an empty one in minijinja:
/// each loop is given a filter that fails there.
pub(super) fn rewritten(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + source.len() / 16);
    let mut rest = source;
    while let Some(start) = rest.find("{%").into_iter().chain(rest.find("{#")).min() {
        let (before, after) = rest.split_at(start);
        out.push_str(before);
        if after.starts_with("{#") {
            let end = after.find("#}").map_or(after.len(), |end| end + 2);
            out.push_str(&after[..end]);
            rest = &after[end..];
            continue;
        }
        let end =
            outside_strings(after).find(|(at, ..)| after[*at..].starts_with("%}")).map_or(after.len(), |(at, ..)| at);
        push_tag(&after[..end], &mut out);
        rest = &after[end..];
    }
    out.push_str(rest);
    out
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
                out.extend([head, " (", iterable, ")|", ITERATED, " ", tail]);
            }
            None => out.push_str(tag),
        },
        _ => out.push_str(tag),
    }
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
                    '(' | '[' => depth += 1,
                    ')' | ']' => depth -= 1,
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
        ] {
            assert_eq!(rewritten(source), expected);
        }
    }
}
