//! The thread that carries frames between the two devices of a link. It delivers each segment at the time that the
//! model computed.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Duration;

use ascertain_sys::clock::{now_ns, thread_cpu_ns};
use ascertain_sys::packet;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, pread, read, write};

use super::frame::{Frame, NOBODYS};
use super::pace::{Pace, SPIN_NS};
use super::report::Report;
use crate::Error;
use crate::model::{Conditions, Counts, Fate, Line, Tally};
use crate::threads::JoinedThread;

/// Maximum time between the due times of segments that are delivered together as one frame.
const TOGETHER_NS: u64 = 50_000;
/// Maximum number of frames that are read from one device before the other device is read.
const BATCH: usize = 16;
/// Size of the buffer for one frame, in bytes. It holds a packet of 64 KiB with all headers.
const FRAME_BYTES: usize = 66_000;

/// The device at one side of an emulated link: a TUN device, or a packet socket on a virtual Ethernet device.
#[derive(Debug)]
pub(crate) struct Device {
    pub file: OwnedFd,
    /// Size of the Ethernet header before each IP packet; 0 if there is none.
    pub link_header_bytes: usize,
}

/// A handle of the emulator's thread. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Emulator {
    /// The channel on which reports are requested. Each request contains the channel for its answer. Closing this
    /// channel ends the thread.
    requests: Option<Sender<Sender<Report>>>,
    /// An eventfd that wakes the thread.
    wake: Arc<OwnedFd>,
    _thread: JoinedThread,
}

impl Emulator {
    /// Starts a thread that carries frames in both directions. `conditions[0]` applies to the frames from `devices[0]`
    /// to `devices[1]`, and `conditions[1]` to the other direction. A bare emulator ignores them: it only reads and
    /// writes frames.
    pub fn start(devices: [Device; 2], conditions: [&Conditions; 2], is_bare: bool) -> Result<Self, Error> {
        let [one, other] = conditions;
        let directions = [Direction::new(one)?, Direction::new(other)?];
        let (requests, asked) = channel();
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let wake = Arc::new(wake.map_err(Error::system("could not create an eventfd"))?);
        let woken = wake.clone();
        let work = move || {
            let mut worker = Worker::new(devices, directions, is_bare, (woken, asked));
            // Reading and writing fail only because of a bug. A later request for a report then returns an error.
            let _ = worker.run();
        };
        let thread = JoinedThread::spawn("netlab", work);
        let _thread = thread.map_err(Error::system("could not start a thread for the link"))?;
        Ok(Self { requests: Some(requests), wake, _thread })
    }

    pub fn report(&self) -> Result<Report, Error> {
        let (answer, answered) = channel();
        let asked = self.requests.as_ref().is_some_and(|requests| requests.send(answer).is_ok());
        self.wake();
        let report = if asked { answered.recv().ok() } else { None };
        report.ok_or_else(|| Error::Link("the emulated link has stopped because of a bug; start a new link".into()))
    }

    fn wake(&self) {
        // The write fails only if a wake-up is pending already.
        let _ = write(&*self.wake, &1_u64.to_ne_bytes());
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.requests = None;
        self.wake();
    }
}

/// One direction of a link.
struct Direction {
    line: Line,
    tells_flows_apart: bool,
    /// `true` if segments may be delivered together. `false` with a rate limit or a token bucket, because both space
    /// the segments out.
    may_join: bool,
    /// The frames that wait to be delivered, in the order in which they arrived. They become due in the same order.
    waiting: VecDeque<DelayedFrame>,
}

struct DelayedFrame {
    due_ns: u64,
    /// Upper bound of the time for which the frame waited in the device before it was read.
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

    /// Offers each segment of a frame to the model, and queues the segments that the model does not drop. `unread_ns`
    /// is an upper bound of the time for which the frame waited in the device.
    fn take(&mut self, now_ns: u64, unread_ns: u64, frame: &Frame<'_>) {
        let flow = if self.tells_flows_apart { frame.flow() } else { NOBODYS };
        // The segments to deliver together: the index of the first segment, and the times at which the first and the
        // latest segment are due.
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
            self.waiting.push_back(DelayedFrame { due_ns, unread_ns, frame: frame.piece(first..end) });
        }
    }
}

