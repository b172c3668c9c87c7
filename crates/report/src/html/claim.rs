//! A claim on the HTML page: the claimed value, the result, and the details that open below.

use ascertain_engine::claim::{Claim, Effect, Judging, Measure, Test};
use ascertain_engine::outcome::{Basis, ClaimResult, Verdict};
use ascertain_engine::recorded::{ClaimPath, RecordedRun, State};
use ascertain_engine::unit::{Unit, raised};

use super::lead::missing_of_claim;
use super::markup::Html;
use super::pack::Pack;
use super::picture::figures;
use crate::clause::{
    ArmComparison, ClaimFigure, Clause, NOT_ALIKE, claimed, compared_names, joined, landmarks, rate_figure, times,
};
use crate::figure::{Figure, error_in_words, exact_percent};
use crate::grid;
use crate::pictures;
use crate::sentence::{marked, undiagnosed, undiagnosed_claims};
use crate::standing::furthest_first;
use crate::text::{capitalised, escape_controls, grouped, quoted};

/// The data of a claim that the HTML template uses.
pub(super) struct ClaimView<'a> {
    pub result: &'a ClaimResult,
    /// The claim in the plan of the run; `None` if the plan lacks it.
    pub asked: Option<&'a Claim>,
    path: Option<&'a ClaimPath>,
    state: State,
    /// The anchor of the claim, for links to it.
    pub anchor: String,
    /// The index of the claim when claims are sorted by their distance from the claimed value, see [`furthest_first`].
    pub rank: usize,
    pub pictures: Html,
    /// `true` if the details of the claim are open when the page loads.
    pub is_open: bool,
}

/// The largest number of claims whose details are open when the page loads.
const FEW: usize = 3;

/// Returns the data of all claims of a run, in the order of the plan.
pub(super) fn claims<'a>(run: &'a RecordedRun, prefix: &str, pack: &mut Pack) -> Vec<ClaimView<'a>> {
    let anchors = anchors(&run.outcome.claims, prefix);
    let is_open = run.outcome.claims.len() <= FEW;
    let mut ranks = vec![0; run.outcome.claims.len()];
    furthest_first(&run.outcome.claims).into_iter().enumerate().for_each(|(rank, index)| ranks[index] = rank);
    let view = |(index, anchor): (usize, String)| {
        let claim = &run.outcome.claims[index];
        let pictures = figures(pictures::of_claim(run, index), prefix, &format!("c{index}p"), is_open, pack);
        ClaimView {
            result: claim,
            asked: run.header.plan.claims.iter().find(|asked| asked.id == claim.id),
            path: run.paths.get(index).filter(|_| run.outcome.windows.is_none()),
            state: run.state,
            anchor,
            rank: ranks[index],
            pictures,
            is_open,
        }
    };
    anchors.into_iter().enumerate().map(view).collect()
}

/// Returns an anchor for each claim. The anchor is the claim's id if the id is unique, allowed in a URL, and contains a
/// full stop. Other claims get a numbered anchor. It has no full stop, like all other anchors of the page, so it cannot
/// equal an anchor that is an id.
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

/// Returns the claimed value as text.
pub(super) fn figure_claimed(claim: &ClaimResult) -> String {
    let claimed = claimed(claim);
    match difference(claim) {
        Some(_) if claimed.starts_with('±') => format!("within {claimed}"),
        Some(_) => format!("by {claimed}"),
        None => claimed,
    }
}

/// Returns the measured value of a claim and its interval, as two texts. They do not name the measured quantity,
/// because the sentence about the claim names it.
pub(super) fn here(claim: &ClaimResult) -> (String, String) {
    let figure = grid::judged_with(claim, median_named(claim)).filter(|_| grid::is_judged(claim));
    let Some(Figure { value, range, .. }) = figure else { return Default::default() };
    let is_said = claim.unlike.is_empty() || range == NOT_ALIKE;
    let (value, more) = match difference(claim) {
        Some(measure) => (format!("by {value}"), format!("in {}", measure.metric.replace('_', " "))),
        None => (value, String::new()),
    };
    let unlike = if is_said { "" } else { NOT_ALIKE };
    let parts = [range, more, unlike.to_string()].into_iter().filter(|part| !part.is_empty());
    (value, parts.collect::<Vec<_>>().join("; "))
}

