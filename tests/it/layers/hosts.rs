//! No host of a package registry or of a mirror of one stands in the repository: whoever builds it has their own.

use std::fs;

use super::source;

/// In pieces, so that this file does not break its own rule.
const HOSTS: &[&[&str]] = &[
    &["deb", "debian", "org"],
    &["archive", "ubuntu", "com"],
    &["pypi", "org"],
    &["files", "pythonhosted", "org"],
    &["static", "crates", "io"],
    &["index", "crates", "io"],
    &["registry", "npmjs", "org"],
    &["conda", "anaconda", "org"],
    &["proxy", "golang", "org"],
    &["dl-cdn", "alpinelinux", "org"],
    &["mirrors", "aliyun", "com"],
    &["tuna", "tsinghua", "edu", "cn"],
];

/// Names of hosts in any text of the repository.
pub fn hosts() -> Vec<String> {
    let files = source::files(&source::root());
    // A model's vocabulary or text may have any word.
    let own = files.into_iter().filter(|path| !path.starts_with("tests/data/") && path != "Cargo.lock");
    own.filter_map(|path| {
        let text = fs::read_to_string(source::root().join(&path)).ok()?;
        named(&path, &text)
    })
    .collect()
}

/// The first host that a text names.
pub fn named(path: &str, text: &str) -> Option<String> {
    let host = HOSTS.iter().map(|parts| parts.join(".")).find(|host| text.contains(host))?;
    Some(format!("{path}: names the host {host}; leave it to the machine's own configuration"))
}
