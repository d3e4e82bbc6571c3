//! Every dialect's cases: `tests/data/dialects/<family>/<what they show>.txt`, whose form `tests/data/dialects/README.md`
//! describes. Each is read whole, in any pieces, cut at every character, and changed at random; what formats write is
//! read again. With UPDATE=1 the files' expectations are written anew.

mod cases;
mod formats;
mod random;
mod reading;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
    thread,
};

use cases::{Answer, File, Kind};
use mettle::chat::FORMATS;
use reading::Reader;

/// Does this with every file of cases, several at once.
fn each_file(check: impl Fn(&File) + Sync) {
    let files = Mutex::new(cases::files());
    let next = || files.lock().expect("no thread that failed").pop();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(file) = next() {
                    check(&file);
                }
            });
        }
    });
}

#[test]
fn answers() {
    let update = std::env::var_os("UPDATE").is_some();
    each_file(|file| {
        let Kind::Answers(answers) = &file.kind else { return };
        let reader = Reader::of(file);
        let read: Vec<Answer> = answers.iter().map(|answer| reader.read_as(answer)).collect();
        if update {
            return file.write(&read);
        }
        for (read, expected) in read.iter().zip(answers) {
            assert_eq!(read, expected, "{}", file.path.display());
            reader.check(expected);
        }
    });
}

#[test]
fn what_templates_write() {
    let update = std::env::var_os("UPDATE").is_some();
    each_file(|file| {
        let Kind::Written(expected) = &file.kind else { return };
        let written: Vec<String> = expected.iter().map(|(count, _)| formats::two_calls(file, *count)).collect();
        if update {
            return file.write_written(&written);
        }
        for (written, (_, expected)) in written.iter().zip(expected) {
            assert_eq!(written, expected, "{}", file.path.display());
        }
    });
}

#[test]
fn every_format_has_ten_cases() {
    let mut counts: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for file in cases::files() {
        if let Kind::Answers(answers) = &file.kind {
            let format = Reader::of(&file).first_format();
            counts.entry(format).or_default().extend(answers.iter().map(|answer| answer.text.clone()));
        }
    }
    let few: Vec<(&str, usize)> = FORMATS
        .iter()
        .map(|format| (format.name, counts.get(format.name).map_or(0, BTreeSet::len)))
        .filter(|(_, count)| *count < 10)
        .collect();
    assert!(few.is_empty(), "each format wants 10 different answers in tests/data/dialects; these have fewer: {few:?}");
    println!("{} cases", counts.values().map(BTreeSet::len).sum::<usize>());
}

/// A folder is a family's.
#[test]
fn every_folder_is_a_dialect() {
    for file in cases::files() {
        assert!(mettle::chat::Dialect::named(&file.family).is_some(), "no dialect {:?}", file.family);
    }
}
