//! How a thread that must be on time leaves the machine to others.
//!
//! It runs in real time where that is allowed, and spins before something is due, since a sleep ends late. Both would
//! starve a machine of two CPUs: a thread in real time that never sleeps is stopped by the kernel for 50 ms of each
//! second, and until then nothing else runs on its CPU. So it spins at most half of the time, and shares its CPU as
//! others do while it has too much to do.

use std::num::NonZeroU64;

use ascertain_sys::privileges::{leave_real_time, run_in_real_time};
use rustix::thread::set_current_timer_slack;

/// How long before something is due it stops sleeping.
pub(crate) const SPIN_NS: u64 = 70_000;
/// How much spinning is saved up while there is none.
const CREDIT_MAX_NS: u64 = 5_000_000;
/// How often it looks back.
const WINDOW_NS: u64 = 20_000_000;

pub(crate) struct Pace {
    may_real_time: bool,
    is_real_time: bool,
    window_start_ns: u64,
    slept_ns: u64,
    credit_ns: u64,
    credited_ns: u64,
    /// What it was last allowed to spin for.
    spins_until_ns: u64,
}

impl Pace {
    /// Of the calling thread.
    pub fn new(now_ns: u64) -> Self {
        // Without real time the kernel may put off the end of a sleep by 50 µs to save power.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let is_real_time = run_in_real_time().is_ok();
        Self {
            may_real_time: is_real_time,
            is_real_time,
            window_start_ns: now_ns,
            slept_ns: 0,
            credit_ns: CREDIT_MAX_NS,
            credited_ns: now_ns,
            spins_until_ns: 0,
        }
    }

    /// Whether it runs in real time while it is not too busy.
    pub fn may_real_time(&self) -> bool {
        self.may_real_time
    }

    /// Whether it is so close that it is worth while to stay awake, and that may be afforded.
    pub fn spins(&mut self, now_ns: u64, due_ns: u64) -> bool {
        let left_ns = due_ns.saturating_sub(now_ns);
        if due_ns == self.spins_until_ns || left_ns > SPIN_NS {
            return left_ns <= SPIN_NS;
        }
        self.credit_ns = CREDIT_MAX_NS.min(self.credit_ns + now_ns.saturating_sub(self.credited_ns) / 2);
        self.credited_ns = now_ns;
        let affords_it = self.credit_ns >= left_ns;
        if affords_it {
            self.credit_ns -= left_ns;
            self.spins_until_ns = due_ns;
        }
        affords_it
    }

    /// To be told of each sleep.
    pub fn slept(&mut self, slept_ns: u64) {
        self.slept_ns += slept_ns;
    }

    /// Gives up its priority if it hardly slept of late, and takes it again once it does.
    pub fn consider(&mut self, now_ns: u64) {
        let window_ns = now_ns.saturating_sub(self.window_start_ns);
        if window_ns < WINDOW_NS {
            return;
        }
        let (is_busy, is_idle) = (self.slept_ns < window_ns / 5, self.slept_ns > window_ns / 5 * 2);
        if self.is_real_time && is_busy {
            self.is_real_time = leave_real_time().is_err();
        } else if self.may_real_time && !self.is_real_time && is_idle {
            self.is_real_time = run_in_real_time().is_ok();
        }
        (self.window_start_ns, self.slept_ns) = (now_ns, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_spins_at_most_half_of_the_time() {
        let mut pace = Pace::new(0);
        let (mut now_ns, mut spun_ns) = (0, 0);
        // Something is due every 60 µs: it could spin for ever.
        while now_ns < 1_000_000_000 {
            let due_ns = now_ns + 60_000;
            if pace.spins(now_ns, due_ns) {
                assert!(pace.spins(now_ns + 59_999, due_ns));
                spun_ns += 60_000;
            }
            now_ns = due_ns;
        }
        assert!((450_000_000..=510_000_000).contains(&spun_ns), "{spun_ns}");
        assert!(!pace.spins(now_ns, now_ns + SPIN_NS + 1));
    }
}
