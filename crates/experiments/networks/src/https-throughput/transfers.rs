//! Transfers, measured.

use std::net::SocketAddr;
use std::rc::Rc;
use std::{fs, io};

use ascertain_engine::experiment::{Arm, ArmId, Point, Samples, Session, Setup, TargetError, Trial};
use ascertain_engine::finding::Remark;
use ascertain_engine::run::Now;
use ascertain_sys::affinity::{self, Pinned};
use ascertain_sys::interrupt::Stop;

use super::clients::{Client, Download, Seen, cipher_of, cipher_on};
use super::requests::{Schedule, connect};
use super::servers::{Serving, encrypted_by_kernel, word};
use super::{CLIENT_CPU, CPU, KERNEL_TLS, ONE, SERVER_CPU, THROUGHPUT};
use crate::limits::Limits;
use crate::links::failed;

/// What is to be spoken.
const PROTOCOL: &str = "HTTP/1.1";

struct Transfers {
    targets: Vec<Target>,
    stop: Stop,
    now: Now,
}

/// Where both ends are to share a CPU, what is started while this lives does: the last one, for the first one often has
/// the interrupts.
fn placed(is_on_one: bool) -> Result<Option<Pinned>, TargetError> {
    let cpu = affinity::allowed().last().copied().filter(|_| is_on_one);
    cpu.map(affinity::pin_for_now).transpose().map_err(failed)
}

struct Target {
    client: Client,
    is_on_one: bool,
    is_by_kernel: bool,
    serving: Rc<Serving>,
    addresses: Vec<SocketAddr>,
    path: String,
    bytes_each: u64,
    cipher: Option<String>,
    /// Small requests, instead of large transfers.
    schedule: Option<Schedule>,
    /// In which trials our client was slower than who answers.
    limits: Limits,
    /// Who asks whom, for errors.
    between: String,
}

pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    Ok(Box::new(Transfers::open(arms, setup)?))
}

impl Transfers {
    /// Arms that are served alike have one server.
    fn open(arms: &[Arm], setup: &Setup) -> Result<Self, TargetError> {
        let stop = &setup.stop;
        let mut servers: Vec<(&Arm, Rc<Serving>)> = Vec::new();
        let mut targets = Vec::new();
        for arm in arms {
            let is_alike = |other: &Arm| {
                other.variant == arm.variant
                    && ["server", "streams", "cpus"]
                        .iter()
                        .all(|factor| other.point.get(factor) == arm.point.get(factor))
            };
            let serving = match servers.iter().find(|(other, _)| is_alike(other)) {
                Some((_, serving)) => serving.clone(),
                None => {
                    let _pinned = placed(word(arm, "cpus") == ONE)?;
                    Rc::new(Serving::start(arm, stop)?)
                }
            };
            servers.push((arm, serving.clone()));
            targets.push(Target::new(arm, serving, stop)?);
        }
        Ok(Self { targets, stop: stop.clone(), now: setup.now.clone() })
    }
}

impl Target {
    /// The arm's, whoever answers.
    fn new(arm: &Arm, serving: Rc<Serving>, stop: &Stop) -> Result<Self, TargetError> {
        let is_on_one = word(arm, "cpus") == ONE;
        let _pinned = placed(is_on_one)?;
        let streams = arm.integer("streams")?;
        let schedule = Schedule::of(arm)?;
        let bytes_each = match schedule {
            Some(schedule) => schedule.answer_bytes,
            None => arm.integer("mb")? * 1_000_000 / streams,
        };
        let path = serving.path(bytes_each)?;
        let client = Client::start(arm, &serving, &path, stop)?;
        let addresses = (0..streams as usize).map(|stream| serving.address(stream)).collect();
        let between = format!("{} from {}, {}", word(arm, "client"), word(arm, "server"), arm.variant);
        let cipher = cipher_of(arm);
        let is_by_kernel = arm.variant == KERNEL_TLS;
        let limits = Limits::default();
        Ok(Self {
            client,
            is_on_one,
            is_by_kernel,
            serving,
            addresses,
            path,
            bytes_each,
            cipher,
            schedule,
            limits,
            between,
        })
    }

    /// An error with who it is of, and with what the server says of it.
    fn told(&self, error: TargetError) -> TargetError {
        let told = |said: String| format!("{}: {said}{}", self.between, self.serving.said());
        match error {
            TargetError::Failed(said) => TargetError::Failed(told(said)),
            TargetError::WrongAnswer(said) => TargetError::WrongAnswer(told(said)),
            other => other,
        }
    }

