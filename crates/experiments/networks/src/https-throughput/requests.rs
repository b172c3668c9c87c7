//! Small requests that are sent when they are due, whatever comes of those before them.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, Samples, Status, TargetError};
use ascertain_netlab::http::{Connection, Offer, Request};
use ascertain_netlab::{Error, Phase, Phases, now_ns};
use ascertain_sys::clock::thread_cpu_ns;
use ascertain_sys::interrupt::Stop;

use super::clients::{PATIENCE, attended};
use super::{ANSWERED, AS_MUCH, LATE, LATENCY, OVERLOADED, QUANTILES, REQUEST_CPU};
use crate::links::failed;

/// For so long the last ones are waited for, beside as long as they were sent.
const GRACE: Duration = Duration::from_secs(1);
/// Fewer answers in a second than this share of the requests are an overload.
const KEPT_UP: f64 = 0.95;
/// But not where the last answer comes within this time of the end.
const BEHIND: Duration = Duration::from_millis(100);

/// When they are due.
#[derive(Clone, Copy)]
pub struct Schedule {
    pub rate_per_s: u64,
    time: Duration,
    pub answer_bytes: u64,
}

/// What came of them.
#[derive(Debug, Default)]
pub struct Asked {
    /// From when each was due to its answer; of those without one, to when it was given up. In order.
    pub latencies_ns: Vec<u64>,
    /// From when each was due to when it was sent, likewise.
    pub late_ns: Vec<u64>,
    pub answered: u64,
    /// Of those without an answer the one that was given up after the shortest time: what took less is known.
    pub given_up_ns: Option<u64>,
    pub took_ns: u64,
    /// The client's.
    pub cpu_ns: u64,
    pub sent_per_s: f64,
    /// Whether the 99th percentile would be half as long or less, had each been sent when it was due and a connection
    /// was free: it was our client that was slow then, or the machine, and not the server.
    pub is_client_slow: bool,
}

impl Asked {
    /// By how much one of a hundred was late, or more.
    pub fn late_p99_ns(&self) -> f64 {
        at(&self.late_ns, 0.99).unwrap_or(0) as f64
    }
}

/// A stream's.
#[derive(Default)]
struct Stream {
    /// When each was due, sent and answered.
    requests_ns: Vec<[u64; 3]>,
    /// The one that had no answer in the end, and when it was given up, which ends its connection.
    given_up_ns: Option<[u64; 3]>,
    cpu_ns: u64,
}

/// A connection to each, which is there before anything is due.
pub fn connect(offer: &Offer, addresses: &[SocketAddr]) -> Result<Vec<Connection>, TargetError> {
    let open = |address: &SocketAddr| {
        let stream =
            TcpStream::connect(address).map_err(|error| failed(format!("no connection to {address}: {error}")))?;
        Connection::open(stream, offer, &mut Phases::begin(0)).map_err(failed)
    };
    addresses.iter().map(open).collect()
}

impl Schedule {
    /// The arm's; none where it has large transfers.
    pub fn of(arm: &Arm) -> Result<Option<Self>, TargetError> {
        let rate_per_s = arm.integer("rate")?;
        if rate_per_s == AS_MUCH {
            return Ok(None);
        }
        let time = Duration::from_millis(arm.integer("measured_ms")?);
        Ok(Some(Self { rate_per_s, time, answer_bytes: arm.integer("answer_bytes")? }))
    }

    /// How many there are.
    fn count(self) -> u64 {
        (self.time.as_nanos() * u128::from(self.rate_per_s) / 1_000_000_000).max(1) as u64
    }

    /// When one is due, after the first.
    fn due_ns(self, number: u64) -> u64 {
        (u128::from(number) * 1_000_000_000 / u128::from(self.rate_per_s)) as u64
    }

