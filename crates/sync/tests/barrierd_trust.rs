//! Whom a client trusts, and what the daemon's process keeps and hands on.
#![cfg(target_os = "linux")]
#![allow(missing_docs)]

mod fake_daemon;
mod reclaimed;

use std::fs::{self, Permissions};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use ascertain_sync::barrierd::{Client, Error};
use ascertain_sys::mapping::Shared;
use ascertain_sys::privileges::{self, Capability, NOBODY};
use ascertain_sys::socket;

use fake_daemon::{Fake, path};
use reclaimed::in_child;

/// Only root can become another.
fn is_root() -> bool {
    privileges::effective_user() == 0
}

/// Runs `work` on a thread of another user: to the kernel it is the thread that is somebody, not the process.
fn as_nobody<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let nobody = scope.spawn(|| {
            // SAFETY: numbers only. The C library would change all threads.
            assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) }, 0);
            work()
        });
        nobody.join().unwrap()
    })
}

#[test]
fn a_stranger_is_not_trusted() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    let _listener = as_nobody(|| UnixListener::bind(path(&folder)).unwrap());
    assert!(matches!(Client::open(path(&folder)), Err(Error::Stranger { uid: NOBODY, .. })));
    // To oneself one is none: it is not understood, which is another matter.
    let of_oneself = as_nobody(|| Client::open(path(&folder)));
    assert!(matches!(of_oneself, Err(Error::NotADaemon { .. })), "{of_oneself:?}");
}

#[test]
fn everybody_trusts_root() {
    if !is_root() {
        return;
    }
    let fake = Fake::new();
    for (path, mode) in [(fake.folder.path().to_owned(), 0o755), (path(&fake.folder), 0o666)] {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    let any = fake.listener.as_fd();
    thread::scope(|scope| {
        let client = scope.spawn(|| as_nobody(|| Client::open(path(&fake.folder))));
        let (socket, _) = fake.listener.accept().unwrap();
        socket::send(&socket, 0, &[fake.map.as_fd(), fake.page.as_fd(), any, any]).unwrap();
        client.join().unwrap().unwrap();
    });
}

/// To start another daemon would not help.
#[test]
fn who_may_not_enter_the_folder_is_told_so() {
    if !is_root() {
        return;
    }
    let fake = Fake::new();
    fs::set_permissions(fake.folder.path(), Permissions::from_mode(0o700)).unwrap();
    let denied = as_nobody(|| Client::open(path(&fake.folder))).unwrap_err();
    assert!(matches!(denied, Error::Denied { .. }) && denied.is_unavailable(), "{denied}");
    assert!(!denied.to_string().contains("start it"), "{denied}");
}

/// What a program started by the daemon or a client would inherit otherwise.
#[test]
fn descriptors_end_with_the_program() {
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
}

/// A line of what the kernel says of this process.
fn status(name: &str) -> String {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

#[test]
fn who_drops_all_but_one_privilege_has_one() {
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
}
