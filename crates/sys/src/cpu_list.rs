//! Lists of CPUs as the kernel writes them.

use std::ops::RangeInclusive;

/// The ranges of a list such as `0-3,8`. None where any part of it is not understood: a CPU that is overlooked would
/// count as one that runs nothing. Nor is a list ever empty.
pub fn parse(text: &str) -> Option<Vec<RangeInclusive<u32>>> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let range = first.parse().ok()?..=last.parse().ok()?;
        (!range.is_empty()).then_some(range)
    };
    text.trim().split(',').map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_understood_wholly_or_not_at_all() {
        assert_eq!(parse("0-3,8,10-11\n"), Some(vec![0..=3, 8..=8, 10..=11]));
        assert_eq!(parse("0"), Some(vec![0..=0]));
        for wrong in ["", "\n", "a", "0-", "x-3", "3-1", "0,x", "0,,1"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
