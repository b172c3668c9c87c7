//! A filter of system calls, like those of containers.

/// The command of membarrier(2) for all processes, from the kernel's include/uapi/linux/membarrier.h. The commands
/// below serve only this process.
pub const GLOBAL: u32 = 1 << 0;
pub const EXPEDITED: u32 = 1 << 3;
pub const EXPEDITED_RSEQ: u32 = 1 << 7;

/// Makes membarrier(2) return EPERM to the calling thread, and to threads that it starts from now on. Returns `false`
/// if the kernel does not support filters.
#[must_use]
pub fn forbid_membarrier() -> bool {
    forbid(None)
}

/// Forbids one command of membarrier(2), as [`forbid_membarrier`] does for all.
#[must_use]
pub fn forbid_command(command: u32) -> bool {
    forbid(Some(command))
}

fn forbid(command: Option<u32>) -> bool {
    const OF_COMMAND: u8 = 2;
    let statement = |code: u32, k| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let load = |offset| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset);
    let unless = |k, jf| libc::sock_filter { jf, ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k) };
    let answer = |k| statement(libc::BPF_RET | libc::BPF_K, k);
    // The offsets of the number of the call, and of the lower half of its first argument.
    let mut program = vec![load(0), unless(libc::SYS_membarrier as u32, 1 + command.map_or(0, |_| OF_COMMAND))];
    program.extend(command.into_iter().flat_map(|command| [load(16), unless(command, 1)]));
    program.extend([answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32), answer(libc::SECCOMP_RET_ALLOW)]);
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the arguments are plain numbers; the filter is read during the call, and has the given number of
    // statements.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
    }
}
