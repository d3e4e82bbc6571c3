//! `mettle bench`: every row is there and counts what it should, its output can be read, and a server that fails is
//! named. How fast anything is, no test says.

mod peer;

use std::path::Path;

use serde_json::Value;

use crate::{
    process::{Server, complaint, run},
    support,
};
use peer::{GOOD, Peer};

const SMALL: [&str; 12] =
    ["--prompt", "8,40", "--context", "0,20", "--batch", "1,3", "--answer", "6", "--repeat", "2", "--threads", "2"];

fn model(name: &str) -> String {
    support::models().join(name).to_string_lossy().into_owned()
}

/// The standard output of `mettle bench` with these arguments.
fn bench(arguments: &[&str]) -> String {
    let arguments: Vec<&str> = ["bench"].iter().chain(arguments).copied().collect();
    let output = run(&arguments, None);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json(arguments: &[&str]) -> Value {
    let arguments: Vec<&str> = arguments.iter().chain(&["--json"]).copied().collect();
    serde_json::from_str(&bench(&arguments)).expect("one JSON document")
}

fn rows(report: &Value) -> &Vec<Value> {
    report["rows"].as_array().expect("rows")
}

/// Checks what holds for every row, and gives how many tokens its runs had: of the prompts, remembered, of the answers.
fn counted(row: &Value, repeat: usize) -> Vec<[u64; 3]> {
    for spread in ["tokens_per_second", "first_token_seconds"] {
        let [median, min, max] = ["median", "min", "max"].map(|key| row[spread][key].as_f64().expect("a number"));
        assert!(0.0 < min && min <= median && median <= max, "{spread} of {row}");
    }
    let runs = row["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), repeat, "{row}");
    let count = |run: &Value, name: &str| run[name].as_u64().expect("a count");
    runs.iter().map(|run| ["prompt_tokens", "cached_tokens", "answer_tokens"].map(|name| count(run, name))).collect()
}

#[test]
fn rows_of_the_engine_count_what_was_asked_for() {
    let model = model("llama-q4");
    let arguments: Vec<&str> = [model.as_str(), "--only", "prefill,decode,prefix"].into_iter().chain(SMALL).collect();
    let report = json(&arguments);
    let settings = |row: &Value| {
        let count = |name: &str| row[name].as_u64().expect("a count");
        (row["measure"].as_str().expect("a name").to_owned(), count("streams"), count("prompt"), count("answer"))
    };
    let expected = [
        ("prefill", 1, 8, 1),
        ("prefill", 1, 40, 1),
        ("decode", 1, 1, 6),
        ("decode", 1, 20, 6),
        ("decode", 3, 1, 6),
        ("prefix cold", 1, 40, 1),
        ("prefix warm", 1, 40, 1),
        ("prefix half shared", 1, 40, 1),
    ];
    assert_eq!(
        rows(&report).iter().map(settings).collect::<Vec<_>>(),
        expected.map(|(a, b, c, d)| (a.into(), b, c, d))
    );
    for row in rows(&report) {
        let (measure, streams, prompt, answer) = settings(row);
        for [prompts, cached, answers] in counted(row, 2) {
            assert_eq!((prompts, answers), (streams * prompt, streams * answer), "{row}");
            match measure.as_str() {
                "prefix cold" => assert_eq!(cached, 0),
                "prefix warm" => assert_eq!(cached, prompt - 1),
                "prefix half shared" => assert_eq!(cached, prompt / 2),
                _ => {}
            }
        }
        let share = row["share_of_roofline"].as_f64();
        assert_eq!(share.is_some_and(|share| share > 0.0), !measure.starts_with("prefix"), "{row}");
    }
    let machine = &report["machine"];
    assert_eq!(machine["threads"], 2);
    for number in ["read_bytes_per_second", "products_per_second", "memory_bytes"] {
        assert!(machine[number].as_f64().is_some_and(|number| number > 1e6), "{machine}");
    }
    // Two layers of 4 attention and 3 mlp matrices, and the head, which the embeddings are.
    let [hidden, kv, inner, vocabulary] = dimensions(&support::models().join("llama-q4"));
    let products = 2 * (2 * hidden * hidden + 2 * hidden * kv + 3 * hidden * inner) + vocabulary * hidden;
    assert_eq!(report["model"]["products_per_token"].as_f64(), Some(products as f64));
    assert!(report["memory"]["loaded_bytes"].as_u64() > Some(1_000_000), "{}", report["memory"]);
}

/// Of a tiny llama: hidden, keys, intermediate, vocabulary.
fn dimensions(folder: &Path) -> [usize; 4] {
    let config = std::fs::read_to_string(folder.join("config.json")).expect("config.json");
    let config: Value = serde_json::from_str(&config).expect("JSON");
    let count = |name: &str| config[name].as_u64().expect(name) as usize;
    let kv = count("num_key_value_heads") * count("head_dim");
    assert_eq!((count("num_hidden_layers"), &config["tie_word_embeddings"]), (2, &Value::Bool(true)));
    [count("hidden_size"), kv, count("intermediate_size"), count("vocab_size")]
}

#[test]
fn tables_and_csv_have_every_row() {
    let model = model("llama-f32");
    let arguments: Vec<&str> = [model.as_str(), "--only", "decode,prefix"].into_iter().chain(SMALL).collect();
    let csv = bench(&arguments.iter().chain(&["--csv"]).copied().collect::<Vec<_>>());
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 1 + 6, "{csv}");
    assert_eq!(lines[0][..2], ["measure", "server"]);
    for line in &lines[1..] {
        assert_eq!(line.len(), lines[0].len(), "{csv}");
        assert!(line[5].parse::<f64>().is_ok_and(|rate| rate > 0.0), "{csv}");
    }
    let table = bench(&arguments);
    for part in ["prefix half shared", "% of reads", "GB/s", "MB loaded", "2 threads", "Medians of 2"] {
        assert!(table.contains(part), "expected {part:?} in:\n{table}");
    }
    assert_eq!(table.lines().filter(|line| line.contains("| engine |")).count(), 6, "{table}");
}

#[test]
fn lengths_that_do_not_fit_are_left_out_and_said() {
    let model = model("llama-f32");
    let ask =
        |prompt: &str| run(&["bench", &model, "--only", "prefill", "--prompt", prompt, "--repeat", "1", "--csv"], None);
    let output = ask("8,1024");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("left out --prompt 1024") && said.contains("context of 1024"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2, "{said}");
    let said = complaint(&ask("2000"));
    assert!(said.contains("--prompt 2000") && said.contains("1024"), "{said}");
}

#[test]
fn the_client_counts_the_same_from_any_server() {
    let model = model("llama.gguf");
    let settings = ["--concurrency", "1,3", "--prompt", "6", "--answer", "5", "--repeat", "2", "--threads", "1"];
    let alone: Vec<&str> = [model.as_str(), "--only", "concurrency"].into_iter().chain(settings).collect();
    let alone = json(&alone);
    assert_eq!(rows(&alone).len(), 2);
    let server = Server::start(&[&model, "--threads", "1"]);
    let paired: Vec<&str> = [model.as_str(), "--against", server.url()].into_iter().chain(settings).collect();
    let paired = json(&paired);
    let peer: Vec<&str> = ["--against", server.url()].into_iter().chain(settings).collect();
    let peer = json(&peer);
    assert_eq!((&peer["model"], &peer["machine"]["threads"]), (&Value::Null, &Value::Null), "not ours to tell");
    for (row, streams) in rows(&alone).iter().chain(rows(&paired)).chain(rows(&peer)).zip([1, 3, 1, 1, 3, 3, 1, 3]) {
        assert_eq!(row["streams"], streams);
        for [prompts, cached, answers] in counted(row, 2) {
            assert!(prompts > 6 * streams && cached < prompts, "{row}");
            assert_eq!(answers, 5 * streams, "the end of a turn ends no answer: {row}");
        }
    }
    let servers: Vec<&Value> = rows(&paired).iter().map(|row| &row["server"]).collect();
    assert_eq!(servers, ["mettle", server.url(), "mettle", server.url()]);
    let ratios = paired["ratios"].as_array().expect("ratios");
    assert_eq!(ratios.len(), 2);
    for (ratio, rows) in ratios.iter().zip(rows(&paired).chunks(2)) {
        let rate = |row: &Value, run: usize| row["runs"][run]["tokens_per_second"].as_f64().expect("a rate");
        let pairs: Vec<f64> = (0..2).map(|run| rate(&rows[0], run) / rate(&rows[1], run)).collect();
        let said: Vec<f64> = ratio["pairs"].as_array().expect("pairs").iter().filter_map(Value::as_f64).collect();
        assert_eq!(said.len(), pairs.len());
        // JSON may round the last digit.
        assert!(said.iter().zip(&pairs).all(|(said, pair)| (said / pair - 1.0).abs() < 1e-12), "{said:?} {pairs:?}");
    }
}

#[test]
fn a_server_that_fails_is_named_with_what_it_said() {
    let check = |answers: &[&str], expected: &[&str]| {
        let peer = Peer::start(answers);
        let said = complaint(&run(&["bench", "--against", &peer.url, "--against-model", "m", "--answer", "4"], None));
        for part in [&peer.url[..], "/v1/chat/completions"].iter().chain(expected) {
            assert!(said.contains(part), "expected {part:?} in:\n{said}");
        }
        assert!(!said.contains("panicked"), "{said}");
    };
    check(&["500 it burns"], &["500", "it burns"]);
    check(&["401 no key"], &["401", "no key"]);
    check(&[GOOD, "503 busy now"], &["503", "busy now"]);
    check(&[&GOOD[..GOOD.find("data: [DONE]").expect("it")].replace("\"stop\"", "null")], &["broke off", "2 pieces"]);
    check(&[&GOOD.replace("usage", "usages")], &["without usage"]);
    check(&["200 data: {\"error\": {\"message\": \"out of memory\"}}\n\n"], &["out of memory"]);
    check(&["200 data: {\"choices\"\n\n"], &["no JSON", "choices"]);
}

#[test]
fn a_server_that_is_not_there_or_lists_no_model() {
    let gone = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}", listener.local_addr().expect("an address"))
    };
    let said = complaint(&run(&["bench", "--against", &gone, "--repeat", "1"], None));
    assert!(said.contains(&gone) && said.contains("cannot be reached"), "{said}");
    let peer = Peer::start(&["200 {\"data\": []}"]);
    let said = complaint(&run(&["bench", "--against", &peer.url], None));
    assert!(said.contains("/v1/models lists no model") && said.contains("--against-model"), "{said}");
}

