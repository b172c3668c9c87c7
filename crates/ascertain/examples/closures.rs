//! Finds out which of two closures is faster: `cargo run --release --example closures`.
#![allow(clippy::print_stdout)]

use ascertain::bench::Pairs;
use ascertain::engine::black_box;
use ascertain::engine::function::Group;
use ascertain::engine::plan::Config;
use ascertain::engine::run::{Recording, Silent, run};
use ascertain::report::sentence;

fn main() -> Result<(), ascertain::Error> {
    let data: Vec<f64> = (0..10_000).map(f64::from).collect();
    let group = Group::new("sums")
        .function("loop", || black_box(&data).iter().sum::<f64>())
        .function("chunks", || black_box(&data).chunks(8).map(|chunk| chunk.iter().sum::<f64>()).sum::<f64>());
    let plan = ascertain::bench::plan(&group, Pairs::WithTheFirst, &Config::default());
    let run = run(&plan, &[&group], Recording::None, &Default::default(), &mut Silent)?;
    run.outcome.claims.iter().for_each(|claim| println!("{}", sentence::claim(claim)));
    Ok(())
}
