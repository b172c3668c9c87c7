//! The race itself, and its clock.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::BadPolicy;
use super::ledger::{Counts, Ledger, Policy};

/// Where a race has its time from.
pub trait Clock {
    /// Since a moment that is always the same.
    fn now(&self) -> Duration;

    /// Is ready when so much time has gone by.
    fn sleep(&self, time: Duration) -> impl Future<Output = ()>;
}

/// The system's clock, and tokio's timers: a race by it is awaited within a tokio runtime that has time.
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

/// Who answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The cache.
    Cache,
    /// The origin.
    Origin,
}

/// An answer, whose it is, and what the other said if it had failed before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Won<T, C, O> {
    /// The answer.
    pub value: T,
    /// Whose.
    pub side: Side,
    /// Whether the origin was asked while the cache might still answer.
    pub has_raced: bool,
    /// Why the cache had none.
    pub cache_error: Option<C>,
    /// Why the origin had none.
    pub origin_error: Option<O>,
}

/// Neither had an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("neither the cache ({cache}) nor the origin ({origin}) has it")]
pub struct BothFailed<C, O> {
    /// Why the cache had none.
    pub cache: C,
    /// Why the origin had none.
    pub origin: O,
}

/// Why [`checked`] took something for no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch<E> {
    /// There was none.
    #[error(transparent)]
    Failed(#[from] E),
    /// It is not what was asked for.
    #[error("its checksum is {found:016x} and not {expected:016x}")]
    Differs {
        /// The checksum that it should have.
        expected: u64,
        /// The one that it has.
        found: u64,
    },
}

/// An answer whose checksum is not the expected one is none: a cache that has something else has failed, and the origin
/// is asked. Around both futures, it makes sure that it does not matter who wins.
///
/// # Errors
/// The future's, or that its answer is another one.
pub async fn checked<T, E>(
    answer: impl Future<Output = Result<T, E>>,
    expected: u64,
    sum: impl FnOnce(&T) -> u64,
) -> Result<T, Mismatch<E>> {
    let value = answer.await?;
    let found = sum(&value);
    if found == expected { Ok(value) } else { Err(Mismatch::Differs { expected, found }) }
}

/// Races a cache with its origin, by one policy for all requests.
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
    /// Where there is a limit: who may ask the cache.
    room: Option<Semaphore>,
    /// Held only where nothing is awaited.
    ledger: Mutex<Ledger>,
}

impl<K> fmt::Debug for Racer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Racer").field("ledger", &self.ledger).finish_non_exhaustive()
    }
}

impl Racer {
    /// By tokio's time.
    ///
    /// # Errors
    /// [`BadPolicy`] for a quantile or a budget that is no share, and a limit of nothing at once.
    pub fn new(policy: Policy) -> Result<Self, BadPolicy> {
        Self::with_clock(policy, TokioClock::default())
    }
}

impl<K: Clock> Racer<K> {
    /// By the time of that clock.
    ///
    /// # Errors
    /// As [`new`](Racer::new).
    pub fn with_clock(policy: Policy, clock: K) -> Result<Self, BadPolicy> {
        let policy = policy.check()?;
        let room = match policy {
            Policy::Throttled { at_once } => Some(Semaphore::new(at_once.min(Semaphore::MAX_PERMITS))),
            _ => None,
        };
        Ok(Self { clock, room, ledger: Mutex::new(Ledger::new(policy)) })
    }

    /// What it did so far.
    pub fn counts(&self) -> Counts {
        self.ledger().counts
    }

    /// After how long a request that begins now would race, if its budget allows it; none if it would not.
    pub fn delay(&self) -> Option<Duration> {
        self.ledger().delay()
    }

