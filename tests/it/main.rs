//! The integration tests, one binary.

// What a test skips, and what the layer test measures.
#![allow(clippy::print_stderr, clippy::print_stdout)]

mod accuracy;
mod bench;
mod commands;
mod dialects;
mod guided;
mod hub;
mod layers;
mod models;
mod openai;
mod process;
mod readme;
mod server;
mod starter;
mod structured;
mod support;
