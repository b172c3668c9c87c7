//! Writes a run with simulated rows, for measurements and tests of `ascertain series`, and prints its folder.
//!
//! `cargo run --release --example simulated_run RUNS TRIALS [whole | nulls | censored]`

#![allow(clippy::print_stdout)]

#[path = "../tests/simulated/mod.rs"]
mod simulated;

use std::error::Error;
use std::path::Path;

use simulated::Kind;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (runs, trials, kind) = match *words.as_slice() {
        [runs, trials] | [runs, trials, "whole"] => (runs, trials, Kind::Whole),
        [runs, trials, "nulls"] => (runs, trials, Kind::Nulls),
        [runs, trials, "censored"] => (runs, trials, Kind::Censored),
        _ => return Err("usage: simulated_run RUNS TRIALS [whole | nulls | censored]".into()),
    };
    println!("{}", simulated::write(Path::new(runs), trials.parse()?, kind)?.display());
    Ok(())
}
