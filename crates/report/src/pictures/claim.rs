//! The pictures of a claim: where its rate lies beside the one that was claimed, and the path of the evidence to its
//! threshold; the others are in `paired`.

use ascertain_engine::claim::Judging;
use ascertain_engine::outcome::ClaimResult;
use ascertain_engine::recorded::{ClaimPath, EvidencePoint, RecordedRun};
use ascertain_engine::unit::Unit;
use ascertain_stats::{Tally, credible_interval, log_binomial};

use super::labelled::labelled;
use super::paired::{paired, values};
use super::{Picture, PictureKind, Table, names};
use crate::amount::Amount;
use crate::clause::failures;
use crate::figure::{Figure, exact_percent, odds, percent};
use crate::plot::{Axis, Interval, Layer, Plot, Scale, Which};
use crate::text::counted;

/// The pictures of a claim, by its index, what its sentence speaks of first: the paired ratios or differences in the
/// order measured, with their bound; for a rate the values that the predicate speaks of, and where it lies beside the
/// one that is claimed; then the path of the evidence to its threshold.
///
/// None for a claim without chance in it, or of which nothing was measured.
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

/// Whether the rate says more than the median ratio does.
fn is_about_a_rate(claim: &ClaimResult) -> bool {
    claim.asked.judging == Judging::Rate && !(claim.asked.is_comparison() && claim.rate_claimed == 0.5)
}

/// The claim in a few words, for a picture's description.
pub(super) fn said(claim: &ClaimResult) -> &str {
    // What an order says is what it asks.
    let is_statement = claim.asked.judging != Judging::Order && !claim.says.is_empty();
    if is_statement { &claim.says } else { &claim.id }
}

/// What a verdict for and one against the claim are called.
pub(super) fn directions(claim: &ClaimResult) -> [&'static str; 2] {
    match Amount::of_order(claim) {
        Some(amount) => [amount.word(true), amount.word(false)],
        None if claim.asked.judging == Judging::Order => ["faster", "slower"],
        None => ["holds", "refuted"],
    }
}

/// The evidence in both directions after each trial, in powers of ten, from the even odds that it starts with.
/// Nothing where none grows.
pub(super) fn evidence(claim: &ClaimResult, path: &ClaimPath, id: String) -> Option<Picture> {
    let last = path.evidence.last()?;
    let (words, statements) = (directions(claim), statements(claim));
    let holds = evidence_line(path, |point| point.log_e_holds);
    let refuted = evidence_line(path, |point| point.log_e_refuted);
    let thresholds = [path.log_threshold_holds, path.log_threshold_refuted].map(powers_of_ten);
    let mut layers: Vec<Layer> = match thresholds {
        [one, other] if one == other => vec![rule(one, "enough to decide".into())],
        both => both.iter().zip(words).map(|(at, word)| rule(*at, format!("enough for {word}"))).collect(),
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
        Some((point, direction)) => format!("It was enough for {} after {}.", words[direction], point.counted),
        None => "That is not enough to decide.".into(),
    };
    let plot = Plot {
        id,
        title: "The path of the evidence to its threshold".into(),
        alt: format!(
            "{}: after {} the evidence {} is 10^{:.2}, and {} 10^{:.2}. {verdict}",
            said(claim),
            counted(last.counted, "trial"),
            statements[0],
            ends[0],
            statements[1],
            ends[1]
        ),
        x: Axis::new("trials judged", Scale::Linear, Unit::One),
        y: Axis::new("evidence in powers of ten", Scale::Linear, Unit::One)
            .showing(0.0, thresholds[0].max(thresholds[1])),
        series: statements.map(String::from).into(),
        layers,
    };
    let mut table = Table::new(&["Evidence", "After the last trial", "At most", "Enough"]);
    for (((statement, end), line), enough) in statements.iter().zip(ends).zip([&holds, &refuted]).zip(thresholds) {
        let most = line.iter().fold(0.0, |most: f64, point| most.max(point[1]));
        let power = |exponent: f64| format!("10^{exponent:.2}");
        table.rows.push(vec![statement.to_string(), power(end), power(most), power(enough)]);
    }
    Some(Picture { kind: PictureKind::Evidence, plot, table })
}

