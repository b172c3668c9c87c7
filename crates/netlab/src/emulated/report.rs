//! What a link did.

use super::lateness::Lateness;
use crate::model::{Counts, Tally};

/// Above that a link was not what it should have been.
const LATE_NS: u64 = 300_000;

/// What a link did so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What the model did with segments for the far side.
    pub to_far: Counts,
    /// The same for the near side.
    pub to_near: Counts,
    /// By how much frames were handed out later than they were due. Counted in is how long they may have lain unread
    /// because the emulator had no CPU.
    pub lateness: Lateness,
    /// The CPU time of the emulator, in which the kernel's own work for what it reads and writes is counted.
    pub cpu_ns: u64,
    /// Whether the emulator runs before all others while it is not too busy.
    pub is_real_time: bool,
    /// Frames that the kernel dropped because they were not read in time: they are missing from the model's counts.
    pub unread_frames: u64,
    /// Frames that were no packets, or that the other side's device did not take.
    pub refused_frames: u64,
}

impl Report {
    /// Whether the link was later than 0.3 ms with more than one frame in a hundred, or lost what the model did not:
    /// what was measured through it then says little about the link that was asked for.
    #[must_use]
    pub fn is_unfaithful(&self) -> bool {
        self.lateness.quantile_ns(0.99).is_some_and(|late_ns| late_ns > LATE_NS)
            || self.unread_frames + self.refused_frames > 0
    }

    /// What it did since an earlier report: during one trial.
    #[must_use]
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
