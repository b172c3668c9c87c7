//! Everybody who sums: our variants, a crate, and a compiler that may reorder.

use std::rc::Rc;

use ascertain_engine::experiment::{Unavailable, compiled_function};
use ascertain_numeric::sum::{self, Element};
use ascertain_sys::compiled::{Function, Language, Plain, Source};

/// The plain calls, which take what is fastest on this machine of what has the same bits.
pub const DEFAULTS: [(&str, &str); 3] = [
    ("default", "sum(): the block-twosum that it takes on this machine"),
    ("default-exact", "exact(), as it is taken on this machine"),
    ("default-dot", "dot(): the dot2 that it takes on this machine"),
];

/// Those that are not ours.
pub const OTHERS: [(&str, &str); 5] = [
    ("c-fast-math-gcc", "the naive loop in C, by gcc, which may reorder"),
    ("c-fast-math-clang", "the naive loop in C, by clang, which may reorder"),
    ("c-kahan-fast-math-gcc", "Kahan's method in C, by gcc, which may reorder: it removes the compensation"),
    ("c-kahan-fast-math-clang", "Kahan's method in C, by clang, which may reorder: it removes the compensation"),
    ("accurate-exact", "the exact sum of the crate accurate (Zhu and Hayes)"),
];

/// Sums a slice.
pub type Sum<T> = Rc<dyn Fn(&[T]) -> f64>;

/// What a variant does with the numbers.
pub enum Contestant<T: 'static> {
    /// Sums them.
    Sum(Sum<T>),
    /// Loads them, and perhaps does as much with them as a sum would.
    Limit(fn(&[T]) -> f64),
    /// Multiplies two arrays.
    Dot(fn(&[T], &[T]) -> f64),
    /// Loads two arrays, and does as much with them as a dot product would.
    LimitOfDot(fn(&[T], &[T]) -> f64),
}

/// The contestant of this name, or why this machine hasn't got it. Only ours heed the number of accumulators, and of
/// those neither the plain calls nor the dot products.
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
            Unavailable::levels(format!("comes with {} accumulators", known.join(", ")))
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
        "needs the crate accurate, which is left out by default: build Ascertain with `--features peers`",
    ))
}

/// What -ffast-math says, one by one. Itself it also links a file that turns subnormals off for the whole thread.
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

/// The loop of this name, `c-[kahan-]fast-math-COMPILER`.
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

    /// Loading code that was compiled to reorder must leave this thread's arithmetic as it is.
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
