//! The sequences for Linux on x86-64.
//!
//! Each sequence is one block of assembly. It stores the address of its descriptor in the area, which is at a fixed
//! distance from the thread pointer in `fs`. Then it reads the number of the CPU, and its last instruction commits.
//! Descriptors have their own section. Abort handlers are in a separate section too, after the signature that the
//! kernel checks before it jumps to a handler.

use std::arch::asm;
use std::ffi::CStr;
use std::mem::offset_of;
use std::num::NonZeroIsize;
use std::ptr::NonNull;
use std::sync::OnceLock;

use super::plain::STRIDE_SHIFT;
use super::stacks::{Slot, Stack};
use super::{Count, Outcome, OwnedWords, Stacks, Unavailable, WORDS};

/// The memory in which the kernel stores data for the restartable sequences of a thread. Its distance from the thread
/// pointer is the same in all threads. The first version of rseq(2) has the fields `cpu_id_start` (4 bytes), `cpu_id`
/// (4), `rseq_cs` (8) and `flags` (4).
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// Distance in bytes from the thread pointer, a register, to the area. It is not zero, because other data is at the
    /// thread pointer.
    offset: NonZeroIsize,
}

/// Size in bytes of the fields that an area has had since the first version of rseq(2).
const FIRST_FIELDS_BYTES: usize = 20;
/// The key of the auxiliary vector under which the kernel stores the size of an area, from the kernel's
/// include/uapi/linux/auxvec.h.
const AT_RSEQ_FEATURE_SIZE: libc::c_ulong = 27;

/// One restartable sequence. `$body` is the code from reading the number of the CPU to the commit. `$aborted` is the
/// abort handler, to which the kernel jumps. Labels: 2 is the beginning and 3 the end of the sequence, 4 the descriptor
/// and 5 the abort handler. `$aborted` may define a label 6 for other code outside of the sequence.
///
/// 0x53053053 is the signature that C libraries register on x86. It stands right before the abort handler. Together
/// with the bytes before it, the signature is an undefined instruction, so a thread that executed it would trap. The
/// flags of `.pushsection` have these meanings: `ax` is allocated and executable; `aw` is allocated and writable, for
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

/// Puts the offset of the CPU's data into `{cpu}`: the number of the CPU, shifted left by `{shift}`. Jumps to
/// `$refused` if there is no data for that CPU.
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

