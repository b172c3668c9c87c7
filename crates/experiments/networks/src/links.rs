//! Code shared by experiments that use emulated links.

use ascertain_engine::experiment::{Better, Metric, TargetError};

/// The level that selects our own server behind an emulated link. Other levels of such a factor are the addresses of
/// the user's servers.
pub const OURS: &str = "none";

/// Returns the two metrics that show how closely a link followed its specification during a trial. An experiment lists
/// them after its own metrics.
pub fn metrics() -> [Metric; 2] {
    [
        Metric::time("late", "99th percentile of the time by which segments arrive too late"),
        Metric::share(
            "unfaithful",
            "1 if the emulated link was unfaithful: `late` is above 0.3 ms, or the link lost segments that its model \
             did not drop",
            Better::Lower,
        ),
    ]
}

/// Converts an error to [`TargetError::Failed`].
pub fn failed(error: impl ToString) -> TargetError {
    TargetError::Failed(error.to_string())
}

#[cfg(target_os = "linux")]
pub use here::{attended, facts, is_available, limited, listener, shared, wait, watched};

#[cfg(target_os = "linux")]
mod here {
    use std::net::SocketAddr;
    use std::rc::Rc;
    use std::sync::{Mutex, PoisonError};
    use std::thread::{self, ScopedJoinHandle};
    use std::time::Duration;

    use ascertain_engine::experiment::{Arm, Point, Samples, TargetError, Unavailable};
    use ascertain_netlab::throughput::{Listener, ListenerLimits, Token};
    use ascertain_netlab::{Carrier, Error, Link, RunningLink, now_ns, tcp};
    use ascertain_sys::interrupt::Stop;

    use super::failed;

    /// Interval at which [`wait`] checks `stop`.
    const LOOK: Duration = Duration::from_millis(50);
    /// Interval at which [`attended`] checks whether the threads have ended.
    const LOOK_AT_THREADS: Duration = Duration::from_millis(2);

    /// Waits for `time`.
    ///
    /// # Errors
    /// Returns [`TargetError::Interrupted`] as soon as `stop` is requested.
    pub fn wait(time: Duration, stop: &Stop) -> Result<(), TargetError> {
        let end_ns = now_ns() + time.as_nanos() as u64;
        while now_ns() < end_ns {
            if stop.is_requested() {
                return Err(TargetError::Interrupted);
            }
            thread::sleep(Duration::from_nanos(end_ns.saturating_sub(now_ns())).min(LOOK));
        }
        Ok(())
    }

    /// Runs each function in its own thread, and returns their results. If `stop` is requested or `limit` has passed,
    /// calls `cut`, which must make the functions return early.
    ///
    /// # Errors
    /// Returns [`TargetError::Interrupted`] if `stop` was requested, and a failure if the limit passed or a thread
    /// panicked.
    pub fn attended<T: Send, F: FnOnce() -> T + Send>(
        work: Vec<F>,
        limit: Duration,
        stop: &Stop,
        mut cut: impl FnMut(),
    ) -> Result<Vec<T>, TargetError> {
        let until_ns = now_ns() + limit.as_nanos() as u64;
        thread::scope(|scope| {
            let threads: Vec<_> = work.into_iter().map(|work| scope.spawn(work)).collect();
            let mut end = Ok(());
            while end.is_ok() && !threads.iter().all(ScopedJoinHandle::is_finished) {
                thread::sleep(LOOK_AT_THREADS);
                end = match () {
                    () if stop.is_requested() => Err(TargetError::Interrupted),
                    () if now_ns() > until_ns => Err(failed(Error::TimedOut { limit })),
                    () => Ok(()),
                };
            }
            if end.is_err() {
                cut();
            }
            let ended: Result<Vec<T>, _> = threads.into_iter().map(ScopedJoinHandle::join).collect();
            end?;
            ended.map_err(|_| failed("a thread panicked because of a bug"))
        })
    }

    /// Returns the value that all arms with this key share. The first call with a key creates the value by `make`.
    ///
    /// # Errors
    /// Returns the error of `make`.
    pub fn shared<K: PartialEq, V>(
        all: &mut Vec<(K, Rc<V>)>,
        key: K,
        make: impl FnOnce() -> Result<V, TargetError>,
    ) -> Result<Rc<V>, TargetError> {
        if let Some((_, value)) = all.iter().find(|(of, _)| *of == key) {
            return Ok(value.clone());
        }
        let value = Rc::new(make()?);
        all.push((key, value.clone()));
        Ok(value)
    }

