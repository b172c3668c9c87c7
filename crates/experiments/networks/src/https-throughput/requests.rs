//! Small requests that are sent when they are due, even if earlier answers have not arrived.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, Samples, Status, TargetError};
use ascertain_netlab::http::{ClientOptions, Connection, HttpRequest};
use ascertain_netlab::{Error, Phase, Phases, now_ns};
use ascertain_sys::clock::thread_cpu_ns;
use ascertain_sys::interrupt::Stop;

use super::clients::{self, PATIENCE};
use super::{ANSWERED, AS_MUCH, LATE, LATENCY, OVERLOADED, QUANTILES, REQUEST_CPU};
use crate::levels::milliseconds;
use crate::links::{attended, failed};

/// Additional time for which the client waits for answers, after twice the duration of the schedule.
const GRACE: Duration = Duration::from_secs(1);
/// Minimum number of answers per second, as a share of the requested rate. With fewer answers, a trial counts as
/// overloaded; [`BEHIND`] describes an exception.
const KEPT_UP: f64 = 0.95;
/// Grace period after the end of the schedule. If the last answer arrives within this period and every request was
/// answered, the trial does not count as overloaded, however few answers per second it had.
const BEHIND: Duration = Duration::from_millis(100);

/// The schedule that decides when each small request is due.
#[derive(Clone, Copy)]
pub struct Schedule {
    pub rate_per_s: u64,
    time: Duration,
    pub answer_bytes: u64,
}

/// The times of all requests of a trial.
#[derive(Debug, Default)]
pub struct RequestTimes {
    /// Times from when a request was due until its answer arrived, sorted. For a request without an answer, this is
    /// the time until the client gave up.
    pub latencies_ns: Vec<u64>,
    /// Times from when a request was due until it was sent, sorted. For a request that was never sent, this is the
    /// time until the client gave up.
    pub late_ns: Vec<u64>,
    pub answered: u64,
    /// Shortest time after which a request was given up; `None` if all requests were answered. Latencies below this
    /// time are exact.
    pub given_up_ns: Option<u64>,
    pub took_ns: u64,
    /// CPU time of the client in nanoseconds.
    pub cpu_ns: u64,
    pub sent_per_s: f64,
    /// `true` if the answers were slow because of the client or its machine, and not because of the server. This is the
    /// case if prompt sending would at least halve the 99th percentile of the latency. Prompt sending means that each
    /// request is sent as soon as it is due and its connection is free.
    pub is_client_slow: bool,
}

/// The requests that were sent over one connection.
#[derive(Default)]
struct Stream {
    /// For each request, the times at which it was due, sent and answered.
    requests_ns: Vec<[u64; 3]>,
    /// The times of the request that never got an answer: when it was due, sent and given up. It is the last request of
    /// its connection.
    given_up_ns: Option<[u64; 3]>,
    cpu_ns: u64,
}

/// Opens a connection to each address, before any request is due.
pub fn connect(offer: &ClientOptions, addresses: &[SocketAddr]) -> Result<Vec<Connection>, TargetError> {
    let open = |stream| Connection::open(stream, offer, &mut Phases::begin(0)).map_err(failed);
    clients::connect(addresses)?.into_iter().map(open).collect()
}

impl Schedule {
    /// Returns the arm's schedule; `None` for large downloads.
    pub fn from_arm(arm: &Arm) -> Result<Option<Self>, TargetError> {
        let rate_per_s = arm.integer("rate")?;
        if rate_per_s == AS_MUCH {
            return Ok(None);
        }
        let time = milliseconds(arm, "measured_ms")?;
        Ok(Some(Self { rate_per_s, time, answer_bytes: arm.integer("answer_bytes")? }))
    }

    /// Returns the number of requests in the schedule; at least 1.
    fn count(self) -> u64 {
        (self.time.as_nanos() * u128::from(self.rate_per_s) / 1_000_000_000).max(1) as u64
    }

    /// Returns the time at which the request with this index is due, in nanoseconds after the first one.
    fn due_ns(self, number: u64) -> u64 {
        (u128::from(number) * 1_000_000_000 / u128::from(self.rate_per_s)) as u64
    }

