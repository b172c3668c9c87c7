//! Every variant. A new one is a line here.

use super::method;
use super::variant::{Kernel, Variant};

const PLAIN: &[&str] = &[];
const AVX2: &[&str] = &["avx2", "fma"];
const AVX512: &[&str] = &["avx512f"];

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

macro_rules! kernel {
    ($name:ident, $features:literal, $register:ty) => {
        #[cfg(target_arch = "x86_64")]
        mod $name {
            use std::arch::x86_64::*;

            use super::*;

            #[target_feature(enable = $features)]
            pub fn direct(coefficients: &[f64], out: &mut [f64]) {
                // SAFETY: the instructions are enabled here.
                by_length!(coefficients, out, |c, out| unsafe { method::direct::<$register, _>(c, out) })
            }

            #[target_feature(enable = $features)]
            pub fn recurrences(coefficients: &[f64], out: &mut [f64]) {
                // SAFETY: the instructions are enabled here.
                by_length!(coefficients, out, |c, out| unsafe { method::recurrences::<$register, _>(c, out) })
            }

            #[target_feature(enable = $features)]
            pub fn store(coefficients: &[f64], out: &mut [f64]) {
                // SAFETY: the instructions are enabled here.
                by_length!(coefficients, out, |c, out| unsafe { method::store::<$register, _>(c, out) })
            }
        }
    };
}
kernel!(avx2, "avx2,fma", __m256d);
kernel!(avx512, "avx512f", __m512d);

fn direct(coefficients: &[f64], out: &mut [f64]) {
    // SAFETY: `f64` needs no special instructions.
    by_length!(coefficients, out, |c, out| unsafe { method::direct::<f64, _>(c, out) })
}

fn recurrences(coefficients: &[f64], out: &mut [f64]) {
    // SAFETY: as above.
    by_length!(coefficients, out, |c, out| unsafe { method::recurrences::<f64, _>(c, out) })
}

fn additions(coefficients: &[f64], out: &mut [f64]) {
    by_length!(coefficients, out, method::additions)
}

/// A kernel of another architecture is none; its name exists all the same.
#[cfg(target_arch = "x86_64")]
macro_rules! x86 {
    ($kernel:path) => {
        Some($kernel as Kernel)
    };
}
#[cfg(not(target_arch = "x86_64"))]
macro_rules! x86 {
    ($kernel:path) => {
        None
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

/// Every variant, also where it [cannot run](Variant::is_available).
#[rustfmt::skip] // One variant, one line.
pub const VARIANTS: &[Variant] = &[
    new("additions",          PLAIN,  Some(additions),           "one recurrence: what strength reduction makes of it"),
    new("direct",             PLAIN,  Some(direct),              "Horner's rule, as the compiler vectorises it"),
    new("direct-avx2",        AVX2,   x86!(avx2::direct),        "Horner's rule, 4 at a time, fused"),
    new("direct-avx512",      AVX512, x86!(avx512::direct),      "Horner's rule, 8 at a time, fused"),
    new("recurrences",        PLAIN,  Some(recurrences),         "4 recurrences side by side"),
    new("recurrences-avx2",   AVX2,   x86!(avx2::recurrences),   "16 recurrences side by side"),
    new("recurrences-avx512", AVX512, x86!(avx512::recurrences), "32 recurrences side by side"),
    Variant { is_polynomial: false, ..new("store-avx2",   AVX2,   x86!(avx2::store),   "stores alone: what nothing can beat") },
    Variant { is_polynomial: false, ..new("store-avx512", AVX512, x86!(avx512::store), "stores alone: what nothing can beat") },
];
