//! Retries of failed requests, each after a wait and for a limited number of times.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::time::{sleep, timeout};

use crate::result::{RequestStats, RetryCounts};
use crate::store::{Attempt, Failure, Kind};

/// Maximum number of attempts of one request.
const MAX_ATTEMPTS: u32 = 8;
/// Upper limit on the average wait before a retry. The actual wait varies randomly between 0.5 and 1.5 times the
/// average.
const MAX_WAIT: Duration = Duration::from_secs(20);
/// Longest wait before a retry that a store may request. If it requests a longer one, the request fails.
const MAX_REQUESTED_WAIT: Duration = Duration::from_secs(300);
/// Factor by which the timeout is longer for a request that must not simply be repeated, such as a commit.
const FINAL: u32 = 5;
/// Lowest rate of a connection in bytes per second that does not count as a failure. Timeouts are long enough for it.
const MIN_BYTES_PER_S: u64 = 16 << 10;

/// Repeats failed requests. Limits the number of attempts of each request, and the number of retries of all requests
/// together.
#[derive(Debug)]
pub(crate) struct RetryPolicy {
    budget: AtomicU64,
    retries: AtomicU64,
    first_wait: Duration,
    timeout: Duration,
    random: Mutex<Xoshiro256PlusPlus>,
}

/// Creates a closure that sends a request to a store. The closure evaluates the expression `$request`, in which
/// `$attempt` is the record of the attempt. Its future returns the result of the request and this record.
macro_rules! request {
    ($attempt:ident = $first:expr, $request:expr) => {
        || async {
            let mut $attempt = $first;
            ($request.await, $attempt)
        }
    };
    ($attempt:ident, $request:expr) => {
        $crate::retry::request!($attempt = $crate::store::Attempt::default(), $request)
    };
}
pub(crate) use request;

impl RetryPolicy {
    pub fn new(budget: u64, first_wait: Duration, timeout: Duration, seed: u64) -> Self {
        let random = Mutex::new(Xoshiro256PlusPlus::seed_from_u64(seed));
        Self { budget: AtomicU64::new(budget), retries: AtomicU64::new(0), first_wait, timeout, random }
    }

    /// Returns the number of retries of all requests so far.
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Sends a request that carries `bytes` bytes. After a transient failure, repeats the request while attempts and
    /// retries are left. Never repeats a request that the store may have carried out. If a request reaches the timeout,
    /// the failure has the kind `silent`.
    pub async fn run<T, F>(
        &self,
        bytes: u64,
        silent: Kind,
        mut request: impl FnMut() -> F,
    ) -> Result<(T, RequestStats), Failure>
    where
        F: Future<Output = (Result<T, Failure>, Attempt)>,
    {
        let longer = if silent == Kind::Unanswered { FINAL } else { 1 };
        let limit = self.timeout.saturating_mul(longer) + Duration::from_secs(bytes / MIN_BYTES_PER_S);
        let mut retries = RetryCounts::default();
        for number in 1.. {
            let (failure, attempt) = match timeout(limit, pin!(request())).await {
                Ok((Ok(answer), attempt)) => return Ok((answer, RequestStats::new(&attempt, retries))),
                Ok((Err(failure), attempt)) => (failure, Some(attempt)),
                Err(_) => (Failure::new(silent, format!("no answer within {:.1} s", limit.as_secs_f64())), None),
            };
            let wait = match failure.kind {
                Kind::Transient(Some(requested)) if requested <= MAX_REQUESTED_WAIT => requested,
                Kind::Transient(None) | Kind::Corrupted => Duration::ZERO,
                Kind::Transient(Some(requested)) => {
                    let limit = format!("(the store requests a wait of {} s, which is too long)", requested.as_secs());
                    return Err(Failure::new(failure.kind, format!("{} {limit}", failure.message)));
                }
                _ => return Err(failure),
            };
            retries.add(&failure, attempt.as_ref());
            if number >= MAX_ATTEMPTS || !self.spend_retry() {
                let times = if number == 1 { "once".into() } else { format!("{number} times") };
                return Err(Failure::new(failure.kind, format!("{} (tried {times})", failure.message)));
            }
            sleep(wait + self.back_off(number)).await;
        }
        unreachable!("the number of attempts is limited")
    }

    /// Takes one retry from the number that all requests may still use. Returns `false` if none is left.
    pub fn spend_retry(&self) -> bool {
        let decrement = |left: u64| left.checked_sub(1);
        let is_left = self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, decrement).is_ok();
        self.retries.fetch_add(u64::from(is_left), Ordering::Relaxed);
        is_left
    }

    /// Returns the wait before a request's retry number `retry`, counted from 1. Its average doubles with each retry.
    /// It is random, so that clients that were refused together do not return together.
    pub fn back_off(&self, retry: u32) -> Duration {
        let whole = self.first_wait.saturating_mul(1 << (retry - 1).min(16)).min(MAX_WAIT);
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        whole.mul_f64(random.random_range(0.5..1.5))
    }
}
