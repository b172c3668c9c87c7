//! Determines how noisy this machine is, from a comparison of a command with itself.

use std::time::Duration;

use ascertain_stats::{OrderJudge, Verdict, quantile_sorted};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use crate::command::WALL;
use crate::experiment::Better;
use crate::outcome::Decision;
use crate::result::RunResult;

const MINUTE: Duration = Duration::from_secs(60);
/// Maximum number of pairs in a simulated minute of measurement. Judging more pairs would take too long.
const MOST_PAIRS: u64 = 4000;
/// Minimum share of the [`MINUTES`] simulated minutes of measurement in which a difference must be detected. A
/// difference that reaches this share counts as detectable.
const SEEN_SHARE: f64 = 0.8;
const MINUTES: usize = 40;
/// The smallest difference that is tried, as the logarithm of the ratio of two durations.
const LEAST: f64 = 1e-6;
/// The largest difference that is tried, as the logarithm of the ratio of two durations: one is twice as long.
const GREATEST: f64 = std::f64::consts::LN_2;
/// The smallest detectable difference is determined to within this factor.
const PRECISION: f64 = 1.05;

/// The name and version of the schema of [`Calibration`] in JSON.
pub const SCHEMA: &str = "ascertain.calibration/1";

/// The result of comparing a command with itself. Differences are shares of the time: 0.01 is 1 %. Unknown values are
/// `None`, and `null` in JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// Name and version of the schema, [`SCHEMA`].
    pub schema: String,
    /// The command line that was compared with itself.
    pub command: String,
    /// Seed of the random numbers in the run and in the simulated minutes.
    pub seed: u64,
    /// Highest probability of a wrong decision, in the run and in each simulated minute.
    pub error: f64,
    /// Duration of the run, in seconds.
    pub elapsed_s: f64,
    /// Number of pairs that were measured.
    pub pairs: u64,
    /// Median difference between the two executions of a pair.
    pub difference_median: Option<f64>,
    /// 95th percentile of the difference between the two executions of a pair.
    pub difference_p95: Option<f64>,
    /// The answer to the question which of the two commands is faster; `None` if there is none. They are the same
    /// command, so `faster` and `slower` are false alarms.
    pub decision: Option<Decision>,
    /// Number of pairs that can be measured in a minute.
    pub minute_pairs: u64,
    /// Number of pairs that are judged in each simulated minute. It is `minute_pairs`, unless judging that many would
    /// take too long.
    pub calculated_pairs: u64,
    /// A difference counts as detectable if it is detected in at least this share of the simulated minutes.
    pub seen_share: f64,
    /// Smallest difference that is detectable in a minute. `None` if no difference up to
    /// [`seen_difference_limit`](Self::seen_difference_limit) is detectable.
    pub seen_difference: Option<f64>,
    /// Largest difference for which detection was simulated.
    pub seen_difference_limit: f64,
}

/// Determines the noise of this machine from a run that compared a command with itself until the time limit. Returns
/// `None` if the run did not have exactly two arms.
#[must_use]
pub fn calibrate(run: &RunResult) -> Option<Calibration> {
    let config = &run.plan.config;
    let [first, second] = run.observations.arms() else { return None };
    let ratios = second.ratios_to(first, WALL, Better::Lower);
    // If both executions of a pair were stopped at their time limit, their ratio is unknown, and the pair is left out.
    let log_ratios: Vec<f64> = (0..ratios.len()).filter_map(|pair| ratios.bounds(pair).log_ratio()).collect();
    let mut differences: Vec<f64> = log_ratios.iter().map(|log_ratio| log_ratio.abs()).collect();
    differences.sort_unstable_by(f64::total_cmp);
    // `elapsed` of a continued run only covers the trials since it was continued; extrapolate to all trials.
    let measured_pairs = log_ratios.len().saturating_sub(run.recorded_trials).max(1);
    let elapsed_s = run.elapsed.as_secs_f64() * (log_ratios.len() as f64 / measured_pairs as f64).max(1.0);
    let minute_pairs = (log_ratios.len() as f64 / elapsed_s * MINUTE.as_secs_f64()) as u64;
    let calculated_pairs = minute_pairs.min(MOST_PAIRS);
    let judge = OrderJudge::new(config.error / 2.0, config.error / 2.0).ok()?;
    let seen = seen_difference(&log_ratios, calculated_pairs, &judge, config.seed);
    Some(Calibration {
        schema: SCHEMA.into(),
        command: first.arm.variant.clone(),
        seed: config.seed,
        error: config.error,
        elapsed_s,
        pairs: log_ratios.len() as u64,
        difference_median: quantile_sorted(&differences, 0.5).map(f64::exp_m1),
        difference_p95: quantile_sorted(&differences, 0.95).map(f64::exp_m1),
        decision: run.outcome.claims.first().and_then(|claim| claim.decision),
        minute_pairs,
        calculated_pairs,
        seen_share: SEEN_SHARE,
        seen_difference: seen.map(f64::exp_m1),
        seen_difference_limit: GREATEST.exp_m1(),
    })
}

