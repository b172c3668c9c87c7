//! The source's six distributions, and of each the numbers that have so many digits.

use ascertain_engine::experiment::{Arm, Level};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Each by its name.
pub const NAMES: [&str; 6] = ["powers-of-ten", "skewed", "below-256k", "below-20", "100-to-199", "unix-time"];
/// The level of `digits` that leaves a distribution as it is.
pub const ANY: &str = "any";
/// Draws until one has the digits: what has none in so many is taken not to have any.
const MOST_DRAWS: u32 = 1_000_000;

/// A value of the arm's distribution with as many digits as the arm says; `None` where there is no such one.
pub fn draw(arm: &Arm, rng: &mut Xoshiro256PlusPlus) -> Option<u64> {
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
        // 2 to the power of a uniform number below 64.
        "skewed" => (64.0 * rng.random::<f64>()).exp2() as u64,
        "below-256k" => rng.random_range(0..256 << 10),
        "below-20" => rng.random_range(0..20),
        "100-to-199" => rng.random_range(100..200),
        // A million seconds on either side of a day in 2014.
        "unix-time" => rng.random_range(1_404_000_000..1_406_000_000),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ascertain_engine::experiment::Point;
    use rand::SeedableRng;

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
        assert_eq!(drawn("below-20", 3.into()), None, "none of them has three");
        assert_eq!(drawn("roman", ANY.into()), None);
    }
}
