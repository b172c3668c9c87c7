//! CSV as in RFC 4180, but with `\n` at the end of each line. The first line has the headings. Fields are quoted if
//! necessary. A number reads back as the same `f64`, an infinite one is `inf`, and an unknown one is empty. Names are
//! not escaped, because CSV is for programs.

use ascertain_engine::experiment::Point;
use ascertain_engine::outcome::{ClaimResult, Outcome, PointSummary};

use crate::finding;

/// Returns a line for each metric of each arm. A metric that has values by key, for example one value for each server,
/// has a line for each key.
pub fn outcome(outcome: &Outcome) -> String {
    let mut text = String::from(
        "experiment,variant,at,metric,unit,n,median,median_low,median_high,p90,p99,mean,std,min,max,censored,limit,\
         key\n",
    );
    for point in outcome.points.iter().chain(&outcome.by_key) {
        let PointSummary { experiment, arm, metric, unit, n, censored, limit, key, .. } = point;
        let PointSummary { median, median_low: low, median_high: high, p90, p99, mean, std, min, max, .. } = point;
        let names: [&dyn Field; 6] = [experiment, &arm.variant, &arm.point, metric, &unit.symbol(), n];
        text +=
            &record(&[&names[..], &[median, low, high, p90, p99, mean, std, min, max, censored, limit, key]].concat());
    }
    text
}

/// Returns a line for each claim, with its verdict.
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
        let unlike = claim.unlike.iter().map(|sign| finding::unlike(sign, claim)).collect::<Vec<_>>().join("; ");
        text += &record(&[&asked[..], &came, &rates, &ratios, &[&unlike]].concat());
    }
    text
}

/// A value that can be written as a CSV field.
pub(crate) trait Field {
    fn written(&self) -> String;
}

/// Returns a line of fields, each quoted if necessary.
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