    /// Sends them by whichever connection is free first. What is said of each answer, its status, bytes and version, is
    /// checked.
    pub fn ask(
        self,
        connections: Vec<Connection>,
        path: &str,
        check: impl Fn(u16, u64, &str) -> Result<(), TargetError> + Sync,
        stop: &Stop,
    ) -> Result<Asked, TargetError> {
        let shared = connections.iter().map(|connection| connection.socket().try_clone());
        let shared = shared.collect::<Result<Vec<TcpStream>, _>>().map_err(failed)?;
        let (next, start_ns) = (AtomicU64::new(0), now_ns());
        let end_ns = start_ns + (2 * self.time + GRACE).as_nanos() as u64;
        let (next, request, check) = (&next, &Request::get(path), &check);
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
        Ok(self.asked(&streams, start_ns, end_ns))
    }

    fn asked(self, streams: &[Stream], start_ns: u64, end_ns: u64) -> Asked {
        let answered = || streams.iter().flat_map(|stream| &stream.requests_ns);
        let given_up = || streams.iter().filter_map(|stream| stream.given_up_ns.as_ref());
        let since_due = |[due_ns, _, ended_ns]: &[u64; 3]| ended_ns - due_ns;
        let sent = answered().count() + given_up().count();
        let mut asked = Asked {
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
        // They are taken in order, so that those which nobody came to are the last.
        for number in sent as u64..self.count() {
            let waited_ns = end_ns.saturating_sub(start_ns + self.due_ns(number));
            asked.given_up_ns = Some(asked.given_up_ns.map_or(waited_ns, |given_up_ns| given_up_ns.min(waited_ns)));
            for times_ns in [&mut asked.latencies_ns, &mut asked.late_ns, &mut prompt_ns] {
                times_ns.push(waited_ns);
            }
        }
        for times_ns in [&mut asked.latencies_ns, &mut asked.late_ns, &mut prompt_ns] {
            times_ns.sort_unstable();
        }
        let [prompt_ns, latency_ns] = [&prompt_ns, &asked.latencies_ns].map(|times_ns| at(times_ns, 0.99));
        asked.is_client_slow = prompt_ns.zip(latency_ns).is_some_and(|(prompt_ns, ns)| prompt_ns <= ns / 2);
        asked
    }
}

impl Stream {
    /// What the latencies would have been, had each been sent as soon as it was due and the connection was free.
    fn prompt_ns(&self) -> impl Iterator<Item = u64> {
        let mut free_ns = 0;
        self.requests_ns.iter().chain(&self.given_up_ns).map(move |[due_ns, sent_ns, ended_ns]| {
            free_ns = free_ns.max(*due_ns) + (ended_ns - sent_ns);
            free_ns - due_ns
        })
    }
}

impl Asked {
    /// With the CPU time of the server.
    pub fn push(&self, schedule: Schedule, server_cpu_ns: u64, out: &mut Samples) {
        // Of some it is only known that they took longer, and by how much they would have been above others is not.
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
        // The last one is due an interval before the end.
        let due_ns = schedule.due_ns(schedule.count());
        let took_ns = self.took_ns.max(due_ns).max(1);
        let answered_per_s = self.answered as f64 * 1e9 / took_ns as f64;
        out.push(ANSWERED, answered_per_s);
        // In a short time a few slow ones at its end are that many.
        let is_behind = self.given_up_ns.is_some() || Duration::from_nanos(took_ns - due_ns) > BEHIND;
        let is_overloaded = is_behind && answered_per_s < KEPT_UP * schedule.rate_per_s as f64;
        out.push(OVERLOADED, f64::from(u8::from(is_overloaded)));
        if self.answered > 0 {
            out.push(REQUEST_CPU, (self.cpu_ns + server_cpu_ns) as f64 / self.answered as f64);
        }
    }
}

/// The quantile of what is in order (nearest rank); none where it would be the longest.
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

