//! Retries of failed requests, and reports of outages.
//!
//! A request whose failure is transient is repeated after a wait, until one of three limits is reached:
//!
//! - The number of its retries.
//! - The time for which no request of the command has succeeded. It includes waits for answers and waits before further
//!   attempts. When this time is over, the command sends no further request, unless bytes of another request still
//!   move.
//! - A number of error answers to this request, over the whole time for retries. The store works, but can't serve this
//!   object, so only this request fails.
//!
//! All times are measured from the latest progress of the request, so a slow link is not an outage.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

use crate::contact::{AttemptClock, Contact};
use crate::manager::Settings;
use crate::result::{Observer, Outage, RequestStats, RetryCounts};
use crate::store::{Attempt, Failure, Kind};

/// Upper limit on the average wait before a retry. The actual wait varies randomly between 0.5 and 1.5 times the
/// average.
const MAX_WAIT: Duration = Duration::from_secs(20);
/// Time that an attempt may take without progress in addition to the timeout, to open its connection. Once the
/// connection is open, the client of a cloud store detects silence itself, and reports it with a better message.
const OPENING: Duration = Duration::from_secs(25);
/// Factor by which the time limit is longer for a request that must not simply be repeated, such as a commit.
const FINAL: u32 = 5;
/// Lowest rate in bytes per second at which a store that does not report its progress must carry out a request. Time
/// limits are long enough for it.
const MIN_BYTES_PER_S: u64 = 16 << 10;
/// Maximum number of attempts of a request whose bytes arrive corrupted. After this number, the object is probably
/// damaged in the store. The time limit does not end these retries as long as other requests succeed.
const MAX_CORRUPTED: u64 = 3;
/// Minimum number of error answers after which a request fails alone, although other requests succeed. The request must
/// also have made no progress for the whole time for retries. A store that is only busy usually recovers sooner.
const MIN_REFUSED: u64 = 10;
/// Maximum number of requests that are repeated at the same time after a timeout. If a slow link starves its connections,
/// fewer connections make progress.
const SILENT_AT_ONCE: usize = 4;
/// Interval between two reports of an outage.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Time without contact after which an outage is reported. Slow answers of a working store usually take less.
const MIN_SILENCE: Duration = Duration::from_secs(3);

/// Repeats failed requests, and reports outages to the observer. All requests of a command share it.
pub(crate) struct RetryPolicy {
    max_retries: u64,
    retry_for: Duration,
    first_wait: Duration,
    timeout: Duration,
    retries: AtomicU64,
    /// End of the longest wait that the store has requested before a retry: by the status 429 or 503, or by a duration.
    refused_until: Mutex<Option<Instant>>,
    state: Mutex<State>,
    /// The permits of the requests that are repeated after a timeout.
    after_timeout: Semaphore,
    /// The clocks of the attempts in flight. The clocks of dropped attempts are removed later.
    in_flight: Mutex<Vec<Weak<AttemptClock>>>,
    random: Mutex<Xoshiro256PlusPlus>,
    contact: Arc<Contact>,
    observer: Arc<dyn Observer>,
}

/// The state of the outage, if there is one.
#[derive(Default)]
struct State {
    last_success: Option<Instant>,
    /// The failure after which the command sends no further request; `None` while requests are sent.
    given_up: Option<Failure>,
    /// The status of the latest failed attempt, if the server refused the request.
    status: Option<u16>,
    /// The time of the first request since the latest success that failed alone, because the store answered it only
    /// with errors.
    failed_alone: Option<Instant>,
    /// Start of the silence that was reported last.
    silent_since: Option<Instant>,
    /// Time of the latest report.
    reported_at: Option<Instant>,
    is_reported: bool,
}

/// A request that is being sent or repeated.
#[derive(Clone, Copy)]
struct Ongoing {
    /// The time since when the request has been without progress. It is the start of the request, moved forward by the
    /// waits for a connection and by the times in which bytes of the request moved.
    since: Instant,
    /// `true` if the request has failed before.
    has_failed: bool,
    /// `true` if the request is simply repeated after a failure.
    is_repeated: bool,
}

