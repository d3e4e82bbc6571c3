//! FireFunction v2's calls: its model card.

use super::{
    json::{check_json, objects},
    *,
};
use crate::chat::output::tools::firefunction::FORMAT;

#[test]
pub fn cases() {
    check_json(&FORMAT, "functools", |calls| objects(calls, " functools[", ", ", "]"));
    let check = |case: &str, text: &str, calls: &[(&str, Value)]| check(&FORMAT, case, text, calls);
    check("functools.wraps is a decorator", "functools.wraps is a decorator", &[]);
    check("functools [1]", "functools [1]", &[]);
    check("functools[{\"name\": \"now\", \"arguments\": {}}]\n", "", &[("now", json!({}))]);
}

#[test]
fn writes_what_it_reads() {
    check_rendered(&FORMAT);
}
