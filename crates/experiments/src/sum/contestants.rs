//! Everybody who sums: our variants, a crate, and a compiler that may reorder.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use accurate::sum::OnlineExactSum;
use accurate::traits::SumAccumulator;
use ascertain::experiment::Unavailable;
use ascertain_numeric::sum::Element;
use ascertain_sys::compiled::{Function, Language, Plain, Source, compile};

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
    /// Only loads them.
    Load(fn(&[T]) -> f64),
    /// Multiplies two arrays.
    Dot(fn(&[T], &[T]) -> f64),
}

/// The contestant of this name, or why this machine hasn't got it. Only ours heed the number of accumulators, and of
/// those not the dot products.
pub fn contestant<T: Element + Plain>(name: &str, accumulators: u32) -> Result<Contestant<T>, Unavailable> {
    let lacks = |feature: &str| Unavailable(format!("needs {feature}, which this CPU lacks"));
    if let Some(variant) = T::DOT_VARIANTS.iter().find(|variant| variant.name == name) {
        variant.is_available().map_err(lacks)?;
        return variant.function().map(Contestant::Dot).ok_or_else(|| lacks("another architecture"));
    }
    if let Some(variant) = T::variant(name) {
        variant.is_available().map_err(lacks)?;
        let function = variant.function(accumulators).ok_or_else(|| {
            let known: Vec<String> = variant.accumulators.iter().map(u32::to_string).collect();
            Unavailable(format!("comes with {} accumulators", known.join(", ")))
        })?;
        return Ok(if variant.is_sum { Contestant::Sum(Rc::new(function)) } else { Contestant::Load(function) });
    }
    if name == "accurate-exact" {
        return Ok(Contestant::Sum(Rc::new(accurate_exact)));
    }
    let function = fast_math(name, size_of::<T>() == 8)?;
    let sum = move |xs: &[T]| {
        let mut sum = [0.0_f64];
        function.call(xs, &mut sum);
        sum[0]
    };
    Ok(Contestant::Sum(Rc::new(sum)))
}

fn accurate_exact<T: Element>(xs: &[T]) -> f64 {
    let mut sum = OnlineExactSum::<f64>::zero();
    xs.iter().for_each(|&x| sum += x.into());
    sum.sum()
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
#include <stdint.h>

#define LOOPS(type) \
    int64_t ascertain_naive_##type(const void *input, size_t count, void *output, size_t one) { \
        const type *numbers = input; \
        double sum = 0; \
        for (size_t i = 0; i < count; i++) sum += numbers[i]; \
        *(double *)output = sum; \
        return 0; \
    } \
    int64_t ascertain_kahan_##type(const void *input, size_t count, void *output, size_t one) { \
        const type *numbers = input; \
        double sum = 0, excess = 0; \
        for (size_t i = 0; i < count; i++) { \
            double wanted = numbers[i] - excess; \
            double next = sum + wanted; \
            excess = (next - sum) - wanted; \
            sum = next; \
        } \
        *(double *)output = sum; \
        return 0; \
    }

LOOPS(float)
LOOPS(double)
";

/// The loop of this name, `c-[kahan-]fast-math-COMPILER`, compiled once for as long as the program runs.
fn fast_math(name: &str, double: bool) -> Result<Function, Unavailable> {
    static COMPILED: Mutex<BTreeMap<(String, bool), Result<Function, Unavailable>>> = Mutex::new(BTreeMap::new());
    let unknown = || Unavailable("there is no such variant".into());
    let (method, compiler) = name.strip_prefix("c-").and_then(|c| c.split_once("fast-math-")).ok_or_else(unknown)?;
    let method = if method.is_empty() { "naive" } else { "kahan" };
    let kind = if double { "double" } else { "float" };
    let anew = || {
        let source = Source::new(Language::C, TEXT).compiler(compiler).options(FAST_MATH);
        let function = compile(&source).and_then(|library| library.function(&format!("{method}_{kind}")));
        function.map_err(|error| Unavailable(format!("needs a C compiler: {error}")))
    };
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    compiled.entry((name.into(), double)).or_insert_with(anew).clone()
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
