//! The thread that carries frames from one device to the other, each segment when the model says that it is due.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};

use ascertain_sys::clock::{now_ns, thread_cpu_ns};
use ascertain_sys::packet;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, pread, read, write};

use super::frame::{Frame, NOBODYS};
use super::pace::{Pace, SPIN_NS};
use super::report::Report;
use crate::Error;
use crate::model::{Conditions, Counts, Fate, Line};

/// Segments of one frame that are due within that time of each other arrive together.
const TOGETHER_NS: u64 = 50_000;
/// How many frames are read from one device before it is the other's turn.
const BATCH: usize = 16;
/// The largest frame: 64 KiB and all headers.
const FRAME_BYTES: usize = 66_000;

/// One end of what is emulated: a TUN, or a packet socket on a virtual Ethernet device.
#[derive(Debug)]
pub(crate) struct Device {
    pub file: OwnedFd,
    /// What is before each IP packet: an Ethernet header, or nothing.
    pub link_header_bytes: usize,
}

/// The thread, from outside. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Emulator {
    /// Where it is asked for reports; closed, it ends.
    requests: Option<Sender<Sender<Report>>>,
    /// What wakes it.
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Emulator {
    /// Carries what comes from either device to the other, under the conditions of its direction.
    pub fn start(devices: [Device; 2], conditions: [&Conditions; 2]) -> Result<Self, Error> {
        let [one, other] = conditions;
        let directions = [Direction::new(one)?, Direction::new(other)?];
        let (requests, asked) = channel();
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let wake = Arc::new(wake.map_err(Error::system("no eventfd could be made"))?);
        let woken = wake.clone();
        let work = move || {
            let mut worker = Worker::new(devices, directions, woken, asked);
            // Nobody can read or write its devices any more but for a bug; whoever asks for a report learns of it.
            let _ = worker.run();
        };
        let thread = thread::Builder::new().name("netlab".into()).spawn(work);
        let thread = thread.map_err(Error::system("no thread could be started for a link"))?;
        Ok(Self { requests: Some(requests), wake, thread: Some(thread) })
    }

    pub fn report(&self) -> Result<Report, Error> {
        let (answer, answered) = channel();
        let asked = self.requests.as_ref().is_some_and(|requests| requests.send(answer).is_ok());
        self.wake();
        if asked { answered.recv().map_err(|_| Error::Ended) } else { Err(Error::Ended) }
    }

    fn wake(&self) {
        // It fails only where a wake-up is pending already.
        let _ = write(&*self.wake, &1_u64.to_ne_bytes());
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.requests = None;
        self.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What goes one way.
struct Direction {
    line: Line,
    tells_flows_apart: bool,
    /// Whether segments may arrive together, as they would without a rate.
    may_join: bool,
    /// In the order in which they are due, which is that in which they came.
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    due_ns: u64,
    /// How long it lay unread at most before it was offered.
    unread_ns: u64,
    frame: Vec<u8>,
}

impl Direction {
    fn new(conditions: &Conditions) -> Result<Self, Error> {
        Ok(Self {
            line: Line::new(conditions)?,
            tells_flows_apart: conditions.tell_flows_apart(),
            may_join: conditions.rate_bits_per_s.is_none() && conditions.bucket.is_none(),
            waiting: VecDeque::new(),
        })
    }

    /// Offers each segment of a frame that was read at this moment, and keeps what will arrive.
    fn take(&mut self, now_ns: u64, unread_ns: u64, frame: &Frame<'_>) {
        let flow = if self.tells_flows_apart { frame.flow() } else { NOBODYS };
        // Of segments that arrive together: the first one, when that is due, and when the last one is.
        let mut joined: Option<(usize, u64, u64)> = None;
        let count = frame.segments();
        for segment in 0..count {
            let fate = self.line.offer(now_ns, frame.segment_bytes(segment), flow);
            let due_ns = if let Fate::Due(due_ns) = fate { Some(due_ns) } else { None };
            joined = match (joined, due_ns) {
                (Some((first, first_ns, _)), Some(due_ns)) if self.may_join && due_ns - first_ns <= TOGETHER_NS => {
                    Some((first, first_ns, due_ns))
                }
                (before, due_ns) => {
                    self.keep(frame, before, segment, unread_ns);
                    due_ns.map(|due_ns| (segment, due_ns, due_ns))
                }
            };
        }
        self.keep(frame, joined, count, unread_ns);
    }

    fn keep(&mut self, frame: &Frame<'_>, joined: Option<(usize, u64, u64)>, end: usize, unread_ns: u64) {
        if let Some((first, _, due_ns)) = joined {
            self.waiting.push_back(Waiting { due_ns, unread_ns, frame: frame.piece(first..end) });
        }
    }
}

/// The thread's own state. Direction 0 is from device 0 to device 1.
struct Worker {
    devices: [Device; 2],
    directions: [Direction; 2],
    /// When there was certainly nothing to read from a device.
    empty_ns: [u64; 2],
    wake: Arc<OwnedFd>,
    requests: Receiver<Sender<Report>>,
    pace: Pace,
    /// What says how long this thread has waited for a CPU.
    scheduled: Option<File>,
    report: Report,
    buffer: Vec<u8>,
}

impl Worker {
    fn new(
        devices: [Device; 2],
        directions: [Direction; 2],
        wake: Arc<OwnedFd>,
        requests: Receiver<Sender<Report>>,
    ) -> Self {
        let now_ns = now_ns();
        let pace = Pace::new(now_ns);
        let scheduled = File::open("/proc/thread-self/schedstat").ok();
        let report = Report { is_real_time: pace.may_real_time(), ..Report::default() };
        let buffer = vec![0; FRAME_BYTES];
        Self { devices, directions, empty_ns: [now_ns; 2], wake, requests, pace, scheduled, report, buffer }
    }

    fn run(&mut self) -> io::Result<()> {
        loop {
            match self.requests.try_recv() {
                // Who asked may have gone.
                Ok(answer) => drop(answer.send(self.current_report()?)),
                Err(TryRecvError::Disconnected) => return Ok(()),
                Err(TryRecvError::Empty) => {}
            }
            let is_idle = [self.read(0)?, self.read(1)?] == [0, 0];
            self.hand_out();
            if is_idle {
                self.wait()?;
            }
            self.pace.consider(now_ns());
        }
    }

    /// Takes what there is to read from a device, up to a batch, and counts it.
    fn read(&mut self, from: usize) -> io::Result<usize> {
        for count in 0..BATCH {
            let asked_ns = now_ns();
            let bytes = match read(&self.devices[from].file, &mut self.buffer[..]) {
                Ok(bytes) => bytes,
                Err(Errno::AGAIN) => {
                    self.empty_ns[from] = asked_ns;
                    return Ok(count);
                }
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let now_ns = now_ns();
            let unread_ns = now_ns.saturating_sub(self.empty_ns[from]);
            match Frame::new(&self.buffer[..bytes], self.devices[from].link_header_bytes) {
                Some(frame) => self.directions[from].take(now_ns, unread_ns, &frame),
                None => self.report.refused_frames += 1,
            }
            self.hand_out();
        }
        Ok(BATCH)
    }

    /// Writes what is due.
    fn hand_out(&mut self) {
        for (direction, to) in self.directions.iter_mut().zip([1, 0]) {
            while let Some(next) = direction.waiting.front()
                && let Some(late_ns) = now_ns().checked_sub(next.due_ns)
            {
                self.report.lateness.record(late_ns.saturating_add(next.unread_ns));
                if write(&self.devices[to].file, &next.frame).is_err() {
                    self.report.refused_frames += 1;
                }
                direction.waiting.pop_front();
            }
        }
    }

    /// Waits until something comes or is due: asleep, but for the last moments.
    fn wait(&mut self) -> io::Result<()> {
        let due_ns = self.directions.iter().filter_map(|direction| Some(direction.waiting.front()?.due_ns)).min();
        let now_ns_before = now_ns();
        let left_ns = due_ns.map(|due_ns| due_ns.saturating_sub(now_ns_before));
        if left_ns == Some(0) || due_ns.is_some_and(|due_ns| self.pace.spins(now_ns_before, due_ns)) {
            return Ok(());
        }
        // Where it may not spin it sleeps to the end.
        let margin_ns = left_ns.filter(|left_ns| *left_ns > SPIN_NS).map_or(0, |_| SPIN_NS);
        let timeout = left_ns.and_then(|left_ns| {
            let left_ns = left_ns - margin_ns;
            Some(Timespec {
                tv_sec: i64::try_from(left_ns / 1_000_000_000).ok()?,
                tv_nsec: (left_ns % 1_000_000_000) as _,
            })
        });
        let waited_before_ns = self.run_queue_ns();
        let [one, other] = &self.devices;
        let mut events = [one.file.as_fd(), other.file.as_fd(), self.wake.as_fd()]
            .map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN));
        match poll(&mut events, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !events[2].revents().is_empty() {
            let _ = read(&*self.wake, &mut [0; 8]);
        }
        let now_ns = now_ns();
        self.pace.slept(now_ns - now_ns_before);
        // What came woke this thread, which then may have waited for a CPU.
        let waited_ns = self.run_queue_ns().saturating_sub(waited_before_ns);
        self.empty_ns = [now_ns.saturating_sub(waited_ns); 2];
        Ok(())
    }

    /// How long this thread was ready to run but did not, since it began; 0 where the kernel does not say.
    fn run_queue_ns(&self) -> u64 {
        let mut text = [0; 64];
        let bytes = self.scheduled.as_ref().and_then(|file| pread(file, &mut text, 0).ok()).unwrap_or(0);
        let second = std::str::from_utf8(&text[..bytes]).ok().and_then(|text| text.split(' ').nth(1));
        second.and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    fn current_report(&mut self) -> io::Result<Report> {
        for device in self.devices.iter().filter(|device| device.link_header_bytes > 0) {
            self.report.unread_frames += packet::take_dropped(&device.file)?;
        }
        let counts = |direction: &Direction| -> Counts { direction.line.counts() };
        let [to_far, to_near] = [counts(&self.directions[0]), counts(&self.directions[1])];
        Ok(Report { to_far, to_near, cpu_ns: thread_cpu_ns(), ..self.report.clone() })
    }
}
