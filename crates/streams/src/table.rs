//! A flat table for quantiles in constant memory: values are counted in buckets whose width is a fixed share of the
//! value.

/// Octaves that the table covers: from 2^−16 to 2^48. In nanoseconds, this is up to 78 hours.
pub const OCTAVES: u32 = 64;
/// Exponent of the lowest octave.
const LOWEST: i32 = -16;
/// Buckets in an octave. With it, a side has 65,474 buckets, whose numbers fit into 16 bits.
const BUCKETS: u32 = 1023;
/// Number of the bucket for values of 2^48 and above.
const ABOVE: u32 = OCTAVES * BUCKETS + 1;
/// Counters of a side of the table; 16 bits each, so 128 KiB.
const SIDE: usize = 1 << 16;
/// Values whose buckets are computed together.
const CHUNK: usize = 64;
/// Size of a side in bytes.
pub const SIDE_BYTES: u64 = 2 * SIDE as u64;
/// Size of an entry of the list of carries, in bytes.
pub const CARRY_BYTES: u64 = 8;
/// Values per carry: a counter of 16 bits is full after them.
pub const VALUES_PER_CARRY: u64 = 1 << 16;

/// Largest relative error of a quantile between 2^−16 and 2^48. Values nearer to zero count as 0, and values of 2^48 or
/// more as infinity. Between a negative and a positive neighbour, the error is relative to the one farther from zero.
///
/// A bucket spans 1/1023 of a piecewise quadratic approximation of the binary logarithm, whose slope is at least 4/3 of
/// the relative change. The answer is the harmonic mean of the bucket's ends, so the error is at most half of the
/// width: 1 / (1023 · 4/3 · 2) = 3.67·10⁻⁴.
pub const RELATIVE_ERROR: f64 = 3.67e-4;

/// Counts of values in buckets. The memory does not depend on the values: 128 KiB, or 256 KiB if values can be
/// negative, and 8 bytes for each carry.
///
/// ```
/// use ascertain_streams::FlatTable;
///
/// let mut table = FlatTable::new(false, 0)?;
/// (1..=1001).for_each(|value| table.insert(f64::from(value)).unwrap());
/// let median = table.quantile(0.5).unwrap();
/// assert!((median / 501.0 - 1.0).abs() < ascertain_streams::RELATIVE_ERROR);
/// # Ok::<(), ascertain_streams::RunError>(())
/// ```
#[derive(Clone, Debug)]
pub struct FlatTable {
    counts: Box<[u16]>,
    /// Buckets with more than 65,535 values, in order: the bucket and the number of times its counter was full. Only
    /// the first `carried` entries are used.
    carries: Box<[(u32, u32)]>,
    carried: usize,
    values: u64,
    /// All buckets with values are between these two.
    first: u32,
    last: u32,
    /// Bucket at which the last search ended, and the number of values in the buckets before it.
    cursor: u32,
    before_cursor: u64,
    /// A bucket and its estimate, because the same bucket often answers several questions in a row.
    estimated: (u32, f64),
}

use crate::run::RunError;
use crate::run::memory::filled;