/// Creates a closure that sends a request to a store. The closure evaluates the expression `$request`, in which
/// `$attempt` is the record of the attempt, with the rate limit of the gate `$gate`. Its future returns the result of
/// the request and this record.
macro_rules! request {
    ($attempt:ident = $gate:expr, $request:expr) => {
        |attempt| async {
            let mut $attempt = $gate.with_rate_limit(attempt);
            ($request.await, $attempt)
        }
    };
}
pub(crate) use request;

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy").field("retries", &self.retries).finish_non_exhaustive()
    }
}

impl RetryPolicy {
    pub fn new(settings: &Settings, observer: Arc<dyn Observer>) -> Self {
        let &Settings { retries, retry_for, back_off, timeout, seed, .. } = settings;
        Self {
            max_retries: retries,
            retry_for,
            first_wait: back_off,
            timeout,
            retries: AtomicU64::new(0),
            refused_until: Mutex::default(),
            state: Mutex::default(),
            after_timeout: Semaphore::new(SILENT_AT_ONCE),
            in_flight: Mutex::default(),
            random: Mutex::new(Xoshiro256PlusPlus::seed_from_u64(seed)),
            contact: Arc::new(Contact::new()),
            observer,
        }
    }

    /// Returns the number of retries of all requests so far.
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Returns the record for a new attempt, which updates the latest contact with a server.
    pub fn attempt(&self) -> Attempt {
        Attempt { contact: Some(Arc::clone(&self.contact)), ..Attempt::default() }
    }

    /// Creates the clock of a new attempt.
    fn new_clock(&self) -> Arc<AttemptClock> {
        let clock = Arc::<AttemptClock>::default();
        let mut in_flight = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        in_flight.retain(|clock| clock.strong_count() > 0);
        in_flight.push(Arc::downgrade(&clock));
        clock
    }

    /// Returns whether bytes move, and an attempt has been in flight for longer than the timeout. A shorter attempt
    /// does not count, because the store may still refuse its bytes.
    fn is_moving(&self) -> bool {
        let in_flight = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        let is_long = |clock: &Weak<AttemptClock>| clock.upgrade().is_some_and(|clock| clock.elapsed() > self.timeout);
        self.contact.latest().elapsed() < self.retry_for && in_flight.iter().any(is_long)
    }

    /// Returns whether the command sends no further requests, because none has succeeded for too long.
    pub fn has_given_up(&self) -> bool {
        self.lock().given_up.is_some()
    }

