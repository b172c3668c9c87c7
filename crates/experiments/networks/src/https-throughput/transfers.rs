//! The session of the experiment, which measures large downloads and small requests.

use std::net::SocketAddr;
use std::rc::Rc;
use std::{fs, io};

use ascertain_engine::experiment::{Arm, ArmId, Point, Samples, Session, Setup, TargetError, Trial};
use ascertain_engine::finding::Remark;
use ascertain_engine::run::Now;
use ascertain_sys::affinity::{self, PinnedThread};
use ascertain_sys::interrupt::Stop;

use super::clients::{Client, Download, StreamResponse, cipher_of, cipher_on};
use super::requests::{Schedule, connect};
use super::servers::{BodyServer, encrypted_by_kernel};
use super::{CLIENT_CPU, CPU, KERNEL_TLS, ONE, SERVER_CPU, THROUGHPUT};
use crate::levels::word;
use crate::links::{failed, shared};
use crate::overload::OverloadLog;

/// The HTTP version that each answer must have.
const PROTOCOL: &str = "HTTP/1.1";

struct Transfers {
    arms: Vec<TransferArm>,
    stop: Stop,
    now: Now,
}

/// Pins this thread to the last CPU if `is_on_one`, so that the client and the server share one CPU. The threads and
/// processes that this thread starts are pinned too. The pinning ends when the result is dropped. The last CPU is used,
/// because the first one often handles interrupts.
fn placed(is_on_one: bool) -> Result<Option<PinnedThread>, TargetError> {
    let cpu = affinity::allowed().last().copied().filter(|_| is_on_one);
    cpu.map(affinity::pin_for_now).transpose().map_err(failed)
}

struct TransferArm {
    client: Client,
    is_on_one: bool,
    is_by_kernel: bool,
    server: Rc<BodyServer>,
    addresses: Vec<SocketAddr>,
    path: String,
    bytes_each: u64,
    cipher: Option<String>,
    /// The schedule of small requests; `None` for large downloads.
    schedule: Option<Schedule>,
    /// Counts the trials in which the client was slower than the server.
    overloads: OverloadLog,
    /// The names of the client, the server and the variant, as the beginning of error messages.
    between: String,
}

pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    Ok(Box::new(Transfers::open(arms, setup)?))
}

impl Transfers {
    /// Opens a session. Arms share servers if their variant, server, streams and CPUs are equal.
    fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let stop = &setup.stop;
        let mut servers = Vec::new();
        let open = |arm: &Arm| {
            let served = ["server", "streams", "cpus"].map(|factor| arm.point.get(factor).cloned());
            let server = shared(&mut servers, (arm.variant.clone(), served), || {
                let _pinned = placed(word(arm, "cpus") == ONE)?;
                BodyServer::start(arm, stop)
            })?;
            TransferArm::new(arm, server, stop)
        };
        let arms = arms.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { arms, stop: stop.clone(), now: setup.now.clone() })
    }
}

impl TransferArm {
    /// Creates the arm: creates the body that the server sends, and starts the client.
    fn new(arm: &Arm, server: Rc<BodyServer>, stop: &Stop) -> Result<Self, TargetError> {
        let is_on_one = word(arm, "cpus") == ONE;
        let _pinned = placed(is_on_one)?;
        let streams = arm.integer("streams")?;
        let schedule = Schedule::from_arm(arm)?;
        let bytes_each = match schedule {
            Some(schedule) => schedule.answer_bytes,
            None => arm.integer("mb")? * 1_000_000 / streams,
        };
        let path = server.path(bytes_each)?;
        let client = Client::start(arm, &server, &path, stop)?;
        let addresses = (0..streams as usize).map(|stream| server.address(stream)).collect();
        Ok(Self {
            client,
            is_on_one,
            is_by_kernel: arm.variant == KERNEL_TLS,
            server,
            addresses,
            path,
            bytes_each,
            cipher: cipher_of(arm),
            schedule,
            overloads: OverloadLog::default(),
            between: format!("{} from {}, {}", word(arm, "client"), word(arm, "server"), arm.variant),
        })
    }

    /// Adds the names of client and server, and the server's output, to an error.
    fn in_context(&self, error: TargetError) -> TargetError {
        let with_context = |why: String| format!("{}: {why}{}", self.between, self.server.output());
        match error {
            TargetError::Failed(why) => TargetError::Failed(with_context(why)),
            TargetError::WrongAnswer(why) => TargetError::WrongAnswer(with_context(why)),
            other => other,
        }
    }

