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
        return unsafe { super::avx512_column::write_block(values, delimiter, to) };
    }
    // SAFETY: the caller's.
    unsafe { one_by_one(values, delimiter, to) }
}

/// On every machine.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_avx512() {
        let values: Vec<i64> = (0..63).flat_map(|bits| [1 << bits, -1 << bits, (1 << bits) - 1]).collect();
        let mut text = vec![0; values.len() * 21];
        // SAFETY: there is room for each value and its delimiter.
        let length = unsafe { one_by_one(&values, b' ', text.as_mut_ptr()) };
        let expected: String = values.iter().map(|value| format!("{value} ")).collect();
        assert_eq!(std::str::from_utf8(&text[..length]), Ok(&*expected));
    }
}
