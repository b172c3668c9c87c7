//! A claim on the page: what was claimed and came of it, and on what that rests.

use ascertain_engine::claim::{Effect, Judging};
use ascertain_engine::experiment::Better;
use ascertain_engine::outcome::{Basis, ClaimResult, Measure, TestSpec, Verdict};
use ascertain_engine::recorded::{ClaimPath, RecordedRun, State};
use ascertain_engine::unit::Unit;

use super::lead::missing_of_claim;
use super::mark::{SharedAxis, squares};
use super::markup::Html;
use super::pack::Pack;
use super::picture::figures;
use crate::clause::{
    ClaimFigure, Clause, NOT_ALIKE, adjective, claimed, compared_names, joined, landmarks, ordered, rate_figure, times,
};
use crate::figure::{Figure, brief_odds, exact_percent};
use crate::grid;
use crate::pictures;
use crate::sentence::{marked, undiagnosed, undiagnosed_claims};
use crate::standing::furthest_first;
use crate::text::{capitalised, escape_controls, grouped, quoted};

/// A claim as the template draws it.
pub(super) struct ClaimView {
    /// Its place in the page's addresses.
    pub anchor: String,
    /// The verdict's word, which the style sheet and the shapes go by.
    pub verdict: &'static str,
    /// The word that is shown: `compare` has its own.
    pub answer: &'static str,
    /// The claim itself, as a sentence.
    pub heading: Html,
    /// Whether what was measured stands in for the real thing.
    pub is_emulated: bool,
    /// What the source says.
    pub said: String,
    /// The figure here and its range, as far as there are such.
    /// What it asks for, as [`claimed`] has it.
    pub claimed: String,
    pub here: String,
    pub range: String,
    /// Where it stands on the page's axis.
    pub mark: Html,
    /// Its place among the claims when the one that is furthest from what was said is first.
    pub rank: usize,
    /// What was seen and what follows, as a sentence.
    pub sentence: Html,
    /// A square a trial, and what they mean.
    pub squares: Option<(Html, Html)>,
    pub pictures: Html,
    /// The figures that a statistician asks for, in a row.
    pub figures: Vec<Html>,
    /// What speaks against it: trials that are not alike, or not recorded any more.
    pub warnings: Vec<Html>,
    pub source: String,
    pub id: String,
    pub analysis: Html,
    pub restated: Html,
    pub reach: String,
    /// Whether its evidence is in sight from the start.
    pub is_open: bool,
}

/// With at most that many claims, the evidence for each is in sight from the start.
const FEW: usize = 3;

/// The claims of a run, in the order asked.
pub(super) fn claims(run: &RecordedRun, prefix: &str, axis: SharedAxis, pack: &mut Pack) -> Vec<ClaimView> {
    let anchors = anchors(&run.outcome.claims, prefix);
    let is_open = run.outcome.claims.len() <= FEW;
    let mut ranks = vec![0; run.outcome.claims.len()];
    furthest_first(&run.outcome.claims).into_iter().enumerate().for_each(|(rank, index)| ranks[index] = rank);
    let view = |(index, anchor): (usize, String)| {
        let claim = &run.outcome.claims[index];
        let pictures = figures(pictures::of_claim(run, index), prefix, &format!("c{index}p"), is_open, pack);
        let asked = run.header.plan.claims.iter().find(|asked| asked.id == claim.id);
        let prose = |text: Option<&String>| text.map_or_else(Html::default, |text| Html::prose(text));
        let missing = run.paths.get(index).and_then(|path| missing_of_claim(claim, path));
        let (here, range) = here(claim);
        ClaimView {
            anchor,
            verdict: grid::class(claim),
            answer: grid::answer(claim),
            heading: heading(claim),
            is_emulated: claim.emulated.is_some(),
            said: claim.source_value.clone(),
            claimed: match difference(claim) {
                Some(_) => format!("by {}", claimed(claim)),
                None => claimed(claim),
            },
            here,
            range,
            mark: axis.mark(claim),
            rank: ranks[index],
            sentence: Html::sentence(&sentence(claim)),
            squares: squares(claim),
            pictures,
            figures: statistics(claim, run.paths.get(index)).iter().map(|part| Html::sentence(part)).collect(),
            warnings: marked::warning(claim)
                .into_iter()
                .chain(undiagnosed(std::slice::from_ref(claim)))
                .chain(undiagnosed_claims(std::slice::from_ref(claim)))
                .chain(missing)
                .map(|warning| Html::sentence(&warning))
                .collect(),
            source: claim.source.strip_suffix(".txt").unwrap_or(&claim.source).to_string(),
            id: claim.id.clone(),
            analysis: prose(asked.map(|asked| &asked.analysis)),
            restated: prose(asked.map(|asked| &asked.restated)),
            reach: reach(claim, run.state),
            is_open,
        }
    };
    anchors.into_iter().enumerate().map(view).collect()
}

