//! The state of a watched worktree: it turns events into changes, and questions into answers.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

use super::links::Files;
use super::mounts::{self, Mount};
use super::token::Token;
use super::tree::{ALWAYS, BELOW, ENTRY, INNER, NESTED, NodeId, ROOT, SEEN, Tree};
use super::walk::{self, FOLDER_EVENTS};
use crate::Reason;

/// Limits that tests make smaller.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of changed paths in the journal.
    pub journal: usize,
    /// Number of events in the queue from which it counts as overflowed. The kernel also has its own limit.
    pub events: usize,
    /// Maximum number of folders that changed as a whole in one answer. Git compares each of them with all paths of its
    /// index.
    pub folders: usize,
    /// Maximum number of files that have their own watches.
    pub files: usize,
    /// Minimum time between two scans for tracked files, as a multiple of the duration of the first one.
    pub scan_pauses: u32,
    /// Time without a question after which the daemon ends.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let idle = Duration::from_secs(4 * 60 * 60);
        Limits { journal: 131_072, events: usize::MAX, folders: 200, files: 4096, scan_pauses: 100, idle }
    }
}

/// The monitor can't go on: the text names the reason.
#[derive(Debug)]
pub struct Fatal(pub String);

/// Maximum number of events that are read for one answer. With more events, the answer would come too late.
const EVENTS_MAX: usize = 200_000;
/// Time that a question may spend on reading new folders.
const WALK_BUDGET: Duration = Duration::from_millis(100);

/// A folder that is to be read.
struct Task {
    folder: NodeId,
    /// `true` to record each entry as changed. This is not necessary while all folders are read, because all tokens
    /// become invalid.
    is_recorded: bool,
}

/// A watched worktree.
pub struct Monitor {
    pub root: OwnedFd,
    pub root_identity: (u64, u64),
    pub inotify: Arc<OwnedFd>,
    pub tree: Tree,
    pub limits: Limits,
    pub files: Files,
    pub walks: u64,
    pub walk_us: u64,
    folders: HashMap<i32, NodeId>,
    nested: Vec<NodeId>,
    queue: Vec<Task>,
    /// The time when reading all folders began; `None` when all folders have been read.
    walking_since: Option<Instant>,
    /// The reason why tokens older than the journal are invalid.
    floor_reason: Reason,
    mounts: Vec<Mount>,
    /// `true` if a folder may be at two paths below the root, because of a bind mount. Both have the same watch.
    has_aliases: bool,
    buffer: Vec<MaybeUninit<u8>>,
    /// `true` if the root has lost its `.git`, or if its file system is gone.
    pub is_gone: bool,
    /// The watch of the daemon's socket.
    pub socket_watch: i32,
    /// `true` if the socket may have been removed or replaced.
    pub has_socket_changed: bool,
}

impl Monitor {
    /// Begins to watch. The folders are read by [`Monitor::step`].
    pub fn new(root: OwnedFd, limits: Limits) -> Result<Monitor, Fatal> {
        let root_identity = walk::identity(&root).map_err(|error| Fatal(format!("could not open: {error}")))?;
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(no_instance)?;
        let mut monitor = Monitor {
            root,
            root_identity,
            inotify: Arc::new(inotify),
            tree: Tree::new(limits.journal),
            limits,
            files: Files::default(),
            walks: 0,
            walk_us: 0,
            folders: HashMap::new(),
            nested: Vec::new(),
            queue: Vec::new(),
            walking_since: None,
            floor_reason: Reason::EarlierDaemon,
            mounts: Vec::new(),
            has_aliases: false,
            buffer: vec![MaybeUninit::uninit(); 32 << 10],
            is_gone: false,
            socket_watch: 0,
            has_socket_changed: false,
        };
        (monitor.mounts, monitor.has_aliases) = monitor.mounts_below();
        monitor.read_everything(Reason::Walking);
        Ok(monitor)
    }

