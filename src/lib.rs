//! mettle's library, in reading order:
//!
//! 1. [`checkpoint`]: a model folder or file on disk, read without arrays.
//! 2. [`engine`]: token ids in, token ids out, on one device thread.
//! 3. [`mlx`]: makes a runner for the engine of a checkpoint; everything that touches an array.
//! 4. [`chat`]: text in, events out: templates, tokenising, streaming decode, stop strings.
//! 5. [`protocol`]: vendors' JSON to chat requests and events back to vendors' JSON.
//! 6. [`server`]: sockets, routes, who is asked what.
//! 7. [`hub`]: names to folders: aliases, downloads, caches.
//!
//! The journey of a request: `server` reads bytes, `protocol` makes a [`chat::Request`] of them, `chat` renders and
//! tokenises it into an [`engine::Job`], the engine answers with [`engine::Step`]s, `chat` turns those into
//! [`chat::Event`]s, and `protocol` and `server` send them back.
//!
//! What is not here: the library never prints, reads no arguments and no environment. The engine knows no text and
//! no arrays, `mlx` no text, `chat` no sockets and no arrays, `protocol` no sockets and no engine, `server` no
//! vendor's field. `tests/it/layers.rs` holds them to it.

pub mod chat;
pub mod checkpoint;
pub mod engine;
pub mod hub;
pub mod mlx;
pub mod protocol;
pub mod server;
