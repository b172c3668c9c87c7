//! A report about a running link: the segments that it carried, and how late they were.

use crate::model::{Counts, Tally};

/// Time after which a frame counts as late. A link is unfaithful if more than 1 % of its frames are late.
const LATE_NS: u64 = 300_000;

/// The traffic that a link carried since it was set up, and the lateness of its frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The model's counts of the segments that were sent to the far side.
    pub to_far: Counts,
    /// The model's counts of the segments that were sent to the near side.
    pub to_near: Counts,
    /// Lateness of the delivered frames, relative to the times that the model computed. It includes the time for which
    /// a frame may have waited because the emulator's thread had no CPU.
    pub lateness: Lateness,
    /// CPU time of the thread that carries the frames (the emulator), including its system calls.
    pub cpu_ns: u64,
    /// `true` if the emulator may use real-time priority. In that case, the emulator has this priority except while the
    /// emulator is too busy.
    pub is_real_time: bool,
    /// Number of frames that the kernel dropped because the emulator did not read them in time. The model's counts do
    /// not include these frames.
    pub unread_frames: u64,
    /// Number of frames that were not delivered, because they were not IP packets, or because the device on the other
    /// side refused them.
    pub refused_frames: u64,
}

impl Report {
    /// Returns whether the link deviated from its model: more than 1 % of its frames were over 0.3 ms late, or frames
    /// were lost that the model did not drop. Measurements over such a link are not valid for the requested conditions.
    pub fn is_unfaithful(&self) -> bool {
        self.lateness.quantile_ns(0.99).is_some_and(|late_ns| late_ns > LATE_NS)
            || self.unread_frames + self.refused_frames > 0
    }

    /// Returns the difference between this report and an earlier one of the same link, for example to cover one trial.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            to_far: counts_since(&self.to_far, &earlier.to_far),
            to_near: counts_since(&self.to_near, &earlier.to_near),
            lateness: self.lateness.since(&earlier.lateness),
            cpu_ns: self.cpu_ns - earlier.cpu_ns,
            is_real_time: self.is_real_time,
            unread_frames: self.unread_frames - earlier.unread_frames,
            refused_frames: self.refused_frames - earlier.refused_frames,
        }
    }
}

fn counts_since(now: &Counts, earlier: &Counts) -> Counts {
    let since = |tally: fn(&Counts) -> Tally| {
        let (now, earlier) = (tally(now), tally(earlier));
        Tally { segments: now.segments - earlier.segments, bytes: now.bytes - earlier.bytes }
    };
    Counts {
        offered: since(|counts| counts.offered),
        due: since(|counts| counts.due),
        throttled: since(|counts| counts.throttled),
        queue_full: since(|counts| counts.queue_full),
        lost: since(|counts| counts.lost),
    }
}

/// Number of buckets of [`Lateness`] per power of two. The relative error of a value is at most the inverse of this
/// number, 1/16.
const STEPS: u64 = 16;

/// The distribution of the lateness of frames, with a relative resolution of about 6 %.
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

    /// Returns the number of recorded values, one for each delivered frame.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns a quantile of the lateness, in nanoseconds: a `share` of 0.5 gives the median, 0.99 the 99th percentile,
    /// and 1 the maximum. `None` if no frame was recorded.
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

    /// Returns the distribution of only those values that were recorded after `earlier`, an earlier state of this
    /// distribution.
    pub fn since(&self, earlier: &Self) -> Self {
        let counts = self.counts.iter().zip(&earlier.counts);
        Self { counts: counts.map(|(now, before)| now.saturating_sub(*before)).collect() }
    }

    /// Returns the index of a value's bucket. Each whole number below 16 has its own bucket. From 16 on, the values
    /// from one power of two to the next are divided among 16 buckets.
    fn bucket(late_ns: u64) -> usize {
        let shift = u64::from((late_ns | 1).ilog2().saturating_sub(STEPS.ilog2()));
        (shift * STEPS + (late_ns >> shift)) as usize
    }

    /// Returns the highest value that belongs to a bucket.
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
