//! Every rule is broken on purpose and must complain; and clean sources give no complaint.

use super::{breaches, hosts, source};

/// Sources of these paths and texts, each opening as it should, give a complaint with this in it.
fn check(files: &[(&str, &str)], expected: &str) {
    let texts = files.iter().map(|(path, text)| ((*path).to_owned(), format!("//! x\n{text}"))).collect();
    let found = breaches(&source::from_texts(texts));
    assert!(found.iter().any(|line| line.contains(expected)), "expected {expected:?} of {files:?} in {found:#?}");
}

/// Sources give no complaint, but that nothing declares them.
fn clean(files: &[(&str, &str)]) {
    let texts = files.iter().map(|(path, text)| ((*path).to_owned(), format!("//! x\n{text}"))).collect();
    let found = breaches(&source::from_texts(texts));
    let found: Vec<&String> = found.iter().filter(|line| !line.contains("no module declares")).collect();
    assert!(found.is_empty(), "{files:?} gave {found:#?}");
}

#[test]
fn layers() {
    check(&[("src/engine/a.rs", "use crate::mlx::load;")], "engine may not name mlx");
    check(&[("src/chat/a.rs", "use crate::{engine::Job, server::{run, pool}};")], "chat may not name server");
    check(&[("src/chat/a.rs", "fn f() { crate::protocol::f() }")], "chat may not name protocol");
    check(&[("src/chat/a.rs", "use super::super::server::run;")], "chat may not name server");
    check(&[("src/chat/a/b.rs", "use super::super::super::server::run;")], "chat may not name server");
    check(&[("src/chat/mod.rs", "use super::server::run;")], "chat may not name server");
    check(&[("src/chat/a.rs", "#[cfg(test)]\nuse crate::x::y;\nuse crate::server::run;")], "chat may not name server");
    check(&[("src/chat/a.rs", "#[cfg(test)] mod t { fn f() {} }\nuse crate::server;")], "chat may not name server");
    check(&[("src/novel/a.rs", "")], "no row in LAYERS");
    clean(&[("src/mlx/a.rs", "use crate::{checkpoint::Dtype, engine::Row};\n// crate::server in a comment")]);
    clean(&[("src/chat/a.rs", "#[cfg(test)]\nmod tests {\n use crate::server::run;\n}\nfn f() {}")]);
    clean(&[("src/chat/a.rs", "fn f() { let _ = \"crate::server::run\"; }")]);
    clean(&[("src/chat/a.rs", "#[cfg(test)]\nmod a_tests;"), ("src/chat/a/a_tests.rs", "use crate::server;")]);
}

#[test]
fn circles() {
    let chat = ("src/chat/mod.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\npub use b::{B, f};");
    let a = ("src/chat/a.rs", "use super::b::B;\npub struct A;");
    check(&[chat, a, ("src/chat/b.rs", "use super::a::A;\npub struct B;")], "2 modules in a circle: a, b");
    // By way of what the parent shows, of another folder, of a path in the code, and of a third module.
    check(&[chat, a, ("src/chat/b.rs", "use super::{A};\npub struct B;")], "the shortest way round is a → b → a");
    check(&[chat, a, ("src/chat/b/d.rs", "use crate::chat::A;"), ("src/chat/b.rs", "mod d;")], "in a circle: a, b");
    check(&[chat, a, ("src/chat/b.rs", "pub fn f() -> super::a::A {}")], "in a circle: a, b");
    check(
        &[chat, a, ("src/chat/b.rs", "use super::c;\nfn f(c: c::C) {}"), ("src/chat/c.rs", "use crate::chat::a;")],
        "3 modules in a circle: a, b, c",
    );
    let lib = ("src/lib.rs", "pub mod chat;\npub mod engine;");
    let engine = ("src/engine/mod.rs", "use crate::chat::A;\npub struct Job;");
    check(&[lib, chat, ("src/chat/a.rs", "use crate::engine::Job;\npub struct A;"), engine], "src/: 2 modules");
    let kernels = ("crates/mlx-cpu/src/kernels/mod.rs", "mod a;\nmod b;");
    let one = ("crates/mlx-cpu/src/kernels/a.rs", "use super::b::B;\npub struct A;");
    let other = ("crates/mlx-cpu/src/kernels/b.rs", "use super::a::A;\npub struct B;");
    check(&[kernels, one, other], "crates/mlx-cpu/src/kernels: 2 modules in a circle");
    clean(&[chat, a, ("src/chat/b.rs", "pub struct B;\n#[cfg(test)]\nuse super::a::A;")]);
    clean(&[chat, a, ("src/chat/b.rs", "use super::c::C;\npub struct B;"), ("src/chat/c.rs", "pub struct C;")]);
}

