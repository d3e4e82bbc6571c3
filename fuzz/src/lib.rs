//! mettle's text side without MLX, and what is tried on it. `targets/` has the entry points.

#[path = "../../src/chat/mod.rs"]
pub mod chat;
#[path = "../../src/checkpoint/mod.rs"]
pub mod checkpoint;
#[path = "../../src/engine/mod.rs"]
pub mod engine;
#[path = "../../src/schema/mod.rs"]
pub mod schema;

pub mod answers;
pub mod conversations;
pub mod dialects;
mod literals;
mod promises;
pub mod prompts;
pub mod seeds;
pub mod shapes;
mod written;