#[test]
fn a_server_that_does_not_know_ignore_eos_is_asked_without() {
    let peer = Peer::start(&["400 unknown field ignore_eos", GOOD, GOOD]);
    let url = format!("{}/v1/", peer.url);
    let arguments =
        ["bench", "--against", &url, "--against-model", "m", "--concurrency", "1", "--repeat", "1", "--json"];
    let output = run(&[&arguments[..], &["--api-key", "secret"]].concat(), None);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("does not know ignore_eos"), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(counted(&rows(&report)[0], 1), [[7, 3, 2]]);
    let asked = peer.asked();
    assert_eq!(asked.iter().map(|request| request.contains("ignore_eos")).collect::<Vec<_>>(), [true, false, false]);
    assert!(asked.iter().all(|request| request.contains("Bearer secret")), "{asked:?}");
}

#[test]
fn wrong_options_are_refused_by_name() {
    for (arguments, expected) in [
        (&["--batch", "0"][..], "--batch"),
        (&["--prompt", "x"], "--prompt"),
        (&["--prompt", ""], "--prompt"),
        (&["--prompt", "1,,2"], "--prompt"),
        (&["--context", "-1"], "-1"),
        (&["--concurrency", "1,1000"], "--concurrency"),
        (&["--answer", "1"], "--answer"),
        (&["--repeat", "0"], "--repeat"),
        (&["--only", "speed"], "--only"),
        (&["--against", "127.0.0.1:1"], "--against"),
        (&["--against-model", "m"], "--against"),
        (&["--json", "--csv"], "--csv"),
    ] {
        let output = run(&[&["bench", "x"], arguments].concat(), None);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "expected {expected:?} in:\n{said}");
    }
}
