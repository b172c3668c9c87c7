//! All variants by name, and the call that uses the best of them. A variant is a method with an instruction set.

use super::method;
use crate::features::{first_missing, on};
use crate::standard::Once;

/// The function of a variant. It works like [`Fill`], but the CPU must have the features that the variant requires.
pub(super) type Kernel = unsafe fn(&[f64], &mut [f64]);

/// A function that fills a slice with the values of a polynomial. Its first argument has the coefficients, from the
/// constant one upwards.
pub type Fill = fn(&[f64], &mut [f64]);

/// One method of filling a slice with the values of a polynomial.
///
/// ```
/// use ascertain_numeric::polynomial::VARIANTS;
///
/// let lanes = VARIANTS.iter().find(|variant| variant.name == "recurrences").unwrap();
/// let mut squares = [0.0; 4];
/// lanes.function().unwrap()(&[0.0, 0.0, 1.0], &mut squares);
/// assert_eq!(squares, [0.0, 1.0, 4.0, 9.0]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Name: the method, followed by the instruction set unless the variant computes one number at a time.
    pub name: &'static str,
    /// Description of the method, in one line.
    pub about: &'static str,
    /// CPU features that the variant needs, named as in `is_x86_feature_detected!`.
    pub requires: &'static [&'static str],
    /// `true` if the variant computes the values of the polynomial. It is `false` for variants that only store numbers,
    /// which show the upper limit of the speed.
    pub is_polynomial: bool,
    /// Function of the variant, or `None` if the target architecture cannot have the variant.
    pub(super) kernel: Option<Kernel>,
}

impl Variant {
    /// Checks whether this machine can run the variant.
    ///
    /// # Errors
    /// Returns the first required CPU feature that the machine lacks.
    pub fn is_available(&self) -> Result<(), &'static str> {
        first_missing(self.requires).map_or(Ok(()), Err)
    }

    /// Returns the variant's function, or `None` if the machine cannot run the variant.
    pub fn function(&self) -> Option<Fill> {
        self.is_available().ok()?;
        // SAFETY: the types differ only in `unsafe`. The kernel's one condition, that the CPU has the features, holds
        // as long as the program runs.
        Some(unsafe { core::mem::transmute::<Kernel, Fill>(self.kernel?) })
    }
}

const PLAIN: &[&str] = &[];
const SSE2: &[&str] = on!("x86_64", &[], &["sse2"]);
const NEON: &[&str] = on!("aarch64", &[], &["neon"]);
const AVX2: &[&str] = &["avx2", "fma"];
const AVX512: &[&str] = &["avx512f"];

/// Calls `$function` for two to five coefficients, and `$of_any_degree` for more. `$function` is generic over the
/// number of coefficients, so the compiler unrolls its loops. The coefficients are not copied. If the code wrote a copy
/// and then read it in pieces of another size, the CPU would stall.
macro_rules! by_length {
    ($coefficients:ident, $out:ident, $function:expr, beyond $of_any_degree:expr) => {
        match $coefficients {
            [] => $out.fill(0.0),
            [a] => $out.fill(*a),
            _ => {
                if let Ok(two) = <&[f64; 2]>::try_from($coefficients) {
                    $function(two, $out)
                } else if let Ok(three) = <&[f64; 3]>::try_from($coefficients) {
                    $function(three, $out)
                } else if let Ok(four) = <&[f64; 4]>::try_from($coefficients) {
                    $function(four, $out)
                } else if let Ok(five) = <&[f64; 5]>::try_from($coefficients) {
                    $function(five, $out)
                } else {
                    $of_any_degree($coefficients, $out)
                }
            }
        }
    };
}

/// Defines the methods for one instruction set. They work on `$chains` registers of values in turn.
macro_rules! kernels {
    ($name:ident, $enable:meta, $register:ty, $chains:literal) => {
        mod $name {
            use super::*;

            #[$enable]
            pub fn direct(coefficients: &[f64], out: &mut [f64]) {
                by_length!(
                    coefficients,
                    out,
                    // SAFETY: the instructions are enabled here.
                    |c, out| unsafe { method::direct::<$register, _, $chains>(c, out) },
                    // SAFETY: as above.
                    beyond |c, out| unsafe { method::direct_of_any_degree::<$register, $chains>(c, out) }
                )
            }

            #[$enable]
            pub fn recurrences(coefficients: &[f64], out: &mut [f64]) {
                by_length!(
                    coefficients,
                    out,
                    // SAFETY: the instructions are enabled here.
                    |c, out| unsafe { method::recurrences::<$register, _, $chains>(c, out) },
                    beyond direct
                )
            }

            #[$enable]
            pub fn store(coefficients: &[f64], out: &mut [f64]) {
                // SAFETY: the instructions are enabled here.
                unsafe { method::store::<$register, $chains>(coefficients.first().copied().unwrap_or(0.0), out) }
            }
        }
    };
}
kernels!(scalar, inline, f64, 4);
#[cfg(target_arch = "aarch64")]
kernels!(neon, target_feature(enable = "neon"), core::arch::aarch64::float64x2_t, 4);
#[cfg(target_arch = "x86_64")]
kernels!(sse2, inline, core::arch::x86_64::__m128d, 4);
#[cfg(target_arch = "x86_64")]
kernels!(avx2, target_feature(enable = "avx2,fma"), core::arch::x86_64::__m256d, 4);
#[cfg(target_arch = "x86_64")]
kernels!(avx512, target_feature(enable = "avx512f"), core::arch::x86_64::__m512d, 5);

