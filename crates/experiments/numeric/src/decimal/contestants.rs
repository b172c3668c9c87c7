//! All methods of writing integers, behind one interface.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::rc::Rc;

use ascertain_engine::black_box;
use ascertain_engine::experiment::Unavailable;
use ascertain_numeric::decimal::{VARIANTS, Variant, append_column, chosen, historical, write};

use super::compiled;

/// A function that writes the values as text, either one after the other or all to the same position. It returns the
/// total number of bytes, without delimiters.
pub type Each = Box<dyn FnMut(&[u64]) -> usize>;
/// A function that appends the text of each value, followed by a line feed, to a buffer. It serves to check the texts,
/// and is not timed.
pub type Lines = Box<dyn FnMut(&[u64], &mut Vec<u8>)>;

/// The variants that are not part of `numeric::decimal`, each with its name and description.
pub const OTHERS: [(&str, &str); 29] = [
    ("plain", "numeric::decimal's default: a table for numbers below 1,000, otherwise the CPU's best method"),
    ("plain-avx512", "like `plain`, only on a CPU with AVX-512"),
    (
        "called",
        "speed limit of `plain` from 1,000 on: the CPU's best method without the table, called through a pointer",
    ),
    ("called-avx2", "like `avx2`, called through a pointer"),
    ("called-sse2", "like `sse2`, called through a pointer"),
    ("called-pairs", "like `pairs`, called through a pointer"),
    ("called-portable", "like `portable`, called through a pointer"),
    ("called-radix-100", "like `radix-100`, called through a pointer"),
    ("called-radix-100-fixed", "like `radix-100-fixed`, called through a pointer"),
    ("column", "numeric::decimal, a column with delimiters"),
    ("column-avx512", "numeric::decimal, a column with delimiters, by AVX-512"),
    ("column-avx2", "numeric::decimal, a column with delimiters, by AVX2"),
    ("column-sse2", "numeric::decimal, a column with delimiters, by SSE2"),
    ("column-neon", "numeric::decimal, a column with delimiters, by NEON"),
    ("column-itoa", "the itoa crate; its text and a delimiter are appended to the column"),
    ("itoa", "the itoa crate"),
    ("lexical", "the lexical-core crate"),
    ("std", "write! of Rust's standard library"),
    ("libc", "snprintf of the C library"),
    ("to-chars", "std::to_chars of C++"),
    ("fmt", "{fmt}"),
    ("stringstream", "std::ostringstream of C++, a new one for each number"),
    ("radix-10", "one digit at a time, starting with the last one; the text stays at the buffer's end (Lwan)"),
    (
        "radix-10-reversed",
        "one digit at a time, starting with the last one; the text is then reversed (stringencoders)",
    ),
    ("radix-100", "two digits at a time, after a galloping search for the number of digits (Facebook)"),
    ("radix-100-fixed", "two digits at a time, starting with the last two; the text stays at the buffer's end"),
    ("store", "speed limit: stores texts that were made in advance, each over the previous text"),
    ("column-store", "speed limit: stores texts that were made in advance, one after the other"),
    ("nothing", "speed limit: the loop alone"),
];

/// The functions of one variant, and their code size.
pub struct Contestant {
    /// The function that is timed.
    pub each: Each,
    /// The same method as a function that appends the texts to a buffer, so that they can be checked. `None` for
    /// methods without texts.
    pub lines: Option<Lines>,
    /// Size of the machine code of one call in bytes; `None` if it is not known.
    pub code_bytes: Option<usize>,
}

