//! Lists of CPUs as the kernel writes them.

use std::ops::RangeInclusive;

/// The ranges of a list such as `0-3,8`. None where any part of it is not understood: a CPU that is overlooked would
/// count as one that is not there. Nor is a list ever empty, and its end is a line's: else it was cut.
pub fn parse(text: &str) -> Option<Vec<RangeInclusive<u32>>> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let range = first.parse().ok()?..=last.parse().ok()?;
        (!range.is_empty()).then_some(range)
    };
    text.strip_suffix('\n')?.split(',').map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_understood_wholly_or_not_at_all() {
        assert_eq!(parse("0-3,8,10-11\n"), Some(vec![0..=3, 8..=8, 10..=11]));
        assert_eq!(parse("0\n"), Some(vec![0..=0]));
        let cut = ["0-3,8", "0-3,", "0-", "0", ""];
        for wrong in ["\n", "a\n", "0-\n", "x-3\n", "3-1\n", "0,x\n", "0,,1\n", "0\n\n"].iter().chain(&cut) {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
