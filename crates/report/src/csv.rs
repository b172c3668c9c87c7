//! CSV as RFC 4180 has it, with `\n` at the end of each line: one heading line, quotes where a field
//! needs them. A number is written so that it reads back as the same double, an infinite one as `inf`;
//! what is not known is empty. Names stand as they are: this is for programs.

use ascertain_engine::outcome::{ClaimResult, Outcome, PointSummary};

use crate::finding;
use crate::judgement::Judgement;

/// The run's points: each metric of each arm.
pub fn outcome(outcome: &Outcome) -> String {
    let mut text = String::from(
        "experiment,variant,at,metric,unit,n,median,median_low,median_high,p90,p99,mean,std,min,max,censored,limit\n",
    );
    for point in &outcome.points {
        text += &record(&point_fields(point));
    }
    text
}

fn point_fields(point: &PointSummary) -> Vec<String> {
    let PointSummary { median, median_low, median_high, p90, p99, mean, std, min, max, limit, .. } = point;
    let mut fields = vec![
        point.experiment.clone(),
        point.variant.clone(),
        point.at.to_string(),
        point.metric.clone(),
        point.unit.symbol().to_string(),
        point.n.to_string(),
    ];
    fields.extend([median, median_low, median_high, p90, p99, mean, std, min, max].map(|value| number(*value)));
    fields.extend([point.censored.to_string(), number(*limit)]);
    fields
}

/// The run's claims and their verdicts.
pub fn claims(outcome: &Outcome) -> String {
    let mut text = String::from(
        "id,says,source,source_value,experiment,verdict,reason,decision,trials,successes,ties,rate,rate_low,rate_high,\
         rate_claimed,error,ratio,ratio_low,ratio_high,log_e_holds,log_e_refuted,unlike\n",
    );
    for claim in &outcome.claims {
        text += &record(&claim_fields(claim));
    }
    text
}

fn claim_fields(claim: &ClaimResult) -> Vec<String> {
    let ClaimResult { rate, rate_low, rate_high, ratio, ratio_low, ratio_high, .. } = claim;
    let ClaimResult { log_e_holds, log_e_refuted, .. } = claim;
    let mut fields = vec![
        claim.id.clone(),
        claim.says.clone(),
        claim.source.clone(),
        claim.source_value.clone(),
        claim.experiment.clone(),
        claim.verdict.word().to_string(),
        finding::reasons(claim).unwrap_or_default(),
        claim.decision.map_or_else(String::new, |decision| decision.word().to_string()),
    ];
    fields.extend([claim.trials, claim.successes, claim.ties].map(|count| count.to_string()));
    fields.extend([rate, rate_low, rate_high].map(|value| number(*value)));
    fields.extend([claim.rate_claimed, claim.error].map(|value| number(Some(value))));
    fields.extend([ratio, ratio_low, ratio_high, log_e_holds, log_e_refuted].map(|value| number(*value)));
    fields.push(claim.unlike.iter().map(finding::unlike).collect::<Vec<_>>().join("; "));
    fields
}

/// What `ascertain judge --format csv` prints.
pub fn judgement(judgement: &Judgement) -> String {
    let Judgement { log_level, log_e_holds, log_e_refuted, rate, rate_low, rate_high, .. } = judgement;
    let Judgement { credible_low, credible_high, .. } = judgement;
    let mut fields = vec![
        judgement.verdict.word().to_string(),
        judgement.trials.to_string(),
        judgement.successes.to_string(),
        judgement.method.clone(),
    ];
    fields.extend([judgement.rate_claimed, judgement.error].map(|value| number(Some(value))));
    let numbers = [log_level, log_e_holds, log_e_refuted, rate, rate_low, rate_high, credible_low, credible_high];
    fields.extend(numbers.map(|value| number(*value)));
    format!(
        "verdict,trials,successes,method,rate_claimed,error,log_level,log_e_holds,log_e_refuted,rate,rate_low,\
         rate_high,credible_low,credible_high\n{}",
        record(&fields)
    )
}

/// A line of fields, each quoted where it needs to be.
pub(crate) fn record(fields: &[String]) -> String {
    let fields: Vec<String> = fields.iter().map(|text| field(text)).collect();
    fields.join(",") + "\n"
}

fn field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_string() }
}

pub(crate) fn number(value: Option<f64>) -> String {
    value.filter(|value| !value.is_nan()).map_or_else(String::new, |value| value.to_string())
}
