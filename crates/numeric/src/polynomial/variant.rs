//! A method with an instruction set, by name.

use crate::features::first_missing;

/// A function of a variant; it may be called only where the CPU has what the variant requires.
pub(super) type Kernel = unsafe fn(&[f64], &mut [f64]);

/// Fills a slice with the values of the polynomial of these coefficients, the constant one first.
pub type Fill = fn(&[f64], &mut [f64]);

/// One way to fill a slice with a polynomial's values.
///
/// ```
/// use ascertain_numeric::polynomial::VARIANTS;
///
/// let lanes = VARIANTS.iter().find(|variant| variant.name == "recurrences").unwrap();
/// let mut squares = [0.0; 4];
/// lanes.function().unwrap()(&[0.0, 0.0, 1.0], &mut squares);
/// assert_eq!(squares, [0.0, 1.0, 4.0, 9.0]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// The method, then the instruction set unless it is one number at a time.
    pub name: &'static str,
    /// A line about it.
    pub about: &'static str,
    /// The CPU features that it needs, as `is_x86_feature_detected!` names them.
    pub requires: &'static [&'static str],
    /// Whether the values are the polynomial's. They aren't where only the stores are made, to show what
    /// nothing can beat.
    pub is_polynomial: bool,
    /// None where the architecture is another.
    pub(super) kernel: Option<Kernel>,
}

impl Variant {
    /// Whether this machine can run it.
    ///
    /// # Errors
    /// The first of the required CPU features that the machine lacks.
    pub fn is_available(&self) -> Result<(), &'static str> {
        first_missing(self.requires).map_or(Ok(()), Err)
    }

    /// The function; none where the machine can't run it.
    pub fn function(&self) -> Option<Fill> {
        self.is_available().ok()?;
        // SAFETY: the types differ in `unsafe` alone, and the kernel's one condition, that the CPU has the
        // features, holds for as long as the program runs.
        Some(unsafe { std::mem::transmute::<Kernel, Fill>(self.kernel?) })
    }
}
