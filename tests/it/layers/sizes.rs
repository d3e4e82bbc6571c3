//! How long a file and a function may be, how many arguments a function takes, and that a file says what it is.

use super::{mask, paths, source::Source};

const FILE_LINES: usize = 500;
const MODEL_LINES: usize = 200;
const FUNCTION_LINES: usize = 100;
const ARGUMENTS: usize = 4;
/// Kernels take many: sizes and strides belong to no struct that outlives the call.
const ARGUMENT_PLACES: &[&str] = &["src/", "commands/"];

/// A function's name, where it stands and how large it is.
pub struct Function {
    pub name: String,
    /// Counted from 1.
    pub line: usize,
    pub lines: usize,
    /// Without `self`.
    pub arguments: usize,
}

/// What is too large, and files that do not say what they are.
pub fn sizes(source: &Source) -> Vec<String> {
    let Source { path, text, .. } = source;
    let mut found = Vec::new();
    if !text.starts_with("//!") {
        found.push(format!("{path}: opens without a //! line that says what it is"));
    }
    let limit = if path.starts_with("src/mlx/models/") { MODEL_LINES } else { FILE_LINES };
    let lines = text.lines().count();
    if lines > limit {
        found.push(format!("{path}: {lines} lines, the limit is {limit}"));
    }
    for Function { name, line, lines, .. } in functions(&source.code) {
        if lines > FUNCTION_LINES {
            found.push(format!("{path}:{line}: {name} has {lines} lines, the limit is {FUNCTION_LINES}"));
        }
    }
    if !ARGUMENT_PLACES.iter().any(|place| path.starts_with(place)) {
        return found;
    }
    for Function { name, line, arguments, .. } in functions(&source.product.code) {
        if arguments > ARGUMENTS {
            found.push(format!("{path}:{line}: {name} takes {arguments} arguments, the limit is {ARGUMENTS}"));
        }
    }
    found
}

/// Every function with a body, whatever stands before `fn`.
pub fn functions(code: &str) -> Vec<Function> {
    paths::words(code, "fn").filter_map(|start| function(code, start)).collect()
}

fn function(code: &str, start: usize) -> Option<Function> {
    let rest = &code[start + 2..];
    let name_start = rest.find(paths::is_word)?;
    let name: String = rest[name_start..].chars().take_while(|c| paths::is_word(*c)).collect();
    let generics = name_start + name.len();
    let open = generics + generics_length(&rest[generics..]);
    let close = open + mask::close(&rest[open..])?;
    let arguments = paths::split(&rest[open + 1..close - 1]).into_iter().filter(|argument| !is_self(argument)).count();
    let body = close + body_start(&rest[close..])?;
    let end = body + mask::close(&rest[body..])?;
    let line = 1 + code[..start].matches('\n').count();
    Some(Function { name, line, lines: 1 + rest[..end].matches('\n').count(), arguments })
}

/// The length of `<…>` and of the space before the parenthesis.
fn generics_length(rest: &str) -> usize {
    let mut depth = 0;
    let mut before = ' ';
    for (index, character) in rest.char_indices() {
        match character {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            '(' if depth == 0 => return index,
            _ => {}
        }
        before = character;
    }
    rest.len()
}

/// Where the body opens; `None` for a declaration.
fn body_start(rest: &str) -> Option<usize> {
    let mut depth = 0;
    for (index, character) in rest.char_indices() {
        match character {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ';' if depth == 0 => return None,
            '{' if depth == 0 => return Some(index),
            _ => {}
        }
    }
    None
}

fn is_self(argument: &str) -> bool {
    let name = argument.split(':').next().unwrap_or_default();
    name.split(|c| !paths::is_word(c)).any(|word| word == "self")
}
