//! Ascertain's own chores: `cargo xtask test`, `calibrate`, `bench`, `mutants`, `lines`, `gits`, `pythons`,
//! `machines`, `schema`, `outputs`, `trace`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod book;
mod calibrate;
mod changes;
mod checkers;
mod costs;
mod debian;
mod durations;
mod elsewhere;
mod exports;
mod fuzz;
mod git_tests;
mod gits;
mod guest;
mod hyperfine;
mod lines;
mod load;
mod machines;
mod mutants;
mod otava;
mod packages;
mod part;
mod permutation;
mod prose;
mod pythons;
mod quick;
mod rtlola;
mod statistics;
mod stress;
mod test;
mod tools;
mod trace;
mod transfer;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test [WORD …]     run every test, or the parts with one of the words in their names; --help lists options
cargo xtask calibrate [N] [steady] [bursts]
                              compare a command with itself N times under each load; the default, 300, takes
                              17 minutes
cargo xtask bench [NAME …]    measure the goals: power, startup, start, loop, judge, streams, evidence, history,
                              changes, page, permutation, transfer, size, build, first; `transfer` accepts --rows put-1GB,get-1GB,
                              --clients s5cmd,rclone, --rounds N and --tiny
cargo xtask mutants [WORD …]  make orderings, fences, checks and instructions of sync and rseq wrong, one at a time,
                              and print which test notices; only those with all words in their files' names and
                              descriptions; with --list, only print the mutants
cargo xtask lines [--since COMMIT]
                              count the source lines of each crate, and compare them with those at a commit
cargo xtask gits              fetch git 2.30, 2.39 and 2.55 from Debian's archive (20 MB) into
                              ~/.cache/ascertain-xtask/gits/, and print their paths; nothing is installed
cargo xtask pythons           build Python 3.11 with gcc, with gcc -O1 and with clang from Debian's source, in
                              ~/.cache/ascertain-xtask/pythons/ (3 minutes each on 2 cores), and print their paths
cargo xtask machines [NAME [check|goals]]
                              judge the shipped claims and the goals on this machine (10 minutes each), write the
                              verdicts to docs/machines/NAME.json, and write the page with all machines; without a
                              name, only the page
cargo xtask schema            write the JSON schema of the claims file to claims/schema.json
cargo xtask outputs [NAME …]  run the commands in README and in the book whose output is shown there, and write the
                              output below each command
cargo xtask trace             on a busy machine, record the times again that `bench power` replays";

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
        "lines" => lines::run(rest),
        "gits" => gits::run(rest),
        "pythons" => pythons::run(rest),
        "machines" => machines::run(rest),
        "schema" => write_schema(),
        "outputs" => book::write_outputs(rest),
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

/// Writes the JSON schema of the claims file. A test checks that the committed file is up to date.
fn write_schema() -> anyhow::Result<()> {
    let path = tools::in_root("claims/schema.json");
    let schema = ["run", "--quiet", "--package", "ascertain-experiments", "--example", "claims_schema"];
    std::fs::write(&path, tools::output_of("cargo", &schema)?)?;
    println!("wrote {path}");
    Ok(())
}
