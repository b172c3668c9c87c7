//! The race between a cache and its origin, and the clock for its delays.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::InvalidPolicy;
use super::ledger::{Counts, Ledger, Policy};

/// A source of time for races.
pub trait Clock {
    /// Returns the time that has passed since a fixed moment. The clock chooses this moment.
    fn now(&self) -> Duration;

    /// Returns a future that completes after `time`.
    fn sleep(&self, time: Duration) -> impl Future<Output = ()>;
}

/// The system's clock, with the timers of tokio. Its races need a tokio runtime whose time driver is enabled.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock(Instant);

impl Default for TokioClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// The side that answered a request: the cache or the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The cache, which is read first.
    Cache,
    /// The origin, which is behind the cache.
    Origin,
}

/// The answer to a request. If one side failed before the other answered, its error is included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaceResult<T, C, O> {
    /// The value that the winning future returned.
    pub value: T,
    /// The side whose future returned the value.
    pub side: Side,
    /// `true` if the request was sent to the origin while the cache could still answer.
    pub has_raced: bool,
    /// The error of the cache, if it failed before the origin answered.
    pub cache_error: Option<C>,
    /// The error of the origin, if it failed before the cache answered.
    pub origin_error: Option<O>,
}

/// The error of a request that neither the cache nor the origin answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("neither side answered the request; cache: {cache}; origin: {origin}")]
pub struct RaceError<C, O> {
    /// The error that the cache's future returned.
    pub cache: C,
    /// The error that the origin's future returned.
    pub origin: O,
}

/// The reason why [`checked`] returned no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch<E> {
    /// The future returned an error.
    #[error(transparent)]
    Failed(#[from] E),
    /// The future returned a value with a wrong checksum.
    #[error("the checksum of the answer is {found:016x} instead of {expected:016x}")]
    Differs {
        /// The expected checksum of the value.
        expected: u64,
        /// The actual checksum of the value.
        found: u64,
    },
}

/// Returns the value of `answer` if it has the checksum `expected`, or else an error. A cache with wrong contents thus
/// counts as failed, and the request goes to the origin. Both futures of a race can be wrapped like this.
///
/// # Errors
/// Returns the error of the future, or [`Mismatch::Differs`] if the checksum differs.
pub async fn checked<T, E>(
    answer: impl Future<Output = Result<T, E>>,
    expected: u64,
    sum: impl FnOnce(&T) -> u64,
) -> Result<T, Mismatch<E>> {
    let value = answer.await?;
    let found = sum(&value);
    if found == expected { Ok(value) } else { Err(Mismatch::Differs { expected, found }) }
}

/// Races a cache with its origin, under one policy for all requests.
///
/// ```
/// use ascertain_transfer::race::{Policy, Racer, Side};
/// use std::convert::Infallible;
/// use std::time::Duration;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let racer = Racer::new(Policy::After(Duration::from_millis(5)))?;
/// let cache = async {
///     tokio::time::sleep(Duration::from_secs(60)).await;
///     Ok::<_, Infallible>("slow")
/// };
/// let won = racer.race(cache, async { Ok::<_, Infallible>("fast") }).await?;
/// assert_eq!((won.value, won.side), ("fast", Side::Origin));
/// assert_eq!(racer.counts().network_won, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Racer<K = TokioClock> {
    pub(super) clock: K,
    /// Limits the number of requests that read the cache at the same time. `None` if their number is unlimited.
    room: Option<Semaphore>,
    /// The state that all requests share. The lock is never held across an `await`.
    ledger: Mutex<Ledger>,
}

impl<K> fmt::Debug for Racer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Racer").field("ledger", &self.ledger).finish_non_exhaustive()
    }
}

impl Racer {
    /// Creates a racer that uses tokio's clock.
    ///
    /// # Errors
    /// Returns [`InvalidPolicy`] if a quantile or budget is out of range, or if the limit on the requests is zero.
    pub fn new(policy: Policy) -> Result<Self, InvalidPolicy> {
        Self::with_clock(policy, TokioClock::default())
    }
}

impl<K: Clock> Racer<K> {
    /// Creates a racer that uses the given clock.
    ///
    /// # Errors
    /// Returns the errors of [`new`](Racer::new).
    pub fn with_clock(policy: Policy, clock: K) -> Result<Self, InvalidPolicy> {
        let policy = policy.check()?;
        let room = match policy {
            Policy::Throttled { at_once } => Some(Semaphore::new(at_once.min(Semaphore::MAX_PERMITS))),
            _ => None,
        };
        Ok(Self { clock, room, ledger: Mutex::new(Ledger::new(policy)) })
    }

    /// Returns the counts of all requests so far.
    pub fn counts(&self) -> Counts {
        self.ledger().counts
    }

    /// Returns the delay after which a new request would race if the policy's budget permits it. `None` if a new
    /// request would not race.
    pub fn delay(&self) -> Option<Duration> {
        self.ledger().delay()
    }

