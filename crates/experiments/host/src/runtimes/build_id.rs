//! The identity of a program by its content: the build ID in its notes, or else a digest of its bytes.

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

/// Returns the identity of a file; `None` if it cannot be read.
pub fn identity(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let id = build_id(&bytes).map(<[u8]>::to_vec);
    let id = id.unwrap_or_else(|| Sha256::digest(&bytes).to_vec());
    Some(id.iter().take(20).map(|byte| format!("{byte:02x}")).collect())
}

/// Returns a digest of a text, which tells texts apart.
pub fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns whether the file contains the text, as a program does that is linked to a library of this name.
pub fn mentions(path: &Path, text: &str) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
}

/// Returns the build ID of a 64-bit ELF file in little-endian order. The program headers of type 4 contain notes, and a
/// note of type 3 with the name `GNU` is the build ID.
pub fn build_id(file: &[u8]) -> Option<&[u8]> {
    if file.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let at = |offset: usize, bytes: usize| -> Option<usize> {
        let field = file.get(offset..offset.checked_add(bytes)?)?;
        usize::try_from(field.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))).ok()
    };
    let (headers, size, count) = (at(0x20, 8)?, at(0x36, 2)?, at(0x38, 2)?);
    for index in 0..count {
        let header = headers.checked_add(index.checked_mul(size)?)?;
        if at(header, 4)? != 4 {
            continue;
        }
        let (mut place, length) = (at(header.checked_add(8)?, 8)?, at(header.checked_add(32)?, 8)?);
        let end = place.checked_add(length)?;
        while place.checked_add(12)? <= end {
            let [name, content, kind] = [at(place, 4)?, at(place + 4, 4)?, at(place + 8, 4)?];
            let begin = place + 12;
            let description = begin.checked_add(name.checked_next_multiple_of(4)?)?;
            let after = description.checked_add(content.checked_next_multiple_of(4)?)?;
            if kind == 3 && file.get(begin..begin.checked_add(name)?)? == b"GNU\0" {
                return file.get(description..description.checked_add(content)?);
            }
            place = after;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_notes_is_identified_by_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b", "c"].map(|name| folder.path().join(name));
        for (path, content) in paths.iter().zip(["x", "x", "y"]) {
            fs::write(path, content).unwrap();
        }
        let [a, b, c] = paths.map(|path| identity(&path).unwrap());
        assert!(a == b && a != c, "{a} {b} {c}");
        assert_eq!(identity(&folder.path().join("missing")), None);
    }

    #[test]
    fn damaged_files_have_no_build_id() {
        let own = fs::read("/proc/self/exe").unwrap();
        let id = build_id(&own).map(<[u8]>::to_vec);
        // Every shorter file ends before its notes or within them. Every header with a wrong offset is refused.
        for length in (0..own.len().min(4096)).step_by(7) {
            let found = build_id(&own[..length]);
            assert!(found.is_none() || found == id.as_deref());
        }
        let mut damaged = own[..own.len().min(4096)].to_vec();
        for place in 0..damaged.len().min(1024) {
            let before = damaged[place];
            damaged[place] = 0xff;
            _ = build_id(&damaged);
            damaged[place] = before;
        }
    }
}
