//! Balls into bins: how full is a row of bins when its first bin is full? The same distribution is sampled in two ways:
//! by throwing the balls, and by drawing the outcome.

use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Arm, ArmId, Better, Experiment, Factor, Metric, Samples, Session, Setup, Spec, TargetError, Trial,
};
use ascertain_sys::clock;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Gamma, Poisson};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The experiment `fill-rate`: balls into bins.
pub struct FillRate;

const FILL_RATE: usize = 0;
const TIME: usize = 1;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "How full a row of bins is when its first bin is full".into(),
    variants: vec![
        (
            "drawn",
            "final counts of the bins, drawn from their exact distribution, in time proportional to the number of bins",
        )
            .into(),
        ("thrown", "every ball thrown, in time proportional to the number of balls").into(),
    ],
    factors: vec![
        Factor::integer("bins", "number of bins", 1000, 1..=1_000_000),
        Factor::integer("capacity", "balls that fit into a bin", 30_000, 1..=100_000_000),
    ],
    metrics: vec![
        Metric::share("fill_rate", "share of all positions that are taken when the first bin is full", Better::Higher),
        Metric::time("time", "time to sample one fill rate"),
    ],
    ..Spec::new("fill-rate", include_str!("README.md"))
});

impl Experiment for FillRate {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let row = |arm: &Arm| {
            let sample = if arm.variant == "drawn" { drawn } else { thrown };
            Ok(Row { bins: arm.integer("bins")?, capacity: arm.integer("capacity")?, sample })
        };
        Ok(Box::new(Rows(arms.iter().map(row).collect::<Result<_, TargetError>>()?)))
    }
}

struct Row {
    bins: u64,
    capacity: u64,
    sample: Sample,
}

struct Rows(Vec<Row>);

/// A function that draws a fill rate for `bins` bins of `capacity` places each. The fill rate is the share of all
/// places that are taken when the first bin is full.
type Sample = fn(bins: u64, capacity: u64, rng: &mut Xoshiro256PlusPlus) -> f64;

impl Session for Rows {
    /// Checks the mean fill rate of many draws, because a single draw has no right answer. The expected mean is
    /// computed by throwing balls, with another seed. The rows of bins are small, so throwing is quick.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        const SAMPLES: u64 = 200;
        let mean = |sample: Sample, seed| {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            (0..SAMPLES).map(|_| sample(8, 32, &mut rng)).sum::<f64>() / SAMPLES as f64
        };
        let (seen, expected) = (mean(self.0[arm].sample, 1), mean(thrown, 2));
        // The standard deviation of a single fill rate of 8 bins of capacity 32 is 0.085. The difference of the means
        // may be at most six of its standard deviations.
        if (seen - expected).abs() > 6.0 * 0.085 * (2.0 / SAMPLES as f64).sqrt() {
            return Err(TargetError::WrongAnswer(format!(
                "the mean fill rate is {seen}, but {expected} by throwing the balls"
            )));
        }
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let Row { bins, capacity, sample } = self.0[arm];
        // Each arm has a different stream, because the arms of a trial are independent.
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(trial.seed ^ (arm as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let start_ns = clock::now_ns();
        let fill_rate = sample(bins, capacity, &mut rng);
        let elapsed_ns = clock::now_ns() - start_ns;
        out.push(FILL_RATE, fill_rate);
        out.push(TIME, elapsed_ns as f64);
        Ok(())
    }
}

/// Throws balls at random into `bins` bins of `capacity` places until one bin is full. Returns the share of all places
/// that are taken by then. This is the reference method; its time is proportional to the number of balls.
fn thrown(bins: u64, capacity: u64, rng: &mut Xoshiro256PlusPlus) -> f64 {
    let mut held = vec![0_u64; bins as usize];
    let mut balls = 0_u64;
    loop {
        let bin = &mut held[rng.random_range(0..bins as usize)];
        *bin += 1;
        balls += 1;
        if *bin == capacity {
            return share(balls, bins, capacity);
        }
    }
}

/// Draws the fill rate from the same distribution as throwing balls, in time proportional to the number of bins.
///
/// If balls arrive at each bin as independent Poisson processes of rate one, the bin of the next ball is uniform, as
/// with thrown balls. The time until a bin is full has the distribution Gamma(capacity). Let t be the first of these
/// times. At t, each of the other bins has a Poisson(t) number of balls, on the condition that this number is below the
/// capacity.
///
/// # Panics
/// Panics if `bins` or `capacity` is zero.
pub fn drawn(bins: u64, capacity: u64, rng: &mut Xoshiro256PlusPlus) -> f64 {
    let gamma = Gamma::new(capacity as f64, 1.0).expect("the capacity is positive");
    let full_at = (0..bins).map(|_| gamma.sample(rng)).fold(f64::INFINITY, f64::min);
    let arrivals = Poisson::new(full_at).expect("a Gamma time is positive and finite");
    let others = (1..bins).map(|_| {
        loop {
            let balls: f64 = arrivals.sample(rng);
            if balls < capacity as f64 {
                break balls as u64;
            }
        }
    });
    share(capacity + others.sum::<u64>(), bins, capacity)
}

fn share(balls: u64, bins: u64, capacity: u64) -> f64 {
    balls as f64 / (bins as f64 * capacity as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rng(seed: u64) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(seed)
    }

    #[test]
    fn one_bin_is_full_when_it_is_full() {
        assert_eq!(drawn(1, 30, &mut rng(1)), 1.0);
        assert_eq!(thrown(1, 30, &mut rng(1)), 1.0);
    }

    #[test]
    fn bins_of_one_stop_at_the_first_ball() {
        assert_eq!(drawn(10, 1, &mut rng(2)), 0.1);
        assert_eq!(thrown(10, 1, &mut rng(2)), 0.1);
    }

    /// Two bins with two places each: with probability ½ the second ball goes to the same bin as the first (2 of 4).
    /// Otherwise the third ball fills a bin (3 of 4).
    #[test]
    fn two_bins_of_two_are_a_fair_coin() {
        for sample in [drawn as Sample, thrown] {
            let mut rng = rng(3);
            let draws = 40_000;
            let low = (0..draws).filter(|_| sample(2, 2, &mut rng) == 0.5).count() as f64;
            // The tolerance is five standard deviations.
            assert!((low / f64::from(draws) - 0.5).abs() < 5.0 * 0.5 / f64::from(draws).sqrt(), "{low}");
        }
    }

    /// Drawn and thrown fill rates have the same distribution, according to the Kolmogorov–Smirnov distance of two
    /// samples.
    #[test]
    fn drawn_is_distributed_as_thrown() {
        let (mut a, mut b) = (rng(4), rng(5));
        let n = 4000;
        let sorted = |values: &mut Vec<f64>| values.sort_by(f64::total_cmp);
        let mut drawn: Vec<f64> = (0..n).map(|_| drawn(8, 40, &mut a)).collect();
        let mut thrown: Vec<f64> = (0..n).map(|_| thrown(8, 40, &mut b)).collect();
        sorted(&mut drawn);
        sorted(&mut thrown);
        let below = |values: &[f64], x: f64| values.partition_point(|&v| v <= x) as f64 / n as f64;
        let distance = drawn.iter().map(|&x| (below(&drawn, x) - below(&thrown, x)).abs()).fold(0.0, f64::max);
        // If the distributions are the same, the distance exceeds this limit once in 10^5 times.
        assert!(distance < 2.47 * (2.0 / n as f64).sqrt(), "{distance}");
    }
}
