//! How late something happened, many times over.

/// Buckets within a power of two: a value is known to 1 in 16.
const STEPS: u64 = 16;

/// A distribution of times by which something was late, to about 6 %.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lateness {
    counts: Vec<u64>,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { counts: vec![0; Self::bucket(u64::MAX) + 1] }
    }
}

impl Lateness {
    pub(crate) fn record(&mut self, late_ns: u64) {
        self.counts[Self::bucket(late_ns)] += 1;
    }

    /// How often it happened.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// By how much at most in this share of the cases: 0.99 for the 99th percentile, 1 for the most; none if there are
    /// no cases.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let count = self.count();
        let rank = ((share * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut below = 0;
        let reached = |&bucket: &usize| {
            below += self.counts[bucket];
            below >= rank
        };
        (0..self.counts.len()).find(reached).map(Self::highest_ns)
    }

    /// What came after the earlier state of the same distribution.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let counts = self.counts.iter().zip(&earlier.counts);
        Self { counts: counts.map(|(now, before)| now.saturating_sub(*before)).collect() }
    }

    /// Whole numbers up to 16, then sixteen to each power of two.
    fn bucket(late_ns: u64) -> usize {
        let shift = u64::from((late_ns | 1).ilog2().saturating_sub(STEPS.ilog2()));
        (shift * STEPS + (late_ns >> shift)) as usize
    }

    /// The last that is in a bucket.
    fn highest_ns(bucket: usize) -> u64 {
        let shift = (bucket as u64 / STEPS).saturating_sub(1);
        let first = bucket as u64 - shift * STEPS;
        (((u128::from(first) + 1) << shift) - 1) as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_bucket_holds_what_is_close(late_ns in any::<u64>(), shift in 0..64) {
            let late_ns = late_ns >> shift;
            let bucket = Lateness::bucket(late_ns);
            let highest_ns = Lateness::highest_ns(bucket);
            prop_assert!(late_ns <= highest_ns && highest_ns - late_ns <= late_ns / STEPS);
            prop_assert_eq!(Lateness::bucket(highest_ns), bucket);
            prop_assert!(highest_ns == u64::MAX || Lateness::bucket(highest_ns + 1) == bucket + 1);
        }
    }

    #[test]
    fn quantiles_are_of_what_was_recorded() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile_ns(0.5), None);
        for late_ns in 1..=100 {
            lateness.record(late_ns * 1000);
        }
        let before = lateness.clone();
        for (share, exact_ns) in [(0.0, 1000), (0.5, 50_000), (0.99, 99_000), (1.0, 100_000)] {
            let quantile_ns = lateness.quantile_ns(share).unwrap();
            assert!((exact_ns..exact_ns + exact_ns / 16).contains(&quantile_ns), "{share}: {quantile_ns}");
        }
        lateness.record(7);
        let since = lateness.since(&before);
        assert_eq!((since.count(), since.quantile_ns(0.5)), (1, Some(7)));
    }
}