/// Creates the contestant for the variant with this name.
///
/// # Errors Returns the reason if this machine does not support the variant.
pub fn contestant(variant: &str) -> Result<Contestant, Unavailable> {
    if let Some(ours) = VARIANTS.iter().find(|ours| ours.name == variant) {
        ours.is_available().map_err(Unavailable::feature)?;
        let each = move |values: &[u64], buffer: &mut [u8; 20]| ours.each(values, buffer).unwrap_or(0);
        let contestant = Contestant { code_bytes: ours.code_bytes(), ..to_the_front(each) };
        return Ok(if ours.is_text { contestant } else { Contestant { lines: None, ..contestant } });
    }
    if let Some((how, ours)) = derived(variant) {
        ours.is_available().map_err(Unavailable::feature)?;
        return Ok(match how {
            "plain" => to_the_front(|values, buffer: &mut [u8; 20]| ours.each_plain(values, buffer).unwrap_or(0)),
            "called" => to_the_front(|values, buffer: &mut [u8; 20]| ours.each_called(values, buffer).unwrap_or(0)),
            _ => column(|values, text| {
                ours.append_column(values, b'\n', text);
            }),
        });
    }
    let contestant = match variant {
        "called" => to_the_front(|values, buffer: &mut [u8; 20]| chosen().each_called(values, buffer).unwrap_or(0)),
        "called-radix-100" => called(historical::radix_100),
        "called-radix-100-fixed" => called(historical::radix_100_fixed),
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
            // Twenty bytes are enough for every number.
            let _ = write!(room, "{value}");
            0..20 - room.len()
        }),
        "radix-10" => one_by_one(historical::radix_10),
        "radix-10-reversed" => one_by_one(historical::radix_10_reversed),
        "radix-100" => one_by_one(historical::radix_100),
        "radix-100-fixed" => one_by_one(historical::radix_100_fixed),
        "store" => stored(),
        "column-store" => stored_in_column(),
        "nothing" => Contestant { lines: None, ..one_by_one(|value, _| 0..(value & 1) as usize) },
        _ => {
            let function = compiled::function(variant)?;
            to_the_front(move |values, buffer: &mut [u8; 32]| function.call(values, buffer) as usize)
        }
    };
    // The size is known only for the historical methods, whose functions have the variants' names.
    Ok(Contestant { code_bytes: historical::code_bytes(&variant.replace('-', "_")), ..contestant })
}

/// Returns the method of `numeric::decimal` and the way in which the variant with this name uses it: `plain`, `called`
/// or `column`.
fn derived(variant: &str) -> Option<(&str, &'static Variant)> {
    let (how, name) = variant.split_once('-').filter(|(how, _)| ["plain", "called", "column"].contains(how))?;
    VARIANTS.iter().find(|ours| ours.is_text && ours.name == name).map(|ours| (how, ours))
}

/// Creates a contestant that calls the method through a pointer for each value.
fn called(write: fn(u64, &mut [u8; 20]) -> Range<usize>) -> Contestant {
    one_by_one(black_box(write))
}

/// Creates a contestant whose method writes each value to the front of one buffer, over the previous value.
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

/// Creates a contestant whose method writes each value somewhere in one buffer, and returns the range of its text.
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

/// Creates a contestant whose method writes all values one after the other, to memory that is reused.
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

/// Number of bytes that [`stored`] stores for each text, however long the text is. This is the length of the longest
/// text.
const LONGEST: usize = 20;
/// Number of bytes that [`stored_in_column`] stores for each text with its delimiter. The longest text fits, and the
/// number is a multiple of the word size.
const LONGEST_LINE: usize = 24;

/// Texts that are made before the measurement. Some contestants only store these texts, without computing them. They
/// show the speed limit of all methods that also compute the texts.
struct Ready {
    /// The texts, each followed by a delimiter. Contestants copy a fixed number of bytes for each text, so padding
    /// follows the last one.
    lines: String,
    /// Length of each text, including its delimiter.
    lengths: Vec<u8>,
}

impl Ready {
    fn new(values: &[u64]) -> Rc<Self> {
        let (mut lines, mut lengths) = (String::new(), Vec::new());
        for value in values {
            let line = format!("{value}\n");
            lengths.push(line.len() as u8);
            lines += &line;
        }
        lines.push_str(&" ".repeat(LONGEST_LINE));
        Rc::new(Self { lines, lengths })
    }
}

/// Returns a function that makes the texts of a slice of numbers. It makes them at the first call for that slice, and
/// keeps them for later calls. The slice must not move or change afterwards.
fn ready() -> impl FnMut(&[u64]) -> Rc<Ready> {
    let mut known = BTreeMap::new();
    move |values| Rc::clone(known.entry((values.as_ptr().addr(), values.len())).or_insert_with(|| Ready::new(values)))
}

fn of_ready(each: Each) -> Contestant {
    let lines: Lines = Box::new(|values, lines| {
        let ready = Ready::new(values);
        lines.extend_from_slice(&ready.lines.as_bytes()[..ready.lines.len() - LONGEST_LINE]);
    });
    Contestant { each, lines: Some(lines), code_bytes: None }
}

/// Creates a contestant that stores texts made in advance, each over the previous one, and computes nothing. It shows
/// the speed limit of all methods that write to the front of a buffer.
fn stored() -> Contestant {
    let (mut ready, mut buffer) = (ready(), [0; LONGEST]);
    of_ready(Box::new(move |values| store(&ready(values), &mut buffer) - values.len()))
}

