//! Tests of the users that a client trusts, and of the privileges and descriptors that the daemon's process keeps and
//! passes on. Each test is alone in its process, because threads and children in it become other users.

use std::fs::{self, Permissions};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;

use ascertain_sync::barrierd::{Client, Error};
use ascertain_sys::mapping::SharedMemory;
use ascertain_sys::privileges::{self, Capability, NOBODY};
use ascertain_sys::socket;
use tempfile::TempDir;

use ascertain_sys::testing::{alone, left_out};

use crate::common::child::in_child;
use crate::common::fake_daemon::{Fake, path};

/// The ID of an ordinary user.
const OTHER: u32 = 1_234;

/// Returns whether this process can become another user. The process needs the privileges of root, and the other user
/// must exist in its user namespace.
fn is_root() -> bool {
    let becomes_other = || thread::scope(|scope| scope.spawn(become_other).join().unwrap());
    let is_root = privileges::effective_user() == 0 && becomes_other();
    if !is_root {
        left_out("only root can become another user, and only if there is one");
    }
    is_root
}

/// Changes the user of the calling thread. In the kernel, each thread has its own user.
fn become_other() -> bool {
    // SAFETY: the arguments are numbers. The function of the C library would change all threads.
    unsafe { libc::syscall(libc::SYS_setresuid, OTHER, OTHER, OTHER) == 0 }
}

/// Runs `work` on a new thread that belongs to another user.
fn as_other<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            assert!(become_other());
            work()
        });
        other.join().unwrap()
    })
}

/// Creates a folder that all users may use. Returns `None` if this process cannot become another user, or if other
/// users cannot enter the folder.
fn folder_for_all() -> Option<TempDir> {
    if !is_root() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    is_opened_to_others(folder.path()).then_some(folder)
}

/// Opens the folder to all users. The folder is in the system's folder for temporary files. Returns `false` if other
/// users cannot enter that folder.
fn is_opened_to_others(folder: &Path) -> bool {
    fs::set_permissions(folder, Permissions::from_mode(0o777)).unwrap();
    let is_entered = as_other(|| fs::metadata(folder.join(".")).is_ok());
    if !is_entered {
        left_out("other users cannot enter the folder for temporary files");
    }
    is_entered
}

#[test]
fn a_stranger_is_not_trusted() {
    alone(|| {
        let Some(folder) = folder_for_all() else { return };
        let _listener = as_other(|| UnixListener::bind(path(&folder)).unwrap());
        assert!(matches!(Client::open(path(&folder)), Err(Error::Stranger { uid: OTHER, .. })));
        // To its own user, the process is not a stranger. The error is that it does not use the daemon's protocol.
        let of_oneself = as_other(|| Client::open(path(&folder)));
        assert!(matches!(of_oneself, Err(Error::NotADaemon { .. })), "{of_oneself:?}");
    });
}

/// In a user namespace that maps no IDs, all users have the same ID. So the caller and the process that listens seem to
/// be the same user.
#[test]
fn whoever_has_no_number_here_is_not_trusted() {
    alone(|| {
        let Some(folder) = folder_for_all() else { return };
        let _listener = as_other(|| UnixListener::bind(path(&folder)).unwrap());
        fs::set_permissions(path(&folder), Permissions::from_mode(0o777)).unwrap();
        in_child(|| {
            // SAFETY: the argument is a number, and the child has one thread.
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

/// In the initial user namespace, `nobody` is an ordinary user. A client of this user trusts a daemon of the same user.
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
            // The process is not a stranger, but a process that sends nothing does not follow the protocol.
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

/// The error must not advise the user to start a daemon, because that would not help.
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

/// Programs that the daemon or a client starts must not inherit its descriptors of shared memory, nor descriptors that
/// it received over a socket.
#[test]
fn descriptors_end_with_the_program() {
    alone(|| {
        let is_closed = |descriptor: &dyn AsRawFd| {
            // SAFETY: the arguments are numbers.
            unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFD) == libc::FD_CLOEXEC }
        };
        let memory = SharedMemory::new(c"test", 8).unwrap();
        assert!(is_closed(&memory.as_fd()));
        let (ours, theirs) = UnixStream::pair().unwrap();
        let stdin = std::io::stdin();
        socket::send(&ours, 0, &[memory.as_fd(), stdin.as_fd()]).unwrap();
        let (_, received) = socket::receive(&theirs).unwrap().unwrap();
        assert_eq!(received.len(), 2);
        assert!(received.iter().all(|descriptor| is_closed(descriptor)));
    });
}

/// Returns the value of the field `name` in `/proc/self/status`.
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
        // In a container, even root may lack the capability.
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
