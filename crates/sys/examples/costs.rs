//! Measures how much wall time an option for running a command costs. Runs the command in pairs, once with and once
//! without the option, in random order.
//!
//! ```sh
//! cargo run --release -p ascertain-sys --example costs -- counting 4000 true
//! cargo run --release -p ascertain-sys --example costs -- sink 300 head -c 1000000000 /dev/zero
//! ```
//!
//! `counting` compares a command whose events are counted with one whose events are not. `sink` compares a command
//! whose output goes to the neutral sink with one whose output goes to `/dev/null`.

#![allow(clippy::print_stdout)]

use ascertain_sys::clock;
use ascertain_sys::process::{Command, Output, Prepared};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let asked = args.next().unwrap_or_else(|| "counting".into());
    let pairs: u64 = args.next().map_or(Ok(1000), |pairs| pairs.parse())?;
    let program = args.next().unwrap_or_else(|| "true".into());
    let args: Vec<String> = args.collect();
    let plain = Command::new(&program, &args.iter().map(String::as_str).collect::<Vec<_>>());
    let wall_us = |is_with: bool| {
        let prepared = match (asked.as_str(), is_with) {
            ("counting", true) => Prepared::new(&plain)?.counting(),
            ("counting", false) => Prepared::new(&plain)?,
            ("sink", _) => {
                let output = if is_with { Output::Discard } else { Output::Null };
                Prepared::new(&Command { stdout: output.clone(), stderr: output, ..plain.clone() })?
            }
            _ => return Err(format!("unknown cost `{asked}`: expected counting or sink").into()),
        };
        let usage = prepared.run(None)?;
        Ok::<_, Box<dyn std::error::Error>>(usage.wall_ns as f64 / 1e3)
    };
    let (mut without, mut with, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut state = clock::unix_ns() | 1;
    for _ in 0..pairs {
        // A xorshift generator is random enough to choose the order.
        for shift in [13_i32, -7, 17] {
            state ^= if shift > 0 { state << shift } else { state >> -shift };
        }
        let is_with_first = state & (1 << 32) != 0;
        let (first, second) = (wall_us(is_with_first)?, wall_us(!is_with_first)?);
        let (one, other) = if is_with_first { (first, second) } else { (second, first) };
        with.push(one);
        without.push(other);
        ratios.push(one / other);
    }
    let slower = ratios.iter().filter(|ratio| **ratio > 1.0).count();
    for (name, values) in
        [("without the option, µs", &mut without), ("with the option, µs", &mut with), ("ratio", &mut ratios)]
    {
        values.sort_unstable_by(f64::total_cmp);
        let [low, median, high] = [0.25, 0.5, 0.75].map(|share| values[(share * (values.len() - 1) as f64) as usize]);
        println!("{name}: median {median:.4}, quartiles {low:.4} to {high:.4}");
    }
    println!("the command with the option took longer in {slower} of {pairs} pairs");
    Ok(())
}