    /// What is to be said beside the figures.
    fn measure(&mut self, stop: &Stop, out: &mut Samples) -> Result<Option<Remark>, TargetError> {
        if let (Some(schedule), Client::Own(offer)) = (self.schedule, &self.client) {
            let _pinned = placed(self.is_on_one)?;
            let connections = connect(offer, &self.addresses)?;
            connections.iter().try_for_each(|on| check_cipher(self.cipher.as_deref(), cipher_on(on).as_deref()))?;
            let before_ns = self.serving.cpu_ns()?;
            let check = |status, bytes, version: &str| check_answer(self.bytes_each, status, bytes, version);
            let asked = schedule.ask(connections, &self.path, check, stop)?;
            asked.push(schedule, self.serving.cpu_ns()? - before_ns, out);
            let (wanted_per_s, sent_per_s) = (schedule.rate_per_s as f64, asked.sent_per_s);
            let late_ns = asked.late_p99_ns();
            let overload = Remark::Overload { limited: 1, trials: 1, wanted_per_s, sent_per_s, late_ns, refused: 0 };
            return Ok(self.limits.after(asked.is_client_slow.then_some(overload)));
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

    /// All of it, and the CPU time of the server. What is not what was asked for, or was agreed upon otherwise, is an
    /// error.
    fn download(&mut self, stop: &Stop) -> Result<(Download, u64), TargetError> {
        let _pinned = placed(self.is_on_one)?;
        let before_ns = self.serving.cpu_ns()?;
        let download = self.client.download(&self.addresses, &self.path, self.bytes_each, stop)?;
        let server_cpu_ns = self.serving.cpu_ns()? - before_ns;
        download.seen.iter().try_for_each(|seen| self.check(seen))?;
        Ok((download, server_cpu_ns))
    }

    fn check(&self, seen: &Seen) -> Result<(), TargetError> {
        check_answer(self.bytes_each, seen.status, seen.bytes, &seen.protocol)?;
        match &seen.cipher {
            Some(cipher) => check_cipher(self.cipher.as_deref(), Some(cipher)),
            None => Ok(()),
        }
    }
}

fn check_answer(wanted_bytes: u64, status: u16, bytes: u64, protocol: &str) -> Result<(), TargetError> {
    if (status, bytes) != (200, wanted_bytes) {
        let said = format!("status {status} and {bytes} bytes instead of 200 and {wanted_bytes}");
        return Err(TargetError::WrongAnswer(said));
    }
    if protocol == PROTOCOL { Ok(()) } else { Err(failed(format!("{protocol} was spoken instead of {PROTOCOL}"))) }
}

fn check_cipher(wanted: Option<&str>, seen: Option<&str>) -> Result<(), TargetError> {
    let [seen, instead] = [seen, wanted].map(|cipher| cipher.unwrap_or("no TLS"));
    if seen == instead { Ok(()) } else { Err(failed(format!("{seen} was agreed upon instead of {instead}"))) }
}

/// An nginx whose OpenSSL was built without its part of it encrypts by itself, and says nothing.
fn check_kernel(before: io::Result<u64>, after: io::Result<u64>, streams: usize) -> Result<(), TargetError> {
    let count = after.map_err(failed)? - before.map_err(failed)?;
    if count >= streams as u64 {
        return Ok(());
    }
    let said = format!("by /proc/net/tls_stat the kernel encrypted {count} of {streams} connections");
    Err(failed(format!("{said}: nginx's OpenSSL may have been built without its part of that (enable-ktls)")))
}

impl Session for Transfers {
    /// Who does not say what encrypts with each download is asked once, and so is the kernel.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let target = &mut self.targets[arm];
        let stop = &self.stop;
        let mut verify = || {
            let before = encrypted_by_kernel();
            let (download, _) = target.download(stop)?;
            if target.is_by_kernel {
                check_kernel(before, encrypted_by_kernel(), target.addresses.len())?;
            }
            let seen = download.seen.iter().find_map(|seen| seen.cipher.clone());
            let seen = if seen.is_some() { seen } else { target.client.cipher()? };
            check_cipher(target.cipher.as_deref(), seen.as_deref())
        };
        verify().map_err(|error| target.told(error))
    }

    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        let congestion = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").map_err(failed)?;
        let point = Point::default().with("protocol", PROTOCOL).with("congestion", congestion.trim());
        let cipher = &self.targets[arm].cipher;
        Ok(cipher.iter().fold(point, |point, cipher| point.with("cipher", cipher.as_str())))
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let target = &mut self.targets[arm];
        let said = target.measure(&self.stop, out).map_err(|error| target.told(error))?;
        said.into_iter().for_each(|remark| self.now.remark(remark));
        Ok(())
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
