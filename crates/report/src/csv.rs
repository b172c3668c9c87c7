//! CSV as RFC 4180 has it, with `\n` at the end of each line: one heading line, quotes where a field
//! needs them. A number is written so that it reads back as the same double, an infinite one as `inf`;
//! what is not known is empty. Names stand as they are: this is for programs.

use ascertain_engine::experiment::Point;
use ascertain_engine::outcome::{ClaimResult, Outcome, PointSummary};

use crate::finding;
use crate::judgement::Judgement;

/// The run's points: each metric of each arm, and of those that are told by key each key.
pub fn outcome(outcome: &Outcome) -> String {
    let mut text = String::from(
        "experiment,variant,at,metric,unit,n,median,median_low,median_high,p90,p99,mean,std,min,max,censored,limit,\
         key\n",
    );
    for point in outcome.points.iter().chain(&outcome.by_key) {
        let PointSummary { experiment, variant, at, metric, unit, n, censored, limit, key, .. } = point;
        let PointSummary { median, median_low: low, median_high: high, p90, p99, mean, std, min, max, .. } = point;
        let arm: [&dyn Field; 6] = [experiment, variant, at, metric, &unit.symbol(), n];
        text +=
            &record(&[&arm[..], &[median, low, high, p90, p99, mean, std, min, max, censored, limit, key]].concat());
    }
    text
}

/// The run's claims and their verdicts.
pub fn claims(outcome: &Outcome) -> String {
    let mut text = String::from(
        "id,says,source,source_value,experiment,verdict,reason,decision,trials,successes,ties,rate,rate_low,rate_high,\
         rate_claimed,error,ratio,ratio_low,ratio_high,log_e_holds,log_e_refuted,unlike\n",
    );
    for claim in &outcome.claims {
        let ClaimResult { id, says, source, source_value, experiment, trials, successes, ties, .. } = claim;
        let ClaimResult { rate, rate_low, rate_high, rate_claimed, error, ratio, ratio_low, ratio_high, .. } = claim;
        let reason = finding::reasons(claim).unwrap_or_default();
        let decision = claim.decision.map_or("", |decision| decision.word());
        let asked: [&dyn Field; 5] = [id, says, source, source_value, experiment];
        let came: [&dyn Field; 6] = [&claim.verdict.word(), &reason, &decision, trials, successes, ties];
        let rates: [&dyn Field; 5] = [rate, rate_low, rate_high, rate_claimed, error];
        let ratios: [&dyn Field; 5] = [ratio, ratio_low, ratio_high, &claim.log_e_holds, &claim.log_e_refuted];
        let unlike = claim.unlike.iter().map(finding::unlike).collect::<Vec<_>>().join("; ");
        text += &record(&[&asked[..], &came, &rates, &ratios, &[&unlike]].concat());
    }
    text
}

/// What `ascertain judge --format csv` prints.
pub fn judgement(judgement: &Judgement) -> String {
    let Judgement { verdict, trials, successes, method, rate_claimed, error, log_level, .. } = judgement;
    let Judgement { log_e_holds, log_e_refuted, rate, rate_low, rate_high, .. } = judgement;
    let asked: [&dyn Field; 6] = [&verdict.word(), trials, successes, method, rate_claimed, error];
    let came: [&dyn Field; 6] = [log_level, log_e_holds, log_e_refuted, rate, rate_low, rate_high];
    format!(
        "verdict,trials,successes,method,rate_claimed,error,log_level,log_e_holds,log_e_refuted,rate,rate_low,\
         rate_high,credible_low,credible_high\n{}",
        record(&[&asked[..], &came, &[&judgement.credible_low, &judgement.credible_high]].concat())
    )
}

/// What may stand in a line.
pub(crate) trait Field {
    fn written(&self) -> String;
}

/// A line of fields, each quoted where it needs to be.
pub(crate) fn record(fields: &[&dyn Field]) -> String {
    let quoted = |field: &&dyn Field| match field.written() {
        text if text.contains(['"', ',', '\n', '\r']) => format!("\"{}\"", text.replace('"', "\"\"")),
        text => text,
    };
    fields.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n"
}

macro_rules! as_it_is {
    ($($field:ty),*) => {
        $(impl Field for $field {
            fn written(&self) -> String {
                self.to_string()
            }
        })*
    };
}

as_it_is!(&str, String, Point, u64, usize);

impl Field for f64 {
    fn written(&self) -> String {
        if self.is_nan() { String::new() } else { self.to_string() }
    }
}

impl<T: Field> Field for Option<T> {
    fn written(&self) -> String {
        self.as_ref().map_or_else(String::new, Field::written)
    }
}
