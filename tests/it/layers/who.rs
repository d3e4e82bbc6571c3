//! Who may name whom among the layers, and that no modules name each other in a circle.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{
    modules::{Edge, Module, Modules},
    source::Source,
};

/// What each layer of `src/` may name. A folder without a row fails, so a new layer is a decision.
const LAYERS: &[(&str, &[&str])] = &[
    ("checkpoint", &[]),
    ("schema", &[]),
    ("engine", &[]),
    ("media", &[]),
    ("hub", &[]),
    ("mcp", &[]),
    ("mlx", &["checkpoint", "engine", "media"]),
    ("chat", &["checkpoint", "engine", "schema"]),
    ("protocol", &["chat", "schema", "media"]),
    ("server", &["chat", "engine", "protocol"]),
];

/// The crates whose modules are looked at, and the modules among whose children there is no circle: the crate's root
/// and, where `true`, each of its layers as well.
const CRATES: &[&str] = &["src/", "crates/mlx-cpu/src/"];

/// Layers that name what they may not, and folders that are no layer.
pub fn layers(sources: &[Source]) -> Vec<String> {
    let mut found = BTreeSet::new();
    for source in sources.iter().filter(|source| source.path.starts_with("src/")) {
        let Some((&layer, _)) = source.module().split_first() else { continue };
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == layer) else {
            found.insert(format!("{}: the layer {layer} has no row in LAYERS", source.path));
            continue;
        };
        for named in absolute(source) {
            if named != layer && !allowed.contains(&named.as_str()) && LAYERS.iter().any(|(name, _)| *name == named) {
                found.insert(format!("{}: {layer} may not name {named}", source.path));
            }
        }
    }
    found.into_iter().collect()
}

/// The layers that a file names, by `crate::` or by as many `super::` as lead to the root.
fn absolute(source: &Source) -> BTreeSet<String> {
    let depth = source.module().len();
    let layer = |segments: &Vec<String>| {
        let above = segments.iter().take_while(|segment| *segment == "super").count();
        match segments[0].as_str() {
            "crate" => segments.get(1).cloned(),
            "super" if above == depth => segments.get(above).cloned(),
            _ => None,
        }
    };
    source.paths.iter().filter_map(|named| layer(&named.segments)).collect()
}

/// Circles among the layers, and among the modules of each layer.
pub fn circles(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for root in CRATES {
        let modules = Modules::below(root, sources);
        let edges = modules.edges();
        for parent in modules.parents().into_iter().filter(|parent| parent.len() <= 1) {
            found.extend(knots(&modules, &edges, &parent).iter().map(|knot| knot.describe(root, &parent)));
        }
    }
    found
}

/// Modules that all reach each other.
pub struct Knot {
    pub members: Vec<String>,
    /// The shortest way from the first member back to it.
    way: Vec<Edge>,
}

impl Knot {
    /// The way as a path, with the words that make it.
    fn describe(&self, root: &str, parent: &[String]) -> String {
        let names: Vec<&str> = self.way.iter().map(|edge| edge.from[parent.len()].as_str()).collect();
        let words: Vec<String> = self.way.iter().map(|edge| format!("{} names {}", edge.file, edge.words)).collect();
        format!(
            "{root}{}: {} modules in a circle: {}; the shortest way round is {} → {} ({})",
            parent.join("/"),
            self.members.len(),
            self.members.join(", "),
            names.join(" → "),
            names[0],
            words.join("; ")
        )
    }
}

/// The knots among the children of a module.
pub fn knots(modules: &Modules, edges: &BTreeSet<Edge>, parent: &[String]) -> Vec<Knot> {
    let mut arrows: BTreeMap<&str, BTreeMap<&str, &Edge>> = BTreeMap::new();
    for edge in edges {
        if let (Some(from), Some(to)) = (child(&edge.from, parent), child(&edge.to, parent))
            && from != to
        {
            arrows.entry(from).or_default().entry(to).or_insert(edge);
        }
    }
    let children = modules.children(parent);
    let mut knots = Vec::new();
    let mut seen = BTreeSet::new();
    for start in &children {
        let reached = reach(&arrows, start);
        if !reached.contains_key(start.as_str()) || seen.contains(start.as_str()) {
            continue;
        }
        let is_member = |name: &&String| reach(&arrows, name).contains_key(start.as_str());
        let members: Vec<String> =
            children.iter().filter(|name| reached.contains_key(name.as_str())).filter(is_member).cloned().collect();
        seen.extend(members.clone());
        let ways = members.iter().map(|member| way(&arrows, member));
        let way = ways.min_by_key(Vec::len).expect("a knot has a member").into_iter().cloned().collect();
        knots.push(Knot { members, way });
    }
    knots
}

/// The child of `parent` that a module is or belongs to.
fn child<'m>(module: &'m Module, parent: &[String]) -> Option<&'m str> {
    let below = module.strip_prefix(parent)?;
    below.first().map(String::as_str)
}

type Arrows<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a Edge>>;

/// What can be reached from a module in one step or more, each with the step that reaches it first.
fn reach<'a>(arrows: &Arrows<'a>, start: &str) -> BTreeMap<&'a str, &'a Edge> {
    let mut reached = BTreeMap::new();
    let mut queue = VecDeque::from([start.to_owned()]);
    while let Some(name) = queue.pop_front() {
        for (to, edge) in arrows.get(name.as_str()).into_iter().flatten() {
            if !reached.contains_key(to) {
                reached.insert(*to, *edge);
                queue.push_back((*to).to_owned());
            }
        }
    }
    reached
}

/// The shortest way from a module back to it.
fn way<'a>(arrows: &Arrows<'a>, start: &str) -> Vec<&'a Edge> {
    let reached = reach(arrows, start);
    let depth = reached[start].to.iter().zip(&reached[start].from).take_while(|(to, from)| to == from).count();
    let mut way = vec![reached[start]];
    while way.last().expect("it has one").from[depth] != start {
        let before = way.last().expect("it has one").from[depth].as_str();
        way.push(reached[before]);
    }
    way.reverse();
    way
}
