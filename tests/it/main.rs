//! The integration tests, one binary.

mod hub;
mod layers;
mod models;
mod server;
mod starter;
mod support;
