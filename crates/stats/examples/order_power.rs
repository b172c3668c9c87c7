//! Measures how many pairs it takes on average to find out which of two commands is faster. Compares [`OrderJudge`]
//! with a [`Judge`] that uses only the sign of each log-ratio ("signs alone"), in simulated and in recorded streams.
//! Fails if a goal is missed.
//!
//! Run `cargo run --release -p ascertain-stats --example order_power`, or `cargo xtask bench power`.
#![allow(clippy::print_stdout)]

use ascertain_stats::{Judge, OrderJudge};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus as Random;
use std::f64::consts::{PI, TAU};
use std::process::ExitCode;

const RUNS: u64 = 2000;
/// Error probability of each of the two verdicts; the total is 0.001.
const ERROR: f64 = 0.0005;
/// Maximum number of pairs in a run. A run that is still undecided counts as if it had reached its verdict at this
/// number.
const MOST_PAIRS: u64 = 50_000;
/// Largest accepted number of pairs of [`OrderJudge`] in any stream, relative to the number that signs alone need.
const GOAL_ANYWHERE: f64 = 1.03;

/// A stream of log-ratios with its goal. The goal is the largest accepted number of pairs, relative to the number that
/// signs alone need.
struct Row {
    name: &'static str,
    goal: f64,
    /// A function that returns the log-ratios of one run.
    stream: fn(Random) -> Box<dyn Iterator<Item = f64>>,
}

const ROWS: [Row; 9] = [
    Row {
        name: "5 %, wins 75 %, normal noise",
        goal: GOAL_ANYWHERE,
        stream: |r| alike(r, 1.05, 1.0 / 0.674_490, normal),
    },
    Row { name: "5 %, wins 75 %, 30 % of the pairs in bursts", goal: 0.75, stream: bursts },
    Row {
        name: "1 %, wins 60 %, normal noise",
        goal: GOAL_ANYWHERE,
        stream: |r| alike(r, 1.01, 1.0 / 0.253_347, normal),
    },
    Row { name: "recorded under bursts of load, 5 %", goal: 0.6, stream: |r| replay(r, BURSTS, 1.05) },
    Row { name: "recorded under bursts of load, 1 %", goal: GOAL_ANYWHERE, stream: |r| replay(r, BURSTS, 1.01) },
    Row { name: "recorded under steady load, 5 %", goal: GOAL_ANYWHERE, stream: |r| replay(r, STEADY, 1.05) },
    Row { name: "recorded under steady load, 1 %", goal: GOAL_ANYWHERE, stream: |r| replay(r, STEADY, 1.01) },
    Row {
        name: "1 %, wins 60 %, Laplace noise",
        goal: GOAL_ANYWHERE,
        stream: |r| alike(r, 1.01, 1.0 / 0.223_144, laplace),
    },
    Row {
        name: "1 %, wins 60 %, Cauchy noise",
        goal: GOAL_ANYWHERE,
        stream: |r| alike(r, 1.01, 1.0 / 0.324_920, cauchy),
    },
];

const BURSTS: &str = include_str!("../tests/data/bursts-of-load.txt");
const STEADY: &str = include_str!("../tests/data/steady-load.txt");

fn main() -> ExitCode {
    println!(
        "{:<46}{:>12}{:>12}{:>8}{:>8}",
        "mean pairs at a total error of 0.001", "signs alone", "this", "ratio", "goal"
    );
    let means = std::thread::scope(|scope| {
        let rows = ROWS.each_ref().map(|row| scope.spawn(|| mean_pairs(row)));
        rows.map(|row| row.join().expect("no run panics"))
    });
    let mut missed = 0;
    for (Row { name, goal, .. }, (signs, both)) in ROWS.iter().zip(means) {
        let ratio = both / signs;
        println!("{name:<46}{signs:>12.1}{both:>12.1}{ratio:>8.3}{goal:>8.2}");
        missed += u32::from(ratio > *goal);
    }
    if missed == 0 {
        return ExitCode::SUCCESS;
    }
    println!("{missed} goals missed");
    ExitCode::FAILURE
}

/// Returns how many pairs a verdict needs on average, by signs alone and by [`OrderJudge`]. In each run, both methods
/// see the same stream.
fn mean_pairs(row: &Row) -> (f64, f64) {
    let (mut by_signs, mut by_both) = (0, 0);
    for run in 0..RUNS {
        let stream = || (row.stream)(Random::seed_from_u64(run));
        let mut signs = Judge::with_errors(0.5, ERROR, ERROR).expect("an error within (0, 1)");
        by_signs += until(stream(), |log_ratio| signs.observe(log_ratio > 0.0).is_some());
        let mut both = OrderJudge::new(ERROR, ERROR).expect("an error within (0, 1)");
        by_both += until(stream(), |log_ratio| both.observe(log_ratio).is_some());
    }
    (by_signs as f64 / RUNS as f64, by_both as f64 / RUNS as f64)
}

fn until(stream: impl Iterator<Item = f64>, mut decides: impl FnMut(f64) -> bool) -> u64 {
    (1..MOST_PAIRS).zip(stream).find(|(_, log_ratio)| decides(*log_ratio)).map_or(MOST_PAIRS, |(pair, _)| pair)
}

/// Returns pairs with the same `ratio` and independent noise. The noise is `width` times as large as the effect.
fn alike(mut random: Random, ratio: f64, width: f64, noise: fn(&mut Random) -> f64) -> Box<dyn Iterator<Item = f64>> {
    Box::new(std::iter::repeat_with(move || ratio.ln() * (1.0 + width * noise(&mut random))))
}

/// Returns pairs with normal noise that comes in bursts. A burst lasts ten pairs on average. Its noise is 20 times as
/// wide as the other noise, and wide enough to double a time.
fn bursts(mut random: Random) -> Box<dyn Iterator<Item = f64>> {
    let mut is_burst = false;
    Box::new(std::iter::repeat_with(move || {
        is_burst = random.random_bool(if is_burst { 0.9 } else { 0.1 * 0.3 / 0.7 });
        let width = if is_burst { 20.0 } else { 1.0 } / 1.029_369;
        1.05_f64.ln() * (1.0 + width * normal(&mut random))
    }))
}

/// Returns the log-ratios of recorded pairs in which both times are of the same program. The pairs are in the recorded
/// order, starting from a random pair. A coin decides which time of each pair is that of the reference, and this time
/// is made longer by `ratio`.
fn replay(mut random: Random, recorded: &'static str, ratio: f64) -> Box<dyn Iterator<Item = f64>> {
    let pairs: Vec<f64> = recorded.lines().filter(|line| !line.starts_with('#')).map(log_ratio).collect();
    let start = random.random_range(0..pairs.len());
    let pairs = (start..).map(move |i| pairs[i % pairs.len()]);
    Box::new(pairs.map(move |d| ratio.ln() + if random.random() { d } else { -d }))
}

fn log_ratio(line: &str) -> f64 {
    let (one, other) = line.split_once(' ').expect("two times a line");
    let ns = |text: &str| text.parse::<f64>().expect("a time in ns");
    (ns(one) / ns(other)).ln()
}

/// Returns a random number within (0, 1).
fn uniform(random: &mut Random) -> f64 {
    1.0 - random.random::<f64>()
}

fn normal(random: &mut Random) -> f64 {
    (-2.0 * uniform(random).ln()).sqrt() * (TAU * uniform(random)).cos()
}

fn laplace(random: &mut Random) -> f64 {
    -uniform(random).ln() * if random.random() { 1.0 } else { -1.0 }
}

fn cauchy(random: &mut Random) -> f64 {
    (PI * (uniform(random) - 0.5)).tan()
}
