//! The files of cases.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// One file.
pub struct File {
    pub path: PathBuf,
    /// The dialect that its folder is named after.
    pub family: String,
    /// The text before the first case.
    head: String,
    pub kind: Kind,
}

/// What a file has cases of.
pub enum Kind {
    Answers(Vec<Answer>),
    /// What a format writes, and of how many calls.
    Written(Vec<(usize, String)>),
}

/// An answer, and what it is read as.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Special tokens stand between `⟪` and `⟫`.
    pub text: String,
    /// What the case shows, where that is not plain.
    pub note: String,
    /// The answer was cut; otherwise the model has ended it.
    pub is_cut: bool,
    pub thought: String,
    pub said: String,
    pub calls: Vec<Call>,
}

/// A call that an answer is read as.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub name: String,
    /// Empty where the model gave none.
    pub id: String,
    /// JSON, which is open where the call was cut.
    pub arguments: String,
    pub ended: bool,
}

/// Before the parts of a case.
const MARK: &str = "=== ";

/// A space at the end of a line.
const SPACE: char = '␠';

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dialects")
}

/// All files, in no order that matters.
pub fn files() -> Vec<File> {
    let mut files = Vec::new();
    for family in fs::read_dir(folder()).expect("the folder of cases").map(|entry| entry.expect("an entry").path()) {
        if !family.is_dir() {
            continue;
        }
        for path in fs::read_dir(&family).expect("a folder of cases").map(|entry| entry.expect("an entry").path()) {
            let name = family.file_name().expect("a name").to_string_lossy().into_owned();
            files.push(File::read(path, name));
        }
    }
    assert!(files.len() > 100, "only {} files of cases", files.len());
    files
}

impl File {
    fn read(path: PathBuf, family: String) -> File {
        let text = fs::read_to_string(&path).expect("a file of cases");
        let (head, cases) = text.split_at(text.find(&format!("\n{MARK}")).map_or(text.len(), |at| at + 1));
        let parts = parts(cases);
        let is_written = parts.first().is_some_and(|(title, _)| title.starts_with("written"));
        let kind = if is_written {
            Kind::Written(parts.into_iter().map(|(title, text)| (calls_of(&title), text)).collect())
        } else {
            Kind::Answers(answers(parts, &path))
        };
        File { head: head.to_owned(), path, family, kind }
    }

    /// What the head says behind this word, on a line of its own.
    pub fn setting(&self, word: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(": "))
    }

    /// Writes the answers with these expectations.
    pub fn write(&self, answers: &[Answer]) {
        let mut text = self.head.clone();
        for answer in answers {
            let cut = if answer.is_cut { ", cut" } else { "" };
            let note = if answer.note.is_empty() { String::new() } else { format!(": {}", answer.note) };
            text += &part(&format!("answer{cut}{note}"), &answer.text);
            if !answer.thought.is_empty() {
                text += &part("thought", &answer.thought);
            }
            if !answer.said.is_empty() {
                text += &part("text", &answer.said);
            }
            for Call { name, id, arguments, ended } in &answer.calls {
                let id = if id.is_empty() { String::new() } else { format!(" {id}") };
                let cut = if *ended { "" } else { ", cut" };
                text += &part(&format!("call {name}{id}{cut}"), arguments);
            }
        }
        fs::write(&self.path, text).expect("a file of cases");
    }

    /// Writes what a format writes.
    pub fn write_written(&self, written: &[String]) {
        let Kind::Written(expected) = &self.kind else { return };
        let parts =
            written.iter().zip(expected).map(|(written, (count, _))| part(&format!("written {count}"), written));
        fs::write(&self.path, self.head.clone() + &parts.collect::<String>()).expect("a file of cases");
    }
}

fn calls_of(title: &str) -> usize {
    title.trim_start_matches("written ").parse().expect("how many calls are written")
}

fn part(title: &str, text: &str) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| {
            let kept = line.trim_end_matches(' ');
            format!("{kept}{}", SPACE.to_string().repeat(line.len() - kept.len()))
        })
        .collect();
    format!("{MARK}{title}\n{}\n", lines.join("\n"))
}

/// Titles and texts.
fn parts(cases: &str) -> Vec<(String, String)> {
    let mut parts: Vec<(String, Vec<&str>)> = Vec::new();
    for line in cases.lines() {
        match (line.strip_prefix(MARK), parts.last_mut()) {
            (Some(title), _) => parts.push((title.to_owned(), Vec::new())),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => panic!("{line:?} before the first case"),
        }
    }
    parts.into_iter().map(|(title, lines)| (title, lines.join("\n").replace(SPACE, " "))).collect()
}

fn answers(parts: Vec<(String, String)>, path: &Path) -> Vec<Answer> {
    let mut answers: Vec<Answer> = Vec::new();
    for (title, text) in parts {
        let (title, note) = title.split_once(": ").unwrap_or((&title, ""));
        let cut = title.ends_with(", cut");
        let title = title.trim_end_matches(", cut");
        if title == "answer" {
            answers.push(Answer { text, note: note.to_owned(), is_cut: cut, ..Answer::default() });
            continue;
        }
        let answer = answers.last_mut().expect("an answer first");
        match title {
            "thought" => answer.thought = text,
            "text" => answer.said = text,
            call => {
                let call = call.strip_prefix("call ").unwrap_or_else(|| panic!("{title:?} in {}", path.display()));
                let (name, id) = call.split_once(' ').unwrap_or((call, ""));
                let (name, id) = (name.to_owned(), id.to_owned());
                answer.calls.push(Call { name, id, arguments: text, ended: !cut });
            }
        }
    }
    answers
}
