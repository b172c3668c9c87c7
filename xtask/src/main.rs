//! Ascertain's own chores: `cargo xtask test`, `calibrate`, `bench`, `schema`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod binomial;
mod browser;
mod calibrate;
mod checkers;
mod emulated;
mod exports;
mod load;
mod permutation;
mod schema;
mod test;
mod tools;
mod welch;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test              every test, installing what it needs where it may
cargo xtask calibrate [N] [steady] [bursts]
                              N comparisons (200) of a command with itself under each load: 11 minutes
cargo xtask bench [NAME …]    the goals, measured: power, startup, start, loop, judge, evidence,
                              history, permutation, size, build
cargo xtask schema            write the JSON schema of the claims file to claims/schema.json";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match words.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("", words.as_slice()),
    };
    let done = match command {
        "test" => test::all(),
        "calibrate" => calibrate::equals(rest),
        "bench" => bench::run(rest),
        "schema" => schema::write(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
