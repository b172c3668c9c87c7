//! Every variant. A new one is a line here.

use super::method;
use super::variant::{Kernel, Variant};

const PLAIN: &[&str] = &[];
const AVX2: &[&str] = &["avx2", "fma"];
const AVX512: &[&str] = &["avx512f"];
const NEON: &[&str] = if cfg!(target_arch = "aarch64") { &[] } else { &["neon"] };

/// The function for the number of coefficients, which the compiler unrolls; beyond the fourth degree no method
/// is worth more than the plain one.
macro_rules! by_length {
    ($coefficients:ident, $out:ident, $function:expr) => {
        match $coefficients {
            [] => $out.fill(0.0),
            &[a] => $out.fill(a),
            &[a, b] => $function(&[a, b], $out),
            &[a, b, c] => $function(&[a, b, c], $out),
            &[a, b, c, d] => $function(&[a, b, c, d], $out),
            &[a, b, c, d, e] => $function(&[a, b, c, d, e], $out),
            more => method::one_by_one(more, $out),
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
                // SAFETY: the instructions are enabled here.
                by_length!(coefficients, out, |c, out| unsafe { method::direct::<$register, _, $chains>(c, out) })
            }

            #[$enable]
            pub fn recurrences(coefficients: &[f64], out: &mut [f64]) {
                // SAFETY: the instructions are enabled here.
                by_length!(coefficients, out, |c, out| unsafe { method::recurrences::<$register, _, $chains>(c, out) })
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
kernels!(avx512, target_feature(enable = "avx512f"), std::arch::x86_64::__m512d, 6);

fn additions(coefficients: &[f64], out: &mut [f64]) {
    by_length!(coefficients, out, method::additions)
}

/// A kernel of another architecture is none; its name exists all the same.
macro_rules! on {
    ($architecture:literal, $arch:ident::$method:ident) => {{
        #[cfg(target_arch = $architecture)]
        let kernel = Some($arch::$method as Kernel);
        #[cfg(not(target_arch = $architecture))]
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
    new("additions",          PLAIN,  Some(additions),                          "one recurrence: what strength reduction makes of it"),
    new("direct",             PLAIN,  Some(scalar::direct),                     "Horner's rule, one at a time"),
    new("direct-avx2",        AVX2,   on!("x86_64", avx2::direct),              "Horner's rule, 4 at a time, fused"),
    new("direct-avx512",      AVX512, on!("x86_64", avx512::direct),            "Horner's rule, 8 at a time, fused"),
    new("direct-neon",        NEON,   on!("aarch64", neon::direct),             "Horner's rule, 2 at a time, fused"),
    new("recurrences",        PLAIN,  Some(scalar::recurrences),                "4 recurrences side by side"),
    new("recurrences-avx2",   AVX2,   on!("x86_64", avx2::recurrences),         "16 recurrences side by side"),
    new("recurrences-avx512", AVX512, on!("x86_64", avx512::recurrences),       "48 recurrences side by side"),
    new("recurrences-neon",   NEON,   on!("aarch64", neon::recurrences),        "8 recurrences side by side"),
    Variant { is_polynomial: false, ..new("store",        PLAIN,  Some(scalar::store),           "stores alone, one number at a time") },
    Variant { is_polynomial: false, ..new("store-avx2",   AVX2,   on!("x86_64", avx2::store),   "stores alone: what nothing can beat") },
    Variant { is_polynomial: false, ..new("store-avx512", AVX512, on!("x86_64", avx512::store), "stores alone: what nothing can beat") },
    Variant { is_polynomial: false, ..new("store-neon",   NEON,   on!("aarch64", neon::store),  "stores alone: what nothing can beat") },
];
