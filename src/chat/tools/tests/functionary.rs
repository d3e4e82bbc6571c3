//! Functionary 3.2's calls: its model card. The prompt ends with `>>>`.

use super::{json::check_json, *};
use crate::chat::tools::functionary::FORMAT;

#[test]
pub fn cases() {
    check_json(&FORMAT, ">>>", |calls| {
        calls.iter().map(|(name, arguments)| format!(">>>{name}\n{arguments}")).collect()
    });
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| {
        check_dialect(named("functionary_v32"), case, "", text, calls);
    };
    let (now, paris) = (("now", json!({})), ("get_weather", json!({"city": "Paris"})));
    check("all\nHello.", "Hello.", &[]);
    check("all\nI look.\n>>>get_weather\n{\"city\": \"Paris\"}", "I look.", std::slice::from_ref(&paris));
    check("get_weather\n{\"city\": \"Paris\"}>>>now\n{}", "", &[paris.clone(), now.clone()]);
    check("now\n{}\n>>>all\nDone.", "Done.", &[now]);
    check("all\n>>> print(1)\n1", ">>> print(1)\n1", &[]);
    check("all\nallow all\nof it", "allow all\nof it", &[]);
    check("rm\n{}", "rm\n{}", &[]);
    check("Hello.", "Hello.", &[]);
    check("", "", &[]);
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}
