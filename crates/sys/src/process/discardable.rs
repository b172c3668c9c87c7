//! Which of the memory that a launcher inherits it can give back.

use std::ops::Range;

/// Mappings below this are not worth giving back; small ones are also those that the C library
/// keeps its state in.
const DISCARD_MIN_BYTES: usize = 256 * 1024;

/// What is kept around an address that the launcher needs, and the largest page there is.
const KEEP_BYTES: usize = 64 * 1024;

/// The private memory without a file in `/proc/self/maps`, but for what is around `keep`.
pub(super) fn discardable(maps: &str, keep: [usize; 2]) -> Vec<Range<usize>> {
    let keep = keep.map(|address| {
        let page = address / KEEP_BYTES * KEEP_BYTES;
        page.saturating_sub(KEEP_BYTES)..page + 2 * KEEP_BYTES
    });
    let mappings = maps.lines().filter_map(anonymous);
    let large = mappings.filter(|mapping| mapping.len() >= DISCARD_MIN_BYTES);
    large.flat_map(|mapping| keep.iter().fold(vec![mapping], without)).collect()
}

/// The range of a line of `/proc/self/maps`, if it is private, writable and of no file.
fn anonymous(line: &str) -> Option<Range<usize>> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let (mode, _offset, _device) = (fields.next()?, fields.next()?, fields.next()?);
    let (inode, name) = (fields.next()?, fields.next().unwrap_or(""));
    let has_no_file = inode == "0" && (matches!(name, "" | "[heap]" | "[stack]") || name.starts_with("[anon"));
    let address = |text| usize::from_str_radix(text, 16).ok();
    (mode == "rw-p" && has_no_file).then_some(address(start)?..address(end)?)
}

/// `ranges` without `hole`.
fn without(ranges: Vec<Range<usize>>, hole: &Range<usize>) -> Vec<Range<usize>> {
    let outside = |range: Range<usize>| [range.start..range.end.min(hole.start), range.start.max(hole.end)..range.end];
    ranges.into_iter().flat_map(outside).filter(|range| !range.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
00400000-00800000 r-xp 00000000 fe:00 42 /bin/program
00800000-00900000 rw-p 00400000 fe:00 42 /bin/program
01000000-02000000 rw-p 00000000 00:00 0 [heap]
10000000-10010000 rw-p 00000000 00:00 0 
20000000-30000000 rw-p 00000000 00:00 0 
30000000-31000000 rw-s 00000000 00:01 7 /dev/zero (deleted)
31000000-32000000 ---p 00000000 00:00 0 
33000000-34000000 rw-p 00000000 00:00 0 [anon: glibc: malloc]
40000000-40100000 rw-p 00000000 00:00 0 [stack]
50000000-50100000 r--p 00000000 00:00 0 [vvar]
";

    #[test]
    fn large_private_memory_is_given_back_except_around_what_is_used() {
        let found = discardable(MAPS, [0x400f_f123, 0x2fff_ff00]);
        let expected = [
            0x0100_0000..0x0200_0000,
            0x2000_0000..0x2ffe_0000, // and the upper end is kept
            0x3300_0000..0x3400_0000,
            0x4000_0000..0x400e_0000,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_hole_in_the_middle_leaves_two_parts() {
        assert_eq!(without(vec![10..20, 30..40], &(12..14)), [10..12, 14..20, 30..40]);
        assert_eq!(without(vec![10..20, 30..40, 50..60], &(5..35)), [35..40, 50..60]);
    }
}