/// Where claims are found on the page: under their own ids, where those can be addresses that nothing else has. All of
/// the page's own are without a point.
pub(super) fn anchors(claims: &[ClaimResult], prefix: &str) -> Vec<String> {
    let is_address = |id: &str| {
        let is_plain = id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.[]=,+:".contains(c));
        is_plain && id.contains('.') && claims.iter().filter(|claim| claim.id == id).count() == 1
    };
    let anchor = |(index, claim): (usize, &ClaimResult)| match claim.id.as_str() {
        id if is_address(id) => format!("{prefix}{id}"),
        _ => format!("{prefix}claim-{}", index + 1),
    };
    claims.iter().enumerate().map(anchor).collect()
}

/// The figure of a claim here and its range, without what it is a figure of, which is in the sentence.
pub(super) fn here(claim: &ClaimResult) -> (String, String) {
    let figure = grid::judged_with(claim, median_named(claim)).filter(|_| grid::is_judged(claim));
    let Some(Figure { value, range, .. }) = figure else { return Default::default() };
    let is_said = claim.unlike.is_empty() || range == NOT_ALIKE;
    let (value, more) = match difference(claim) {
        Some(measure) => (format!("by {value}"), format!("in {}", measure.metric.replace('_', " "))),
        None => (value, times_as_high(claim).unwrap_or_default()),
    };
    let unlike = if is_said { "" } else { NOT_ALIKE };
    let parts = [range, more, unlike.to_string()].into_iter().filter(|part| !part.is_empty());
    (value, parts.collect::<Vec<_>>().join("; "))
}

/// The median of what a claim's predicate speaks of, with the name of what is no amount of anything: "network_won
/// 0.41 %".
fn median_named(claim: &ClaimResult) -> Option<String> {
    let (measure, _) = grid::spoken_of(claim)?;
    let name = if measure.unit == Unit::One { format!("{} ", escape_controls(&measure.metric)) } else { String::new() };
    grid::median(claim).map(|median| name + &median)
}

/// What a claim compares by how far apart two are.
fn difference(claim: &ClaimResult) -> Option<&Measure> {
    match claim.asked.tests.as_slice() {
        [TestSpec::Versus { measure, scale: Effect::Difference, .. }] => Some(measure),
        _ => None,
    }
}

/// "error 15x as high", where a ratio says only that one is 0.066 times as good.
fn times_as_high(claim: &ClaimResult) -> Option<String> {
    let [TestSpec::Versus { measure, scale: Effect::Ratio, .. }] = claim.asked.tests.as_slice() else { return None };
    let is_less = measure.better == Better::Lower && adjective(measure).0 == "good";
    let is_told = is_less && claim.asked.judging != Judging::Order;
    let ratio = claim.ratio.filter(|ratio| is_told && *ratio > 0.0 && *ratio < 1.0)?;
    Some(format!("{} {}x as high", measure.metric.replace('_', " "), Figure::unbounded(Some(1.0 / ratio)).value))
}

/// The claim as its author put it, or else what it asks.
pub(super) fn heading(claim: &ClaimResult) -> Html {
    match ordered(claim) {
        Some((_, candidate, baseline)) => {
            let (candidate, baseline) = compared_names(candidate, baseline);
            Html::sentence(&format!("{} against {}", quoted(&candidate), quoted(&baseline)))
        }
        _ if !claim.says.is_empty() => Html::prose(&claim.says),
        _ => {
            let Clause { subject, complement } = Clause::of(&claim.asked);
            let often = match claim.rate_claimed {
                rate if rate == 0.5 || claim.asked.judging == Judging::Exact => String::new(),
                rate => format!(", at least {} of the time", exact_percent(rate)),
            };
            Html::sentence(&format!("{subject} is {complement}{often}"))
        }
    }
}

