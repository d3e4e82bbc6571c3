//! The binary: arguments, terminal, exit codes. What it does is in the library.

// Nothing but the commands prints.
#![allow(clippy::print_stderr, clippy::print_stdout)]

#[macro_use]
mod terminal;

mod args;
mod bench;
mod environment;
mod error;
mod load;
mod page;
mod pull;
mod request;
mod run;
mod serve;

use clap::Parser;

use args::{Arguments, Command};

fn main() -> std::process::ExitCode {
    // Before the first thread: glibc gives each an arena of its own.
    mettle::mlx::tune_allocator();
    let arguments = Arguments::parse();
    let outcome = match arguments.command {
        Command::Run(run) => run::run(run),
        Command::Serve(serve) => serve::serve(serve),
        Command::Pull(pull) => load::block_on(load::pull(pull)),
        Command::Bench(bench) => bench::bench(bench),
    };
    error::exit_code(outcome)
}
