//! Measures how many observations per second each kind of plan processes on one core, and prints a table.
//!
//! `cargo run --release --example stream_throughput`, or `cargo xtask bench streams`.

#![allow(clippy::print_stdout)]

use std::time::Instant;

use ascertain_streams::{Engine, OneClock, Plan, Recorded, Unit};

/// Observations in memory; they are read several times.
const OBSERVATIONS: usize = 1 << 18;
/// Times that the observations are read in a round.
const PASSES: usize = 16;
/// Rounds, of which the fastest counts.
const ROUNDS: usize = 5;

/// The plans: each with the goal in million observations per second.
const PLANS: &[(&str, f64)] = &[
    ("time / lag(time, 1)", 50.0),
    ("ewma(time, .01) / lag(ewma(time, .01), 1000)", 50.0),
    ("time - repeat(every(time, 2), 2)", 50.0),
    ("repeat(every(time, 6), 4) - repeat(every(time, 3), 2)", 50.0),
    ("every(time, 2) / buffer(time, 1000000)", 50.0),
    ("time / hold(every(time, 10))", 50.0),
    ("time / hold(mean(window(time, 1000)))", 50.0),
    ("mean(window(time, 1000))", 50.0),
    ("mean(window(time, 1000, 1))", 50.0),
    ("time - mean(window(time, 1000, 1))", 50.0),
    ("max(window(time, 1000, 10))", 50.0),
    ("mean(time)", 50.0),
    ("where(memory, time > 50 us) / 1 MB", 50.0),
    ("sum(window(memory, 100 ms, step 10 ms))", 50.0),
    ("memory / time", 50.0),
    ("quantile(.99, window(time, 1000))", 125.0),
    ("quantile(.99, window(time, 16384))", 125.0),
    ("quantile(.99, window(time, 100000))", 179.0),
    ("quantile(.99, window(time, 100000, 1))", 46.0),
    ("quantile(.99, window(time, 1000, 1))", 46.0),
    ("quantile(.99, time)", 46.0),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Log-normal-like times around 50 µs, from a linear congruential generator.
    let mut state = 1_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let times: Vec<f64> = (0..OBSERVATIONS)
        .map(|_| {
            let normal: f64 = (0..6).map(|_| uniform()).sum::<f64>() - 3.0;
            50e3 * (normal * 0.5).exp()
        })
        .collect();
    let sizes: Vec<f64> = times.iter().map(|time| time * 20.0).collect();
    let catalogue = OneClock::new(&[("time", Unit::TIME), ("memory", Unit::BYTES)]);
    println!("million observations per second, and the goal; the fastest of {ROUNDS} rounds");
    for (text, goal) in PLANS {
        let plan = Plan::new(text, &catalogue)?;
        let mut best = 0.0_f64;
        for _ in 0..ROUNDS {
            let mut results = 0.0;
            let start = Instant::now();
            for _ in 0..PASSES {
                let mut engine = Engine::new(&plan)?;
                let mut evidence = Recorded::new(&[&times, &sizes]);
                engine.run(&mut evidence, |some| {
                    results += some.lows.last().copied().unwrap_or(0.0);
                    true
                })?;
            }
            let seconds = start.elapsed().as_secs_f64();
            std::hint::black_box(results);
            best = best.max((OBSERVATIONS * PASSES) as f64 / seconds / 1e6);
        }
        println!("{best:7.1}  {goal:5.0}  {text}");
    }
    Ok(())
}
