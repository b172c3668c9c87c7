//! The caches of a CPU, as `/sys/devices/system/cpu/cpu0/cache` describes them.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::cpu_list;

/// One cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// 1 is the nearest to the core.
    pub level: u8,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// How much it holds.
    pub size_bytes: u64,
    /// How many CPUs share it.
    pub shared_by: usize,
}

/// The caches in a CPU's folder, by level; none if there is no such folder.
pub(super) fn caches(folder: &Path) -> Vec<Cache> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_cache = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("index");
    let mut caches: Vec<Cache> = entries.filter(is_cache).filter_map(|entry| cache(&entry.path())).collect();
    caches.sort_by(|a, b| (a.level, &a.kind).cmp(&(b.level, &b.kind)));
    caches
}

fn cache(folder: &Path) -> Option<Cache> {
    let read = |name| fs::read_to_string(folder.join(name)).ok();
    Some(Cache {
        level: read("level")?.trim().parse().ok()?,
        kind: read("type")?.trim().to_owned(),
        size_bytes: size_bytes(read("size")?.trim())?,
        shared_by: cpu_list::parse(&read("shared_cpu_list")?)?.into_iter().map(Iterator::count).sum(),
    })
}

/// `48K`, `32M` or a plain number.
fn size_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_sizes() {
        assert_eq!(size_bytes("48K"), Some(49_152));
        assert_eq!(size_bytes("32M"), Some(33_554_432));
        assert_eq!(size_bytes("512"), Some(512));
        for wrong in ["", "K", "x", "99999999999999999999K"] {
            assert_eq!(size_bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_folder_of_the_kernels() {
        let folder = tempfile::tempdir().unwrap();
        let write = |index: &str, fields: [&str; 4]| {
            let path = folder.path().join(index);
            fs::create_dir(&path).unwrap();
            for (name, text) in ["level", "type", "size", "shared_cpu_list"].iter().zip(fields) {
                fs::write(path.join(name), format!("{text}\n")).unwrap();
            }
        };
        write("index3", ["3", "Unified", "32768K", "0-7"]);
        write("index1", ["1", "Instruction", "32K", "0,4"]);
        write("index0", ["1", "Data", "48K", "0,4"]);
        write("index9", ["9", "Unified", "?", "0"]);
        let cache =
            |level, kind: &str, size_bytes, shared_by| Cache { level, kind: kind.to_owned(), size_bytes, shared_by };
        let expected =
            [cache(1, "Data", 48 << 10, 2), cache(1, "Instruction", 32 << 10, 2), cache(3, "Unified", 32 << 20, 8)];
        assert_eq!(caches(folder.path()), expected);
        assert_eq!(caches(&folder.path().join("nothing")), []);
    }
}
