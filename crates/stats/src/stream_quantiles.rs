//! Quantiles of a stream in bounded memory, to a stated relative error.

use crate::Error;
use std::collections::BTreeMap;

/// Each octave, from one power of two to the next, is cut into so many buckets of equal width.
const BUCKETS_PER_OCTAVE: usize = 1 << BUCKET_BITS;
const BUCKET_BITS: u32 = 9;
const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;

/// How often each bucket of one octave was hit.
type Octave = Box<[u64; BUCKETS_PER_OCTAVE]>;

/// The quantiles of a stream of values, of which only counts in logarithmic buckets are kept.
///
/// [`quantile`](Self::quantile) is within 2^-10, less than 0.1 %, of the value that a sort of all values would give,
/// however many there are and in whatever order they came; the least and the greatest value are exact. Zero,
/// negative and infinite values are fine; values nearer to 0 than 2.3e-308 are kept to 2.2e-311. A merge is exact, as
/// if one stream had taken in all values.
///
/// Memory is 4 KiB for each power of two that the values touch: 60 KiB for times between a microsecond and 30
/// milliseconds, 17 MB for every double there is. The bucket is read off the bits of the value, without a logarithm.
/// The guarantee is that of DDSketch (Masson, Rim and Lee, *DDSketch: A Fast and Fully-Mergeable Quantile Sketch with
/// Relative-Error Guarantees*, 2019), the buckets are linear within an octave as in Tene's HdrHistogram.
///
/// ```
/// use ascertain_stats::StreamQuantiles;
/// let mut latencies = StreamQuantiles::new();
/// for microseconds in 1..=100_000 {
///     latencies.push(f64::from(microseconds))?;
/// }
/// let p99 = latencies.quantile(0.99).unwrap();
/// assert!((p99 / 99_000.0 - 1.0).abs() < StreamQuantiles::RELATIVE_ERROR);
/// assert_eq!(latencies.max(), Some(100_000.0));
/// # Ok::<(), ascertain_stats::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct StreamQuantiles {
    positive: Buckets,
    negative: Buckets,
    zeros: u64,
    positive_infinities: u64,
    negative_infinities: u64,
    /// The least and the greatest value, once there is one.
    extremes: Option<(f64, f64)>,
}

impl StreamQuantiles {
    /// The most by which a quantile may differ from the exact one, relative to it.
    pub const RELATIVE_ERROR: f64 = 1.0 / (2 * BUCKETS_PER_OCTAVE) as f64;

    /// Quantiles of no values yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in one value.
    ///
    /// # Errors
    ///
    /// [`Error::NotANumber`] for NaN, which has no place in an order; the quantiles stay as they were.
    pub fn push(&mut self, value: f64) -> Result<(), Error> {
        if value.is_nan() {
            return Err(Error::NotANumber);
        }
        self.widen(value, value);
        match value {
            0.0 => self.zeros += 1,
            f64::INFINITY => self.positive_infinities += 1,
            f64::NEG_INFINITY => self.negative_infinities += 1,
            0.0.. => self.positive.add(value),
            _ => self.negative.add(-value),
        }
        Ok(())
    }

    /// Takes in all the values that `other` has taken in.
    pub fn merge(&mut self, other: &StreamQuantiles) {
        self.positive.merge(&other.positive);
        self.negative.merge(&other.negative);
        self.zeros += other.zeros;
        self.positive_infinities += other.positive_infinities;
        self.negative_infinities += other.negative_infinities;
        if let Some((min, max)) = other.extremes {
            self.widen(min, max);
        }
    }

    /// Values taken in.
    pub fn count(&self) -> u64 {
        let finite = self.negative.count + self.zeros + self.positive.count;
        self.negative_infinities + finite + self.positive_infinities
    }

    /// The least value, exactly; none without values.
    pub fn min(&self) -> Option<f64> {
        self.extremes.map(|(min, _)| min)
    }

    /// The greatest value, exactly; none without values.
    pub fn max(&self) -> Option<f64> {
        self.extremes.map(|(_, max)| max)
    }

    /// The quantile `q`: the least value that at least a share `q` of all values does not exceed, within
    /// [`RELATIVE_ERROR`](Self::RELATIVE_ERROR). None without values and for a `q` outside of [0, 1].
    ///
    /// That is the value of rank `⌈q n⌉` in ascending order, the first for `q = 0`: type 1 of Hyndman and Fan, which
    /// does not interpolate.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let (min, max) = self.extremes?;
        if !(0.0..=1.0).contains(&q) {
            return None;
        }
        let count = self.count();
        let rank = ((q * count as f64).ceil() as u64).clamp(1, count);
        if rank == 1 {
            return Some(min);
        }
        if rank == count {
            return Some(max);
        }
        Some(self.value_of_rank(rank).clamp(min, max))
    }

    /// The middle of the bucket that holds the value of this rank, counted from 1.
    fn value_of_rank(&self, rank: u64) -> f64 {
        let mut rank = rank;
        if rank <= self.negative_infinities {
            return f64::NEG_INFINITY;
        }
        rank -= self.negative_infinities;
        if rank <= self.negative.count {
            // The most negative value is the one farthest from zero.
            return -self.negative.value_of_rank(self.negative.count + 1 - rank);
        }
        rank -= self.negative.count;
        if rank <= self.zeros {
            return 0.0;
        }
        rank -= self.zeros;
        if rank <= self.positive.count {
            return self.positive.value_of_rank(rank);
        }
        f64::INFINITY
    }

    fn widen(&mut self, min: f64, max: f64) {
        let (least, greatest) = self.extremes.unwrap_or((min, max));
        self.extremes = Some((least.min(min), greatest.max(max)));
    }
}

/// Counts of positive finite values, by octave and bucket.
#[derive(Clone, Debug, Default)]
struct Buckets {
    count: u64,
    /// By biased exponent, so in ascending order of value.
    octaves: BTreeMap<u16, Octave>,
}

impl Buckets {
    fn add(&mut self, value: f64) {
        let (exponent, bucket) = bucket_of(value);
        self.octaves.entry(exponent).or_insert_with(empty_octave)[bucket] += 1;
        self.count += 1;
    }

    fn merge(&mut self, other: &Buckets) {
        for (&exponent, counts) in &other.octaves {
            let mine = self.octaves.entry(exponent).or_insert_with(empty_octave);
            for (sum, count) in mine.iter_mut().zip(counts.iter()) {
                *sum += count;
            }
        }
        self.count += other.count;
    }

    /// The middle of the bucket where the count reaches `rank`, which is at most the count of all.
    fn value_of_rank(&self, rank: u64) -> f64 {
        let mut below = 0;
        for (&exponent, counts) in &self.octaves {
            for (bucket, count) in counts.iter().enumerate() {
                below += count;
                if below >= rank {
                    return middle_of(exponent, bucket);
                }
            }
        }
        f64::MAX
    }
}

fn empty_octave() -> Octave {
    Box::new([0; BUCKETS_PER_OCTAVE])
}

/// The biased exponent of a positive value, and the leading bits of its mantissa.
fn bucket_of(value: f64) -> (u16, usize) {
    let index = value.to_bits() >> (MANTISSA_BITS - BUCKET_BITS);
    ((index >> BUCKET_BITS) as u16, index as usize % BUCKETS_PER_OCTAVE)
}

/// The value halfway through a bucket: its leading bits, and then a one.
fn middle_of(exponent: u16, bucket: usize) -> f64 {
    let index = u64::from(exponent) << BUCKET_BITS | bucket as u64;
    f64::from_bits((2 * index + 1) << (MANTISSA_BITS - BUCKET_BITS - 1))
}
