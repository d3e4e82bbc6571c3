//! How tokens become events: the splitter of thoughts, text and calls, the readers of calls, stop strings, loops.

mod calls;
pub(in crate::chat) mod emitter;
pub(in crate::chat) mod grammar;
pub(in crate::chat) mod input;
pub(in crate::chat) mod json;
pub(in crate::chat) mod loops;
mod nesting;
mod reading;
pub(in crate::chat) mod repeats;
pub(in crate::chat) mod splitter;
pub(in crate::chat) mod stop;
pub(in crate::chat) mod tools;
pub(in crate::chat) mod unknown_marks;

pub use input::SpecialTokens;
pub use reading::Beginning;
