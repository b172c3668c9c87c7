//! The width of a terminal.

use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

/// Returns the current number of columns of the terminal behind a descriptor; `None` if it is not a terminal, or the
/// terminal does not know its width.
///
/// ```
/// assert_eq!(ascertain_sys::terminal::columns(&std::io::pipe().unwrap().0), None);
/// ```
pub fn columns(terminal: impl AsFd) -> Option<u16> {
    let size = tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}
