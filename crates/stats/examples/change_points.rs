//! Finds the change points of each series on standard input: `cargo run -p ascertain-stats --example change_points`
//!
//! A line is a series of numbers, separated by spaces. Prints `FIRST:FOUND` for each change, a line for each series.
#![allow(clippy::print_stdout)]

use ascertain_stats::change_points;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in std::io::stdin().lines() {
        let values = line?.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
        let changes = change_points(&values).into_iter().map(|change| format!("{}:{}", change.first, change.found));
        println!("{}", changes.collect::<Vec<_>>().join(" "));
    }
    Ok(())
}
