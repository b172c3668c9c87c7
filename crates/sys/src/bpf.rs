//! Small programs that the kernel runs at its own events: raw bpf(2), Linux 5.11.
//!
//! A program is given as [`Instruction`]s and may write to a [`Map`], which processes read by mapping it. The kernel
//! checks that it ends and touches nothing else before it accepts it. Attaching it needs `CAP_BPF` and `CAP_PERFMON`,
//! or root.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A program's registers, as far as programs here use them. Calls of the kernel's functions leave `R6` to `R8` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
#[repr(u8)]
pub enum Register {
    R0,
    R1,
    R6 = 6,
    R7,
    R8,
}

/// One instruction as the kernel reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    /// What it does.
    pub code: u8,
    /// The source in the upper half, the destination in the lower one.
    pub registers: u8,
    /// Bytes from an address, or instructions to jump over.
    pub offset: i16,
    /// A number that is part of the instruction.
    pub immediate: i32,
}

/// A function of the kernel that a program may call; what it gives is in `R0` afterwards, and `R1` is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Helper {
    /// `CLOCK_MONOTONIC` in nanoseconds, within a microsecond or so while its rate is being corrected.
    Nanoseconds = 5,
    /// The CPU that the program runs on.
    Cpu = 8,
}

/// The instructions' codes, from the kernel's include/uapi/linux/bpf.h: a class, an operation, and where from.
#[allow(missing_docs)]
pub mod code {
    pub const MOVE: u8 = 0xbf;
    pub const SET: u8 = 0xb7;
    pub const ADD: u8 = 0x0f;
    pub const ADD_IMMEDIATE: u8 = 0x07;
    pub const SHIFT_LEFT: u8 = 0x67;
    pub const LOAD: u8 = 0x79;
    pub const STORE: u8 = 0x7b;
    pub const ATOMIC_ADD: u8 = 0xdb;
    pub const LOAD_ADDRESS: u8 = 0x18;
    pub const JUMP_IF_AT_LEAST: u8 = 0x35;
    pub const JUMP_IF_EQUAL_32: u8 = 0x16;
    pub const CALL: u8 = 0x85;
    pub const EXIT: u8 = 0x95;
}

impl Instruction {
    const fn new(code: u8, to: Register, from: Register, offset: i16, immediate: i32) -> Self {
        Self { code, registers: (from as u8) << 4 | to as u8, offset, immediate }
    }

    /// `to = from`.
    pub const fn copy(to: Register, from: Register) -> Self {
        Self::new(code::MOVE, to, from, 0, 0)
    }

    /// `to = value`.
    pub const fn set(to: Register, value: i32) -> Self {
        Self::new(code::SET, to, Register::R0, 0, value)
    }

    /// `to += from`.
    pub const fn add(to: Register, from: Register) -> Self {
        Self::new(code::ADD, to, from, 0, 0)
    }

    /// `to += value`.
    pub const fn add_immediate(to: Register, value: i32) -> Self {
        Self::new(code::ADD_IMMEDIATE, to, Register::R0, 0, value)
    }

    /// `to <<= bits`.
    pub const fn shift_left(to: Register, bits: i32) -> Self {
        Self::new(code::SHIFT_LEFT, to, Register::R0, 0, bits)
    }

    /// `to = *(u64 *)(address + offset)`.
    pub const fn load(to: Register, address: Register, offset: i16) -> Self {
        Self::new(code::LOAD, to, address, offset, 0)
    }

    /// `*(u64 *)(address + offset) = from`.
    pub const fn store(address: Register, offset: i16, from: Register) -> Self {
        Self::new(code::STORE, address, from, offset, 0)
    }

    /// `*(u64 *)(address + offset) += from`, as one step to everybody else.
    pub const fn atomic_add(address: Register, offset: i16, from: Register) -> Self {
        Self::new(code::ATOMIC_ADD, address, from, offset, 0)
    }

    /// Jumps over `instructions` if `register >= value`.
    pub const fn jump_if_at_least(register: Register, value: i32, instructions: i16) -> Self {
        Self::new(code::JUMP_IF_AT_LEAST, register, Register::R0, instructions, value)
    }

    /// Jumps over `instructions` if the lower half of `register` is `value`.
    pub const fn jump_if_equal_32(register: Register, value: i32, instructions: i16) -> Self {
        Self::new(code::JUMP_IF_EQUAL_32, register, Register::R0, instructions, value)
    }

