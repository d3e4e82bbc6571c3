//! The alias table: short names for models, compiled in from `aliases/*.toml` (whose README says the fields).

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use super::place::Place;

/// One row of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alias {
    /// The name, lower case, unique in the whole table.
    pub alias: String,
    /// Further names for the same model, lower case and unique too.
    #[serde(default)]
    pub also: Vec<String>,
    /// Bytes to download.
    pub size: u64,
    /// Decimal gigabytes of memory a machine should have, where somebody measured it.
    memory: Option<u64>,
    /// `model_type` in the model's config.json, where it is known before the download.
    pub architecture: Option<String>,
    /// The sampling that the model's authors recommend, by the names of requests, for checkpoints that do not say it
    /// themselves.
    #[serde(default)]
    pub sampling: BTreeMap<String, f64>,
    /// Where it can be had; tried in this order.
    pub source: Vec<Place>,
}

impl Alias {
    /// Bytes of memory a machine should have for this model: the measured figure or, where there is none, the weights,
    /// a quarter more for the cache and the work, and one GB for everything else that runs.
    pub fn memory(&self) -> u64 {
        const GB: u64 = 1_000_000_000;
        self.memory.map_or(self.size + self.size / 4 + GB, |gigabytes| gigabytes * GB)
    }

    /// All names of this row, the main one first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.alias.as_str()).chain(self.also.iter().map(String::as_str))
    }
}

/// A family's file name and text.
type Family = (&'static str, &'static str);

macro_rules! families {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../aliases/", $name, ".toml")))),*]
    };
}

/// Every file in `aliases/`; a test compares this list with the folder.
pub const FAMILIES: &[Family] = families![
    "bonsai", "deepseek", "gemma", "glm", "gpt-oss", "granite", "hermes", "lfm", "llama", "minicpm", "minimax",
    "minilm", "mistral", "nanbeige", "nemotron", "others", "phi", "qwen2.5", "qwen3", "qwen3.5", "qwen3.6", "qwen3.8",
    "smollm", "ui-tars",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    model: Vec<Alias>,
}

static TABLE: LazyLock<Vec<Alias>> = LazyLock::new(|| {
    let parse = |(name, text): &Family| match toml::from_str::<File>(text) {
        Ok(file) => file.model,
        Err(error) => panic!("aliases/{name}.toml is a bug: {error}"),
    };
    FAMILIES.iter().flat_map(parse).collect()
});

/// The whole table, family by family.
pub fn all() -> &'static [Alias] {
    &TABLE
}

/// The row of that name. Case does not matter; `:latest` is dropped and another tag joined (`qwen3.5:4b` means
/// `qwen3.5-4b`), as people who come from other servers write names.
pub fn find(name: &str) -> Option<&'static Alias> {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(":latest").unwrap_or(&name).replace(':', "-");
    all().iter().find(|alias| alias.names().any(|known| known == name))
}

/// At most five known names that look like `name`, the closest first: one contains the other, or few letters differ.
pub(super) fn similar(name: &str) -> Vec<String> {
    let name = name.to_ascii_lowercase().replace(':', "-");
    let bare = name.rsplit('/').next().unwrap_or(&name);
    let limit = (bare.chars().count() / 3).max(1);
    let mut close: Vec<(usize, &str)> = all()
        .iter()
        .flat_map(Alias::names)
        .filter_map(|known| {
            let distance = edits(bare, known);
            let contains = bare.len() >= 3 && (known.contains(bare) || bare.contains(known));
            (contains || distance <= limit).then_some((distance, known))
        })
        .collect();
    close.sort();
    close.dedup();
    close.into_iter().take(5).map(|(_, known)| known.to_string()).collect()
}

/// Levenshtein's distance: the fewest insertions, deletions and replacements of a letter that turn `a` into `b`.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distances() {
        let cases =
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("flaw", "lawn", 2), ("é", "e", 1)];
        for (a, b, expected) in cases {
            assert_eq!(edits(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn names_are_found_however_they_are_written() {
        for name in ["smollm2-135m", "SmolLM2-135M", "smollm2-135m:latest", "smollm2:135m", "SMOLLM2:135m"] {
            assert_eq!(find(name).map(|row| row.alias.as_str()), Some("smollm2-135m"), "{name}");
        }
        for name in ["", "smollm2-135", "smollm2-135m ", "latest", ":latest"] {
            assert!(find(name).is_none(), "{name:?}");
        }
    }

    #[test]
    fn similar_names_are_offered_closest_first() {
        assert_eq!(similar("smolm2-135m")[0], "smollm2-135m");
        assert!(similar("qwen3.5").iter().all(|name| name.contains("qwen3.5")));
        assert_eq!(similar("qwen3.5").len(), 5);
        assert!(similar("someone/llama3-1b-4bti").contains(&"llama3-1b-4bit".to_string()));
        assert_eq!(similar("zzzzzzzzzzzz"), Vec::<String>::new());
        assert_eq!(similar(""), Vec::<String>::new());
    }

    #[test]
    fn the_table_is_sound() {
        let mut seen = std::collections::HashSet::new();
        for row in all() {
            for name in row.names() {
                assert!(seen.insert(name), "{name} is named twice");
                let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
                assert!(name.len() > 2 && name.chars().all(plain), "{name}");
            }
            let name = &row.alias;
            assert!(row.size > 1_000_000, "{name}: size");
            assert!(row.memory() > row.size, "{name}: it cannot run in less memory than its weights take");
            assert!(!row.source.is_empty(), "{name}: no source");
            for place in &row.source {
                check_place(name, place);
            }
        }
    }

    fn check_place(name: &str, place: &Place) {
        let is_hex = |text: &str, length| text.len() == length && text.chars().all(|c| c.is_ascii_hexdigit());
        match place {
            Place::Repo(repo) => {
                assert_eq!(repo.repo.split('/').filter(|part| !part.is_empty()).count(), 2, "{name}: {}", repo.repo);
                assert!(repo.revision.iter().all(|revision| is_hex(revision, 40)), "{name}: a pin is a commit");
            }
            Place::Package(package) => {
                assert!(!package.wheel_sha256.is_empty() && package.wheel_sha256.iter().all(|sum| is_hex(sum, 64)));
                assert_eq!(package.file.is_some(), package.sha256.is_some(), "{name}: a file and its digest");
                assert!(package.sha256.iter().all(|sum| is_hex(sum, 64)), "{name}");
            }
            Place::Local(path) => panic!("{name} names a path: {}", path.display()),
        }
    }

    #[test]
    fn recommended_sampling_is_in_range() {
        for row in all() {
            for (name, &number) in &row.sampling {
                let is_in_range = match name.as_str() {
                    "temperature" => (0.0..=2.0).contains(&number),
                    "top_p" => number > 0.0 && number <= 1.0,
                    "top_k" => number > 0.0 && number.fract() == 0.0,
                    _ => false,
                };
                assert!(is_in_range, "{}: {name} = {number}", row.alias);
            }
        }
        let starter = find(crate::hub::STARTER).expect("the starter has a row");
        let sampling: Vec<(&str, f64)> =
            starter.sampling.iter().map(|(name, number)| (name.as_str(), *number)).collect();
        assert_eq!(sampling, [("temperature", 0.2), ("top_p", 0.9)]);
    }
}