    /// One answer takes ten milliseconds. Those due meanwhile wait for it, and that is counted as theirs.
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
        let asked = schedule.asked(&[stream, Stream::default()], 0, 1_000 * MS);
        assert_eq!((asked.answered, asked.cpu_ns, asked.took_ns), (20, 40, 19 * MS + MS / 10));
        // The second is due at 1 ms, sent at 10 ms, and so on: half of them are late by nearly a millisecond and more.
        assert_eq!(asked.latencies_ns[19], 10 * MS);
        assert_eq!(asked.latencies_ns[18], 9 * MS + MS / 10);
        assert_eq!(asked.late_ns[19], 9 * MS);
        let late = asked.latencies_ns.iter().filter(|latency_ns| **latency_ns > MS / 10).count();
        assert_eq!(late, 11);
    }

    #[test]
    fn what_was_not_answered_is_cut_off_and_not_left_out() {
        let schedule = schedule(1_000, 100);
        let stream = Stream { requests_ns: vec![[0, 0, MS], [MS, MS, 500 * MS]], cpu_ns: 6, ..Stream::default() };
        let asked = schedule.asked(&[stream], 0, 1_000 * MS);
        assert_eq!((asked.answered, asked.latencies_ns.len()), (2, 100));
        assert_eq!(asked.latencies_ns[99], 998 * MS, "the third, which is the first without an answer");
        let mut out = Samples::default();
        asked.push(schedule, 4, &mut out);
        let of = |metric| out.iter().find(|sample| sample.metric == metric).map(|sample| (sample.value, sample.status));
        assert_eq!(of(LATENCY), Some((948e6, Status::Censored)));
        assert_eq!(of(ANSWERED), Some((4.0, Status::Ok)));
        assert_eq!(of(OVERLOADED), Some((1.0, Status::Ok)));
        assert_eq!(of(REQUEST_CPU), Some((5.0, Status::Ok)));
    }

    /// A request that a connection was silent about counts as what it is known to have taken at the least.
    #[test]
    fn what_a_silent_connection_has_not_answered_is_cut_off() {
        let given_up_ns = Some([2 * MS, 2 * MS, 900 * MS]);
        let stream = Stream { requests_ns: vec![[0, 0, MS], [MS, MS, 3 * MS]], given_up_ns, cpu_ns: 6 };
        let asked = schedule(1_000, 4).asked(&[stream], 0, 1_000 * MS);
        assert_eq!(asked.latencies_ns, [MS, 2 * MS, 898 * MS, 997 * MS]);
        assert_eq!((asked.answered, asked.given_up_ns, asked.sent_per_s), (2, Some(898 * MS), 750.0));
    }

    /// A client that sleeps too long delays those due meanwhile; so does a server that stalls, and that is not the
    /// client's.
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
            schedule.asked(&[stream], 0, 3_000 * MS).is_client_slow
        };
        assert_eq!([is_client_slow(10, 0), is_client_slow(0, 10), is_client_slow(0, 0)], [true, false, false]);
    }

    /// Of three the last is not answered: that two took a millisecond and two is known.
    #[test]
    fn what_is_below_all_that_was_given_up_is_known() {
        let schedule = schedule(1_000, 3);
        let stream = Stream { requests_ns: vec![[0, 0, MS], [MS, MS, 3 * MS]], cpu_ns: 6, ..Stream::default() };
        let asked = schedule.asked(&[stream], 0, 1_000 * MS);
        assert_eq!(asked.given_up_ns, Some(998 * MS));
        let mut out = Samples::default();
        asked.push(schedule, 4, &mut out);
        let p50 = out.iter().find(|sample| sample.metric == LATENCY).unwrap();
        assert_eq!((p50.value, p50.status), (2e6, Status::Ok));
    }

    #[test]
    fn a_slow_answer_at_the_end_is_no_overload() {
        let overloaded = |rate_per_s: u64, time_ms: u64, last_ms: u64| {
            let schedule = schedule(rate_per_s, time_ms);
            let mut requests_ns: Vec<_> = (0..schedule.count()).map(|number| [schedule.due_ns(number); 3]).collect();
            requests_ns.last_mut().unwrap()[2] = last_ms * MS;
            let asked = schedule.asked(&[Stream { requests_ns, cpu_ns: 1, ..Stream::default() }], 0, 60_000 * MS);
            let mut out = Samples::default();
            asked.push(schedule, 1, &mut out);
            out.iter().find(|sample| sample.metric == OVERLOADED).unwrap().value
        };
        assert_eq!([overloaded(1_000, 500, 590), overloaded(1_000, 500, 610)], [0.0, 1.0]);
        // Three a second are one in half a second.
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
