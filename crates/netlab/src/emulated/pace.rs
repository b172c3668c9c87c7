//! Lets a thread be on time without starving the rest of the machine.
//!
//! If the process may use real-time priority, the thread runs with it. The thread also spins shortly before an event is
//! due, because sleeps end late. On a machine with two CPUs, a real-time thread that spins could starve other threads.
//! Moreover, the kernel stops a real-time thread for 50 ms of each second if the thread never sleeps. Therefore the
//! thread spins at most half of the time, and gives up its priority while it is too busy.

use std::num::NonZeroU64;

use ascertain_sys::privileges::{leave_real_time, run_in_real_time};
use rustix::thread::set_current_timer_slack;

/// Time before an event during which the thread may spin instead of sleeping.
pub(crate) const SPIN_NS: u64 = 70_000;
/// Maximum spinning time that the thread can save up. The saved time grows while the thread does not spin, and is spent
/// by spinning.
const CREDIT_MAX_NS: u64 = 5_000_000;
/// Minimum time between two decisions about the thread's priority.
const WINDOW_NS: u64 = 20_000_000;

pub(crate) struct Pace {
    may_real_time: bool,
    is_real_time: bool,
    window_start_ns: u64,
    slept_ns: u64,
    credit_ns: u64,
    credited_ns: u64,
    /// Due time of the event for which the thread was last allowed to spin.
    spins_until_ns: u64,
}

impl Pace {
    /// Sets the priority and the timer slack of the calling thread.
    pub fn new(now_ns: u64) -> Self {
        // By default, the kernel may end each sleep of a thread without real-time priority up to 50 µs late.
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

    /// Returns whether the process may use real-time priority. In that case, the thread has this priority except while
    /// the thread is too busy.
    pub fn may_real_time(&self) -> bool {
        self.may_real_time
    }

    /// Returns whether to spin until the event at `due_ns`. This is the case if the event is due soon, and the thread
    /// has saved enough spinning time.
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

    /// Records the length of a sleep.
    pub fn slept(&mut self, slept_ns: u64) {
        self.slept_ns += slept_ns;
    }

    /// Decides about the thread's priority if [`WINDOW_NS`] have passed since the last decision. The thread gives up
    /// real-time priority if it slept for less than a fifth of that time. It takes that priority again if it slept for
    /// more than two fifths.
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
        // An event is due every 60 µs, so without the limit the thread would spin all the time.
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
