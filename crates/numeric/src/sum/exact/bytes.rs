//! Conversion of an exact sum to bytes, to store it or send it to another machine, and back.

use core::fmt;

use super::accumulator::Exact;
use super::long::DIGITS;

const MAGIC: [u8; 4] = *b"asum";
const VERSION: u8 = 1;
/// Length in bytes of the header of a stored sum: magic, version and kind.
const HEADER: usize = 6;
/// Total length in bytes of a stored sum. The last digit takes eight bytes, each other digit takes four.
const LENGTH: usize = HEADER + 4 * (DIGITS - 1) + 8;

/// The kind byte of a stored sum that is −0.0. The digits of every kind but [`FINITE`] are 0.
const NEGATIVE_ZERO: u8 = 0;
const FINITE: u8 = 1;
const INFINITY: u8 = 2;
const NEGATIVE_INFINITY: u8 = 3;
const NAN: u8 = 4;

/// The reason why bytes are not a stored exact sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExactBytesError {
    /// The bytes have this length instead of [`Exact::LENGTH`].
    Length(usize),
    /// The bytes do not begin with `asum`, as those of [`Exact::to_bytes`] do.
    NotASum,
    /// The bytes have this version of the format. It is not supported.
    Version(u8),
    /// The header is valid, but these bytes do not represent a sum.
    Damaged,
}

impl fmt::Display for ExactBytesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(found) => write!(f, "an exact sum has {LENGTH} bytes, but there are {found}"),
            Self::NotASum => write!(f, "not an exact sum: the bytes do not begin with `asum`"),
            Self::Version(found) => {
                write!(f, "cannot read an exact sum of version {found} (supported: {VERSION}); update the program")
            }
            Self::Damaged => {
                write!(f, "damaged exact sum: `to_bytes` never returns these bytes; pass the result of `to_bytes`")
            }
        }
    }
}

impl core::error::Error for ExactBytesError {}

impl Exact {
    /// Length in bytes of the result of [`to_bytes`](Exact::to_bytes).
    pub const LENGTH: usize = LENGTH;

    /// Converts the sum to bytes, in the same way on every machine. Equal sums give equal bytes, regardless of how they
    /// were computed.
    ///
    /// The bytes are:
    ///
    /// - `asum`;
    /// - the version (1);
    /// - the kind (0: −0.0, 1: finite, 2: ∞, 3: −∞, 4: NaN);
    /// - 67 digits to the base 2^32 in four bytes each;
    /// - a last digit with the sign in eight bytes.
    ///
    /// All numbers are little-endian. The digits count units of 2^−1074, and are 0 unless the sum is finite.
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

    /// Reads a sum from bytes.
    ///
    /// There is no checksum. If some bytes change, the result is usually still a valid sum, but another one. If the
    /// bytes travel over an unreliable path, send a checksum with them.
    ///
    /// # Errors
    /// Fails for bytes that [`to_bytes`](Exact::to_bytes) does not return.
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
