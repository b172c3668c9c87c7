//! Integers to text: `numeric::decimal`, popular libraries, and the methods of the publication that the README cites,
//! over several distributions. All methods write the same numbers.

mod compiled;
pub(super) mod contestants;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ascertain_engine::batch::{self, Timed};
use ascertain_engine::black_box;
use ascertain_engine::experiment::{
    Accepts, Arm, ArmId, Better, Experiment, Factor, Level, Metric, Plot, Samples, Session, Setup, Spec, TargetError,
    Trial, Unavailable, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_numeric::decimal::VARIANTS;
use ascertain_sys::clock;
use ascertain_sys::machine::Machine;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use contestants::{Contestant, contestant};

/// The experiment `decimal`: integers to text.
pub struct Decimal;

const TIME: usize = 0;
const SPREAD: usize = 1;
const SIZE: usize = 2;

static SPEC: LazyLock<Spec> = LazyLock::new(|| {
    let ours = VARIANTS.iter().map(|v| (v.name, v.about));
    let variants = ours.chain(contestants::OTHERS);
    let names: Vec<Level> = DISTRIBUTIONS.map(Level::from).to_vec();
    let digits = std::iter::once(ANY.into()).chain((1..=20).map(Level::Integer)).collect();
    Spec {
        title: "Integers to decimal text: libraries and methods on six distributions".into(),
        variants: variants.map(Variant::from).collect(),
        factors: vec![
            Factor::new("distribution", "distribution of the 64-bit numbers", "skewed", Accepts::OneOf(names)),
            Factor::new(
                "digits",
                "number of digits of the numbers; `any` means no restriction",
                ANY,
                Accepts::OneOf(digits),
            ),
        ],
        metrics: vec![
            Metric::time("time", "time of one number: the mean of a batch"),
            Metric::new(
                "spread",
                "time of the slowest digit count, divided by the time of the fastest",
                Unit::One,
                Better::Lower,
            ),
            Metric::new("size", "size of the machine code for one call, without tables", Unit::Byte, Better::Lower),
        ],
        plots: vec![Plot::sweep("time", "digits")],
        ..Spec::new("decimal", include_str!("README.md"))
    }
});

impl Experiment for Decimal {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// Returns an arm for each variant at each of the publication's six distributions.
    fn table_arms(&self) -> Vec<Arm> {
        let of_variant = |variant: &Variant| DISTRIBUTIONS.map(|name| at_distribution(&variant.name, name));
        SPEC.variants.iter().flat_map(of_variant).collect()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        if draw(arm, &mut Xoshiro256PlusPlus::seed_from_u64(0)).is_none() {
            return Err(Unavailable::levels("the distribution has no numbers with this many digits"));
        }
        contestant(&arm.variant).map(drop)
    }

    /// Draws the numbers of each arm, and determines how many times a batch writes all of them.
    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let mut writers = arms.iter().map(|arm| decimal_writer(arm, setup.seed)).collect::<Result<Vec<_>, _>>()?;
        let mut batches: Vec<Timed> = writers.iter_mut().map(DecimalWriter::batch).collect();
        let iterations = batch::iterations(&mut batches);
        drop(batches);
        Ok(Box::new(DecimalSession { writers, iterations }))
    }
}

fn at_distribution(variant: &str, distribution: &str) -> Arm {
    Arm { variant: variant.into(), point: SPEC.default_point().with("distribution", distribution) }
}

/// Names of the publication's six distributions.
const DISTRIBUTIONS: [&str; 6] = ["powers-of-ten", "skewed", "below-256k", "below-20", "100-to-199", "unix-time"];
/// The level of the factor `digits` that allows any number of digits.
const ANY: &str = "any";
/// Maximum number of draws for one number. If none of them has the requested number of digits, the distribution is
/// assumed to have no such number.
const MOST_DRAWS: u32 = 1_000_000;

/// Returns a value of the arm's distribution with the number of digits that the arm requests. Returns `None` if none of
/// [`MOST_DRAWS`] draws has that many.
fn draw(arm: &Arm, rng: &mut Xoshiro256PlusPlus) -> Option<u64> {
    let name = arm.point.get("distribution")?.to_string();
    let digits = arm.point.get("digits").and_then(Level::integer);
    let has_digits = |value: &u64| digits.is_none_or(|digits| digit_count(*value) == digits);
    let draws = (0..MOST_DRAWS).map(|_| value(&name, rng));
    draws.take_while(Option::is_some).flatten().find(has_digits)
}

