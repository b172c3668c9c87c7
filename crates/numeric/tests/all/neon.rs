//! Checks that NEON has every method on aarch64, and exists nowhere else. The other tests run only the variants that
//! exist, so they would not notice a missing one.

use ascertain_numeric::polynomial;
use ascertain_numeric::sum::Element;

const HAS_NEON: bool = cfg!(target_arch = "aarch64");

/// Checks that NEON has every method with all its functions on aarch64. Each entry has the name of a variant, and
/// `true` if the variant has all its functions.
fn is_there_with_every_method(variants: &[(&str, bool)]) {
    let is_scalar = |name: &str| !name.contains("-avx") && !name.ends_with("-neon") && !name.ends_with("-sse2");
    let methods: Vec<_> = variants.iter().map(|&(name, _)| name).filter(|name| is_scalar(name)).collect();
    assert!(methods.len() >= 2, "{methods:?}");
    for method in methods {
        let neon = format!("{method}-neon");
        let runs = variants.iter().any(|&(name, runs)| name == neon && runs);
        assert_eq!(runs, HAS_NEON, "{neon}");
    }
}

fn sums_and_dots<T: Element>() {
    let runs = |variant: &ascertain_numeric::sum::Variant<T>| {
        variant.accumulators.iter().all(|&accumulators| variant.function(accumulators).is_some())
    };
    let sums: Vec<_> = T::VARIANTS.iter().map(|variant| (variant.name, runs(variant))).collect();
    is_there_with_every_method(&sums);
    let dots: Vec<_> = T::DOT_VARIANTS.iter().map(|variant| (variant.name, variant.function().is_some())).collect();
    is_there_with_every_method(&dots);
}

#[test]
fn sums_and_dot_products_have_it() {
    sums_and_dots::<f32>();
    sums_and_dots::<f64>();
}

#[test]
fn polynomials_have_it() {
    // NEON has no `additions`, because a single recurrence cannot use a second lane.
    let variants = polynomial::VARIANTS.iter().filter(|variant| variant.name != "additions");
    let variants: Vec<_> = variants.map(|variant| (variant.name, variant.function().is_some())).collect();
    is_there_with_every_method(&variants);
}

/// `direct-neon` rounds once per step and `direct` twice, so the result shows which of the two ran.
#[test]
fn the_plain_polynomial_takes_it() {
    let filled = |name: &str| {
        let fill = polynomial::VARIANTS.iter().find(|variant| variant.name == name)?.function()?;
        let mut out = [0.0; 100];
        fill(&[0.1, 0.7, 0.3], &mut out);
        Some(out)
    };
    let mut plain = [0.0; 100];
    polynomial::fill(&[0.1, 0.7, 0.3], &mut plain);
    assert_eq!(filled("direct-neon") == Some(plain), HAS_NEON);
    assert!(!HAS_NEON || filled("direct") != Some(plain));
}
