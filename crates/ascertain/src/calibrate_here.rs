//! How noisy this machine is, and what difference can be seen on it in a minute.

use std::time::Duration;

use ascertain_engine::command::{CommandSet, WALL};
use ascertain_engine::experiment::Better;
use ascertain_engine::plan::{Config, Plan};
use ascertain_report::calibration::{Calibration, SCHEMA};
use ascertain_stats::{OrderJudge, Verdict, quantile_sorted};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::compare::{self, Compare};
use crate::error::Error;
use crate::request::{Request, Terms};
use crate::run::Done;

/// Its name in `run.json`, which is that of its subcommand.
pub const USE_CASE: &str = "calibrate-here";

const MAX_TIME: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_secs(60);
/// More pairs than that take too long to judge so often.
const MOST_PAIRS: u64 = 4000;
/// In so many of these minutes, and a minute is made up so often.
const SEEN_SHARE: f64 = 0.8;
const MINUTES: usize = 40;
/// The differences that are looked for, as logarithms of a ratio: up to one of twice the time.
const LEAST: f64 = 1e-6;
const GREATEST: f64 = std::f64::consts::LN_2;
/// The difference is found within such a factor.
const PRECISION: f64 = 1.05;

/// A command to be compared with itself.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrateHere {
    /// Its command line.
    pub line: String,
    /// Error, time, trials, seed.
    pub terms: Terms,
}

impl Default for CalibrateHere {
    /// A command that is everywhere and does nothing.
    fn default() -> CalibrateHere {
        CalibrateHere { line: "true".into(), terms: Terms::default() }
    }
}

impl CalibrateHere {
    /// What to measure and judge: a comparison that goes on until the time is up, whatever is decided. [`calibration`]
    /// says what came of it.
    ///
    /// # Errors
    /// When the command line is none.
    pub fn plan(self) -> Result<(Request, Plan), Error> {
        let commands = CommandSet {
            // What takes longer has no pair in a minute.
            time_limit: Some(MINUTE),
            ..CommandSet::of(compare::USE_CASE, [&self.line, &self.line])
        };
        let max_time = self.terms.max_time.or(Some(MAX_TIME));
        let terms = Terms { max_time, ..self.terms };
        let (_, plan) = Compare { terms, ..Compare::new(commands) }.plan()?;
        let config = Config { until_time_is_up: true, ..plan.config };
        Ok((Request::new(USE_CASE), Plan { config, ..plan }))
    }
}

/// What a run of [`CalibrateHere::plan`] says of this machine.
///
/// # Errors
/// When the run is none of such a plan.
pub fn calibration(done: &Done) -> Result<Calibration, Error> {
    let config = &done.plan.config;
    let [first, second] = done.run.observations.arms() else {
        return Err(Error::Request("a calibration is of a command and itself".into()));
    };
    let ratios = second.ratios_to(first, WALL, Better::Lower);
    // Where both were stopped, nothing is known.
    let log_ratios: Vec<f64> = (0..ratios.len()).filter_map(|pair| ratios.bounds(pair).log_ratio()).collect();
    let mut differences: Vec<f64> = log_ratios.iter().map(|log_ratio| log_ratio.abs()).collect();
    differences.sort_unstable_by(f64::total_cmp);
    // Of a run that went on, at the pace of what was measured since.
    let measured_pairs = log_ratios.len().saturating_sub(done.recorded_trials).max(1);
    let elapsed_s = done.elapsed.as_secs_f64() * (log_ratios.len() as f64 / measured_pairs as f64).max(1.0);
    let minute_pairs = (log_ratios.len() as f64 / elapsed_s * MINUTE.as_secs_f64()) as u64;
    let calculated_pairs = minute_pairs.min(MOST_PAIRS);
    let judge = OrderJudge::new(config.error / 2.0, config.error / 2.0);
    let judge = judge.map_err(|error| Error::Request(error.to_string()))?;
    let seen = seen_difference(&log_ratios, calculated_pairs, &judge, config.seed);
    Ok(Calibration {
        schema: SCHEMA.into(),
        command: first.arm.variant.clone(),
        seed: config.seed,
        error: config.error,
        elapsed_s,
        pairs: log_ratios.len() as u64,
        difference_median: quantile_sorted(&differences, 0.5).map(f64::exp_m1),
        difference_p95: quantile_sorted(&differences, 0.95).map(f64::exp_m1),
        decision: done.run.outcome.claims.first().and_then(|claim| claim.decision),
        minute_pairs,
        calculated_pairs,
        seen_share: SEEN_SHARE,
        seen_difference: seen.map(f64::exp_m1),
        seen_difference_limit: GREATEST.exp_m1(),
    })
}

/// The least difference, as a logarithm of a ratio, that the judge sees in so many pairs in at least [`SEEN_SHARE`] of
/// the minutes; none where that is more than [`GREATEST`].
///
/// The noise of a minute is made up of what was seen of a command against itself, with replacement: each log-ratio is
/// as likely as its opposite, for a coin decides which of the two runs first.
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

/// Whether that happens in enough of the minutes. They are the same for each difference, so that a greater one is not
/// seen less often by chance.
fn is_seen(difference: f64, noise: &[f64], pairs: u64, judge: &OrderJudge, seed: u64) -> bool {
    let mut missable = MINUTES - (SEEN_SHARE * MINUTES as f64).ceil() as usize;
    (0..MINUTES as u64).all(|minute| {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(minute));
        let mut judge = judge.clone();
        let verdict = (0..pairs).find_map(|_| {
            let size = noise[random.random_range(..noise.len())];
            judge.observe(difference + if random.random() { size } else { -size })
        });
        let is_right = verdict == Some(Verdict::Holds);
        let is_left = is_right || missable > 0;
        missable -= usize::from(!is_right && is_left);
        is_left
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(noise: &[f64], pairs: u64) -> Option<f64> {
        seen_difference(noise, pairs, &OrderJudge::new(0.0005, 0.0005).unwrap(), 7)
    }

    /// The quantiles of a logistic distribution, in an order that does not matter.
    fn noise(scale: f64) -> Vec<f64> {
        (1..500).map(|rank| f64::from(rank) / 500.0).map(|q| scale * (q / (1.0 - q)).ln()).collect()
    }

    #[test]
    fn without_noise_a_tiny_difference_is_seen_in_as_few_pairs_as_decide() {
        assert_eq!(seen(&[0.0], 13), None, "no verdict comes as soon");
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
        assert_eq!(seen(&noise(5.0), 100), None, "twice the time is lost in that");
    }

    /// What a test of signs alone is known to need lies above, and the limit of any test below.
    #[test]
    fn what_is_seen_lies_between_what_is_known_of_tests() {
        let (pairs, scale, error) = (200.0_f64, 0.01, 0.0005_f64);
        let shift = seen(&noise(scale), pairs as u64).unwrap() / scale;
        // A test of one look that has all of the information, 1/3 a pair: z of the error plus z of 80 %, by √(n/3).
        let limit = (3.29 + 0.84) / (pairs / 3.0).sqrt();
        // By signs: the shift at which `Judge` has decided 80 % after so many pairs.
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