/// The sentence, where there is more to say than the verdict that stands beside it.
pub(super) fn sentence(claim: &ClaimResult) -> String {
    let said = marked::beside_verdict(claim);
    if said.is_empty() { marked::claim(claim) } else { capitalised(&said) }
}

/// The figures that a statistician asks for, in a row, with names marked: counts, the estimate with its
/// interval, the evidence with its threshold, the error, and what makes the verdict valid. Empty where
/// nothing was measured.
fn statistics(claim: &ClaimResult, path: Option<&ClaimPath>) -> Vec<String> {
    if claim.trials == 0 || claim.asked.judging == Judging::Exact {
        return Vec::new();
    }
    let mut parts = vec![counts(claim)];
    parts.extend(estimate(claim));
    parts.extend(path.and_then(|path| evidence(claim, path)));
    parts.push(format!("error {}", brief_odds(claim.error)));
    parts.extend(validity(claim).map(str::to_string));
    parts
}

/// "won 16 of 16 pairs, 2 ties", "true in 17 of 18 trials".
fn counts(claim: &ClaimResult) -> String {
    let noun = if claim.asked.is_comparison() { "pairs" } else { "trials" };
    let ties = match claim.ties {
        0 => String::new(),
        1 => ", 1 tie".into(),
        ties => format!(", {} ties", grouped(ties)),
    };
    let open = if claim.unknown > 0 { format!(", {} left open", grouped(claim.unknown)) } else { String::new() };
    let done = if claim.asked.judging == Judging::Order { "won" } else { "true in" };
    let counted = claim.trials.saturating_sub(claim.ties);
    format!("{done} {} of {} {noun}{ties}{open}", grouped(claim.successes), grouped(counted))
}

/// "median ratio 1.09 (1.06 to 1.12)", "rate 99.07 % (97.3 to 99.96)".
fn estimate(claim: &ClaimResult) -> Option<String> {
    let at_median = claim.rate_claimed == 0.5 || claim.asked.judging == Judging::Order;
    match claim.asked.tests.as_slice() {
        [TestSpec::Versus { scale, bound, .. }] if claim.ratio.is_some() => {
            let (what, figure) = match scale {
                Effect::Ratio => ("ratio", times(claim, "", &landmarks(*bound))?),
                Effect::Difference => ("difference", joined(&ClaimFigure::of(claim)?.figure)),
            };
            Some(match at_median {
                true => format!("median {what} {figure}"),
                false => format!("{what} in {} of the pairs {figure}", exact_percent(claim.rate_claimed)),
            })
        }
        _ => {
            claim.rate?;
            Some(format!("rate {} against {}", rate_figure(claim), exact_percent(claim.rate_claimed)))
        }
    }
}

/// "e-value 65,536 that it holds, threshold 2,000".
fn evidence(claim: &ClaimResult, path: &ClaimPath) -> Option<String> {
    let (holds, refuted) = (claim.log_e_holds?, claim.log_e_refuted?);
    let (for_it, against) = (e_value(holds), e_value(refuted));
    let [it_is, it_is_not] = pictures::statements(claim);
    Some(match claim.verdict {
        Verdict::Holds => format!("e-value {for_it} {it_is}, threshold {}", e_value(path.log_threshold_holds)),
        Verdict::Refuted => {
            format!("e-value {against} {it_is_not}, threshold {}", e_value(path.log_threshold_refuted))
        }
        _ => {
            let threshold = e_value(path.log_threshold_holds);
            format!("e-value {for_it} {it_is} and {against} {it_is_not}, threshold {threshold}")
        }
    })
}

/// What makes the verdict valid; of a rate the page says that once.
fn validity(claim: &ClaimResult) -> Option<&'static str> {
    let is_order = claim.asked.judging == Judging::Order;
    is_order.then_some(match claim.asked.margin {
        Some(_) => "read from the interval, if trials are alike",
        None if claim.interferes => "as if a coin decided each trial, which these do not look like",
        None if claim.basis == Some(Basis::Magnitudes) => "exact by randomisation that the two differ, and which way",
        None => "exact by randomisation",
    })
}