/// Returns the smallest difference that `judge` detects often enough, as the logarithm of a ratio. Often enough means:
/// within `pairs` pairs, in at least the share [`SEEN_SHARE`] of the simulated minutes. Returns `None` if this
/// difference is larger than [`GREATEST`].
///
/// `noise` has the log-ratios of the measured pairs. For each simulated pair, one of them is drawn with replacement. It
/// gets a random sign, because the order within a pair is random.
fn seen_difference(noise: &[f64], pairs: u64, judge: &OrderJudge, seed: u64) -> Option<f64> {
    if noise.is_empty() || !is_seen(GREATEST, noise, pairs, judge, seed) {
        return None;
    }
    let (mut unseen, mut seen) = (LEAST, GREATEST);
    while seen / unseen > PRECISION {
        let middle = (unseen * seen).sqrt();
        let end = if is_seen(middle, noise, pairs, judge, seed) { &mut seen } else { &mut unseen };
        *end = middle;
    }
    Some(seen)
}

/// Returns whether `judge` detects the difference in enough of the simulated minutes. The same noise is used for every
/// difference, so that a larger difference cannot be harder to detect by chance.
fn is_seen(difference: f64, noise: &[f64], pairs: u64, judge: &OrderJudge, seed: u64) -> bool {
    let mut misses_left = MINUTES - (SEEN_SHARE * MINUTES as f64).ceil() as usize;
    (0..MINUTES as u64).all(|minute| {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(minute));
        let mut judge = judge.clone();
        let verdict = (0..pairs).find_map(|_| {
            let size = noise[random.random_range(..noise.len())];
            judge.observe(difference + if random.random() { size } else { -size })
        });
        let is_right = verdict == Some(Verdict::Holds);
        let is_left = is_right || misses_left > 0;
        misses_left -= usize::from(!is_right && is_left);
        is_left
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(noise: &[f64], pairs: u64) -> Option<f64> {
        seen_difference(noise, pairs, &OrderJudge::new(0.0005, 0.0005).unwrap(), 7)
    }

    /// Returns noise for tests: quantiles of a logistic distribution with this scale.
    fn noise(scale: f64) -> Vec<f64> {
        (1..500).map(|rank| f64::from(rank) / 500.0).map(|q| scale * (q / (1.0 - q)).ln()).collect()
    }

    #[test]
    fn without_noise_a_tiny_difference_is_seen_in_as_few_pairs_as_decide() {
        assert_eq!(seen(&[0.0], 13), None, "no verdict is possible so early");
        assert!(seen(&[0.0], 14).unwrap() < 0.001);
        assert!(seen(&[0.0], 20).unwrap() <= LEAST * PRECISION);
        assert_eq!(seen(&[], 100), None);
    }

    #[test]
    fn twice_the_noise_hides_twice_the_difference_and_more_pairs_show_smaller_ones() {
        let [one, two] = [0.01, 0.02].map(|scale| seen(&noise(scale), 100).unwrap());
        assert!((two / one - 2.0).abs() < 0.1, "{one} {two}");
        let more = seen(&noise(0.01), 400).unwrap();
        assert!((0.4..0.65).contains(&(more / one)), "about half: {one} {more}");
        assert_eq!(seen(&noise(5.0), 100), None, "this noise hides even twice the time");
    }

    /// The result must lie between two known values. The first is the smallest difference that any test can detect. The
    /// second is 1.1 times the smallest difference that a sign test detects.
    #[test]
    fn what_is_seen_lies_between_what_is_known_of_tests() {
        let (pairs, scale, error) = (200.0_f64, 0.01, 0.0005_f64);
        let shift = seen(&noise(scale), pairs as u64).unwrap() / scale;
        // The first value is for a test that looks only once and uses the full Fisher information. A logistic
        // distribution has 1/3 per pair. The value is the z-value of the error plus that of 80 %, divided by √(n/3).
        let limit = (3.29 + 0.84) / (pairs / 3.0).sqrt();
        // The second value: the shift at which a sign test decides 80 % of the runs within this number of pairs.
        let judge = ascertain_stats::Judge::new(0.5, error).unwrap();
        let by_signs = (1..200).map(|step| f64::from(step) * 0.01).find(|shift| {
            let wins = 1.0 / (1.0 + (-shift).exp());
            ascertain_stats::power(&judge, wins, pairs as u64).unwrap().holds >= SEEN_SHARE
        });
        assert!((limit..by_signs.unwrap() * 1.1).contains(&shift), "{limit} {shift} {by_signs:?}");
    }

    #[test]
    fn a_minute_is_drawn_from_the_seed() {
        let judge = OrderJudge::new(0.0005, 0.0005).unwrap();
        let drawn = |seed: u64| seen_difference(&noise(0.01), 50, &judge, seed);
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(1000));
    }
}
