//! The exact test by reshuffling: is the difference between the fill rates of two kinds of rows of bins due to chance?
//! The rows are drawn once, and reshuffled in each trial.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Arm, ArmId, Better, Experiment, Factor, Metric, Samples, Session, Setup, Spec, TargetError, Trial,
};
use ascertain_engine::unit::Unit;
use ascertain_permute::{Alternative, Question, Reshuffles, Sample, Technique};
use ascertain_sys::clock;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::fill_rate::drawn;

/// The experiment `reshuffle`: reshuffles of two samples of fill rates.
pub struct Reshuffle;

const EXCEEDS: usize = 0;
const DIFFERENCE: usize = 1;
const TIME: usize = 2;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "Is a difference of fill rates due to chance?".into(),
    variants: vec![
        ("mask", "a random bit mask that selects the fill rates of one sample, without moving any value").into(),
        ("shuffle", "the fill rates shuffled and split").into(),
    ],
    factors: vec![Factor::integer(
        "rows",
        "number of rows in each of the two samples; each row consists of bins, and has one fill rate",
        10_000,
        2..=1_000_000,
    )],
    metrics: vec![
        Metric::new(
            "exceeds",
            "1 if the two samples of rows differ at least as much after the reshuffle as before it",
            Unit::One,
            Better::Lower,
        ),
        Metric::new(
            "difference",
            "difference of the mean fill rates of the two samples after the reshuffle",
            Unit::One,
            Better::Lower,
        ),
        Metric::time("time", "time for one reshuffle and for computing the two means"),
    ],
    ..Spec::new("reshuffle", include_str!("README.md"))
});

impl Experiment for Reshuffle {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let mut drawn: BTreeMap<u64, Rc<[Sample; 2]>> = BTreeMap::new();
        let tests = arms.iter().zip(0..).map(|(arm, number)| {
            let rows = arm.integer("rows")?;
            let samples = drawn.entry(rows).or_insert_with(|| Rc::new(fill_rates(rows as usize, setup.seed)));
            let technique = if arm.variant == "mask" { Technique::Mask } else { Technique::Shuffle };
            ReshuffleTest::new(samples, technique, stream(setup.seed, number))
        });
        Ok(Box::new(ReshuffleSession { tests: tests.collect::<Result<_, _>>()? }))
    }
}

/// Number of threads that draw the fill rates of rows of bins, each with its own stream of random numbers. The number
/// is the same on every machine, so that the fill rates depend only on the seed.
const STREAMS: usize = 8;

/// Draws two samples of `rows` fill rates each: for rows of 100 bins of 60,000 balls, and for rows of 1,000 bins of
/// 128,000 balls.
fn fill_rates(rows: usize, seed: u64) -> [Sample; 2] {
    [("100 bins of 60,000", 100, 60_000), ("1,000 bins of 128,000", 1000, 128_000)].map(|(name, bins, capacity)| {
        let mut values = vec![0.0; rows];
        std::thread::scope(|scope| {
            for (chunk, number) in values.chunks_mut(rows.div_ceil(STREAMS)).zip(bins..) {
                scope.spawn(move || {
                    let mut random = Xoshiro256PlusPlus::seed_from_u64(stream(seed, number));
                    chunk.fill_with(|| drawn(bins, capacity, &mut random));
                });
            }
        });
        Sample::new(name, values)
    })
}

/// Returns a seed for the stream of random numbers with this index. Different streams get different seeds.
fn stream(seed: u64, number: u64) -> u64 {
    seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

struct ReshuffleTest {
    reshuffles: Reshuffles,
    /// Theoretical variance, over reshuffles, of the difference between the means of the two samples.
    variance: f64,
}

struct ReshuffleSession {
    tests: Vec<ReshuffleTest>,
}

impl ReshuffleTest {
    fn new(samples: &[Sample; 2], technique: Technique, seed: u64) -> Result<ReshuffleTest, TargetError> {
        let question = Question { alternative: Alternative::Greater, ..Question::default() };
        let reshuffles = Reshuffles::with_technique(samples.to_vec(), &question, seed, technique);
        let reshuffles = reshuffles.map_err(|error| TargetError::Failed(error.to_string()))?;
        let pooled: Vec<f64> = samples.iter().flat_map(|sample| sample.values.iter().copied()).collect();
        let count = pooled.len() as f64;
        let mean = pooled.iter().sum::<f64>() / count;
        let spread = pooled.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let variance = spread * samples.iter().map(|sample| 1.0 / sample.values.len() as f64).sum::<f64>();
        Ok(ReshuffleTest { reshuffles, variance })
    }
}

impl Session for ReshuffleSession {
    /// Checks the variance of the reshuffled differences. It must match the known variance of sampling without
    /// replacement.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        const DRAWS: u32 = 200;
        let ReshuffleTest { reshuffles, variance } = &mut self.tests[arm];
        let squares: f64 = (0..DRAWS).map(|_| reshuffles.draw().value.powi(2)).sum();
        let seen = squares / f64::from(DRAWS) / *variance;
        // The mean of 200 squares has a relative standard deviation of 0.1.
        if (seen - 1.0).abs() > 0.6 {
            return Err(TargetError::WrongAnswer(format!(
                "the variance of the reshuffles is {seen} times the expected one"
            )));
        }
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let reshuffles = &mut self.tests[arm].reshuffles;
        let start_ns = clock::now_ns();
        let reshuffle = reshuffles.draw();
        let elapsed_ns = clock::now_ns() - start_ns;
        out.push(EXCEEDS, f64::from(u8::from(reshuffle.exceeds)));
        out.push(DIFFERENCE, reshuffle.value);
        out.push(TIME, elapsed_ns as f64);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The means of the samples must agree with the publication that the README cites. The samples must depend only on
    /// the seed.
    #[test]
    fn the_sources_difference_is_drawn_again() {
        let samples = fill_rates(400, 1);
        let mean = |sample: &Sample| sample.values.iter().sum::<f64>() / sample.values.len() as f64;
        let (of_100, of_1000) = (mean(&samples[0]), mean(&samples[1]));
        // The limits are four standard deviations of a mean of 400 values.
        assert!((of_100 - 0.989_794).abs() < 3.4e-4 && (of_1000 - 0.990_965).abs() < 2e-4, "{of_100} {of_1000}");
        assert_eq!(samples, fill_rates(400, 1));
        assert_ne!(samples, fill_rates(400, 2));
    }

    #[test]
    fn both_techniques_pass_and_no_reshuffle_comes_near() {
        let samples = fill_rates(400, 7);
        for technique in [Technique::Mask, Technique::Shuffle] {
            let mut test = ReshuffleTest::new(&samples, technique, 7).unwrap();
            assert!((0..300).all(|_| !test.reshuffles.draw().exceeds));
            ReshuffleSession { tests: vec![test] }.verify(0).unwrap();
        }
    }

    #[test]
    fn reshuffles_that_spread_otherwise_are_a_wrong_answer() {
        let mut test = ReshuffleTest::new(&fill_rates(50, 7), Technique::Mask, 7).unwrap();
        test.variance *= 4.0;
        assert!(matches!(ReshuffleSession { tests: vec![test] }.verify(0), Err(TargetError::WrongAnswer(_))));
    }
}