#[test]
fn words() {
    check(&[("src/engine/a.rs", "use mlx_rs::Array;")], "`mlx_rs` belongs to");
    check(&[("src/protocol/a.rs", "use axum::Json;")], "`axum` belongs to");
    check(&[("src/chat/a.rs", "#[derive(serde::Serialize)]")], "`serde` belongs to");
    check(&[("src/engine/a.rs", "use serde_json::Value;\nuse serde::{Deserialize};")], "`Deserialize` belongs to");
    check(&[("src/chat/a.rs", "fn f() { println!(); }")], "`println!` belongs to");
    check(&[("src/hub/a.rs", "fn f() { eprint!(); }")], "`eprint!` belongs to");
    check(&[("src/mlx/nn/a.rs", "fn f() { unsafe { } }")], "`unsafe` belongs to");
    check(&[("src/hub/a.rs", "fn f() { std::env::var(\"X\") }")], "`std::env` belongs to");
    check(&[("src/hub/a.rs", "use std::{io, env};")], "`std::env` belongs to");
    check(&[("src/server/a.rs", "use minijinja::Value;")], "`minijinja` belongs to");
    check(&[("commands/a.rs", "fn f() { todo!() }")], "`todo!` belongs to");
    check(&[("src/chat/a.rs", "const F: &str = \"send tool_choice \\\"auto\\\"\";")], "\"tool_choice\" is a vendor's");
    check(&[("src/server/a.rs", "const F: &str = r#\"response_format\"#;")], "\"response_format\" is a vendor's");
    check(&[("src/chat/a.rs", "fn teach_tools() {}")], "the name `teach_tools` is a riddle");
    check(&[("commands/a.rs", "struct ToolWishes;")], "the name `ToolWishes` is a riddle");
    clean(&[("src/chat/a.rs", "struct Request { tool_choice: u8 }\n// response_format in a comment, println!()")]);
    clean(&[("src/chat/prompt/a.rs", "const F: &str = \"enable_thinking\";")]);
    clean(&[("src/chat/a.rs", "fn wishful() { let teacher = 'a'; let _: &'static str = \"unsafe println!()\"; }")]);
    clean(&[("src/chat/a.rs", "/* unsafe /* println!() */ todo!() */ fn f() { let _ = br##\"todo!() \"# \"##; }")]);
}

#[test]
fn sizes() {
    check(&[("src/hub/a.rs", &"\n".repeat(600))], "the limit is 500");
    check(&[("src/mlx/models/a.rs", &"\n".repeat(250))], "the limit is 200");
    for head in
        ["fn f()", "pub(in crate::hub) fn f()", "const fn f()", "extern \"C\" fn f()", "pub async fn f<T>() -> T"]
    {
        let text = format!("    {head}\n    where\n    {{\n{}    }}\n", "        a();\n".repeat(120));
        check(&[("src/hub/a.rs", &text)], "f has 124 lines, the limit is 100");
    }
    check(
        &[("src/hub/a.rs", "fn f(a: u8, b: u8, (c, d): (u8, u8), e: Vec<(u8, u8)>, g: u8) {}")],
        "f takes 5 arguments",
    );
    check(
        &[("commands/a.rs", "fn f<F: Fn(u8) -> u8>(&self, a: u8, b: u8, c: u8, d: u8, f: F) {}")],
        "takes 5 arguments",
    );
    clean(&[("src/hub/a.rs", "fn f(&self, a: u8, b: impl Fn(u8, u8) -> u8, c: HashMap<u8, u8>, d: [u8; 3],) {}")]);
    clean(&[("crates/a/src/a.rs", "fn f(a: u8, b: u8, c: u8, d: u8, e: u8) {}")]);
    let bare = breaches(&source::from_texts(vec![("src/hub/a.rs".into(), "use x;".into())]));
    assert!(bare[0].contains("opens without"), "{bare:?}");
}

#[test]
fn wall_time() {
    let test = "tests/it/a.rs";
    check(&[(test, "fn f() { assert!(t.elapsed() < Duration::from_secs(1), \"too slow\"); }")], "asserts how long");
    check(&[(test, "fn f() { let took = t.elapsed();\nassert!(took.as_secs() < 60); }")], "a.rs:3: asserts how long");
    check(
        &[("src/hub/a.rs", "#[cfg(test)]\nmod tests { fn f() { assert_eq!(1, t.elapsed().as_secs()); } }")],
        "asserts",
    );
    clean(&[(test, "fn f() { assert!(Instant::now() < deadline, \"waited in vain\"); }")]);
    clean(&[(test, "fn f() { assert!(ok, \"not there after {:?}\", t.elapsed()); }")]);
}

#[test]
fn forgotten() {
    check(&[("src/lib.rs", "mod hub;"), ("src/hub/mod.rs", "mod b;"), ("src/hub/a.rs", "")], "no module declares");
    let files: Vec<String> = (0..23).map(|index| format!("src/chat/output/tools/s{index}.rs")).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|path| (path.as_str(), "")).collect();
    check(&files, "23 files, the limit is 22");
}

#[test]
fn hosts_of_registries() {
    let host = ["deb", "debian", "org"].join(".");
    assert!(hosts::named("README.md", &format!("from http://{host}/debian")).is_some());
    assert!(hosts::named("README.md", "from the machine's own mirror, as debian.org says").is_none());
}
