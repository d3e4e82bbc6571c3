//! The dialects that answers are read in.

use std::slice;

use crate::chat::{DIALECTS, Dialect};

/// Those of the table.
pub fn all() -> Vec<&'static Dialect> {
    DIALECTS.clone()
}

/// Each format of each dialect, alone.
pub fn of_one_format() -> Vec<&'static Dialect> {
    let alone = |row: &'static Dialect| {
        row.tools.iter().map(|format| {
            let dialect = Dialect { tools: slice::from_ref(format), ..*row };
            &*Box::leak(Box::new(dialect))
        })
    };
    DIALECTS.iter().copied().flat_map(alone).collect()
}
