//! Everybody who writes integers, behind one interface.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use ascertain_engine::black_box;
use ascertain_engine::experiment::Unavailable;
use ascertain_numeric::decimal::{VARIANTS, append_column, historical, write};

use super::{compiled, limits};

/// Writes the values, one after the other into the same bytes or all in a column, and returns how many bytes they
/// are together without delimiters.
pub type Each = Box<dyn FnMut(&[u64]) -> usize>;
/// Appends the text of each value and a line's end, for checking.
pub type Lines = Box<dyn FnMut(&[u64], &mut Vec<u8>)>;

/// Variants besides those of `numeric::decimal`.
pub const OTHERS: [(&str, &str); 17] = [
    ("plain", "numeric::decimal, the call for everybody: a table below 1,000, then the best that the CPU has"),
    ("column", "numeric::decimal, a column with delimiters"),
    ("column-itoa", "the itoa crate, its text appended with a delimiter"),
    ("itoa", "the itoa crate"),
    ("lexical", "the lexical-core crate"),
    ("std", "write! of Rust's standard library"),
    ("libc", "snprintf of the C library"),
    ("to-chars", "std::to_chars of C++"),
    ("fmt", "{fmt}"),
    ("stringstream", "std::ostringstream of C++, a new one for each number"),
    ("radix-10", "a digit at a time, left at the buffer's end (Lwan)"),
    ("radix-10-reversed", "a digit at a time, then reversed (stringencoders)"),
    ("radix-100", "two digits at a time after a galloping search for their number (Facebook)"),
    ("radix-100-fixed", "two digits at a time, left at the buffer's end"),
    ("store", "limit: texts that are ready, each stored to the same bytes"),
    ("column-store", "limit: texts that are ready, stored behind one another"),
    ("nothing", "limit: the loop alone"),
];

/// A variant's way to write.
pub struct Contestant {
    /// What is timed.
    pub each: Each,
    /// The same method, telling its texts; none where there are none.
    pub lines: Option<Lines>,
    /// The machine code of one call, where it is known.
    pub code_bytes: Option<usize>,
}

/// A variant, ready.
///
/// # Errors
/// What this machine lacks for it.
pub fn contestant(variant: &str) -> Result<Contestant, Unavailable> {
    if let Some(ours) = VARIANTS.iter().find(|ours| ours.name == variant) {
        ours.is_available().map_err(|feature| Unavailable::Feature { feature: feature.to_string() })?;
        let each = move |values: &[u64], buffer: &mut [u8; 20]| ours.each(values, buffer).unwrap_or(0);
        return Ok(Contestant { code_bytes: ours.code_bytes(), ..to_the_front(each) });
    }
    let contestant = match variant {
        "column" => column(|values, text| append_column(values, b'\n', text)),
        "column-itoa" => column(|values, text| {
            let mut buffer = itoa::Buffer::new();
            for &value in values {
                text.extend_from_slice(buffer.format(value).as_bytes());
                text.push(b'\n');
            }
        }),
        "plain" => one_by_one(|value, buffer| 0..write(value, buffer).unwrap_or(0)),
        "itoa" => {
            let each = one_by_one(|value, _| 0..black_box(itoa::Buffer::new().format(value)).len()).each;
            let lines: Lines = Box::new(|values, lines| {
                for &value in values {
                    line(itoa::Buffer::new().format(value).as_bytes(), lines);
                }
            });
            Contestant { each, lines: Some(lines), code_bytes: None }
        }
        "lexical" => one_by_one(|value, buffer| 0..lexical_core::write(value, buffer).len()),
        "std" => one_by_one(|value, buffer| {
            let mut room = &mut buffer[..];
            // Twenty bytes are enough for any.
            let _ = write!(room, "{value}");
            0..20 - room.len()
        }),
        "radix-10" => one_by_one(historical::radix_10),
        "radix-10-reversed" => one_by_one(historical::radix_10_reversed),
        "radix-100" => one_by_one(historical::radix_100),
        "radix-100-fixed" => one_by_one(historical::radix_100_fixed),
        "store" => limits::one_by_one(),
        "column-store" => limits::column(),
        "nothing" => Contestant { lines: None, ..one_by_one(|value, _| 0..(value & 1) as usize) },
        _ => {
            let function = compiled_function(variant)?;
            to_the_front(move |values, buffer: &mut [u8; 32]| function.call(values, buffer) as usize)
        }
    };
    // Of the historical ones alone it is known; their functions have their names.
    Ok(Contestant { code_bytes: historical::code_bytes(&variant.replace('-', "_")), ..contestant })
}

fn compiled_function(variant: &str) -> compiled::Compiled {
    /// What is compiled lasts as long as the program: a run asks several times.
    static COMPILED: Mutex<BTreeMap<String, compiled::Compiled>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = compiled.get(variant) {
        return known.clone();
    }
    let function = compiled::function(variant).unwrap_or_else(|| Err(Unavailable::other("there is no such variant")));
    compiled.insert(variant.to_string(), function.clone());
    function
}

/// One who writes each value to the front of the same bytes, by itself.
fn to_the_front<const ROOM: usize>(each: impl FnMut(&[u64], &mut [u8; ROOM]) -> usize + Clone + 'static) -> Contestant {
    let (mut timed, mut told) = (each.clone(), each);
    let (mut buffer, mut another) = ([0; ROOM], [0; ROOM]);
    let lines: Lines = Box::new(move |values, lines| {
        for value in values {
            let length = told(std::slice::from_ref(value), &mut another);
            line(another.get(..length).unwrap_or_default(), lines);
        }
    });
    Contestant { each: Box::new(move |values| timed(values, &mut buffer)), lines: Some(lines), code_bytes: None }
}

/// Each value to the same bytes, of which the method says where its text is.
fn one_by_one(write: impl Fn(u64, &mut [u8; 20]) -> Range<usize> + Clone + 'static) -> Contestant {
    let (told, mut buffer, mut another) = (write.clone(), [0; 20], [0; 20]);
    let each: Each = Box::new(move |values| {
        let mut bytes = 0;
        for &value in values {
            bytes += write(value, &mut buffer).len();
            black_box(&mut buffer);
        }
        bytes
    });
    let lines: Lines = Box::new(move |values, lines| {
        for &value in values {
            let text = told(value, &mut another);
            line(&another[text], lines);
        }
    });
    Contestant { each, lines: Some(lines), code_bytes: None }
}

/// All values behind one another, in memory that is used again.
fn column(append: impl Fn(&[u64], &mut Vec<u8>) + Clone + 'static) -> Contestant {
    let (told, mut text) = (append.clone(), Vec::new());
    let each: Each = Box::new(move |values| {
        text.clear();
        append(values, &mut text);
        black_box(&text).len() - values.len()
    });
    Contestant { each, lines: Some(Box::new(told)), code_bytes: None }
}

fn line(text: &[u8], lines: &mut Vec<u8>) {
    lines.extend_from_slice(text);
    lines.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_decimal_variant() {
        assert!(contestant("roman").is_err());
    }
}
