//! Functions that the standard library lacks for Unix sockets: they pass descriptors to another process, and identify
//! that process. Linux only.

use std::fs::{self, File};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    self, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

use crate::syscall::check;

/// Maximum number of descriptors in one message.
pub const DESCRIPTORS_MAX: usize = 8;

/// Allows every user to connect to the socket that was bound to `path`. Changes nothing if another user has meanwhile
/// replaced the socket by a link or anything else.
///
/// # Errors
/// The kernel's error; `InvalidInput` if there is no socket at the path. This needs /proc.
pub fn open_to_all(path: &Path) -> io::Result<()> {
    let there = File::options().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)?;
    if !there.metadata()?.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path does not lead to a socket"));
    }
    fs::set_permissions(format!("/proc/self/fd/{}", there.as_raw_fd()), fs::Permissions::from_mode(0o666))
}

/// Opens a file for locking, and creates it if it is missing. No other user may open it, because a user who can open it
/// could hold the lock. Does not follow a link.
///
/// # Errors
/// The kernel's error: `ELOOP` if the path is a link.
pub fn lock_file(path: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).write(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// The process on the other side of a socket. The data is from the moment when that process listened or connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The process ID; 0 if the process is in a container that this one cannot see.
    pub pid: u32,
    /// The effective user of the process.
    pub uid: u32,
}

/// Sends one byte, and with it these descriptors, without blocking.
///
/// # Errors
/// The kernel's error: `EPIPE` if the other side is closed, `EAGAIN` if it has left too many messages unread.
///
/// # Panics
/// If there are more than [`DESCRIPTORS_MAX`] descriptors.
pub fn send(socket: &UnixStream, byte: u8, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    assert!(descriptors.len() <= DESCRIPTORS_MAX);
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    // Cannot fail: the control buffer has room for this many descriptors.
    let _ = descriptors.is_empty() || control.push(SendAncillaryMessage::ScmRights(descriptors));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    net::sendmsg(socket, &[IoSlice::new(&[byte])], &mut control, flags)?;
    Ok(())
}

/// Receives one byte and the descriptors that were sent with it; `None` if the other side is closed.
///
/// # Errors
/// The kernel's error: `EAGAIN` after the socket's timeout.
pub fn receive(socket: &UnixStream) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = net::recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptors = descriptors.flatten().collect();
    Ok((got.bytes == 1).then_some((byte[0], descriptors)))
}

/// Returns the process on the other side of the socket. Does not use rustix, which does not support a process ID of 0.
///
/// # Errors
/// The kernel's error.
pub fn peer(socket: &UnixStream) -> io::Result<Peer> {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    // SAFETY: the kernel writes at most `bytes` to `credentials`.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut credentials).cast(), &raw mut bytes) };
    check(result)?;
    Ok(Peer { pid: credentials.pid.cast_unsigned(), uid: credentials.uid })
}

/// Returns whether the other side is closed. The kernel closes it when the process on that side dies.
#[must_use]
pub fn is_hung_up(socket: &UnixStream) -> bool {
    let mut one = [PollFd::new(socket, PollFlags::RDHUP)];
    poll(&mut one, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

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
        assert_eq!(peer(&ours).unwrap(), Peer { pid, uid: rustix::process::geteuid().as_raw() });
        drop(theirs);
        // A process that another test starts has a copy of the socket for a moment, until it has executed its program.
        crate::testing::wait_until("the end is noticed", || is_hung_up(&ours));
        assert_eq!(send(&ours, 1, &[]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(receive(&ours).unwrap().is_none());
    }

    #[test]
    fn one_who_does_not_read_holds_nobody_up() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let full = (0..1_000_000).find_map(|_| send(&ours, 1, &[]).err()).unwrap();
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
    }
}
