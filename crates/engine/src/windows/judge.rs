//! The judge of a long measurement, and the metric that its windows are about.

use super::{Ended, WindowPlan, WindowSummary};
use crate::claim::{Claim, Test};
use crate::command::CommandSet;
use crate::error::Error;
use crate::experiment::{Arm, Metric, Spec};
use crate::finding::{EndedBy, Reason, Threat};
use crate::judging::ClaimJudge;
use crate::outcome::{ClaimResult, PointSummary};
use crate::plan::{Config, Plan, share_error};

/// Returns the judge of the plan's claim. Without a claim, its tests still tell which observations are successes.
pub(super) fn judge_of(plan: &Plan, windows: &WindowPlan, spec: &Spec) -> Result<ClaimJudge, Error> {
    let unjudged = || Claim::in_half(&spec.id, spec.id.clone(), String::new(), windows.success.clone());
    let claim = plan.claims.first().cloned().unwrap_or_else(unjudged);
    let error =
        share_error(std::slice::from_ref(&claim), plan.config.error)?.first().copied().unwrap_or(plan.config.error);
    let config = Config { error, until_time_is_up: true, max_trials: None, exact_trials: None, ..plan.config.clone() };
    let mut judge = ClaimJudge::new(&claim, spec, &config, None)?;
    judge.bind(spec, |_| 0);
    Ok(judge)
}

/// Completes the reason "too early" of a claim: the end of the run, and the time that a verdict needs at the pace of all
/// observations. `total` has the counts of the run.
pub(super) fn explain_too_early(claim: &mut ClaimResult, ended: &Ended, total: &WindowSummary) {
    for reason in &mut claim.reasons {
        if let Reason::TooEarly { least, is_interrupted, ended_by, .. } = reason {
            *is_interrupted |= matches!(ended, Ended::Interrupted | Ended::Open);
            *ended_by = match ended {
                Ended::Command(_) | Ended::Error(_) => EndedBy::Early,
                Ended::Time | Ended::Interrupted | Ended::Open => EndedBy::Duration,
            };
            let pace_ns = (total.observations > 0).then(|| total.end_ns as f64 / total.observations as f64);
            least.takes_ns = pace_ns.map(|pace_ns| pace_ns * least.trials as f64);
        }
    }
}

/// Returns the index of the metric whose quantiles are reported: the one in the condition of a success, or else the
/// first.
pub(super) fn primary_metric(success: &Test, spec: &Spec) -> usize {
    let Test::Predicate { conditions, .. } = success else { return 0 };
    let compared = conditions.iter().map(|condition| &condition.measure.metric).filter(|metric| *metric != "exit");
    compared.filter_map(|metric| spec.metric(metric)).next().unwrap_or(0)
}

/// Returns the time limit of an execution as a value of the metric; `None` if the metric is not the duration.
pub(super) fn limit_of(set: &CommandSet, metric: &Metric) -> Option<f64> {
    let limit = set.time_limit.filter(|_| set.lines.is_none() && metric.name == "wall");
    limit.map(|limit| limit.as_nanos() as f64)
}

/// Returns a threat if observations were stopped at their time limit.
pub(super) fn stopped_threat(point: &PointSummary, set: &CommandSet, arm: &Arm) -> Option<Threat> {
    let limit_ns = set.time_limit?.as_nanos() as f64;
    let (trials, all) = (point.censored as usize, point.n as usize);
    (trials > 0).then(|| Threat::Stopped { arm: arm.clone(), limit_ns, trials, all })
}
