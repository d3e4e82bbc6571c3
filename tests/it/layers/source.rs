//! The sources as text, and what each file is: its module, and whether only tests see it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::{
    mask::{self, Masked},
    paths::{self, Named},
};

/// Where mettle's own Rust is.
const FOLDERS: &[&str] = &["src", "commands", "crates", "tests/it", "build.rs"];

/// One file.
pub struct Source {
    /// Relative to the repository, with forward slashes.
    pub path: String,
    pub text: String,
    /// Without comments and without what stands in strings.
    pub code: String,
    /// Strings alone.
    pub strings: String,
    /// `code` and `strings` without the items that only tests see; empty for a file of tests.
    pub product: Masked,
    /// What `product` names.
    pub paths: Vec<Named>,
    pub is_test: bool,
}

impl Source {
    fn new(path: String, text: String) -> Source {
        let Masked { code, strings } = mask::mask(&text);
        let hidden = mask::test_items(&code);
        let product = Masked { code: mask::without(&code, &hidden), strings: mask::without(&strings, &hidden) };
        let paths = paths::paths(&product.code);
        Source { path, text, code, strings, product, paths, is_test: false }
    }

    /// The module's path below its crate's root: `src/chat/mod.rs` is `[chat]`, `src/lib.rs` is `[]`.
    pub fn module(&self) -> Vec<&str> {
        let below = self.path.split_once("src/").map_or(self.path.as_str(), |(_, below)| below);
        let stem = below.strip_suffix(".rs").unwrap_or(below);
        let mut names: Vec<&str> = stem.split('/').collect();
        if matches!(names.last(), Some(&("mod" | "lib"))) {
            names.pop();
        }
        names
    }

    /// The folder that the files of its child modules are in.
    pub fn folder(&self) -> &str {
        let root = ["/mod.rs", "/lib.rs", "/main.rs"].into_iter().find_map(|name| self.path.strip_suffix(name));
        root.unwrap_or(self.path.trim_end_matches(".rs"))
    }
}

/// Where the repository is.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file of the repository.
pub fn sources() -> Vec<Source> {
    let files = FOLDERS.iter().flat_map(|folder| files(&root().join(folder)));
    let texts = files.filter(|path| path.ends_with(".rs")).map(|path| {
        let text = fs::read_to_string(root().join(&path)).expect("UTF-8");
        (path, text)
    });
    from_texts(texts.collect())
}

/// Sources of these paths and texts.
pub fn from_texts(texts: Vec<(String, String)>) -> Vec<Source> {
    let mut sources: Vec<Source> = texts.into_iter().map(|(path, text)| Source::new(path, text)).collect();
    let tests: BTreeSet<String> = sources.iter().flat_map(test_modules).collect();
    for source in &mut sources {
        let stem = source.path.trim_end_matches("/mod.rs").trim_end_matches(".rs");
        source.is_test = source.path.starts_with("tests/")
            || source.path.contains("/tests/")
            || tests.iter().any(|module| stem == module || stem.starts_with(&format!("{module}/")));
        if source.is_test {
            source.product = Masked { code: String::new(), strings: String::new() };
            source.paths.clear();
        }
    }
    sources
}

/// The paths, without their ending, of the files that `#[cfg(test)] mod name;` declares.
fn test_modules(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for place in mask::test_items(&source.code) {
        let item = &source.code[place.clone()];
        let Some(start) = paths::words(item, "mod").next() else { continue };
        let name: String = item[start + 3..].trim_start().chars().take_while(|c| paths::is_word(*c)).collect();
        match source.strings[place].trim().strip_suffix(".rs") {
            // `#[path]` counts from the folder of the file.
            Some(file) => {
                let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
                found.push(format!("{folder}/{file}"));
            }
            None => found.push(format!("{}/{name}", source.folder())),
        }
    }
    found
}

/// Every file below a path, relative to the repository, in order; build output and hidden folders left out.
pub fn files(path: &Path) -> Vec<String> {
    let hidden = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with('.') || ["target", "corpus", "artifacts", "__pycache__"].contains(&&*name)
    };
    if path.is_dir() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
        entries.sort();
        return entries.iter().filter(|entry| !hidden(entry)).flat_map(|entry| files(entry)).collect();
    }
    let relative = path.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/");
    vec![relative]
}
