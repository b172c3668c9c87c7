//! What was seen of the requests that carried a file.

use std::time::Instant;

use serde::Serialize;

use crate::store::{Attempt, Failure, Kind};

/// The requests that carried a file: how long their phases took, and what was tried again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Requests {
    /// Until there was a connection and keys were agreed upon, for those that made one.
    pub connect_s: Option<Spread>,
    /// From then to the answer's head: with what it sends.
    pub header_s: Option<Spread>,
    /// From there to the answer's last byte: of an object that is got, until its bytes are in the file.
    pub transfer_s: Option<Spread>,
    /// What was tried again.
    pub retried: Retried,
}

/// Of many times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Half of them are shorter.
    pub median: f64,
    /// The longest.
    pub worst: f64,
}

/// How often something was tried again, by what was wrong before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Retried {
    /// The store asked for fewer requests: 429 or 503.
    pub slow_down: u64,
    /// What came, or what the store has, is not what was sent.
    pub corrupted: u64,
    /// There was no answer within the time limit.
    pub silent: u64,
    /// Anything else: a connection that broke, an answer that was lost, or the store's failure.
    pub broken: u64,
}

impl Retried {
    /// An attempt failed, and is made again. One that was given up has no failure of the store's.
    pub(super) fn add(&mut self, failure: &Failure, seen: Option<&Attempt>) {
        *match seen {
            None => &mut self.silent,
            Some(Attempt { status: Some(429 | 503), .. }) => &mut self.slow_down,
            Some(_) if failure.kind == Kind::Corrupted => &mut self.corrupted,
            Some(_) => &mut self.broken,
        } += 1;
    }
}

/// How long the phases of one request took that was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Phases {
    connect_s: Option<f64>,
    header_s: Option<f64>,
    transfer_s: Option<f64>,
}

impl Phases {
    pub fn of(seen: &Attempt) -> Self {
        let connected = seen.secured.or(seen.connected);
        let between =
            |from: Option<Instant>, to: Option<Instant>| Some(to?.saturating_duration_since(from?).as_secs_f64());
        Self {
            connect_s: between(seen.began, connected),
            header_s: between(connected.or(seen.began), seen.header),
            transfer_s: between(seen.header, seen.last_byte),
        }
    }
}

/// Requests as they are answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    phases: Vec<Phases>,
    retried: Retried,
}

impl Log {
    pub fn add(&mut self, phases: Phases, retried: Retried) {
        self.phases.push(phases);
        let Retried { slow_down, corrupted, silent, broken } = &mut self.retried;
        *slow_down += retried.slow_down;
        *corrupted += retried.corrupted;
        *silent += retried.silent;
        *broken += retried.broken;
    }

    /// The answer to a request was lost, and it is made again.
    pub fn lost(&mut self) {
        self.retried.broken += 1;
    }

    pub fn requests(&self) -> Requests {
        let spread = |phase: fn(&Phases) -> Option<f64>| Spread::of(self.phases.iter().filter_map(phase).collect());
        Requests {
            connect_s: spread(|phases| phases.connect_s),
            header_s: spread(|phases| phases.header_s),
            transfer_s: spread(|phases| phases.transfer_s),
            retried: self.retried,
        }
    }
}

impl Spread {
    fn of(mut times: Vec<f64>) -> Option<Self> {
        times.sort_by(f64::total_cmp);
        Some(Self { median: *times.get(times.len() / 2)?, worst: *times.last()? })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn phases_are_between_what_was_seen() {
        let began = Instant::now();
        let at = |ms| Some(began + Duration::from_millis(ms));
        let fresh = Attempt { began: at(0), connected: at(10), secured: at(30), header: at(80), ..Attempt::default() };
        let fresh = Attempt { last_byte: at(100), ..fresh };
        let kept = Attempt { connected: None, secured: None, ..fresh.clone() };
        let mut log = Log::default();
        let failure = |kind| Failure { kind, said: String::new() };
        let mut retried = Retried::default();
        retried.add(&failure(Kind::Transient(None)), Some(&Attempt { status: Some(503), ..kept.clone() }));
        retried.add(&failure(Kind::Transient(None)), None);
        retried.add(&failure(Kind::Transient(None)), Some(&fresh));
        retried.add(&failure(Kind::Corrupted), Some(&fresh));
        log.add(Phases::of(&fresh), retried);
        log.add(Phases::of(&kept), Retried::default());
        log.add(Phases::of(&fresh), Retried::default());
        let requests = log.requests();
        let spread = |median, worst| Some(Spread { median, worst });
        assert_eq!((requests.connect_s, requests.header_s), (spread(0.03, 0.03), spread(0.05, 0.08)));
        assert_eq!(requests.transfer_s, spread(0.02, 0.02));
        assert_eq!(requests.retried, Retried { slow_down: 1, corrupted: 1, silent: 1, broken: 1 });
        assert_eq!(Log::default().requests(), Requests::default());
    }
}
