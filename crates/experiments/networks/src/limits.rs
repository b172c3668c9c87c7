//! In how many trials who asks was the limit, and not who answers.

use ascertain_engine::finding::Remark;

/// How many trials of an arm there were, in how many of them who asks was the limit, and what is said of the last such
/// one.
#[derive(Clone, Default)]
pub struct Limits {
    trials: u64,
    limited: u64,
    last: Option<Remark>,
}

impl Limits {
    /// What is to be said behind one more trial: `overload` of the last one in which who asks was the limit, which may
    /// be this one, with both counts.
    pub fn after(&mut self, overload: Option<Remark>) -> Option<Remark> {
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

    /// The figures of a trial in which all went well are not those of the one that is spoken of.
    #[test]
    fn an_overload_is_told_with_its_own_figures() {
        let overload = |sent_per_s, limited, trials| {
            Some(Remark::Overload { limited, trials, wanted_per_s: 100.0, sent_per_s, late_ns: 0.0, refused: 0 })
        };
        let mut limits = Limits::default();
        assert_eq!(limits.after(None), None);
        assert_eq!(limits.after(overload(50.0, 0, 0)), overload(50.0, 1, 2));
        assert_eq!(limits.after(None), overload(50.0, 1, 3));
        assert_eq!(limits.after(overload(60.0, 0, 0)), overload(60.0, 2, 4));
    }
}
