//! A run ends in order when another thread asks, and goes on from there.

use std::time::Duration;

use ascertain::engine::command::CommandSet;
use ascertain::engine::outcome::Verdict;
use ascertain::engine::run::{Observer, Progress, Silent};
use ascertain::{Continue, Ending, Request, RunContext, carry_out, compare::Compare};
use ascertain_sys::interrupt::Stop;
use ascertain_sys::testing::wait_until;

/// Asks as soon as it hears of the run.
struct Impatient(Stop);

impl Observer for Impatient {
    fn progress(&mut self, _: &Progress) {
        self.0.ask();
    }
}

#[test]
fn a_run_that_was_asked_to_end_is_continued() {
    let runs = tempfile::tempdir().unwrap();
    let commands = CommandSet::of("compare", ["true", "sh -c 'env; env; env; env'"]);
    let compare = Compare { metric: "page_faults".into(), ..Compare::new(commands) };
    let (request, plan) = compare.plan().unwrap();
    let stop = Stop::new().unwrap();
    let mut impatient = Impatient(stop.clone());
    let evidence = Some(runs.path().to_path_buf());
    let context = RunContext { evidence, stop, ..RunContext::new(&mut impatient) };
    let done = carry_out(request.clone(), plan, context).unwrap();
    assert_eq!(done.ending(), Ending::Interrupted);
    assert_eq!(done.run.outcome.claims[0].verdict, Verdict::Undecided);
    let folder = done.run.folder.unwrap();
    // What was asked for is in the run's folder.
    let header = ascertain::engine::evidence::read_header(&folder).unwrap();
    let recorded = Request::of_recorded(&header).unwrap();
    assert_eq!((recorded.use_case.as_str(), &recorded), ("compare", &request));
    // So is what a program asked for that knows more use cases.
    let mut newer = header.clone();
    newer.request["use_case"] = "of-next-year".into();
    assert_eq!(Request::of_recorded(&newer).unwrap().use_case, "of-next-year");
    let mut silent = Silent;
    let max_time = Some(Duration::from_secs(600));
    let going_on = Continue { folder, max_time, max_trials: None, fail_on: None, gate: None, env: Vec::new() };
    let done = going_on.carry_out(recorded, RunContext::new(&mut silent)).unwrap();
    assert_eq!(done.ending(), Ending::Done);
    assert_eq!(done.run.outcome.claims[0].verdict, Verdict::Refuted, "it has more page faults");
}

/// A command that hangs is ended too.
#[test]
fn a_command_that_is_waited_for_is_stopped() {
    let state = tempfile::tempdir().unwrap();
    let begun = state.path().join("begun");
    let hangs = format!("sh -c 'touch {}; exec sleep 1000'", begun.display());
    let (request, plan) = Compare::new(CommandSet::of("compare", [hangs])).plan().unwrap();
    let stop = Stop::new().unwrap();
    let theirs = stop.clone();
    let asking = std::thread::spawn(move || {
        wait_until("the command runs", || begun.exists());
        theirs.ask();
    });
    let mut silent = Silent;
    let context = RunContext { evidence: None, stop, ..RunContext::new(&mut silent) };
    let done = carry_out(request, plan, context).unwrap();
    asking.join().unwrap();
    assert_eq!(done.ending(), Ending::Interrupted);
}
