//! The experiment: draws and throws as variants, bins and capacity as factors.

use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, ArmId, Better, Experiment, Factor, Metric, Samples, Session, Setup, Spec, TargetError, Trial, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::clock;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{drawn, thrown};

/// Balls into bins.
pub struct FillRate;

const FILL_RATE: usize = 0;
const TIME: usize = 1;

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    let variant = |name: &str, about: &str| Variant { name: name.into(), about: about.into() };
    Spec {
        id: "fill-rate".into(),
        title: "How full a row of bins is when its first bin is full".into(),
        readme: include_str!("README.md").into(),
        variants: vec![
            variant("drawn", "the outcome drawn exactly, in time proportional to the bins"),
            variant("thrown", "every ball thrown, in time proportional to the balls"),
        ],
        factors: vec![
            Factor::new("bins", "number of bins", 1000, Accepts::Integers { min: 1, max: 1_000_000 }),
            Factor::new("capacity", "balls that fit in a bin", 30_000, Accepts::Integers { min: 1, max: 100_000_000 }),
        ],
        plots: Vec::new(),
        metrics: vec![
            Metric::new("fill_rate", "share of all room in use when the first bin is full", Unit::One, Better::Higher),
            Metric::new("time", "time to sample one fill rate", Unit::Nanosecond, Better::Lower),
        ],
    }
});

impl Experiment for FillRate {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let rows = arms.iter().map(|arm| {
            let level = |factor: &str| arm.point.get(factor).and_then(|level| level.integer());
            match (level("bins"), level("capacity")) {
                (Some(bins), Some(capacity)) => Ok(Row { bins, capacity, drawn: arm.variant == "drawn" }),
                _ => Err(TargetError::Failed(format!("{arm}: bins and capacity are whole numbers"))),
            }
        });
        Ok(Box::new(Rows { rows: rows.collect::<Result<_, _>>()? }))
    }
}

struct Row {
    bins: u64,
    capacity: u64,
    drawn: bool,
}

struct Rows {
    rows: Vec<Row>,
}

impl Session for Rows {
    /// There is no one right answer: the method's mean is held against throwing, at a size where that
    /// is quick, with seeds of its own.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        const SAMPLES: u64 = 200;
        let sample = if self.rows[arm].drawn { drawn::<Xoshiro256PlusPlus> } else { thrown::<Xoshiro256PlusPlus> };
        let mean = |sample: fn(u64, u64, &mut Xoshiro256PlusPlus) -> f64, seed| {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            (0..SAMPLES).map(|_| sample(8, 32, &mut rng)).sum::<f64>() / SAMPLES as f64
        };
        let (seen, expected) = (mean(sample, 1), mean(thrown, 2));
        // The standard deviation of one fill rate of 8 bins of 32 is 0.085: six of the difference's.
        if (seen - expected).abs() > 6.0 * 0.085 * (2.0 / SAMPLES as f64).sqrt() {
            return Err(TargetError::WrongAnswer(format!("mean fill rate {seen}, thrown {expected}")));
        }
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let row = &self.rows[arm];
        // Another stream for each arm: the arms of a trial are independent.
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(trial.seed ^ (arm as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let start_ns = clock::now_ns();
        let fill_rate =
            if row.drawn { drawn(row.bins, row.capacity, &mut rng) } else { thrown(row.bins, row.capacity, &mut rng) };
        let elapsed_ns = clock::now_ns() - start_ns;
        out.push(FILL_RATE, fill_rate);
        out.push(TIME, elapsed_ns as f64);
        Ok(())
    }
}