    /// Measures a trial. Returns a remark if our client was slower than the server in this trial or an earlier one.
    fn measure(&mut self, stop: &Stop, out: &mut Samples) -> Result<Option<Remark>, TargetError> {
        if let (Some(schedule), Client::Own(offer)) = (self.schedule, &self.client) {
            let _pinned = placed(self.is_on_one)?;
            let connections = connect(offer, &self.addresses)?;
            connections.iter().try_for_each(|on| check_cipher(self.cipher.as_deref(), cipher_on(on).as_deref()))?;
            let before_ns = self.server.cpu_ns()?;
            let check = |status, bytes, version: &str| check_answer(self.bytes_each, status, bytes, version);
            let times = schedule.run(connections, &self.path, check, stop)?;
            times.push(schedule, self.server.cpu_ns()? - before_ns, out);
            let (wanted_per_s, sent_per_s) = (schedule.rate_per_s as f64, times.sent_per_s);
            let late_ns = times.late_p99_ns();
            let overload = Remark::Overload { limited: 1, trials: 1, wanted_per_s, sent_per_s, late_ns, refused: 0 };
            return Ok(self.overloads.add_trial(times.is_client_slow.then_some(overload)));
        }
        let (download, server_cpu_ns) = self.download(stop)?;
        let bytes = self.bytes_each as f64 * self.addresses.len() as f64;
        let per_gigabyte = |ns: u64| ns as f64 * 1e9 / bytes;
        out.push(CPU, per_gigabyte(download.cpu_ns + server_cpu_ns));
        out.push(THROUGHPUT, bytes * 1e9 / download.took_ns.max(1) as f64);
        out.push(CLIENT_CPU, per_gigabyte(download.cpu_ns));
        out.push(SERVER_CPU, per_gigabyte(server_cpu_ns));
        Ok(None)
    }

    /// Downloads the bodies on all streams. Returns the download and the CPU time of the server. Fails if an answer has
    /// a wrong status, size, protocol or cipher.
    fn download(&mut self, stop: &Stop) -> Result<(Download, u64), TargetError> {
        let _pinned = placed(self.is_on_one)?;
        let before_ns = self.server.cpu_ns()?;
        let download = self.client.download(&self.addresses, &self.path, self.bytes_each, stop)?;
        let server_cpu_ns = self.server.cpu_ns()? - before_ns;
        download.responses.iter().try_for_each(|response| self.check(response))?;
        Ok((download, server_cpu_ns))
    }

    fn check(&self, response: &StreamResponse) -> Result<(), TargetError> {
        check_answer(self.bytes_each, response.status, response.bytes, &response.protocol)?;
        match &response.cipher {
            Some(cipher) => check_cipher(self.cipher.as_deref(), Some(cipher)),
            None => Ok(()),
        }
    }
}

fn check_answer(wanted_bytes: u64, status: u16, bytes: u64, protocol: &str) -> Result<(), TargetError> {
    if (status, bytes) != (200, wanted_bytes) {
        let said = format!(
            "the server answered with status {status} and {bytes} bytes instead of status 200 and {wanted_bytes} bytes"
        );
        return Err(TargetError::WrongAnswer(said));
    }
    if protocol == PROTOCOL { Ok(()) } else { Err(failed(format!("the answer has {protocol} instead of {PROTOCOL}"))) }
}

fn check_cipher(wanted: Option<&str>, seen: Option<&str>) -> Result<(), TargetError> {
    let [seen, instead] = [seen, wanted].map(|cipher| cipher.unwrap_or("no TLS"));
    if seen == instead { Ok(()) } else { Err(failed(format!("{seen} was negotiated instead of {instead}"))) }
}

/// Checks that the kernel has encrypted the connections. An nginx whose OpenSSL was built without kernel TLS encrypts
/// by itself, without a message.
fn check_kernel(before: io::Result<u64>, after: io::Result<u64>, streams: usize) -> Result<(), TargetError> {
    let count = after.map_err(failed)? - before.map_err(failed)?;
    if count >= streams as u64 {
        return Ok(());
    }
    let said = format!("according to /proc/net/tls_stat the kernel encrypted {count} of {streams} connections");
    Err(failed(format!("{said}; nginx's OpenSSL may have been built without kernel TLS (enable-ktls)")))
}

impl Session for Transfers {
    /// Checks one download: its answers, its cipher suite and, if the variant requires it, that the kernel encrypts the
    /// data.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let (arm, stop) = (&mut self.arms[arm], &self.stop);
        let mut verify = || {
            let before = encrypted_by_kernel();
            let (download, _) = arm.download(stop)?;
            if arm.is_by_kernel {
                check_kernel(before, encrypted_by_kernel(), arm.addresses.len())?;
            }
            let seen = download.responses.iter().find_map(|response| response.cipher.clone());
            let seen = if seen.is_some() { seen } else { arm.client.cipher()? };
            check_cipher(arm.cipher.as_deref(), seen.as_deref())
        };
        verify().map_err(|error| arm.in_context(error))
    }

    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        let congestion = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").map_err(failed)?;
        let point = Point::default().with("protocol", PROTOCOL).with("congestion", congestion.trim());
        let cipher = &self.arms[arm].cipher;
        Ok(cipher.iter().fold(point, |point, cipher| point.with("cipher", cipher.as_str())))
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let arm = &mut self.arms[arm];
        let remark = arm.measure(&self.stop, out).map_err(|error| arm.in_context(error))?;
        remark.into_iter().for_each(|remark| self.now.remark(remark));
        Ok(())
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
