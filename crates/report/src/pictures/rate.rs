//! Where a rate lies, beside the one that was claimed.

use ascertain_engine::outcome::ClaimResult;
use ascertain_engine::unit::Unit;
use ascertain_stats::{Tally, credible_interval, log_binomial};

use super::claim::said;
use super::labelled::labelled;
use super::{Picture, PictureKind, Table};
use crate::figure::{Figure, chance, exact_percent, percent};
use crate::plot::{Axis, Interval, Layer, Plot, Scale, Which};

/// Of how many stretches the density's line is made.
const STRETCHES: u32 = 160;
/// The density is drawn where it is: so much of it is left out at each end.
const LEFT_OUT: f64 = 1e-6;
/// How far above the density's peak the interval lies.
const ABOVE: f64 = 1.12;

/// The density of a claim's rate, Beta(s+1, f+1): what a uniform prior makes of the successes and failures seen. With
/// the claimed rate, and with the claim's interval above it. Nothing without trials.
pub(super) fn density(claim: &ClaimResult, id: String) -> Option<Picture> {
    let rate = claim.rate?;
    let tally = Tally::new(claim.trials - claim.ties, claim.successes).ok()?;
    let points = line(tally)?;
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
        series.push(format!("interval, each end wrong with a chance of at most {}", chance(claim.error)));
    }
    let figure = Figure::of_share(claim.rate, claim.rate_low, claim.rate_high, claim.rate_claimed);
    let failures = tally.trials - tally.successes;
    let plot = Plot {
        id,
        title: "Where the rate lies: its posterior, from a uniform prior".into(),
        alt: format!(
            "{}: {} of {} trials succeeded and {failures} failed, a rate of {figure}; claimed are {claimed}.",
            said(claim),
            tally.successes,
            tally.trials
        ),
        x: Axis::new("rate of success", Scale::Linear, Unit::One).percent(),
        y: Axis::new("", Scale::Linear, Unit::One),
        series,
        layers,
    };
    let mut table = Table::new(&["", ""]);
    let credible = credible_interval(tally, claim.error).ok()?;
    let likely = Figure::of_share(Some(rate), Some(credible.low), Some(credible.high), claim.rate_claimed).range;
    let range = Figure::of_share(claim.rate, claim.rate_low, claim.rate_high, claim.rate_claimed).range;
    for (name, cell) in [
        ("Trials", tally.trials.to_string()),
        ("Successes", tally.successes.to_string()),
        ("Failures", failures.to_string()),
        ("Rate", percent(rate)),
        ("Its interval, in percent", range),
        ("Claimed", claimed),
        ("Error, and of each end of the interval", chance(claim.error)),
        ("Credible interval, both ends at that error, in percent", likely),
    ] {
        table.rows.push(vec![name.into(), cell]);
    }
    Some(Picture { kind: PictureKind::Rate, plot: labelled(plot, Unit::One), table })
}

/// The density at evenly spaced rates, and at its peak.
fn line(tally: Tally) -> Option<Vec<[f64; 2]>> {
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
