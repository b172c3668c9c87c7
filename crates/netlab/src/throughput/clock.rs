//! What separates two clocks.

/// What another machine's clock says more than ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The estimate.
    pub offset_ns: i128,
    /// By how much it may be wrong, either way: half of the round trip that it was taken from.
    pub bound_ns: u64,
}

impl Offset {
    /// From round trips: when each was sent and answered by our clock, and in between by theirs. The shortest knows
    /// most. None without any.
    #[must_use]
    pub fn of(trips: &[[u64; 3]]) -> Option<Self> {
        let [sent_ns, theirs_ns, answered_ns] = *trips.iter().min_by_key(|trip| trip[2].saturating_sub(trip[0]))?;
        let middle_ns = (i128::from(sent_ns) + i128::from(answered_ns)) / 2;
        let bound_ns = answered_ns.saturating_sub(sent_ns).div_ceil(2);
        Some(Self { offset_ns: i128::from(theirs_ns) - middle_ns, bound_ns })
    }

    /// What their clock says when ours says that.
    #[must_use]
    pub fn theirs_ns(&self, ours_ns: u64) -> u64 {
        u64::try_from(i128::from(ours_ns) + self.offset_ns).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_round_trip_is_believed() {
        assert_eq!(Offset::of(&[]), None);
        // One is slow there, one is slow back, and one is as slow both ways as it can be.
        let trips = [[1_000, 6_400, 1_500], [2_000, 7_100, 2_600], [3_000, 8_030, 3_060]];
        let offset = Offset::of(&trips).unwrap();
        assert_eq!(offset, Offset { offset_ns: 5_000, bound_ns: 30 });
        assert_eq!(offset.theirs_ns(4_000), 9_000);
        assert_eq!(Offset::of(&[[10_000, 5, 10_001]]).unwrap().theirs_ns(1), 0);
    }

    proptest::proptest! {
        #[test]
        fn the_truth_is_within_the_bound(
            truth_ns in -1_000_000_000_i64..1_000_000_000,
            trips in proptest::collection::vec((0_u64..1_000_000, 0_u64..100_000, 0_u64..100_000), 1..20),
        ) {
            let trips: Vec<_> = trips.iter().map(|(at_ns, there_ns, back_ns)| {
                let sent_ns = 2_000_000_000 + at_ns;
                let theirs_ns = (sent_ns + there_ns).checked_add_signed(truth_ns).unwrap();
                [sent_ns, theirs_ns, sent_ns + there_ns + back_ns]
            }).collect();
            let offset = Offset::of(&trips).unwrap();
            // Halves are rounded.
            assert!((offset.offset_ns - i128::from(truth_ns)).unsigned_abs() <= u128::from(offset.bound_ns) + 1);
        }
    }
}
