//! Starts a server program, and ends it when it is not needed any more.

use std::fs::{self, File};
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, io};

use ascertain_sys::scratch::ScratchFolder;
use ascertain_sys::testing::left_out;
use ascertain_sys::tether::tether;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

use crate::Error;

/// Time between two checks of whether a program is ready or has ended.
const EACH: Duration = Duration::from_millis(5);

/// Time that a program has to end after SIGTERM. After this time it is killed.
const MERCY: Duration = Duration::from_secs(5);

/// Number of lines at the end of a program's output that [`RunningProgram::output`] returns.
const LINES: usize = 12;

/// A server program that can be started. The program must stay in the foreground, and in its process group.
#[derive(Clone, Debug)]
pub struct Program {
    /// Name of the program. It is searched for in `PATH`, and in `/usr/sbin` and similar folders.
    pub name: &'static str,
    /// Command that installs the program, such as `apt-get install nginx`.
    pub install: &'static str,
    /// Arguments of the program. `{folder}` stands for the running program's temporary folder.
    pub arguments: Vec<String>,
    /// Files of the program, each as its path within the program's folder and its content. `{folder}` in the content
    /// stands for that folder, too. A path that ends with `/` creates a folder.
    pub files: Vec<(String, String)>,
    /// Address on which the program listens. Another server on this address would be mistaken for the program.
    pub address: SocketAddr,
    /// Checks over a connection whether the program is ready. Some programs accept connections before they are ready.
    pub is_ready: fn(TcpStream) -> bool,
    /// Time limit for the program to become ready.
    pub limit: Duration,
}

/// A running server program. Dropping this value stops the program, and kills it if it does not stop. The program also
/// ends when the thread that started it ends, and when this process ends, even if this process is killed.
#[derive(Debug)]
pub struct RunningProgram {
    child: Child,
    /// Process group of the program; `None` after the program has ended and was reaped.
    group: Option<Pid>,
    address: SocketAddr,
    folder: Folder,
}

/// Starts a server on a free port of 127.0.0.1. `program` returns the description of the server for an address. The
/// port is below the range from which the kernel assigns ports, so it normally stays free until the server uses it.
///
/// # Errors
/// Returns the errors of [`Program::start`].
pub fn start_anywhere(program: impl Fn(SocketAddr) -> Program) -> Result<RunningProgram, Error> {
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
            // Each program spells this message differently.
            Err(error) if tries < TRIES && error.to_string().to_lowercase().contains("address already in use") => {}
            started => return started,
        }
    }
}

