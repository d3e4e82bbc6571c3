//! Reads GGML's grammars.

use std::collections::BTreeMap;

/// How deep parentheses may lie in each other.
const DEEPEST: usize = 100;
/// The most times something may be asked to repeat.
const MOST_TIMES: u32 = 10_000;

/// What a rule consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Literal(String),
    /// A class of characters, as a regular expression.
    Class(String),
    /// Any character.
    Any,
    /// What this rule says.
    Rule(String),
    /// A special token, as Lark writes one: `<name>` or `<[id]>`.
    Token(String),
    Sequence(Vec<Node>),
    Choice(Vec<Node>),
    /// At least so many times; at most so many, or any number.
    Repeat(Box<Node>, u32, Option<u32>),
}

/// The rules by name, or what is wrong and in which line.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, Node>, String> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    parser.rules().map_err(|message| {
        let line = 1 + text[..parser.at].matches('\n').count();
        format!("line {line}: {message}")
    })
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// How many parentheses are open.
    depth: usize,
}

impl Parser<'_> {
    /// The ends of lines mean nothing: a name before ::= begins the next rule.
    fn rules(&mut self) -> Result<BTreeMap<String, Node>, String> {
        let mut rules = BTreeMap::new();
        self.skip();
        while self.at < self.text.len() {
            let name = self.name();
            if name.is_empty() {
                return Err(format!("did not expect {:?}", self.next().unwrap_or_default()));
            }
            self.skip();
            if !self.take("::=") {
                return Err(format!("expected ::= after {name:?}"));
            }
            let node = self.choice()?;
            if rules.insert(name.clone(), node).is_some() {
                return Err(format!("the rule {name:?} is defined twice"));
            }
        }
        Ok(rules)
    }

    fn choice(&mut self) -> Result<Node, String> {
        let mut options = vec![self.sequence()?];
        while self.take("|") {
            options.push(self.sequence()?);
        }
        Ok(if options.len() == 1 { options.remove(0) } else { Node::Choice(options) })
    }

    fn sequence(&mut self) -> Result<Node, String> {
        let mut parts = Vec::new();
        self.skip();
        while let Some(part) = self.part()? {
            parts.push(self.repeated(part)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Node::Sequence(parts) })
    }

    fn part(&mut self) -> Result<Option<Node>, String> {
        let part = match self.next() {
            Some('"') => Node::Literal(self.literal()?),
            Some('[') => Node::Class(self.class()?),
            Some('.') => {
                self.at += 1;
                Node::Any
            }
            Some('(') => self.group()?,
            Some('<') => self.token()?,
            Some('!') => return Err("excluded tokens (!<…>) are not supported".to_owned()),
            Some(char) if is_name(char) && !self.begins_rule() => Node::Rule(self.name()),
            _ => return Ok(None),
        };
        Ok(Some(part))
    }

    fn group(&mut self) -> Result<Node, String> {
        self.at += 1;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("more than {DEEPEST} parentheses lie in each other"));
        }
        let node = self.choice()?;
        if !self.take(")") {
            return Err("expected )".to_owned());
        }
        self.depth -= 1;
        Ok(node)
    }

    /// The part with what follows it: how often it may come.
    fn repeated(&mut self, mut node: Node) -> Result<Node, String> {
        loop {
            self.skip();
            let (least, most) = match self.next() {
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('?') => (0, Some(1)),
                Some('{') => {
                    self.at += 1;
                    let times = self.times()?;
                    node = Node::Repeat(Box::new(node), times.0, times.1);
                    continue;
                }
                _ => return Ok(node),
            };
            self.at += 1;
            node = Node::Repeat(Box::new(node), least, most);
        }
    }

    /// `m}`, `m,}` or `m,n}`.
    fn times(&mut self) -> Result<(u32, Option<u32>), String> {
        let least = self.count()?.ok_or("expected a number after {")?;
        let most = if self.take(",") { self.count()? } else { Some(least) };
        if !self.take("}") {
            return Err("expected }".to_owned());
        }
        if most.is_some_and(|most| most < least) {
            return Err(format!("at least {least} times and at most fewer cannot be"));
        }
        Ok((least, most))
    }

    fn count(&mut self) -> Result<Option<u32>, String> {
        self.skip();
        let digits = self.text[self.at..].bytes().take_while(u8::is_ascii_digit).count();
        let number = &self.text[self.at..self.at + digits];
        self.at += digits;
        self.skip();
        match number.parse::<u32>() {
            Ok(times) if times <= MOST_TIMES => Ok(Some(times)),
            Err(_) if number.is_empty() => Ok(None),
            _ => Err(format!("{number} times are too many; the limit is {MOST_TIMES}")),
        }
    }

    fn literal(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.next() {
                Some('"') => break,
                None | Some('\n') => return Err("a text has no closing quote".to_owned()),
                Some(_) => text.push(self.character()?),
            }
        }
        self.at += 1;
        Ok(text)
    }

    fn class(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut class = String::from(if self.take("^") { "[^" } else { "[" });
        let empty = class.len();
        while self.next() != Some(']') {
            if matches!(self.next(), None | Some('\n')) {
                return Err("a class of characters has no closing ]".to_owned());
            }
            let first = self.character()?;
            let mut last = first;
            if self.next() == Some('-') && !self.text[self.at + 1..].starts_with(']') {
                self.at += 1;
                last = self.character()?;
            }
            if first > last {
                return Err(format!("the range {first:?} to {last:?} is empty"));
            }
            class.push_str(&format!(r"\u{{{:x}}}-\u{{{:x}}}", u32::from(first), u32::from(last)));
        }
        self.at += 1;
        if class.len() == empty {
            return Err("a class of no characters matches nothing".to_owned());
        }
        class.push(']');
        Ok(class)
    }

    /// One character of a text or a class.
    fn character(&mut self) -> Result<char, String> {
        let char = self.next().ok_or("the grammar ends within a text")?;
        self.at += char.len_utf8();
        if char != '\\' {
            return Ok(char);
        }
        let kind = self.next().ok_or("the grammar ends within an escape")?;
        self.at += kind.len_utf8();
        let digits = match kind {
            'n' => return Ok('\n'),
            'r' => return Ok('\r'),
            't' => return Ok('\t'),
            '\\' | '"' | '[' | ']' | '-' | '^' => return Ok(kind),
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => return Err(format!("the escape \\{kind} is not known")),
        };
        let code = self.text[self.at..].get(..digits).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += if code.is_some() { digits } else { 0 };
        code.and_then(char::from_u32)
            .ok_or_else(|| format!("\\{kind} is not followed by {digits} digits of a character"))
    }

    fn token(&mut self) -> Result<Node, String> {
        let rest = &self.text[self.at..];
        let end = rest.find('>').filter(|&end| end > 1 && !rest[..end].contains(char::is_whitespace));
        let end = end.ok_or("a token is written <name> or <[id]>")?;
        self.at += end + 1;
        Ok(Node::Token(rest[..=end].to_owned()))
    }

    fn name(&mut self) -> String {
        let length = self.text[self.at..].find(|char| !is_name(char)).unwrap_or(self.text.len() - self.at);
        self.at += length;
        self.text[self.at - length..self.at].to_owned()
    }

    fn begins_rule(&self) -> bool {
        let mut ahead = Parser { text: self.text, at: self.at, depth: 0 };
        ahead.name();
        ahead.skip();
        ahead.take("::=")
    }

    /// Passes over spaces, the ends of lines and comments.
    fn skip(&mut self) {
        while let Some(char) = self.next() {
            match char {
                ' ' | '\t' | '\n' | '\r' => self.at += 1,
                '#' => self.at += self.text[self.at..].find('\n').unwrap_or(self.text.len() - self.at),
                _ => return,
            }
        }
    }

    fn next(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn take(&mut self, expected: &str) -> bool {
        let found = self.text[self.at..].starts_with(expected);
        self.at += if found { expected.len() } else { 0 };
        found
    }
}

fn is_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '-' || char == '_'
}
