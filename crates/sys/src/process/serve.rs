//! The code that runs in the launcher.
//!
//! The launcher is a copy of a process that may have had other threads, and most of its memory is released. So it must
//! not allocate, lock or panic, and it executes little more than system calls. It ignores errors that it cannot report
//! to any process.

use std::ffi::{c_int, c_void};
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::{mem, ptr, slice};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{read, write};
use rustix::mm::{Advice, madvise};
use rustix::process::{Pid, Signal, kill_process_group, setpgid};
use rustix::thread::set_name;

use super::image::Control;
use crate::clock;
use crate::futex::{self, Scope};

/// Prepares the launcher, then starts the command at each request until the process that created the launcher ends.
///
/// # Safety
///
/// Must be called in the copy of a process, with `control` shared with the original.
pub(super) unsafe fn serve(control: &Control, request: BorrowedFd<'_>, parent: BorrowedFd<'_>) -> ! {
    let _ = setpgid(None, None);
    reset_signals();
    let _ = set_name(c"ascertain-start");
    // SAFETY: the caller ensures that this is the copy.
    unsafe { discard(control) };
    loop {
        control.replies.fetch_add(1, Ordering::Release);
        futex::wake_one(&control.replies, Scope::Machine);
        let mut events = [request, parent].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        while events.iter().all(|event| event.revents().is_empty()) {
            let _ = poll(&mut events, None);
        }
        if !events[1].revents().is_empty() {
            // The process that created the launcher has ended. A command that is still running is killed, because no
            // process would wait for it.
            if let Some(pid) = Pid::from_raw(control.pid.load(Ordering::Acquire)) {
                let _ = kill_process_group(pid, Signal::KILL);
            }
            exit(0);
        }
        if read(request, &mut [0; 8]) != Ok(8) {
            exit(1); // The creator, which shares its descriptors with this process, has closed the eventfd by mistake.
        }
        launch(control);
    }
}

fn exit(code: c_int) -> ! {
    // SAFETY: the call has no conditions.
    unsafe { libc::_exit(code) }
}

/// Sets the signals to the state that a command expects. Signals that were already ignored stay ignored, as with
/// `nohup`. Only SIGPIPE gets its default action again, because it is Rust that ignores it in this process. SIGTTIN and
/// SIGTTOU are ignored, because they would stop a command in the background of a terminal for ever.
fn reset_signals() {
    // SAFETY: the set is plain data for which zeros are valid and mean the empty set; the pointer is to a local
    // variable. No signal gets a handler.
    unsafe {
        for signal in 1..=SIGNALS {
            if action(signal, None) != libc::SIG_IGN || signal == libc::SIGPIPE {
                action(signal, Some(libc::SIG_DFL));
            }
        }
        action(libc::SIGTTIN, Some(libc::SIG_IGN));
        action(libc::SIGTTOU, Some(libc::SIG_IGN));
        let none: libc::sigset_t = mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Number of signals that the Linux kernel has, one bit each in its sets of signals.
const SIGNALS: c_int = 64;

/// Returns the current action of a signal, and sets a new one if given. Uses the kernel's call, because the function of
/// musl takes a lock. Another thread of the original process may have held that lock when the copy was made.
unsafe fn action(signal: c_int, new: Option<libc::sighandler_t>) -> libc::sighandler_t {
    // The kernel's `sigaction` consists of the handler, then the flags, a restorer and a set of signals, which are all
    // zero here.
    let (new, mut old) = (new.map(|handler| [handler, 0, 0, 0, 0]), [0; 5]);
    let given = new.as_ref().map_or(ptr::null(), |new| new.as_ptr());
    // SAFETY: the structure has at most five words on 32 bits and four on 64 bits, and the arrays are alive. The kernel
    // refuses signals whose action cannot be changed, which does no harm.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, given, old.as_mut_ptr(), SIGNALS / 8) };
    old[0]
}

/// Releases the memory that was copied from the original process, and resets the peak of resident memory.
///
/// # Safety
///
/// Must be called in the copy of a process that no longer uses anything in that memory.
unsafe fn discard(control: &Control) {
    // SAFETY: the list of ranges is in the mapping of `control`. That mapping is shared, so it is in none of the
    // ranges. The caller ensures that the memory in the ranges is no longer used. The parts of the stack and of the
    // thread's own memory around the addresses in use were left out. Code, constants and statics belong to files.
    unsafe {
        for range in slice::from_raw_parts(control.discard, control.discard_len) {
            let start = ptr::with_exposed_provenance_mut(range.start);
            let _ = madvise(start, range.end - range.start, Advice::LinuxDontNeed);
        }
    }
    if let Ok(file) = open(c"/proc/self/clear_refs", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
        // 5 resets the peak of resident memory (`CLEAR_REFS_MM_HIWATER_RSS`).
        let _ = write(file, b"5");
    }
}

/// Creates the process that executes the command, and stores its ID, or the error, in `control`.
fn launch(control: &Control) {
    control.error.store(0, Ordering::Relaxed);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PARENT;
    let argument = ptr::from_ref(control).cast_mut().cast();
    let start_ns = clock::now_ns();
    // SAFETY: `stack_top` is the upper end of a stack that nothing else uses, because CLONE_VFORK suspends this thread
    // until the new process has left it; `become_command` casts the argument back.
    let pid = unsafe { libc::clone(become_command, control.stack_top, flags, argument) };
    if pid < 0 {
        // SAFETY: the pointer is that of this thread's errno.
        control.error.store(unsafe { *libc::__errno_location() }, Ordering::Relaxed);
    }
    control.start_ns.store(start_ns, Ordering::Relaxed);
    control.pid.store(pid.max(0), Ordering::Release);
}

/// Executes the command in the new process, which still shares the launcher's memory.
extern "C" fn become_command(control: *mut c_void) -> c_int {
    // SAFETY: `launch` passes a Control that outlives this call. Its pointers are strings and lists in the form that
    // `execve` needs.
    unsafe {
        let control: &Control = &*control.cast();
        libc::setpgid(0, 0);
        for (target, stream) in (0..).zip(&control.streams) {
            let stream = stream.load(Ordering::Relaxed);
            if stream >= 0 {
                libc::dup2(stream, target);
            }
        }
        libc::execve(control.program, control.argv, control.envp);
        control.error.store(*libc::__errno_location(), Ordering::Relaxed);
        libc::_exit(127)
    }
}
