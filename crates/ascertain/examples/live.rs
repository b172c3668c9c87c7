//! Follows a comparison while it goes on: `cargo run --release --example live`.
#![allow(clippy::print_stdout)]
use ascertain::engine::{command::CommandSet, run::Observer, run::Progress};
use ascertain::report::{progress::headline, sentence};
use ascertain::{RunContext, carry_out, compare::Compare};

struct Live;
impl Observer for Live {
    fn progress(&mut self, progress: &Progress) {
        println!("{:.1} s: {}: {}", progress.elapsed.as_secs_f64(), progress.what, headline(progress));
    }
}

fn main() -> Result<(), ascertain::Error> {
    let (request, plan) = Compare::new(CommandSet::of("compare", ["sleep 0.01", "sleep 0.03"])).plan()?;
    let done = carry_out(request, plan, RunContext { evidence: None, ..RunContext::new(&mut Live) })?;
    done.run.outcome.claims.iter().for_each(|claim| println!("{}", sentence::claim(claim)));
    Ok(())
}
