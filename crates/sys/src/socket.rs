//! What the standard library's Unix sockets don't do: descriptors to another process, who that is, and waiting for
//! many. Linux only.

use std::fs::{self, File};
use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::clock;

/// Descriptors that one message carries at most.
pub const DESCRIPTORS_MAX: usize = 8;

/// Room for one control message with that many descriptors, aligned as the kernel wants it.
type Control = [MaybeUninit<u64>; 8];

const _: () = assert!(size_of::<Control>() >= 16 + DESCRIPTORS_MAX * size_of::<RawFd>());

/// Lets every user connect to the socket that was bound to `path`. Where somebody has put a link or anything else there
/// meanwhile, nothing changes.
///
/// # Errors
/// As the kernel says; `InvalidInput` if a socket is not what is there. It goes by /proc.
pub fn open_to_all(path: &Path) -> io::Result<()> {
    let there = File::options().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)?;
    if !there.metadata()?.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a socket"));
    }
    fs::set_permissions(format!("/proc/self/fd/{}", there.as_raw_fd()), fs::Permissions::from_mode(0o666))
}

/// A file to be locked, made where it is missing, that nobody else may open, who could hold the lock. Not what a link
/// leads to.
///
/// # Errors
/// As the kernel says: `ELOOP` if it is a link.
pub fn lock_file(path: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).write(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Whom a socket connects to, as it was when it listened or connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its process; 0 where that is in a container that this one can't see.
    pub pid: u32,
    /// Its effective user.
    pub uid: u32,
}

/// Sends one byte with descriptors, without waiting.
///
/// # Errors
/// As the kernel says: `EPIPE` if the other end is closed, `EAGAIN` if it has not read what was sent before.
///
/// # Panics
/// If there are more than [`DESCRIPTORS_MAX`].
pub fn send(socket: &UnixStream, byte: u8, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    assert!(descriptors.len() <= DESCRIPTORS_MAX);
    let mut control: Control = [MaybeUninit::zeroed(); _];
    let mut part = libc::iovec { iov_base: (&raw const byte).cast_mut().cast(), iov_len: 1 };
    let mut message = message(&mut part, &mut control);
    let bytes = size_of_val(descriptors) as u32;
    if descriptors.is_empty() {
        message.msg_controllen = 0;
    } else {
        // SAFETY: a calculation. There is room for so many descriptors, so the first header is in `control`, as is
        // what follows it; `BorrowedFd` is a `RawFd` in memory.
        unsafe {
            message.msg_controllen = libc::CMSG_SPACE(bytes) as _;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(bytes) as _;
            std::ptr::copy_nonoverlapping(descriptors.as_ptr().cast(), libc::CMSG_DATA(header), bytes as usize);
        }
    }
    // SAFETY: `message` points to one part and to control data, which live.
    match unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) } {
        1 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Receives one byte and the descriptors that came with it; none once the other end is closed.
///
/// # Errors
/// As the kernel says: `EAGAIN` after the socket's time-out.
pub fn receive(socket: &UnixStream) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
    let mut byte = 0_u8;
    let mut control: Control = [MaybeUninit::zeroed(); _];
    let mut part = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut message = message(&mut part, &mut control);
    // SAFETY: `message` points to one part and room for control data, which live.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
    let mut descriptors = Vec::new();
    // SAFETY: the kernel has filled `control` as far as it says; a null header ends the walk. It has made the
    // descriptors for us.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while let Some(one) = header.as_ref() {
            if (one.cmsg_level, one.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                #[allow(clippy::unnecessary_cast)] // musl has a type of its own for it
                let bytes = one.cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let first: *const RawFd = libc::CMSG_DATA(header).cast();
                let numbers = (0..bytes / size_of::<RawFd>()).map(|index| first.add(index).read_unaligned());
                descriptors.extend(numbers.map(|number| OwnedFd::from_raw_fd(number)));
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    match got {
        1 => Ok(Some((byte, descriptors))),
        0 => Ok(None),
        _ => Err(io::Error::last_os_error()),
    }
}

fn message(part: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: `msghdr` is plain data, for which zeros are valid: no name, no parts, no flags.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(control) as _;
    message
}

/// Whom the socket connects to.
///
/// # Errors
/// As the kernel says.
pub fn peer(socket: &UnixStream) -> io::Result<Peer> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    // SAFETY: the kernel writes at most `bytes` to `credentials`.
    let done =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut credentials).cast(), &raw mut bytes) };
    match done {
        0 => Ok(Peer { pid: credentials.pid.cast_unsigned(), uid: credentials.uid }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether the other end is closed, or its process dead.
#[must_use]
pub fn is_hung_up(socket: &UnixStream) -> bool {
    let mut one = Poll::default();
    one.push(socket.as_fd());
    one.sockets[0].events = libc::POLLRDHUP;
    one.wait(Some(Duration::ZERO)).is_ok() && one.sockets[0].revents != 0
}

/// What to wait for: descriptors that become readable, or whose other end closes.
#[derive(Default)]
pub struct Poll {
    sockets: Vec<libc::pollfd>,
}

impl std::fmt::Debug for Poll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poll").field("sockets", &self.sockets.len()).finish()
    }
}

