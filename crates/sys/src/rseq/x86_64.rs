//! The sequences for Linux on x86-64.
//!
//! Each is one block of assembly. It tells the kernel where the sequence's descriptor is (a store to the area, which
//! lies at a fixed distance from the thread's pointer in `fs`), reads the CPU's number, and ends in the one instruction
//! that commits. Descriptors lie in a section of their own, abort handlers out of the way behind the signature that the
//! kernel looks for before it jumps to one.

use std::arch::asm;
use std::ffi::CStr;
use std::mem::offset_of;
use std::num::NonZeroIsize;
use std::ptr::NonNull;
use std::sync::OnceLock;

use super::plain::STRIDE_SHIFT;
use super::stacks::{Slot, Stack};
use super::{Count, Outcome, Owned, Stacks, Unavailable, WORDS, Yielded};

/// Where the kernel keeps what a thread must know: as far from the thread's pointer in all threads. The first fields
/// have been there from the start: `cpu_id_start` (4 bytes), `cpu_id` (4), `rseq_cs` (8), `flags` (4).
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// From the thread's pointer, where something else is.
    offset: NonZeroIsize,
}

/// As long as the fields that have been there from the start.
const FIRST_FIELDS_BYTES: usize = 20;
/// From the kernel's include/uapi/linux/auxvec.h.
const AT_RSEQ_FEATURE_SIZE: libc::c_ulong = 27;

/// One sequence: `$body`, from the reading of the CPU's number to the commit, and what comes of an abort. Labels: 2 and
/// 3 begin and end it, 4 is the descriptor, 5 the abort handler, `$aborted`, which may have a 6 for other code out of
/// the way.
///
/// 0x53053053 is the signature that C libraries register with on x86; the bytes before it make of it the operand of
/// an undefined instruction. `ax` of a pushed section: allocated and executable, `aw`: allocated and writable, for
/// the linker's relocations.
macro_rules! sequence {
    ($area:expr, [$($body:expr,)*], aborted: [$($aborted:literal,)*], $($operands:tt)*) => {
        asm!(
            "lea {cpu}, [rip + 4f]",
            "mov qword ptr fs:[{area} + 8], {cpu}",
            "2:",
            $($body,)*
            "3:",
            ".pushsection __rseq_cs, \"aw\"",
            ".balign 32",
            "4:",
            ".long 0, 0",
            ".quad 2b, 3b - 2b, 5f",
            ".popsection",
            ".pushsection __rseq_failure, \"ax\"",
            ".byte 0x0f, 0xb9, 0x3d",
            ".long 0x53053053",
            "5:",
            $($aborted,)*
            ".popsection",
            area = in(reg) $area.offset.get(),
            $($operands)*
            options(nostack),
        )
    };
}

/// The CPU's number in `{cpu}`, times the stride; elsewhere, where there are not so many.
macro_rules! own {
    ($refused:literal) => {
        concat!(
            "mov {cpu:e}, dword ptr fs:[{area} + 4]\n",
            "cmp {cpu}, {end}\n",
            "jae ",
            $refused,
            "\n",
            "shl {cpu}, {shift}",
        )
    };
}

/// The sequences that depend on an order, one instruction a line: the assembler gets them, and the tests' model takes
/// them one by one.
macro_rules! text {
    (push) => {
        concat!(
            own!("{refused}"),
            "\n",
            // Before the top: once sequences are admitted again, the top is what their stopper left.
            "mov {limit}, qword ptr [{stacks} + {cpu} + {ceiling}]\n",
            "mov {slot}, qword ptr [{stacks} + {cpu} + {top}]\n",
            "cmp {slot}, {limit}\n",
            "jae {refused}\n",
            "mov qword ptr [{slot}], {item}\n",
            "add qword ptr [{stacks} + {cpu} + {top}], {slot_bytes}",
        )
    };
    (pop) => {
        concat!(
            own!("6f"),
            "\n",
            // Before the top, as in a push.
            "mov {limit}, qword ptr [{stacks} + {cpu} + {floor}]\n",
            "mov {item}, qword ptr [{stacks} + {cpu} + {top}]\n",
            "cmp {item}, {limit}\n",
            "jbe 6f\n",
            "mov {item}, qword ptr [{item} - {slot_bytes}]\n",
            "sub qword ptr [{stacks} + {cpu} + {top}], {slot_bytes}",
        )
    };
    (acquire) => {
        concat!(
            "mov {cpu:e}, dword ptr fs:[{area} + 4]\n",
            "cmp {cpu}, {end}\n",
            "jae 6f\n",
            "mov {at}, {cpu}\n",
            "shl {at}, {shift}\n",
            "mov {owner}, qword ptr [{owned} + {at} + {generation}]\n",
            "inc {owner}\n",
            "mov qword ptr [{owned} + {at} + {generation}], {owner}",
        )
    };
    (store) => {
        concat!(
            "cmp {wanted:e}, dword ptr fs:[{area} + 4]\n",
            "jne {refused}\n",
            "cmp {owner}, qword ptr [{generation}]\n",
            "jne {refused}\n",
            "mov qword ptr [{word}], {value}",
        )
    };
}

