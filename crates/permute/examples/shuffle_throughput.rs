//! Measures the time of reshuffling two samples of a given size: `shuffle_throughput [SIZE [SHUFFLES [SEED]]]`.
//!
//! The samples are the same as in the peer program of `cargo xtask bench permutation`: whole numbers from a fixed
//! recurrence, slightly larger in the second sample. Both programs can therefore compute the same p-value. Prints one
//! JSON object.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use ascertain_permute::{Question, Reshuffles, Sample};

/// Returns numbers from the upper bits of a linear congruential generator (with the constants of Knuth's MMIX).
fn numbers(count: usize, mut state: u64, shift: f64) -> Vec<f64> {
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 + shift
    };
    std::iter::repeat_with(next).take(count).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<u64> = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let argument = |index: usize, default: u64| arguments.get(index).copied().unwrap_or(default);
    let (size, shuffles, seed) = (argument(0, 10_000) as usize, argument(1, 100_000), argument(2, 1));
    // Three standard deviations of the difference between the means of two samples of this size.
    let shift = 3.0 * 2f64.powi(24) / (6.0 * size as f64).sqrt();
    let samples = vec![Sample::new("a", numbers(size, 1, 0.0)), Sample::new("b", numbers(size, 2, shift.round()))];
    let mut reshuffles = Reshuffles::new(samples, &Question::default(), seed)?;
    let start = Instant::now();
    let exceedances = (0..shuffles).filter(|_| reshuffles.draw().exceeds).count();
    let elapsed_ns = start.elapsed().as_nanos();
    let observed = reshuffles.observed().value;
    println!(
        "{{\"size\": {size}, \"shuffles\": {shuffles}, \"elapsed_ns\": {elapsed_ns}, \"exceedances\": {exceedances}, \
         \"observed\": {observed}}}"
    );
    Ok(())
}