fn additions(coefficients: &[f64], out: &mut [f64]) {
    by_length!(coefficients, out, method::additions, beyond scalar::direct)
}

/// Expands to the kernel on x86-64, and to `None` on other architectures. All architectures list the variant, because
/// shipped claims refer to its name.
macro_rules! x86 {
    ($kernel:path) => {
        on!("x86_64", Some($kernel as Kernel), None)
    };
}

/// Expands to the kernel on aarch64, and to `None` on other architectures.
macro_rules! arm {
    ($kernel:path) => {
        on!("aarch64", Some($kernel as Kernel), None)
    };
}

const fn new(
    name: &'static str,
    requires: &'static [&'static str],
    kernel: Option<Kernel>,
    about: &'static str,
) -> Variant {
    Variant { name, about, requires, is_polynomial: true, kernel }
}

/// All variants, including those that this machine [cannot run](Variant::is_available).
#[rustfmt::skip] // Keeps each variant on one line.
pub const VARIANTS: &[Variant] = &[
    new("additions",            PLAIN,  Some(additions),            "one recurrence, as compilers generate by strength reduction; from degree 5 on, the same as `direct`"),
    new("direct",               PLAIN,  Some(scalar::direct),       "Horner's rule, one at a time"),
    new("direct-sse2",          SSE2,   x86!(sse2::direct),         "Horner's rule, 2 at a time"),
    new("direct-avx2",          AVX2,   x86!(avx2::direct),         "Horner's rule, 4 at a time, fused"),
    new("direct-avx512",        AVX512, x86!(avx512::direct),       "Horner's rule, 8 at a time, fused"),
    new("direct-neon",          NEON,   arm!(neon::direct),         "Horner's rule, 2 at a time, fused"),
    new("recurrences",          PLAIN,  Some(scalar::recurrences),  "4 recurrences side by side; from degree 5 on, the same as `direct`"),
    new("recurrences-sse2",     SSE2,   x86!(sse2::recurrences),    "8 recurrences side by side; from degree 5 on, the same as `direct-sse2`"),
    new("recurrences-avx2",     AVX2,   x86!(avx2::recurrences),    "16 recurrences side by side; from degree 5 on, the same as `direct-avx2`"),
    new("recurrences-avx512",   AVX512, x86!(avx512::recurrences),  "40 recurrences side by side; from degree 5 on, the same as `direct-avx512`"),
    new("recurrences-neon",     NEON,   arm!(neon::recurrences),    "8 recurrences side by side; from degree 5 on, the same as `direct-neon`"),
    Variant { is_polynomial: false, ..new("store",                PLAIN,  Some(scalar::store),        "speed limit: stores alone, one number at a time") },
    Variant { is_polynomial: false, ..new("store-sse2",           SSE2,   x86!(sse2::store),          "speed limit: stores alone, 2 numbers at a time") },
    Variant { is_polynomial: false, ..new("store-avx2",           AVX2,   x86!(avx2::store),          "speed limit: stores alone") },
    Variant { is_polynomial: false, ..new("store-avx512",         AVX512, x86!(avx512::store),        "speed limit: stores alone") },
    Variant { is_polynomial: false, ..new("store-neon",           NEON,   arm!(neon::store),          "speed limit: stores alone") },
];

/// The variants that [`fill`] may use. It uses the first one that the machine can run.
const CHOICES: &[&str] = &["direct-avx512", "direct-avx2", "direct-sse2", "direct-neon", "direct"];

/// Returns the variant that [`fill`] uses: the first of `direct-avx512`, `direct-avx2`, `direct-sse2`, `direct-neon`
/// and `direct` that this machine can run.
pub fn chosen() -> &'static Variant {
    first_that_runs(|variant| variant.function().is_some())
}

fn first_that_runs(runs: impl Fn(&Variant) -> bool) -> &'static Variant {
    let named = |name: &&str| VARIANTS.iter().find(|variant| variant.name == *name && runs(variant));
    CHOICES.iter().find_map(named).expect("the plain variant runs on every machine")
}

/// Fills a slice with a polynomial's values at 0, 1, 2 and so on: `out[i]` = Σ `coefficients[k]`·iᵏ.
///
/// The polynomial may have any degree. The values are computed by Horner's rule, in the widest registers of the
/// machine, which are chosen at the first call.
///
/// With n + 1 coefficients the error is at most 2n·u·Σ |cₖ|·iᵏ, where u = 2⁻⁵³. This leaves out terms of order n²·u²
/// and assumes that nothing underflows. The bound is half as large if the variant that is used multiplies and adds in
/// one step. All variants that this function may use do so, except `direct-sse2` and `direct`, and return the same bits
/// as [`f64::mul_add`]. [`VARIANTS`] lists each variant by name.
///
/// Without coefficients the polynomial is zero. Infinities, NaN and overflow propagate as in Horner's rule.
///
/// ```
/// let mut values = [0.0; 4];
/// ascertain_numeric::polynomial::fill(&[3.5, 2.0, 1.0], &mut values);
/// assert_eq!(values, [3.5, 6.5, 11.5, 18.5]);
/// ```
pub fn fill(coefficients: &[f64], out: &mut [f64]) {
    static CHOSEN: Once<Fill> = Once::new();
    let choose = || chosen().function().expect("the chosen variant has a function");
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
        assert_eq!(taken(&["avx512f", "fma"]), "direct-sse2");
        assert_eq!(taken(&["avx512f", "avx2"]), "direct-sse2");
    }
}