    /// Returns whether folders are still to be read.
    pub fn is_walking(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Returns whether all folders have been read at least once, so that answers can be short.
    pub fn is_ready(&self) -> bool {
        self.walking_since.is_none()
    }

    pub fn folder_count(&self) -> usize {
        self.folders.len()
    }

    pub fn nested_count(&self) -> usize {
        self.nested.len()
    }

    /// Returns the current path of the root.
    pub fn root_path(&self) -> io::Result<PathBuf> {
        walk::path_of(&self.root)
    }

    /// Returns the mounts below the root, and whether a folder may be at two paths.
    fn mounts_below(&self) -> (Vec<Mount>, bool) {
        let all = mounts::mounts();
        let read = |root: PathBuf| (mounts::below(&all, &root), mounts::has_aliases(&all, &root));
        self.root_path().map(read).unwrap_or_default()
    }

    /// Looks at the mounts again after the kernel reported a change of any mount.
    pub fn check_mounts(&mut self) {
        let (now, has_aliases) = self.mounts_below();
        self.has_aliases = has_aliases;
        if now != self.mounts {
            self.mounts = now;
            self.read_everything(Reason::Overflow);
        }
    }

    /// Begins to read all folders again, because events were lost. All tokens so far are invalid.
    pub fn read_everything(&mut self, reason: Reason) {
        self.tree.forget();
        self.floor_reason = reason;
        self.queue.clear();
        for node in self.tree.watched().collect::<Vec<_>>() {
            self.tree.clear(node, SEEN);
        }
        self.queue.push(Task { folder: ROOT, is_recorded: false });
        self.walking_since.get_or_insert_with(Instant::now);
        self.walks += 1;
        // Events of files may be lost, too: they are looked at again.
        self.files.is_known = false;
    }

    /// Reads up to `count` folders.
    pub fn step(&mut self, count: usize) -> Result<(), Fatal> {
        for _ in 0..count {
            let Some(task) = self.queue.pop() else { break };
            self.read_folder(&task)?;
        }
        // A current folder below the root would keep its file system busy.
        rustix::process::chdir(c"/").map_err(|error| Fatal(format!("could not enter /: {error}")))?;
        if self.queue.is_empty()
            && let Some(start) = self.walking_since.take()
        {
            self.finish_walk();
            self.walk_us = start.elapsed().as_micros() as u64;
        }
        Ok(())
    }

    /// Removes the folders that no longer exist, after all folders have been read.
    fn finish_walk(&mut self) {
        let unseen = |node: &NodeId| self.tree.flags(*node) & SEEN == 0;
        let gone: Vec<NodeId> = self.folders.values().copied().filter(unseen).collect();
        for node in gone {
            self.unwatch_folder(node);
        }
        // A name that no longer stands for a folder has kept its old number.
        self.nested.retain(|node| self.tree.flags(*node) & (NESTED | SEEN) == NESTED | SEEN);
        self.tree.forget();
    }

    fn read_folder(&mut self, task: &Task) -> Result<(), Fatal> {
        let node = task.folder;
        let mut path = Vec::new();
        self.tree.write_path(node, &mut path);
        let folder = match walk::open_folder(self.root.as_fd(), &path, OFlags::empty()) {
            Ok(folder) => folder,
            Err(error) => return self.unreadable(node, &error),
        };
        let events = if node == ROOT { FOLDER_EVENTS | WatchFlags::DELETE_SELF } else { FOLDER_EVENTS };
        match walk::add_folder_watch(self.inotify.as_fd(), folder.as_fd(), events) {
            Ok(watch) => self.set_folder(node, watch),
            Err(error) if is_limit(&error) => return Err(no_watch(&error)),
            Err(error) => return self.unreadable(node, &error),
        }
        self.tree.set(node, SEEN);
        if self.tree.flags(node) & ALWAYS != 0 && self.tree.flags(node) & NESTED == 0 {
            self.tree.clear(node, ALWAYS);
        }
        let (mut below, mut is_nested) = (Vec::new(), false);
        let (tree, is_recorded) = (&mut self.tree, task.is_recorded);
        let mut files = Vec::new();
        let read = walk::entries(folder, |entry| {
            if entry.name == b".git" {
                is_nested = node != ROOT;
            } else if entry.is_folder {
                let child = tree.child(node, entry.name);
                if is_recorded {
                    tree.change(child, ENTRY | INNER);
                }
                below.push(Task { folder: child, is_recorded });
            } else if is_recorded {
                let child = tree.child(node, entry.name);
                tree.change(child, ENTRY);
                files.push(child);
            }
        });
        self.queue.extend(below);
        for file in files {
            self.check_names(file);
        }
        self.set_nested(node, is_nested);
        match read {
            Ok(()) => Ok(()),
            Err(error) => self.unreadable(node, &error),
        }
    }

    /// Handles a folder that can't be read or watched. If the folder is gone, events report that. If its permissions
    /// forbid reading, every answer names the folder.
    fn unreadable(&mut self, node: NodeId, error: &io::Error) -> Result<(), Fatal> {
        let is_gone = matches!(error.raw_os_error(), Some(code) if [Errno::NOENT, Errno::NOTDIR, Errno::LOOP]
            .iter().any(|errno| errno.raw_os_error() == code));
        if node == ROOT {
            self.is_gone = is_gone;
            return if is_gone { Ok(()) } else { Err(Fatal(format!("could not read the root folder: {error}"))) };
        }
        self.tree.change(node, ENTRY | BELOW | INNER);
        if !is_gone {
            self.tree.set(node, ALWAYS | SEEN);
        }
        Ok(())
    }

    fn set_folder(&mut self, node: NodeId, watch: i32) {
        // A file of this name may have had a watch.
        self.forget_file(node);
        let old = self.tree.watch(node);
        if old != 0 && old != watch {
            self.unwatch_folder(node);
        }
        self.tree.set_watch(node, watch);
        if let Some(other) = self.folders.insert(watch, node).filter(|other| *other != node) {
            // The folder was moved here, and the event is still to come.
            self.tree.set_watch(other, 0);
        }
    }

    fn unwatch_folder(&mut self, node: NodeId) {
        let watch = self.tree.watch(node);
        if watch != 0 && self.folders.get(&watch) == Some(&node) {
            self.folders.remove(&watch);
            let _ = inotify::remove_watch(&*self.inotify, watch);
        }
        self.tree.set_watch(node, 0);
        self.tree.clear(node, SEEN);
    }

    fn set_nested(&mut self, node: NodeId, is_nested: bool) {
        let was_nested = self.tree.flags(node) & NESTED != 0;
        if is_nested && !was_nested {
            self.tree.set(node, NESTED | ALWAYS);
        } else if !is_nested && was_nested {
            self.tree.clear(node, NESTED | ALWAYS);
        }
        if is_nested && !self.nested.contains(&node) {
            self.nested.push(node);
        } else if !is_nested && was_nested {
            self.nested.retain(|other| *other != node);
        }
    }

    /// Forgets everything below a folder that is no longer there.
    fn remove_below(&mut self, folder: NodeId) {
        for node in self.tree.below(folder).into_iter().chain([folder]) {
            if self.folders.get(&self.tree.watch(node)) == Some(&node) {
                self.unwatch_folder(node);
            }
            self.forget_file(node);
        }
        let gone: Vec<NodeId> =
            self.nested.iter().copied().filter(|node| *node == folder || self.tree.is_below(*node, folder)).collect();
        for node in gone {
            self.set_nested(node, false);
        }
        self.files.forget_below(&mut self.tree, folder);
    }

    /// Reads the queue of events to its end. Returns the number of events.
    pub fn drain(&mut self) -> Result<usize, Fatal> {
        let inotify = Arc::clone(&self.inotify);
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut reader = inotify::Reader::new(&*inotify, &mut buffer);
        let (mut count, mut ended) = (0, Ok(()));
        while count < EVENTS_MAX || !reader.is_buffer_empty() {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map_or(&b""[..], std::ffi::CStr::to_bytes);
                    self.handle(event.wd(), event.events(), name);
                    count += 1;
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => {
                    ended = Err(Fatal(format!("could not read events: {error}")));
                    break;
                }
            }
        }
        self.buffer = buffer;
        if count > self.limits.events {
            self.read_everything(Reason::Overflow);
        }
        if self.tree.is_full() && self.queue.is_empty() {
            self.compact();
        }
        ended.map(|()| count)
    }

