//! Conversions between object names and file paths, filters for names, and media types.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};
use crate::pattern::Pattern;

/// Returns the path of the file, below a folder, for the object `name`. The path never leads out of the folder.
///
/// # Errors
/// Returns [`Error::Name`] if the name can't be the path of a file.
pub fn beneath(folder: &Path, name: &str) -> Result<PathBuf> {
    let path = Path::new(name);
    let reason = match name {
        "" => "it is empty",
        _ if name.contains('\0') => "it has a null byte",
        _ if name.ends_with('/') => "it ends with a slash, like the name of a folder",
        _ if path.components().any(|part| !matches!(part, Component::Normal(_))) => "it leads out of the folder",
        // `components` skips empty and `.` parts, so `a//b` and `a/./b` would become the same file as `a/b`.
        _ if name.split('/').any(|part| part.is_empty() || part == ".") => "it has a part that is empty or `.`",
        _ => return Ok(folder.join(path)),
    };
    Err(Error::Name { name: name.escape_debug().to_string(), folder: folder.to_path_buf(), reason })
}

/// Returns a path as text for messages. Bytes that are not UTF-8 are escaped, so that different paths have different
/// texts.
#[must_use]
pub fn shown(path: &Path) -> String {
    path.to_str().map_or_else(|| path.as_os_str().as_bytes().escape_ascii().to_string(), String::from)
}

/// Returns the path of a hidden file in the same folder. Its name is `.`, the name of `path`, and `ending`. If this is
/// too long for a file name, the name of `path` is truncated.
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    /// Maximum length of a file name in bytes, on nearly all file systems.
    const NAME_BYTES: usize = 255;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut end = name.len().min(NAME_BYTES.saturating_sub(ending.len() + 1));
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    path.with_file_name(format!(".{}{ending}", &name[..end]))
}

/// Selects names by patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Patterns that select names. A name must match at least one of them. If there are no patterns, every name is
    /// selected.
    pub include: Vec<Pattern>,
    /// Patterns that exclude names and folders, even if a pattern in `include` matches. A folder is excluded with all
    /// names below it.
    pub exclude: Vec<Pattern>,
    /// A pattern that every selected name must also match. It comes from an address with a pattern, such as
    /// `s3://bucket/*.log`.
    pub only: Option<Pattern>,
}

impl Filter {
    /// Returns whether a relative name is selected.
    #[must_use]
    pub fn takes(&self, name: &str) -> bool {
        let is_addressed = self.only.as_ref().is_none_or(|pattern| pattern.includes(name));
        let is_included = self.include.is_empty() || self.include.iter().any(|pattern| pattern.includes(name));
        is_addressed && is_included && !self.exclude.iter().any(|pattern| pattern.excludes(name))
    }

    /// Returns whether the filter excludes everything below the folder `name`, so that the folder need not be opened.
    #[must_use]
    pub fn leaves_out_folder(&self, name: &str) -> bool {
        self.exclude.iter().any(|pattern| pattern.excludes_folder(name))
    }
}

/// Returns the media type for the extension of a name.
#[must_use]
pub fn content_type(name: &str) -> Option<&'static str> {
    let ending = Path::new(name).extension()?.to_str()?.to_ascii_lowercase();
    CONTENT_TYPES.iter().find(|(endings, _)| endings.contains(&&*ending)).map(|(_, content_type)| *content_type)
}

const CONTENT_TYPES: &[(&[&str], &str)] = &[
    (&["html", "htm"], "text/html"),
    (&["txt", "log", "md"], "text/plain"),
    (&["css"], "text/css"),
    (&["csv"], "text/csv"),
    (&["js", "mjs"], "text/javascript"),
    (&["json"], "application/json"),
    (&["xml"], "application/xml"),
    (&["pdf"], "application/pdf"),
    (&["zip"], "application/zip"),
    (&["gz", "tgz"], "application/gzip"),
    (&["zst"], "application/zstd"),
    (&["tar"], "application/x-tar"),
    (&["wasm"], "application/wasm"),
    (&["parquet"], "application/vnd.apache.parquet"),
    (&["png"], "image/png"),
    (&["jpg", "jpeg"], "image/jpeg"),
    (&["gif"], "image/gif"),
    (&["svg"], "image/svg+xml"),
    (&["webp"], "image/webp"),
    (&["mp3"], "audio/mpeg"),
    (&["mp4"], "video/mp4"),
    (&["webm"], "video/webm"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_below_its_folder() {
        let folder = Path::new("/data");
        assert_eq!(beneath(folder, "a b/ü.txt").unwrap(), Path::new("/data/a b/ü.txt"));
        assert_eq!(beneath(folder, "..a/b..").unwrap(), Path::new("/data/..a/b.."));
        for bad in ["", "..", "../a", "a/../../b", "/etc/passwd", "a//b", "a/./b", "./a", "a/", "a\0b", "a/.."] {
            let said = beneath(folder, bad).unwrap_err().to_string();
            assert!(said.contains("/data"), "{bad}: {said}");
        }
    }

    #[test]
    fn the_longest_name_leaves_room_for_the_temporary_suffix() {
        assert_eq!(beside(Path::new("/data/a.txt"), ".7.part"), Path::new("/data/.a.txt.7.part"));
        let folder = tempfile::tempdir().unwrap();
        for name in ["x".repeat(255), format!("{}é", "x".repeat(253)), format!("x{}", "é".repeat(127))] {
            let path = folder.path().join(name);
            std::fs::write(&path, b"").unwrap();
            std::fs::write(beside(&path, ".0123456789abcdef.part"), b"").unwrap();
        }
    }

    #[test]
    fn a_filter_needs_one_and_none_of_the_others() {
        let filter = Filter {
            include: vec!["*.txt".parse().unwrap()],
            exclude: vec!["secret*".parse().unwrap()],
            ..Filter::default()
        };
        assert!(filter.takes("a/b.txt") && !filter.takes("a/secret.txt") && !filter.takes("b.png"));
        assert!(Filter::default().takes("anything"));
        assert_eq!(content_type("a/B.HTML"), Some("text/html"));
        assert_eq!(content_type("a/b"), None);
    }
}
