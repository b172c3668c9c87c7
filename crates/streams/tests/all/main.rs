//! Tests of the crate from outside: the calculus, the operators, and the messages.

mod buffers;
mod calculus;
mod examples;
mod messages;
mod operators;
mod parser;
mod ranges;
mod reference;
mod tables;

use ascertain_streams::{Engine, Evidence, OneClock, Plan, PlanOptions, Recorded, Unit};

/// Returns the catalogue of the tests.
fn catalogue() -> OneClock {
    let series =
        [("time", Unit::TIME), ("memory", Unit::BYTES), ("x", Unit::ONE), ("y", Unit::ONE), ("gappy", Unit::ONE)];
    OneClock::new(&series).with_gaps("gappy", "`gappy` has no value in 3 of 9 trials")
}

/// The duration of commands, which the examples of the documents use.
fn commands() -> OneClock {
    OneClock::new(&[("wall", Unit::TIME)])
}

/// Runs a plan over evidence. Returns the lower and the upper bounds of the results.
fn run<E: Evidence>(plan: &Plan, evidence: &mut E) -> (Vec<f64>, Vec<f64>)
where
    E::Error: std::fmt::Debug,
{
    let (mut lows, mut highs) = (Vec::new(), Vec::new());
    let mut engine = Engine::new(plan).unwrap();
    let ran = engine.run(evidence, |results| {
        lows.extend_from_slice(results.lows);
        highs.extend_from_slice(results.highs);
        true
    });
    ran.unwrap();
    (lows, highs)
}

/// Runs an expression over all series of the catalogue, which have the same values.
fn run_on(text: &str, values: &[f64], block: usize) -> Vec<f64> {
    let plan = Plan::with(text, &catalogue(), PlanOptions { block, has_ranges: false, is_endless: false });
    let plan = plan.unwrap_or_else(|error| panic!("{text}: {error}"));
    run(&plan, &mut Recorded::new(&[values; 5])).0
}
