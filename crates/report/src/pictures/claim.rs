//! Two pictures of a claim: its rate with the claimed rate, and its e-values with their thresholds. The other pictures
//! are in `paired`.

use ascertain_engine::claim::Judging;
use ascertain_engine::outcome::ClaimResult;
use ascertain_engine::recorded::{ClaimPath, EvidencePoint, RecordedRun};
use ascertain_engine::unit::Unit;
use ascertain_stats::{Tally, credible_interval, log_binomial};

use super::labelled::labelled;
use super::paired::{paired, values};
use super::{Picture, PictureKind, Table, names};
use crate::amount::Amount;
use crate::clause::{failures, share_figure};
use crate::figure::{Figure, error_in_words, exact_percent, percent};
use crate::plot::{Axis, Interval, Layer, Plot, Scale, Which};
use crate::text::counted;

/// Returns the pictures of the claim with this index. The first picture shows values in the order measured, with the
/// claimed bounds. The values are the paired ratios or differences of a comparison, or the values of a predicate's
/// metric. For a claim about a rate, a picture of the density of the rate follows. The last picture shows the e-values
/// with their thresholds. An exact claim has no pictures.
pub fn of_claim(run: &RecordedRun, claim: usize) -> Vec<Picture> {
    let claims = &run.outcome.claims;
    let (Some(result), Some(path)) = (claims.get(claim), run.paths.get(claim)) else { return Vec::new() };
    if result.asked.judging == Judging::Exact {
        return Vec::new();
    }
    let slug = &names::slugs(claims.iter().map(|claim| claim.id.as_str()))[claim];
    let id = |kind: &str| format!("{slug}-{kind}");
    let rate = if is_about_a_rate(result) { density(result, id("rate")) } else { None };
    let pictures = [
        paired(result, path, id("ratios")),
        values(run, result, path, id("values")),
        rate,
        evidence(result, path, id("evidence")),
    ];
    pictures.into_iter().flatten().collect()
}

/// Returns whether the claim's sentence states the rate of success. The sentences of other claims state the median
/// ratio.
fn is_about_a_rate(claim: &ClaimResult) -> bool {
    claim.asked.judging == Judging::Rate && !(claim.asked.is_comparison() && claim.rate_claimed == 0.5)
}

/// Returns the claim in a few words, for the alternative text of a picture.
pub(super) fn claim_in_words(claim: &ClaimResult) -> &str {
    // The statement of a comparison is only a question.
    let is_statement = claim.asked.judging != Judging::Order && !claim.says.is_empty();
    if is_statement { &claim.says } else { &claim.id }
}

/// Returns two words for a claim that holds and a claim that does not: "holds" and "refuted", "faster" and "slower".
pub(super) fn directions(claim: &ClaimResult) -> [&'static str; 2] {
    match Amount::of_order(claim) {
        Some(amount) => [amount.word(true), amount.word(false)],
        None if claim.asked.judging == Judging::Order => ["faster", "slower"],
        None => ["holds", "refuted"],
    }
}

