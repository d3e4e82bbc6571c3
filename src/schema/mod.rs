//! JSON Schema in one place: a cursor that walks one and follows its references, a table that says what becomes of each
//! keyword when an answer is held to a schema, and the check that names what cannot be.
//!
//! Names nothing else in the crate. `chat` reads calls and compiles grammars with it, `protocol` looks at what a request
//! sends.

mod check;
mod cursor;
mod format;
mod keyword;
mod names;
mod notation;
mod prepare;
mod shape;
mod simplify;
mod types;
mod unread;

pub use check::{Problem, check, is_schema};
pub use cursor::{Cursor, children};
pub use format::text_pattern;
pub use keyword::{KEYWORDS, Keyword, Scope, Subschemas, Use, keyword};
pub use notation::{foreign_reference, restricts_others, undescribed, unsupported};
pub use prepare::prepare;
pub use shape::Shape;
pub use simplify::simplified;
pub use types::Types;
pub use unread::{Unread, unread};
