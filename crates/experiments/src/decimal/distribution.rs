//! The source's six distributions, and one for each number of digits.

use ascertain::experiment::Arm;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Each by its name.
pub const NAMES: [&str; 7] = ["powers-of-ten", "skewed", "below-256k", "below-20", "100-to-199", "unix-time", "digits"];

/// A value of the arm's distribution; `None` where there is no such one.
pub fn draw(arm: &Arm, rng: &mut Xoshiro256PlusPlus) -> Option<u64> {
    let name = arm.point.get("distribution")?.to_string();
    Some(match name.as_str() {
        "powers-of-ten" => 10_u64.pow(rng.random_range(2..=8)),
        // 2 to the power of a uniform number below 64.
        "skewed" => (64.0 * rng.random::<f64>()).exp2() as u64,
        "below-256k" => rng.random_range(0..256 << 10),
        "below-20" => rng.random_range(0..20),
        "100-to-199" => rng.random_range(100..200),
        // A million seconds on either side of a day in 2014.
        "unix-time" => rng.random_range(1_404_000_000..1_406_000_000),
        "digits" => {
            let digits = arm.point.get("digits")?.integer().filter(|digits| (1..=20).contains(digits))? as u32;
            let least = if digits == 1 { 0 } else { 10_u64.pow(digits - 1) };
            rng.random_range(least..=10_u64.checked_pow(digits).map_or(u64::MAX, |most| most - 1))
        }
        _ => return None,
    })
}
