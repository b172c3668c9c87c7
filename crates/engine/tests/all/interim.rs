//! Tests of outcomes that are requested during a run.

use std::time::Duration;

use ascertain_engine::claim::{Bound, Judging};
use ascertain_engine::experiment::{Experiment, TargetError, Trial};
use ascertain_engine::observations::Observations;
use ascertain_engine::outcome::{Outcome, Verdict};
use ascertain_engine::plan::Config;
use ascertain_engine::plan::Plan;
use ascertain_engine::run::{Observer, Progress, Recording};

use crate::common::{Scripted, noisy, outcome, plan, run, take, versus};

/// An observer that requests an outcome of the run at every opportunity.
#[derive(Default)]
struct OutcomeCollector {
    outcomes: Vec<Outcome>,
}

impl Observer for OutcomeCollector {
    fn progress(&mut self, _: &Progress) {}

    fn outcome_due(&mut self, _: u64) -> bool {
        true
    }

    fn outcome(&mut self, _: &Plan, outcome: &Outcome, observations: &Observations) {
        let values = observations.arms().iter().flat_map(|arm| &arm.by_metric);
        let counts: Vec<u64> = values.map(|values| values.len() as u64).collect();
        assert_eq!(counts, outcome.points.iter().map(|point| point.n).collect::<Vec<_>>());
        self.outcomes.push(outcome.clone());
    }
}

/// Like `noisy`, but slow enough that a run reports its progress several times.
fn slowly(variant: &str, trial: &Trial) -> Result<f64, TargetError> {
    take(Duration::from_millis(2));
    noisy(variant, trial)
}

#[test]
fn they_say_what_is_known_and_leave_the_run_as_it_is() {
    let experiment = Scripted::new(&["even", "odd"], slowly);
    let claims = || {
        let mut margin = versus("margin", "even", "odd", Bound::AtLeast(1.0), Judging::Order);
        margin.asked.margin = Some(0.5);
        vec![versus("order", "even", "odd", Bound::AtLeast(1.0), Judging::Order), margin]
    };
    let config = || Config { max_trials: Some(150), ..Config::default() };
    let mut collector = OutcomeCollector::default();
    let registry: [&dyn Experiment; 1] = [&experiment];
    let watched = run(&plan(claims(), config()), &registry, Recording::None, &Default::default(), &mut collector)
        .unwrap()
        .outcome;
    let first = &collector.outcomes[0];
    assert!(collector.outcomes.len() > 1 && first.points[0].n > 0);
    assert_eq!((first.claims[0].verdict, first.interrupted), (Verdict::Undecided, false));
    assert_eq!((first.run_id.as_str(), first.seed), (watched.run_id.as_str(), watched.seed));
    let unwatched = outcome(&experiment, &plan(claims(), config()));
    assert_eq!((watched.claims, watched.points), (unwatched.claims, unwatched.points));
}
