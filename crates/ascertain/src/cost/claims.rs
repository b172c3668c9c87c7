//! Claims about the speed and the price of two types of machine.

use std::collections::BTreeSet;

use ascertain_engine::names::suggestion;
use ascertain_engine::outcome::Verdict;
use ascertain_report::cost::{ClaimOnCost, Interval};
use serde::Deserialize;
use toml::Spanned;

use super::compare::{
    FEWEST_WORKLOADS, Matched, break_even, break_even_log, is_best, logs_around, machines_effect, matched, mean,
    over_both, priced_load,
};
use super::request::PricedType;
use crate::error::{Error, refused};

/// A claim about two types of machine: the geometric mean of the ratios of their speeds over some workloads is at least
/// a bound.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostClaim {
    /// Id of the claim.
    pub id: String,
    /// The claim as a sentence.
    pub says: String,
    /// Origin of the claim, such as a document.
    #[serde(default)]
    pub source: String,
    /// The figure that the claim states, as written in the source.
    #[serde(default)]
    pub source_value: String,
    /// The reasons why the claim should hold, and the conditions under which it will not.
    #[serde(default)]
    pub analysis: String,
    /// The claim in the form in which it is judged.
    #[serde(default)]
    pub restated: String,
    /// The type that the claim is about.
    pub candidate: String,
    /// The type with which the candidate is compared.
    pub baseline: String,
    /// Names of the workloads. If empty, the claim is about all workloads that have a cost.
    #[serde(default)]
    pub workloads: Vec<String>,
    /// The bound that the speed ratio should reach.
    pub at_least: Bound,
    /// Position of the claim: file and line.
    #[serde(skip)]
    pub place: String,
}

/// The bound of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "toml::Value")]
pub enum Bound {
    /// The candidate is at least this many times as fast as the baseline.
    Times(f64),
    /// The candidate is fast enough that the same work costs no more than on the baseline.
    BreakEven,
}

impl TryFrom<toml::Value> for Bound {
    type Error = &'static str;

    fn try_from(value: toml::Value) -> Result<Bound, &'static str> {
        match value {
            toml::Value::Float(times) if times > 0.0 && times.is_finite() => Ok(Bound::Times(times)),
            toml::Value::Integer(times) if times > 0 => Ok(Bound::Times(times as f64)),
            toml::Value::String(word) if word == "break-even" => Ok(Bound::BreakEven),
            _ => Err("`at_least` must be a factor above 0, such as 1.25, or \"break-even\""),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    claim: Vec<Spanned<CostClaim>>,
}

/// Reads claims about types of machine from TOML: `[[claim]]` with the keys `id`, `says`, `candidate`, `baseline`,
/// `at_least` (a factor, or `"break-even"`) and `workloads`. The texts `source`, `source_value`, `analysis` and
/// `restated` have the same meaning as in other claims files. `file` is the file's name for errors.
///
/// # Errors
/// The message names the line: if the file is not TOML, or a key is unknown, missing or has an invalid value.
pub fn read_claims(text: &str, file: &str) -> Result<Vec<CostClaim>, Error> {
    let line = |offset: usize| 1 + text[..text.floor_char_boundary(offset)].matches('\n').count();
    let parsed: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line(span.start));
        let problem = error.message().replace(['\n', '\r'], " ");
        Error::Request(format!("{file}:{line}: {problem}"))
    })?;
    let mut ids = BTreeSet::new();
    let checked = |claim: Spanned<CostClaim>| {
        let place = format!("{file}:{}", line(claim.span().start));
        let claim = CostClaim { place, ..claim.into_inner() };
        let CostClaim { id, workloads, place, .. } = &claim;
        if !ids.insert(id.clone()) {
            return refused(format!("{place}: another claim already has the id `{id}`; choose another id"));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = workloads.iter().find(|name| !names.insert(*name)) {
            return refused(format!("{place}: the workload `{twice}` is listed twice; remove one"));
        }
        Ok(claim)
    };
    parsed.claim.into_iter().map(checked).collect()
}

