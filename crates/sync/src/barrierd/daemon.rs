//! The daemon: makes the programs, hands their memory out, and makes interrupts when somebody waits.

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
use ascertain_sys::mapping::{Mapping, Shared};
use ascertain_sys::privileges::{self, Capability};
use ascertain_sys::socket;

use super::connections::{Connections, Event};
use super::file::{ABSENT, CPUS_MAX, MAGIC, VERSION, Words, has_passed, map, page};
use super::{Client, Error, PERIOD_MAX, programs};

/// Heartbeats take at most one part of so many of the daemon's time: with very many CPUs they come less often.
const REST: u32 = 4;
/// The timer's interrupt, which each CPU that runs a program has some hundred times a second.
const TIMER: &str = "local_timer_entry";
/// One CPU has a task for another. On machines without it the timer does.
const RESCHEDULE: &str = "reschedule_entry";
/// Into idleness and out of it.
const IDLENESS: &str = "cpu_idle";
/// The steps of coming online, of which a CPU takes the last ones itself before it may run a program.
const COMING: &str = "cpuhp_enter";
const UNPRIVILEGED: &str = "/proc/sys/kernel/unprivileged_bpf_disabled";

/// The daemon, which serves while [`serve`](Self::serve) runs.
///
/// It notes nothing that a program does: when each CPU was last interrupted, and whether it is idle, is all.
#[derive(Debug)]
pub struct Daemon {
    memory: Memory,
    interrupt: Program,
    /// The program runs at these for as long as they are held.
    _events: [Option<OwnedFd>; 2],
    period: Duration,
    connections: Connections,
    place: Option<Place>,
}

/// What clients get.
#[derive(Debug)]
struct Memory {
    map: Mapping,
    map_handle: Map,
    page: Shared,
    cpus: u32,
    /// What must be noted, or a CPU would wrongly be held for idle or absent.
    idleness: OwnedFd,
    coming: OwnedFd,
}

impl Memory {
    fn descriptors(&self) -> [BorrowedFd<'_>; 4] {
        [self.map_handle.as_fd(), self.page.as_fd(), self.idleness.as_fd(), self.coming.as_fd()]
    }
}

/// Where the daemon can be found, and the lock that it is the only one there.
#[derive(Debug)]
struct Place {
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
    /// Loads the programs, which begin to note interrupts. `period` is the time from one heartbeat to the next, at
    /// least; more than [`PERIOD_MAX`] counts as that.
    ///
    /// # Errors
    /// Where the machine can't, or the user may not: each of [`Error::is_unavailable`].
    pub fn new(period: Duration) -> Result<Self, Error> {
        if !cfg!(target_arch = "x86_64") {
            return Err(Error::OtherMachine);
        }
        refuse_unprivileged()?;
        let period = period.min(PERIOD_MAX);
        let file = |source| Error::File { path: "/sys/devices/system/cpu/possible".into(), source };
        let cpus = cpus::possible().map_err(file)?.min(CPUS_MAX);
        let map = Map::new(map::bytes(cpus)).map_err(refused("no map in the kernel"))?;
        let loaded = |instructions: &[_]| Program::new(instructions).map_err(refused("no program in the kernel"));
        let interrupt = loaded(&programs::interrupt(map.as_fd(), cpus))?;
        let idle = loaded(&programs::idle(map.as_fd(), cpus))?;
        let is_online = |cpu| interrupt.run_on(cpu).map_err(refused("no CPU can be interrupted at will"));
        // Whom the list leaves out would never be waited for.
        for cpu in cpus..CPUS_MAX {
            if is_online(cpu)? {
                return Err(file(io::Error::other(format!("{cpus} CPUs, it says; and yet there is CPU {cpu}"))));
            }
        }
        // Clients get a descriptor of the map; none of them shall write.
        map.freeze().map_err(refused("a program's memory can't be frozen"))?;
        let memory = Memory {
            map: Mapping::of(map.as_fd(), map::bytes(cpus)).map_err(refused("a program's memory can't be read"))?,
            map_handle: map,
            page: Shared::new(c"barrierd", page::bytes(cpus)).map_err(refused("no sealed memory"))?,
            cpus,
            idleness: idle.attach(IDLENESS).map_err(refused("no event at idleness"))?,
            coming: interrupt.attach(COMING).map_err(refused("no event at coming online"))?,
        };
        // After that event is noted.
        for cpu in 0..cpus {
            if !is_online(cpu)? {
                memory.page.word(page::offline(cpu)).store(ABSENT, Ordering::Relaxed);
            }
        }
        memory.page.word(page::MAGIC).store(MAGIC, Ordering::Relaxed);
        memory.page.half(page::VERSION).store(VERSION, Ordering::Relaxed);
        memory.page.half(page::CPUS).store(cpus, Ordering::Relaxed);
        memory.page.word(page::PERIOD_NS).store(period.as_nanos() as u64, Ordering::Release);
        let timer = interrupt.attach(TIMER).map_err(refused("no event at the timer's interrupts"))?;
        let events = [Some(timer), interrupt.attach(RESCHEDULE).ok()];
        let (connections, place) = (Connections::default(), None);
        Ok(Self { memory, interrupt, _events: events, period, connections, place })
    }

