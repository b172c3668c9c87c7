//! Everybody who writes integers, behind one interface.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use ascertain::black_box;
use ascertain::experiment::Unavailable;
use ascertain_numeric::decimal::{VARIANTS, append_column};
use ascertain_sys::compiled::Function;

use super::{compiled, historical};

/// Writes the values, one after the other into the same bytes or all in a column, and returns how many bytes they
/// are together without delimiters.
pub type Each = Box<dyn FnMut(&[u64]) -> usize>;

/// Variants besides those of `numeric::decimal`.
pub const OTHERS: [(&str, &str); 14] = [
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
    ("nothing", "the loop alone"),
];

/// The variant's way to write; its text for one value, for checking.
pub struct Contestant {
    /// What is timed.
    pub each: Each,
    /// The machine code of one call, where it is known.
    pub code_bytes: Option<usize>,
}

/// A variant, ready.
///
/// # Errors
/// What this machine lacks for it.
pub fn contestant(variant: &str) -> Result<Contestant, Unavailable> {
    if let Some(ours) = VARIANTS.iter().find(|ours| ours.name == variant) {
        ours.is_available().map_err(|feature| Unavailable(format!("needs {feature}, which this CPU lacks")))?;
        let mut buffer = [0; 20];
        let each: Each = Box::new(move |values| ours.each(values, &mut buffer).unwrap_or(0));
        return Ok(Contestant { each, code_bytes: ours.code_bytes() });
    }
    let each: Each = match variant {
        "column" => Box::new(column(|values, text| append_column(values, b'\n', text))),
        "column-itoa" => Box::new(column(|values, text| {
            let mut buffer = itoa::Buffer::new();
            for &value in values {
                text.extend_from_slice(buffer.format(value).as_bytes());
                text.push(b'\n');
            }
        })),
        "itoa" => one_by_one(|value, _| {
            let mut buffer = itoa::Buffer::new();
            let length = black_box(buffer.format(value)).len();
            0..length
        }),
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
        "nothing" => one_by_one(|value, _| 0..(value & 1) as usize),
        _ => {
            let function = compiled_function(variant)?;
            let mut buffer = [0_u8; 32];
            Box::new(move |values| function.call(values, &mut buffer) as usize)
        }
    };
    Ok(Contestant { each, code_bytes: None })
}

fn compiled_function(variant: &str) -> Result<Function, Unavailable> {
    /// What is compiled lasts as long as the program: a run asks several times.
    static COMPILED: Mutex<BTreeMap<String, Result<Function, Unavailable>>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = compiled.get(variant) {
        return known.clone();
    }
    let function = compiled::function(variant).unwrap_or_else(|| Err(Unavailable("there is no such variant".into())));
    compiled.insert(variant.to_string(), function.clone());
    function
}

/// Each value to the same bytes.
fn one_by_one(write: impl Fn(u64, &mut [u8; 20]) -> Range<usize> + 'static) -> Each {
    let mut buffer = [0; 20];
    Box::new(move |values| {
        let mut bytes = 0;
        for &value in values {
            bytes += write(value, &mut buffer).len();
            black_box(&mut buffer);
        }
        bytes
    })
}

/// All values behind one another, in memory that is used again.
fn column(append: impl Fn(&[u64], &mut Vec<u8>) + 'static) -> impl FnMut(&[u64]) -> usize {
    let mut text = Vec::new();
    move |values| {
        text.clear();
        append(values, &mut text);
        black_box(&text).len() - values.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The methods that are told where their text is.
    #[test]
    fn historical_methods_write_what_they_should() {
        type Method = fn(u64, &mut [u8; 20]) -> Range<usize>;
        let methods: [Method; 4] =
            [historical::radix_10, historical::radix_10_reversed, historical::radix_100, historical::radix_100_fixed];
        let powers = (0..20).flat_map(|k| [10_u64.pow(k) - 1, 10_u64.pow(k), 10_u64.pow(k) + 1]);
        for value in powers.chain([u64::MAX]) {
            for method in methods {
                let mut buffer = [0; 20];
                let range = method(value, &mut buffer);
                assert_eq!(std::str::from_utf8(&buffer[range]), Ok(&*value.to_string()));
            }
        }
    }

    #[test]
    fn there_is_no_such_variant() {
        assert!(contestant("roman").is_err());
    }
}
