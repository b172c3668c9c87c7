//! Network namespaces without root, and from a process with threads. Linux only.
//!
//! Without root a network namespace must belong to a user namespace of one's own, and only a process without further
//! threads may enter one. So nobody of ours ever does: what must be done inside is a single system call each time (a
//! socket is made, a file is opened), and a child that shares our memory and descriptors makes it and ends at once.
//! What it made is ours to use from outside, for a socket stays in the namespace it was made in, and the owner of a
//! user namespace may do anything to what is in it. With root it goes the same way, but without the user namespace.
//!
//! A namespace lives as long as a descriptor, a socket or a process in it does. There is no process that holds it, and
//! none that could be left over: it is gone when we are, however we end.

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

/// A network namespace: interfaces, addresses, routes and ports of its own. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Namespace {
    network: Arc<OwnedFd>,
    /// The user namespace that it belongs to, where that is not ours.
    user: Option<Arc<OwnedFd>>,
}

impl Namespace {
    /// A new one, with nothing in it but a loopback interface that is down; in a user namespace of its own if this
    /// process may not make it otherwise.
    ///
    /// # Errors
    /// As the kernel says: `EPERM` or `ENOSPC` where user namespaces are forbidden too, and `EPERM` or `ENOSYS` where a
    /// filter of system calls does it, as that of containers.
    pub fn new() -> io::Result<Self> {
        let network = || open_own(c"/proc/self/ns/net");
        match in_child(libc::CLONE_NEWNET, network) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            made => return Ok(Self { network: Arc::new(made?), user: None }),
        }
        // Who is who outside: one's own user and group have their own numbers inside too, and there is nobody else.
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        let (users, groups) = (format!("{user} {user} 1"), format!("{group} {group} 1"));
        let both = in_child(libc::CLONE_NEWNET | libc::CLONE_NEWUSER, || {
            let say = |path, text: &[u8]| write(open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?, text);
            // Nothing here needs them: they are for programs that are started in the namespace. A process that may not
            // be looked into may not write them.
            let _ = say(c"/proc/self/setgroups", b"deny")
                .and_then(|_| say(c"/proc/self/uid_map", users.as_bytes()))
                .and_then(|_| say(c"/proc/self/gid_map", groups.as_bytes()));
            Ok((network()?, open_own(c"/proc/self/ns/user")?))
        });
        let (network, user) = both?;
        Ok(Self { network: Arc::new(network), user: Some(Arc::new(user)) })
    }

    /// Another new one, of the same user namespace: interfaces may have their ends in both.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn another(&self) -> io::Result<Self> {
        let network = self.inside(|| {
            // SAFETY: descriptors stay shared; the child alone leaves its network namespace.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET)? };
            open_own(c"/proc/self/ns/net")
        })?;
        Ok(Self { network: Arc::new(network), user: self.user.clone() })
    }

    /// A socket inside. It stays there, whoever uses it.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn socket(&self, family: AddressFamily, kind: SocketType, protocol: Option<Protocol>) -> io::Result<OwnedFd> {
        self.inside(|| socket_with(family, kind, SocketFlags::CLOEXEC, protocol))
    }

    /// A file as it is inside: `/proc/sys/net/…`, `/proc/net/…` and `/dev/net/tun` are of the namespace of who opens
    /// them.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn open(&self, path: &CStr, flags: OFlags) -> io::Result<File> {
        Ok(self.inside(|| open(path, flags | OFlags::CLOEXEC, Mode::empty()))?.into())
    }

    /// The command will run inside, as the user who we are.
    pub fn enter(&self, command: &mut Command) {
        let namespace = self.clone();
        // SAFETY: between fork and exec it makes system calls alone.
        unsafe { command.pre_exec(move || Ok(namespace.join()?)) };
    }

    /// For the calling process, which has no other threads.
    fn join(&self) -> rustix::io::Result<()> {
        if let Some(user) = &self.user {
            move_into_link_name_space(user.as_fd(), Some(Kind::User))?;
        }
        move_into_link_name_space(self.network.as_fd(), Some(Kind::Network))
    }

    /// What the work, which makes system calls alone, comes to inside.
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

/// Does the work in a child of its own, in new namespaces, while this thread waits. It shares our memory and
/// descriptors: what it opens is open here. The work makes system calls and nothing else: no allocation, no lock, no
/// panic.
fn in_child<T, F: FnOnce() -> rustix::io::Result<T>>(namespaces: c_int, work: F) -> io::Result<T> {
    struct Job<F, T> {
        work: Option<F>,
        result: rustix::io::Result<T>,
    }
    extern "C" fn run<F: FnOnce() -> rustix::io::Result<T>, T>(job: *mut c_void) -> c_int {
        // SAFETY: it is the job below, which its owner leaves alone until this process has ended.
        let job = unsafe { &mut *job.cast::<Job<F, T>>() };
        if let Some(work) = job.work.take() {
            job.result = work();
        }
        // SAFETY: no conditions. It ends the child, without anything that a process does at its end.
        unsafe { libc::_exit(0) }
    }
    // What it says if something kills the child.
    let mut job = Job { work: Some(work), result: Err(Errno::SRCH) };
    let mut stack = vec![0_u128; STACK_BYTES / size_of::<u128>()];
    // No signal when it ends: nobody who waits for all children should meet it.
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | namespaces;
    with_signals_blocked(|| {
        let stack_top = stack.as_mut_ptr_range().end.cast();
        // SAFETY: nothing else uses the stack or the job, for CLONE_VFORK keeps this thread here until the child is
        // gone; `run` casts the job back. No handler of ours runs in the child.
        let pid = unsafe { libc::clone(run::<F, T>, stack_top, flags, (&raw mut job).cast()) };
        if pid == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: its status may be left out.
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
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    result
}
