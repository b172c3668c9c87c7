//! The daemon: loads BPF programs that record interrupts, shares the records with clients, and interrupts the CPUs when
//! a client waits.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ascertain_sys::bpf::{Map, Program};
use ascertain_sys::clock;
use ascertain_sys::cpus;
use ascertain_sys::futex::{self, Scope};
use ascertain_sys::mapping::{Mapping, SharedMemory};
use ascertain_sys::privileges::{self, Capability};
use ascertain_sys::socket;

use super::connections::{Connections, Event};
use super::file::{ABSENT, CPUS_MAX, MAGIC, VERSION, Words, has_passed, map, page};
use super::{Client, Error, PERIOD_MAX, programs};

/// Shortest rest of the daemon after a heartbeat (an interruption of all CPUs), as a multiple of the duration of that
/// heartbeat. With very many CPUs this makes heartbeats less frequent.
const REST: u32 = 4;
/// The kernel's event for an interrupt by the timer. Each CPU that runs a program has a few hundred of them per second.
const TIMER: &str = "local_timer_entry";
/// The kernel's event for an interrupt by which one CPU tells another to schedule. On machines without this event, the
/// event of the timer is sufficient.
const RESCHEDULE: &str = "reschedule_entry";
/// The kernel's event for a CPU that becomes idle or ceases to be idle.
const IDLENESS: &str = "cpu_idle";
/// The kernel's event for each step of a CPU coming online. The CPU itself executes the last steps before it may run a
/// program.
const COMING: &str = "cpuhp_enter";
const UNPRIVILEGED: &str = "/proc/sys/kernel/unprivileged_bpf_disabled";

/// The daemon, which interrupts the CPUs when a client requests it. It serves clients while [`serve`](Self::serve)
/// runs.
///
/// It records only data about CPUs: when each of them was last interrupted, and whether it is idle.
#[derive(Debug)]
pub struct Daemon {
    memory: Memory,
    interrupt: Program,
    /// Descriptors of two events: an interrupt by the timer, and an interrupt to schedule. As long as these descriptors
    /// are open, the kernel runs the BPF program `interrupt` at each such event.
    _events: [Option<OwnedFd>; 2],
    period: Duration,
    connections: Connections,
    place: Option<ListeningPath>,
}

/// The data that each client gets: the memory with the records about the CPUs, and descriptors of events. The kernel
/// records as long as these descriptors are open.
#[derive(Debug)]
struct Memory {
    map: Mapping,
    map_handle: Map,
    page: SharedMemory,
    cpus: u32,
    /// Descriptor of the event [`IDLENESS`]. The kernel records idle CPUs as long as this is open. Without these
    /// records, a CPU could wrongly count as idle.
    idleness: OwnedFd,
    /// Descriptor of the event [`COMING`]. The kernel records CPUs that come online as long as this is open. Without
    /// these records, a CPU could wrongly count as absent.
    coming: OwnedFd,
}

impl Memory {
    fn descriptors(&self) -> [BorrowedFd<'_>; 4] {
        [self.map_handle.as_fd(), self.page.as_fd(), self.idleness.as_fd(), self.coming.as_fd()]
    }
}

/// The path of the daemon's socket, and the lock which ensures that only one daemon uses the path.
#[derive(Debug)]
struct ListeningPath {
    path: PathBuf,
    _lock: File,
}

impl Words for Memory {
    fn map(&self, offset: usize) -> u64 {
        self.map.load(offset)
    }

    fn page(&self, offset: usize) -> u64 {
        self.page.word(offset).load(Ordering::Relaxed)
    }
}

