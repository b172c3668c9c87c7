//! Downloads beside each other, and how much of each arrives in a while.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use std::{iter, thread};

use ascertain_engine::experiment::{Arm, ArmId, Point, Samples, Session, Setup, TargetError, Trial};
use ascertain_netlab::{RunningLink, now_ns, tcp};
use ascertain_sys::interrupt::Stop;

use super::places::{Place, Source};
use super::{BESIDE_TEST, LATE, TEST_THROUGHPUT, THROUGHPUT};
use crate::links::{facts, failed, wait, watched};

struct Flows {
    targets: Vec<Target>,
    stop: Stop,
}

struct Target {
    place: Rc<Place>,
    /// Connections of the speed test beside one's own download.
    streams: usize,
    pause: Duration,
    left_out: Duration,
    measured: Duration,
}

pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    Ok(Box::new(Flows::open(arms, setup)?))
}

impl Flows {
    fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let mut places = BTreeMap::new();
        let targets = arms.iter().map(|arm| Target::new(arm, &mut places)).collect::<Result<_, _>>()?;
        Ok(Self { targets, stop: setup.stop.clone() })
    }
}

impl Target {
    /// Arms at one point have one place.
    fn new(arm: &Arm, places: &mut BTreeMap<Point, Rc<Place>>) -> Result<Self, TargetError> {
        let time = |factor| arm.integer(factor).map(Duration::from_millis);
        let (left_out, measured) = (time("left_out_ms")?, time("measured_ms")?);
        let place = match places.get(&arm.point) {
            Some(place) => place.clone(),
            None => Rc::new(Place::of(arm, left_out + measured)?),
        };
        places.insert(arm.point.clone(), place.clone());
        let streams = if arm.variant == BESIDE_TEST { arm.integer("streams")? as usize } else { 0 };
        Ok(Self { place, streams, pause: time("pause_ms")? + 2 * time("rtt_ms")?, left_out, measured })
    }

    /// Bytes a second of one's own download, and of the speed test.
    fn throughputs(&self, stop: &Stop) -> Result<[f64; 2], TargetError> {
        let Place { own, test, link } = &*self.place;
        wait(self.pause, stop)?;
        let sources = iter::once(own).chain(iter::repeat_n(test, self.streams));
        thread::scope(|scope| {
            let (opened, opening) = channel();
            let downloads: Vec<_> = sources
                .enumerate()
                .map(|(index, source)| {
                    let opened = opened.clone();
                    scope.spawn(move || download(source, link.as_ref(), index, opened))
                })
                .collect();
            drop(opened);
            // It ends when each has a connection, or none.
            let mut sockets: Vec<_> = opening.iter().collect();
            sockets.sort_unstable_by_key(|(index, _)| *index);
            let are_open = sockets.len() == downloads.len();
            let seen = if are_open { self.watch(&sockets, stop) } else { Err(failed("no connection")) };
            // What never began, or ended before it was told to, says why.
            let is_open = |index| sockets.iter().any(|(of, _)| *of == index);
            let has_failed = (0..downloads.len()).find(|index| !is_open(*index) || downloads[*index].is_finished());
            sockets.iter().for_each(|(_, socket)| _ = socket.shutdown(Shutdown::Both));
            let mut ends = downloads.into_iter().map(|download| download.join());
            match has_failed.and_then(|index| ends.nth(index)) {
                Some(Ok(error)) => Err(error),
                Some(Err(_)) => Err(failed("a download ended by a mistake of ours")),
                None => seen,
            }
        })
    }

    /// What arrives by these connections in the time that counts, a second. The first one is one's own.
    fn watch(&self, sockets: &[(usize, TcpStream)], stop: &Stop) -> Result<[f64; 2], TargetError> {
        wait(self.left_out, stop)?;
        let (start_ns, before) = (now_ns(), received_bytes(sockets)?);
        wait(self.measured, stop)?;
        let (end_ns, after) = (now_ns(), received_bytes(sockets)?);
        let throughputs = [0, 1].map(|of| (after[of] - before[of]) as f64 * 1e9 / (end_ns - start_ns) as f64);
        if throughputs[0] == 0.0 {
            return Err(self.place.own.failed("nothing arrived while it was measured: give it more `measured_ms`"));
        }
        Ok(throughputs)
    }
}

/// Opens a connection, hands out its socket, and downloads until that fails, or the socket is shut down.
fn download(
    source: &Source,
    link: Option<&RunningLink>,
    index: usize,
    opened: Sender<(usize, TcpStream)>,
) -> TargetError {
    let opening = || {
        let connection = source.open(link)?;
        let socket = connection.socket().try_clone().map_err(failed)?;
        Ok((connection, socket))
    };
    match opening() {
        Ok((connection, socket)) => {
            // Whoever waits for it is there until this ends.
            _ = opened.send((index, socket));
            drop(opened);
            source.download(connection)
        }
        Err(error) => error,
    }
}

/// What has arrived by the first connection, and by the others.
fn received_bytes(sockets: &[(usize, TcpStream)]) -> Result<[u64; 2], TargetError> {
    let mut received_bytes = [0; 2];
    for (index, socket) in sockets {
        let bytes = tcp::info(socket).map_err(failed)?.received_bytes;
        received_bytes[usize::from(*index > 0)] +=
            bytes.ok_or_else(|| failed("this kernel counts no bytes (before Linux 4.1)"))?;
    }
    Ok(received_bytes)
}

impl Session for Flows {
    /// Whether there is something to download: how much is looked at while it is measured.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        self.targets[arm].throughputs(&self.stop).map(drop)
    }

    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        self.targets[arm].place.link.as_ref().map_or_else(|| Ok(Point::default()), facts)
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let target = &self.targets[arm];
        watched(target.place.link.as_ref(), LATE, out, |out| {
            let [own, test] = target.throughputs(&self.stop)?;
            out.push(THROUGHPUT, own);
            if target.streams > 0 {
                out.push(TEST_THROUGHPUT, test);
            }
            Ok(())
        })
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
