//! The level of instruction sets to which the environment variable `ASCERTAIN_CPU` limits this program.
//!
//! With the variable, a new machine shows how the program behaves on older processors.

use std::fmt;

#[cfg(feature = "measuring")]
use crate::machine::instruction_sets;

/// The environment variable with the name of the highest level.
pub const VARIABLE: &str = "ASCERTAIN_CPU";

/// A set of instruction sets that many processors have in common, from the smallest to the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The instructions of every x86-64 processor.
    Sse2,
    /// AVX2, FMA and all that processors with AVX2 have (x86-64-v3).
    Avx2,
    /// AVX-512 (x86-64-v4), and all later instruction sets.
    Avx512,
    /// The instructions of every 64-bit Arm processor.
    Neon,
}

/// The levels of the processors for which this program was compiled.
pub const LEVELS: &[Level] = if cfg!(target_arch = "x86_64") {
    &[Level::Sse2, Level::Avx2, Level::Avx512]
} else if cfg!(target_arch = "aarch64") {
    &[Level::Neon]
} else {
    &[]
};

impl Level {
    /// Returns the name of the level, as in the environment variable.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Level::Sse2 => "sse2",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
            Level::Neon => "neon",
        }
    }

    /// Returns whether the level contains an instruction set, which is named as in `is_x86_feature_detected!`.
    #[must_use]
    pub fn contains(self, feature: &str) -> bool {
        match self {
            Level::Sse2 => feature == "sse2",
            Level::Avx2 => !feature.starts_with("avx512"),
            Level::Avx512 => true,
            Level::Neon => feature == "neon",
        }
    }

    /// Returns the compiler's name for the processors of this level, as in `-march=x86-64-v3`. `None` if the level does
    /// not limit the compiler.
    #[must_use]
    pub fn march(self) -> Option<&'static str> {
        match self {
            Level::Sse2 => Some("x86-64"),
            Level::Avx2 => Some("x86-64-v3"),
            Level::Avx512 => None,
            Level::Neon => Some("armv8-a"),
        }
    }
}

/// The error that `ASCERTAIN_CPU` does not name a level of this architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLevel(String);

impl fmt::Display for UnknownLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = LEVELS.iter().map(|level| level.name()).collect();
        let known = if known.is_empty() { "no level".into() } else { known.join(", ") };
        write!(f, "{VARIABLE} is `{}`, but {} has {known}; correct it, or unset it", self.0, std::env::consts::ARCH)
    }
}

impl std::error::Error for UnknownLevel {}

/// Returns the level of the environment variable; `None` if it is unset or empty.
///
/// # Errors
/// If the variable does not name a level of this architecture.
pub fn forced() -> Result<Option<Level>, UnknownLevel> {
    let value = std::env::var_os(VARIABLE).unwrap_or_default();
    named(&value.to_string_lossy())
}

/// Returns the level of the environment variable if it hides this instruction set, which the machine has. `None` if the
/// machine lacks the instruction set, or the level contains it.
///
/// ```
/// // No machine has it, so no level hides it.
/// assert_eq!(ascertain_sys::cpu_level::hiding("avx1024"), None);
/// ```
#[cfg(feature = "measuring")]
#[must_use]
pub fn hiding(feature: &str) -> Option<Level> {
    in_effect().filter(|level| hidden_by(*level, &instruction_sets()).any(|hidden| hidden == feature))
}

/// Returns the level of the environment variable if it hides any instruction set that this machine has. `None` if the
/// machine has no instruction set above the level, so that the variable has no effect.
///
/// ```
/// // Without the variable, no level is in effect.
/// assert!(std::env::var_os("ASCERTAIN_CPU").is_some() || ascertain_sys::cpu_level::in_effect().is_none());
/// ```
#[cfg(feature = "measuring")]
#[must_use]
pub fn in_effect() -> Option<Level> {
    forced().ok().flatten().filter(|level| hidden_by(*level, &instruction_sets()).next().is_some())
}

/// Returns the instruction sets that a level hides on a machine with these instruction sets.
#[cfg(feature = "measuring")]
fn hidden_by(level: Level, of_machine: &[String]) -> impl Iterator<Item = &str> {
    of_machine.iter().map(String::as_str).filter(move |feature| !level.contains(feature))
}

fn named(name: &str) -> Result<Option<Level>, UnknownLevel> {
    match LEVELS.iter().find(|level| level.name() == name) {
        None if name.is_empty() => Ok(None),
        None => Err(UnknownLevel(name.into())),
        level => Ok(level.copied()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_has_a_name_and_a_wrong_name_is_an_error() {
        for level in LEVELS {
            assert_eq!(named(level.name()), Ok(Some(*level)));
        }
        assert_eq!(named(""), Ok(None));
        let message = named("avx1024").unwrap_err().to_string();
        assert!(message.starts_with("ASCERTAIN_CPU is `avx1024`, but "), "{message}");
    }

    #[test]
    fn a_level_contains_the_lower_ones() {
        for feature in ["sse2", "popcnt", "avx2", "fma", "lzcnt", "avx512f", "avx512vbmi"] {
            let levels = [Level::Sse2, Level::Avx2, Level::Avx512].map(|level| level.contains(feature));
            assert!(levels.is_sorted(), "{feature}");
        }
        assert!(!Level::Avx2.contains("avx512vbmi") && !Level::Sse2.contains("lzcnt"));
    }

    #[cfg(feature = "measuring")]
    #[test]
    fn a_level_hides_only_instruction_sets_that_the_machine_has() {
        let hidden = |level, of_machine: &[&str]| {
            let of_machine: Vec<String> = of_machine.iter().map(|feature| (*feature).to_owned()).collect();
            hidden_by(level, &of_machine).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(hidden(Level::Avx2, &["sse2", "avx2", "fma"]), [""; 0]);
        assert_eq!(hidden(Level::Avx2, &["sse2", "avx2", "avx512f"]), ["avx512f"]);
        assert_eq!(hidden(Level::Sse2, &["sse2", "popcnt"]), ["popcnt"]);
        assert_eq!(hidden(Level::Neon, &["neon", "sve"]), ["sve"]);
    }
}