    /// Sends the requests, each over the connection that is free first, and returns their times. `check` gets the
    /// status, the length and the protocol version of each answer, and returns an error if one is wrong.
    pub fn run(
        self,
        connections: Vec<Connection>,
        path: &str,
        check: impl Fn(u16, u64, &str) -> Result<(), TargetError> + Sync,
        stop: &Stop,
    ) -> Result<RequestTimes, TargetError> {
        let shared = connections.iter().map(|connection| connection.socket().try_clone());
        let shared = shared.collect::<Result<Vec<TcpStream>, _>>().map_err(failed)?;
        let (next, start_ns) = (AtomicU64::new(0), now_ns());
        let end_ns = start_ns + (2 * self.time + GRACE).as_nanos() as u64;
        let (next, request, check) = (&next, &HttpRequest::get(path), &check);
        let send = |mut connection: Connection| {
            move || {
                let before_ns = thread_cpu_ns();
                let mut stream = Stream::default();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let due_ns = start_ns + self.due_ns(number);
                    if number >= self.count() || now_ns() >= end_ns {
                        break;
                    }
                    sleep(Duration::from_nanos(due_ns.saturating_sub(now_ns())));
                    let sent_ns = now_ns();
                    let mut phases = Phases::begin(sent_ns);
                    connection.set_limit(Duration::from_nanos(end_ns.saturating_sub(sent_ns)));
                    let answer = match connection.send(request, &mut phases) {
                        Err(Error::TimedOut { .. }) => {
                            stream.given_up_ns = Some([due_ns, sent_ns, now_ns()]);
                            break;
                        }
                        answer => answer.map_err(failed)?,
                    };
                    check(answer.status, answer.body_bytes, answer.version)?;
                    let answered_ns = phases.end_ns(Phase::LastByte).unwrap_or_else(now_ns);
                    stream.requests_ns.push([due_ns, sent_ns, answered_ns]);
                }
                stream.cpu_ns = thread_cpu_ns() - before_ns;
                Ok(stream)
            }
        };
        let cut = || shared.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        let limit = 2 * self.time + GRACE + PATIENCE;
        let streams = attended(connections.into_iter().map(send).collect(), limit, stop, cut)?;
        let streams = streams.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(self.times(&streams, start_ns, end_ns))
    }

    fn times(self, streams: &[Stream], start_ns: u64, end_ns: u64) -> RequestTimes {
        let answered = || streams.iter().flat_map(|stream| &stream.requests_ns);
        let given_up = || streams.iter().filter_map(|stream| stream.given_up_ns.as_ref());
        let since_due = |[due_ns, _, ended_ns]: &[u64; 3]| ended_ns - due_ns;
        let sent = answered().count() + given_up().count();
        let mut times = RequestTimes {
            latencies_ns: answered().chain(given_up()).map(since_due).collect(),
            late_ns: answered().chain(given_up()).map(|[due_ns, sent_ns, _]| sent_ns - due_ns).collect(),
            answered: answered().count() as u64,
            given_up_ns: given_up().map(since_due).min(),
            took_ns: answered().map(|[.., answered_ns]| answered_ns - start_ns).max().unwrap_or(0),
            cpu_ns: streams.iter().map(|stream| stream.cpu_ns).sum(),
            sent_per_s: sent as f64 * 1e9 / self.due_ns(self.count()).max(1) as f64,
            is_client_slow: false,
        };
        let mut prompt_ns: Vec<u64> = streams.iter().flat_map(Stream::prompt_ns).collect();
        // Requests are sent in order, so the requests that were never sent are the last ones.
        for number in sent as u64..self.count() {
            let waited_ns = end_ns.saturating_sub(start_ns + self.due_ns(number));
            times.given_up_ns = Some(times.given_up_ns.map_or(waited_ns, |given_up_ns| given_up_ns.min(waited_ns)));
            for times_ns in [&mut times.latencies_ns, &mut times.late_ns, &mut prompt_ns] {
                times_ns.push(waited_ns);
            }
        }
        for times_ns in [&mut times.latencies_ns, &mut times.late_ns, &mut prompt_ns] {
            times_ns.sort_unstable();
        }
        let [prompt_ns, latency_ns] = [&prompt_ns, &times.latencies_ns].map(|times_ns| at(times_ns, 0.99));
        times.is_client_slow = prompt_ns.zip(latency_ns).is_some_and(|(prompt_ns, ns)| prompt_ns <= ns / 2);
        times
    }
}

impl Stream {
    /// Returns the latencies that would have resulted from prompt sending. Prompt sending means that each request is
    /// sent as soon as it is due and its connection is free.
    fn prompt_ns(&self) -> impl Iterator<Item = u64> {
        let mut free_ns = 0;
        self.requests_ns.iter().chain(&self.given_up_ns).map(move |[due_ns, sent_ns, ended_ns]| {
            free_ns = free_ns.max(*due_ns) + (ended_ns - sent_ns);
            free_ns - due_ns
        })
    }
}

impl RequestTimes {
    /// Returns the 99th percentile of the time from when a request was due to when it was sent, in nanoseconds.
    pub fn late_p99_ns(&self) -> f64 {
        at(&self.late_ns, 0.99).unwrap_or(0) as f64
    }

