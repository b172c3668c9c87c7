//! The daemon: one thread, which sleeps until an event, a question or a mount wakes it.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::WatchFlags;
use rustix::fs::{FlockOperation, OFlags};

use super::asker::Askers;
use super::connections::{self, Connection, Received};
use super::hook::{DAEMON, SCAN};
use super::monitor::{self, Fatal, Limits, Monitor};
use super::place::{self, Worktree, file_name};
use super::protocol::{self, Query, Request};
use super::token::{self, Parsed, Token};
use super::{log, mounts, walk};
use crate::Reason;

/// Time after the start of the daemon during which questions wait until it has read all folders.
const FIRST_WALK: Duration = Duration::from_millis(100);
/// Time in which events collect in the queue of the kernel before the daemon reads them. A question reads them at once.
const COLLECT: Duration = Duration::from_millis(10);
/// Shortest time between two looks at the numbers of names of all tracked files.
const SCAN_PAUSE: Duration = Duration::from_secs(2);
/// Time that a new daemon waits for the lock, because a killed one may not have ended yet.
const LOCK_PATIENCE: Duration = Duration::from_millis(100);
/// Time after a failed attempt to list the tracked files until the next attempt.
const SCAN_RETRY: Duration = Duration::from_secs(10);
/// Number of answers that `status` shows.
const LAST_MAX: usize = 20;

/// Runs a daemon until it is stopped, idle, or not needed any more. Does nothing if one runs already.
pub fn run(root: &Path, git_dir: &Path) -> io::Result<()> {
    let worktree = Worktree { root: root.to_owned(), git_dir: git_dir.to_owned() };
    let folder = monitor::open_root(git_dir)?;
    let Some(mut lock) = lock(&worktree)? else { return Ok(()) };
    // The name that `ps` shows.
    let _ = fs::write("/proc/self/comm", "ascertain-fsmon");
    log::create(folder.as_fd());
    let mut daemon = Daemon::new(&worktree, &folder);
    let ended = match &mut daemon {
        Ok(daemon) => daemon.serve(),
        Err(Fatal(why)) => Err(Fatal(why.clone())),
    };
    let (Ok(why) | Err(Fatal(why))) = &ended;
    if ended.is_err() {
        // Clients read the reason as soon as the socket is closed.
        let _ = lock.write_all(format!("failed\n{why}\n").as_bytes());
    }
    log::append(folder.as_fd(), &format!("end: {why}"));
    if let Ok(daemon) = daemon {
        daemon.remove_socket();
    }
    Ok(())
}

/// Takes the lock of the worktree, and empties the lock file. Returns `None` if another daemon has the lock.
fn lock(worktree: &Worktree) -> io::Result<Option<File>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let path = worktree.file("lock");
    let open = || {
        File::options().read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags).open(&path)
    };
    let file = open()?;
    let deadline = Instant::now() + LOCK_PATIENCE;
    while rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // Another file may have replaced this one in the meantime.
    let is_same = place::identity(&file.metadata()?) == place::identity(&fs::symlink_metadata(&path)?);
    if !is_same || !file.metadata()?.is_file() {
        return Ok(None);
    }
    file.set_len(0)?;
    Ok(Some(file))
}

/// An answer that was given.
struct Given {
    at: Instant,
    paths: u64,
    everything: Option<Reason>,
    command: String,
}

/// A process that lists the tracked files.
struct Scan {
    child: Child,
    output: ChildStdout,
    list: Vec<u8>,
    start: Instant,
    /// The number of walks when the process started. After another walk, events may be lost that the list lacks.
    walks: u64,
    /// The number of the last change when the process started.
    sequence: u64,
}

struct Daemon {
    root: PathBuf,
    git_dir: OwnedFd,
    number: u64,
    instance: u64,
    monitor: Monitor,
    listener: UnixListener,
    socket: (u64, u64),
    connections: Vec<Connection>,
    mounts: Option<File>,
    namespace: Vec<u8>,
    scan: Option<Scan>,
    next_scan: Instant,
    /// Earliest time at which listing the tracked files is retried, if the last attempt failed.
    retry_scan: Instant,
    scanned_index: Option<(u64, i64, u64)>,
    start: Instant,
    last_question: Instant,
    collect_until: Option<Instant>,
    given: VecDeque<Given>,
    askers: Askers,
    answers: u64,
    by_reason: BTreeMap<Reason, u64>,
    is_logged_ready: bool,
    stop: Option<String>,
}