    /// Sends a request that carries `bytes` bytes. `request` makes one attempt, and receives the record of this
    /// attempt. After a transient failure, repeats the request until a limit is reached. Sends a request whose bytes
    /// are corrupted at most [`MAX_CORRUPTED`] times. Never repeats a request that the store may have carried out. If a
    /// request makes no progress within the time limit, the failure has the kind `silent`.
    pub async fn run<T, F>(
        &self,
        bytes: u64,
        silent: Kind,
        mut request: impl FnMut(Attempt) -> F,
    ) -> Result<(T, RequestStats), Failure>
    where
        F: Future<Output = (Result<T, Failure>, Attempt)>,
    {
        let is_final = silent == Kind::Unanswered;
        let limit = self.timeout.saturating_mul(if is_final { FINAL } else { 1 });
        let limit = limit.saturating_add(OPENING + Duration::from_secs(bytes / MIN_BYTES_PER_S));
        let (mut retries, mut refused, first) = (RetryCounts::default(), 0, Instant::now());
        let mut ongoing = Ongoing { since: first, has_failed: false, is_repeated: !is_final };
        // Like `ongoing.since`, but the successes of other requests do not move it forward.
        let (mut failing_since, mut turn) = (first, None);
        for number in 1.. {
            let began = Instant::now();
            if retries.silent > 0 && turn.is_none() {
                turn = self.watch(ongoing, self.after_timeout.acquire()).await.ok();
            }
            // An upload is aborted even if no other request is sent any more. Its abort has the kind `Fatal`.
            if let Some(failure) = self.lock().given_up.clone().filter(|_| silent != Kind::Fatal) {
                let message = format!("no request is sent after an earlier failure: {}", failure.message);
                return Err(Failure { message, ..failure });
            }
            let clock = self.new_clock();
            let attempt = Attempt { clock: Some(Arc::clone(&clock)), ..self.attempt() };
            let done = self.watch(ongoing, clock.limit(limit, request(attempt))).await;
            let progress = clock.progress();
            clock.stop();
            let (failure, attempt) = match done {
                Some((Ok(answer), attempt)) => {
                    self.succeed();
                    return Ok((answer, RequestStats::new(&attempt, retries)));
                }
                Some((Err(failure), attempt)) => (failure, Some(attempt)),
                None => (Failure::new(silent, format!("no answer within {:.1} s", limit.as_secs_f64())), None),
            };
            let failure = Failure { moved: Some(progress), ..failure };
            let requested = match failure.kind {
                Kind::Transient(requested) => requested,
                Kind::Corrupted => None,
                _ => return Err(failure),
            };
            retries.add(&failure, attempt.as_ref());
            // The wait for a connection does not count as an outage, nor does the time in which bytes of the request
            // moved.
            let moving = progress.saturating_duration_since(began);
            failing_since += moving;
            ongoing.since = self.outage_start(ongoing.since + moving);
            ongoing.has_failed = true;
            let status = attempt.and_then(|attempt| attempt.status).filter(|status| *status >= 400);
            self.lock().status = status;
            refused += u64::from(status.is_some());
            let left = self.retry_for.saturating_sub(ongoing.since.elapsed());
            if let Some(requested) = requested.filter(|requested| *requested > left) {
                let limit = format!("(the store requests a wait of {} s, which is too long)", requested.as_secs());
                return Err(Failure::new(failure.kind, format!("{} {limit}", failure.message)));
            }
            let is_unserved = refused >= MIN_REFUSED && failing_since.elapsed() >= self.retry_for;
            if retries.corrupted >= MAX_CORRUPTED || is_unserved || !self.permits(number, ongoing.since) {
                let failed_alone = status.is_some().then_some(first);
                return Err(self.give_up(failure, number, ongoing.since, failed_alone));
            }
            // The last attempt is made when the time for retries is over.
            let wait = requested.unwrap_or_default() + self.back_off(number);
            if requested.is_some() || retries.slow_down > 0 {
                let mut until = self.refused_until.lock().unwrap_or_else(PoisonError::into_inner);
                *until = (*until).max(Some(Instant::now() + wait.min(left)));
            }
            self.watch(ongoing, sleep(wait.min(left))).await;
        }
        unreachable!("a request is given up after a limited time")
    }

    /// Returns whether a request waits because the store is too busy.
    pub fn is_refused(&self) -> bool {
        let until = *self.refused_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Returns whether a request that has failed since `since` may be sent again. `retry` is the number of the retry,
    /// where the first retry is 1. If the retry is permitted, it is counted.
    pub fn permits(&self, retry: u32, since: Instant) -> bool {
        let is_permitted =
            u64::from(retry) <= self.max_retries && since.elapsed() < self.retry_for && !self.has_given_up();
        self.retries.fetch_add(u64::from(is_permitted), Ordering::Relaxed);
        is_permitted
    }

    /// Returns the wait before a request's retry number `retry`, counted from 1. Its average doubles with each retry.
    /// It is random, so that clients that were refused together do not return together.
    pub fn back_off(&self, retry: u32) -> Duration {
        let whole = self.first_wait.saturating_mul(1 << (retry - 1).min(16)).min(MAX_WAIT);
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        whole.mul_f64(random.random_range(0.5..1.5))
    }

    /// Returns the failure of a request that is not repeated any more. If the time for retries is over and no bytes
    /// move, the command sends no further requests.
    ///
    /// `answered` is the start of the request if the store has answered it with an error. In this case, perhaps only
    /// this object is damaged. The command therefore continues until a request fails that began after such a failure.
    fn give_up(&self, failure: Failure, attempts: u32, since: Instant, answered: Option<Instant>) -> Failure {
        let times = if attempts == 1 { "once".into() } else { format!("{attempts} times") };
        if since.elapsed() < self.retry_for {
            return Failure { message: format!("{} (tried {times})", failure.message), ..failure };
        }
        let s = since.elapsed().as_secs_f64();
        let message = format!("{} (tried {times}; no request has succeeded for {s:.0} s)", failure.message);
        let failure = Failure { message, ..failure };
        if self.is_moving() {
            return failure;
        }
        let mut state = self.lock();
        if let Some(began) = answered
            && began < *state.failed_alone.get_or_insert_with(Instant::now)
        {
            return failure;
        }
        // The other files of the command would fail too, so they are not tried.
        let failure = failure.of_whole_store();
        state.given_up.get_or_insert_with(|| failure.clone());
        failure
    }

    /// Returns the later of `since` and the time of the latest success.
    fn outage_start(&self, since: Instant) -> Instant {
        self.lock().last_success.map_or(since, |success| success.max(since))
    }

    /// Records that a request has succeeded, which ends an outage.
    fn succeed(&self) {
        self.contact.touch();
        let mut state = self.lock();
        let was_reported = state.is_reported;
        *state = State { last_success: Some(Instant::now()), ..State::default() };
        drop(state);
        if was_reported {
            self.observer.outage(None);
        }
    }

    /// Waits for `work`, a part of the request `ongoing`. Reports an outage while it waits.
    async fn watch<T>(&self, ongoing: Ongoing, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            if let Ok(done) = timeout(REPORT_INTERVAL, &mut work).await {
                return done;
            }
            self.report(ongoing);
        }
    }

