//! Runs a loop as many times as its argument says: a program with a known amount of work.
#![allow(clippy::print_stderr)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(iterations) = std::env::args().nth(1).and_then(|text| text.parse::<u64>().ok()) else {
        eprintln!("usage: spin ITERATIONS");
        return ExitCode::from(2);
    };
    let mut state = 1_u64;
    for _ in 0..iterations {
        // A multiplication and an addition that depend on the previous iteration, so that each iteration takes a fixed
        // number of cycles.
        state = std::hint::black_box(state).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
    ExitCode::from(u8::from(std::hint::black_box(state) == 0))
}