    /// Sends a request to the cache. Also sends it to the origin if the cache fails, or if the policy permits a race. A
    /// cache miss counts as a failure of the cache.
    ///
    /// A future that is no longer needed is dropped, at the latest together with the returned future. Work that it has
    /// started must then end, or do no harm. If the cache may hang, give its future a timeout, so that a hang becomes a
    /// failure. If both sides are ready at the same time, the cache wins, because it is polled first.
    ///
    /// # Errors
    /// Returns the errors of both sides if both fail.
    pub async fn race<T, C, O>(
        &self,
        cache: impl Future<Output = Result<T, C>>,
        origin: impl Future<Output = Result<T, O>>,
    ) -> Result<RaceResult<T, C, O>, RaceError<C, O>> {
        let (mut cache, mut origin) = (pin!(cache), pin!(origin));
        let mut request = Request::new(self);
        let turn = match &self.room {
            // Acquiring a permit fails only if the semaphore is closed, and this one is never closed.
            Some(room) => room.acquire().await.ok(),
            None => None,
        };
        request.waits_since = Some(self.clock.now());
        let mut answer = match request.delay {
            None => Some(cache.as_mut().await),
            Some(delay) => {
                // The cache is polled once even without a delay, so a cache that answers immediately does not race.
                let late = pin!(async {
                    if !delay.is_zero() {
                        self.clock.sleep(delay).await;
                    }
                });
                match either(cache.as_mut(), late).await {
                    Either::First(answer) => Some(answer),
                    Either::Second(()) => None,
                }
            }
        };
        if answer.is_none() {
            request.has_raced = self.ledger().may_race();
            if !request.has_raced {
                answer = Some(cache.as_mut().await);
            }
        }
        let first = match answer {
            Some(answer) => Either::First(answer),
            None => either(cache.as_mut(), origin.as_mut()).await,
        };
        match first {
            Either::First(Ok(value)) => Ok(request.cache_answers(value, None)),
            Either::First(Err(cache_error)) => {
                request.cache_fails();
                // This request no longer reads the cache. Another one may do so while the origin answers.
                drop(turn);
                match origin.await {
                    Ok(value) => Ok(request.origin_answers(value, Some(cache_error))),
                    Err(origin_error) => {
                        self.ledger().counts.origin_failed += 1;
                        Err(request.both_fail(cache_error, origin_error))
                    }
                }
            }
            Either::Second(Ok(value)) => Ok(request.origin_answers(value, None)),
            Either::Second(Err(origin_error)) => {
                self.ledger().counts.origin_failed += 1;
                match cache.await {
                    Ok(value) => Ok(request.cache_answers(value, Some(origin_error))),
                    Err(cache_error) => {
                        request.cache_fails();
                        Err(request.both_fail(cache_error, origin_error))
                    }
                }
            }
        }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Either<A, B> {
    First(A),
    Second(B),
}

/// Waits until one of two futures is ready, and returns its output. If both are ready at the same time, returns the
/// output of `a`.
async fn either<A: Future, B: Future>(mut a: Pin<&mut A>, mut b: Pin<&mut B>) -> Either<A::Output, B::Output> {
    poll_fn(|context| match a.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Either::First(output)),
        Poll::Pending => b.as_mut().poll(context).map(Either::Second),
    })
    .await
}

/// A request in flight. If it is dropped before it has ended, it is counted as cancelled.
struct Request<'a, K: Clock> {
    racer: &'a Racer<K>,
    delay: Option<Duration>,
    /// The time at which the request started to wait for the cache. `None` before that, and after the cache has failed.
    waits_since: Option<Duration>,
    has_raced: bool,
    is_under_way: bool,
}

impl<'a, K: Clock> Request<'a, K> {
    fn new(racer: &'a Racer<K>) -> Self {
        let delay = racer.ledger().begin();
        Self { racer, delay, waits_since: None, has_raced: false, is_under_way: true }
    }

    /// Records that the cache failed. Its duration is not recorded, because it does not resemble the duration of an
    /// answer: a miss is fast, and a timeout is slow.
    fn cache_fails(&mut self) {
        self.waits_since = None;
        let mut ledger = self.racer.ledger();
        ledger.counts.cache_failed += 1;
        if self.has_raced {
            ledger.was_needed();
        }
    }

    fn cache_answers<T, C, O>(mut self, value: T, origin_error: Option<O>) -> RaceResult<T, C, O> {
        let mut ledger = self.finish(false);
        ledger.counts.cache_won += u64::from(self.has_raced);
        RaceResult { value, side: Side::Cache, has_raced: self.has_raced, cache_error: None, origin_error }
    }

    fn origin_answers<T, C, O>(mut self, value: T, cache_error: Option<C>) -> RaceResult<T, C, O> {
        let mut ledger = self.finish(true);
        ledger.counts.network_won += u64::from(cache_error.is_none());
        RaceResult { value, side: Side::Origin, has_raced: self.has_raced, cache_error, origin_error: None }
    }

    fn both_fail<C, O>(mut self, cache: C, origin: O) -> RaceError<C, O> {
        self.finish(true).counts.failed += 1;
        RaceError { cache, origin }
    }

    /// Ends the request, and records how long it waited for the cache. `is_cut` is `true` if it was dropped before the
    /// cache answered.
    fn finish(&mut self, is_cut: bool) -> MutexGuard<'a, Ledger> {
        self.is_under_way = false;
        let waited = self.waits_since.map(|since| self.racer.clock.now().saturating_sub(since));
        let mut ledger = self.racer.ledger();
        if let Some(waited) = waited {
            ledger.waited(waited, is_cut, self.delay);
        }
        ledger
    }
}

impl<K: Clock> Drop for Request<'_, K> {
    fn drop(&mut self) {
        if self.is_under_way {
            self.finish(true).counts.cancelled += 1;
        }
    }
}
