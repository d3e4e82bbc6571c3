//! mettle's library: language models over HTTP and in the terminal, on MLX. This page is the map.
//!
//! # The layers, in reading order
//!
//! 1. [`checkpoint`]: a model on disk, read without arrays: safetensors, GGUF, configurations, templates, tokenizer
//!    files.
//! 2. [`engine`]: token ids in, token ids out. It decides which sequence computes next and knows no model.
//! 3. [`mlx`]: everything that touches an array: architectures, their blocks, sampling, key-value caches. It makes the
//!    engine's runner of a checkpoint.
//! 4. [`chat`]: text in, events out. A conversation becomes a prompt (`prompt`), a model's way to write is data
//!    (`dialect`), tokens become reasoning, text and tool calls (`output`), and an answer is held to a grammar
//!    (`constraint`).
//! 5. [`protocol`]: one folder a vendor: its JSON to chat requests, and events back to its JSON.
//! 6. [`server`]: sockets, routes, limits, and the pool of loaded models.
//! 7. [`hub`]: names to folders: aliases, downloads, caches.
//!
//! The binary in `commands/` is arguments, terminal and exit codes. `crates/mlx-cpu` has the primitives that make MLX
//! fast on a CPU, `crates/mlx-sys` binds MLX itself.
//!
//! # The journey of a request
//!
//! `server` reads bytes, `protocol` makes a [`chat::Request`] of them, `chat` renders and tokenises it into an
//! [`engine::Job`], the engine answers with [`engine::Step`]s, `chat` turns those into [`chat::Event`]s, and `protocol`
//! and `server` send them back. Two channels lie on the way: to the device thread and back. Cancelling is dropping: who
//! drops the receiver frees the row at the next step.
//!
//! # Ideas to know before reading on
//!
//! - **An integer engine with a scripted runner.** The scheduler sees ids, lengths and states, no arrays and no text.
//!   Its tests run it over a runner whose next token is a hash of every token so far, so that any mistake in what a
//!   state holds shows in the answer (`engine::scripted`).
//! - **Parsers as coroutines over `Input`.** Whoever reads a model's output waits for text as if all of it were there
//!   (`chat/output/input.rs`), so any chunking of the stream gives the same events, and what turns out to be no tool
//!   call stays text.
//! - **One answer, streamed or not.** A whole answer is the fold of the streamed events; a cold request is a prefix hit
//!   of length zero; one sequence is a batch of one.
//! - **A flat axis of tokens.** A batch is its sequences' tokens one behind the other, without padding, so a row has the
//!   same bits alone and in any batch (`mlx/batch.rs`).
//! - **Kernels that know no MLX.** They take slices, are tested against f64 at every instruction set, and only then
//!   become primitives of MLX's graph (`crates/mlx-cpu/src/kernels`).
//! - **`Fields` are taken one by one.** A parser takes each field of a body that it understands; what is left was not
//!   understood, and is reported or refused, never ignored in silence (`protocol`).
//! - **Blocks that load themselves.** An architecture names its blocks under the names of the checkpoint's tensors; a
//!   weight that nobody took is an error (`mlx/nn`, `mlx/models`).
//!
//! # Adding things
//!
//! - **A model**: a file in `mlx/models` and its row in the table there; a row for it in `tests/data/models/make.py`, and
//!   the folder that this writes; its `model_type` in the row of its family in `chat/dialect`. What it costs, holds and
//!   remembers it says itself (`mlx::cost`).
//! - **A family's way to write**: a row in `chat/dialect` (`json` where its calls are JSON, `tags` where they are a
//!   notation of their own, `common` for marks that many share; the more specific row first), and a folder of cases in
//!   `tests/data/dialects`, ten for a format (`UPDATE=1 cargo test --test it dialects` writes what is read; look at it).
//!   A new *syntax* of tool calls: a file in `chat/output/tools`, and an arm of `chat::dialect::Syntax`.
//! - **An endpoint**: a file in `protocol/<vendor>` that implements [`protocol::Wire`], rows in `server/routes` and in
//!   README.md's table, a row in `tests/it/server/wire.rs` with a folder of golden files. `Pigeon` in `server/tests.rs`
//!   is one whole. A new vendor is a folder with its line in `protocol/mod.rs`.
//! - **A sampling setting**: a field of [`engine::Sampling`]; the compiler then names each place that has to know it, down
//!   to the kernel's own settings (`mlx_cpu::Choice`).
//! - **An alias, a subcommand**: a file each, in `aliases/` and `commands/`.
//!
//! If it takes more, the design is at fault.
//!
//! # What is not here
//!
//! The library never prints, reads no arguments and no environment. The engine knows no text and no arrays, `mlx` no
//! text, `chat` no sockets, no arrays and no vendor's field names, `protocol` no sockets and no engine, `server` no
//! vendor's field and no arrays. No modules name each other in a circle. `tests/it/layers/` holds them to it.

pub mod chat;
pub mod checkpoint;
pub mod engine;
pub mod hub;
pub mod mlx;
pub mod protocol;
pub mod schema;
pub mod server;
