//! A program that runs for as long as it is needed.

use std::fs::{self, DirBuilder, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, io, process};

use ascertain_sys::testing::left_out;
use ascertain_sys::tether::tether;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

use crate::Error;

/// How often it is looked whether something has happened.
const EACH: Duration = Duration::from_millis(5);

/// How long a server may take to end before it is killed.
const MERCY: Duration = Duration::from_secs(5);

/// How many lines of what a program said are shown.
const LINES: usize = 12;

/// What is started: a server in the foreground, that does not leave its group of processes.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program's name. It is looked for in `PATH`, and where only root's programs are.
    pub name: &'static str,
    /// What installs it: `apt-get install nginx`.
    pub install: &'static str,
    /// Its arguments, in which `{folder}` is the folder that its files are in.
    pub arguments: Vec<String>,
    /// Its files by their paths within the folder, with `{folder}` in them too. A path with a `/` at its end is a
    /// folder.
    pub files: Vec<(String, String)>,
    /// Where it listens: where nobody else does, who would be taken for it.
    pub address: SocketAddr,
    /// Whether it is ready, asked over a connection to it: some take connections before they have an answer.
    pub is_ready: fn(TcpStream) -> bool,
    /// How long it may take to be ready.
    pub limit: Duration,
}

/// A server that answers. When dropped it is told to end, and killed if it does not; so it is when the thread that
/// started it ends, and with it this process, however that is.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Its group of processes, until it is waited for.
    group: Option<Pid>,
    address: SocketAddr,
    folder: Folder,
}

/// Starts a server at a port of 127.0.0.1 that nobody listens at, from 10,000 on: below those that the kernel gives
/// away, for another could be given one between its having been found free and the server's having it.
///
/// # Errors
/// As for [`Program::start`].
pub fn start_anywhere(program: impl Fn(SocketAddr) -> Program) -> Result<Running, Error> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    const TRIES: u32 = 10;
    let mut tries = 0;
    loop {
        tries += 1;
        let port = 10_000 + (process::id() % 1_000) * 20 + NUMBER.fetch_add(1, Ordering::Relaxed) % 2_000;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port as u16));
        let started = match TcpListener::bind(address).map(drop) {
            Ok(()) => program(address).start(),
            Err(error) => Err(Error::Server(error)),
        };
        match started {
            // Its own words for it differ by the case.
            Err(error) if tries < TRIES && error.to_string().to_lowercase().contains("address already in use") => {}
            started => return started,
        }
    }
}

/// The same for a test, which is left out where the program is not installed.
///
/// # Panics
/// When it is and does not start.
pub fn or_left_out(program: fn(SocketAddr) -> Program) -> Option<Running> {
    // A machine with a lot to do takes its time with Node.
    match start_anywhere(|address| Program { limit: Duration::from_secs(300), ..program(address) }) {
        Ok(running) => Some(running),
        Err(error @ Error::NotInstalled { .. }) => {
            left_out(error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

impl Program {
    /// Whether the program is there; nothing is started.
    ///
    /// # Errors
    /// [`Error::NotInstalled`].
    pub fn is_installed(&self) -> Result<(), Error> {
        self.path().map(drop)
    }

    fn path(&self) -> Result<PathBuf, Error> {
        find(self.name, self.install)
    }

    /// Starts it, and waits until it is ready.
    ///
    /// # Errors
    /// [`Error::NotInstalled`]; [`Error::NotUp`] with the end of what it said, where it ends or does not answer in
    /// time; [`Error::Server`] for its files, as the kernel says.
    pub fn start(&self) -> Result<Running, Error> {
        self.start_where(|_| (), || TcpStream::connect(self.address))
    }

    /// Starts it somewhere else, as in another namespace: what makes the command run there, and a connection to it,
    /// are the caller's to give.
    ///
    /// # Errors
    /// As for [`Program::start`].
    pub fn start_where(
        &self,
        place: impl FnOnce(&mut Command),
        mut connect: impl FnMut() -> io::Result<TcpStream>,
    ) -> Result<Running, Error> {
        let program = self.path()?;
        let folder = Folder::new().map_err(Error::Server)?;
        let mut command = self.command(&program, &folder.0).map_err(Error::Server)?;
        place(&mut command);
        tether(&mut command);
        let child = command.spawn().map_err(|error| self.not_up(format!("could not be started: {error}"), &folder))?;
        let group = Some(Pid::from_child(&child));
        let mut running = Running { child, group, address: self.address, folder };
        let start = Instant::now();
        loop {
            // Before it is asked: another server may be there in its place.
            if running.has_ended() {
                let status = running.reap().map_err(Error::Server)?;
                return Err(self.not_up(format!("ended at once ({status})"), &running.folder));
            }
            if connect().is_ok_and(self.is_ready) {
                return Ok(running);
            }
            if start.elapsed() >= self.limit {
                return Err(self.not_up(format!("is not ready within {:?}", self.limit), &running.folder));
            }
            sleep(EACH);
        }
    }

    fn command(&self, program: &Path, folder: &Path) -> io::Result<Command> {
        let in_place = |text: &str| text.replace("{folder}", &folder.to_string_lossy());
        for (path, text) in &self.files {
            if path.ends_with('/') {
                fs::create_dir_all(folder.join(path))?;
            } else {
                fs::write(folder.join(path), in_place(text))?;
            }
        }
        let said = File::create(folder.join(SAID))?;
        let mut command = Command::new(program);
        command.args(self.arguments.iter().map(|argument| in_place(argument)));
        // What it keeps for its user it keeps here.
        command.current_dir(folder).env("HOME", folder).env("XDG_DATA_HOME", folder).env("XDG_CONFIG_HOME", folder);
        command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said);
        // Ctrl-C is for us, who then end it.
        command.process_group(0);
        Ok(command)
    }

    fn not_up(&self, how: String, folder: &Folder) -> Error {
        Error::NotUp { program: self.name, how, says: folder.said() }
    }
}

impl Running {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where its files are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder.0
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it is no longer there. It is not waited for: until then its number, and its group's, are not given to
    /// others.
    fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error means that it was waited for.
        !matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), look), Ok(None))
    }

    /// Kills what is left of it and of its children, and waits for it.
    fn reap(&mut self) -> io::Result<ExitStatus> {
        if let Some(group) = self.group.take() {
            let _ = kill_process_group(group, Signal::KILL);
        }
        self.child.wait()
    }

    /// The end of what it said.
    #[must_use]
    pub fn said(&self) -> String {
        self.folder.said()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(group) = self.group else { return };
        let _ = kill_process(group, Signal::TERM);
        let start = Instant::now();
        while !self.has_ended() && start.elapsed() < MERCY {
            sleep(EACH);
        }
        let _ = self.reap();
    }
}

