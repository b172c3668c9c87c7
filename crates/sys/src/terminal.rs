//! What the terminal can show.

use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

/// How many columns the terminal behind a descriptor has, as it is now; none where there is no terminal, or it does not
/// know.
///
/// ```
/// assert_eq!(ascertain_sys::terminal::columns(&std::io::pipe().unwrap().0), None);
/// ```
pub fn columns(terminal: impl AsFd) -> Option<u16> {
    let size = tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}
