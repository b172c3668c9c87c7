//! Throughput of every variant of the sum with every number of accumulators, in gigabytes a
//! second: a look at this machine. The experiment `sum` is what judges claims.
//!
//! `cargo run --release -p ascertain-numeric --example sum_throughput [ELEMENTS]`

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use ascertain_numeric::sum::{Element, sum};

/// As many as in Bjornson's article: they fit in most L2 caches as `f32`.
const ELEMENTS: usize = 187_500;

/// The batches whose best time counts, and how long one lasts at least.
const BATCHES: u32 = 12;
const BATCH: Duration = Duration::from_micros(1_500);

fn main() {
    let elements =
        std::env::args().nth(1).map_or(ELEMENTS, |argument| argument.parse().expect("ELEMENTS is a whole number"));
    // Numbers in [0, 1) without a pattern, the same in each run.
    let mut state = 1_u64;
    let numbers: Vec<f64> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    })
    .take(elements)
    .collect();
    table("f32", &numbers.iter().map(|&x| x as f32).collect::<Vec<f32>>());
    table("f64", &numbers);
}

fn table<T: Element>(name: &str, xs: &[T]) {
    println!("{name} × {}, GB/s\n{:20}{:>8}{:>8}{:>8}{:>8}", xs.len(), "accumulators", 1, 2, 4, 8);
    for variant in T::VARIANTS {
        print!("{:20}", variant.name);
        if let Err(missing) = variant.is_available() {
            println!(" unavailable: needs {missing}");
            continue;
        }
        for &accumulators in variant.accumulators {
            let function = variant.function(accumulators).expect("it is available");
            print!("{:8.2}", gigabytes_per_s(function, xs));
        }
        println!();
    }
    println!("{:20}{:8.2}\n", "sum()", gigabytes_per_s(sum::<T>, xs));
}

fn gigabytes_per_s<T>(function: fn(&[T]) -> f64, xs: &[T]) -> f64 {
    let time = |calls: u32| {
        let start = Instant::now();
        for _ in 0..calls {
            black_box(function(black_box(xs)));
        }
        start.elapsed()
    };
    let mut calls = 1;
    while time(calls) < BATCH {
        calls *= 2;
    }
    let best = (0..BATCHES).map(|_| time(calls)).min().expect("there are batches");
    size_of_val(xs) as f64 * f64::from(calls) / best.as_nanos() as f64
}
