//! Every variant: a method with an instruction set, by name; and the call that takes the best of them.

use super::method;
use crate::features::first_missing;
use crate::standard::Once;

/// A function of a variant; it may be called only where the CPU has what the variant requires.
pub(super) type Kernel = unsafe fn(&[f64], &mut [f64]);

/// Fills a slice with the values of the polynomial of these coefficients, the constant one first.
pub type Fill = fn(&[f64], &mut [f64]);

/// One way to fill a slice with a polynomial's values.
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
    /// The method, then the instruction set unless it is one number at a time.
    pub name: &'static str,
    /// A line about it.
    pub about: &'static str,
    /// The CPU features that it needs, as `is_x86_feature_detected!` names them.
    pub requires: &'static [&'static str],
    /// Whether the values are the polynomial's. They aren't where only the stores are made, to show what
    /// nothing can beat.
    pub is_polynomial: bool,
    /// None where the architecture is another.
    pub(super) kernel: Option<Kernel>,
}

impl Variant {
    /// Whether this machine can run it.
    ///
    /// # Errors
    /// The first of the required CPU features that the machine lacks.
    pub fn is_available(&self) -> Result<(), &'static str> {
        first_missing(self.requires).map_or(Ok(()), Err)
    }

    /// The function; none where the machine can't run it.
    pub fn function(&self) -> Option<Fill> {
        self.is_available().ok()?;
        // SAFETY: the types differ in `unsafe` alone, and the kernel's one condition, that the CPU has the
        // features, holds for as long as the program runs.
        Some(unsafe { core::mem::transmute::<Kernel, Fill>(self.kernel?) })
    }
}

const PLAIN: &[&str] = &[];
const AVX2: &[&str] = &["avx2", "fma"];
const AVX512: &[&str] = &["avx512f"];

/// The function for the number of coefficients, which the compiler unrolls, up to the fourth degree; beyond it the one
/// for any number. The coefficients stay where they are: copies that are read in other pieces than they were written in
/// make the CPU wait.
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

/// The methods with an instruction set, with so many registers in turn.
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
kernels!(avx2, target_feature(enable = "avx2,fma"), core::arch::x86_64::__m256d, 4);
#[cfg(target_arch = "x86_64")]
kernels!(avx512, target_feature(enable = "avx512f"), core::arch::x86_64::__m512d, 5);

fn additions(coefficients: &[f64], out: &mut [f64]) {
    by_length!(coefficients, out, method::additions, beyond scalar::direct)
}

/// On another architecture it is none; its name exists all the same, for claims to name.
macro_rules! x86 {
    ($kernel:path) => {{
        #[cfg(target_arch = "x86_64")]
        let kernel = Some($kernel as Kernel);
        #[cfg(not(target_arch = "x86_64"))]
        let kernel = None;
        kernel
    }};
}

const fn new(
    name: &'static str,
    requires: &'static [&'static str],
    kernel: Option<Kernel>,
    about: &'static str,
) -> Variant {
    Variant { name, about, requires, is_polynomial: true, kernel }
}

/// Every variant, also where it [cannot run](Variant::is_available).
#[rustfmt::skip] // One variant, one line.
pub const VARIANTS: &[Variant] = &[
    new("additions",            PLAIN,  Some(additions),            "one recurrence: what strength reduction makes of it; beyond the fourth degree as direct"),
    new("direct",               PLAIN,  Some(scalar::direct),       "Horner's rule, one at a time"),
    new("direct-avx2",          AVX2,   x86!(avx2::direct),         "Horner's rule, 4 at a time, fused"),
    new("direct-avx512",        AVX512, x86!(avx512::direct),       "Horner's rule, 8 at a time, fused"),
    #[cfg(target_arch = "aarch64")]
    new("direct-neon",          PLAIN,  Some(neon::direct),         "Horner's rule, 2 at a time, fused"),
    new("recurrences",          PLAIN,  Some(scalar::recurrences),  "4 recurrences side by side; beyond the fourth degree as direct"),
    new("recurrences-avx2",     AVX2,   x86!(avx2::recurrences),    "16 recurrences side by side; beyond the fourth degree as direct-avx2"),
    new("recurrences-avx512",   AVX512, x86!(avx512::recurrences),  "40 recurrences side by side; beyond the fourth degree as direct-avx512"),
    #[cfg(target_arch = "aarch64")]
    new("recurrences-neon",     PLAIN,  Some(neon::recurrences),    "8 recurrences side by side; beyond the fourth degree as direct-neon"),
    Variant { is_polynomial: false, ..new("store",                PLAIN,  Some(scalar::store),        "stores alone, one number at a time") },
    Variant { is_polynomial: false, ..new("store-avx2",           AVX2,   x86!(avx2::store),          "stores alone: what nothing can beat") },
    Variant { is_polynomial: false, ..new("store-avx512",         AVX512, x86!(avx512::store),        "stores alone: what nothing can beat") },
    #[cfg(target_arch = "aarch64")]
    Variant { is_polynomial: false, ..new("store-neon",           PLAIN,  Some(neon::store),          "stores alone: what nothing can beat") },
];

/// What [`fill`] takes, the first that the machine has.
const CHOICES: &[&str] = &["direct-avx512", "direct-avx2", "direct-neon", "direct"];

/// The variant that [`fill`] takes on this machine: the first of `direct-avx512`, `direct-avx2`, `direct-neon` and
/// `direct` that it has.
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
    static CHOSEN: Once<Fill> = Once::new();
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
