//! How tokens become events: the splitter of thoughts, text and calls, the readers of calls, stop strings, loops.

pub(in crate::chat) mod emitter;
pub(in crate::chat) mod input;
pub(in crate::chat) mod json;
pub(in crate::chat) mod loops;
pub(in crate::chat) mod splitter;
pub(in crate::chat) mod stop;
pub(in crate::chat) mod tools;