impl Poll {
    /// Forgets all.
    pub fn clear(&mut self) {
        self.sockets.clear();
    }

    /// Adds one. It may be closed before [`wait`](Self::wait), which then says that it is ready.
    pub fn push(&mut self, descriptor: BorrowedFd<'_>) {
        self.sockets.push(libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    }

    /// Waits until one is ready, for `timeout` at most, or until a signal.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.map(clock::timespec);
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let count = self.sockets.len() as libc::nfds_t;
        // SAFETY: the kernel reads and writes so many entries, and reads a timespec that lives; no signals are masked.
        let ready = unsafe { libc::ppoll(self.sockets.as_mut_ptr(), count, timeout, std::ptr::null()) };
        if ready >= 0 {
            return Ok(());
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        }
    }

    /// Whether the one that was added as the `index`th is ready.
    #[must_use]
    pub fn is_ready(&self, index: usize) -> bool {
        self.sockets.get(index).is_some_and(|socket| socket.revents != 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::time::Instant;

    use super::*;

    #[test]
    fn descriptors_arrive_and_work() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        send(&ours, b'a', &[writer.as_fd(), ours.as_fd()]).unwrap();
        send(&ours, b'b', &[]).unwrap();
        let (byte, descriptors) = receive(&theirs).unwrap().unwrap();
        assert_eq!((byte, descriptors.len()), (b'a', 2));
        drop(writer);
        let writer = descriptors.into_iter().next().unwrap();
        io::PipeWriter::from(writer).write_all(b"through").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        assert_eq!(receive(&theirs).unwrap().unwrap().1.len(), 0);
    }

    #[test]
    fn as_many_descriptors_as_fit_a_message() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        send(&ours, 1, &[ours.as_fd(); DESCRIPTORS_MAX]).unwrap();
        assert_eq!(receive(&theirs).unwrap().unwrap().1.len(), DESCRIPTORS_MAX);
    }

    #[test]
    fn the_end_is_noticed_and_kills_nobody() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        assert!(!is_hung_up(&ours));
        let pid = std::process::id();
        // SAFETY: no conditions.
        assert_eq!(peer(&ours).unwrap(), Peer { pid, uid: unsafe { libc::geteuid() } });
        drop(theirs);
        // A process that another test starts has a copy for a moment, until it is the program that it is to be.
        let start = Instant::now();
        while !is_hung_up(&ours) {
            assert!(start.elapsed() < Duration::from_secs(60), "the end is not noticed");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(send(&ours, 1, &[]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(receive(&ours).unwrap().is_none());
    }

    #[test]
    fn one_who_does_not_read_holds_nobody_up() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let full = (0..1_000_000).find_map(|_| send(&ours, 1, &[]).err()).unwrap();
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn waiting_for_many() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (other, _kept) = UnixStream::pair().unwrap();
        let mut poll = Poll::default();
        poll.push(other.as_fd());
        poll.push(theirs.as_fd());
        poll.wait(Some(Duration::ZERO)).unwrap();
        assert!(!poll.is_ready(0) && !poll.is_ready(1));
        send(&ours, 1, &[]).unwrap();
        poll.wait(None).unwrap();
        assert!(!poll.is_ready(0) && poll.is_ready(1) && !poll.is_ready(2));
    }
}