/// Creates a contestant that stores texts made in advance, one after the other, and computes nothing. It shows the
/// speed limit of all methods that write a column.
fn stored_in_column() -> Contestant {
    let (mut ready, mut column) = (ready(), Vec::new());
    of_ready(Box::new(move |values| {
        let ready = ready(values);
        column.resize(ready.lines.len(), 0);
        store_in_column(&ready, &mut column) - values.len()
    }))
}

fn store(Ready { lines, lengths }: &Ready, buffer: &mut [u8; LONGEST]) -> usize {
    let mut start = 0;
    for length in lengths {
        let Some(text) = lines.as_bytes()[start..].first_chunk() else { break };
        *buffer = *text;
        black_box(&mut *buffer);
        start += usize::from(*length);
    }
    start
}

fn store_in_column(Ready { lines, lengths }: &Ready, column: &mut [u8]) -> usize {
    let mut start = 0;
    for length in lengths {
        let (from, to) = (lines.as_bytes()[start..].first_chunk(), column[start..].first_chunk_mut());
        let (Some(text), Some(room)) = (from, to) else { break };
        let (text, room): (&[u8; LONGEST_LINE], &mut [u8; LONGEST_LINE]) = (text, room);
        *room = *text;
        start += usize::from(*length);
    }
    black_box(column);
    start
}

impl Contestant {
    /// Checks the texts of these numbers, and of the smallest and the greatest number of each digit count. Also checks
    /// that the timed function writes the same number of bytes.
    ///
    /// # Errors
    /// Returns the first number whose text differs.
    pub fn check(&mut self, numbers: &[u64]) -> Result<(), String> {
        let Some(lines) = &mut self.lines else { return Ok(()) };
        for numbers in [&edges(), numbers] {
            let expected: String = numbers.iter().map(|number| format!("{number}\n")).collect();
            let mut seen = Vec::new();
            lines(numbers, &mut seen);
            if seen != expected.as_bytes() {
                return Err(first_difference(&expected, &String::from_utf8_lossy(&seen)));
            }
            let (bytes, length) = ((self.each)(numbers), expected.len() - numbers.len());
            if bytes != length {
                return Err(format!("{bytes} bytes of text instead of {length}"));
            }
        }
        Ok(())
    }
}

/// Returns the smallest and the greatest number of each digit count, and their neighbours.
fn edges() -> Vec<u64> {
    let powers = (0..20).map(|k| 10_u64.pow(k));
    powers.flat_map(|power| [power - 1, power, power + 1]).chain([u64::MAX - 1, u64::MAX]).collect()
}

fn first_difference(expected: &str, seen: &str) -> String {
    let mut seen = seen.lines();
    let differs = expected.lines().map(|expected| (expected, seen.next().unwrap_or("nothing")));
    match differs.into_iter().find(|(expected, seen)| expected != seen) {
        Some((expected, seen)) => format!("{seen:?} instead of {expected}"),
        None => "more lines than numbers".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_decimal_variant() {
        assert_eq!(contestant("roman").err(), Some(Unavailable::Variant));
    }

    #[test]
    fn everybody_that_this_machine_has_is_right() {
        for name in VARIANTS.iter().map(|ours| ours.name).chain(OTHERS.map(|(name, _)| name)) {
            if let Ok(mut contestant) = contestant(name) {
                assert!(contestant.lines.is_some() || name.starts_with("limit") || name == "nothing", "{name}");
                assert_eq!(contestant.check(&[7, 77, 1 << 40]), Ok(()), "{name}");
            }
        }
    }

    #[test]
    fn a_wrong_text_is_named() {
        let mut wrong = contestant("std").unwrap();
        wrong.lines = Some(Box::new(|numbers, lines| {
            for number in numbers {
                lines.extend(format!("{}\n", number.saturating_sub(number / 1_001)).bytes());
            }
        }));
        assert_eq!(wrong.check(&[]), Err(r#""1000" instead of 1001"#.into()));
        let mut wrong = contestant("std").unwrap();
        wrong.each = Box::new(|_| 3);
        assert!(wrong.check(&[]).unwrap_err().contains("3 bytes of text"));
        let mut silent = contestant("std").unwrap();
        silent.lines = Some(Box::new(|_, _| {}));
        assert_eq!(silent.check(&[]), Err(r#""nothing" instead of 0"#.into()));
    }
}
