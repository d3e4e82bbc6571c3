//! The integration tests, one binary.

mod accuracy;
mod bench;
mod commands;
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