    fn compact(&mut self) {
        let floor = self.tree.floor();
        let moved = self.tree.compact();
        if self.tree.floor() != floor {
            self.floor_reason = Reason::TooOld;
        }
        let new = |node: NodeId| moved[node as usize];
        let count = self.folders.len();
        self.folders.retain(|_, node| {
            let is_root = *node == ROOT;
            *node = new(*node);
            is_root || *node != ROOT
        });
        debug_assert_eq!(count, self.folders.len(), "each watched folder has a node");
        self.nested.iter_mut().for_each(|node| *node = new(*node));
        self.files.renumber(&new);
    }

    fn handle(&mut self, watch: i32, events: ReadFlags, name: &[u8]) {
        if events.contains(ReadFlags::QUEUE_OVERFLOW) {
            // The events of the socket may be lost, too. If the repository is gone, so is the socket.
            self.has_socket_changed = true;
            // A removed folder has no names, but can still be read as an empty one.
            self.is_gone |= rustix::fs::fstat(&self.root).is_ok_and(|there| there.st_nlink == 0);
            return self.read_everything(Reason::Overflow);
        }
        if watch == self.socket_watch {
            self.has_socket_changed = true;
            return;
        }
        if self.files.has(watch) {
            return self.handle_file(watch, events);
        }
        let Some(&folder) = self.folders.get(&watch) else { return };
        if events.intersects(ReadFlags::IGNORED | ReadFlags::UNMOUNT) {
            self.folders.remove(&watch);
            if self.tree.watch(folder) == watch {
                self.tree.set_watch(folder, 0);
            }
            self.is_gone |= folder == ROOT;
        } else if events.contains(ReadFlags::DELETE_SELF) {
            self.is_gone |= folder == ROOT;
        } else if !name.is_empty() {
            self.handle_entry(folder, events, name);
        } else if folder == ROOT && events.contains(ReadFlags::ATTRIB) {
            self.read_everything(Reason::Overflow);
        }
    }

