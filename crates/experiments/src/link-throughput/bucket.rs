//! A token bucket, as what arrives through it shows it.

use std::time::Duration;

/// What arrived, and when.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// From the beginning.
    pub left_out: Duration,
    /// What arrived in it.
    pub left_out_bytes: u64,
    /// What follows is cut into these.
    pub interval: Duration,
    /// What arrived in each.
    pub bytes: Vec<u64>,
}

impl Curve {
    /// Bytes a second, by interval.
    pub fn rates(&self) -> impl Iterator<Item = f64> {
        let interval_s = self.interval.as_secs_f64();
        self.bytes.iter().map(move |bytes| *bytes as f64 / interval_s)
    }
}

/// A bucket that was full at the beginning and ran out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// What it held.
    pub burst_bytes: f64,
    /// What it is filled with, which is what goes through when it has run out.
    pub bytes_per_s: f64,
    /// When it ran out, since the beginning.
    pub ran_out: Duration,
}

impl Bucket {
    /// Where the rate falls once and stays there: as much as came until then, less what was filled in meanwhile.
    pub fn of(_curve: &Curve) -> Option<Self> {
        None
    }
}
