//! Tests whether a URL answers at least 90 % of requests within two seconds: `cargo run --release --example url --
//! http://localhost:8080/health`.
#![allow(clippy::print_stdout)]

use ascertain::engine::command::{CommandSet, OnFailure};
use ascertain::engine::run::Silent;
use ascertain::report::sentence;
use ascertain::{Request, RunContext, run, slo::Slo};

fn main() -> Result<(), ascertain::Error> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "file:///dev/null".into());
    let command = CommandSet::new("slo", [format!("curl -fsS --max-time 5 {url}")]);
    let command = CommandSet { on_failure: OnFailure::Observe, ..command };
    let request = Request::Slo(Slo::new(command, 0.9, "wall <= 2 s"));
    let mut silent = Silent;
    let result = run(request, RunContext { evidence: None, ..RunContext::new(&mut silent) })?;
    println!("{} {:?}", sentence::claim(&result.outcome.claims[0]), result.ending());
    Ok(())
}