    fn handle_entry(&mut self, folder: NodeId, events: ReadFlags, name: &[u8]) {
        let comes = events.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
        let goes = events.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM);
        if name == b".git" {
            if folder == ROOT {
                self.is_gone |= goes && rustix::fs::statat(&self.root, c".git", AtFlags::SYMLINK_NOFOLLOW).is_err();
            } else if comes || goes {
                // The folder begins or ceases to be a separate repository.
                self.tree.change(folder, ENTRY | INNER | BELOW);
                self.queue.push(Task { folder, is_recorded: true });
            }
            return;
        }
        let child = self.tree.child(folder, name);
        if !events.contains(ReadFlags::ISDIR) {
            self.tree.change(child, ENTRY);
            if goes {
                self.forget_file(child);
            } else if comes || events.contains(ReadFlags::ATTRIB) {
                self.check_names(child);
            }
        } else if goes {
            // The files of a deleted folder had their own events, unless the folder was not watched yet.
            let is_moved = events.contains(ReadFlags::MOVED_FROM);
            let kinds = if is_moved || self.tree.watch(child) == 0 { ENTRY | BELOW } else { ENTRY };
            self.tree.change(child, kinds);
            if is_moved {
                self.remove_below(child);
            } else {
                // A deleted folder was empty. A search for paths below each one would take long if there are many.
                self.unwatch_folder(child);
                self.set_nested(child, false);
                self.forget_file(child);
            }
        } else {
            let kinds = if events.contains(ReadFlags::CREATE) { ENTRY | INNER } else { ENTRY | INNER | BELOW };
            self.tree.change(child, kinds);
            self.queue.push(Task { folder: child, is_recorded: true });
        }
    }

    /// Reads the events and the new folders, for an answer. Returns `false` if that would take too long.
    pub fn catch_up(&mut self) -> Result<bool, Fatal> {
        let start = Instant::now();
        let count = self.drain()?;
        if self.walking_since.is_some() {
            return Ok(false);
        }
        while !self.queue.is_empty() && start.elapsed() < WALK_BUDGET {
            self.step(16)?;
        }
        Ok(count < EVENTS_MAX && self.queue.is_empty())
    }

    /// Returns the paths that changed since a token of this daemon, each followed by a NUL byte, and their number.
    pub fn changes(&mut self, token: Token) -> Result<super::tree::List, Reason> {
        if self.mounts.iter().any(|mount| mounts::is_remote(&mount.kind)) {
            return Err(Reason::NetworkMount);
        }
        if self.has_aliases {
            return Err(Reason::BindMount);
        }
        self.files.problem().map_or(Ok(()), Err)?;
        if token.sequence < self.tree.floor() {
            return Err(self.floor_reason);
        }
        let list = self.tree.changes(token.sequence, self.limits.folders, token.is_after_everything);
        list.ok_or(Reason::Busy)
    }

    /// Looks for the names of a file, after an event.
    pub fn check_names(&mut self, node: NodeId) {
        self.files.check(&mut self.tree, self.root.as_fd(), self.inotify.as_fd(), node);
    }

    fn forget_file(&mut self, node: NodeId) {
        self.files.forget(&mut self.tree, self.inotify.as_fd(), node);
    }

    fn handle_file(&mut self, watch: i32, events: ReadFlags) {
        if events.contains(ReadFlags::IGNORED) {
            return self.files.ignored(&mut self.tree, watch);
        }
        for node in self.files.nodes(watch) {
            self.tree.change(node, ENTRY);
            if events.contains(ReadFlags::ATTRIB) {
                self.check_names(node);
            }
        }
    }

    /// Takes over the list of files that a scan found: the paths, each followed by a NUL byte. An empty path separates
    /// the tracked files from the untracked files. `since` is the number of the last change before the scan.
    pub fn set_tracked(&mut self, list: &[u8], are_all: bool, since: u64) {
        self.files.begin_list(&mut self.tree, self.inotify.as_fd(), are_all, since);
        let mut are_tracked = true;
        for path in list.split(|byte| *byte == 0) {
            if path.is_empty() {
                are_tracked = false;
                continue;
            }
            let node = self.tree.node_of(path);
            if are_tracked {
                self.files.track(&mut self.tree, node);
            }
            self.check_names(node);
        }
    }
}

