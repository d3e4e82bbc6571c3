//! Formats that are refused, with what is wrong.

use super::*;

fn refusal(format: &Format) -> String {
    match Bench::bytes().grammars.compile(format) {
        Err(Error::Request { field: "response_format", message }) => message,
        Err(other) => panic!("{format:?}: {other}"),
        Ok(_) => panic!("{format:?} is accepted"),
    }
}
