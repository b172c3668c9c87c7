//! Descriptors that a child would inherit.

use std::io;

/// Marks every descriptor from 3 on as closed in programs that this process starts. Standard input, output and error
/// are not changed. A daemon that starts from another program needs this: the caller of that program may wait until all
/// copies of its pipes and locks are closed.
///
/// # Errors
/// The kernel's error, on a Linux without /proc that is older than 5.11; `Unsupported` on other systems.
pub fn close_on_exec() -> io::Result<()> {
    imp::close_on_exec()
}

#[cfg(target_os = "linux")]
mod imp {
    use std::{fs, io};

    use crate::syscall::check;

    pub fn close_on_exec() -> io::Result<()> {
        // SAFETY: the call changes a flag of descriptors and closes none. The arguments are numbers.
        let marked = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
        check(marked).or_else(|_| one_by_one())
    }

    /// Does the same on a kernel that does not know `close_range` or its flag.
    fn one_by_one() -> io::Result<()> {
        for entry in fs::read_dir("/proc/self/fd")? {
            let number = entry?.file_name().to_str().and_then(|name| name.parse().ok());
            if let Some(number) = number.filter(|number: &libc::c_int| *number > 2) {
                // SAFETY: as above. The descriptor of the folder itself has the flag already.
                check(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })?;
            }
        }
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    pub fn close_on_exec() -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

    use crate::testing::alone;

    #[test]
    fn a_child_inherits_no_descriptor() {
        alone(|| {
            let file = File::open("/dev/null").unwrap();
            assert!(file.as_raw_fd() > 2);
            fcntl_setfd(&file, FdFlags::empty()).unwrap();
            super::close_on_exec().unwrap();
            assert_eq!(fcntl_getfd(&file).unwrap(), FdFlags::CLOEXEC);
        });
    }
}