/// Draws the e-value for a claim and the e-value against it, by trial, on a logarithmic scale. Both e-values are 1
/// before the first trial. `None` if the e-values are not recorded.
pub(super) fn evidence(claim: &ClaimResult, path: &ClaimPath, id: String) -> Option<Picture> {
    let last = path.evidence.last()?;
    let (words, statements) = (directions(claim), statements(claim));
    let holds = evidence_line(path, |point| point.log_e_holds);
    let refuted = evidence_line(path, |point| point.log_e_refuted);
    let thresholds = [path.log_threshold_holds, path.log_threshold_refuted].map(powers_of_ten);
    let mut layers: Vec<Layer> = match thresholds {
        [one, other] if one == other => vec![rule(one, "threshold".into())],
        both => both.iter().zip(words).map(|(at, word)| rule(*at, format!("threshold for {word}"))).collect(),
    };
    let decided = decided(path);
    for (index, points) in [&refuted, &holds].into_iter().enumerate() {
        let series = Some(1 - index);
        layers.push(Layer::Line { series, points: points.clone(), steps: false, dashed: false });
    }
    if let Some((point, direction)) = decided {
        let log_e = [point.log_e_holds, point.log_e_refuted][direction];
        let points = vec![[point.counted as f64, powers_of_ten(log_e)]];
        layers.push(Layer::Dots { series: Some(direction), points, hollow: false });
        let label = format!("{} after {}", words[direction], counted(point.counted, "trial"));
        layers.push(Layer::Rule { on: Which::X, at: point.counted as f64, label });
    }
    let ends = [last.log_e_holds, last.log_e_refuted].map(powers_of_ten);
    let verdict = match decided {
        Some((point, direction)) => {
            format!("The evidence reached the threshold for {} after {}.", words[direction], point.counted)
        }
        None => "The evidence did not reach a threshold.".into(),
    };
    let plot = Plot {
        id,
        title: "E-values by trial, and the threshold for a verdict".into(),
        alt: format!(
            "{}: after {} the e-value {} is 10^{:.2}, and {} 10^{:.2}. {verdict}",
            claim_in_words(claim),
            counted(last.counted, "trial"),
            statements[0],
            ends[0],
            statements[1],
            ends[1]
        ),
        x: Axis::new("trials judged", Scale::Linear, Unit::One),
        y: Axis::new("e-value, as a power of ten", Scale::Linear, Unit::One)
            .showing(0.0, thresholds[0].max(thresholds[1])),
        series: statements.map(String::from).into(),
        layers,
    };
    let mut table = Table::new(&["E-value", "After the last trial", "Highest", "Threshold"]);
    for (((statement, end), line), enough) in statements.iter().zip(ends).zip([&holds, &refuted]).zip(thresholds) {
        let most = line.iter().fold(0.0, |most: f64, point| most.max(point[1]));
        let power = |exponent: f64| format!("10^{exponent:.2}");
        table.rows.push(vec![statement.to_string(), power(end), power(most), power(enough)]);
    }
    Some(Picture { kind: PictureKind::Evidence, plot, table })
}

/// Returns two clauses about e-values: one for evidence that supports the claim, and one for evidence against it.
/// Examples are "that it holds" and "that it does not".
pub(crate) fn statements(claim: &ClaimResult) -> [&'static str; 2] {
    match Amount::of_order(claim).map(|amount| amount.word(true)) {
        Some("fewer") => ["that it has fewer", "that it has more"],
        Some(_) => ["that it uses less", "that it uses more"],
        None if claim.asked.judging == Judging::Order => ["that it is faster", "that it is slower"],
        None => ["that it holds", "that it does not"],
    }
}

/// Returns the two e-values at the trial of the verdict, and the index of the one that reached its threshold: 0 for
/// *holds*, 1 for *refuted*. `None` if there is no verdict.
fn decided(path: &ClaimPath) -> Option<(EvidencePoint, usize)> {
    let decided_after = path.decided_after?;
    let point = *path.evidence.iter().find(|point| point.counted >= decided_after)?;
    let is_for = point.log_e_holds - path.log_threshold_holds >= point.log_e_refuted - path.log_threshold_refuted;
    Some((point, usize::from(!is_for)))
}

fn evidence_line(path: &ClaimPath, log_e: impl Fn(&EvidencePoint) -> f64) -> Vec<[f64; 2]> {
    let points = path.evidence.iter().map(|point| [point.counted as f64, powers_of_ten(log_e(point))]);
    [[0.0, 0.0]].into_iter().chain(points).collect()
}

fn powers_of_ten(log_e: f64) -> f64 {
    log_e / std::f64::consts::LN_10
}

fn rule(at: f64, label: String) -> Layer {
    Layer::Rule { on: Which::Y, at, label }
}

/// Number of straight segments in the curve of the density.
const STRETCHES: u32 = 160;
/// The probability in each of the two tails that are not drawn.
const LEFT_OUT: f64 = 1e-6;
/// The height at which the interval is drawn above the density, as a multiple of the peak of the density.
const ABOVE: f64 = 1.12;

