//! GGML's grammars (`root ::= …`, llama.cpp's grammars/README.md) as llguidance's Lark.
//!
//! llguidance reads words first (terminals, which are regular) and then sentences of them. GGML's grammars know no words,
//! so every part without recursion becomes one terminal: where the whole is regular, words cannot be cut differently
//! from what the grammar means.

mod parse;

use std::collections::{BTreeMap, BTreeSet};

use parse::{Node, parse};
use serde_json::Value;

/// The grammar in Lark, or what is wrong with it and in which line.
pub(super) fn to_lark(text: &str) -> Result<String, String> {
    let rules = parse(text)?;
    if !rules.contains_key("root") {
        return Err("there is no rule named root, which is where an answer begins".to_owned());
    }
    let names = rules.values().flat_map(references);
    if let Some(unknown) = names.into_iter().find(|name| !rules.contains_key(*name)) {
        return Err(format!("the rule {unknown:?} is used but not defined"));
    }
    let mut lark =
        Lark { regular: regular(&rules), terminals: Vec::new(), wanted: Vec::new(), numbers: BTreeMap::new() };
    let start = lark.sentence(&Node::Rule("root".to_owned()));
    let mut text = format!("start: {start}\n");
    while let Some(name) = lark.wanted.pop() {
        let number = lark.numbers[&name];
        let line = if lark.regular.contains(&name) {
            format!("T{number}: {}\n", lark.word(&rules[&name]))
        } else {
            format!("r{number}: {}\n", lark.sentence(&rules[&name]))
        };
        text.push_str(&line);
    }
    for (number, word) in lark.terminals.iter().enumerate() {
        text.push_str(&format!("W{number}: {word}\n"));
    }
    Ok(text)
}

/// The names a node refers to.
fn references(node: &Node) -> Vec<&str> {
    match node {
        Node::Rule(name) => vec![name],
        Node::Sequence(parts) | Node::Choice(parts) => parts.iter().flat_map(references).collect(),
        Node::Repeat(inner, ..) => references(inner),
        Node::Literal(_) | Node::Class(_) | Node::Any | Node::Token(_) => Vec::new(),
    }
}

/// The rules that need no recursion: all they refer to is regular, too.
fn regular(rules: &BTreeMap<String, Node>) -> BTreeSet<String> {
    let mut regular: BTreeSet<String> = BTreeSet::new();
    loop {
        let found = rules.iter().filter(|(name, node)| !regular.contains(*name) && is_regular(node, &regular));
        let found: Vec<String> = found.map(|(name, _)| name.clone()).collect();
        if found.is_empty() {
            return regular;
        }
        regular.extend(found);
    }
}

fn is_regular(node: &Node, regular: &BTreeSet<String>) -> bool {
    match node {
        Node::Rule(name) => regular.contains(name),
        Node::Sequence(parts) | Node::Choice(parts) => parts.iter().all(|part| is_regular(part, regular)),
        Node::Repeat(inner, ..) => is_regular(inner, regular),
        Node::Token(_) => false,
        Node::Literal(_) | Node::Class(_) | Node::Any => true,
    }
}

struct Lark {
    regular: BTreeSet<String>,
    /// The terminals made of parts of rules.
    terminals: Vec<String>,
    /// Rules that something refers to and that are not written yet.
    wanted: Vec<String>,
    numbers: BTreeMap<String, usize>,
}

impl Lark {
    /// The number a rule goes by.
    fn number(&mut self, name: &str) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(name.to_owned()).or_insert_with(|| {
            self.wanted.push(name.to_owned());
            next
        })
    }

    /// A regular node within a terminal.
    fn word(&mut self, node: &Node) -> String {
        match node {
            Node::Literal(text) => literal(text),
            Node::Class(class) => format!("/{class}/"),
            Node::Any => "/(?s:.)/".to_owned(),
            Node::Rule(name) => format!("T{}", self.number(name)),
            Node::Sequence(parts) => self.joined(parts, " ", Lark::word),
            Node::Choice(parts) => self.joined(parts, " | ", Lark::word),
            Node::Repeat(inner, least, most) => format!("({}){}", self.word(inner), times(*least, *most)),
            Node::Token(name) => unreachable!("{name} is not regular"),
        }
    }

    /// Any node within a rule.
    fn sentence(&mut self, node: &Node) -> String {
        if is_regular(node, &self.regular) {
            let word = self.word(node);
            self.terminals.push(word);
            return format!("W{}", self.terminals.len() - 1);
        }
        match node {
            Node::Rule(name) => format!("r{}", self.number(name)),
            Node::Token(name) => name.clone(),
            Node::Repeat(inner, least, most) => format!("({}){}", self.sentence(inner), times(*least, *most)),
            Node::Choice(parts) => self.joined(parts, " | ", Lark::sentence),
            Node::Sequence(parts) => {
                // Neighbours without recursion are one terminal.
                let mut groups: Vec<Node> = Vec::new();
                for part in parts {
                    let joins = is_regular(part, &self.regular);
                    match groups.last_mut().filter(|last| joins && is_regular(last, &self.regular)) {
                        Some(Node::Sequence(before)) => before.push(part.clone()),
                        _ if joins => groups.push(Node::Sequence(vec![part.clone()])),
                        _ => groups.push(part.clone()),
                    }
                }
                self.joined(&groups, " ", Lark::sentence)
            }
            Node::Literal(_) | Node::Class(_) | Node::Any => unreachable!("these are regular"),
        }
    }

    fn joined(&mut self, parts: &[Node], between: &str, write: fn(&mut Lark, &Node) -> String) -> String {
        let parts: Vec<String> = parts.iter().map(|part| write(self, part)).collect();
        if parts.is_empty() { "\"\"".to_owned() } else { format!("({})", parts.join(between)) }
    }
}

fn times(least: u32, most: Option<u32>) -> String {
    match (least, most) {
        (0, None) => "*".to_owned(),
        (1, None) => "+".to_owned(),
        (0, Some(1)) => "?".to_owned(),
        (least, None) => format!("{{{least},}}"),
        (least, Some(most)) => format!("{{{least},{most}}}"),
    }
}

/// A text as Lark writes one, in JSON's way.
pub(super) fn literal(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests;
