//! All methods of summing: the variants of `numeric::sum`, a crate, and C compilers that may reorder additions.

use std::rc::Rc;

use ascertain_engine::experiment::{Unavailable, compiled_function};
use ascertain_numeric::sum::{self, Element};
use ascertain_sys::compiled::{Function, Language, Plain, Source};

/// The functions that choose the fastest variant on this machine, each with its name and description. All variants that
/// they choose from return the same bits.
pub const DEFAULTS: [(&str, &str); 3] = [
    ("default", "sum(): the fastest block-twosum variant on this machine"),
    ("default-exact", "exact(): with the fastest instructions of this machine"),
    ("default-dot", "dot(): the fastest dot2 variant on this machine"),
];

/// The variants from other projects, each with its name and description.
pub const OTHERS: [(&str, &str); 5] = [
    ("c-fast-math-gcc", "the naive loop in C, compiled by gcc with reordering allowed"),
    ("c-fast-math-clang", "the naive loop in C, compiled by clang with reordering allowed"),
    (
        "c-kahan-fast-math-gcc",
        "Kahan's method in C, compiled by gcc with reordering allowed, which removes the compensation",
    ),
    (
        "c-kahan-fast-math-clang",
        "Kahan's method in C, compiled by clang with reordering allowed, which removes the compensation",
    ),
    ("accurate-exact", "the exact sum of the crate accurate (Zhu and Hayes)"),
];

/// A function that sums a slice.
pub type Sum<T> = Rc<dyn Fn(&[T]) -> f64>;

/// The function of a variant, by kind of operation.
pub enum Contestant<T: 'static> {
    /// Sums the numbers.
    Sum(Sum<T>),
    /// Shows the speed limit of sums: loads the numbers without summing them. Some of these functions also perform as
    /// many operations as a method of summing, but independent ones.
    Limit(fn(&[T]) -> f64),
    /// Computes the dot product of two arrays.
    Dot(fn(&[T], &[T]) -> f64),
    /// Shows the speed limit of dot products: loads two arrays, and performs the operations of a dot product without
    /// their dependencies.
    LimitOfDot(fn(&[T], &[T]) -> f64),
}

/// Returns the contestant with this name, or the reason if this machine does not support it. `accumulators` affects
/// only the sums in [`Element::VARIANTS`].
pub fn contestant<T: Element + Plain>(name: &str, accumulators: u32) -> Result<Contestant<T>, Unavailable> {
    match name {
        "default" => return Ok(Contestant::Sum(Rc::new(sum::sum::<T>))),
        "default-exact" => return Ok(Contestant::Sum(Rc::new(sum::exact::<T>))),
        "default-dot" => return Ok(Contestant::Dot(sum::dot::<T>)),
        _ => {}
    }
    if let Some(variant) = T::DOT_VARIANTS.iter().find(|variant| variant.name == name) {
        variant.is_available().map_err(Unavailable::feature)?;
        let function = variant.function().ok_or_else(|| Unavailable::feature("another architecture"))?;
        return Ok(if variant.is_product { Contestant::Dot(function) } else { Contestant::LimitOfDot(function) });
    }
    if let Some(variant) = T::variant(name) {
        variant.is_available().map_err(Unavailable::feature)?;
        let function = variant.function(accumulators).ok_or_else(|| {
            let known: Vec<String> = variant.accumulators.iter().map(u32::to_string).collect();
            Unavailable::levels(format!("only available with {} accumulators", known.join(", ")))
        })?;
        return Ok(if variant.is_sum { Contestant::Sum(Rc::new(function)) } else { Contestant::Limit(function) });
    }
    if name == "accurate-exact" {
        return accurate_exact().map(Contestant::Sum);
    }
    let function = fast_math::<T>(name)?;
    let compiled = move |xs: &[T]| {
        let mut sum = [0.0_f64];
        function.call(xs, &mut sum);
        sum[0]
    };
    Ok(Contestant::Sum(Rc::new(compiled)))
}

#[cfg(feature = "peers")]
fn accurate_exact<T: Element>() -> Result<Sum<T>, Unavailable> {
    use accurate::sum::OnlineExactSum;
    use accurate::traits::SumAccumulator;
    let exact = |xs: &[T]| {
        let mut sum = OnlineExactSum::<f64>::zero();
        xs.iter().for_each(|&x| sum += x.into());
        sum.sum()
    };
    Ok(Rc::new(exact))
}

#[cfg(not(feature = "peers"))]
fn accurate_exact<T: Element>() -> Result<Sum<T>, Unavailable> {
    Err(Unavailable::other(
        "needs the crate accurate, which is not included by default; build Ascertain with `--features peers`",
    ))
}

/// The options that -ffast-math implies, listed separately: -ffast-math itself also links a file that turns subnormals
/// off for the whole thread.
const FAST_MATH: &[&str] = &[
    "-O3",
    "-march=native",
    "-fassociative-math",
    "-fno-signed-zeros",
    "-fno-trapping-math",
    "-freciprocal-math",
    "-fno-math-errno",
    "-ffinite-math-only",
];

const TEXT: &str = r"
#include <stddef.h>

#define LOOPS(type) \
    ASCERTAIN(naive_##type, type, double) { \
        double sum = 0; \
        for (size_t i = 0; i < in_count; i++) sum += in[i]; \
        if (out_count) out[0] = sum; \
        return 0; \
    } \
    ASCERTAIN(kahan_##type, type, double) { \
        double sum = 0, excess = 0; \
        for (size_t i = 0; i < in_count; i++) { \
            double wanted = in[i] - excess; \
            double next = sum + wanted; \
            excess = (next - sum) - wanted; \
            sum = next; \
        } \
        if (out_count) out[0] = sum; \
        return 0; \
    }

LOOPS(float)
LOOPS(double)
";

/// Returns the C loop of the variant with this name, `c-[kahan-]fast-math-COMPILER`, compiled by that compiler.
fn fast_math<T: Plain>(name: &str) -> Result<Function<T, f64>, Unavailable> {
    let (method, compiler) =
        name.strip_prefix("c-").and_then(|c| c.split_once("fast-math-")).ok_or(Unavailable::Variant)?;
    let method = if method.is_empty() { "naive" } else { "kahan" };
    let kind = if size_of::<T>() == 8 { "double" } else { "float" };
    let source = Source::new(Language::C, TEXT).compiler(compiler).options(FAST_MATH);
    compiled_function(&source, &format!("{method}_{kind}"), "a C compiler")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loading code that was compiled with the options of `-ffast-math` must not change this thread's arithmetic. In
    /// particular, subnormal numbers must not become zero.
    #[test]
    fn subnormals_stay_on() {
        for (name, _) in OTHERS {
            if let Ok(Contestant::Sum(sum)) = contestant::<f64>(name, 1) {
                assert_eq!(sum(&[1.0, 2.0, 3.5]), 6.5, "{name}");
            }
        }
        let least = std::hint::black_box(f64::MIN_POSITIVE);
        assert!(least / 2.0 > 0.0);
    }
}
