//! Many integers, each with a delimiter behind it.

use super::integer::Integer;
use super::portable;
use super::write::write_unchecked;

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
    // SAFETY: the machine has what was chosen for it.
    unsafe { append_by(super::chosen().column, values, delimiter, text) }
}

/// How a column is written.
#[derive(Clone, Copy, Debug)]
pub enum Column {
    /// On every machine.
    OneByOne,
    /// Eight at a time.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// As [`append_column`].
///
/// # Safety
/// The CPU has what the way needs.
pub unsafe fn append_by<I: Integer>(column: Column, values: &[I], delimiter: u8, text: &mut Vec<u8>) {
    // In blocks, so that no more is reserved than a block may need beyond the text.
    for block in values.chunks(256) {
        text.reserve(block.len() * (I::MOST_BYTES + 1) + MOST_WRITTEN);
        // SAFETY: for each value there are its bytes, the delimiter's and a register's; as many as are counted are
        // written. The caller vouches for the CPU.
        unsafe {
            let to = text.as_mut_ptr().add(text.len());
            let length = match column {
                Column::OneByOne => one_by_one(block, delimiter, to),
                #[cfg(target_arch = "x86_64")]
                Column::Avx512 => super::avx512_column::write_block(block, delimiter, to),
            };
            text.set_len(text.len() + length);
        }
    }
}

unsafe fn one_by_one<I: Integer>(values: &[I], delimiter: u8, to: *mut u8) -> usize {
    let mut at = to;
    for &value in values {
        // SAFETY: the caller has room for every value's text and delimiter.
        unsafe {
            at = at.add(write_unchecked(value, at, portable::digits));
            at.write(delimiter);
            at = at.add(1);
        }
    }
    at.addr() - to.addr()
}