#[cfg(test)]
pub(super) const PUSH: &str = text!(push);
#[cfg(test)]
pub(super) const POP: &str = text!(pop);
#[cfg(test)]
pub(super) const ACQUIRE: &str = text!(acquire);
#[cfg(test)]
pub(super) const STORE: &str = text!(store);

impl Area {
    /// The area of this program's threads, if the C library registers them.
    ///
    /// # Errors
    /// Why there is none.
    pub fn find() -> Result<Self, Unavailable> {
        static FOUND: OnceLock<Result<Area, Unavailable>> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let offset = symbol::<isize>(c"__rseq_offset").ok_or(Unavailable::Library)?;
            // Zero bytes: the C library tried in vain, or was told not to.
            let is_registered = registered_bytes().ok_or(Unavailable::Library)? >= FIRST_FIELDS_BYTES;
            let area = NonZeroIsize::new(offset).filter(|_| is_registered).map(|offset| Area { offset });
            area.ok_or(Unavailable::Unregistered)
        })
    }

    /// How much of the area means something to both the C library (`__rseq_size`) and the kernel
    /// (`AT_RSEQ_FEATURE_SIZE`). 20 bytes are what there was from the start; `node_id` ends at 24, `mm_cid` at 28.
    #[must_use]
    pub fn feature_bytes(self) -> usize {
        // SAFETY: getauxval only looks something up.
        let kernel_bytes = unsafe { libc::getauxval(AT_RSEQ_FEATURE_SIZE) } as usize;
        registered_bytes().unwrap_or(FIRST_FIELDS_BYTES).min(kernel_bytes.max(FIRST_FIELDS_BYTES))
    }

    /// The CPU that the calling thread ran on a moment ago, by one load; none for a thread that is not registered.
    #[inline]
    #[must_use]
    pub fn cpu(self) -> Option<usize> {
        let cpu: i32;
        // SAFETY: reads the area's `cpu_id`, which every thread of the C library's has.
        unsafe {
            asm!(
                "mov {cpu:e}, dword ptr fs:[{area} + 4]",
                cpu = out(reg) cpu,
                area = in(reg) self.offset.get(),
                options(nostack, readonly, preserves_flags),
            );
        }
        usize::try_from(cpu).ok()
    }

    /// Adds to the count of the CPU that the thread is on. Refused where that CPU has none.
    #[inline]
    pub fn add(self, counts: &[Count], delta: u64) -> Outcome {
        // SAFETY: the contract of the block: it writes the area's `rseq_cs`, and if anything one `Count`, that of the
        // CPU that it runs on, with an index below `counts.len()` (a thread that is not registered has -1 or -2, which
        // as unsigned is above); it adds `delta` to it, in one instruction, which is its last. `Count` is atomic in
        // Rust, and an aligned 8-byte access of one CPU is a relaxed one. No registers but those named, no stack.
        unsafe {
            sequence!(
                self,
                [
                    own!("{refused}"),
                    "add qword ptr [{counts} + {cpu}], {delta}",
                ],
                aborted: ["jmp {aborted}",],
                cpu = out(reg) _,
                end = in(reg) counts.len(),
                counts = in(reg) counts.as_ptr(),
                delta = in(reg) delta,
                shift = const STRIDE_SHIFT,
                refused = label { return Outcome::Refused },
                aborted = label { return Outcome::Aborted },
            );
        }
        Outcome::Done
    }

    /// Pushes on the stack of the CPU that the thread is on. Refused where that CPU has none, it is full, or stopped.
    #[inline]
    pub fn push(self, stacks: &Stacks, item: NonNull<()>) -> Outcome {
        // SAFETY: the contract of the block: it writes the area's `rseq_cs`, and of the stack of the CPU that it runs
        // on, whose index is below `cpus()`, the first slot that is not in use (below `ceiling`, so one of the
        // stack's), and then, as its last instruction, `top`, one slot more. Before that the slot is nobody's; an
        // aborted push that wrote it has changed nothing. All are atomic in Rust. No registers but those named, no
        // stack.
        unsafe {
            sequence!(
                self,
                [
                    text!(push),
                ],
                aborted: ["jmp {aborted}",],
                cpu = out(reg) _,
                limit = out(reg) _,
                slot = out(reg) _,
                end = in(reg) stacks.of_cpus.len(),
                stacks = in(reg) stacks.of_cpus.as_ptr(),
                item = in(reg) item.as_ptr(),
                shift = const STRIDE_SHIFT,
                top = const offset_of!(Stack, top),
                ceiling = const offset_of!(Stack, ceiling),
                slot_bytes = const size_of::<Slot>(),
                refused = label { return Outcome::Refused },
                aborted = label { return Outcome::Aborted },
            );
        }
        Outcome::Done
    }

    /// Pops from the stack of the CPU that the thread is on. Refused where that CPU has none, it is empty, or stopped.
    #[inline]
    pub fn pop(self, stacks: &Stacks) -> Yielded<NonNull<()>> {
        let item: *mut ();
        // SAFETY: the contract of the block: it writes the area's `rseq_cs`, and of the stack of the CPU that it runs
        // on, whose index is below `cpus()`, as its last instruction `top`, one slot less; it yields the item in the
        // slot that is thereby left (above `floor`, so one of the stack's). Refused yields null, aborted -1, neither of
        // which an item can be: it is not null, and no object begins at the last address. All are atomic in Rust. No
        // registers but those named, no stack.
        unsafe {
            sequence!(
                self,
                [
                    text!(pop),
                ],
                aborted: ["mov {item}, -1", "jmp 3b", "6:", "xor {item:e}, {item:e}", "jmp 3b",],
                cpu = out(reg) _,
                limit = out(reg) _,
                item = out(reg) item,
                end = in(reg) stacks.of_cpus.len(),
                stacks = in(reg) stacks.of_cpus.as_ptr(),
                shift = const STRIDE_SHIFT,
                top = const offset_of!(Stack, top),
                floor = const offset_of!(Stack, floor),
                slot_bytes = const size_of::<Slot>(),
            );
        }
        match NonNull::new(item) {
            None => Yielded::Refused,
            Some(item) if item.addr().get() == usize::MAX => Yielded::Aborted,
            Some(item) => Yielded::Done(item),
        }
    }

    /// Acquires the words of the CPU that the thread is on, from whoever had them: which CPU, and the owner. Refused
    /// where that CPU has none.
    #[inline]
    pub fn acquire(self, owned: &[Owned]) -> Yielded<(usize, u64)> {
        let (cpu, owner): (usize, u64);
        // SAFETY: the contract of the block: it writes the area's `rseq_cs`, and of the words of the CPU that it runs
        // on, whose index is below `owned.len()`, as its last instruction the generation, one more, which it yields.
        // Refused yields generation 0, aborted -1: the first is 1, and the last is centuries away. All are atomic in
        // Rust. No registers but those named, no stack.
        unsafe {
            sequence!(
                self,
                [
                    text!(acquire),
                ],
                aborted: ["mov {owner}, -1", "jmp 3b", "6:", "xor {owner:e}, {owner:e}", "jmp 3b",],
                cpu = out(reg) cpu,
                at = out(reg) _,
                owner = out(reg) owner,
                end = in(reg) owned.len(),
                owned = in(reg) owned.as_ptr(),
                shift = const STRIDE_SHIFT,
                generation = const offset_of!(Owned, generation),
            );
        }
        match owner {
            0 => Yielded::Refused,
            u64::MAX => Yielded::Aborted,
            _ => Yielded::Done((cpu, owner)),
        }
    }

    /// Stores to one of the words of `cpu` for the owner that acquired them there. Refused where the thread is on
    /// another CPU, or they have another owner.
    ///
    /// # Panics
    /// When there is no such word.
    #[inline]
    pub fn store(self, cpu: usize, owned: &Owned, owner: u64, word: usize, value: u64) -> Outcome {
        assert!(word < WORDS, "there are {WORDS} words");
        // SAFETY: the contract of the block: it writes the area's `rseq_cs`, and if anything, as its last instruction,
        // one of the words, while the thread is on `cpu` and the generation is `owner`. Both are atomic in Rust. No
        // registers but those named, no stack.
        unsafe {
            sequence!(
                self,
                [
                    text!(store),
                ],
                aborted: ["jmp {aborted}",],
                cpu = out(reg) _,
                wanted = in(reg) cpu,
                generation = in(reg) owned.generation.as_ptr(),
                owner = in(reg) owner,
                word = in(reg) owned.words[word].as_ptr(),
                value = in(reg) value,
                refused = label { return Outcome::Refused },
                aborted = label { return Outcome::Aborted },
            );
        }
        Outcome::Done
    }
}

/// How much of the area the C library knows of; zero where it registered none.
fn registered_bytes() -> Option<usize> {
    symbol::<u32>(c"__rseq_size").map(|bytes| bytes as usize)
}

/// What a variable of the C library's says, if it has it.
fn symbol<T: Copy>(name: &CStr) -> Option<T> {
    // SAFETY: the name is a C string, and the default handle is valid.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: where there is a variable of these names, it is of this type and lasts as long as the program.
    NonNull::new(address).map(|variable| unsafe { variable.cast::<T>().read() })
}
