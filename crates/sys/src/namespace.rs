//! Network namespaces without root, for a process with threads. Linux only.
//!
//! Without root, a network namespace must belong to its own user namespace, and only a process with a single thread may
//! enter a user namespace. So this process never enters a namespace. Each action inside a namespace is a single system
//! call: it creates a socket or opens a file. A child that shares our memory and descriptors makes this call and ends
//! at once. We can use the result from outside: a socket stays in the namespace in which it was created. The owner of a
//! user namespace may do anything with the objects in it. With root, the steps are the same, but without the user
//! namespace.
//!
//! A namespace exists as long as a descriptor of it is open, or a socket or a process is in it. No helper process keeps
//! a namespace alive, so the namespace ends with this process, however this process ends.

use std::ffi::{CStr, c_int, c_void};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, write};
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with};
use rustix::process::{getegid, geteuid};
use rustix::thread::{LinkNameSpaceType as Kind, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// A network namespace with its own interfaces, addresses, routes and ports. Clones refer to the same namespace.
#[derive(Clone, Debug)]
pub struct Namespace {
    network: Arc<OwnedFd>,
    /// The user namespace to which the network namespace belongs, if that is not the user namespace of this process.
    user: Option<Arc<OwnedFd>>,
}

impl Namespace {
    /// Creates a namespace that contains only a loopback interface, which is down. Also creates a user namespace for it
    /// if this process may not create the network namespace otherwise.
    ///
    /// # Errors
    /// The kernel's error. It is `EPERM` or `ENOSPC` if user namespaces are forbidden too. It is `EPERM` or `ENOSYS` if
    /// a filter of system calls, for example that of a container, forbids creating namespaces.
    pub fn new() -> io::Result<Self> {
        let network = || open_own(c"/proc/self/ns/net");
        match in_child(libc::CLONE_NEWNET, network) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            made => return Ok(Self { network: Arc::new(made?), user: None }),
        }
        // The mapping of users and groups: inside, only our own user and group exist, with the same IDs as outside.
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        let (users, groups) = (format!("{user} {user} 1"), format!("{group} {group} 1"));
        let both = in_child(libc::CLONE_NEWNET | libc::CLONE_NEWUSER, || {
            let say = |path, text: &[u8]| write(open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?, text);
            // Errors are ignored, because only programs that are started in the namespace need the mappings. A process
            // that cannot be traced (is not dumpable) may not write them.
            let _ = say(c"/proc/self/setgroups", b"deny")
                .and_then(|_| say(c"/proc/self/uid_map", users.as_bytes()))
                .and_then(|_| say(c"/proc/self/gid_map", groups.as_bytes()));
            Ok((network()?, open_own(c"/proc/self/ns/user")?))
        });
        let (network, user) = both?;
        Ok(Self { network: Arc::new(network), user: Some(Arc::new(user)) })
    }

    /// Creates another network namespace in the same user namespace. Virtual Ethernet devices can connect the two.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn another(&self) -> io::Result<Self> {
        let network = self.inside(|| {
            // SAFETY: the descriptors stay shared; only the child leaves its network namespace.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET)? };
            open_own(c"/proc/self/ns/net")
        })?;
        Ok(Self { network: Arc::new(network), user: self.user.clone() })
    }

    /// Creates a socket inside the namespace. The socket stays in it, whichever process uses the socket.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn socket(&self, family: AddressFamily, kind: SocketType, protocol: Option<Protocol>) -> io::Result<OwnedFd> {
        self.inside(|| socket_with(family, kind, SocketFlags::CLOEXEC, protocol))
    }

    /// Opens a file as a process inside the namespace would: `/proc/sys/net/…`, `/proc/net/…` and `/dev/net/tun` refer
    /// to the namespace of the process that opens them.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open(&self, path: &CStr, flags: OFlags) -> io::Result<File> {
        Ok(self.inside(|| open(path, flags | OFlags::CLOEXEC, Mode::empty()))?.into())
    }

    /// Makes the command run inside the namespace, as the same user as this process.
    pub fn enter(&self, command: &mut Command) {
        let namespace = self.clone();
        // SAFETY: between fork and exec, the closure makes only system calls.
        unsafe { command.pre_exec(move || Ok(namespace.join()?)) };
    }

    /// Moves the calling process into the namespace. The process must have no other threads.
    fn join(&self) -> rustix::io::Result<()> {
        if let Some(user) = &self.user {
            move_into_link_name_space(user.as_fd(), Some(Kind::User))?;
        }
        move_into_link_name_space(self.network.as_fd(), Some(Kind::Network))
    }

    /// Runs `work` inside the namespace and returns its result. `work` may only make system calls.
    fn inside<T>(&self, work: impl FnOnce() -> rustix::io::Result<T>) -> io::Result<T> {
        in_child(0, || self.join().and_then(|()| work()))
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.network.as_fd()
    }
}

fn open_own(path: &CStr) -> rustix::io::Result<OwnedFd> {
    open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Runs the work in a child process, in new namespaces, while this thread waits. The child shares our memory and
/// descriptors, so a file that it opens is open here. The work may only make system calls: it must not allocate, lock
/// or panic.
fn in_child<T, F: FnOnce() -> rustix::io::Result<T>>(namespaces: c_int, work: F) -> io::Result<T> {
    struct Job<F, T> {
        work: Option<F>,
        result: rustix::io::Result<T>,
    }
    extern "C" fn run<F: FnOnce() -> rustix::io::Result<T>, T>(job: *mut c_void) -> c_int {
        // SAFETY: `job` is the `Job` of the function below, whose thread does not access it until this child has ended.
        let job = unsafe { &mut *job.cast::<Job<F, T>>() };
        if let Some(work) = job.work.take() {
            job.result = work();
        }
        // SAFETY: `_exit` has no conditions. It ends the child without any of the usual actions at the end of a
        // process.
        unsafe { libc::_exit(0) }
    }
    // The initial `result` is kept if the child is killed.
    let mut job = Job { work: Some(work), result: Err(Errno::SRCH) };
    let mut stack = vec![0_u128; STACK_BYTES / size_of::<u128>()];
    // The child sends no signal when it ends, so that code that waits for all children does not receive it.
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | namespaces;
    with_signals_blocked(|| {
        let stack_top = stack.as_mut_ptr_range().end.cast();
        // SAFETY: nothing else uses the stack or the job, because CLONE_VFORK keeps this thread here until the child
        // has ended; `run` casts the job back. Signals are blocked, so no signal handler runs in the child.
        let pid = unsafe { libc::clone(run::<F, T>, stack_top, flags, (&raw mut job).cast()) };
        if pid == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the pointer to the status may be null.
        unsafe { libc::waitpid(pid, ptr::null_mut(), libc::__WALL) };
        Ok(())
    })?;
    Ok(job.result?)
}

const STACK_BYTES: usize = 128 * 1024;

fn with_signals_blocked<T>(work: impl FnOnce() -> T) -> T {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the sets are written before they are read.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let result = work();
    // SAFETY: `before` was written by the call above, and the other pointer may be null.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    result
}
