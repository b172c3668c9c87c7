//! Ascertain's own chores: `cargo xtask test`, `calibrate`, `bench`, `mutants`, `schema`, `trace`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod calibrate;
mod changes;
mod checkers;
mod costs;
mod durations;
mod elsewhere;
mod exports;
mod fuzz;
mod guest;
mod hyperfine;
mod load;
mod mutants;
mod packages;
mod part;
mod permutation;
mod quick;
mod statistics;
mod stress;
mod test;
mod tools;
mod trace;
mod transfer;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test [WORD …]     every test, or the parts with a word in their names; --help has its options
cargo xtask calibrate [N] [steady] [bursts]
                              N comparisons (300) of a command with itself under each load: 17 minutes
cargo xtask bench [NAME …]    the goals, measured: power, startup, start, loop, judge, evidence,
                              history, page, permutation, transfer, size, build, first
cargo xtask mutants [WORD …]  orderings, fences, checks and instructions of sync and rseq made wrong, one by one:
                              who notices; all, or those with each word in their files' names and descriptions;
                              with --list, only which there are
cargo xtask schema            write the JSON schema of the claims file to claims/schema.json
cargo xtask trace             record anew the busy machine's times that `bench power` replays";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match words.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("", words.as_slice()),
    };
    let done = match command {
        "test" => test::run(rest),
        "calibrate" => calibrate::equals(rest),
        "bench" => bench::run(rest),
        "mutants" => mutants::run(rest),
        "schema" => write_schema(),
        "trace" => trace::record(),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
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

/// A test compares the committed file with what would be written.
fn write_schema() -> anyhow::Result<()> {
    let path = tools::in_root("claims/schema.json");
    let schema = ["run", "--quiet", "--package", "ascertain-experiments", "--example", "claims_schema"];
    std::fs::write(&path, tools::output_of("cargo", &schema)?)?;
    println!("wrote {path}");
    Ok(())
}
