//! The ways to write digits, by name, and which one this machine takes.

use std::hint::black_box;

use super::integer::Integer;
use super::{portable, small};
use crate::code_size::sized;
use crate::features::first_missing;

/// Writes numbers one after the other; it may be called only where the CPU has what the variant requires.
type Each = unsafe fn(&[u64], &mut [u8; 20]) -> usize;

/// One way to write an integer.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Its name.
    pub name: &'static str,
    /// A line about it.
    pub about: &'static str,
    /// The CPU features that it needs, as `is_x86_feature_detected!` names them.
    pub requires: &'static [&'static str],
    /// None where the architecture is another.
    each: Option<Each>,
    code_bytes: fn() -> Option<usize>,
}

impl Variant {
    /// Whether this machine can run it.
    ///
    /// # Errors
    /// The first of the required CPU features that the machine lacks.
    pub fn is_available(&self) -> Result<(), &'static str> {
        first_missing(self.requires).map_or(Ok(()), Err)
    }

    /// Writes one number after the other to the front of the buffer, and returns how many bytes they were
    /// together; none where the machine can't run it.
    pub fn each(&self, values: &[u64], buffer: &mut [u8; 20]) -> Option<usize> {
        self.is_available().ok()?;
        // SAFETY: the CPU has the features.
        Some(unsafe { self.each?(values, buffer) })
    }

    /// The machine code of one call, without tables.
    pub fn code_bytes(&self) -> Option<usize> {
        (self.code_bytes)()
    }
}

/// Every way, also where it [cannot run](Variant::is_available).
pub const VARIANTS: &[Variant] = &[
    Variant {
        name: "avx512",
        about: "all digits at once, without a branch, by AVX-512 IFMA",
        requires: AVX512,
        #[cfg(target_arch = "x86_64")]
        each: Some(x86::each),
        #[cfg(not(target_arch = "x86_64"))]
        each: None,
        #[cfg(target_arch = "x86_64")]
        code_bytes: x86::code_bytes,
        #[cfg(not(target_arch = "x86_64"))]
        code_bytes: || None,
    },
    Variant {
        name: "table-avx512",
        about: "a table below 1,000, then avx512: the plain call of a program that is built for this CPU",
        requires: AVX512,
        #[cfg(target_arch = "x86_64")]
        each: Some(x86::each_small_or_not),
        #[cfg(not(target_arch = "x86_64"))]
        each: None,
        #[cfg(target_arch = "x86_64")]
        code_bytes: x86::code_bytes_with_table,
        #[cfg(not(target_arch = "x86_64"))]
        code_bytes: || None,
    },
    Variant {
        name: "portable",
        about: "by 10⁸, 10⁴, 10² and 10, on packed numbers, without a table",
        requires: &[],
        each: Some(each),
        code_bytes,
    },
];

#[cfg(target_arch = "x86_64")]
const AVX512: &[&str] = super::avx512::FEATURES;
#[cfg(not(target_arch = "x86_64"))]
const AVX512: &[&str] = &["avx512ifma"];

fn each(values: &[u64], buffer: &mut [u8; 20]) -> usize {
    let mut bytes = 0;
    for &value in values {
        // SAFETY: the buffer has 20 bytes.
        bytes += unsafe { portable::digits(value, buffer.as_mut_ptr()) };
        black_box(&mut *buffer);
    }
    bytes
}

sized!("decimal" "portable", alone, code_bytes, (value: u64, to: *mut u8) -> usize, |value, to| unsafe {
    // SAFETY: it is never called.
    portable::digits(value, to)
});

/// Writes a magnitude of a type: a small one from the table, others with AVX-512 or without.
///
/// # Safety
/// As many bytes as the type's largest magnitude has digits are writable at `to`; with AVX-512 only where the
/// machine [has it](has_avx512).
#[inline(always)]
pub(super) unsafe fn digits<I: Integer>(magnitude: u64, to: *mut u8, with_avx512: bool) -> usize {
    if magnitude < small::END {
        // SAFETY: there are more than four bytes.
        return unsafe { small::digits(magnitude, to) };
    }
    #[cfg(target_arch = "x86_64")]
    if with_avx512 {
        // SAFETY: the machine has the features; the room is the caller's.
        return unsafe {
            match I::MOST_DIGITS {
                10 => super::avx512::digits::<10>(magnitude, to),
                19 => super::avx512::digits::<19>(magnitude, to),
                _ => super::avx512::digits::<20>(magnitude, to),
            }
        };
    }
    let _ = with_avx512;
    // SAFETY: the caller's.
    unsafe { portable::digits(magnitude, to) }
}

/// Whether the machine has what the AVX-512 variant needs, asked once.
#[inline(always)]
pub(super) fn has_avx512() -> bool {
    use std::sync::atomic::{AtomicU8, Ordering};
    static KNOWN: AtomicU8 = AtomicU8::new(0);
    match KNOWN.load(Ordering::Relaxed) {
        0 => {
            let has = first_missing(AVX512).is_none();
            KNOWN.store(1 + u8::from(has), Ordering::Relaxed);
            has
        }
        known => known == 2,
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use crate::decimal::avx512;

    sized!("decimal" "avx512", alone, code_bytes, (value: u64, to: *mut u8) -> usize, |value, to| unsafe {
        // SAFETY: it is never called.
        avx512::digits::<20>(value, to)
    }, "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt");
    sized!("decimal" "table_avx512", with_table, code_bytes_with_table, (value: u64, to: *mut u8) -> usize, |value, to| {
        // SAFETY: it is never called.
        unsafe { small_or_not(value, to) }
    }, "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt");

    /// # Safety
    /// The CPU has the features, and 20 bytes are writable at `to`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt")]
    unsafe fn small_or_not(value: u64, to: *mut u8) -> usize {
        // SAFETY: the caller's.
        unsafe { if value < small::END { small::digits(value, to) } else { avx512::digits::<20>(value, to) } }
    }

    /// # Safety
    /// The CPU has the features.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt")]
    pub unsafe fn each(values: &[u64], buffer: &mut [u8; 20]) -> usize {
        let mut bytes = 0;
        for &value in values {
            // SAFETY: the buffer has 20 bytes.
            bytes += unsafe { avx512::digits::<20>(value, buffer.as_mut_ptr()) };
            black_box(&mut *buffer);
        }
        bytes
    }

    /// # Safety
    /// The CPU has the features.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512ifma,avx512vbmi,lzcnt")]
    pub unsafe fn each_small_or_not(values: &[u64], buffer: &mut [u8; 20]) -> usize {
        let mut bytes = 0;
        for &value in values {
            // SAFETY: the buffer has 20 bytes.
            bytes += unsafe { small_or_not(value, buffer.as_mut_ptr()) };
            black_box(&mut *buffer);
        }
        bytes
    }
}