/// Where a program is: in `PATH`, or where only root's programs are.
///
/// # Errors
/// [`Error::NotInstalled`], which says what would install it.
pub fn find(program: &'static str, install: &'static str) -> Result<PathBuf, Error> {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path)
        .chain(usual)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
        .ok_or(Error::NotInstalled { program, install })
}

/// The file with what a program said.
const SAID: &str = "said";

/// What a folder's name begins with, before the number of its process.
const PREFIX: &str = "ascertain-netlab-";

/// A folder for nobody else, among those for temporary files, and gone when dropped. Where its process is killed, the
/// next one that makes such a folder removes it.
#[derive(Debug)]
pub struct Folder(PathBuf, #[expect(dead_code, reason = "it is locked while it is open")] File);

impl Folder {
    /// An empty one.
    ///
    /// # Errors
    /// As the system says.
    pub fn new() -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        static SWEPT: Once = Once::new();
        let among = env::temp_dir();
        SWEPT.call_once(|| remove_abandoned(&among));
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = among.join(format!("{PREFIX}{}-{number}", process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                // Left over from a process of the same number, that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    let folder = made.and_then(|()| File::open(&path))?;
                    flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
                    return Ok(Self(path, folder));
                }
            }
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn said(&self) -> String {
        let said = fs::read(self.0.join(SAID)).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.trim_end().lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }
}

/// Removes folders of processes that are no more. Those of another namespace have numbers of their own, and their
/// folders are locked.
fn remove_abandoned(among: &Path) {
    for entry in fs::read_dir(among).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        let has_ended = pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists());
        let lock = |folder: File| flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok();
        if has_ended && entry.file_type().is_ok_and(|kind| kind.is_dir()) && File::open(entry.path()).is_ok_and(lock) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_left_behind_by_who_is_no_more_is_removed() {
        let among = tempfile::tempdir().unwrap();
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let make = |name: String| {
            let path = among.path().join(name);
            fs::create_dir_all(path.join("data")).unwrap();
            path
        };
        let [abandoned, locked] = ["0", "1"].map(|number| make(format!("{PREFIX}{}-{number}", child.id())));
        let kept = [make(format!("{PREFIX}{}-0", process::id())), make("other-1-0".into()), make(PREFIX.into())];
        let folder = File::open(&locked).unwrap();
        flock(&folder, FlockOperation::NonBlockingLockExclusive).unwrap();
        remove_abandoned(among.path());
        assert!(!abandoned.exists() && locked.exists() && kept.iter().all(|path| path.exists()));
    }
}
