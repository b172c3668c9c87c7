//! Small programs that the kernel runs when one of its events occurs: bpf(2) without a library. Needs Linux 5.11.
//!
//! A program consists of [`Instruction`]s and may write to a [`Map`], which processes read by mapping it. Before the
//! kernel accepts a program, it checks that the program ends, and that it accesses only its maps and the arguments of
//! the event. Attaching a program needs `CAP_BPF` and `CAP_PERFMON`, or root.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The registers of a BPF program that this module supports. Calls of the kernel's functions preserve `R6` to `R8`.
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

/// One instruction of a BPF program, in the kernel's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    /// The operation code, one of the constants in [`code`].
    pub code: u8,
    /// The numbers of two registers: the source register in the upper four bits, the destination register in the lower
    /// four.
    pub registers: u8,
    /// The offset from an address, in bytes; for a jump, the number of instructions to skip.
    pub offset: i16,
    /// The constant that the operation uses, if its source is not a register.
    pub immediate: i32,
}

/// A function of the kernel that a program may call. The result of the call is in `R0`, and the value of `R1` is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Helper {
    /// Returns `CLOCK_MONOTONIC` in nanoseconds. While the rate of this clock is being corrected, the value may be
    /// wrong by about a microsecond.
    Nanoseconds = 5,
    /// Returns the number of the CPU on which the program runs.
    Cpu = 8,
}

/// The operation codes, from the kernel's include/uapi/linux/bpf.h. A code combines a class, an operation, and the kind
/// of the source operand.
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

    /// Copies a register: `to = from`.
    pub const fn copy(to: Register, from: Register) -> Self {
        Self::new(code::MOVE, to, from, 0, 0)
    }

    /// Sets a register to a constant: `to = value`.
    pub const fn set(to: Register, value: i32) -> Self {
        Self::new(code::SET, to, Register::R0, 0, value)
    }

    /// Adds a register: `to += from`.
    pub const fn add(to: Register, from: Register) -> Self {
        Self::new(code::ADD, to, from, 0, 0)
    }

    /// Adds a constant: `to += value`.
    pub const fn add_immediate(to: Register, value: i32) -> Self {
        Self::new(code::ADD_IMMEDIATE, to, Register::R0, 0, value)
    }

    /// Shifts a register left: `to <<= bits`.
    pub const fn shift_left(to: Register, bits: i32) -> Self {
        Self::new(code::SHIFT_LEFT, to, Register::R0, 0, bits)
    }

    /// Loads from memory: `to = *(u64 *)(address + offset)`.
    pub const fn load(to: Register, address: Register, offset: i16) -> Self {
        Self::new(code::LOAD, to, address, offset, 0)
    }

    /// Stores to memory: `*(u64 *)(address + offset) = from`.
    pub const fn store(address: Register, offset: i16, from: Register) -> Self {
        Self::new(code::STORE, address, from, offset, 0)
    }

    /// Adds to memory atomically: `*(u64 *)(address + offset) += from`.
    pub const fn atomic_add(address: Register, offset: i16, from: Register) -> Self {
        Self::new(code::ATOMIC_ADD, address, from, offset, 0)
    }

    /// Skips the next `instructions` instructions if `register >= value`.
    pub const fn jump_if_at_least(register: Register, value: i32, instructions: i16) -> Self {
        Self::new(code::JUMP_IF_AT_LEAST, register, Register::R0, instructions, value)
    }

    /// Skips the next `instructions` instructions if the lower half of `register` is `value`.
    pub const fn jump_if_equal_32(register: Register, value: i32, instructions: i16) -> Self {
        Self::new(code::JUMP_IF_EQUAL_32, register, Register::R0, instructions, value)
    }

    /// Calls a function of the kernel.
    pub const fn call(helper: Helper) -> Self {
        Self::new(code::CALL, Register::R0, Register::R0, 0, helper as i32)
    }

    /// Ends the program; `R0` is its result.
    pub const fn exit() -> Self {
        Self::new(code::EXIT, Register::R0, Register::R0, 0, 0)
    }

    /// Sets `to` to the address of the first byte of the [`Map`] with this descriptor. Takes two instructions.
    #[must_use]
    pub fn load_address(to: Register, map: BorrowedFd<'_>) -> [Self; 2] {
        /// A value in place of the source register (`BPF_PSEUDO_MAP_VALUE`). With this value, the constant of the
        /// instruction is the descriptor of a map, and the instruction loads the address of the map's first byte.
        const MAP_VALUE: u8 = 2;
        let mut first = Self::new(code::LOAD_ADDRESS, to, Register::R0, 0, map.as_raw_fd());
        first.registers |= MAP_VALUE << 4;
        [first, Self { code: 0, registers: 0, offset: 0, immediate: 0 }]
    }
}

/// Memory that BPF programs write, and that processes can map to read it. It exists as long as a program, a mapping or
/// a descriptor uses it. Its size never changes.
#[derive(Debug)]
pub struct Map(OwnedFd);

/// A BPF program that the kernel has accepted.
#[derive(Debug)]
pub struct Program(OwnedFd);

