//! The modules of a crate and what each names, with names followed to the module that defines them, through whatever
//! re-exports them.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    paths::{self, Named},
    source::Source,
};

/// How often a re-export may lead to another.
const DEPTH: usize = 8;

/// Words that an item's name stands behind.
const ITEMS: &[&str] = &["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules!"];

/// A path of module names below the crate's root.
pub type Module = Vec<String>;

/// One module naming another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    pub from: Module,
    pub to: Module,
    /// The file that names it, and the words it uses.
    pub file: String,
    pub words: String,
}

/// The modules of one crate.
pub struct Modules<'a> {
    table: BTreeMap<Module, Entry<'a>>,
}

struct Entry<'a> {
    source: &'a Source,
    defines: BTreeSet<String>,
}

impl<'a> Modules<'a> {
    /// Those whose files begin with `root`, such as `src/`.
    pub fn below(root: &str, sources: &'a [Source]) -> Modules<'a> {
        let own = sources.iter().filter(|source| source.path.starts_with(root) && !source.is_test);
        let entry = |source: &'a Source| {
            let module = source.module().into_iter().map(str::to_owned).collect();
            (module, Entry { source, defines: defined(&source.product.code) })
        };
        Modules { table: own.map(entry).collect() }
    }

    /// Every module that names another one, with which.
    pub fn edges(&self) -> BTreeSet<Edge> {
        let mut edges = BTreeSet::new();
        for (from, entry) in &self.table {
            for named in &entry.source.paths {
                let Some(to) = self.resolve(from, &named.segments, DEPTH) else { continue };
                if to != *from {
                    let words = named.segments.join("::");
                    edges.insert(Edge { from: from.clone(), to, file: entry.source.path.clone(), words });
                }
            }
        }
        edges
    }

    /// Every module that has children, the root first.
    pub fn parents(&self) -> BTreeSet<Module> {
        self.table.keys().filter_map(|module| module.split_last().map(|(_, parent)| parent.to_vec())).collect()
    }

    /// The names of a module's children.
    pub fn children(&self, parent: &[String]) -> BTreeSet<String> {
        let below = self.table.keys().filter(|module| module.len() > parent.len() && module.starts_with(parent));
        below.map(|module| module[parent.len()].clone()).collect()
    }

    /// The module that defines what a path, written in `from`, names; `None` for another crate's.
    fn resolve(&self, from: &[String], segments: &[String], depth: usize) -> Option<Module> {
        let (head, rest) = segments.split_first()?;
        match head.as_str() {
            "crate" => self.walk(&[], rest, depth),
            "self" => self.walk(from, rest, depth),
            "super" => {
                let above = segments.iter().take_while(|segment| *segment == "super").count();
                self.walk(&from[..from.len().checked_sub(above)?], &segments[above..], depth)
            }
            _ if self.table.contains_key(&[from, std::slice::from_ref(head)].concat()) => {
                self.walk(from, segments, depth)
            }
            _ => {
                // A module that a `use` of this file has brought in.
                let brought = self.brought(from, head, depth)?;
                let is_module = brought != *from && brought.last() == Some(head);
                if is_module { self.walk(&brought, rest, depth.checked_sub(1)?) } else { Some(brought) }
            }
        }
    }

    /// Follows a path from a module.
    fn walk(&self, from: &[String], segments: &[String], depth: usize) -> Option<Module> {
        let mut at = from.to_vec();
        for (index, segment) in segments.iter().enumerate() {
            let child = [at.as_slice(), std::slice::from_ref(segment)].concat();
            if self.table.contains_key(&child) {
                at = child;
                continue;
            }
            let entry = self.table.get(&at)?;
            if entry.defines.contains(segment) {
                return Some(at);
            }
            let last = segments.len() == index + 1;
            let brought = self.brought(&at, segment, depth);
            return Some(match brought {
                Some(module) if last => module,
                Some(module) => self.walk(&module, &segments[index + 1..], depth.checked_sub(1)?).unwrap_or(module),
                None => at,
            });
        }
        Some(at)
    }

    /// The module that defines what a `use` in `module` calls `name`.
    fn brought(&self, module: &[String], name: &str, depth: usize) -> Option<Module> {
        let depth = depth.checked_sub(1)?;
        let uses = &self.table.get(module)?.source.paths;
        let is_it = |named: &&Named| named.alias.as_deref() == Some(name) && named.segments != [name];
        let by_name = uses.iter().find(is_it).and_then(|named| self.resolve(module, &named.segments, depth));
        by_name.or_else(|| {
            let globs = uses.iter().filter(|named| named.alias.as_deref() == Some("*"));
            globs.map(|named| &named.segments[..named.segments.len() - 1]).find_map(|path| {
                let there = self.resolve(module, path, depth)?;
                self.table.get(&there)?.defines.contains(name).then_some(there)
            })
        })
    }
}

/// The names of the items of a file, at whatever depth.
fn defined(code: &str) -> BTreeSet<String> {
    let after = |word| paths::words(code, word).map(move |start: usize| code[start + word.len()..].trim_start());
    let name = |rest: &str| rest.chars().take_while(|c| paths::is_word(*c)).collect::<String>();
    ITEMS.iter().flat_map(|word| after(word)).map(name).filter(|name| !name.is_empty()).collect()
}