impl FlatTable {
    /// Makes an empty table. `carries` entries are enough for at least `(carries + 1) · 65,536 − 1` values.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(is_signed: bool, carries: usize) -> Result<FlatTable, RunError> {
        let sides = if is_signed { 2 } else { 1 };
        Ok(FlatTable {
            counts: filled(SIDE * sides, 0)?,
            carries: filled(carries, (0, 0))?,
            carried: 0,
            values: 0,
            first: u32::MAX,
            last: 0,
            cursor: 0,
            before_cursor: 0,
            estimated: (u32::MAX, 0.0),
        })
    }

    /// Returns the number of buckets. A table with as many carries is full only after 2^48 values.
    pub(crate) fn buckets(is_signed: bool) -> u64 {
        if is_signed { 2 * SIDE as u64 } else { SIDE as u64 }
    }

    /// Returns the size in bytes of the memory of a table.
    #[must_use]
    pub fn bytes(is_signed: bool, carries: u64) -> u64 {
        SIDE_BYTES * if is_signed { 2 } else { 1 } + CARRY_BYTES * carries
    }

    /// Returns the number of values in the table.
    #[must_use]
    pub fn values(&self) -> u64 {
        self.values
    }

    /// Returns the bucket of a value.
    pub(crate) fn bucket(&self, value: f64) -> u32 {
        let side = SIDE as u32;
        let bucket = bucket_of(value.abs()) as u32;
        match self.counts.len() == SIDE {
            true if value < 0.0 => 0,
            true => bucket,
            false if value < 0.0 => side - 1 - bucket,
            false => side + bucket,
        }
    }

    /// Counts a value. NaN counts as 0; callers leave nulls out.
    ///
    /// # Errors
    /// If more counters are full than there are carries.
    pub fn insert(&mut self, value: f64) -> Result<(), RunError> {
        self.insert_bucket(self.bucket(value))
    }

    /// Counts a value `times` times.
    ///
    /// # Errors
    /// If more counters are full than there are carries.
    pub fn insert_times(&mut self, value: f64, times: u64) -> Result<(), RunError> {
        if times == 0 {
            return Ok(());
        }
        let bucket = self.bucket(value);
        self.values += times;
        self.first = self.first.min(bucket);
        self.last = self.last.max(bucket);
        self.before_cursor += if bucket < self.cursor { times } else { 0 };
        let counter = &mut self.counts[bucket as usize];
        let sum = u64::from(*counter) + times;
        *counter = sum as u16;
        if sum < VALUES_PER_CARRY { Ok(()) } else { self.carry(bucket, (sum >> 16) as u32) }
    }

    /// Returns the buckets that have values, in ascending order: the value that stands for the bucket, and the number of
    /// values in it. The value is 0 for values that are too near to zero, and infinite for values that are too large.
    pub fn histogram(&self) -> impl Iterator<Item = (f64, u64)> {
        let buckets = self.first..if self.values == 0 { self.first } else { self.last + 1 };
        let counted = buckets.map(|bucket| (self.estimate(bucket), self.count(bucket)));
        counted.filter(|(_, count)| *count > 0)
    }

    /// Counts values. Nulls are left out.
    ///
    /// # Errors
    /// As [`insert`](FlatTable::insert).
    pub(crate) fn extend(&mut self, values: &[f64]) -> Result<(), RunError> {
        let is_unsigned = self.counts.len() == SIDE;
        let mut buckets = [0_u64; CHUNK];
        // With the cursor at the start, no value is below it.
        self.move_to_start();
        for chunk in values.chunks(CHUNK) {
            let buckets = &mut buckets[..chunk.len()];
            let (mut least, mut most, mut nulls) = (f64::INFINITY, 0.0, 0_u64);
            // The compiler makes vector instructions of this loop.
            for (bucket, value) in buckets.iter_mut().zip(chunk) {
                *bucket = bucket_of(*value);
                least = if *value < least { *value } else { least };
                most = if *value > most { *value } else { most };
                nulls += u64::from(value.is_nan());
            }
            if nulls > 0 || !is_unsigned {
                let known = chunk.iter().filter(|value| !value.is_nan());
                known.copied().try_for_each(|value| self.insert(value))?;
                continue;
            }
            self.values += chunk.len() as u64;
            self.first = self.first.min(bucket_of(least) as u32);
            self.last = self.last.max(bucket_of(most) as u32);
            for bucket in buckets {
                let bucket = *bucket as u16;
                let counter = &mut self.counts[usize::from(bucket)];
                *counter = counter.wrapping_add(1);
                if *counter == 0 {
                    self.carry(bucket.into(), 1)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn insert_bucket(&mut self, bucket: u32) -> Result<(), RunError> {
        self.values += 1;
        self.first = self.first.min(bucket);
        self.last = self.last.max(bucket);
        self.before_cursor += u64::from(bucket < self.cursor);
        let counter = &mut self.counts[bucket as usize];
        *counter = counter.wrapping_add(1);
        if *counter == 0 { self.carry(bucket, 1) } else { Ok(()) }
    }

    /// Removes a value that was counted before.
    pub(crate) fn remove_bucket(&mut self, bucket: u32) {
        self.values -= 1;
        self.before_cursor -= u64::from(bucket < self.cursor);
        let counter = &mut self.counts[bucket as usize];
        *counter = counter.wrapping_sub(1);
        if *counter == u16::MAX {
            self.borrow(bucket);
        }
    }

    fn carry(&mut self, bucket: u32, times: u32) -> Result<(), RunError> {
        let used = &mut self.carries[..self.carried];
        match used.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(index) => used[index].1 += times,
            Err(index) => {
                if self.carried == self.carries.len() {
                    return Err(RunError::TableFull { values: self.values });
                }
                self.carried += 1;
                self.carries[index..self.carried].rotate_right(1);
                self.carries[index] = (bucket, times);
            }
        }
        Ok(())
    }

    fn borrow(&mut self, bucket: u32) {
        let used = &mut self.carries[..self.carried];
        let Ok(index) = used.binary_search_by_key(&bucket, |(bucket, _)| *bucket) else { return };
        used[index].1 -= 1;
        if used[index].1 == 0 {
            used[index..].rotate_left(1);
            self.carried -= 1;
        }
    }

    /// Returns the number of values in a bucket.
    fn count(&self, bucket: u32) -> u64 {
        let mut count = u64::from(self.counts[bucket as usize]);
        if self.carried > 0 {
            let used = &self.carries[..self.carried];
            let found = used.binary_search_by_key(&bucket, |(bucket, _)| *bucket);
            count += found.map_or(0, |index| u64::from(used[index].1) << 16);
        }
        count
    }

    /// Adds all values of another table.
    ///
    /// # Errors
    /// If more counters are full than there are carries.
    ///
    /// # Panics
    /// Panics if only one of the tables accepts negative values.
    pub fn merge(&mut self, other: &FlatTable) -> Result<(), RunError> {
        assert_eq!(self.counts.len(), other.counts.len(), "both tables accept negative values, or neither does");
        if other.values == 0 {
            return Ok(());
        }
        self.values += other.values;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.move_to_start();
        for bucket in other.first..=other.last {
            let counter = &mut self.counts[bucket as usize];
            let (sum, is_full) = counter.overflowing_add(other.counts[bucket as usize]);
            *counter = sum;
            if is_full {
                self.carry(bucket, 1)?;
            }
        }
        other.carries[..other.carried].iter().try_for_each(|(bucket, times)| self.carry(*bucket, *times))
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        if self.first <= self.last {
            self.counts[self.first as usize..=self.last as usize].fill(0);
        }
        (self.first, self.last) = (u32::MAX, 0);
        (self.values, self.carried) = (0, 0);
        self.move_to_start();
    }

    fn move_to_start(&mut self) {
        (self.cursor, self.before_cursor) = (0, 0);
    }

    /// Moves the cursor to the bucket that contains the value with this rank, counted from 0.
    fn seek(&mut self, rank: u64) {
        // All values are from `first` on, so a search from the start can begin there.
        if self.before_cursor == 0 && self.cursor < self.first {
            self.cursor = self.first;
        }
        while self.before_cursor > rank {
            self.cursor -= 1;
            self.before_cursor -= self.count(self.cursor);
        }
        loop {
            let count = self.count(self.cursor);
            if self.before_cursor + count > rank {
                return;
            }
            self.before_cursor += count;
            self.cursor += 1;
        }
    }

    /// Returns the quantile at a level between 0 and 1, interpolated between neighbours as in NumPy's default. Returns
    /// `None` if the table is empty, or if `level` is not between 0 and 1. The relative error is at most
    /// [`RELATIVE_ERROR`].
    pub fn quantile(&mut self, level: f64) -> Option<f64> {
        let last = self.values.checked_sub(1).filter(|_| (0.0..=1.0).contains(&level))?;
        let position = level * last as f64;
        let rank = (position as u64).min(last);
        let fraction = position - rank as f64;
        self.seek(rank);
        if self.estimated.0 != self.cursor {
            self.estimated = (self.cursor, self.estimate(self.cursor));
        }
        let low = self.estimated.1;
        if fraction == 0.0 || self.before_cursor + self.count(self.cursor) > rank + 1 {
            return Some(low);
        }
        let mut next = self.cursor + 1;
        while self.counts[next as usize] == 0 && self.count(next) == 0 {
            next += 1;
        }
        Some(interpolate(low, self.estimate(next), fraction))
    }

    /// Returns the value that stands for all values of a bucket.
    fn estimate(&self, bucket: u32) -> f64 {
        let side = SIDE as u32;
        match self.counts.len() == SIDE {
            true => estimate_of(bucket),
            false if bucket < side => -estimate_of(side - 1 - bucket),
            false => estimate_of(bucket - side),
        }
    }
}

/// Returns the value at `fraction` of the way between two neighbours, as `quantile_sorted` of `ascertain-stats` does.
pub(crate) fn interpolate(low: f64, high: f64, fraction: f64) -> f64 {
    let distance = high - low;
    if fraction == 0.0 || low == high {
        return low;
    }
    if distance.is_finite() {
        // Rounding may carry the sum past the upper value.
        return (low + distance * fraction).min(high);
    }
    low * (1.0 - fraction) + high * fraction
}

/// Returns the bucket of a value on its side: 0 below 2^−16 and for NaN, and [`ABOVE`] from 2^48 on.
#[inline(always)]
fn bucket_of(value: f64) -> u64 {
    const LEAST: f64 = 1.0 / 65_536.0;
    const MOST: f64 = 281_474_976_710_656.0;
    const ONE: u64 = 1023 << 52;
    /// The number of the bucket before the one of a value with the exponent 0.
    const BIAS: u64 = (1023 + LOWEST) as u64 * BUCKETS as u64 - 1;
    /// A sum with this number has the nearest whole number in its lowest bits. Unlike a conversion, an addition has a
    /// vector instruction on every processor.
    const ROUNDING: f64 = 6_755_399_441_055_744.0;
    let bits = value.to_bits();
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | ONE);
    // A quadratic polynomial that is 0 at 1 and 1 at 2, and whose slope fits at both ends.
    let part = (2.0 - mantissa * (1.0 / 3.0)) * mantissa - 5.0 / 3.0;
    let place = (part * f64::from(BUCKETS) - 0.5 + ROUNDING).to_bits() & 0xffff;
    let exponent = bits >> 52;
    // 1023 times the exponent.
    let bucket = ((exponent << 10) - exponent).wrapping_sub(BIAS).wrapping_add(place);
    let bucket = if value < MOST { bucket } else { ABOVE.into() };
    if value >= LEAST { bucket } else { 0 }
}

/// Returns the harmonic mean of the ends of a bucket, which minimises the relative error.
fn estimate_of(bucket: u32) -> f64 {
    match bucket {
        0 => 0.0,
        bucket if bucket >= ABOVE => f64::INFINITY,
        bucket => {
            let (octave, place) = ((bucket - 1) / BUCKETS, (bucket - 1) % BUCKETS);
            // The inverse of the polynomial in `bucket_of`.
            let end = |place: u32| 3.0 - (4.0 - 3.0 * f64::from(place) / f64::from(BUCKETS)).sqrt();
            let (low, high) = (end(place), end(place + 1));
            2.0 * low * high / (low + high) * 2_f64.powi(octave as i32 + LOWEST)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket_of(value: f64) -> u32 {
        super::bucket_of(value) as u32
    }

    #[test]
    fn every_value_in_the_range_is_near_the_estimate_of_its_bucket() {
        let mut worst = 0.0_f64;
        let mut value = 2_f64.powi(LOWEST);
        while value < 2_f64.powi(48) {
            worst = worst.max((estimate_of(bucket_of(value)) / value - 1.0).abs());
            value *= 1.000_037;
        }
        assert!(worst <= RELATIVE_ERROR, "{worst}");
        assert!(worst > RELATIVE_ERROR * 0.99, "the stated error is not attained: {worst}");
    }

    #[test]
    fn buckets_are_in_the_order_of_the_values() {
        let ends = [0.0, 1e-9, 2_f64.powi(LOWEST), 1.0, 2_f64.powi(48), f64::MAX, f64::INFINITY];
        let buckets = ends.map(bucket_of);
        assert_eq!(buckets, [0, 0, 1, 1 + 16 * BUCKETS, ABOVE, ABOVE, ABOVE]);
        for exponent in LOWEST..48 {
            let power = 2_f64.powi(exponent);
            let below = f64::from_bits(power.to_bits() - 1);
            assert!(bucket_of(below) <= bucket_of(power), "{exponent}");
            assert!(bucket_of(power) - bucket_of(below) <= 1, "{exponent}");
        }
        assert_eq!(bucket_of(f64::NAN), 0);
        assert_eq!(bucket_of(-5.0), 0);
    }

    #[test]
    fn a_histogram_makes_the_same_table() {
        for is_signed in [false, true] {
            let mut table = FlatTable::new(is_signed, 4).unwrap();
            for index in 0..300_000_u32 {
                table.insert(f64::from(index % 7) - if is_signed { 3.0 } else { 0.0 }).unwrap();
            }
            table.insert(f64::INFINITY).unwrap();
            let mut again = FlatTable::new(is_signed, 8).unwrap();
            table.histogram().for_each(|(value, times)| again.insert_times(value, times).unwrap());
            assert_eq!(again.values(), 300_001);
            for level in [0.0, 0.1, 0.5, 0.9, 1.0] {
                assert_eq!(again.quantile(level), table.quantile(level), "{level}");
            }
        }
        assert_eq!(FlatTable::new(false, 0).unwrap().histogram().count(), 0);
    }

    #[test]
    fn full_counters_are_carried_and_borrowed() {
        let mut table = FlatTable::new(false, 2).unwrap();
        for _ in 0..200_000 {
            table.insert(7.0).unwrap();
            table.insert(9.0).unwrap();
        }
        assert_eq!((table.values(), table.count(table.bucket(7.0))), (400_000, 200_000));
        assert!(table.quantile(0.4999).unwrap() < 8.0 && table.quantile(0.5001).unwrap() > 8.0);
        let bucket = table.bucket(9.0);
        (0..199_999).for_each(|_| table.remove_bucket(bucket));
        assert_eq!((table.count(bucket), table.carried), (1, 1));
        assert!(table.quantile(0.5).unwrap() < 8.0 && table.quantile(1.0).unwrap() > 8.0);
        table.clear();
        assert_eq!((table.values(), table.quantile(0.5)), (0, None));
    }

    #[test]
    fn values_are_counted_alike_one_by_one_and_in_chunks() {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            match state >> 60 {
                0 => 0.0,
                1 => f64::INFINITY,
                2 => 2_f64.powi((state >> 40) as i32 % 40),
                _ => f64::from_bits((state >> 12) | (0x3ff << 52)) * 1e4,
            }
        };
        for (is_signed, nulls) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
            let mut values: Vec<f64> = (0..1000).map(|_| next()).collect();
            if is_signed {
                values.iter_mut().step_by(3).for_each(|value| *value = -*value);
            }
            values[500..500 + nulls].fill(f64::NAN);
            let [mut chunks, mut single] = [(); 2].map(|()| FlatTable::new(is_signed, 0).unwrap());
            chunks.extend(&values).unwrap();
            values.iter().filter(|value| !value.is_nan()).for_each(|value| single.insert(*value).unwrap());
            assert_eq!((chunks.values(), &chunks.counts), (single.values(), &single.counts));
            assert_eq!((chunks.first, chunks.last), (single.first, single.last));
            for level in [0.0, 0.5, 0.99, 1.0] {
                assert_eq!(chunks.quantile(level), single.quantile(level), "{is_signed} {level}");
            }
        }
    }

    #[test]
    fn a_table_without_room_for_carries_reports_it() {
        let mut table = FlatTable::new(false, 0).unwrap();
        (0..65_535).for_each(|_| table.insert(1.0).unwrap());
        assert_eq!(table.insert(1.0), Err(RunError::TableFull { values: 65_536 }));
    }
}