    /// Reports an outage, or its end, to the observer. Does nothing if another request has just reported it.
    fn report(&self, Ongoing { since, has_failed, is_repeated }: Ongoing) {
        let mut state = self.lock();
        if state.reported_at.is_some_and(|at| at.elapsed() < REPORT_INTERVAL) {
            return;
        }
        state.reported_at = Some(Instant::now());
        let contact = self.contact.latest();
        // Other requests may have begun earlier, and wait for the same server.
        let earlier = state.silent_since.filter(|earlier| *earlier >= contact);
        let silent_since = earlier.unwrap_or(since).min(since).max(contact);
        let is_outage = silent_since.elapsed() >= MIN_SILENCE;
        state.silent_since = is_outage.then_some(silent_since);
        let was_reported = std::mem::replace(&mut state.is_reported, is_outage);
        let status = state.status;
        drop(state);
        match self.contact.host().filter(|_| is_outage) {
            Some(host) => {
                let start = self.outage_start(if has_failed { since } else { since.max(contact) });
                let left = self.retry_for.saturating_sub(start.elapsed()).as_secs_f64();
                let (silent_s, left_s) = (silent_since.elapsed().as_secs_f64(), is_repeated.then_some(left));
                self.observer.outage(Some(&Outage { host: &host, silent_s, status, left_s }));
            }
            None if was_reported => self.observer.outage(None),
            None => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Progress;

    /// Records the outages that it receives: the time that is left, or `None` at the end of an outage.
    #[derive(Default)]
    struct Recorder(Mutex<Vec<Option<Option<f64>>>>);

    impl Observer for Recorder {
        fn progress(&self, _progress: &Progress<'_>) {}

        fn outage(&self, outage: Option<&Outage<'_>>) {
            self.0.lock().unwrap().push(outage.map(|outage| outage.left_s));
        }
    }

    fn policy() -> (RetryPolicy, Arc<Recorder>) {
        policy_with(Settings::default())
    }

    fn policy_with(settings: Settings) -> (RetryPolicy, Arc<Recorder>) {
        let recorder = Arc::new(Recorder::default());
        let policy = RetryPolicy::new(&settings, Arc::clone(&recorder) as Arc<dyn Observer>);
        policy.contact.set_host("host");
        (policy, recorder)
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_is_reported_until_it_arrives() {
        for (silent, is_repeated) in [(Kind::Transient(None), true), (Kind::Unanswered, false)] {
            let (policy, recorder) = policy();
            let answer = |attempt| async {
                sleep(Duration::from_secs(10)).await;
                (Ok(()), attempt)
            };
            policy.run(0, silent, answer).await.unwrap();
            let reports = std::mem::take(&mut *recorder.0.lock().unwrap());
            let (end, outages) = reports.split_last().unwrap();
            assert!(end.is_none() && outages.len() > 3, "{reports:?}");
            assert!(outages.iter().all(|left| left.unwrap().is_some() == is_repeated), "{reports:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn moving_bytes_are_no_outage() {
        let (policy, recorder) = policy();
        policy.run(1 << 40, Kind::Transient(None), |attempt| moving(100, attempt)).await.unwrap();
        assert!(recorder.0.lock().unwrap().is_empty());
    }

    /// Sends a request whose bytes move for this time, and which then succeeds.
    async fn moving(seconds: u64, attempt: Attempt) -> (Result<(), Failure>, Attempt) {
        for _ in 0..seconds {
            sleep(Duration::from_secs(1)).await;
            attempt.record_progress();
        }
        (Ok(()), attempt)
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_may_be_very_long() {
        let (policy, _) = policy_with(Settings { timeout: Duration::MAX, ..Settings::default() });
        policy.run(u64::MAX, Kind::Unanswered, |attempt| moving(1, attempt)).await.unwrap();
    }

    async fn refused(attempt: Attempt) -> (Result<(), Failure>, Attempt) {
        (Err(Failure::transient("refused")), attempt)
    }

    #[tokio::test(start_paused = true)]
    async fn a_failing_request_does_not_end_a_command_whose_bytes_move() {
        let run = async |seconds| {
            let (policy, _) = policy();
            let (slow, failed) = tokio::join!(
                policy.run(1 << 40, Kind::Transient(None), |attempt| moving(seconds, attempt)),
                policy.run(0, Kind::Transient(None), refused),
            );
            slow.unwrap();
            failed.unwrap_err();
            policy.run(0, Kind::Transient(None), |attempt| moving(0, attempt)).await.is_ok()
        };
        assert!(run(300).await);
    }

    /// The server takes the bytes of every request, and refuses each after some seconds.
    #[tokio::test(start_paused = true)]
    async fn bytes_of_refused_requests_do_not_prolong_an_outage() {
        let (policy, _) = policy();
        let refused = async |attempt| {
            let (_, attempt) = moving(20, attempt).await;
            refused(attempt).await
        };
        let run = || policy.run(1 << 40, Kind::Transient(None), refused);
        let (one, other) = tokio::join!(run(), run());
        assert!(one.is_err() && other.is_err() && policy.has_given_up());
    }

    /// A request may wait for a connection for longer than the time limit. The store is not silent during this wait.
    #[tokio::test(start_paused = true)]
    async fn the_wait_for_a_connection_does_not_count() {
        for is_waiting in [true, false] {
            let (policy, _) = policy();
            let answer = |attempt: Attempt| async {
                if let (true, Some(clock)) = (is_waiting, &attempt.clock) {
                    clock.stop();
                    sleep(Duration::from_secs(600)).await;
                    clock.start();
                }
                sleep(Duration::from_secs(if is_waiting { 80 } else { 90 })).await;
                (Ok(()), attempt)
            };
            let retries = policy.retries();
            let answered = timeout(Duration::from_secs(700), policy.run(0, Kind::Transient(None), answer)).await;
            assert_eq!(answered.is_ok_and(|answered| answered.is_ok()), is_waiting);
            assert_eq!(policy.retries() == retries, is_waiting);
        }
    }

    /// If the wait for a connection counted as an outage, the request would not be repeated after its first failure.
    #[tokio::test(start_paused = true)]
    async fn a_failure_after_a_long_wait_for_a_connection_is_retried() {
        let ((policy, _), mut attempts) = (policy(), 0);
        let answer = |attempt: Attempt| {
            attempts += 1;
            let is_first = attempts == 1;
            async move {
                if let (true, Some(clock)) = (is_first, &attempt.clock) {
                    clock.stop();
                    sleep(Duration::from_secs(600)).await;
                    clock.start();
                }
                (if is_first { Err(Failure::transient("refused")) } else { Ok(()) }, attempt)
            }
        };
        policy.run(0, Kind::Transient(None), answer).await.unwrap();
        assert_eq!((attempts, policy.retries(), policy.has_given_up()), (2, 1, false));
    }

    /// Each attempt breaks off after ten minutes in which its bytes moved. If this time counted as an outage, no
    /// attempt would be repeated.
    #[tokio::test(start_paused = true)]
    async fn time_in_which_bytes_moved_is_no_outage() {
        for is_moving in [true, false] {
            let ((policy, _), mut attempts) = (policy(), 0);
            let answer = |attempt: Attempt| {
                attempts += 1;
                let is_done = attempts > 3;
                async move {
                    sleep(Duration::from_secs(600)).await;
                    if is_moving {
                        attempt.record_progress();
                    }
                    (if is_done { Ok(()) } else { Err(Failure::transient("broken")) }, attempt)
                }
            };
            assert_eq!(policy.run(1 << 40, Kind::Transient(None), answer).await.is_ok(), is_moving);
            assert_eq!(attempts, if is_moving { 4 } else { 1 });
        }
    }

    /// A request of 5 MiB takes 1000 s over a link of 42 kbit/s. Its bytes move all the time.
    #[tokio::test(start_paused = true)]
    async fn a_request_whose_bytes_move_has_no_time_limit() {
        for silent in [Kind::Transient(None), Kind::Unanswered] {
            let (policy, _) = policy();
            policy.run(5 << 20, silent, |attempt| moving(1000, attempt)).await.unwrap();
            assert_eq!(policy.retries(), 0);
        }
    }

    /// The bytes of the first attempt move for 1000 s, and then stop. The time for retries begins when they stop.
    #[tokio::test(start_paused = true)]
    async fn a_timeout_after_progress_is_retried() {
        let ((policy, _), mut attempts) = (policy(), 0);
        let answer = |attempt| {
            attempts += 1;
            let is_first = attempts == 1;
            async move {
                let done = moving(1000, attempt).await;
                sleep(if is_first { Duration::MAX } else { Duration::ZERO }).await;
                done
            }
        };
        policy.run(0, Kind::Transient(None), answer).await.unwrap();
        assert_eq!((attempts, policy.retries()), (2, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_timeout_few_requests_are_repeated_at_the_same_time() {
        let (policy, [now, most]) = (Arc::new(policy().0), [(); 2].map(|()| Arc::new(AtomicU64::new(0))));
        let mut requests = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let (policy, now, most) = (Arc::clone(&policy), Arc::clone(&now), Arc::clone(&most));
            requests.spawn(async move {
                let mut attempts = 0;
                let answer = |attempt| {
                    attempts += 1;
                    let (is_first, now, most) = (attempts == 1, &now, &most);
                    async move {
                        if is_first {
                            sleep(Duration::from_secs(60)).await;
                            return (Err(Failure::transient("silent")), Attempt { timed_out: true, ..attempt });
                        }
                        most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                        sleep(Duration::from_secs(10)).await;
                        now.fetch_sub(1, Ordering::Relaxed);
                        (Ok(()), attempt)
                    }
                };
                policy.run(0, Kind::Transient(None), answer).await.unwrap();
            });
        }
        requests.join_all().await;
        assert_eq!(most.load(Ordering::Relaxed), SILENT_AT_ONCE as u64);
    }

    async fn answered_503(attempt: Attempt) -> (Result<(), Failure>, Attempt) {
        sleep(Duration::from_millis(10)).await;
        (Err(Failure::transient("the store is busy")), Attempt { status: Some(503), ..attempt })
    }

    /// The store can serve all objects but one.
    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_always_refused_fails_although_others_succeed() {
        let (policy, _) = policy();
        let others = async {
            loop {
                policy.run(0, Kind::Transient(None), |attempt| moving(1, attempt)).await.unwrap();
            }
        };
        let refused = timeout(Duration::from_secs(600), policy.run(0, Kind::Transient(None), answered_503));
        let refused = tokio::select! {
            refused = refused => refused.expect("it is repeated for ever"),
            () = others => unreachable!(),
        };
        let failure = refused.unwrap_err();
        assert!(!failure.concerns_whole_store && !policy.has_given_up(), "{failure}");
        assert!(policy.retries() >= MIN_REFUSED - 1 && policy.retries() < 30, "{} retries", policy.retries());
    }

    /// When the time for retries is over, the objects that were requested may be damaged. If the next one fails too, the
    /// store has an outage.
    #[tokio::test(start_paused = true)]
    async fn a_store_that_refuses_everything_is_given_up_at_the_second_failure() {
        let (policy, _) = policy();
        let run = || policy.run(0, Kind::Transient(None), answered_503);
        let (one, other) = tokio::join!(run(), run());
        assert!(![one, other].into_iter().any(|failed| failed.unwrap_err().concerns_whole_store));
        assert!(!policy.has_given_up());
        assert!(run().await.unwrap_err().concerns_whole_store && policy.has_given_up());
    }
}