/// Returns the median of the predicate's metric. If the metric has no unit, its name comes first: "network_won 0.41 %".
fn median_named(claim: &ClaimResult) -> Option<String> {
    let (measure, _) = grid::spoken_of(claim)?;
    let name = if measure.unit == Unit::One { format!("{} ", escape_controls(&measure.metric)) } else { String::new() };
    grid::median(claim).map(|median| name + &median)
}

/// Returns the metric of a claim about the difference between two arms; `None` for other claims, including claims about
/// a ratio.
fn difference(claim: &ClaimResult) -> Option<&Measure> {
    match claim.asked.tests.as_slice() {
        [Test::Versus { measure, scale: Effect::Difference, .. }] => Some(measure),
        _ => None,
    }
}

/// Returns the statement that the author of the claim wrote, or else the claim in words.
pub(super) fn heading(claim: &ClaimResult) -> Html {
    match ArmComparison::new(claim) {
        Some(ArmComparison { candidate, reference, .. }) => {
            let (candidate, baseline) = compared_names(candidate, reference);
            Html::sentence(&format!("{} against {}", quoted(&candidate), quoted(&baseline)))
        }
        _ if !claim.says.is_empty() => Html::prose(&claim.says),
        _ => {
            let Clause { subject, complement } = Clause::new(&claim.asked);
            let often = match claim.rate_claimed {
                rate if rate == 0.5 || claim.asked.judging == Judging::Exact => String::new(),
                rate => format!(", at least {} of the time", exact_percent(rate)),
            };
            Html::sentence(&format!("{subject} is {complement}{often}"))
        }
    }
}

/// Returns the sentence of a claim without its verdict, because the verdict is shown next to it.
pub(super) fn sentence(claim: &ClaimResult) -> String {
    let said = marked::beside_verdict(claim);
    if said.is_empty() { marked::claim(claim) } else { capitalised(&said) }
}

/// Returns the warnings about a claim. They concern values that changed during the run, too few trials to check this,
/// and trials that are missing from the evidence.
pub(super) fn warnings(ClaimView { result, path, .. }: &ClaimView) -> Vec<String> {
    let few = [undiagnosed(std::slice::from_ref(result)), undiagnosed_claims(std::slice::from_ref(result))];
    let missing = path.and_then(|path| missing_of_claim(result, path));
    [marked::warning(result)].into_iter().chain(few).chain([missing]).flatten().collect()
}

/// Returns the statistics of a claim: the counts, the estimate with its interval, and the e-values with their
/// thresholds. Then come the error probability and, for a comparison, the reason why the verdict is valid. Empty if
/// nothing was measured. Names are marked as in `crate::text::quoted`.
pub(super) fn statistics(ClaimView { result: claim, path, .. }: &ClaimView) -> Vec<String> {
    if claim.trials == 0 || claim.asked.judging == Judging::Exact {
        return Vec::new();
    }
    let mut parts = vec![counts(claim)];
    parts.extend(estimate(claim));
    parts.extend(path.and_then(|path| evidence(claim, path)));
    parts.push(format!("error {}", error_in_words(claim.error)));
    parts.extend(validity(claim).map(str::to_string));
    parts
}

/// Returns the counts of trials: "won 16 of 16 pairs, 2 ties", "true in 17 of 18 trials".
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

