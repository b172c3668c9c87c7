//! Counts the trials in which the client, and not the server, was the bottleneck.

use ascertain_engine::finding::Remark;

/// Counts the trials of an arm, and how many of them were limited by the client instead of the server.
#[derive(Clone, Default)]
pub struct OverloadLog {
    trials: u64,
    limited: u64,
    last: Option<Remark>,
}

impl OverloadLog {
    /// Adds a trial. `overload` is a remark if the client was the bottleneck in this trial, otherwise `None`. Returns
    /// the most recent remark, updated with the current numbers of trials.
    pub fn add_trial(&mut self, overload: Option<Remark>) -> Option<Remark> {
        self.trials += 1;
        self.limited += u64::from(overload.is_some());
        self.last = overload.or(self.last.take());
        if let Some(Remark::Overload { limited, trials, .. }) = &mut self.last {
            (*limited, *trials) = (self.limited, self.trials);
        }
        self.last.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The remark has the figures of the overloaded trial, not those of a later one.
    #[test]
    fn an_overload_is_told_with_its_own_figures() {
        let overload = |sent_per_s, limited, trials| {
            Some(Remark::Overload { limited, trials, wanted_per_s: 100.0, sent_per_s, late_ns: 0.0, refused: 0 })
        };
        let mut log = OverloadLog::default();
        assert_eq!(log.add_trial(None), None);
        assert_eq!(log.add_trial(overload(50.0, 0, 0)), overload(50.0, 1, 2));
        assert_eq!(log.add_trial(None), overload(50.0, 1, 3));
        assert_eq!(log.add_trial(overload(60.0, 0, 0)), overload(60.0, 2, 4));
    }
}
