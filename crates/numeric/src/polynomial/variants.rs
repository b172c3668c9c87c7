//! Every variant. A new one is a line here.

use super::method;
use super::variant::{Kernel, Variant};

const PLAIN: &[&str] = &[];
const AVX2: &[&str] = &["avx2", "fma"];
const AVX512: &[&str] = &["avx512f"];

/// The function for the number of coefficients, which the compiler unrolls, up to the fourth degree; beyond it the one for
/// any number. The coefficients stay where they are: copies that are read in other pieces than they were written in make
/// the CPU wait.
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
kernels!(neon, target_feature(enable = "neon"), std::arch::aarch64::float64x2_t, 4);
#[cfg(target_arch = "x86_64")]
kernels!(avx2, target_feature(enable = "avx2,fma"), std::arch::x86_64::__m256d, 4);
#[cfg(target_arch = "x86_64")]
kernels!(avx512, target_feature(enable = "avx512f"), std::arch::x86_64::__m512d, 5);

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
