//! Addition to a word in memory by its only adder, in one instruction without LOCK.
//!
//! In plain Rust: load (relaxed), add, store (release), and no interrupt in between. That last part is what plain Rust
//! cannot say, and what makes it bounded how long an announcement can be overlooked: a thread that is taken off its
//! CPU between load and store would overwrite whatever is announced meanwhile. Other machines get an atomic addition,
//! and so do Miri, loom and ThreadSanitizer (`--cfg model="portable"`), which see no assembly; the model of x86 has the
//! instruction.
//!
//! Both functions return whether the word had [`SLEEPERS`] before. When the count itself overflows into that bit they
//! may say so too.

#[cfg(all(target_arch = "x86_64", not(any(miri, model = "loom", model = "tso", model = "portable"))))]
mod imp {
    use std::arch::asm;

    use crate::primitives::AtomicU32;

    #[inline(always)]
    pub(crate) fn add_one(word: &AtomicU32) -> bool {
        // Bit 31 was set: then the sum is negative, or zero after 2^32 - 1. One branch tells: less or equal. After
        // 2^31 - 1 it is not taken, as the signed addition overflows: the bit that it sets is found next time.
        //
        // SAFETY: `word` is valid for reads and writes, and aligned, so that both are single-copy atomic. Stores
        // before are not moved behind it, since the block may read and write any memory. Nothing else changes but
        // the flags.
        unsafe {
            asm!(
                "inc dword ptr [{word}]",
                "jle {had_sleepers}",
                word = in(reg) word.as_ptr(),
                had_sleepers = label { return true },
                options(nostack),
            );
        }
        false
    }

    #[inline(always)]
    pub(crate) fn add(word: &AtomicU32, count: u32) -> bool {
        // Bit 31 was set: then it still is, or the sum wrapped and left a carry.
        //
        // SAFETY: as above.
        unsafe {
            asm!(
                "add dword ptr [{word}], {count:e}",
                "js {had_sleepers}",
                "jc {had_sleepers}",
                word = in(reg) word.as_ptr(),
                count = in(reg) count,
                had_sleepers = label { return true },
                options(nostack),
            );
        }
        false
    }
}

#[cfg(not(all(target_arch = "x86_64", not(any(miri, model = "loom", model = "tso", model = "portable")))))]
mod imp {
    use crate::event_count::contract::SLEEPERS;
    use crate::primitives::AtomicU32;

    pub(crate) fn add_one(word: &AtomicU32) -> bool {
        add(word, 1)
    }

    #[cfg(model = "tso")]
    pub(crate) fn add(word: &AtomicU32, count: u32) -> bool {
        word.add_unlocked(count).wrapping_sub(count) & SLEEPERS != 0
    }

    #[cfg(not(model = "tso"))]
    pub(crate) fn add(word: &AtomicU32, count: u32) -> bool {
        word.fetch_add(count, crate::primitives::Ordering::Release) & SLEEPERS != 0
    }
}

pub(super) use imp::{add, add_one};

#[cfg(all(test, not(any(model = "loom", model = "tso"))))]
mod tests {
    use super::*;
    use crate::event_count::contract::SLEEPERS;
    use crate::primitives::{AtomicU32, Ordering};

    const EDGES: [u32; 9] = [0, 1, 41, SLEEPERS - 2, SLEEPERS - 1, SLEEPERS, SLEEPERS + 1, u32::MAX - 1, u32::MAX];

    fn check(before: u32, count: u32, add: impl FnOnce(&AtomicU32) -> bool) {
        let word = AtomicU32::new(before);
        let had_sleepers = add(&word);
        let after = word.load(Ordering::Relaxed);
        assert_eq!(after, before.wrapping_add(count));
        if before & SLEEPERS != 0 {
            assert!(had_sleepers, "{before:#x} + {count:#x}");
        } else {
            assert!(!had_sleepers || after & SLEEPERS != 0, "{before:#x} + {count:#x}");
        }
    }

    #[test]
    fn no_sleeper_is_overlooked_at_any_edge() {
        for before in EDGES {
            check(before, 1, add_one);
            for count in EDGES.into_iter().filter(|&count| count < SLEEPERS) {
                check(before, count, |word| add(word, count));
            }
        }
    }
}