    /// Calls a function of the kernel.
    pub const fn call(helper: Helper) -> Self {
        Self::new(code::CALL, Register::R0, Register::R0, 0, helper as i32)
    }

    /// Ends the program with what is in `R0`.
    pub const fn exit() -> Self {
        Self::new(code::EXIT, Register::R0, Register::R0, 0, 0)
    }

    /// `to` = the address of the bytes of the [`Map`] with that descriptor: two instructions.
    #[must_use]
    pub fn load_address(to: Register, map: BorrowedFd<'_>) -> [Self; 2] {
        /// The immediate is the descriptor of a map whose bytes are meant.
        const MAP_VALUE: u8 = 2;
        let mut first = Self::new(code::LOAD_ADDRESS, to, Register::R0, 0, map.as_raw_fd());
        first.registers |= MAP_VALUE << 4;
        [first, Self { code: 0, registers: 0, offset: 0, immediate: 0 }]
    }
}

/// Bytes that programs write and processes map to read; they live while a program, a mapping or a descriptor uses
/// them, and their number never changes.
#[derive(Debug)]
pub struct Map(OwnedFd);

/// A program that the kernel has accepted.
#[derive(Debug)]
pub struct Program(OwnedFd);

impl Map {
    /// `bytes` of zeros.
    ///
    /// # Errors
    /// `EPERM` without the privilege; `EINVAL` from kernels before 5.5; `ENOSYS` without bpf(2).
    pub fn new(bytes: usize) -> io::Result<Self> {
        imp::map(u32::try_from(bytes).map_err(io::Error::other)?).map(Self)
    }

    /// From now on no process may write to the map, whoever has its descriptor: programs only.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn freeze(&self) -> io::Result<()> {
        imp::freeze(self.as_fd())
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Program {
    /// Has the kernel check and compile a program for raw tracepoints: `R1` points to the event's arguments, eight
    /// bytes each.
    ///
    /// # Errors
    /// `EPERM` without the privilege; what the kernel has against the program, with its words.
    pub fn new(instructions: &[Instruction]) -> io::Result<Self> {
        imp::load(instructions).map(Self)
    }

    /// Runs the program at each such event, for as long as somebody holds the descriptor.
    ///
    /// # Errors
    /// `ENOENT` if the kernel has no such event.
    pub fn attach(&self, event: &str) -> io::Result<OwnedFd> {
        imp::attach(self.0.as_fd(), event)
    }

    /// Runs the program now, on the CPU of the caller.
    ///
    /// # Errors
    /// `EINVAL` from kernels before 5.10.
    pub fn run_here(&self) -> io::Result<()> {
        imp::run(self.0.as_fd(), None)
    }

    /// Interrupts that CPU and runs the program there, and returns when it ran; false if the CPU is offline, or the
    /// machine has none of that number, for which the kernel says `ENXIO`.
    ///
    /// # Errors
    /// `EINVAL` from kernels before 5.10. Whatever it is, it does not say that the CPU is offline.
    pub fn run_on(&self, cpu: u32) -> io::Result<bool> {
        match imp::run(self.0.as_fd(), Some(cpu)) {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(false),
            ran => ran.map(|()| true),
        }
    }
}

/// The kernel counts how long it runs each program (`run_time_ns` in the `fdinfo` of its descriptor), from now on for
/// as long as somebody holds the descriptor.
///
/// # Errors
/// `EPERM` without the privilege (`CAP_SYS_ADMIN`); `EINVAL` from kernels before 5.8; `ENOSYS` without bpf(2).
pub fn count_run_time() -> io::Result<OwnedFd> {
    imp::count_run_time()
}

mod imp {
    use super::*;

    // Commands and flags from the kernel's include/uapi/linux/bpf.h.
    const MAP_CREATE: i32 = 0;
    const PROG_LOAD: i32 = 5;
    const PROG_TEST_RUN: i32 = 10;
    const RAW_TRACEPOINT_OPEN: i32 = 17;
    const MAP_FREEZE: i32 = 22;
    const ENABLE_STATS: i32 = 32;
    const MAP_TYPE_ARRAY: u32 = 2;
    const PROG_TYPE_RAW_TRACEPOINT: u32 = 17;
    const MMAPABLE: u32 = 1 << 10;
    const RUN_ON_CPU: u32 = 1;
    const STATS_RUN_TIME: u32 = 0;