    /// Adds the values of all metrics. The CPU time per request includes the CPU time of the server.
    pub fn push(&self, schedule: Schedule, server_cpu_ns: u64, out: &mut Samples) {
        // Latencies of at least `given_up_ns` are only lower bounds.
        let status = |value_ns: u64| match self.given_up_ns {
            Some(given_up_ns) if value_ns >= given_up_ns => Status::Censored,
            _ => Status::Ok,
        };
        let metrics = QUANTILES.iter().enumerate().map(|(index, (_, quantile))| (LATENCY + index, *quantile));
        for (metric, quantile) in metrics {
            if let Some(value) = at(&self.latencies_ns, quantile) {
                out.push_with(metric, value as f64, status(value));
            }
        }
        if let Some(value) = at(&self.late_ns, 0.99) {
            out.push_with(LATE, value as f64, status(value));
        }
        // The last request is due one interval before the end.
        let due_ns = schedule.due_ns(schedule.count());
        let took_ns = self.took_ns.max(due_ns).max(1);
        let answered_per_s = self.answered as f64 * 1e9 / took_ns as f64;
        out.push(ANSWERED, answered_per_s);
        // In a short run, a few slow answers at the end would lower the answers per second too much.
        let is_behind = self.given_up_ns.is_some() || Duration::from_nanos(took_ns - due_ns) > BEHIND;
        let is_overloaded = is_behind && answered_per_s < KEPT_UP * schedule.rate_per_s as f64;
        out.push(OVERLOADED, f64::from(u8::from(is_overloaded)));
        if self.answered > 0 {
            out.push(REQUEST_CPU, (self.cpu_ns + server_cpu_ns) as f64 / self.answered as f64);
        }
    }
}