    /// Lets clients in at `path`. Folders that are missing are made.
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
            // A start that is refused leaves no lock beside what is not a daemon's.
            refuse_others(path)?;
        }
        let lock = socket::lock_file(&lock_path).map_err(failed(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::IsRunning { path: path.into() }),
            Err(TryLockError::Error(source)) => return Err(Error::File { path: lock_path, source }),
        }
        refuse_others(path)?;
        // Complete before it can be found.
        let new = path.with_added_extension("new");
        let _ = fs::remove_file(&new);
        let listener = UnixListener::bind(&new).map_err(failed(&new))?;
        socket::open_to_all(&new).map_err(failed(&new))?;
        self.connections.listen(listener).map_err(failed(&new))?;
        fs::rename(&new, path).map_err(failed(path))?;
        self.place = Some(Place { path: path.into(), _lock: lock });
        Ok(())
    }

    /// A client in this process. It is answered once the daemon serves.
    ///
    /// # Errors
    /// As [`Client::open`]; [`Error::File`].
    pub fn connect(&mut self) -> Result<Client, Error> {
        let failed = |source| Error::File { path: "(here)".into(), source };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        self.connections.greet(ours, &self.memory.descriptors()).map_err(failed)?;
        Client::over(theirs, Path::new("(here)"))
    }

    /// Puts the calling thread, which is to serve, before all that are not in real time: a heartbeat that waits for a
    /// busy CPU comes late. The daemon works without.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_NICE`, or in a control group that gives no real time.
    pub fn run_in_real_time(&self) -> io::Result<()> {
        privileges::run_in_real_time()
    }

    /// Becomes nobody, if it is root, with nothing but `CAP_BPF` left, which kernels before 5.19 want of who runs a
    /// program. To be called before the process has other threads.
    ///
    /// The socket then stays behind at the end where its folder is root's: clients find that nobody listens, and the
    /// next daemon replaces it.
    ///
    /// # Errors
    /// As the kernel says; the process should end then.
    pub fn drop_privileges(&self) -> io::Result<()> {
        if privileges::effective_user() != 0 {
            return Ok(());
        }
        privileges::drop_all_but(&[Capability::Bpf])
    }

    /// Serves until something can be read from `stop`, or its other end is closed.
    ///
    /// # Errors
    /// What the kernel says, when it refuses what it did before.
    pub fn serve(&mut self, stop: BorrowedFd<'_>) -> io::Result<()> {
        loop {
            let event = self.connections.wait(stop, &self.memory.descriptors())?;
            let start = Instant::now();
            match event {
                Event::Stop => return Ok(()),
                Event::Asked => self.beat()?,
                Event::Nothing => {}
            }
            // Also where there was no heartbeat, so that nobody can keep the daemon busy.
            let rest = self.period.max(REST * start.elapsed());
            if !self.connections.rest(stop, rest.saturating_sub(start.elapsed()))? {
                return Ok(());
            }
        }
    }

    /// When it returns, each timestamp has passed that was taken before: each CPU has been interrupted since, or is or
    /// was idle or offline.
    fn beat(&mut self) -> io::Result<()> {
        let Memory { map, page, cpus, .. } = &self.memory;
        let before = map.load(map::VIRTUAL_TIME);
        // This CPU runs the daemon, nobody else. And time goes on.
        self.interrupt.run_here()?;
        let now = map.load(map::VIRTUAL_TIME);
        for cpu in 0..*cpus {
            // Only the kernel's own answer counts: what files say of CPUs may be a container's.
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

impl Drop for Place {
    fn drop(&mut self) {
        // Where it may not, it stays: see `drop_privileges`.
        let _ = fs::remove_file(&self.path);
    }
}

/// What is at the path and no daemon's stays there.
fn refuse_others(path: &Path) -> Result<(), Error> {
    let why = if path.exists() && !is_socket(path) {
        io::Error::new(io::ErrorKind::AlreadyExists, "something that is not a socket is there")
    } else if UnixStream::connect(path).is_ok() {
        io::Error::new(io::ErrorKind::AddrInUse, "another program listens there")
    } else {
        return Ok(());
    };
    Err(Error::File { path: path.into(), source: why })
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// Users who may load programs could write to the map by one: its descriptor is theirs, and freezing it does not bind
/// programs.
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