/// Starts a server for a test. Returns `None` if the program is not installed, so that the caller can skip the test.
///
/// # Panics
/// Panics if the program is installed and does not start.
pub fn or_left_out(program: fn(SocketAddr) -> Program) -> Option<RunningProgram> {
    // Programs that run on Node.js start slowly on a busy machine.
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
    /// Checks that the program is installed, without starting it.
    ///
    /// # Errors
    /// Returns [`Error::NotInstalled`] if the program is not found.
    pub fn is_installed(&self) -> Result<(), Error> {
        find(self.name, self.install).map(drop)
    }

    /// Starts the program, and waits until it is ready.
    ///
    /// # Errors
    /// - [`Error::NotInstalled`] if the program is not found;
    /// - [`Error::Server`] if the program's files cannot be written;
    /// - [`Error::NotUp`] with the last lines of the program's output, if it ends or is not ready in time.
    pub fn start(&self) -> Result<RunningProgram, Error> {
        self.start_where(|_| (), || TcpStream::connect(self.address))
    }

    /// Starts the program in another environment, such as another network namespace. `place` changes the command so
    /// that it runs in that environment, and `connect` opens a connection from there to the program.
    ///
    /// # Errors
    /// Returns the errors of [`Program::start`].
    pub fn start_where(
        &self,
        place: impl FnOnce(&mut Command),
        mut connect: impl FnMut() -> io::Result<TcpStream>,
    ) -> Result<RunningProgram, Error> {
        let program = find(self.name, self.install)?;
        let folder = Folder::new().map_err(Error::Server)?;
        let mut command = self.command(&program, folder.path()).map_err(Error::Server)?;
        place(&mut command);
        tether(&mut command);
        let child = command.spawn().map_err(|error| self.not_up(format!("could not be started: {error}"), &folder))?;
        let group = Some(Pid::from_child(&child));
        let mut running = RunningProgram { child, group, address: self.address, folder };
        let start = Instant::now();
        loop {
            // This check comes before connecting, because another server at the same address would accept the
            // connection.
            if running.has_ended() {
                let status = running.reap().map_err(Error::Server)?;
                return Err(self.not_up(format!("ended at once ({status})"), &running.folder));
            }
            if connect().is_ok_and(self.is_ready) {
                return Ok(running);
            }
            if start.elapsed() >= self.limit {
                return Err(self.not_up(format!("was not ready after {:?}", self.limit), &running.folder));
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
        let output = File::create(folder.join(OUTPUT))?;
        let mut command = Command::new(program);
        command.args(self.arguments.iter().map(|argument| in_place(argument)));
        // Programs that write to the user's home folder thereby write to this folder instead.
        command.current_dir(folder).env("HOME", folder).env("XDG_DATA_HOME", folder).env("XDG_CONFIG_HOME", folder);
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        // The program has its own process group, so Ctrl-C in the terminal does not reach it. Only this process ends
        // the program.
        command.process_group(0);
        Ok(command)
    }

    fn not_up(&self, how: String, folder: &Folder) -> Error {
        let output = match folder.output() {
            output if output.is_empty() => " and printed nothing".to_string(),
            output => format!("; its output:\n{output}"),
        };
        Error::NotUp(format!("`{}` {how}{output}", self.name))
    }
}

impl RunningProgram {
    /// Returns the address on which the program listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the folder with the program's files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Creates a file of `bytes` bytes in the folder `www` of a web server, unless it exists already, and returns its
    /// path in URLs. The file is not sparse, because reading a hole would cost less than reading data.
    ///
    /// # Errors
    /// Returns errors of the system, with the name of the file.
    pub fn make_page(&self, bytes: u64) -> io::Result<String> {
        let file = self.folder.path().join(format!("www/{bytes}"));
        if !file.exists() {
            let fill = |mut made| io::copy(&mut io::repeat(b'x').take(bytes), &mut made);
            let failed = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
            File::create(&file).and_then(fill).map_err(failed)?;
        }
        Ok(format!("/{bytes}"))
    }

    /// Returns the id of the program's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether the process has ended. The process is not reaped here, so that its id and its group's id cannot
    /// be reused.
    fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error means that the process was reaped already.
        !matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), look), Ok(None))
    }

    /// Kills the remaining processes of the program's group, and reaps the program.
    fn reap(&mut self) -> io::Result<ExitStatus> {
        if let Some(group) = self.group.take() {
            let _ = kill_process_group(group, Signal::KILL);
        }
        self.child.wait()
    }

    /// Returns the last lines of the program's output.
    pub fn output(&self) -> String {
        self.folder.output()
    }
}

impl Drop for RunningProgram {
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

/// Finds a program in `PATH`, or in `/usr/sbin` and similar folders, and returns its path.
///
/// # Errors
/// Returns [`Error::NotInstalled`] with `install`, the command that installs the program.
pub fn find(program: &'static str, install: &'static str) -> Result<PathBuf, Error> {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path)
        .chain(usual)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
        .ok_or(Error::NotInstalled { program, install })
}

/// Name of the file for the output of a program, in the program's folder.
const OUTPUT: &str = "output";

/// A private folder for the files of a server. Dropping this value removes the folder. If a process is killed and
/// leaves its folder behind, the next process that creates such a folder removes the old one.
#[derive(Debug)]
pub struct Folder(ScratchFolder);

impl Folder {
    /// Creates an empty folder in the system's folder for temporary files.
    ///
    /// # Errors
    /// Returns errors of the system.
    pub fn new() -> io::Result<Self> {
        ScratchFolder::new("netlab").map(Self)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    fn output(&self) -> String {
        let output = fs::read(self.path().join(OUTPUT)).unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        let lines: Vec<&str> = output.trim_end().lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }
}
