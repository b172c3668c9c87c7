//! Code shared by experiments that use emulated links.

use ascertain_engine::experiment::{Better, Metric};

/// The level of a server factor that selects our own server behind an emulated link.
pub const OURS: &str = "none";

/// Returns the metrics that describe how faithful a link was during a trial. An experiment lists them after its own metrics.
pub fn metrics() -> [Metric; 2] {
    [
        Metric::time("late", "by how much segments arrive later than the link would have it, p99"),
        Metric::share(
            "unfaithful",
            "1 where that is above 0.3 ms, or segments were lost that should not have been",
            Better::Lower,
        ),
    ]
}

#[cfg(target_os = "linux")]
pub use here::{facts, failed, is_available, wait, watched};

#[cfg(target_os = "linux")]
mod here {
    use std::sync::{Mutex, PoisonError};
    use std::thread;
    use std::time::Duration;

    use ascertain_engine::experiment::{Point, Samples, TargetError, Unavailable};
    use ascertain_netlab::{Carrier, Link, RunningLink, now_ns, tcp};
    use ascertain_sys::interrupt::Stop;

    /// Interval at which [`wait`] checks `stop`.
    const LOOK: Duration = Duration::from_millis(50);

    /// Waits for `time`.
    ///
    /// # Errors
    /// Returns [`TargetError::Interrupted`] as soon as `stop` asks for the end.
    pub fn wait(time: Duration, stop: &Stop) -> Result<(), TargetError> {
        let end_ns = now_ns() + time.as_nanos() as u64;
        while now_ns() < end_ns {
            if stop.is_asked() {
                return Err(TargetError::Interrupted);
            }
            thread::sleep(Duration::from_nanos(end_ns.saturating_sub(now_ns())).min(LOOK));
        }
        Ok(())
    }

    /// Converts an error to [`TargetError::Failed`].
    pub fn failed(error: impl ToString) -> TargetError {
        TargetError::Failed(error.to_string())
    }

    /// Checks that this machine can emulate `link`. The check starts a link once for each carrier and congestion
    /// control, and remembers the result.
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

    /// Returns the properties that every connection through this link has, as read from one that it opens.
    ///
    /// # Errors
    /// Fails if the connection cannot be opened, or if the kernel does not return its properties.
    pub fn facts(link: &RunningLink) -> Result<Point, TargetError> {
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

    /// Runs `measure`. If there is a link, also adds its two [`metrics`](super::metrics) to `out`. `late` is the index of
    /// the first of them among the experiment's metrics.
    ///
    /// # Errors
    /// Returns the error of `measure`, or fails if the link does not report how faithful it was.
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

/// Repeats the measurement while the machine is so busy that nothing arrives in the time that counts.
#[cfg(all(test, target_os = "linux"))]
pub(crate) fn retry_until_measured<T>(
    mut measure: impl FnMut() -> Result<T, ascertain_engine::experiment::TargetError>,
) -> Result<T, ascertain_engine::experiment::TargetError> {
    let mut result = None;
    ascertain_sys::testing::wait_until("something arrives in the time that counts", || {
        result = Some(measure());
        let is_nothing = |why: String| why.contains("nothing arrived while it was measured");
        !result.iter().flat_map(|result| result.as_ref().err()).any(|error| is_nothing(error.to_string()))
    });
    result.unwrap_or_else(|| unreachable!("it was measured"))
}

/// Substitutes for an experiment's functions on systems without emulated links.
#[cfg(not(target_os = "linux"))]
pub mod elsewhere {
    use ascertain_engine::experiment::{Arm, Session, Setup, TargetError, Unavailable};

    const WHY: &str = "emulated links need Linux";

    /// Reports that the arm is unavailable.
    ///
    /// # Errors
    /// Always returns the reason.
    pub fn is_available(_: &Arm) -> Result<(), Unavailable> {
        Err(Unavailable::other(WHY))
    }

    /// Fails, because this system has no emulated links.
    ///
    /// # Errors
    /// Always returns the reason.
    pub fn open(_: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        Err(TargetError::Failed(WHY.into()))
    }
}