/// Returns a quantile (nearest rank) of sorted values. Returns `None` if there are so few values that the largest of
/// them would be the result.
fn at(sorted: &[u64], quantile: f64) -> Option<u64> {
    let rank = (sorted.len() as f64 * quantile).ceil() as usize;
    if rank < sorted.len() { sorted.get(rank.saturating_sub(1)).copied() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn schedule(rate_per_s: u64, time_ms: u64) -> Schedule {
        Schedule { rate_per_s, time: Duration::from_millis(time_ms), answer_bytes: 1 }
    }

    /// Tests one answer that takes ten milliseconds. Requests that are due in the meantime wait for it, and their
    /// latencies must include the wait.
    #[test]
    fn who_waits_is_counted_from_when_it_was_due() {
        let schedule = schedule(1_000, 20);
        assert_eq!((schedule.count(), schedule.due_ns(19)), (20, 19 * MS));
        let mut free_ns = 0;
        let requests_ns = (0..20).map(|number| {
            let due_ns = schedule.due_ns(number);
            let sent_ns = due_ns.max(free_ns);
            free_ns = sent_ns + if number == 0 { 10 * MS } else { MS / 10 };
            [due_ns, sent_ns, free_ns]
        });
        let stream = Stream { requests_ns: requests_ns.collect(), cpu_ns: 40, ..Stream::default() };
        let times = schedule.times(&[stream, Stream::default()], 0, 1_000 * MS);
        assert_eq!((times.answered, times.cpu_ns, times.took_ns), (20, 40, 19 * MS + MS / 10));
        // The second request is due at 1 ms and sent at 10 ms, and so on. Half of the requests are late by nearly a
        // millisecond or more.
        assert_eq!(times.latencies_ns[19], 10 * MS);
        assert_eq!(times.latencies_ns[18], 9 * MS + MS / 10);
        assert_eq!(times.late_ns[19], 9 * MS);
        let late = times.latencies_ns.iter().filter(|latency_ns| **latency_ns > MS / 10).count();
        assert_eq!(late, 11);
    }

    #[test]
    fn what_was_not_answered_is_cut_off_and_not_left_out() {
        let schedule = schedule(1_000, 100);
        let stream = Stream { requests_ns: vec![[0, 0, MS], [MS, MS, 500 * MS]], cpu_ns: 6, ..Stream::default() };
        let times = schedule.times(&[stream], 0, 1_000 * MS);
        assert_eq!((times.answered, times.latencies_ns.len()), (2, 100));
        assert_eq!(times.latencies_ns[99], 998 * MS, "the third, which is the first without an answer");
        let mut out = Samples::default();
        times.push(schedule, 4, &mut out);
        let of = |metric| out.iter().find(|sample| sample.metric == metric).map(|sample| (sample.value, sample.status));
        assert_eq!(of(LATENCY), Some((948e6, Status::Censored)));
        assert_eq!(of(ANSWERED), Some((4.0, Status::Ok)));
        assert_eq!(of(OVERLOADED), Some((1.0, Status::Ok)));
        assert_eq!(of(REQUEST_CPU), Some((5.0, Status::Ok)));
    }

    /// The latency of a request on a silent connection is the time that the request has taken so far.
    #[test]
    fn what_a_silent_connection_has_not_answered_is_cut_off() {
        let given_up_ns = Some([2 * MS, 2 * MS, 900 * MS]);
        let stream = Stream { requests_ns: vec![[0, 0, MS], [MS, MS, 3 * MS]], given_up_ns, cpu_ns: 6 };
        let times = schedule(1_000, 4).times(&[stream], 0, 1_000 * MS);
        assert_eq!(times.latencies_ns, [MS, 2 * MS, 898 * MS, 997 * MS]);
        assert_eq!((times.answered, times.given_up_ns, times.sent_per_s), (2, Some(898 * MS), 750.0));
    }

    /// A client that sleeps too long delays the requests that are due in the meantime. A stalling server delays them
    /// too, but then the client does not count as slow.
    #[test]
    fn who_was_slow_is_told_apart() {
        let is_client_slow = |sleeps_ms: u64, stalls_ms: u64| {
            let schedule = schedule(1_000, 1_000);
            let mut free_ns = 0;
            let requests_ns = (0..1_000).map(|number| {
                let due_ns = schedule.due_ns(number);
                let (late_ns, took_ns) = if number % 50 == 0 { (sleeps_ms * MS, stalls_ms * MS) } else { (0, 0) };
                let sent_ns = due_ns.max(free_ns) + late_ns;
                free_ns = sent_ns + took_ns + MS / 10;
                [due_ns, sent_ns, free_ns]
            });
            let stream = Stream { requests_ns: requests_ns.collect(), ..Stream::default() };
            schedule.times(&[stream], 0, 3_000 * MS).is_client_slow
        };
        assert_eq!([is_client_slow(10, 0), is_client_slow(0, 10), is_client_slow(0, 0)], [true, false, false]);
    }

    /// Of three requests, the last one gets no answer. The latencies of the other two, 1 ms and 2 ms, are exact.
    #[test]
    fn what_is_below_all_that_was_given_up_is_known() {
        let schedule = schedule(1_000, 3);
        let stream = Stream { requests_ns: vec![[0, 0, MS], [MS, MS, 3 * MS]], cpu_ns: 6, ..Stream::default() };
        let times = schedule.times(&[stream], 0, 1_000 * MS);
        assert_eq!(times.given_up_ns, Some(998 * MS));
        let mut out = Samples::default();
        times.push(schedule, 4, &mut out);
        let p50 = out.iter().find(|sample| sample.metric == LATENCY).unwrap();
        assert_eq!((p50.value, p50.status), (2e6, Status::Ok));
    }

    #[test]
    fn a_slow_answer_at_the_end_is_no_overload() {
        let overloaded = |rate_per_s: u64, time_ms: u64, last_ms: u64| {
            let schedule = schedule(rate_per_s, time_ms);
            let mut requests_ns: Vec<_> = (0..schedule.count()).map(|number| [schedule.due_ns(number); 3]).collect();
            requests_ns.last_mut().unwrap()[2] = last_ms * MS;
            let times = schedule.times(&[Stream { requests_ns, cpu_ns: 1, ..Stream::default() }], 0, 60_000 * MS);
            let mut out = Samples::default();
            times.push(schedule, 1, &mut out);
            out.iter().find(|sample| sample.metric == OVERLOADED).unwrap().value
        };
        assert_eq!([overloaded(1_000, 500, 590), overloaded(1_000, 500, 610)], [0.0, 1.0]);
        // At three requests per second, half a second has one request.
        assert_eq!([overloaded(3, 500, 400), overloaded(1_000, 60_000, 61_000)], [0.0, 0.0]);
    }

    #[test]
    fn quantiles_need_something_beyond_them() {
        let sorted: Vec<u64> = (1..=100).collect();
        assert_eq!([0.5, 0.9, 0.99].map(|quantile| at(&sorted, quantile)), [Some(50), Some(90), Some(99)]);
        assert_eq!([at(&sorted, 0.999), at(&sorted[..99], 0.99), at(&[], 0.5), at(&[1], 0.5)], [None; 4]);
        assert_eq!(at(&[1, 2], 0.5), Some(1));
    }

    #[test]
    fn the_shortest_has_one_and_the_longest_does_not_overflow() {
        assert_eq!(schedule(1, 1).count(), 1);
        let longest = schedule(1_000_000, 3_600_000);
        assert_eq!(longest.due_ns(longest.count()), 3_600_000 * MS);
    }
}
