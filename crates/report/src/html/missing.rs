//! Runs of which rows are gone.

use std::collections::BTreeSet;

use ascertain_engine::outcome::ClaimResult;
use ascertain_engine::recorded::{ClaimPath, RecordedRun};

use super::basis::grouped;

/// What to say first of a run whose verdicts speak of more trials than its evidence has, since rows were lost or taken
/// away after it had ended. `None` where all are there.
///
/// Its verdicts are those that the run itself wrote; its pictures show what is left.
pub fn missing_trials(run: &RecordedRun) -> Option<String> {
    let judged: Vec<(&ClaimResult, &ClaimPath)> =
        run.outcome.claims.iter().zip(&run.paths).filter(|(claim, path)| of_claim(claim, path).is_some()).collect();
    let what = match judged.as_slice() {
        [] => format!("the tables count more trials of {} than there are", quote(&incomplete_arm(run)?)),
        [(claim, path), rest @ ..] => {
            let more = match rest.len() {
                0 => String::new(),
                1 => ", and 1 more verdict lacks some of its own".to_string(),
                more => format!(", and {more} more verdicts lack some of theirs"),
            };
            format!(
                "of the {} trials that the verdict on {} speaks of, {} are there{more}",
                grouped(claim.trials),
                quote(&claim.id),
                grouped(path.trials.len() as u64)
            )
        }
    };
    Some(format!(
        "The evidence of this run is not whole: {what}. Verdicts and tables are as the run wrote them when it ended and \
         can't be checked against its rows; pictures show what is left."
    ))
}

/// The same of one claim.
pub(super) fn of_claim(claim: &ClaimResult, path: &ClaimPath) -> Option<String> {
    let (recorded, judged) = (path.trials.len() as u64, claim.trials);
    (recorded < judged).then(|| {
        let (recorded, judged) = (grouped(recorded), grouped(judged));
        format!(
            "Of the {judged} trials that this verdict speaks of, {recorded} are in the evidence: it can’t be checked."
        )
    })
}

fn quote(name: &str) -> String {
    crate::text::plain(&crate::text::quoted(name))
}

/// An arm of which the summary counts more trials than were recorded.
fn incomplete_arm(run: &RecordedRun) -> Option<String> {
    let short = run.outcome.points.iter().find(|point| {
        let of_point = run.series.iter().filter(|series| {
            series.experiment == point.experiment
                && series.metric == point.metric
                && series.arm.variant == point.variant
                && series.arm.point == point.at
        });
        let trials: BTreeSet<u64> = of_point.flat_map(|series| series.trials.iter().copied()).collect();
        (trials.len() as u64) < point.n
    });
    short.map(|point| format!("{} {}", point.experiment, point.variant))
}
