//! A variant: one method with one instruction set, by name.

use crate::features::first_missing;

/// A function of a variant; it may be called only where the CPU has what the variant requires.
pub(super) type Kernel<T> = unsafe fn(&[T]) -> f64;

/// One way to sum a slice of `T`: a method with an instruction set.
///
/// ```
/// use ascertain_numeric::sum::Element;
///
/// let kahan = f64::variant("kahan").unwrap().function(4).unwrap();
/// assert_eq!(kahan(&[0.5, 0.25, 0.125]), 0.875);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Variant<T: 'static> {
    /// The method, then the instruction set unless it is scalar: `kahan`, `kahan-avx512`.
    pub name: &'static str,
    /// A line about it.
    pub about: &'static str,
    /// The CPU features that it needs, as `is_x86_feature_detected!` names them.
    pub requires: &'static [&'static str],
    /// The numbers of independent accumulators (numbers or registers of numbers) that it comes
    /// with.
    pub accumulators: &'static [u32],
    /// Whether its result is the sum. It isn't where only the loads are made, to show what no sum
    /// can beat: there it is the exclusive or of the slice's 64-bit words, as a number.
    pub is_sum: bool,
    /// One for each of `accumulators`; none where the architecture is another.
    pub(super) kernels: &'static [Kernel<T>],
}

impl<T> Variant<T> {
    /// Whether this machine can run it.
    ///
    /// # Errors
    /// The first of the required CPU features that the machine lacks.
    pub fn is_available(&self) -> Result<(), &'static str> {
        first_missing(self.requires).map_or(Ok(()), Err)
    }

    /// The function with so many accumulators, or none where the machine can't run it or it
    /// doesn't come with that number.
    pub fn function(&self, accumulators: u32) -> Option<fn(&[T]) -> f64> {
        self.is_available().ok()?;
        let index = self.accumulators.iter().position(|&n| n == accumulators)?;
        let kernel = self.kernels.get(index)?;
        // SAFETY: the types differ in `unsafe` alone, and the kernel's one condition, that the CPU
        // has the features, holds for as long as the program runs.
        Some(unsafe { std::mem::transmute::<Kernel<T>, fn(&[T]) -> f64>(*kernel) })
    }
}

#[cfg(test)]
mod tests {
    use crate::sum::Element;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn every_required_feature_can_be_detected() {
        for feature in f32::VARIANTS.iter().flat_map(|variant| variant.requires) {
            let is_known = crate::features::FEATURES.iter().any(|(known, _)| known == feature);
            assert!(is_known || *feature == "neon", "{feature}, which no machine of this architecture has");
        }
    }

    #[test]
    fn an_unsupported_number_of_accumulators_has_no_function() {
        assert!(f32::variant("naive").unwrap().function(3).is_none());
        assert!(f32::variant("naive").unwrap().function(0).is_none());
    }
}
