//! Measures how many outcomes per second a [`Judge`] can process:
//! `cargo run --release -p ascertain-stats --example judge_throughput`.
//!
//! There are three kinds of stream:
//!
//! - independent outcomes at and near the claimed rate, where a verdict takes long or never comes;
//! - independent outcomes far from the claimed rate, with a new judge after each verdict, so that creating one counts
//!   too;
//! - the worst stream without a verdict: each outcome is a success, or a failure if a success would cause a verdict.
//!
//! It then measures the time per pair of an [`OrderJudge`], for pairs with and without a difference.
#![allow(clippy::print_stdout)]

use ascertain_stats::{Error, Judge, OrderJudge};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::hint::black_box;
use std::time::Instant;

const OUTCOMES: usize = 20_000_000;
const PAIRS: usize = 1_000_000;
const ERROR: f64 = 1e-3;
/// An error so small that a stream at or near the claimed rate gets no verdict.
const HARDLY_ANY_ERROR: f64 = 1e-100;

fn main() -> Result<(), Error> {
    for (rate, true_rate) in [(0.5, 0.5), (0.5, 0.5005), (0.99, 0.99), (0.999, 0.999)] {
        let judge = Judge::new(rate, HARDLY_ANY_ERROR)?;
        report(&format!("at least {rate}, true rate {true_rate}, one judge"), &judge, &independent(true_rate));
    }
    for (rate, true_rate) in [(0.5, 0.6), (0.5, 0.9), (0.99, 0.999), (0.99, 0.95)] {
        let judge = Judge::new(rate, ERROR)?;
        report(
            &format!("at least {rate}, true rate {true_rate}, one judge per verdict"),
            &judge,
            &independent(true_rate),
        );
    }
    for rate in [0.5, 0.9, 0.99] {
        let judge = Judge::new(rate, ERROR)?;
        report(&format!("at least {rate}, along the boundary"), &judge, &along_the_boundary(&judge));
    }
    for (name, effect, error) in [("no difference", 0.0, HARDLY_ANY_ERROR), ("5 %, one judge per verdict", 0.05, ERROR)]
    {
        report_order(name, effect, &OrderJudge::new(error, error)?);
    }
    Ok(())
}

/// Judges all outcomes, with a new judge after each verdict, and prints the throughput.
fn report(name: &str, fresh: &Judge, outcomes: &[bool]) {
    let started = Instant::now();
    let mut judge = fresh.clone();
    let mut verdicts = 0;
    for &outcome in outcomes {
        if judge.observe(outcome).is_some() {
            verdicts += 1;
            judge = fresh.clone();
        }
    }
    black_box(&judge);
    let rate = outcomes.len() as f64 / started.elapsed().as_secs_f64();
    println!("{name:<50} {:>8.1} million outcomes/s, {verdicts} verdicts", rate / 1e6);
}

/// Judges log-ratios with some noise, with a new judge after each verdict, and prints the time per pair.
fn report_order(name: &str, effect: f64, fresh: &OrderJudge) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let log_ratios: Vec<f64> = (0..PAIRS).map(|_| effect + 0.2 * (rng.random::<f64>() - 0.5)).collect();
    let started = Instant::now();
    let mut judge = fresh.clone();
    let mut verdicts = 0;
    for log_ratio in log_ratios {
        if judge.observe(log_ratio).is_some() {
            verdicts += 1;
            judge = fresh.clone();
        }
    }
    black_box(&judge);
    let us = started.elapsed().as_secs_f64() * 1e6 / PAIRS as f64;
    println!("which is faster, {name:<33} {us:>8.1} µs per pair, {verdicts} verdicts");
}

fn independent(true_rate: f64) -> Vec<bool> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    (0..OUTCOMES).map(|_| rng.random_bool(true_rate)).collect()
}

/// Returns a stream that is always one success short of *holds*.
fn along_the_boundary(fresh: &Judge) -> Vec<bool> {
    let mut judge = fresh.clone();
    let outcome = |judge: &mut Judge| {
        let success = judge.clone().observe(true).is_none();
        judge.observe(success);
        success
    };
    (0..OUTCOMES / 10).map(|_| outcome(&mut judge)).collect()
}