impl Daemon {
    /// Loads the BPF programs, which begin to record interrupts at once. `period` is the minimum time between two
    /// heartbeats; a period above [`PERIOD_MAX`] is reduced to it.
    ///
    /// # Errors
    /// If the machine does not support the daemon, or the user lacks the rights: an error with
    /// [`Error::is_unavailable`].
    pub fn new(period: Duration) -> Result<Self, Error> {
        if !cfg!(target_arch = "x86_64") {
            return Err(Error::OtherMachine);
        }
        refuse_unprivileged()?;
        let period = period.min(PERIOD_MAX);
        let file = |source| Error::File { path: "/sys/devices/system/cpu/possible".into(), source };
        let cpus = cpus::possible().map_err(file)?.min(CPUS_MAX);
        let map = Map::new(map::bytes(cpus)).map_err(refused("could not create a map in the kernel"))?;
        let loaded = |instructions: &[_]| {
            Program::new(instructions).map_err(refused("could not load a BPF program into the kernel"))
        };
        let interrupt = loaded(&programs::interrupt(map.as_fd(), cpus))?;
        let idle = loaded(&programs::idle(map.as_fd(), cpus))?;
        let is_online = |cpu| interrupt.run_on(cpu).map_err(refused("could not run a BPF program on another CPU"));
        // The daemon never waits for a CPU that is missing from the kernel's list. So if such a CPU exists, the daemon
        // must not start.
        for cpu in cpus..CPUS_MAX {
            if is_online(cpu)? {
                return Err(file(io::Error::other(format!("it lists {cpus} CPUs, but CPU {cpu} exists"))));
            }
        }
        // Clients get a descriptor of the map, and must not be able to write to it.
        map.freeze().map_err(refused("could not make the data of a BPF program read-only"))?;
        let memory = Memory {
            map: Mapping::new(map.as_fd(), map::bytes(cpus))
                .map_err(refused("could not map the data of a BPF program"))?,
            map_handle: map,
            page: SharedMemory::new(c"barrierd", page::bytes(cpus))
                .map_err(refused("could not create sealed memory"))?,
            cpus,
            idleness: idle.attach(IDLENESS).map_err(refused("could not attach to the events of idle CPUs"))?,
            coming: interrupt
                .attach(COMING)
                .map_err(refused("could not attach to the events of CPUs coming online"))?,
        };
        // From here on, the kernel records CPUs that come online. The check of the CPUs must come after this: a CPU
        // that came online between an earlier check and the recording would count as absent.
        for cpu in 0..cpus {
            if !is_online(cpu)? {
                memory.page.word(page::offline(cpu)).store(ABSENT, Ordering::Relaxed);
            }
        }
        memory.page.word(page::MAGIC).store(MAGIC, Ordering::Relaxed);
        memory.page.half(page::VERSION).store(VERSION, Ordering::Relaxed);
        memory.page.half(page::CPUS).store(cpus, Ordering::Relaxed);
        memory.page.word(page::PERIOD_NS).store(period.as_nanos() as u64, Ordering::Release);
        let timer = interrupt.attach(TIMER).map_err(refused("could not attach to the interrupts of the timer"))?;
        let events = [Some(timer), interrupt.attach(RESCHEDULE).ok()];
        let (connections, place) = (Connections::default(), None);
        Ok(Self { memory, interrupt, _events: events, period, connections, place })
    }

    /// Accepts clients at `path`. Creates missing folders.
    ///
    /// # Errors
    /// [`Error::IsRunning`] if another daemon has the path, [`Error::LongPath`], [`Error::File`].
    pub fn listen(&mut self, path: &Path) -> Result<(), Error> {
        Error::unless_short(path)?;
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| Error::File { path, source }
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder {
            fs::create_dir_all(folder).map_err(failed(folder))?;
        }
        let lock_path = path.with_added_extension("lock");
        if !lock_path.exists() {
            // This check comes before the lock file is created. So a refused start leaves no lock file next to the file
            // of another program.
            refuse_others(path)?;
        }
        let lock = socket::lock_file(&lock_path).map_err(failed(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::IsRunning { path: path.into() }),
            Err(TryLockError::Error(source)) => return Err(Error::File { path: lock_path, source }),
        }
        refuse_others(path)?;
        // The socket gets its final name only when it is complete, because clients can connect as soon as that name
        // exists.
        let new = path.with_added_extension("new");
        let _ = fs::remove_file(&new);
        let listener = UnixListener::bind(&new).map_err(failed(&new))?;
        socket::open_to_all(&new).map_err(failed(&new))?;
        self.connections.listen(listener).map_err(failed(&new))?;
        fs::rename(&new, path).map_err(failed(path))?;
        self.place = Some(ListeningPath { path: path.into(), _lock: lock });
        Ok(())
    }

    /// Creates a client in this process. It gets replies once the daemon serves.
    ///
    /// # Errors
    /// Fails like [`Client::open`], and with [`Error::File`].
    pub fn connect(&mut self) -> Result<Client, Error> {
        let failed = |source| Error::File { path: "(here)".into(), source };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        self.connections.greet(ours, &self.memory.descriptors()).map_err(failed)?;
        Client::over(theirs, Path::new("(here)"))
    }

