//! Downloads beside each other, and how much of each arrives in a while.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{iter, thread};

use ascertain_engine::experiment::{Arm, ArmId, Point, Samples, Session, Setup, TargetError, Trial};
use ascertain_netlab::{RunningLink, now_ns, tcp};
use ascertain_sys::interrupt::Stop;

use super::places::{Place, Source};
use super::{BESIDE_TEST, DISGUISED, LATE, TEST_THROUGHPUT, THROUGHPUT};
use crate::links::{facts, failed, wait, watched};

struct Flows {
    targets: Vec<Target>,
    stop: Stop,
}

struct Target {
    place: Rc<Place>,
    /// `true` if one's own download comes from the speed test's server.
    is_disguised: bool,
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
        let rtt = if place.link.is_some() { time("rtt_ms")? } else { Duration::ZERO };
        let is_disguised = arm.variant == DISGUISED;
        Ok(Self { place, is_disguised, streams, pause: time("pause_ms")? + 2 * rtt, left_out, measured })
    }

    /// Bytes a second of one's own download, and of the speed test.
    fn throughputs(&self, stop: &Stop) -> Result<[f64; 2], TargetError> {
        let Place { own, test, link } = &*self.place;
        let own = if self.is_disguised { test } else { own };
        wait(self.pause, stop)?;
        let sources = iter::once(own).chain(iter::repeat_n(test, self.streams));
        let flows: Vec<Flow> = sources.clone().map(|_| Flow::default()).collect();
        thread::scope(|scope| {
            let (opened, opening) = channel();
            let downloads: Vec<_> = sources
                .zip(&flows)
                .map(|(source, flow)| {
                    let opened = opened.clone();
                    scope.spawn(move || flow.download(source, link.as_ref(), opened))
                })
                .collect();
            drop(opened);
            // It ends when each has a connection, or none.
            let are_open = opening.iter().count() == downloads.len();
            let seen = if are_open { self.watch(&flows, stop) } else { Err(failed("no connection")) };
            // A download that never began, or ended before it was told to, says why.
            let is_open = |index: usize| flows[index].state().socket.is_some() && !downloads[index].is_finished();
            let has_failed = (0..downloads.len()).find(|&index| !is_open(index));
            flows.iter().for_each(Flow::end);
            let mut ends = downloads.into_iter().map(|download| download.join());
            match has_failed.and_then(|index| ends.nth(index)) {
                Some(Ok(error)) => Err(error),
                Some(Err(_)) => Err(failed("a download ended by a mistake of ours")),
                None => seen,
            }
        })
    }

    /// Bytes a second that arrive by these downloads in the time that counts. The first one is one's own.
    fn watch(&self, flows: &[Flow], stop: &Stop) -> Result<[f64; 2], TargetError> {
        wait(self.left_out, stop)?;
        let (start_ns, before) = (now_ns(), received_bytes(flows)?);
        wait(self.measured, stop)?;
        let (end_ns, after) = (now_ns(), received_bytes(flows)?);
        let throughputs = [0, 1].map(|of| (after[of] - before[of]) as f64 * 1e9 / (end_ns - start_ns) as f64);
        if throughputs[0] == 0.0 {
            let own = if self.is_disguised { &self.place.test } else { &self.place.own };
            return Err(own.failed("nothing arrived while it was measured: give it more `measured_ms`"));
        }
        Ok(throughputs)
    }
}

/// A download, which goes on over another connection when the server ends one.
#[derive(Default)]
struct Flow(Mutex<FlowState>);

#[derive(Default)]
struct FlowState {
    /// The connection that is open.
    socket: Option<TcpStream>,
    /// Bytes that arrived by those before it.
    earlier_bytes: u64,
    is_over: bool,
}

impl Flow {
    fn state(&self) -> MutexGuard<'_, FlowState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Downloads until that fails, or until [`end`](Self::end) is called; says when it has its first connection.
    fn download(&self, source: &Source, link: Option<&RunningLink>, opened: Sender<()>) -> TargetError {
        let mut opened = Some(opened);
        let mut download_once = || {
            if self.state().is_over {
                return Err(failed("it was ended"));
            }
            let connection = source.open(link)?;
            self.go_on_with(connection.socket().try_clone().map_err(failed)?)?;
            // The receiver lives until this ends.
            opened.take().iter().for_each(|opened| _ = opened.send(()));
            source.download(connection)
        };
        loop {
            if let Err(error) = download_once() {
                return error;
            }
        }
    }

    /// Takes another connection.
    fn go_on_with(&self, socket: TcpStream) -> Result<(), TargetError> {
        let mut state = self.state();
        if state.is_over {
            return Err(failed("it was ended"));
        }
        if let Some(before) = state.socket.replace(socket) {
            state.earlier_bytes += received_bytes_of(&before)?;
        }
        Ok(())
    }

    /// Returns the bytes received so far.
    fn received_bytes(&self) -> Result<u64, TargetError> {
        let state = self.state();
        Ok(state.earlier_bytes + state.socket.as_ref().map_or(Ok(0), received_bytes_of)?)
    }

    fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        state.socket.iter().for_each(|socket| _ = socket.shutdown(Shutdown::Both));
    }
}

fn received_bytes_of(socket: &TcpStream) -> Result<u64, TargetError> {
    let bytes = tcp::info(socket).map_err(failed)?.received_bytes;
    bytes.ok_or_else(|| failed("this kernel counts no bytes (before Linux 4.1)"))
}

/// Returns the bytes received by the first download, and by the others.
fn received_bytes(flows: &[Flow]) -> Result<[u64; 2], TargetError> {
    let mut received_bytes = [0; 2];
    for (index, flow) in flows.iter().enumerate() {
        received_bytes[usize::from(index > 0)] += flow.received_bytes()?;
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
