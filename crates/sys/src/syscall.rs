//! Helpers for direct system calls: the check of their results, and socket options that rustix does not support.

use std::io;

/// Checks the result of a system call: unless it is 0, returns the error that the call has put into `errno`.
pub(crate) fn check(result: impl Into<i64>) -> io::Result<()> {
    if result.into() == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets an option of a socket to the bytes of `value`. `level` is the protocol to which the option belongs.
#[cfg(all(feature = "network", target_os = "linux"))]
pub(crate) fn set_socket_option(
    socket: impl std::os::fd::AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &[u8],
) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let (descriptor, length) = (socket.as_fd().as_raw_fd(), value.len() as libc::socklen_t);
    // SAFETY: the kernel reads as many bytes as the slice has.
    check(unsafe { libc::setsockopt(descriptor, level, option, value.as_ptr().cast(), length) })
}