/// Judges a claim by the figures of the two types. With `full_load`, only figures under full load have a cost.
///
/// # Errors
/// If a type or a workload of the claim was not measured.
pub(super) fn judge(claim: &CostClaim, offers: &[PricedType], full_load: bool) -> Result<ClaimOnCost, Error> {
    let find = |name: &String| {
        let found = offers.iter().find(|priced| priced.offer.machine_type == *name || priced.offer.name == *name);
        found.ok_or_else(|| {
            let names = || offers.iter().map(|priced| priced.offer.name.as_str());
            let hint = suggestion(name, names()).unwrap_or_default();
            Error::Request(format!("{}: there are no priced figures of `{name}`{hint}", claim.place))
        })
    };
    let (baseline, candidate) = (find(&claim.baseline)?, find(&claim.candidate)?);
    let pairs = matched(baseline, candidate);
    for name in &claim.workloads {
        let known = || pairs.iter().map(|pair| pair.both[0].workload.as_str());
        if !known().any(|known| known == name) {
            let hint = suggestion(name, known()).unwrap_or_default();
            return refused(format!(
                "{}: both types have no comparable figure of the workload `{name}`{hint}",
                claim.place
            ));
        }
    }
    let priced_load = priced_load(&pairs, full_load);
    let is_costed = |pair: &Matched| Some(pair.load) == priced_load && is_best(pair, &pairs);
    let is_listed = |pair: &Matched| claim.workloads.is_empty() || claim.workloads.contains(&pair.both[0].workload);
    // A claim about the speed may be about one thread; a claim about the price may not.
    let is_wanted = |pair: &Matched| match claim.at_least {
        Bound::BreakEven => is_costed(pair) && is_listed(pair),
        Bound::Times(_) if claim.workloads.is_empty() => is_costed(pair),
        Bound::Times(_) => is_listed(pair) && is_best(pair, &pairs),
    };
    let chosen: Vec<&Matched> = pairs.iter().filter(|pair| is_wanted(pair)).collect();
    let both = [baseline, candidate];
    let (bounds, bound): (Vec<f64>, f64) = match claim.at_least {
        Bound::Times(times) => (vec![times.ln(); chosen.len()], times),
        Bound::BreakEven => {
            let bounds: Vec<f64> = chosen.iter().map(|pair| break_even_log(pair, both)).collect();
            let bound = break_even(&bounds, both);
            (bounds, bound)
        }
    };
    Ok(verdict(claim, &chosen, &bounds, bound))
}

/// Returns the verdict. `bounds` has the logarithm of the bound of each workload, and `bound` is their mean as a ratio.
fn verdict(claim: &CostClaim, chosen: &[&Matched], bounds: &[f64], bound: f64) -> ClaimOnCost {
    let (logs, count) = (logs_around(chosen, bounds), chosen.len());
    let interval = (count >= FEWEST_WORKLOADS).then(|| over_both(&logs, machines_effect(chosen))).flatten();
    let mean = match (interval, count) {
        (_, 0) => None,
        (Some(log), _) => Some(log.ratio()),
        (None, 1) => Some(chosen[0].log.ratio()),
        (None, _) => Some(Interval { value: mean(&logs).exp(), low: None, high: None }),
    };
    let (low, high) = mean.filter(|_| count >= FEWEST_WORKLOADS).map_or((None, None), |mean| (mean.low, mean.high));
    let verdict = match (low, high) {
        (Some(low), _) if low >= bound => Verdict::Holds,
        (_, Some(high)) if high < bound => Verdict::Refuted,
        _ => Verdict::Undecided,
    };
    let reason = match verdict {
        Verdict::Undecided if count < FEWEST_WORKLOADS => {
            "fewer than three workloads do not allow conclusions about other workloads like these".to_string()
        }
        Verdict::Undecided => "the interval for workloads like these contains the bound".to_string(),
        _ => String::new(),
    };
    let is_contrary = |speed: f64| match verdict {
        Verdict::Refuted => speed >= bound,
        _ => speed < bound,
    };
    let mut contrary: Vec<(String, f64)> = chosen
        .iter()
        .zip(&logs)
        .map(|(pair, log)| (pair.both[0].workload.clone(), log.exp()))
        .filter(|(_, speed)| is_contrary(*speed))
        .collect();
    contrary.sort_by(|one, other| one.1.total_cmp(&other.1));
    if verdict == Verdict::Refuted {
        contrary.reverse();
    }
    ClaimOnCost {
        id: claim.id.clone(),
        says: claim.says.clone(),
        source: claim.source.clone(),
        source_value: claim.source_value.clone(),
        restated: claim.restated.clone(),
        verdict,
        reason,
        at_least: bound,
        workloads: count as u64,
        mean,
        contrary,
    }
}