    /// # Safety
    /// `attributes` is what the command takes, and its addresses are valid for it.
    unsafe fn bpf<T>(command: i32, attributes: &mut T) -> io::Result<i32> {
        // SAFETY: the kernel reads `size_of::<T>()` bytes of `attributes` and may write to them; the rest is the
        // caller's.
        let answer = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>()) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer as i32) }
    }

    fn owned(fd: i32) -> OwnedFd {
        // SAFETY: the kernel has just made it for us.
        unsafe { OwnedFd::from_raw_fd(fd) }
    }

    pub fn map(bytes: u32) -> io::Result<OwnedFd> {
        let [key_bytes, entries] = [4, 1];
        let mut attributes = [MAP_TYPE_ARRAY, key_bytes, bytes, entries, MMAPABLE, 0];
        // SAFETY: numbers only.
        unsafe { bpf(MAP_CREATE, &mut attributes) }.map(owned)
    }

    pub fn freeze(map: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: a number only.
        unsafe { bpf(MAP_FREEZE, &mut (map.as_raw_fd() as u32)) }.map(drop)
    }

    #[repr(C)]
    struct Load {
        program_type: u32,
        instructions: u32,
        first: u64,
        license: u64,
        log_level: u32,
        log_bytes: u32,
        log: u64,
    }

    pub fn load(instructions: &[Instruction]) -> io::Result<OwnedFd> {
        let mut log = vec![0_u8; 16 << 10];
        let mut attributes = Load {
            program_type: PROG_TYPE_RAW_TRACEPOINT,
            instructions: instructions.len() as u32,
            first: instructions.as_ptr().addr() as u64,
            license: c"MIT".as_ptr().addr() as u64,
            log_level: 1,
            log_bytes: log.len() as u32,
            log: log.as_mut_ptr().expose_provenance() as u64,
        };
        // SAFETY: the kernel reads so many instructions and a text that ends, and writes at most `log_bytes` to the
        // log; all three live.
        let loaded = unsafe { bpf(PROG_LOAD, &mut attributes) };
        loaded.map(owned).map_err(|error| {
            let log = String::from_utf8_lossy(&log);
            // The last line that is not the verifier's statistics.
            let said = log.split(['\n', '\0']).rfind(|line| !line.is_empty() && !line.starts_with("processed"));
            match said {
                Some(said) => io::Error::new(error.kind(), format!("{error}: {said}")),
                None => error,
            }
        })
    }

    #[repr(C)]
    struct Attach {
        name: u64,
        program: u32,
        unused: u32,
    }

    pub fn attach(program: BorrowedFd<'_>, event: &str) -> io::Result<OwnedFd> {
        let name = std::ffi::CString::new(event)?;
        let mut attributes =
            Attach { name: name.as_ptr().addr() as u64, program: program.as_raw_fd() as u32, unused: 0 };
        // SAFETY: the kernel reads a text that ends and lives.
        unsafe { bpf(RAW_TRACEPOINT_OPEN, &mut attributes) }.map(owned)
    }

    #[repr(C)]
    #[derive(Default)]
    struct Run {
        program: u32,
        result: u32,
        data: [u32; 2],
        addresses: [u64; 2],
        repeat: u32,
        duration: u32,
        context_bytes: [u32; 2],
        contexts: [u64; 2],
        flags: u32,
        cpu: u32,
    }

    pub fn run(program: BorrowedFd<'_>, cpu: Option<u32>) -> io::Result<()> {
        let flags = if cpu.is_some() { RUN_ON_CPU } else { 0 };
        let mut attributes =
            Run { program: program.as_raw_fd() as u32, flags, cpu: cpu.unwrap_or(0), ..Run::default() };
        // SAFETY: numbers only; the addresses are null, and lengths of what is there are zero.
        unsafe { bpf(PROG_TEST_RUN, &mut attributes) }.map(drop)
    }

    pub fn count_run_time() -> io::Result<OwnedFd> {
        // SAFETY: a number only.
        unsafe { bpf(ENABLE_STATS, &mut { STATS_RUN_TIME }) }.map(owned)
    }
}
