//! Child processes that do not outlive this process. Linux only.

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

/// Makes the kernel send SIGTERM to the command when the thread that starts the command ends. So the command ends too,
/// in whatever way this process ends. At SIGTERM, the command may first end its own children.
pub fn tether(command: &mut Command) {
    let parent = getpid();
    let tie = move || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // The parent may have ended before the call above.
        if getppid() == Some(parent) { Ok(()) } else { Err(Errno::CANCELED.into()) }
    };
    // SAFETY: between fork and exec there are only system calls: the closure neither allocates nor locks.
    unsafe { command.pre_exec(tie) };
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn a_child_ends_with_the_thread_that_started_it() {
        let start = || {
            let mut command = Command::new("sleep");
            tether(command.arg("1000"));
            let mut child = command.spawn().unwrap();
            assert_eq!(child.try_wait().unwrap(), None, "not before");
            child
        };
        let mut child = std::thread::spawn(start).join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(15));
    }
}
