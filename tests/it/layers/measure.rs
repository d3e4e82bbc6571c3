//! The house in numbers, printed by `cargo test --release --test it layers::measure -- --nocapture`: lines of each
//! area, how much of what is public is documented, circles among modules, and files of tool syntaxes.

use std::collections::BTreeMap;

use super::{
    forgotten,
    modules::Modules,
    sizes,
    source::{Source, sources},
    who,
};

/// What an area has.
#[derive(Default)]
struct Area {
    /// Lines of code, comments and blank lines left out, of what is not test.
    product: usize,
    /// The same of tests.
    tests: usize,
    public: usize,
    documented: usize,
    functions: usize,
    /// The longest function.
    longest: usize,
}

#[test]
fn measure() {
    let sources = sources();
    let mut areas: BTreeMap<&str, Area> = BTreeMap::new();
    for source in &sources {
        areas.entry(area(&source.path)).or_default().add(source);
    }
    println!("area                product    tests  functions  longest   public  documented");
    for (name, area) in &areas {
        println!("{name:18} {:8} {:8} {}", area.product, area.tests, area.details());
    }
    let public: usize = areas.values().map(|area| area.public).sum();
    let documented: usize = areas.values().map(|area| area.documented).sum();
    println!("documented: {documented} of {public} public items, {:.1} %", share(documented, public));
    println!("files of tool syntaxes: {}", sources.iter().filter(|source| forgotten::is_syntax(source)).count());
    circles(&sources);
    assert!(areas.len() > 8, "areas are missing");
}

/// Prints the circles at every depth.
fn circles(sources: &[Source]) {
    let modules = Modules::below("src/", sources);
    let edges = modules.edges();
    for parent in modules.parents() {
        for knot in who::knots(&modules, &edges, &parent) {
            let (members, all) = (knot.members.len(), modules.children(&parent).len());
            println!("circle at src/{}: {members} of {all} modules", parent.join("/"));
        }
    }
}

/// What a file is counted under: its layer, its crate, or the folder of the binary or the tests.
fn area(path: &str) -> &str {
    let depth = if path.starts_with("src/") || path.starts_with("crates/") { 2 } else { 1 };
    match path.match_indices('/').nth(depth - 1) {
        Some((end, _)) => &path[..end],
        None => path.rsplit_once('/').map_or(path, |(folder, _)| folder),
    }
}

impl Area {
    fn add(&mut self, source: &Source) {
        let lines = |code: &str| code.lines().filter(|line| !line.trim().is_empty()).count();
        let product = lines(&source.product.code);
        self.product += product;
        self.tests += lines(&source.code) - product;
        let functions = sizes::functions(&source.product.code);
        self.functions += functions.len();
        self.longest = functions.iter().map(|function| function.lines).chain([self.longest]).max().unwrap_or(0);
        let documented = public_items(source);
        self.public += documented.len();
        self.documented += documented.iter().filter(|is| **is).count();
    }

    fn details(&self) -> String {
        let Area { functions, longest, public, documented, .. } = self;
        format!("{functions:10} {longest:8} {public:8} {documented:6} {:4.0} %", share(*documented, *public))
    }
}

fn share(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// For each item and method that says `pub`, whether it has a doc comment. A module has its own at its head.
fn public_items(source: &Source) -> Vec<bool> {
    let code: Vec<&str> = source.product.code.lines().collect();
    let text: Vec<&str> = source.text.lines().collect();
    let public = code.iter().enumerate().filter(|(_, line)| is_public_item(line));
    public.map(|(index, _)| is_documented(&text[..index])).collect()
}

/// Whether a line begins an item that says `pub`.
fn is_public_item(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix("pub ") else { return false };
    let kind = rest.split_whitespace().find(|word| !["unsafe", "async", "extern"].contains(word));
    matches!(kind, Some("fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union"))
}

/// Whether what stands above an item, behind its attributes, is a doc comment.
fn is_documented(above: &[&str]) -> bool {
    let mut lines = above.iter().rev().map(|line| line.trim_start());
    let is_attribute = |line: &&str| line.starts_with("#[") || line.ends_with(")]");
    lines.find(|line| !is_attribute(line)).is_some_and(|line| line.starts_with("///"))
}
