//! What is tried again, when, and how often: the only place that does.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::time::{sleep, timeout};

use super::requests::{Phases, Retried};
use crate::store::{Attempt, Failure, Kind};

/// One request is made as often as this.
const ATTEMPTS: u32 = 8;
/// Waits grow to this, give or take a half.
const LONGEST: Duration = Duration::from_secs(20);
/// A store that wants to be left alone for longer is not waited for.
const LONGEST_ASKED: Duration = Duration::from_secs(300);
/// What can't simply be repeated is waited for so many times longer.
const FINAL: u32 = 5;
/// What is slower than that is taken for broken.
const LEAST_BYTES_PER_S: u64 = 16 << 10;

/// How a request went that was answered in the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Went {
    /// At once, and how long its connection took to make if it was new; none if it was tried again.
    pub straight: Option<Option<f64>>,
    /// How long it took in the end, phase by phase.
    pub phases: Phases,
    /// What was wrong before.
    pub retried: Retried,
}

/// Tries again: each request a few times, all of them together as often as there is a budget for.
#[derive(Debug)]
pub(crate) struct Patience {
    budget: AtomicU64,
    retried: AtomicU64,
    shortest: Duration,
    timeout: Duration,
    random: Mutex<Xoshiro256PlusPlus>,
}

impl Patience {
    pub fn new(budget: u64, shortest: Duration, timeout: Duration, seed: u64) -> Self {
        let random = Mutex::new(Xoshiro256PlusPlus::seed_from_u64(seed));
        Self { budget: AtomicU64::new(budget), retried: AtomicU64::new(0), shortest, timeout, random }
    }

    /// How often anything was tried again.
    pub fn retried(&self) -> u64 {
        self.retried.load(Ordering::Relaxed)
    }

    /// Makes a request that carries so many bytes until it is answered. What may have been carried out is not repeated
    /// here. What is silent for too long counts as `silent`.
    pub async fn ask<T, F>(
        &self,
        bytes: u64,
        silent: Kind,
        mut request: impl FnMut() -> F,
    ) -> Result<(T, Went), Failure>
    where
        F: Future<Output = (Result<T, Failure>, Attempt)>,
    {
        let longer = if silent == Kind::Unanswered { FINAL } else { 1 };
        let limit = self.timeout.saturating_mul(longer) + Duration::from_secs(bytes / LEAST_BYTES_PER_S);
        let mut retried = Retried::default();
        for attempt in 1.. {
            let (answer, seen) = match timeout(limit, pin!(request())).await {
                Ok((answer, seen)) => (answer, Some(seen)),
                Err(_) => {
                    let said = format!("no answer within {:.1} s", limit.as_secs_f64());
                    (Err(Failure { kind: silent, said }), None)
                }
            };
            let failure = match answer {
                Ok(answer) => {
                    let seen = seen.unwrap_or_default();
                    let straight = (attempt == 1).then(|| connecting_s(&seen));
                    return Ok((answer, Went { straight, phases: Phases::of(&seen), retried }));
                }
                Err(failure) => failure,
            };
            let wait = match failure.kind {
                Kind::Transient(Some(asked)) if asked <= LONGEST_ASKED => asked,
                Kind::Transient(None) | Kind::Corrupted => Duration::ZERO,
                Kind::Transient(Some(asked)) => {
                    let said = format!("{} (for {} s, and that is not waited for)", failure.said, asked.as_secs());
                    return Err(Failure { said, ..failure });
                }
                _ => return Err(failure),
            };
            retried.add(&failure, seen.as_ref());
            if attempt >= ATTEMPTS || !self.may_retry() {
                let times = if attempt == 1 { "once".into() } else { format!("{attempt} times") };
                let said = format!("{} (tried {times})", failure.said);
                return Err(Failure { said, ..failure });
            }
            sleep(wait + self.back_off(attempt)).await;
        }
        unreachable!("attempts end")
    }

    /// Counts against the budget.
    pub fn may_retry(&self) -> bool {
        let one_less = |left: u64| left.checked_sub(1);
        let may = self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok();
        self.retried.fetch_add(u64::from(may), Ordering::Relaxed);
        may
    }

    /// Waits before something is tried again for the n-th time.
    pub async fn wait(&self, attempt: u32) {
        sleep(self.back_off(attempt)).await;
    }

    /// Twice as long each time, give or take a half, so that those who were turned away together do not come together.
    fn back_off(&self, attempt: u32) -> Duration {
        let whole = self.shortest.saturating_mul(1 << (attempt - 1).min(16)).min(LONGEST);
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        whole.mul_f64(random.random_range(0.5..1.5))
    }
}

/// How long the connection took to make, if one was made.
fn connecting_s(seen: &Attempt) -> Option<f64> {
    let made = seen.secured.or(seen.connected)?;
    Some(made.saturating_duration_since(seen.began?).as_secs_f64())
}
