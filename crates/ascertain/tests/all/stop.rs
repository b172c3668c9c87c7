//! Tests runs that another thread stops: they end properly, and can be continued.

use std::time::Duration;

use ascertain::engine::command::CommandSet;
use ascertain::engine::outcome::Verdict;
use ascertain::engine::plan::UseCase;
use ascertain::engine::run::{Observer, Progress, Silent};
use ascertain::{Continuation, Ending, Request, RunContext, compare::Compare, continue_run, run};
use ascertain_sys::interrupt::Stop;
use ascertain_sys::testing::wait_until;

/// An observer that requests a stop as soon as the run starts.
struct Impatient(Stop);

impl Observer for Impatient {
    fn progress(&mut self, _: &Progress) {
        self.0.request();
    }
}

#[test]
fn a_run_that_was_asked_to_end_is_continued() {
    let runs = tempfile::tempdir().unwrap();
    let commands = CommandSet::new("compare", ["true", "sh -c 'env; env; env; env'"]);
    let compare = Compare { metric: "page_faults".into(), ..Compare::new(commands) };
    let stop = Stop::new().unwrap();
    let mut impatient = Impatient(stop.clone());
    let evidence = Some(runs.path().to_path_buf());
    let context = RunContext { evidence, stop, ..RunContext::new(&mut impatient) };
    let plan = compare.clone().plan().unwrap();
    let result = run(Request::Compare(compare), context).unwrap();
    assert_eq!(result.ending(), Ending::Interrupted);
    assert_eq!(result.outcome.claims[0].verdict, Verdict::Undecided);
    let folder = result.folder.unwrap();
    // The run's folder contains the plan.
    let header = ascertain::engine::evidence::read_header(&folder).unwrap();
    assert_eq!((header.plan.use_case, &header.plan), (UseCase::Compare, &plan));
    let mut silent = Silent;
    let max_time = Some(Duration::from_secs(600));
    let continuation =
        Continuation { folder, max_time, max_trials: None, precision: None, fail_on: None, env: Vec::new() };
    let result = continue_run(continuation, RunContext::new(&mut silent)).unwrap();
    assert_eq!(result.ending(), Ending::Done);
    assert_eq!(result.outcome.claims[0].verdict, Verdict::Refuted, "it has more page faults");
}

/// A stop also ends a hanging command, for which the run is waiting.
#[test]
fn a_command_that_is_waited_for_is_stopped() {
    let state = tempfile::tempdir().unwrap();
    let begun = state.path().join("begun");
    let hangs = format!("sh -c 'touch {}; exec sleep 1000'", begun.display());
    let request = Request::Compare(Compare::new(CommandSet::new("compare", [hangs])));
    let stop = Stop::new().unwrap();
    let theirs = stop.clone();
    let asking = std::thread::spawn(move || {
        wait_until("the command runs", || begun.exists());
        theirs.request();
    });
    let mut silent = Silent;
    let context = RunContext { evidence: None, stop, ..RunContext::new(&mut silent) };
    let result = run(request, context).unwrap();
    asking.join().unwrap();
    assert_eq!(result.ending(), Ending::Interrupted);
}
