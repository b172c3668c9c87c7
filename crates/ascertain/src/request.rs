//! What a run was asked for, and what it came to.

use std::collections::BTreeMap;
use std::time::Duration;

use ascertain_engine::claim::Place;
#[cfg(feature = "recorded")]
use ascertain_engine::evidence::Header;
use ascertain_engine::outcome::{ClaimResult, Decision, Verdict};
use ascertain_engine::plan::{Config, Plan};
use ascertain_engine::run::Run;
use ascertain_report::exports::Purpose;
use ascertain_report::layout::TableLayout;
use ascertain_report::terminal::Shown;
use serde::{Deserialize, Serialize};

/// What a run was asked for beside its plan. `run.json` keeps it, so that a run that goes on later ends as it would
/// have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Which use case it is: the name of its subcommand, as its module's `USE_CASE` says.
    pub use_case: String,
    /// The verdicts that fail.
    #[serde(default)]
    pub fail_on: Vec<GatedVerdict>,
    /// How the table of a comparison is laid out.
    #[serde(default)]
    pub layout: TableLayout,
    /// Whether pictures are drawn below it.
    #[serde(default)]
    pub plot: bool,
    /// How much of its claims is printed.
    #[serde(default)]
    pub shown: Shown,
    /// Where each claim stands in its file.
    #[serde(default)]
    pub places: BTreeMap<String, Place>,
}

/// Which verdicts fail a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GatedVerdict {
    /// The claim is refuted.
    Refuted,
    /// The claim is undecided.
    Undecided,
}

/// What every use case that measures may be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// The chance that any verdict of the run is wrong, in (0, 1).
    pub error: f64,
    /// Start no new trial after that; `None`: what the use case has as a rule.
    pub max_time: Option<Duration>,
    /// Start no new trial after that many.
    pub max_trials: Option<u64>,
    /// Where the plan's random numbers start.
    pub seed: u64,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms { error: 0.001, max_time: None, max_trials: None, seed: 0 }
    }
}

impl Terms {
    /// A configuration by these terms, where nobody said how long it may take.
    pub(crate) fn config(&self, max_time: Duration) -> Config {
        let Terms { error, max_trials, seed, .. } = *self;
        Config { error, max_time: self.max_time.unwrap_or(max_time), max_trials, seed, ..Config::default() }
    }
}

/// What a run came to, as an exit code says it: the first of these that is so, in the order interrupted, failed, gate,
/// undecided, nothing, done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Done, and nothing gated failed.
    Done,
    /// A gate failed: a claim is refuted, or a command is slower.
    GateFailed,
    /// Undecided at the budget, where a gate needed it.
    Undecided,
    /// Nothing that this machine can run.
    Nothing,
    /// A target failed, or gave a wrong answer.
    TargetFailed,
    /// Interrupted.
    Interrupted,
}

impl Request {
    /// A use case without gates.
    #[must_use]
    pub fn new(use_case: &str) -> Request {
        let (fail_on, places) = (Vec::new(), BTreeMap::new());
        let (layout, shown) = (TableLayout::default(), Shown::default());
        Request { use_case: use_case.into(), fail_on, layout, plot: false, shown, places }
    }

    /// What a recorded run was asked for; `None` for runs of the first versions.
    #[cfg(feature = "recorded")]
    #[must_use]
    pub fn of_recorded(header: &Header) -> Option<Request> {
        serde_json::from_value(header.request.clone()).ok()
    }

    /// What exports say beside the results.
    #[must_use]
    pub fn purpose(&self, plan: &Plan) -> Purpose {
        let failing = plan.config.gate.map(|gate| gate.decision());
        Purpose {
            failing,
            places: self.places.clone(),
            tables: plan.tables.clone(),
            commands: plan.commands.clone(),
            layout: self.layout,
        }
    }

    /// What the run came to.
    #[must_use]
    pub fn ending(&self, plan: &Plan, run: &Run) -> Ending {
        let outcome = &run.outcome;
        let any = |wanted: fn(&ClaimResult) -> bool| outcome.claims.iter().any(wanted);
        let is_measured = outcome.points.iter().any(|point| point.n > 0);
        // What was asked for by name comes before the claims that came with it.
        let is_left_out = |(experiment, arm)| outcome.left_out.iter().any(|left_out| left_out.is_of(experiment, arm));
        let asked = plan.tables.iter().flat_map(|table| table.arms.iter().map(|arm| (&*table.experiment, arm)));
        let mut asked = asked.peekable();
        let is_nothing = asked.peek().is_some() && asked.all(is_left_out);
        match () {
            () if outcome.interrupted => Ending::Interrupted,
            () if run.target_failed => Ending::TargetFailed,
            () if is_nothing => Ending::Nothing,
            () if self.fails_on(GatedVerdict::Refuted) && any(|claim| claim.verdict == Verdict::Refuted) => {
                Ending::GateFailed
            }
            () if self.fails_on(GatedVerdict::Undecided)
                && any(|claim| matches!(claim.verdict, Verdict::Undecided | Verdict::Deferred)) =>
            {
                Ending::Undecided
            }
            () if !is_measured && !any(|claim| claim.verdict == Verdict::Deferred) => Ending::Nothing,
            () => gate(plan, &outcome.claims),
        }
    }

    fn fails_on(&self, what: GatedVerdict) -> bool {
        self.fail_on.contains(&what)
    }
}

/// `--fail-if slower`: failed when proven slower, done when proven not to be, undecided else.
fn gate(plan: &Plan, claims: &[ClaimResult]) -> Ending {
    let Some(gate) = plan.config.gate else { return Ending::Done };
    let mut decisions = claims.iter().map(|claim| claim.decision.unwrap_or(Decision::Undecided));
    match () {
        () if decisions.clone().any(|decision| decision == gate.decision()) => Ending::GateFailed,
        () if decisions.any(|decision| decision == Decision::Undecided) => Ending::Undecided,
        () => Ending::Done,
    }
}