/// Returns the estimate with its interval: "median ratio 1.09 (1.06 to 1.12)", "rate 99.07 % (97.3 to 99.96)".
fn estimate(claim: &ClaimResult) -> Option<String> {
    let at_median = claim.rate_claimed == 0.5 || claim.asked.judging == Judging::Order;
    match claim.asked.tests.as_slice() {
        [Test::Versus { scale, bound, .. }] if claim.ratio.is_some() => {
            let (what, figure) = match scale {
                Effect::Ratio => ("ratio", times(claim, "", &landmarks(*bound))?),
                Effect::Difference => ("difference", joined(&ClaimFigure::new(claim)?.figure)),
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

/// Returns the e-values with their thresholds: "e-value 65,536 that it holds, threshold 2,000".
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

/// Returns the reason why the verdict of a comparison is valid. `None` for a claim about a rate: the reason is the same
/// for all such claims, so the page gives it only once.
fn validity(claim: &ClaimResult) -> Option<&'static str> {
    let is_order = claim.asked.judging == Judging::Order;
    is_order.then_some(match claim.asked.margin {
        Some(_) => "read from the interval, assuming that trials are alike",
        None if claim.interferes => "assumes that trials do not affect each other, but they seem to",
        None if claim.basis == Some(Basis::Magnitudes) => {
            "the difference and its direction (exact, because the order in each trial is random)"
        }
        None => "exact, because the order in each trial is random",
    })
}

/// Returns sentences about the verdict: what it applies to, and what it assumes. Empty for claims about a rate, because
/// the page explains these only once.
pub(super) fn reach(ClaimView { result: claim, state, .. }: &ClaimView) -> String {
    let text = match (claim.verdict, claim.asked.judging) {
        (Verdict::Unavailable | Verdict::Failed | Verdict::Deferred, _) => {
            "No verdict: the claim may be true or false."
        }
        (Verdict::Undecided, _) => return undecided(*state),
        (_, Judging::Exact) => {
            "This figure is the same in every trial, so it was checked once. It applies to this program and this input; \
             another input may give another figure."
        }
        (_, Judging::Order) if claim.asked.margin.is_some() => {
            "The answer was read from the interval of the ratio, which assumes that trials are alike. Without \
             --margin, an answer does not need this assumption. The answer is about this machine during the run."
        }
        (_, Judging::Order) if claim.interferes => {
            "The verdict assumes that no trial affects the next one: if the two do not differ, only the random order \
             decides who wins. Here, the command that ran last in a trial affects the next trial. Use --prepare to \
             bring the machine into the same state before each observation."
        }
        (_, Judging::Order) if claim.basis == Some(Basis::Magnitudes) => {
            "The two differ, and the better one wins more of these pairs, or wins by more. The order within each pair \
             was drawn at random, so the difference and its direction are exact, whatever else the machine did. The \
             number of won pairs alone would not have been enough for this verdict, so it is not certain that the \
             better one wins more often in the long run. The interval of the ratio shows the size of the difference, \
             assuming that trials are alike. Another day or another machine may give another answer."
        }
        (_, Judging::Order) => {
            "The answer names the one that wins more often than it loses. The order within each pair was drawn at random, \
             so the answer is exact for the measured trials, whatever else the machine did. The interval of the ratio \
             shows the size of the difference, assuming that trials are alike. Another day or another machine may give \
             another answer."
        }
        // Most claims of a `check` are about a rate, so the page has their explanation only once.
        (_, Judging::Rate) => "",
    };
    marked::emulated(claim).map_or_else(|| text.to_string(), |emulated| format!("{text} {emulated}").trim().to_string())
}

fn undecided(state: State) -> String {
    let (why, then) = match state {
        State::Running => ("the run has not ended, and the evidence has not reached a threshold yet", ""),
        State::Finished => ("the time or the trials ran out before the evidence reached a threshold", CONTINUE),
        State::Interrupted => ("the run was interrupted before the evidence reached a threshold", CONTINUE),
        State::Killed => ("the run was killed before the evidence reached a threshold", CONTINUE),
    };
    format!("Undecided is not “no difference”: {why}. The interval shows the values that are still possible.{then}")
}

const CONTINUE: &str = " You can continue the run without raising its error.";

/// Writes an e-value, which is given by its natural logarithm: `0.031`, `412`, `65,536`, `1.2 × 10⁹`.
fn e_value(log: f64) -> String {
    let log10 = log / std::f64::consts::LN_10;
    let exponent = log10.floor();
    match log10 {
        l if l.is_nan() => "-".into(),
        l if l == f64::NEG_INFINITY => "0".into(),
        l if l == f64::INFINITY => "∞".into(),
        l if !(-3.0..7.0).contains(&l) => {
            let digits = format!("{:.1}", 10_f64.powf(log10 - exponent));
            // Rounding may increase the power of ten.
            let (digits, exponent) = if digits == "10.0" { ("1.0".into(), exponent + 1.0) } else { (digits, exponent) };
            format!("{digits} × 10{}", exponent.to_string().chars().map(raised).collect::<String>())
        }
        l if l >= 2.0 => grouped(log.exp().round() as u64),
        _ => {
            let decimals = (1.0 - exponent).max(0.0) as usize;
            format!("{:.decimals$}", log.exp())
        }
    }
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