/// What the verdict says, and what it does not, where that is not what the page says once of all rates.
fn reach(claim: &ClaimResult, state: State) -> String {
    let text = match (claim.verdict, claim.asked.judging) {
        (Verdict::Unavailable | Verdict::Failed | Verdict::Deferred, _) => {
            "No verdict: this says nothing about whether the claim is true."
        }
        (Verdict::Undecided, _) => return undecided(state),
        (_, Judging::Exact) => {
            "This figure is the same in every trial, so it was checked once. It is that of this program on this input; \
             another input may give another."
        }
        (_, Judging::Order) if claim.asked.margin.is_some() => {
            "The answer was read from the ratio’s interval, which takes the trials to be alike: unlike “wins more \
             often than it loses”, this is not exact by randomisation. It is about this machine while it was measured."
        }
        (_, Judging::Order) if claim.interferes => {
            "The verdict takes it that nothing which lasts belongs to one of the two, so that the coin that drew each \
             trial's order decides its outcome where they do not differ. Here what a trial ended with shows in the \
             next one: let --prepare bring the machine into one state before each observation."
        }
        (_, Judging::Order) if claim.basis == Some(Basis::Magnitudes) => {
            "The two differ, and the one that the answer prefers wins more of these pairs, or wins by more. A coin \
             drew the order in each trial, so that they differ, and which way, is exact, whatever else the machine \
             did; that it wins more often, the count of the pairs that gave the verdict does not show. How big the \
             difference is, the ratio’s interval says, for trials that are alike. That it will be so on another day \
             or another machine is your inference."
        }
        (_, Judging::Order) => {
            "The answer says which of the two wins more often than it loses. A coin drew the order in each trial, so \
             for the trials measured this is exact, whatever else the machine did. How big the difference is, the \
             ratio’s interval says, for trials that are alike. That it will be so on another day or another machine \
             is your inference."
        }
        // Of most claims of a `check` it would be the same: the page says it once.
        (_, Judging::Rate) => "",
    };
    marked::emulated(claim).map_or_else(|| text.to_string(), |emulated| format!("{text} {emulated}").trim().to_string())
}

fn undecided(state: State) -> String {
    let (why, then) = match state {
        State::Running => ("the run is still going on, and the evidence has not reached a threshold yet", ""),
        State::Finished => ("the budget ended before the evidence reached a threshold", CONTINUE),
        State::Interrupted => ("the run was interrupted before the evidence reached a threshold", CONTINUE),
        State::Killed => ("the run was killed before the evidence reached a threshold", CONTINUE),
    };
    format!("Undecided is not “no difference”: {why}. The interval says what is still possible.{then}")
}

const CONTINUE: &str = " The run may be continued, which costs nothing of its error budget.";

/// A number given by its natural logarithm: `0.031`, `412`, `65,536`, `1.2 × 10⁹`.
fn e_value(log: f64) -> String {
    let log10 = log / std::f64::consts::LN_10;
    let exponent = log10.floor();
    match log10 {
        l if l.is_nan() => "-".into(),
        l if l == f64::NEG_INFINITY => "0".into(),
        l if l == f64::INFINITY => "∞".into(),
        l if !(-3.0..7.0).contains(&l) => {
            let digits = format!("{:.1}", 10_f64.powf(log10 - exponent));
            // Rounding may carry.
            let (digits, exponent) = if digits == "10.0" { ("1.0".into(), exponent + 1.0) } else { (digits, exponent) };
            format!("{digits} × 10{}", superscript(exponent as i64))
        }
        l if l >= 2.0 => grouped(log.exp().round() as u64),
        _ => {
            let decimals = (1.0 - exponent).max(0.0) as usize;
            format!("{:.decimals$}", log.exp())
        }
    }
}

fn superscript(exponent: i64) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let shown = exponent.to_string();
    shown.chars().map(|c| c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_in_digits_that_mean_something() {
        for (value, shown) in [
            (65_536.0_f64, "65,536"),
            (2000.0, "2,000"),
            (412.4, "412"),
            (1.0, "1.0"),
            (0.0312, "0.031"),
            (1.25e9, "1.2 × 10⁹"),
            (9.97e9, "1.0 × 10¹⁰"),
            (3e-7, "3.0 × 10⁻⁷"),
        ] {
            assert_eq!(e_value(value.ln()), shown);
        }
        assert_eq!(e_value(20_000.0 * std::f64::consts::LN_10 + 0.7), "2.0 × 10²⁰⁰⁰⁰");
        assert_eq!(e_value(f64::NEG_INFINITY), "0");
        assert_eq!(e_value(f64::NAN), "-");
    }
}
