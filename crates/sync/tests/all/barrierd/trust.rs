//! Whom a client trusts, and what the daemon's process keeps and hands on. Each test is alone in its process, whose
//! threads and children become other users.

use std::fs::{self, Permissions};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;

use ascertain_sync::barrierd::{Client, Error};
use ascertain_sys::mapping::Shared;
use ascertain_sys::privileges::{self, Capability, NOBODY};
use ascertain_sys::socket;
use tempfile::TempDir;

use ascertain_sys::testing::{alone, left_out};

use crate::common::child::in_child;
use crate::common::fake_daemon::{Fake, path};

/// A user like any other.
const OTHER: u32 = 1_234;

/// Only root can become another: one who has that privilege, and a user of that number to become.
fn is_root() -> bool {
    let becomes_other = || thread::scope(|scope| scope.spawn(become_other).join().unwrap());
    let is_root = privileges::effective_user() == 0 && becomes_other();
    if !is_root {
        left_out("only root can become another user, where there is another");
    }
    is_root
}

/// The calling thread: to the kernel it is the thread that is somebody, not the process.
fn become_other() -> bool {
    // SAFETY: numbers only. The C library would change all threads.
    unsafe { libc::syscall(libc::SYS_setresuid, OTHER, OTHER, OTHER) == 0 }
}

/// Runs `work` on a thread of another user.
fn as_other<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            assert!(become_other());
            work()
        });
        other.join().unwrap()
    })
}

/// A folder for all users, if there are others.
fn folder_for_all() -> Option<TempDir> {
    if !is_root() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    is_opened_to_others(folder.path()).then_some(folder)
}

/// False where others don't get to where temporary files are.
fn is_opened_to_others(folder: &Path) -> bool {
    fs::set_permissions(folder, Permissions::from_mode(0o777)).unwrap();
    let is_entered = as_other(|| fs::metadata(folder.join(".")).is_ok());
    if !is_entered {
        left_out("other users don't get to where temporary files are");
    }
    is_entered
}

#[test]
fn a_stranger_is_not_trusted() {
    alone(|| {
        let Some(folder) = folder_for_all() else { return };
        let _listener = as_other(|| UnixListener::bind(path(&folder)).unwrap());
        assert!(matches!(Client::open(path(&folder)), Err(Error::Stranger { uid: OTHER, .. })));
        // To oneself one is none: it is not understood, which is another matter.
        let of_oneself = as_other(|| Client::open(path(&folder)));
        assert!(matches!(of_oneself, Err(Error::NotADaemon { .. })), "{of_oneself:?}");
    });
}

/// In a user namespace that has no number for them, all users are shown by the same one: the caller itself, and who
/// listens.
#[test]
fn whoever_has_no_number_here_is_not_trusted() {
    alone(|| {
        let Some(folder) = folder_for_all() else { return };
        let _listener = as_other(|| UnixListener::bind(path(&folder)).unwrap());
        fs::set_permissions(path(&folder), Permissions::from_mode(0o777)).unwrap();
        in_child(|| {
            // SAFETY: a number only; the child has one thread.
            if unsafe { libc::unshare(libc::CLONE_NEWUSER) } != 0 {
                left_out("this kernel or container allows no user namespaces");
                return true;
            }
            let nobody = Some(privileges::effective_user());
            let is_anybody = |opened| match opened {
                Err(Error::Stranger { uid, is_anybody, .. }) => is_anybody && Some(uid) == nobody,
                _ => false,
            };
            nobody == privileges::overflow_user() && is_anybody(Client::open(path(&folder)))
        });
    });
}

/// Nobody, where that is a user like any other, believes a daemon of its own.
#[test]
fn nobody_trusts_itself_where_all_have_numbers() {
    alone(|| {
        if !fs::read_to_string("/proc/self/uid_map").unwrap().contains(&u32::MAX.to_string()) {
            return left_out("not all users have a number in this user namespace");
        }
        let Some(folder) = folder_for_all() else { return };
        in_child(|| {
            privileges::drop_all_but(&[]).unwrap();
            let _listener = UnixListener::bind(path(&folder)).unwrap();
            // No stranger; who says nothing is not understood.
            matches!(Client::open(path(&folder)), Err(Error::NotADaemon { .. }))
        });
    });
}

#[test]
fn everybody_trusts_root() {
    alone(|| {
        if !is_root() {
            return;
        }
        let fake = Fake::new();
        if !is_opened_to_others(fake.folder.path()) {
            return;
        }
        fs::set_permissions(path(&fake.folder), Permissions::from_mode(0o666)).unwrap();
        fake.sent(&fake.descriptors(), |path| as_other(|| Client::open(path))).0.unwrap();
    });
}

/// To start another daemon would not help.
#[test]
fn who_may_not_enter_the_folder_is_told_so() {
    alone(|| {
        if !is_root() {
            return;
        }
        let fake = Fake::new();
        fs::set_permissions(fake.folder.path(), Permissions::from_mode(0o700)).unwrap();
        let denied = as_other(|| Client::open(path(&fake.folder))).unwrap_err();
        assert!(matches!(denied, Error::Denied { .. }) && denied.is_unavailable(), "{denied}");
        assert!(!denied.to_string().contains("start it"), "{denied}");
    });
}

/// The descriptors that a program started by the daemon or a client would otherwise inherit.
#[test]
fn descriptors_end_with_the_program() {
    alone(|| {
        let is_closed = |descriptor: &dyn AsRawFd| {
            // SAFETY: numbers only.
            unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFD) == libc::FD_CLOEXEC }
        };
        let memory = Shared::new(c"test", 8).unwrap();
        assert!(is_closed(&memory.as_fd()));
        let (ours, theirs) = UnixStream::pair().unwrap();
        let stdin = std::io::stdin();
        socket::send(&ours, 0, &[memory.as_fd(), stdin.as_fd()]).unwrap();
        let (_, received) = socket::receive(&theirs).unwrap().unwrap();
        assert_eq!(received.len(), 2);
        assert!(received.iter().all(|descriptor| is_closed(descriptor)));
    });
}

/// A line of what the kernel says of this process.
fn status(name: &str) -> String {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

#[test]
fn who_drops_all_but_one_privilege_has_one() {
    alone(|| {
        const BPF: u64 = 1 << Capability::Bpf as u32;
        let permitted = || u64::from_str_radix(&status("CapPrm"), 16).unwrap();
        if !is_root() {
            return;
        }
        // A container's root may not have it.
        let keep: &[Capability] = if permitted() & BPF == 0 { &[] } else { &[Capability::Bpf] };
        let kept = permitted() & BPF;
        in_child(|| {
            privileges::drop_all_but(keep).unwrap();
            let capabilities = ["CapInh", "CapPrm", "CapEff"].map(|set| u64::from_str_radix(&status(set), 16).unwrap());
            assert_eq!(capabilities, [0, kept, kept]);
            assert_eq!(status("Uid"), vec![NOBODY.to_string(); 4].join("\t"));
            assert_eq!(status("Gid"), vec![NOBODY.to_string(); 4].join("\t"));
            assert_eq!((status("Groups"), status("NoNewPrivs")), (String::new(), "1".to_owned()));
            true
        });
    });
}