/// The assembly text of the restartable sequences in which the order of instructions matters, one instruction per line.
/// The assembler compiles it, and the model in the tests executes it line by line.
macro_rules! text {
    (push) => {
        concat!(
            own!("{refused}"),
            "\n",
            // The limit must be read before the top. A caller that had stopped the stack moves the top before it
            // restores the limit. So a sequence that reads the restored limit also reads the moved top.
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
            // The limit must be read before the top, as in a push.
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
    /// Returns the area of this program's threads, if the C library registers them.
    ///
    /// # Errors
    /// Returns the reason why there is no area.
    pub fn find() -> Result<Self, Unavailable> {
        static FOUND: OnceLock<Result<Area, Unavailable>> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let offset = symbol::<isize>(c"__rseq_offset").ok_or(Unavailable::Library)?;
            // Zero bytes mean that the C library failed to register threads, or was configured not to.
            let is_registered = registered_bytes().ok_or(Unavailable::Library)? >= FIRST_FIELDS_BYTES;
            let area = NonZeroIsize::new(offset).filter(|_| is_registered).map(|offset| Area { offset });
            area.ok_or(Unavailable::Unregistered)
        })
    }

    /// Returns the number of bytes of the area that both the C library (`__rseq_size`) and the kernel
    /// (`AT_RSEQ_FEATURE_SIZE`) support. The first version had 20 bytes; `node_id` ends at 24, `mm_cid` at 28.
    #[must_use]
    pub fn feature_bytes(self) -> usize {
        // SAFETY: getauxval only looks up a value.
        let kernel_bytes = unsafe { libc::getauxval(AT_RSEQ_FEATURE_SIZE) } as usize;
        registered_bytes().unwrap_or(FIRST_FIELDS_BYTES).min(kernel_bytes.max(FIRST_FIELDS_BYTES))
    }

    /// Returns the CPU on which the calling thread ran a moment ago, with one load; `None` for a thread that is not
    /// registered.
    #[inline]
    #[must_use]
    pub fn cpu(self) -> Option<usize> {
        let cpu: i32;
        // SAFETY: the instruction reads `cpu_id` in the area, which every thread of the C library has.
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

    /// Adds `delta` to the count of the CPU on which the thread runs. Returns [`Outcome::Refused`] if that CPU has no
    /// count.
    #[inline]
    pub fn add(self, counts: &[Count], delta: u64) -> Outcome {
        // SAFETY: the contract of the block: it writes `rseq_cs` in the area, and at most one `Count`, that of the CPU
        // that it runs on. The index is below `counts.len()`; a thread that is not registered has -1 or -2, which as an
        // unsigned number is above that length. The block adds `delta` to the count in one instruction, which is its
        // last. `Count` is atomic in Rust, and an aligned 8-byte access of one CPU is a relaxed one. The block uses
        // only the named registers and no stack.
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
        Outcome::Done(())
    }

    /// Pushes on the stack of the CPU on which the thread runs. Returns [`Outcome::Refused`] if that CPU has no stack,
    /// or the stack is full or stopped.
    #[inline]
    pub fn push(self, stacks: &Stacks, item: NonNull<()>) -> Outcome {
        // SAFETY: the contract of the block: it writes `rseq_cs` in the area, and accesses the stack of the CPU that it
        // runs on, whose index is below `cpus()`. It writes the first slot that is not in use, which is below `ceiling`
        // and so belongs to the stack. Then its last instruction moves `top` up by one slot. Before that no other code
        // uses the slot, so an aborted push that wrote it has changed nothing. All these words are atomic in Rust. It
        // uses only the named registers and no stack memory.
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
        Outcome::Done(())
    }

    /// Pops from the stack of the CPU on which the thread runs. Returns [`Outcome::Refused`] if that CPU has no stack,
    /// or the stack is empty or stopped.
    #[inline]
    pub fn pop(self, stacks: &Stacks) -> Outcome<NonNull<()>> {
        let item: *mut ();
        // SAFETY: the contract of the block: it writes `rseq_cs` in the area, and accesses the stack of the CPU that it
        // runs on, whose index is below `cpus()`. Its last instruction moves `top` down by one slot. It returns the
        // item in the slot that this removes, which is above `floor` and so belongs to the stack. A refused pop returns
        // null and an aborted one -1. Neither can be an item: an item is not null, and no object begins at the last
        // address. All these words are atomic in Rust. It uses only the named registers and no stack memory.
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
            None => Outcome::Refused,
            Some(item) if item.addr().get() == usize::MAX => Outcome::Aborted,
            Some(item) => Outcome::Done(item),
        }
    }

    /// Acquires the words of the CPU on which the thread runs, from their previous owner. Returns that CPU, and the
    /// number that identifies the thread as the new owner. Returns [`Outcome::Refused`] if that CPU has no words.
    #[inline]
    pub fn acquire(self, owned: &[OwnedWords]) -> Outcome<(usize, u64)> {
        let (cpu, owner): (usize, u64);
        // SAFETY: the contract of the block: it writes `rseq_cs` in the area, and accesses the words of the CPU that it
        // runs on, whose index is below `owned.len()`. Its last instruction increases the generation by one; it returns
        // the new generation. A refused acquisition returns 0 and an aborted one -1: the first generation is 1, and the
        // last one is centuries away. All these words are atomic in Rust. It uses only the named registers and no
        // stack.
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
                generation = const offset_of!(OwnedWords, generation),
            );
        }
        match owner {
            0 => Outcome::Refused,
            u64::MAX => Outcome::Aborted,
            _ => Outcome::Done((cpu, owner)),
        }
    }

    /// Stores `value` in the word with the index `word` among the words of `cpu`. `owner` is the number that
    /// [`acquire`](Self::acquire) returned. Returns [`Outcome::Refused`] if the thread is on another CPU, or if `owner`
    /// no longer owns the words.
    ///
    /// # Panics
    /// If `word` is not below [`WORDS`](super::WORDS).
    #[inline]
    pub fn store(self, cpu: usize, owned: &OwnedWords, owner: u64, word: usize, value: u64) -> Outcome {
        assert!(word < WORDS, "there are {WORDS} words");
        // SAFETY: the contract of the block: it writes `rseq_cs` in the area, and at most one of the words, with its
        // last instruction. It does so only while the thread is on `cpu` and the generation is `owner`. The word and
        // the generation are atomic in Rust. The block uses only the named registers and no stack.
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
        Outcome::Done(())
    }
}

/// Returns the size in bytes of the area that the C library registered with the kernel for each thread; zero if it
/// registered none.
fn registered_bytes() -> Option<usize> {
    symbol::<u32>(c"__rseq_size").map(|bytes| bytes as usize)
}

/// Returns the value of a variable of the C library, if the variable exists.
fn symbol<T: Copy>(name: &CStr) -> Option<T> {
    // SAFETY: the name is a C string, and the default handle is valid.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: if a variable of this name exists, it has this type and lasts as long as the program.
    NonNull::new(address).map(|variable| unsafe { variable.cast::<T>().read() })
}