    /// Gives the calling thread, which must be the one that serves, priority over threads without real-time scheduling.
    /// The daemon also works without priority, but a heartbeat that waits for a busy CPU then comes late.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_NICE`, or in a control group that does not allow real-time scheduling.
    pub fn run_in_real_time(&self) -> io::Result<()> {
        privileges::run_in_real_time()
    }

    /// If the process runs as root, changes its user to `nobody`. The process keeps only the capability `CAP_BPF`,
    /// which kernels before 5.19 require for running a BPF program. Call this before the process has other threads.
    ///
    /// Afterwards, if the folder of the socket belongs to root, the daemon cannot remove its socket when it ends.
    /// Clients then get the error that no daemon listens, and the next daemon replaces the socket.
    ///
    /// # Errors
    /// The kernel's error; the process should then end.
    pub fn drop_privileges(&self) -> io::Result<()> {
        if privileges::effective_user() != 0 {
            return Ok(());
        }
        privileges::drop_all_but(&[Capability::Bpf])
    }

    /// Serves until data can be read from `stop`, or its other end is closed.
    ///
    /// # Errors
    /// The kernel's error, if it refuses a call that it accepted before.
    pub fn serve(&mut self, stop: BorrowedFd<'_>) -> io::Result<()> {
        loop {
            let event = self.connections.wait(stop, &self.memory.descriptors())?;
            let start = Instant::now();
            match event {
                Event::Stop => return Ok(()),
                Event::Requested => self.beat()?,
                Event::Nothing => {}
            }
            // The daemon also rests if there was no heartbeat, so that no client can keep it busy.
            let rest = self.period.max(REST * start.elapsed());
            if !self.connections.rest(stop, rest.saturating_sub(start.elapsed()))? {
                return Ok(());
            }
        }
    }

    /// Causes a heartbeat: interrupts the CPUs. When this returns, each timestamp that was taken before has passed:
    /// since then, each CPU has been interrupted, idle or offline.
    fn beat(&mut self) -> io::Result<()> {
        let Memory { map, page, cpus, .. } = &self.memory;
        let before = map.load(map::VIRTUAL_TIME);
        // No other thread runs on this CPU now, so running the program here replaces an interrupt. It also advances the
        // virtual time.
        self.interrupt.run_here()?;
        let now = map.load(map::VIRTUAL_TIME);
        for cpu in 0..*cpus {
            // `run_on` returns `false` if the kernel reports that the CPU is offline. Files about CPUs are not used,
            // because a container may have replaced them.
            if !has_passed(&self.memory, cpu, before) && !self.interrupt.run_on(cpu)? {
                page.word(page::offline(cpu)).store(now, Ordering::Release);
            }
        }
        page.word(page::BEAT_NS).store(clock::now_ns(), Ordering::Relaxed);
        page.word(page::CPU_TIME_NS).store(clock::thread_cpu_ns(), Ordering::Relaxed);
        page.half(page::BEATS).fetch_add(1, Ordering::SeqCst);
        futex::wake_all(page.half(page::BEATS), Scope::Machine);
        Ok(())
    }
}

impl Drop for ListeningPath {
    fn drop(&mut self) {
        // If the process may not remove the socket, it stays: see `drop_privileges`.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns an error unless a daemon may use the path: nothing is there, or only the socket of a daemon that has ended.
fn refuse_others(path: &Path) -> Result<(), Error> {
    let why = if path.exists() && !is_socket(path) {
        io::Error::new(io::ErrorKind::AlreadyExists, "the file at this path is not a socket")
    } else if UnixStream::connect(path).is_ok() {
        io::Error::new(io::ErrorKind::AddrInUse, "another program listens at this path")
    } else {
        return Ok(());
    };
    Err(Error::File { path: path.into(), source: why })
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// Returns an error if users without privilege may load BPF programs. Each client receives the descriptor of the
/// daemon's BPF map. The map is frozen, so system calls cannot change it, but a BPF program still can.
fn refuse_unprivileged() -> Result<(), Error> {
    match fs::read_to_string(UNPRIVILEGED) {
        Ok(text) if text.trim() == "0" => Err(Error::UnprivilegedBpf),
        Ok(_) => Ok(()),
        Err(source) => Err(Error::Kernel { what: "no bpf(2)", source }),
    }
}

fn refused(what: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| match source.kind() {
        io::ErrorKind::PermissionDenied => Error::Forbidden { what, source },
        _ => Error::Kernel { what, source },
    }
}
