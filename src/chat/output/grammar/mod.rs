//! The rules of a grammar that makes a model write calls, in llguidance's dialect of Lark: values by their schemas, in
//! JSON and in notations that are not JSON.

mod notation;
mod rules;
mod spelling;
mod values;

pub(in crate::chat::output) use notation::{Notation, Quotes};
pub(in crate::chat::output) use rules::Parameter;
pub(in crate::chat) use rules::Rules;
pub(in crate::chat::output) use values::with_type;
