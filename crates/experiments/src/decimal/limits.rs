//! Texts that are ready, stored again: what whoever writes them can't beat.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::rc::Rc;

use ascertain_engine::black_box;

use super::contestants::{Contestant, Each, Lines};

/// Stored of each text, whatever its length: the longest, and of a column with a delimiter behind it and to a whole word.
const LONGEST: usize = 20;
const LONGEST_LINE: usize = 24;

/// Texts that are ready.
struct Ready {
    /// Each with a delimiter behind it, and at the end as much as is stored at once.
    lines: String,
    /// Of each with its delimiter.
    lengths: Vec<u8>,
}

impl Ready {
    fn new(values: &[u64]) -> Rc<Self> {
        let (mut lines, mut lengths) = (String::new(), Vec::new());
        for value in values {
            let start = lines.len();
            // Writing to a String does not fail.
            let _ = writeln!(lines, "{value}");
            lengths.push((lines.len() - start) as u8);
        }
        lines.push_str(&" ".repeat(LONGEST_LINE));
        Rc::new(Self { lines, lengths })
    }
}

/// Makes them when it first sees the numbers, which stay where they are and what they are while they are measured.
fn ready() -> impl FnMut(&[u64]) -> Rc<Ready> {
    let mut known = BTreeMap::new();
    move |values| Rc::clone(known.entry((values.as_ptr().addr(), values.len())).or_insert_with(|| Ready::new(values)))
}

fn contestant(each: Each) -> Contestant {
    let lines: Lines = Box::new(|values, lines| {
        let ready = Ready::new(values);
        lines.extend_from_slice(&ready.lines.as_bytes()[..ready.lines.len() - LONGEST_LINE]);
    });
    Contestant { each, lines: Some(lines), code_bytes: None }
}

/// Each text to the same bytes.
pub fn one_by_one() -> Contestant {
    let (mut ready, mut buffer) = (ready(), [0; LONGEST]);
    contestant(Box::new(move |values| store(&ready(values), &mut buffer) - values.len()))
}

/// All texts behind one another.
pub fn column() -> Contestant {
    let (mut ready, mut column) = (ready(), Vec::new());
    contestant(Box::new(move |values| {
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
