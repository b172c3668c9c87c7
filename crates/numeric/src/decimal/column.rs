//! Many integers, each with a delimiter behind it.

use super::integer::Integer;
use super::portable;

/// What a register writes at once.
const MOST_WRITTEN: usize = 32;

/// Appends the text of each integer and, behind each, the delimiter.
///
/// ```
/// let mut text = Vec::new();
/// ascertain_numeric::decimal::append_column(&[3, -14, 159_i32], b'\n', &mut text);
/// assert_eq!(text, b"3\n-14\n159\n");
/// ```
pub fn append_column<I: Integer>(values: &[I], delimiter: u8, text: &mut Vec<u8>) {
    // In blocks, so that no more is reserved than a block may need beyond the text.
    for block in values.chunks(256) {
        text.reserve(block.len() * (I::MOST_BYTES + 1) + MOST_WRITTEN);
        // SAFETY: for each value there are its bytes, the delimiter's and a register's; as many as are counted are
        // written.
        unsafe {
            let to = text.as_mut_ptr().add(text.len());
            let length = write_block(block, delimiter, to);
            text.set_len(text.len() + length);
        }
    }
}

unsafe fn write_block<I: Integer>(values: &[I], delimiter: u8, to: *mut u8) -> usize {
    #[cfg(target_arch = "x86_64")]
    if super::variant::has_avx512() {
        // SAFETY: the machine has the features; the room is the caller's.
        return unsafe { x86::write_block(values, delimiter, to) };
    }
    // SAFETY: the caller's.
    unsafe {
        write_each(values, to, |magnitude, to| {
            let length = portable::digits(magnitude, to);
            to.add(length).write(delimiter);
            length + 1
        })
    }
}

/// Writes each value by `write`, which gets its magnitude and its place and returns what it wrote.
#[inline(always)]
unsafe fn write_each<I: Integer>(values: &[I], to: *mut u8, write: impl Fn(u64, *mut u8) -> usize) -> usize {
    let mut at = to;
    for value in values {
        let (is_negative, magnitude) = value.parts();
        // SAFETY: the caller has room for every value's text and delimiter.
        unsafe {
            if I::IS_SIGNED {
                at.write(b'-');
                at = at.add(usize::from(is_negative));
            }
            at = at.add(write(magnitude, at));
        }
    }
    at.addr() - to.addr()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::avx512::{digits_and, few_digits_and};
    use super::super::integer::Integer;
    use super::write_each;

    /// # Safety
    /// The CPU has the features, and there is room for the values' texts, delimiters and a register.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma,avx512vbmi")]
    pub unsafe fn write_block<I: Integer>(values: &[I], delimiter: u8, to: *mut u8) -> usize {
        let mut at = to;
        for some in values.chunks(16) {
            // One decision for several values: it is the same for most columns.
            let are_few = some.iter().all(|value| value.parts().1 < 100_000_000);
            // SAFETY: the caller's.
            unsafe {
                at = at.add(match are_few {
                    true => write_each(some, at, |magnitude, to| few_digits_and(magnitude, delimiter, to)),
                    false => write_each(some, at, |magnitude, to| digits_and(magnitude, delimiter, to)),
                });
            }
        }
        at.addr() - to.addr()
    }
}
