//! The call that people should use.

use std::sync::OnceLock;

use super::variant::{Fill, Variant};
use super::variants::VARIANTS;

/// What [`fill`] takes, the first that the machine has.
const CHOICES: &[&str] = &["direct-avx512", "direct-avx2", "direct-neon", "direct"];

/// The variant that [`fill`] takes on this machine: the first of `direct-avx512`, `direct-avx2`, `direct-neon` and `direct`
/// that it has.
pub fn chosen() -> &'static Variant {
    first_that_runs(|variant| variant.function().is_some())
}

fn first_that_runs(runs: impl Fn(&Variant) -> bool) -> &'static Variant {
    let named = |name: &&str| VARIANTS.iter().find(|variant| variant.name == *name && runs(variant));
    CHOICES.iter().find_map(named).expect("the plain variant runs on every machine")
}

/// Fills a slice with a polynomial's values at 0, 1, 2 and so on: `out[i]` = Σ `coefficients[k]`·iᵏ.
///
/// By Horner's rule, in the widest registers that the machine has, chosen at the first call; of any degree. With n + 1
/// coefficients the error is at most 2n·u·Σ |cₖ|·iᵏ (u = 2⁻⁵³; terms of order n²·u² are left out, and nothing
/// underflows), and half of that where the machine multiplies and adds in one step, as all but `direct` do: these give
/// the same bits, those of [`f64::mul_add`]. [`VARIANTS`] has each by name. No coefficients are the polynomial
/// that is zero. Infinities, NaN and overflow go where the rule takes them.
///
/// ```
/// let mut values = [0.0; 4];
/// ascertain_numeric::polynomial::fill(&[3.5, 2.0, 1.0], &mut values);
/// assert_eq!(values, [3.5, 6.5, 11.5, 18.5]);
/// ```
pub fn fill(coefficients: &[f64], out: &mut [f64]) {
    static CHOSEN: OnceLock<Fill> = OnceLock::new();
    let choose = || chosen().function().expect("it was chosen because it has one");
    CHOSEN.get_or_init(choose)(coefficients, out);
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::first_that_runs;
    use crate::features::first_that_lacks;

    #[test]
    fn a_machine_that_lacks_a_feature_takes_the_next() {
        let taken = |masked: &[&str]| {
            let has = |feature: &str| !masked.contains(&feature);
            first_that_runs(|variant| first_that_lacks(variant.requires, has).is_none()).name
        };
        assert_eq!(taken(&[]), "direct-avx512");
        assert_eq!(taken(&["avx512f"]), "direct-avx2");
        assert_eq!(taken(&["avx512f", "fma"]), "direct");
        assert_eq!(taken(&["avx512f", "avx2"]), "direct");
    }
}