/// The state of the emulator's thread. `directions[0]` carries frames from `devices[0]` to `devices[1]`.
struct Worker {
    devices: [Device; 2],
    directions: [Direction; 2],
    /// `true` if frames are written as soon as they are read, without a model.
    is_bare: bool,
    /// The segments that a bare emulator read from each device.
    relayed: [Tally; 2],
    /// For each device, the latest time at which it certainly had no frames to read.
    empty_ns: [u64; 2],
    wake: Arc<OwnedFd>,
    requests: Receiver<Sender<Report>>,
    pace: Pace,
    /// The kernel's file `schedstat`, which contains the time for which this thread has waited for a CPU.
    scheduled: Option<File>,
    report: Report,
    buffer: Vec<u8>,
}

impl Worker {
    fn new(
        devices: [Device; 2],
        directions: [Direction; 2],
        is_bare: bool,
        (wake, requests): (Arc<OwnedFd>, Receiver<Sender<Report>>),
    ) -> Self {
        let now_ns = now_ns();
        let pace = Pace::new(now_ns);
        let scheduled = File::open("/proc/thread-self/schedstat").ok();
        let report = Report { is_real_time: pace.may_real_time(), ..Report::default() };
        let buffer = vec![0; FRAME_BYTES];
        let (relayed, empty_ns) = ([Tally::default(); 2], [now_ns; 2]);
        Self { devices, directions, is_bare, relayed, empty_ns, wake, requests, pace, scheduled, report, buffer }
    }

    fn run(&mut self) -> io::Result<()> {
        loop {
            match self.requests.try_recv() {
                // Sending fails if the requester is gone, so the result is ignored.
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

    /// Reads up to [`BATCH`] frames from a device, and returns the number of frames that it read.
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
            if self.is_bare {
                self.relay(from, bytes);
                continue;
            }
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

    /// Writes the frame in the buffer to the other device, and counts its segments.
    fn relay(&mut self, from: usize, bytes: usize) {
        let frame = &self.buffer[..bytes];
        let counted = Frame::new(frame, self.devices[from].link_header_bytes);
        let tally = &mut self.relayed[from];
        tally.segments += counted.map_or(0, |frame| frame.segments() as u64);
        tally.bytes += bytes as u64;
        if write(&self.devices[1 - from].file, frame).is_err() {
            self.report.refused_frames += 1;
        }
    }

    /// Writes the frames that are due, each to the device on the other side of the link.
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

    /// Waits until a frame arrives, or until shortly before a frame is due. Returns at once if the thread should spin
    /// instead of sleeping.
    fn wait(&mut self) -> io::Result<()> {
        let due_ns = self.directions.iter().filter_map(|direction| Some(direction.waiting.front()?.due_ns)).min();
        let now_ns_before = now_ns();
        let left_ns = due_ns.map(|due_ns| due_ns.saturating_sub(now_ns_before));
        if left_ns == Some(0) || due_ns.is_some_and(|due_ns| self.pace.spins(now_ns_before, due_ns)) {
            return Ok(());
        }
        // A sleep ends `SPIN_NS` before the frame is due, so that the thread can spin for the rest of the time. If less
        // time is left, `spins` has refused to spin, so the thread sleeps until the frame is due.
        let margin_ns = left_ns.filter(|left_ns| *left_ns > SPIN_NS).map_or(0, |_| SPIN_NS);
        let timeout = left_ns.and_then(|left_ns| Timespec::try_from(Duration::from_nanos(left_ns - margin_ns)).ok());
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
        // A frame may have arrived while this thread waited for a CPU. It is only certain that the devices were empty
        // when this wait began.
        let waited_ns = self.run_queue_ns().saturating_sub(waited_before_ns);
        self.empty_ns = [now_ns.saturating_sub(waited_ns); 2];
        Ok(())
    }

    /// Returns the total time for which this thread was ready to run and waited for a CPU. 0 if the kernel does not
    /// report it.
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
        let [to_far, to_near] = match self.is_bare {
            true => self.relayed.map(|offered| Counts { offered, due: offered, ..Counts::default() }),
            false => [0, 1].map(|direction| self.directions[direction].line.counts()),
        };
        Ok(Report { to_far, to_near, cpu_ns: thread_cpu_ns(), ..self.report.clone() })
    }
}