impl Daemon {
    fn new(worktree: &Worktree, git_dir: &OwnedFd) -> Result<Daemon, Fatal> {
        let fatal = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| Fatal(format!("{what}: {error}"))
        };
        let limits = limits(&env::var("ASCERTAIN_FSMONITOR_LIMITS").unwrap_or_default());
        let kind = |path: &Path| mounts::kind_of(&mounts::mounts(), path).filter(|kind| mounts::is_remote(kind));
        if let Some(kind) = kind(&worktree.root).or_else(|| kind(&worktree.git_dir)) {
            return Err(Fatal(format!("the worktree is on a file system of type {kind}, which reports no changes")));
        }
        let root = monitor::open_root(&worktree.root).map_err(fatal("could not open the root folder"))?;
        // It reports the changes of mounts after it was opened, so it is opened before the monitor reads the mounts.
        let mounts = File::open("/proc/self/mountinfo").ok();
        let mut monitor = Monitor::new(root, limits)?;
        monitor.files.limit = limits.files.min(monitor::watch_limit() as usize / 20);
        let git_dir = git_dir.try_clone().map_err(fatal("could not open the git folder"))?;
        let there = fs::metadata(&worktree.git_dir).map_err(fatal("could not open the git folder"))?;
        // A path of a socket may have 107 bytes, so it is relative.
        env::set_current_dir(&worktree.git_dir).map_err(fatal("could not enter the git folder"))?;
        let name = file_name("sock");
        let _ = fs::remove_file(&name);
        let listener = UnixListener::bind(&name).map_err(fatal("could not create a socket in the git folder"))?;
        let socket = fs::symlink_metadata(&name).map_err(fatal("could not find the socket"))?;
        let file =
            rustix::fs::open(&name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, rustix::fs::Mode::empty());
        env::set_current_dir("/").map_err(fatal("could not leave the git folder"))?;
        listener.set_nonblocking(true).map_err(fatal("could not use the socket"))?;
        if let Ok(file) = file {
            let events = WatchFlags::ATTRIB | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
            monitor.socket_watch = walk::add_watch(monitor.inotify.as_fd(), file.as_fd(), events)
                .map_err(fatal("could not watch the socket: the limit of watches may be reached"))?;
        }
        let now = Instant::now();
        Ok(Daemon {
            root: worktree.root.clone(),
            git_dir,
            number: place::number(&there),
            instance: RandomState::new().build_hasher().finish(),
            monitor,
            listener,
            socket: place::identity(&socket),
            connections: Vec::new(),
            mounts,
            namespace: protocol::namespace(),
            scan: None,
            next_scan: now,
            retry_scan: now,
            scanned_index: None,
            start: now,
            last_question: now,
            collect_until: None,
            given: VecDeque::new(),
            askers: Askers::default(),
            answers: 0,
            by_reason: BTreeMap::new(),
            is_logged_ready: false,
            stop: None,
        })
    }

    /// Serves until the daemon is not needed any more. Returns the reason.
    fn serve(&mut self) -> Result<String, Fatal> {
        self.log(&format!("start: process {}, {}", std::process::id(), self.root.display()));
        loop {
            self.wait()?;
            if self.collect_until.is_none_or(|until| Instant::now() >= until) {
                self.read_events()?;
            }
            if self.monitor.is_walking() {
                self.monitor.step(64)?;
            }
            self.note_ready();
            self.read_scan();
            if !self.monitor.files.is_known && self.scan.is_none() && Instant::now() >= self.retry_scan {
                self.start_scan();
            }
            connections::accept(&self.listener, &mut self.connections);
            self.serve_clients()?;
            if let Some(why) = self.stop.take().or_else(|| self.reason_to_end()) {
                return Ok(why);
            }
        }
    }

    fn read_events(&mut self) -> Result<(), Fatal> {
        let count = self.monitor.drain()?;
        self.collect_until = (count > 0).then(|| Instant::now() + COLLECT);
        Ok(())
    }

    /// Sleeps until there is something to do.
    fn wait(&mut self) -> Result<(), Fatal> {
        let now = Instant::now();
        let mut deadline = self.last_question + self.monitor.limits.idle;
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        match self.collect_until {
            Some(until) => deadline = deadline.min(until),
            None => fds.push(PollFd::new(&*self.monitor.inotify, PollFlags::IN)),
        }
        if let Some(scan) = &self.scan {
            fds.push(PollFd::new(&scan.output, PollFlags::IN));
        }
        for client in &self.connections {
            let events = if client.is_sending() { PollFlags::OUT } else { PollFlags::IN };
            fds.push(PollFd::new(&client.stream, events));
            let patience = if client.waiting.is_some() { self.start + FIRST_WALK } else { client.deadline() };
            deadline = deadline.min(patience);
        }
        let mounts_at = fds.len();
        fds.extend(self.mounts.iter().map(|mounts| PollFd::new(mounts, PollFlags::PRI)));
        if !self.monitor.files.is_known && self.scan.is_none() {
            deadline = deadline.min(self.retry_scan);
        }
        let left = if self.monitor.is_walking() { Duration::ZERO } else { deadline.saturating_duration_since(now) };
        // Whole milliseconds, rounded up: a shorter sleep would end before the deadline, and begin anew.
        let left = if left.is_zero() { left } else { left + Duration::from_millis(1) };
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) as _ };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Fatal(format!("could not wait for events: {error}"))),
        }
        let have_mounts_changed = fds.get(mounts_at).is_some_and(|fd| fd.revents().intersects(PollFlags::PRI));
        if have_mounts_changed {
            self.read_mounts();
        }
        Ok(())
    }

    /// Reads the mounts after the kernel has reported a change.
    fn read_mounts(&mut self) {
        // The kernel reports each change once, when the file is read again.
        self.mounts = File::open("/proc/self/mountinfo").ok();
        self.monitor.check_mounts();
    }

    /// Reads the mounts if they have changed since the daemon began to wait.
    fn check_mounts(&mut self) {
        let Some(mounts) = &self.mounts else { return };
        let mut fds = [PollFd::new(mounts, PollFlags::PRI)];
        let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        if fds[0].revents().intersects(PollFlags::PRI) {
            self.read_mounts();
        }
    }

    fn serve_clients(&mut self) -> Result<(), Fatal> {
        let now = Instant::now();
        let mut kept = Vec::new();
        for mut client in std::mem::take(&mut self.connections) {
            let mut is_kept = !client.is_late(now);
            if let Some(query) = client.waiting.take_if(|_| !self.is_waiting_useful()) {
                client.answer(&self.answer(&query)?);
            } else if !client.is_sending() && client.waiting.is_none() {
                match client.receive() {
                    Received::Nothing => {}
                    Received::Closed => is_kept = false,
                    Received::Unknown => {
                        is_kept = false;
                        self.stop = Some("a client sent a request that this version does not know; the client may have another version".into());
                    }
                    Received::Request(request) => self.serve_request(request, &mut client)?,
                }
            }
            if client.is_sending() {
                is_kept &= client.send();
            }
            if is_kept {
                kept.push(client);
            }
        }
        self.connections = kept;
        Ok(())
    }

    fn is_waiting_useful(&self) -> bool {
        !(self.monitor.is_ready() && self.monitor.files.is_known) && self.start.elapsed() < FIRST_WALK
    }

    fn serve_request(&mut self, request: Request, client: &mut Connection) -> Result<(), Fatal> {
        match request {
            Request::Stop => {
                self.stop = Some("stopped by request".into());
                self.remove_socket();
                client.answer(b"");
            }
            Request::Status => client.answer(self.status().as_bytes()),
            Request::Query(query) if self.is_waiting_useful() => client.waiting = Some(query),
            Request::Query(query) => client.answer(&self.answer(&query)?),
        }
        Ok(())
    }

    /// Returns the answer to a question: a token and a NUL byte, then the paths, each followed by a NUL byte.
    fn answer(&mut self, query: &Query) -> Result<Vec<u8>, Fatal> {
        self.last_question = Instant::now();
        let asker = self.askers.look_up(query.asker);
        let mut changes = self.changes(query, asker.is_misled)?;
        if let Ok(list) = &mut changes
            && asker.may_edit_modules
        {
            list.add(b".gitmodules", b"");
        }
        let sequence = self.monitor.tree.sequence();
        let (worktree, daemon, is_after_everything) = (self.number, self.instance, changes.is_err());
        let token = Token { worktree, daemon, sequence, is_after_everything };
        let (answer, paths, everything) = match changes {
            Ok(list) => ([token.to_string().as_bytes(), b"\0", &list.paths].concat(), list.count, None),
            Err((reason, is_valid)) => {
                let token = if is_valid { token.to_string() } else { token::NONE.into() };
                ([token.as_bytes(), b"\0/\0"].concat(), 1, Some(reason))
            }
        };
        self.answers += 1;
        if let Some(reason) = everything {
            *self.by_reason.entry(reason).or_default() += 1;
        }
        self.given.truncate(LAST_MAX - 1);
        self.given.push_front(Given { at: self.last_question, paths, everything, command: asker.line });
        if self.is_scan_due() {
            self.start_scan();
        }
        Ok(answer)
    }

    /// Returns the changes. If they cannot be listed, returns the reason, and whether the next token is valid
    /// nevertheless.
    fn changes(&mut self, query: &Query, is_misled: bool) -> Result<Result<super::tree::List, (Reason, bool)>, Fatal> {
        if query.folder != self.monitor.root_identity {
            return Ok(Err((Reason::OtherWorktree, false)));
        }
        if query.namespace != self.namespace || query.namespace.is_empty() {
            return Ok(Err((Reason::OtherNamespace, false)));
        }
        let token = match token::parse(&query.token) {
            Parsed::Token(token) if token.worktree != self.number => return Ok(Err((Reason::OtherWorktree, false))),
            Parsed::Token(token) => Ok(token),
            Parsed::None => Err(Reason::NoToken),
            Parsed::Other => Err(Reason::BadToken),
        };
        // Even if the answer is `/`, the next token must not be older than the changes that git is about to see.
        self.check_mounts();
        let is_complete = self.monitor.catch_up()?;
        let list = token.and_then(|token| match token {
            _ if token.daemon != self.instance => Err(Reason::EarlierDaemon),
            _ if is_misled => Err(Reason::FaultyGit),
            _ if !self.monitor.is_ready() => Err(Reason::Walking),
            _ if !is_complete => Err(Reason::Busy),
            token => self.monitor.changes(token),
        });
        Ok(list.map_err(|reason| (reason, true)))
    }

    fn note_ready(&mut self) {
        if self.monitor.is_ready() != self.is_logged_ready {
            self.is_logged_ready = self.monitor.is_ready();
            let text = if self.is_logged_ready {
                format!("ready: {} folders in {} µs", self.monitor.folder_count(), self.monitor.walk_us)
            } else {
                "reading all folders again: events were lost, or mounts or permissions changed".into()
            };
            self.log(&text);
        }
    }

    fn log(&self, text: &str) {
        log::append(self.git_dir.as_fd(), text);
    }

    fn reason_to_end(&mut self) -> Option<String> {
        if self.monitor.is_gone {
            return Some("the worktree is gone".into());
        }
        if std::mem::take(&mut self.monitor.has_socket_changed) && !self.has_socket() {
            return Some("the socket was removed or replaced".into());
        }
        let is_idle = self.connections.is_empty() && self.last_question.elapsed() >= self.monitor.limits.idle;
        is_idle.then(|| "no program has sent a query for a long time".into())
    }

    fn has_socket(&self) -> bool {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.git_dir, file_name("sock"), flags, rustix::fs::Mode::empty());
        file.is_ok_and(|file| walk::identity(file).is_ok_and(|identity| identity == self.socket))
    }

    /// Removes the socket, unless it belongs to another daemon by now.
    fn remove_socket(&self) {
        if self.has_socket() {
            let _ = rustix::fs::unlinkat(&self.git_dir, file_name("sock"), rustix::fs::AtFlags::empty());
        }
    }

    /// Returns the inode, the time of the last change in seconds, and the size in bytes, which show whether git has
    /// written the index since. The inode alone is not enough, because the kernel may reuse it for the new file.
    fn index(&self) -> Option<(u64, i64, u64)> {
        let there = rustix::fs::statat(&self.git_dir, c"index", rustix::fs::AtFlags::empty()).ok()?;
        Some((there.st_ino as u64, there.st_mtime as i64, there.st_size as u64))
    }

    fn is_scan_due(&self) -> bool {
        let files = &self.monitor.files;
        // Files that are in every answer may be untracked. The next scan finds out.
        let is_needed = !files.are_all_watched || files.always_count() > 0 || self.index() != self.scanned_index;
        self.scan.is_none() && is_needed && Instant::now() >= self.next_scan
    }

    /// Starts a process that lists the tracked files. Its memory is not ours.
    fn start_scan(&mut self) {
        self.scanned_index = self.index();
        let root = self.monitor.root_path().unwrap_or_else(|_| self.root.clone());
        let git_dir = walk::path_of(&self.git_dir);
        let mut command = Command::new("/proc/self/exe");
        command.arg(SCAN).arg(root).arg(git_dir.unwrap_or_default()).arg(self.monitor.files.limit.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let start = Instant::now();
        self.next_scan = start + SCAN_PAUSE;
        self.retry_scan = start + SCAN_RETRY;
        let Ok(mut child) = command.spawn() else { return self.log("could not start a process to list files") };
        let Some(output) = child.stdout.take() else { return };
        let _ = rustix::io::ioctl_fionbio(&output, true);
        self.scan = Some(Scan {
            child,
            output,
            list: Vec::new(),
            start,
            walks: self.monitor.walks,
            sequence: self.monitor.tree.sequence(),
        });
    }

    fn read_scan(&mut self) {
        let Some(scan) = &mut self.scan else { return };
        let mut buffer = [0; 16 << 10];
        loop {
            match scan.output.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => scan.list.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
        let Some(mut scan) = self.scan.take() else { return };
        let pauses = self.monitor.limits.scan_pauses;
        self.next_scan = Instant::now() + SCAN_PAUSE.max(scan.start.elapsed() * pauses);
        let has_succeeded = scan.child.wait().is_ok_and(|status| status.success());
        match scan.list.split_first() {
            Some((kind, list)) if has_succeeded => {
                self.retry_scan = Instant::now();
                if scan.walks == self.monitor.walks {
                    self.monitor.set_tracked(list, *kind == b'a', scan.sequence);
                }
            }
            _ => {
                self.retry_scan = Instant::now() + SCAN_RETRY;
                self.log("could not list the tracked files: every answer is `/` until that works");
            }
        }
    }

    fn status(&self) -> String {
        let monitor = &self.monitor;
        let mut text = format!(
            "ready={}\nwalk_us={}\nwalks={}\nage_s={}\npending={}\nfolders={}\nfiles={}\nlinked={}\nalways={}\n\
             all_watched={}\nnested={}\nanswers={}\n",
            monitor.is_ready() && monitor.files.is_known,
            monitor.walk_us,
            monitor.walks,
            self.start.elapsed().as_secs(),
            monitor.tree.pending(),
            monitor.folder_count(),
            monitor.files.count(),
            monitor.files.linked_count(),
            monitor.files.always_count(),
            monitor.files.are_all_watched,
            monitor.nested_count(),
            self.answers,
        );
        for (reason, count) in &self.by_reason {
            text += &format!("everything={} {count}\n", reason.code());
        }
        for given in self.given.iter().rev() {
            let code = given.everything.map_or("-", Reason::code);
            let age_ms = given.at.elapsed().as_millis();
            text += &format!("answer={age_ms} {} {code} {}\n", given.paths, given.command);
        }
        text
    }
}

/// Reads limits for tests, such as `journal=100,events=50`. Unknown words are ignored.
fn limits(text: &str) -> Limits {
    let mut limits = Limits::default();
    for (name, value) in text.split(',').filter_map(|word| word.split_once('=')) {
        let Ok(value) = value.parse::<usize>() else { continue };
        match name {
            "journal" => limits.journal = value,
            "events" => limits.events = value,
            "folders" => limits.folders = value,
            "files" => limits.files = value,
            "scan_pauses" => limits.scan_pauses = value as u32,
            "idle_ms" => limits.idle = Duration::from_millis(value as u64),
            _ => {}
        }
    }
    limits
}

/// Starts a daemon. Returns without waiting for it.
pub fn start(hook: &Path, worktree: &Worktree) -> io::Result<()> {
    let mut command = Command::new(hook);
    command.arg(DAEMON).arg(&worktree.root).arg(&worktree.git_dir);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).env_clear().current_dir("/");
    let kept = ["PATH", "HOME", "ASCERTAIN_FSMONITOR_LIMITS"].map(|name| (name, env::var_os(name)));
    command.envs(kept.into_iter().filter_map(|(name, value)| Some((name, value?))));
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("the hook ended with {status}"))) }
}

