//! Compares every function with references of 80 digits, written by `vectors/make.py`. Bounds must be on their safe
//! side, and as close as their documentation promises.

use ascertain_stats::{Tally, bd0, credible_interval, log_e_holds, log_e_refuted, log_level, stirling_remainder};
use serde_json::Value;

/// Number of trials up to which the logarithm of an e-value is accurate to 1e-9. With more trials it is accurate to
/// 1e-6.
const SMALL: u64 = 1_000_000;

struct Row(Vec<String>);

impl Row {
    fn number(&self, column: usize) -> f64 {
        self.0[column].parse().unwrap()
    }

    fn tally(&self) -> Tally {
        Tally { trials: self.0[0].parse().unwrap(), successes: self.0[1].parse().unwrap() }
    }
}

fn rows(json: &str) -> Vec<Row> {
    let table: Value = serde_json::from_str(json).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let row = |values: &Value| Row(values.as_array().unwrap().iter().map(text).collect());
    let rows: Vec<Row> = table["rows"].as_array().unwrap().iter().map(row).collect();
    assert!(rows.len() > 30, "{} rows", rows.len());
    rows
}

/// Returns the documented error, plus a double's own resolution if the logarithm is in the millions.
fn tolerance(trials: u64, logarithm: f64) -> f64 {
    let absolute = if trials <= SMALL { 1e-9 } else { 1e-6 };
    absolute + 2e-14 * logarithm.abs()
}

#[test]
fn e_values_are_never_above_the_exact_ones() {
    for row in rows(include_str!("../../vectors/judged.json")) {
        let (tally, rate) = (row.tally(), row.number(2));
        for (computed, exact) in
            [(log_e_holds(tally, rate), row.number(3)), (log_e_refuted(tally, rate), row.number(4))]
        {
            assert!(computed <= exact, "{tally:?} at {rate}: {computed} above {exact}");
            assert!(exact - computed <= tolerance(tally.trials, exact), "{tally:?} at {rate}: {computed} for {exact}");
        }
    }
}

#[test]
fn csm_levels_are_never_below_the_exact_ones() {
    for row in rows(include_str!("../../vectors/judged.json")) {
        let (tally, rate, exact) = (row.tally(), row.number(2), row.number(5));
        let level = log_level(tally, rate);
        assert!(level >= exact, "{tally:?} at {rate}: {level} below {exact}");
        let allowed =
            if tally.trials <= SMALL { robbins_allowance(tally, rate) } else { tolerance(tally.trials, exact) };
        assert!(level - exact <= allowed, "{tally:?} at {rate}: {level} for {exact}");
    }
}

/// Returns the error of Robbins' bounds of the three factorials, plus the error of rounding up.
fn robbins_allowance(tally: Tally, rate: f64) -> f64 {
    let counts = [tally.successes as f64, tally.failures() as f64];
    let gap: f64 =
        if counts.iter().all(|&k| k > 1.0) { counts.iter().map(|k| 1.0 / (144.0 * k * k)).sum() } else { 0.0 };
    let n = tally.trials as f64;
    let summed = 2.0 * (n + 1.0) * (n + 2.0).ln() - counts[0] * rate.ln() - counts[1] * (-rate).ln_1p();
    gap + 2e-15 * summed
}

#[test]
fn credible_intervals_reach_outward_and_no_further() {
    for row in rows(include_str!("../../vectors/credible_interval.json")) {
        let (tally, error, low, high) = (row.tally(), row.number(2), row.number(3), row.number(4));
        let interval = credible_interval(tally, error).unwrap();
        assert!(interval.low <= low && interval.high >= high, "{tally:?}: {interval:?} within {low}..{high}");
        // Next to 1, an end can only be off by one unit in the last place.
        let slack = |end: f64| 1e-12 * end.min(1.0 - end) + (end.next_up() - end);
        assert!(low - interval.low <= slack(low), "{tally:?}: {interval:?} for {low}");
        assert!(interval.high - high <= slack(high), "{tally:?}: {interval:?} for {high}");
    }
}

/// Checks the credible interval from Beta(3973, 29), with a probability of 0.0005 beyond each end. The article on the
/// confidence sequence method gives 0.98821 to 0.99638, with 0.001 beyond each end.
#[test]
fn the_published_counts_have_this_credible_interval() {
    let interval = credible_interval(Tally { trials: 4000, successes: 3972 }, 0.001).unwrap();
    assert!((interval.low - 0.987_526_321_508_827_5).abs() < 1e-14, "{interval:?}");
    assert!((interval.high - 0.996_376_923_004_850_6).abs() < 1e-14, "{interval:?}");
}

#[test]
fn stirling_remainders_are_good_to_the_last_bit_or_so() {
    for row in rows(include_str!("../../vectors/stirling_remainder.json")) {
        let (n, exact) = (row.number(0), row.number(1));
        let allowed = if n < 1.0 { 1e-15 * exact.max(1.0) } else { 1e-16 };
        let error = stirling_remainder(n) - exact;
        assert!(error.abs() <= allowed, "{n}: off by {error}");
    }
}

#[test]
fn bd0_is_good_to_the_last_bits_relative_to_itself() {
    for row in rows(include_str!("../../vectors/bd0.json")) {
        let (x, m, exact) = (row.number(0), row.number(1), row.number(2));
        let error = bd0(x, m) - exact;
        assert!(error.abs() <= 2e-15 * exact, "bd0({x}, {m}): off by {error}");
    }
}
