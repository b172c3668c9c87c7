//! What counting costs the wall time that is judged: a command with and without, in pairs of random order.
//!
//! `cargo run --release -p ascertain-sys --example counting_cost -- 4000 true`

#![allow(clippy::print_stdout)]

use ascertain_sys::clock;
use ascertain_sys::process::{Command, Prepared};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let pairs: u64 = args.next().map_or(Ok(1000), |pairs| pairs.parse())?;
    let program = args.next().unwrap_or_else(|| "true".into());
    let args: Vec<String> = args.collect();
    let command = Command::new(&program, &args.iter().map(String::as_str).collect::<Vec<_>>());
    let wall_us = |is_counted: bool| {
        let prepared = Prepared::new(&command)?;
        let prepared = if is_counted { prepared.counting() } else { prepared };
        prepared.run(None).map(|usage| usage.wall_ns as f64 / 1e3)
    };
    let (mut plain, mut counted, mut apart) = (Vec::new(), Vec::new(), Vec::new());
    let mut state = clock::unix_ns() | 1;
    for _ in 0..pairs {
        // A xorshift is random enough to draw an order by.
        for shift in [13_i32, -7, 17] {
            state ^= if shift > 0 { state << shift } else { state >> -shift };
        }
        let first = wall_us(state & (1 << 32) != 0)?;
        let second = wall_us(state & (1 << 32) == 0)?;
        let (with, without) = if state & (1 << 32) != 0 { (first, second) } else { (second, first) };
        plain.push(without);
        counted.push(with);
        apart.push(with - without);
    }
    let slower = apart.iter().filter(|apart| **apart > 0.0).count();
    for (name, values) in [("without, µs", &mut plain), ("with, µs", &mut counted), ("difference, µs", &mut apart)] {
        values.sort_unstable_by(f64::total_cmp);
        let [low, median, high] = [0.25, 0.5, 0.75].map(|share| values[(share * (values.len() - 1) as f64) as usize]);
        println!("{name}: median {median:.1}, quartiles {low:.1} to {high:.1}");
    }
    println!("with it took longer in {slower} of {pairs} pairs");
    Ok(())
}