fn is_limit(error: &io::Error) -> bool {
    [Errno::NOSPC, Errno::NOMEM].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn shown(path: &str) -> String {
    walk::limit(path).map_or_else(|| "unknown".into(), |limit| limit.to_string())
}

fn no_instance(error: Errno) -> Fatal {
    if error != Errno::MFILE {
        return Fatal(format!("the kernel offers no inotify: {error}"));
    }
    Fatal(format!(
        "the limit of inotify instances is reached: fs.inotify.max_user_instances is {}, user.max_inotify_instances is \
         {}. Raise it with `sysctl fs.inotify.max_user_instances=1024`, as root, or disable the monitor where it is not \
         needed",
        shown("fs/inotify/max_user_instances"),
        shown("user/max_inotify_instances"),
    ))
}

fn no_watch(error: &io::Error) -> Fatal {
    if error.raw_os_error() != Some(Errno::NOSPC.raw_os_error()) {
        return Fatal(format!("the kernel has no memory for a watch: {error}"));
    }
    Fatal(format!(
        "the limit of watches is reached: fs.inotify.max_user_watches is {}, user.max_inotify_watches is {}, and each \
         folder needs a watch. Raise it with `sysctl fs.inotify.max_user_watches=1048576`, as root",
        shown("fs/inotify/max_user_watches"),
        shown("user/max_inotify_watches"),
    ))
}

/// Returns the number of watches that this user may have.
pub fn watch_limit() -> u64 {
    let own = walk::limit("user/max_inotify_watches").unwrap_or(u64::MAX);
    own.min(walk::limit("fs/inotify/max_user_watches").unwrap_or(8192))
}

/// Opens the root of a worktree without reading it.
pub fn open_root(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?)
}