/// What either line is evidence of.
pub(crate) fn statements(claim: &ClaimResult) -> [&'static str; 2] {
    match Amount::of_order(claim).map(|amount| amount.word(true)) {
        Some("fewer") => ["that it has fewer", "that it has more"],
        Some(_) => ["that it uses less", "that it uses more"],
        None if claim.asked.judging == Judging::Order => ["that it is faster", "that it is slower"],
        None => ["that it holds", "that it does not"],
    }
}

/// What decided: the evidence after the trial at which the verdict fell, and the direction's index.
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

/// Of how many stretches the density's line is made.
const STRETCHES: u32 = 160;
/// The density is drawn where it is: so much of it is left out at each end.
const LEFT_OUT: f64 = 1e-6;
/// How far above the density's peak the interval lies.
const ABOVE: f64 = 1.12;

/// The density of a claim's rate, Beta(s+1, f+1): what a uniform prior makes of the successes and failures seen. With
/// the claimed rate, and with the claim's interval above it. Nothing without trials that came out one way or the other.
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
    let mut series = vec!["posterior of a uniform prior".to_string()];
    if let (Some(low), Some(high)) = (claim.rate_low, claim.rate_high) {
        let rows = vec![Interval { y: peak * ABOVE, value: rate, low, high, label: String::new() }];
        layers.push(Layer::Intervals { series: Some(1), rows });
        series.push(format!("interval, error {} at each end", odds(claim.error)));
    }
    let figure = Figure::of_share(claim.rate, claim.rate_low, claim.rate_high, claim.rate_claimed);
    let open = if claim.unknown > 0 { format!(", {} were left open", claim.unknown) } else { String::new() };
    let plot = Plot {
        id,
        title: "Where the rate lies".into(),
        alt: format!(
            "{}: {} of {} trials succeeded and {failures} failed{open}, a rate of {figure}; claimed are {claimed}.",
            said(claim),
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
    let range = Figure::of_share(claim.rate, claim.rate_low, claim.rate_high, claim.rate_claimed).range;
    for (name, cell) in [
        ("Trials", (claim.trials - claim.ties).to_string()),
        ("Successes", tally.successes.to_string()),
        ("Failures", failures.to_string()),
        ("Rate", percent(rate)),
        ("Its interval, in percent", range),
        ("Claimed", claimed),
        ("Error, and of each end of the interval", odds(claim.error)),
        ("Credible interval, both ends at that error, in percent", likely),
    ] {
        table.rows.push(vec![name.into(), cell]);
    }
    Some(Picture { kind: PictureKind::Rate, plot: labelled(plot, Unit::One), table })
}

/// The density at evenly spaced rates, and at its peak.
fn density_line(tally: Tally) -> Option<Vec<[f64; 2]>> {
    let seen = credible_interval(tally, 2.0 * LEFT_OUT).ok()?;
    let failures = tally.trials - tally.successes;
    // Where nothing failed the density is greatest at 1, and where nothing succeeded at 0.
    let low = if tally.successes == 0 { 0.0 } else { seen.low };
    let high = if failures == 0 { 1.0 } else { seen.high };
    let peak = tally.successes as f64 / tally.trials as f64;
    let mut rates: Vec<f64> =
        (0..=STRETCHES).map(|step| low + (high - low) * f64::from(step) / f64::from(STRETCHES)).chain([peak]).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    Some(rates.into_iter().map(|rate| [rate, density_at(tally, rate)]).collect())
}

/// The density of Beta(s+1, f+1), (n+1)·C(n,s)·p^s·(1−p)^f, by way of its logarithm: the powers alone underflow.
fn density_at(tally: Tally, rate: f64) -> f64 {
    let (trials, successes) = (tally.trials as f64, tally.successes as f64);
    let at_end = |count: f64| if count == 0.0 { trials + 1.0 } else { 0.0 };
    match rate {
        rate if rate <= 0.0 => at_end(successes),
        rate if rate >= 1.0 => at_end(trials - successes),
        rate => (log_binomial(trials, successes, rate) + (trials + 1.0).ln()).exp(),
    }
}