impl Map {
    /// Creates a map of `bytes` bytes, which are all zero.
    ///
    /// # Errors
    /// `EPERM` if this process lacks the privilege; `EINVAL` from kernels before 5.5; `ENOSYS` without bpf(2).
    pub fn new(bytes: usize) -> io::Result<Self> {
        let [key_bytes, bytes, entries] = [4, u32::try_from(bytes).map_err(io::Error::other)?, 1];
        // SAFETY: the attributes are only numbers.
        unsafe { bpf_descriptor(MAP_CREATE, &mut [MAP_TYPE_ARRAY, key_bytes, bytes, entries, MMAPABLE, 0]) }.map(Self)
    }

    /// Prevents all processes from writing to the map from now on, also through its descriptor. BPF programs can still
    /// write to it.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn freeze(&self) -> io::Result<()> {
        // SAFETY: the attribute is only a number.
        unsafe { bpf(MAP_FREEZE, &mut (self.0.as_raw_fd() as u32)) }.map(drop)
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Program {
    /// Makes the kernel check and compile a program for raw tracepoints. When the program runs, `R1` points to the
    /// arguments of the event, eight bytes each.
    ///
    /// # Errors
    /// `EPERM` if this process lacks the privilege. If the kernel rejects the program, the error contains its message.
    pub fn new(instructions: &[Instruction]) -> io::Result<Self> {
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
        // SAFETY: the kernel reads that many instructions and a terminated text, and writes at most `log_bytes` to the
        // log; all three are alive.
        let loaded = unsafe { bpf_descriptor(PROG_LOAD, &mut attributes) };
        loaded.map(Self).map_err(|error| {
            let log = String::from_utf8_lossy(&log);
            // The last line of the log, apart from the verifier's statistics, is the reason.
            let message = log.split(['\n', '\0']).rfind(|line| !line.is_empty() && !line.starts_with("processed"));
            match message {
                Some(message) => io::Error::new(error.kind(), format!("{error}: {message}")),
                None => error,
            }
        })
    }

    /// Runs the program at each event of this name, until the returned descriptor is closed.
    ///
    /// # Errors
    /// `ENOENT` if the kernel does not have an event of this name.
    pub fn attach(&self, event: &str) -> io::Result<OwnedFd> {
        let name = CString::new(event)?;
        let program = self.0.as_raw_fd() as u32;
        // SAFETY: the kernel reads a terminated text, which is alive.
        unsafe {
            bpf_descriptor(RAW_TRACEPOINT_OPEN, &mut Attach { name: name.as_ptr().addr() as u64, program, unused: 0 })
        }
    }

    /// Runs the program now, on the CPU of the calling thread.
    ///
    /// # Errors
    /// `EINVAL` from kernels before 5.10.
    pub fn run_here(&self) -> io::Result<()> {
        self.run(None)
    }

    /// Interrupts the CPU, runs the program on it, and returns when the program has run. Returns `false` if the CPU is
    /// offline, or if the machine has no CPU with this number.
    ///
    /// # Errors
    /// `EINVAL` from kernels before 5.10. For an offline CPU this returns `Ok(false)`, never an error.
    pub fn run_on(&self, cpu: u32) -> io::Result<bool> {
        match self.run(Some(cpu)) {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(false),
            ran => ran.map(|()| true),
        }
    }

    fn run(&self, cpu: Option<u32>) -> io::Result<()> {
        let flags = if cpu.is_some() { RUN_ON_CPU } else { 0 };
        let program = self.0.as_raw_fd() as u32;
        let mut attributes = Run { program, flags, cpu: cpu.unwrap_or(0), ..Run::default() };
        // SAFETY: the attributes are numbers only; the addresses are null, and the lengths of the data at them are
        // zero.
        unsafe { bpf(PROG_TEST_RUN, &mut attributes) }.map(drop)
    }
}

/// Makes the kernel measure the run time of each BPF program, until the returned descriptor is closed. The `fdinfo` of
/// a program's descriptor shows the total run time as `run_time_ns`.
///
/// # Errors
/// `EPERM` if this process lacks `CAP_SYS_ADMIN`; `EINVAL` from kernels before 5.8; `ENOSYS` without bpf(2).
pub fn count_run_time() -> io::Result<OwnedFd> {
    // SAFETY: the attribute is only a number.
    unsafe { bpf_descriptor(ENABLE_STATS, &mut { STATS_RUN_TIME }) }
}

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

#[repr(C)]
struct Attach {
    name: u64,
    program: u32,
    unused: u32,
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

/// Calls bpf(2) with a command and its attributes. Returns the result of the call, such as a descriptor.
///
/// # Safety
/// `attributes` is what the command expects, and its addresses are valid for the command.
unsafe fn bpf<T>(command: i32, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes of `attributes` and may write to them; the caller ensures the
    // rest.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer as i32) }
}

/// Calls [`bpf`] with a command that creates a descriptor.
///
/// # Safety
/// The conditions of [`bpf`].
unsafe fn bpf_descriptor<T>(command: i32, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller ensures the conditions of `bpf`; the kernel has just created the descriptor for this process.
    unsafe { bpf(command, attributes).map(|fd| OwnedFd::from_raw_fd(fd)) }
}
