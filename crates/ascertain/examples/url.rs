//! Does a URL answer in time, often enough: `cargo run --release --example url -- http://localhost:8080/health`.
#![allow(clippy::print_stdout)]

use ascertain::engine::command::{CommandSet, OnFailure};
use ascertain::engine::run::Silent;
use ascertain::report::sentence;
use ascertain::{RunContext, carry_out, slo::Slo};

fn main() -> Result<(), ascertain::Error> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "file:///dev/null".into());
    let command = CommandSet::of("slo", [format!("curl -fsS --max-time 5 {url}")]);
    let command = CommandSet { on_failure: OnFailure::Observe, ..command };
    let (request, plan) = Slo::new(command, 0.9, "wall <= 2 s").plan()?;
    let mut silent = Silent;
    let done = carry_out(request, plan, RunContext { evidence: None, ..RunContext::new(&mut silent) })?;
    println!("{} {:?}", sentence::claim(&done.run.outcome.claims[0]), done.ending());
    Ok(())
}