/// Starts the daemon without the files that this process inherited from its caller, because the caller may wait until
/// every copy of its pipes and locks is closed. This process, the caller's child, ends at once. The daemon is not a
/// child of the caller.
pub fn detach(arguments: &[OsString]) -> io::Result<()> {
    let _ = rustix::process::setsid();
    ascertain_sys::descriptors::close_on_exec()?;
    Command::new("/proc/self/exe").arg0(crate::HOOK).arg(crate::FOREGROUND).args(arguments).spawn().map(drop)
}

/// Returns the reason why the last daemon could not run, and the time since then; `None` if there was no failure, or if
/// the clock has jumped.
pub fn failure(worktree: &Worktree) -> Option<(String, Duration)> {
    let path = worktree.file("lock");
    let text = place::read_small(&path)?;
    let why = text.strip_prefix(b"failed\n")?;
    let age = fs::metadata(&path).ok()?.modified().ok()?.elapsed().ok()?;
    Some((String::from_utf8_lossy(why).trim().to_owned(), age))
}

/// Lists files for the daemon. If there are at most `limit` tracked files, the list is `a`, their paths, an empty path,
/// and untracked files, as long as these are fewer than half of `limit`. Otherwise the list is `l` and the tracked
/// files with several names.
pub fn scan(root: &Path, git_dir: &Path, limit: usize) -> io::Result<()> {
    let folder = monitor::open_root(root)?;
    let mut names = walk::Names::new(folder.as_fd());
    let tracked = list(root, git_dir, "--cached", usize::MAX)?;
    let are_few = tracked.len() <= limit;
    let mut text = vec![if are_few { b'a' } else { b'l' }];
    let mut add = |path: &[u8]| text.extend_from_slice(&[path, b"\0"].concat());
    tracked.iter().filter(|path| names.of(path).is_some_and(|names| are_few || names > 1)).for_each(|path| add(path));
    if are_few {
        add(b"");
        let others = list(root, git_dir, "--others", limit / 2)?;
        others.iter().filter(|path| names.of(path).is_some()).for_each(|path| add(path));
    }
    io::stdout().write_all(&text)
}

/// Returns the first paths that `git ls-files` lists.
fn list(root: &Path, git_dir: &Path, kind: &str, most: usize) -> io::Result<Vec<Vec<u8>>> {
    let mut command = Command::new("git");
    command.args(["-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "ls-files", "-z", kind]);
    command.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", root).env("GIT_OPTIONAL_LOCKS", "0").current_dir(root);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let output = io::BufReader::new(child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?);
    let paths = output.split(0).take(most).collect::<io::Result<Vec<_>>>()?;
    let is_whole = paths.len() < most;
    // Git may still be writing paths that are not needed.
    if !is_whole {
        let _ = child.kill();
    }
    let status = child.wait()?;
    if status.success() || !is_whole { Ok(paths) } else { Err(io::Error::other("git ls-files failed")) }
}