    /// Checks that this machine can emulate `link`: starts a link once for each carrier and congestion control, and
    /// caches the result.
    ///
    /// # Errors
    /// Returns the reason if the link could not be started.
    pub fn is_available(link: &Link) -> Result<(), Unavailable> {
        static TRIED: Mutex<Vec<(Link, Result<(), String>)>> = Mutex::new(Vec::new());
        let (carrier, congestion_control) = (link.carrier, link.congestion_control.clone());
        let alike = Link { carrier, congestion_control, ..Link::default() };
        let mut tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
        let before = tried.iter().find(|(of, _)| *of == alike).map(|(_, before)| before.clone());
        let seen = before.unwrap_or_else(|| {
            let seen = alike.start().map(drop).map_err(|error| error.to_string());
            tried.push((alike, seen.clone()));
            seen
        });
        seen.map_err(Unavailable::other)
    }

    /// Returns a link with the arm's `rate_mbit_s` and `rtt_ms`. The queue has room for the data of a round trip, and
    /// for at least `least_queue_bytes`.
    ///
    /// # Errors
    /// Fails if the arm does not have these factors.
    pub fn limited(arm: &Arm, least_queue_bytes: u64) -> Result<Link, TargetError> {
        let (rate_bits_per_s, rtt_ms) = (arm.integer("rate_mbit_s")? * 1_000_000, arm.integer("rtt_ms")?);
        let queue_bytes = (rate_bits_per_s / 8 * rtt_ms / 1_000).max(least_queue_bytes);
        Ok(Link {
            rtt: Duration::from_millis(rtt_ms),
            rate_bits_per_s: Some(rate_bits_per_s),
            queue_bytes: usize::try_from(queue_bytes).unwrap_or(usize::MAX),
            ..Link::default()
        })
    }

    /// Starts a listener for throughput measurements at the far side of a link, and returns the listener and its token.
    ///
    /// # Errors
    /// Fails if the listener cannot be started.
    pub fn listener(link: &RunningLink, address: SocketAddr) -> Result<(Listener, Token), TargetError> {
        let (tcp, udp) = (link.far().listen(address).map_err(failed)?, link.far().udp(address).map_err(failed)?);
        let token = Token::new().map_err(failed)?;
        // Only this process uses the listener, so no limits are needed.
        let limits = ListenerLimits { bytes: u64::MAX, time: Duration::MAX };
        Ok((Listener::start(tcp, udp, token.clone(), limits).map_err(failed)?, token))
    }

    /// Opens a connection through the link, and returns its properties according to the kernel. Without a link, the
    /// result is empty.
    ///
    /// # Errors
    /// Fails if the connection cannot be opened, or if the kernel does not return its properties.
    pub fn facts(link: Option<&RunningLink>) -> Result<Point, TargetError> {
        let Some(link) = link else { return Ok(Point::default()) };
        let listener = link.far().listen((link.far().address(), 0)).map_err(failed)?;
        let near = link.near().connect(listener.local_addr().map_err(failed)?).map_err(failed)?;
        let info = tcp::info(&near).map_err(failed)?;
        let carrier = match link.carrier() {
            Carrier::Tun { has_offloads: false } => "tun",
            Carrier::Tun { has_offloads: true } => "tun with offloads",
            Carrier::Veth => "veth with offloads",
        };
        let timestamps = if info.has_timestamps { "yes" } else { "no" };
        let point = Point::default().with("carrier", carrier).with("congestion", &*info.congestion_control);
        let point = point.with("initial_window", u64::from(info.window_segments));
        Ok(point.with("mss_bytes", u64::from(info.mss_bytes)).with("timestamps", timestamps))
    }

    /// Runs `measure`. If there is a link, also adds the values of the two [`metrics`](super::metrics) to `out`. `late`
    /// is the index of the first of these metrics among the experiment's metrics.
    ///
    /// # Errors
    /// Returns the error of `measure`, or fails if the link does not report how accurate it was.
    pub fn watched(
        link: Option<&RunningLink>,
        late: usize,
        out: &mut Samples,
        measure: impl FnOnce(&mut Samples) -> Result<(), TargetError>,
    ) -> Result<(), TargetError> {
        let report = || link.map(|link| link.report().map_err(failed)).transpose();
        let before = report()?;
        measure(out)?;
        if let (Some(after), Some(before)) = (report()?, before) {
            let report = after.since(&before);
            out.push(late, report.lateness.quantile_ns(0.99).unwrap_or(0) as f64);
            out.push(late + 1, f64::from(u8::from(report.is_unfaithful())));
        }
        Ok(())
    }
}

/// Repeats `measure` as long as the machine is so busy that nothing arrives during the measurement.
#[cfg(all(test, target_os = "linux"))]
pub(crate) fn retry_until_measured<T>(
    mut measure: impl FnMut() -> Result<T, ascertain_engine::experiment::TargetError>,
) -> Result<T, ascertain_engine::experiment::TargetError> {
    let mut result = None;
    ascertain_sys::testing::wait_until("something arrives during the measurement", || {
        result = Some(measure());
        let is_nothing = |why: String| why.contains("nothing arrived during the measurement");
        !result.iter().flat_map(|result| result.as_ref().err()).any(|error| is_nothing(error.to_string()))
    });
    result.unwrap_or_else(|| unreachable!("it was measured"))
}

#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
pub mod elsewhere;
