//! What tells a damaged file from a whole one.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The start and the multiplier of FNV-1a with 64 bits (Fowler, Noll and Vo; RFC 9923).
const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// A file's checksum as `run.json` has it: `fnv1a64:` and 16 hexadecimal digits. One wrong byte always
/// changes it, since each step can be undone; more do but for one chance in 2^64.
pub(super) fn of_file(path: &Path) -> io::Result<String> {
    of_start(path, u64::MAX)
}

/// The checksum of a file's first `bytes`.
pub(super) fn of_start(path: &Path, bytes: u64) -> io::Result<String> {
    let mut file = File::open(path)?.take(bytes);
    let mut block = vec![0; 1 << 16];
    let mut sum = START;
    loop {
        match file.read(&mut block)? {
            0 => return Ok(format!("fnv1a64:{sum:016x}")),
            length => sum = block[..length].iter().fold(sum, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(PRIME)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vectors of the algorithm's authors.
    #[test]
    fn it_is_fnv_1a() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (text, sum) in [("", "cbf29ce484222325"), ("a", "af63dc4c8601ec8c"), ("foobar", "85944171f73967e8")] {
            std::fs::write(file.path(), text).unwrap();
            assert_eq!(of_file(file.path()).unwrap(), format!("fnv1a64:{sum}"));
            std::fs::write(file.path(), format!("{text}more")).unwrap();
            assert_eq!(of_start(file.path(), text.len() as u64).unwrap(), format!("fnv1a64:{sum}"));
        }
    }
}