fn digit_count(value: u64) -> u64 {
    u64::from(value.checked_ilog10().unwrap_or(0)) + 1
}

fn value(distribution: &str, rng: &mut Xoshiro256PlusPlus) -> Option<u64> {
    Some(match distribution {
        "powers-of-ten" => 10_u64.pow(rng.random_range(2..=8)),
        // Two to the power of a uniform random number below 64.
        "skewed" => (64.0 * rng.random::<f64>()).exp2() as u64,
        "below-256k" => rng.random_range(0..256 << 10),
        "below-20" => rng.random_range(0..20),
        "100-to-199" => rng.random_range(100..200),
        // A million seconds on either side of a day in 2014.
        "unix-time" => rng.random_range(1_404_000_000..1_406_000_000),
        _ => return None,
    })
}

/// Size of the array of numbers that each arm converts to text, as in the publication that the README cites.
const NUMBERS: usize = 10_000;
/// Minimum size of a group of numbers with the same digit count. Smaller groups are not timed separately.
const LEAST_OF_A_LENGTH: usize = 100;
/// Number of times that each group is timed. The shortest time counts, because interruptions only add time.
const ROUNDS: usize = 3;

struct DecimalWriter {
    numbers: Vec<u64>,
    /// The numbers grouped by digit count. Groups with fewer than [`LEAST_OF_A_LENGTH`] numbers are left out.
    by_length: Vec<Vec<u64>>,
    contestant: Contestant,
}

struct DecimalSession {
    writers: Vec<DecimalWriter>,
    iterations: u64,
}

fn decimal_writer(arm: &Arm, seed: u64) -> Result<DecimalWriter, TargetError> {
    let failed = |reason: String| TargetError::Failed(format!("{arm}: {reason}"));
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let numbers: Option<Vec<u64>> = (0..NUMBERS).map(|_| draw(arm, &mut rng)).collect();
    let numbers = numbers.ok_or_else(|| failed("the distribution has no numbers with this many digits".into()))?;
    let mut by_length: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for &number in &numbers {
        by_length.entry(number.checked_ilog10().unwrap_or(0)).or_default().push(number);
    }
    let by_length = by_length.into_values().filter(|numbers| numbers.len() >= LEAST_OF_A_LENGTH).collect();
    let contestant = contestant(&arm.variant).map_err(|error| failed(error.to_string()))?;
    Ok(DecimalWriter { numbers, by_length, contestant })
}

impl DecimalWriter {
    /// Returns a timed function that writes all numbers, in the order in which they were drawn.
    fn batch(&mut self) -> Timed<'_> {
        let DecimalWriter { numbers, contestant, .. } = self;
        batch::timed(|| (contestant.each)(black_box(numbers)))
    }

    /// Returns the time per number for the slowest digit count, divided by the time per number for the fastest.
    fn spread(&mut self) -> f64 {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for numbers in &self.by_length {
            let mut round_ns = || {
                let start_ns = clock::now_ns();
                black_box((self.contestant.each)(black_box(numbers)));
                clock::now_ns() - start_ns
            };
            let least_ns = (0..ROUNDS).map(|_| round_ns()).min().unwrap_or(0);
            let time = least_ns.max(1) as f64 / numbers.len() as f64;
            (least, most) = (least.min(time), most.max(time));
        }
        most / least
    }
}

impl Session for DecimalSession {
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let writer = &mut self.writers[arm];
        writer.contestant.check(&writer.numbers).map_err(TargetError::WrongAnswer)
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let writer = &mut self.writers[arm];
        let numbers = (self.iterations * NUMBERS as u64) as f64;
        out.push(TIME, writer.batch()(self.iterations) as f64 / numbers);
        out.push(SPREAD, writer.spread());
        if let Some(bytes) = writer.contestant.code_bytes {
            out.push(SIZE, bytes as f64);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ascertain_engine::experiment::Point;

    use super::*;

    #[test]
    fn as_many_digits_as_asked_for() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut drawn = |distribution: &str, digits: Level| {
            let point = Point::default().with("distribution", distribution).with("digits", digits);
            draw(&Arm { variant: String::new(), point }, &mut rng)
        };
        for digits in 1..=20 {
            let value = drawn("skewed", digits.into()).unwrap();
            assert_eq!(value.to_string().len() as u64, digits);
        }
        assert!(drawn("below-20", ANY.into()).unwrap() < 20);
        assert_eq!(drawn("below-20", 3.into()), None, "none of the numbers has three digits");
        assert_eq!(drawn("roman", ANY.into()), None);
    }
}
