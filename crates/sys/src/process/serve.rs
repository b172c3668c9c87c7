//! The launcher's own life.
//!
//! It runs in a copy of a process that may have had other threads, and with most of its memory
//! given back: it must not allocate, lock or panic, and does little but call the kernel. What fails there
//! is left as it was, for nobody could be told.

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

/// Gets ready, then starts the command at each request until the process that made it ends.
///
/// # Safety
///
/// To be called in the copy of a process, with `control` shared with the original.
pub(super) unsafe fn serve(control: &Control, request: BorrowedFd<'_>, parent: BorrowedFd<'_>) -> ! {
    let _ = setpgid(None, None);
    reset_signals();
    let _ = set_name(c"ascertain-start");
    // SAFETY: this is the copy, says the caller.
    unsafe { discard(control) };
    loop {
        control.replies.fetch_add(1, Ordering::Release);
        futex::wake_one(&control.replies, Scope::Machine);
        let mut events = [request, parent].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        while events.iter().all(|event| event.revents().is_empty()) {
            let _ = poll(&mut events, None);
        }
        if !events[1].revents().is_empty() {
            // A command that is still running would never be waited for.
            if let Some(pid) = Pid::from_raw(control.pid.load(Ordering::Acquire)) {
                let _ = kill_process_group(pid, Signal::KILL);
            }
            exit(0);
        }
        if read(request, &mut [0; 8]) != Ok(8) {
            exit(1); // Our process has closed what it did not open.
        }
        launch(control);
    }
}

fn exit(code: c_int) -> ! {
    // SAFETY: no conditions.
    unsafe { libc::_exit(code) }
}

/// Signals as a command expects them. Those that our own starter ignored stay ignored, as with
/// `nohup`, except SIGPIPE, which Rust ignores. SIGTTIN and SIGTTOU are ignored: a command in the
/// background of a terminal would be stopped by them for ever.
fn reset_signals() {
    // SAFETY: the set is plain data for which zeros are valid, and mean the empty one; the pointer is to a local. No
    // signal gets a handler.
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

/// Those of the kernel.
const SIGNALS: c_int = 64;

/// What is done at a signal so far, and sets it. By the kernel's own call: musl's function takes a lock, which another
/// thread of our process may have held when the copy was made.
unsafe fn action(signal: c_int, new: Option<libc::sighandler_t>) -> libc::sighandler_t {
    // The kernel's `sigaction`: the handler first; then flags, a restorer and a set of signals, which are all zero
    // here.
    let (new, mut old) = (new.map(|handler| [handler, 0, 0, 0, 0]), [0; 5]);
    let given = new.as_ref().map_or(ptr::null(), |new| new.as_ptr());
    // SAFETY: it is at most five words on 32 bits and four on 64; what is there lives. Numbers that can't be
    // changed are refused by the kernel, which is as well.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, given, old.as_mut_ptr(), SIGNALS / 8) };
    old[0]
}

/// Gives back the memory that was copied from our process, and forgets how much it was.
///
/// # Safety
///
/// To be called in the copy of a process, which uses nothing that was in that memory any more.
unsafe fn discard(control: &Control) {
    // SAFETY: the ranges are in `control`'s mapping, which is shared and so not among them. What
    // they cover is not used any more, says the caller: the stack and the thread's own memory around what
    // is in use were left out, and code, constants and statics belong to files.
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

/// Makes the process that becomes the command, and notes it in `control`.
fn launch(control: &Control) {
    control.error.store(0, Ordering::Relaxed);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PARENT;
    let argument = ptr::from_ref(control).cast_mut().cast();
    let start_ns = clock::now_ns();
    // SAFETY: `stack_top` is the upper end of a stack that nothing else uses, for CLONE_VFORK keeps
    // us from going on until the new process has left it; `become_command` casts the argument back.
    let pid = unsafe { libc::clone(become_command, control.stack_top, flags, argument) };
    if pid < 0 {
        // SAFETY: the pointer is that of this thread's errno.
        control.error.store(unsafe { *libc::__errno_location() }, Ordering::Relaxed);
    }
    control.start_ns.store(start_ns, Ordering::Relaxed);
    control.pid.store(pid.max(0), Ordering::Release);
}

/// In the new process, which still shares the launcher's memory.
extern "C" fn become_command(control: *mut c_void) -> c_int {
    // SAFETY: `launch` passes a Control that outlives this call. The calls get pointers that the
    // Control says are strings and lists as `execve` needs them.
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
