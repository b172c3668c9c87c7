//! Compares every variant, with every number of accumulators, with the exact sum.

mod awkward;
mod bounds;

use ascertain_numeric::sum::{Element, sum};

/// A function under test: name, accumulators, function.
type NamedSum<T> = (&'static str, u32, fn(&[T]) -> f64);

/// Returns every function of a sum that this machine can run.
fn functions<T: Element>() -> Vec<NamedSum<T>> {
    let sums = T::VARIANTS.iter().filter(|variant| variant.is_sum);
    let available = sums.filter(|variant| variant.is_available().is_ok());
    let all = available.flat_map(|variant| {
        let function = |n| variant.function(n).unwrap();
        variant.accumulators.iter().map(move |&n| (variant.name, n, function(n)))
    });
    all.collect()
}

/// Returns [`sum`](ascertain_numeric::sum::sum()) as a function under test.
fn plain<T: Element>() -> NamedSum<T> {
    ("sum()", 0, sum)
}

/// Returns the name of a variant without its instruction set.
fn method(name: &str) -> &str {
    let end = ["-sse2", "-avx2", "-avx512", "-neon"].iter().find_map(|set| name.find(set));
    &name[..end.unwrap_or(name.len())]
}

fn is_compensated(name: &str) -> bool {
    matches!(method(name), "kahan" | "neumaier" | "babuska" | "block-twosum" | "exact")
}

/// Reports the variants that this machine cannot run. No other test reports them.
#[test]
fn sums_that_this_cpu_has_not() {
    let lacking = f64::VARIANTS.iter().filter_map(|variant| Some((variant.name, variant.is_available().err()?)));
    let lacking: Vec<String> = lacking.map(|(name, why)| format!("{name} ({why})")).collect();
    if !lacking.is_empty() {
        ascertain_sys::testing::left_out(lacking.join(", "));
    }
}

#[test]
fn a_late_large_number_tells_kahan_from_neumaier() {
    let xs = [1.0, 1e100, 1.0, -1e100];
    let scalar = |name| f64::variant(name).unwrap().function(1).unwrap()(&xs);
    assert_eq!(scalar("naive"), 0.0);
    assert_eq!(scalar("kahan"), 0.0);
    assert_eq!(scalar("neumaier"), 2.0);
    assert_eq!(sum(&xs), 2.0);
    for (name, accumulators, function) in functions::<f64>() {
        if matches!(method(name), "neumaier" | "block-twosum" | "exact") {
            assert_eq!(function(&xs), 2.0, "{name} × {accumulators}");
        }
    }
}

#[test]
fn the_same_names_for_each_type_and_none_twice() {
    let names: Vec<_> = f32::VARIANTS.iter().map(|variant| variant.name).collect();
    assert_eq!(names, f64::VARIANTS.iter().map(|variant| variant.name).collect::<Vec<_>>());
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
    assert!(f32::variant("nonsense").is_none());
}
