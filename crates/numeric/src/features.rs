//! Detection of CPU features by name. The environment variable `ASCERTAIN_CPU` hides features of this machine.

/// Evaluates to `true` if the machine has the features. Without the standard library, it evaluates to `true` if the
/// code is compiled for these features.
#[cfg(target_arch = "x86_64")]
macro_rules! detected {
    ($($feature:tt),*) => {{
        #[cfg(feature = "std")]
        let has = $(std::arch::is_x86_feature_detected!($feature) && $crate::features::is_allowed($feature))&&*;
        #[cfg(not(feature = "std"))]
        let has = cfg!(all($(target_feature = $feature),*));
        has
    }};
}
#[cfg(target_arch = "x86_64")]
pub(crate) use detected;

/// The features that `ASCERTAIN_CPU` allows.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[derive(Clone, Copy)]
enum Allowed {
    Sse2,
    Avx2,
    All,
}

/// Returns whether `ASCERTAIN_CPU` allows a feature: `avx2` hides AVX-512, and `sse2` hides everything but SSE2. All
/// other values hide nothing. A program that was compiled for a feature uses it in spite of the variable.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
pub(crate) fn is_allowed(feature: &str) -> bool {
    static ALLOWED: crate::standard::Once<Allowed> = crate::standard::Once::new();
    let allowed = ALLOWED.get_or_init(|| match std::env::var("ASCERTAIN_CPU").as_deref() {
        Ok("sse2") => Allowed::Sse2,
        Ok("avx2") => Allowed::Avx2,
        _ => Allowed::All,
    });
    match allowed {
        Allowed::Sse2 => feature == "sse2",
        Allowed::Avx2 => !feature.starts_with("avx512"),
        Allowed::All => true,
    }
}

/// Expands to the first expression if the code is compiled for the given architecture, and otherwise to the second.
macro_rules! on {
    ($architecture:literal, $here:expr, $elsewhere:expr) => {{
        #[cfg(target_arch = $architecture)]
        {
            $here
        }
        #[cfg(not(target_arch = $architecture))]
        {
            $elsewhere
        }
    }};
}
pub(crate) use on;

/// Returns the first of the required features that this machine lacks, or `None` if it has all of them.
pub(crate) fn first_missing(required: &[&'static str]) -> Option<&'static str> {
    first_that_lacks(required, has)
}

/// Returns the first of the required features for which `has` returns `false`, or `None` if there is none.
pub(crate) fn first_that_lacks(required: &[&'static str], has: impl Fn(&str) -> bool) -> Option<&'static str> {
    required.iter().copied().find(|feature| !has(feature))
}

/// The name of a CPU feature, and a function that detects it.
pub(crate) type Feature = (&'static str, fn() -> bool);

/// The features that variants may require.
#[cfg(target_arch = "x86_64")]
pub(crate) const FEATURES: &[Feature] = &[
    ("avx2", || detected!("avx2")),
    ("fma", || detected!("fma")),
    ("avx512f", || detected!("avx512f")),
    ("avx512bw", || detected!("avx512bw")),
    ("avx512vl", || detected!("avx512vl")),
    ("avx512dq", || detected!("avx512dq")),
    ("avx512ifma", || detected!("avx512ifma")),
    ("avx512vbmi", || detected!("avx512vbmi")),
    ("bmi2", || detected!("bmi2")),
    ("lzcnt", || detected!("lzcnt")),
];
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const FEATURES: &[Feature] = &[];

fn has(name: &str) -> bool {
    FEATURES.iter().any(|(known, detect)| *known == name && detect())
}

#[cfg(test)]
mod tests {
    use super::first_that_lacks;

    #[test]
    fn names_the_first_missing_feature() {
        let required = ["avx2", "fma"];
        assert_eq!(first_that_lacks(&required, |_| true), None);
        assert_eq!(first_that_lacks(&required, |_| false), Some("avx2"));
        assert_eq!(first_that_lacks(&required, |name| name == "avx2"), Some("fma"));
    }
}
