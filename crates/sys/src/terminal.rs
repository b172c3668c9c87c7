//! What the terminal can show.

use std::os::fd::{AsFd, AsRawFd};

/// How many columns the terminal behind a descriptor has, as it is now; none where there is no terminal, or it does not
/// know. Not by rustix, whose terminals are much more than this call.
///
/// ```
/// assert_eq!(ascertain_sys::terminal::columns(&std::io::pipe().unwrap().0), None);
/// ```
pub fn columns(terminal: impl AsFd) -> Option<u16> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the call writes a `winsize`, or nothing.
    let answer = unsafe { libc::ioctl(terminal.as_fd().as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    (answer == 0 && size.ws_col > 0).then_some(size.ws_col)
}
