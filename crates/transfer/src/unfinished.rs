//! What moves of a process that was killed have left beside files of this machine.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::journal;

/// What the names of folders of blocks end with.
pub(crate) const UPLOAD: &str = ".upload";
/// What the names of files end with that are not whole yet.
pub(crate) const DOWNLOAD: &str = ".part";

/// Whose a name is: an upload's, of some id and process, or that of a download without a journal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Made<'a> {
    pub id: &'a str,
    pub by_process: u32,
}

impl<'a> Made<'a> {
    /// None for somebody's own that is called nearly so.
    pub fn parse(name: &'a str) -> Option<Self> {
        let hidden = name.strip_prefix('.')?;
        let is_hex = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (of, id, by_process) = if let Some(hidden) = hidden.strip_suffix(UPLOAD) {
            let (of, id) = hidden.rsplit_once('.')?;
            let [at, process, number] = *id.split('-').collect::<Vec<_>>() else { return None };
            let process = u32::from_str_radix(process, 16).ok().filter(|_| is_hex(at) && is_hex(number));
            (of, id, process)
        } else {
            let (of, id) = hidden.strip_suffix(DOWNLOAD)?.rsplit_once('.')?;
            let (pair, process) = id.split_once('-')?;
            (of, id, process.parse().ok().filter(|_| is_hex(pair) && pair.len() == 16))
        };
        Some(Self { id, by_process: by_process.filter(|_| !of.is_empty())? })
    }
}

/// Unfinished uploads into files below a folder, and downloads, that no journal in its folder goes on with: each with
/// the process that it is of, which may not be over. Links are not followed.
///
/// # Errors
/// What can't be read.
pub fn unfinished(folder: &Path, journals: &Path) -> Result<Vec<(PathBuf, u32)>, (PathBuf, io::Error)> {
    let (mut kept, mut found, mut folders) = (BTreeSet::new(), Vec::new(), vec![folder.to_path_buf()]);
    if journals.is_dir() {
        for path in entries(journals)? {
            let text = fs::read(&path).map_err(|error| (path, error))?;
            kept.extend(journal::read(&text).0.begun.map(|begun| begun.upload));
        }
    }
    while let Some(folder) = folders.pop() {
        for path in entries(&folder)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            match Made::parse(name) {
                Some(made) if !kept.contains(made.id) => found.push((path.clone(), made.by_process)),
                Some(_) => {}
                None if path.is_dir() && !path.is_symlink() => folders.push(path),
                None => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let entries = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    entries.map_err(|error| (folder.to_path_buf(), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_ours() {
        let made = |name| Made::parse(name).map(|made| (made.id, made.by_process));
        assert_eq!(made(".a.b.18f-2a-0.upload"), Some(("18f-2a-0", 42)));
        assert_eq!(made(".a.0123456789abcdef-42.part"), Some(("0123456789abcdef-42", 42)));
        for theirs in [
            "a.18f-2a-0.upload",
            "..18f-2a-0.upload",
            ".18f-2a-0.upload",
            ".a.1-2.upload",
            ".a.1-2-3-4.upload",
            ".a.1-123456789-3.upload",
            ".a.x-2-3.upload",
            ".upload",
            ".cache.upload",
            // Its journal has no process.
            ".a.0123456789abcdef.part",
            ".a.0123-42.part",
            ".part",
            ".a",
        ] {
            assert_eq!(made(theirs), None, "{theirs}");
        }
    }
}
