//! Follows a comparison while it is running: `cargo run --release --example live`.
#![allow(clippy::print_stdout)]
use ascertain::engine::{command::CommandSet, run::Observer, run::Progress};
use ascertain::report::{progress::headline, sentence};
use ascertain::{Request, RunContext, compare::Compare, run};

struct Live;
impl Observer for Live {
    fn progress(&mut self, progress: &Progress) {
        println!("{:.1} s: {}: {}", progress.elapsed.as_secs_f64(), progress.what, headline(progress));
    }
}

fn main() -> Result<(), ascertain::Error> {
    let request = Request::Compare(Compare::new(CommandSet::new("compare", ["sleep 0.01", "sleep 0.03"])));
    let result = run(request, RunContext { evidence: None, ..RunContext::new(&mut Live) })?;
    result.outcome.claims.iter().for_each(|claim| println!("{}", sentence::claim(claim)));
    Ok(())
}
