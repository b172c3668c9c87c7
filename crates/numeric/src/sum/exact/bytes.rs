//! An exact sum as bytes, to be stored or sent to another machine.

use core::fmt;

use super::accumulator::Exact;
use super::long::DIGITS;

const MAGIC: [u8; 4] = *b"asum";
const VERSION: u8 = 1;
/// Magic, version and kind.
const HEADER: usize = 6;
/// The last digit takes eight bytes, every other four.
const LENGTH: usize = HEADER + 4 * (DIGITS - 1) + 8;

/// What kind of sum it is; the digits of all but `FINITE` are 0.
const NEGATIVE_ZERO: u8 = 0;
const FINITE: u8 = 1;
const INFINITY: u8 = 2;
const NEGATIVE_INFINITY: u8 = 3;
const NAN: u8 = 4;

/// Why bytes are not an exact sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExactBytesError {
    /// So many bytes instead of [`Exact::LENGTH`].
    Length(usize),
    /// They don't begin as [`Exact::to_bytes`] does.
    NotASum,
    /// A version that this one doesn't know.
    Version(u8),
    /// They begin as a sum's, but no sum gives them.
    Damaged,
}

impl fmt::Display for ExactBytesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(found) => write!(f, "an exact sum has {LENGTH} bytes, and these are {found}"),
            Self::NotASum => write!(f, "these bytes are not an exact sum: they don't begin with `asum`"),
            Self::Version(found) => {
                write!(f, "an exact sum of version {found}; this program reads version {VERSION}: update it")
            }
            Self::Damaged => {
                write!(f, "these bytes begin as an exact sum, but no sum gives them: take what to_bytes gave")
            }
        }
    }
}

impl core::error::Error for ExactBytesError {}

impl Exact {
    /// How many bytes [`to_bytes`](Exact::to_bytes) gives.
    pub const LENGTH: usize = LENGTH;

    /// The sum as bytes, the same on every machine: equal sums give equal bytes, however they were come by.
    ///
    /// `asum`, the version (1), the kind (0: −0.0, 1: finite, 2: ∞, 3: −∞, 4: NaN), 67 digits to the base 2^32 in four
    /// bytes each and a last one with the sign in eight (all least byte first, in units of 2^−1074; 0 unless finite).
    ///
    /// ```
    /// use ascertain_numeric::sum::Exact;
    ///
    /// let sum: Exact = [0.1, 0.2, 0.3].into_iter().collect();
    /// let there = Exact::from_bytes(&sum.to_bytes())?;
    /// assert_eq!(there.round(), sum.round());
    /// # Ok::<(), ascertain_numeric::sum::ExactBytesError>(())
    /// ```
    pub fn to_bytes(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        let (finite, special) = self.settled();
        bytes[5] = kind(special, self.only_negative_zeros);
        if bytes[5] == FINITE {
            for (place, digit) in bytes[HEADER..].chunks_mut(4).zip(finite.digits) {
                place.copy_from_slice(&(digit as u32).to_le_bytes());
            }
            bytes[LENGTH - 8..].copy_from_slice(&finite.digits[DIGITS - 1].to_le_bytes());
        }
        bytes
    }

    /// The sum that these are the bytes of.
    ///
    /// There is no checksum: bytes of which some were changed are mostly those of another sum. Where they come over a
    /// way that may change them, send a checksum along.
    ///
    /// # Errors
    /// For anything that [`to_bytes`](Exact::to_bytes) doesn't give.
    pub fn from_bytes(bytes: &[u8]) -> Result<Exact, ExactBytesError> {
        let Ok(bytes) = <&[u8; LENGTH]>::try_from(bytes) else {
            return Err(ExactBytesError::Length(bytes.len()));
        };
        if bytes[..4] != MAGIC {
            return Err(ExactBytesError::NotASum);
        }
        if bytes[4] != VERSION {
            return Err(ExactBytesError::Version(bytes[4]));
        }
        let kind = bytes[5];
        let mut sum = Exact::new();
        let (digits, top) = bytes[HEADER..].split_at(4 * (DIGITS - 1));
        for (digit, bytes) in sum.finite.digits.iter_mut().zip(digits.as_chunks::<4>().0) {
            *digit = i64::from(u32::from_le_bytes(*bytes));
        }
        sum.finite.digits[DIGITS - 1] = i64::from_le_bytes(top.try_into().expect("eight bytes are left"));
        let is_zero = sum.finite.digits.iter().all(|&digit| digit == 0);
        if sum.finite.overflow().is_some() || kind > NAN || (kind != FINITE && !is_zero) {
            return Err(ExactBytesError::Damaged);
        }
        sum.only_negative_zeros = kind == NEGATIVE_ZERO;
        sum.special = match kind {
            INFINITY => f64::INFINITY,
            NEGATIVE_INFINITY => f64::NEG_INFINITY,
            NAN => f64::NAN,
            _ => 0.0,
        };
        Ok(sum)
    }
}

fn kind(special: f64, only_negative_zeros: bool) -> u8 {
    match special {
        f64::INFINITY => INFINITY,
        f64::NEG_INFINITY => NEGATIVE_INFINITY,
        special if special.is_nan() => NAN,
        _ if only_negative_zeros => NEGATIVE_ZERO,
        _ => FINITE,
    }
}