/// Draws the density of a claim's rate: Beta(s+1, f+1), which is the posterior for a uniform prior after s successes
/// and f failures. A vertical line is at the claimed rate, and the interval of the claim is above the density. `None`
/// if no trial has a known outcome.
pub(super) fn density(claim: &ClaimResult, id: String) -> Option<Picture> {
    let rate = claim.rate?;
    let failures = failures(claim.judged());
    let tally = Tally::new(claim.successes + failures, claim.successes).ok().filter(|tally| tally.trials > 0)?;
    let points = density_line(tally)?;
    let peak = points.iter().fold(0.0, |most: f64, point| most.max(point[1]));
    let rule = |at: f64, label: String| Layer::Rule { on: Which::X, at, label };
    let claimed = exact_percent(claim.rate_claimed);
    let mut layers =
        vec![Layer::Area { series: Some(0), points }, rule(claim.rate_claimed, format!("claimed: {claimed}"))];
    if let Some(margin) = claim.asked.margin {
        let ends = [claim.rate_claimed - margin, claim.rate_claimed + margin];
        layers.extend(ends.map(|at| rule(at, "margin".into())));
    }
    let mut series = vec!["posterior for a uniform prior".to_string()];
    if let (Some(low), Some(high)) = (claim.rate_low, claim.rate_high) {
        let rows = vec![Interval { y: peak * ABOVE, value: rate, low, high, label: String::new() }];
        layers.push(Layer::Intervals { series: Some(1), rows });
        series.push(format!("interval, error {} at each end", error_in_words(claim.error)));
    }
    let figure = share_figure(claim);
    let open = if claim.unknown > 0 { format!(", {} were left open", claim.unknown) } else { String::new() };
    let plot = Plot {
        id,
        title: "Likely values of the rate".into(),
        alt: format!(
            "{}: {} of {} trials succeeded and {failures} failed{open}, a rate of {figure}; claimed: {claimed}.",
            claim_in_words(claim),
            tally.successes,
            claim.trials - claim.ties
        ),
        x: Axis::new("rate of success", Scale::Linear, Unit::One).percent(),
        y: Axis::new("probability density", Scale::Linear, Unit::One),
        series,
        layers,
    };
    let mut table = Table::new(&["", ""]);
    let credible = credible_interval(tally, claim.error).ok()?;
    let likely = Figure::of_share(Some(rate), Some(credible.low), Some(credible.high), claim.rate_claimed).range;
    for (name, cell) in [
        ("Trials", (claim.trials - claim.ties).to_string()),
        ("Successes", tally.successes.to_string()),
        ("Failures", failures.to_string()),
        ("Rate", percent(rate)),
        ("Interval of the rate, in percent", figure.range),
        ("Claimed", claimed),
        ("Error of the verdict, and of each end of the interval", error_in_words(claim.error)),
        ("Credible interval with this error for both ends together, in percent", likely),
    ] {
        table.rows.push(vec![name.into(), cell]);
    }
    Some(Picture { kind: PictureKind::Rate, plot: labelled(plot, Unit::One), table })
}

/// Returns the points of the density's curve: at evenly spaced rates and at the peak.
fn density_line(tally: Tally) -> Option<Vec<[f64; 2]>> {
    let seen = credible_interval(tally, 2.0 * LEFT_OUT).ok()?;
    let failures = tally.trials - tally.successes;
    // Without failures the peak is at rate 1, and without successes at rate 0, so the curve must reach that end.
    let low = if tally.successes == 0 { 0.0 } else { seen.low };
    let high = if failures == 0 { 1.0 } else { seen.high };
    let peak = tally.successes as f64 / tally.trials as f64;
    let mut rates: Vec<f64> =
        (0..=STRETCHES).map(|step| low + (high - low) * f64::from(step) / f64::from(STRETCHES)).chain([peak]).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    Some(rates.into_iter().map(|rate| [rate, density_at(tally, rate)]).collect())
}

/// Returns the density of Beta(s+1, f+1) at a rate p: (n+1)·C(n,s)·p^s·(1−p)^f. It is computed from logarithms, because
/// the powers alone would underflow.
fn density_at(tally: Tally, rate: f64) -> f64 {
    let (trials, successes) = (tally.trials as f64, tally.successes as f64);
    let at_end = |count: f64| if count == 0.0 { trials + 1.0 } else { 0.0 };
    match rate {
        rate if rate <= 0.0 => at_end(successes),
        rate if rate >= 1.0 => at_end(trials - successes),
        rate => (log_binomial(trials, successes, rate) + (trials + 1.0).ln()).exp(),
    }
}