    /// Asks the cache, and the origin where the cache fails or the policy says so. A miss is a failure of the cache.
    ///
    /// A future that is not needed any longer is dropped, with this one or before: what it does must end with it, or
    /// do no harm. A cache that may hang for ever wants a limit of its own, which makes that a failure. Of the two, the
    /// cache is polled first, so that it wins where both are ready.
    ///
    /// # Errors
    /// Both sides', where neither has an answer.
    pub async fn race<T, C, O>(
        &self,
        cache: impl Future<Output = Result<T, C>>,
        origin: impl Future<Output = Result<T, O>>,
    ) -> Result<Won<T, C, O>, BothFailed<C, O>> {
        let (mut cache, mut origin) = (pin!(cache), pin!(origin));
        let mut request = Request::begin(self);
        let turn = match &self.room {
            // It is never closed.
            Some(room) => room.acquire().await.ok(),
            None => None,
        };
        request.asks_cache();
        let mut said = match request.delay {
            None => Some(cache.as_mut().await),
            Some(delay) => {
                // What has its answer at hand does not race.
                let late = pin!(async {
                    if !delay.is_zero() {
                        self.clock.sleep(delay).await;
                    }
                });
                match either(cache.as_mut(), late).await {
                    Either::First(said) => Some(said),
                    Either::Second(()) => None,
                }
            }
        };
        if said.is_none() && !request.may_race() {
            said = Some(cache.as_mut().await);
        }
        let first = match said {
            Some(said) => Either::First(said),
            None => either(cache.as_mut(), origin.as_mut()).await,
        };
        match first {
            Either::First(Ok(value)) => Ok(request.cache_answers(value, None)),
            Either::First(Err(cache_error)) => {
                request.cache_fails();
                // The next one may ask the cache while the origin takes its time.
                drop(turn);
                match origin.await {
                    Ok(value) => Ok(request.origin_answers(value, Some(cache_error))),
                    Err(origin_error) => {
                        request.origin_fails();
                        Err(request.both_fail(cache_error, origin_error))
                    }
                }
            }
            Either::Second(Ok(value)) => Ok(request.origin_answers(value, None)),
            Either::Second(Err(origin_error)) => {
                request.origin_fails();
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

/// Whichever is ready, the first one where both are.
async fn either<A: Future, B: Future>(mut a: Pin<&mut A>, mut b: Pin<&mut B>) -> Either<A::Output, B::Output> {
    poll_fn(|context| match a.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Either::First(output)),
        Poll::Pending => b.as_mut().poll(context).map(Either::Second),
    })
    .await
}

/// A request under way. Dropped before it has ended, it was cancelled.
struct Request<'a, K: Clock> {
    racer: &'a Racer<K>,
    delay: Option<Duration>,
    /// Since when the cache is waited for.
    waits_since: Option<Duration>,
    has_raced: bool,
    is_under_way: bool,
}

impl<'a, K: Clock> Request<'a, K> {
    fn begin(racer: &'a Racer<K>) -> Self {
        let delay = racer.ledger().begin();
        Self { racer, delay, waits_since: None, has_raced: false, is_under_way: true }
    }

    fn asks_cache(&mut self) {
        self.waits_since = Some(self.racer.clock.now());
    }

    fn may_race(&mut self) -> bool {
        self.has_raced = self.racer.ledger().may_race();
        self.has_raced
    }

    /// What a failure took says nothing of how long answers take: a miss is known soon, a limit late.
    fn cache_fails(&mut self) {
        self.waits_since = None;
        let mut ledger = self.racer.ledger();
        ledger.counts.cache_failed += 1;
        if self.has_raced {
            ledger.was_needed();
        }
    }

    fn origin_fails(&self) {
        self.racer.ledger().counts.origin_failed += 1;
    }

    fn cache_answers<T, C, O>(mut self, value: T, origin_error: Option<O>) -> Won<T, C, O> {
        let mut ledger = self.ends(false);
        ledger.counts.cache_won += u64::from(self.has_raced);
        Won { value, side: Side::Cache, has_raced: self.has_raced, cache_error: None, origin_error }
    }

    fn origin_answers<T, C, O>(mut self, value: T, cache_error: Option<C>) -> Won<T, C, O> {
        let mut ledger = self.ends(true);
        ledger.counts.network_won += u64::from(cache_error.is_none());
        Won { value, side: Side::Origin, has_raced: self.has_raced, cache_error, origin_error: None }
    }

    fn both_fail<C, O>(mut self, cache: C, origin: O) -> BothFailed<C, O> {
        self.ends(true).counts.failed += 1;
        BothFailed { cache, origin }
    }

    /// Nobody waits for the cache from now on, because it has answered or because it need not.
    fn ends(&mut self, is_cut: bool) -> MutexGuard<'a, Ledger> {
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
            self.ends(true).counts.cancelled += 1;
        }
    }
}
