//! The README is right about commands, flags and routes: it is compared with what the program says of itself.

use std::collections::BTreeSet;

use crate::{
    process::run,
    server::{client, fixture},
};

const README: &str = include_str!("../../README.md");

/// The text below a heading, up to the next one.
fn section(heading: &str) -> &'static str {
    let start = README.find(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no section {heading:?}"));
    let text = &README[start + 4..];
    text.split("\n## ").next().unwrap_or(text)
}

/// The long flags that a text has.
fn flags(text: &str) -> BTreeSet<String> {
    let names = text.split("--").skip(1).map(|rest| {
        let name: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        name.trim_end_matches('-').to_owned()
    });
    names.filter(|name| !name.is_empty() && !["help", "version"].contains(&name.as_str())).collect()
}

fn help(arguments: &[&str]) -> String {
    let output = run(arguments, None);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn every_flag_is_in_the_readme_and_every_flag_of_the_readme_is_one() {
    let commands = section("Commands");
    let listed = help(&["--help"]);
    let (_, list) = listed.split_once("Commands:").expect("a list of commands");
    let names: Vec<&str> = list
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.len() >= 4, "{listed}");
    let mut known = BTreeSet::new();
    for name in names {
        assert!(commands.contains(&format!("mettle {name}")), "the README does not tell of mettle {name}");
        known.extend(flags(&help(&[name, "--help"])));
    }
    let shown = flags(commands);
    let untold: Vec<&String> = known.difference(&shown).collect();
    assert!(untold.is_empty(), "flags that the README leaves out: {untold:?}");
    let gone: Vec<&String> = shown.difference(&known).collect();
    assert!(gone.is_empty(), "flags of the README that no command has: {gone:?}");
}

#[test]
fn every_route_is_in_the_readme_and_every_route_of_the_readme_is_one() {
    let server = fixture::Server::start(fixture::Setup::default());
    let message = client::get(server.address, "/nothing").json()["error"]["message"].to_string();
    let (_, list) = message.split_once("there are ").expect("a list of routes");
    let known: BTreeSet<&str> = list.trim_end_matches('"').split(", ").collect();
    let rows = section("The server").lines().filter(|line| line.starts_with("| `"));
    let first = |row: &'static str| row.split('|').nth(1).unwrap_or_default();
    let shown: BTreeSet<&str> = rows.flat_map(|row| first(row).split('`').skip(1).step_by(2)).collect();
    let missing: Vec<&&str> = known.difference(&shown).collect();
    let gone: Vec<&&str> = shown.difference(&known).collect();
    assert!(missing.is_empty(), "routes that README.md's table leaves out: {missing:?}");
    assert!(gone.is_empty(), "routes in README.md's table that are none: {gone:?}");
}
