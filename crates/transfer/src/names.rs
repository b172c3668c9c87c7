//! Names of objects and paths of files: where one may become the other, patterns, and types of content.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::error::Error;

/// The file that an object of this name becomes below a folder: never one outside of it.
///
/// # Errors
/// [`Error::Name`], for a name that has no such file.
pub fn beneath(folder: &Path, name: &str) -> Result<PathBuf, Error> {
    let refused = |why| Err(Error::Name { name: name.escape_debug().to_string(), folder: folder.to_path_buf(), why });
    if name.is_empty() {
        return refused("it is empty");
    }
    if name.contains('\0') {
        return refused("it has a null byte");
    }
    if name.ends_with('/') {
        return refused("it is a folder's");
    }
    let path = Path::new(name);
    if path.components().any(|component| !matches!(component, Component::Normal(_))) {
        return refused("it leads out of there");
    }
    // What `components` leaves out: `a//b` and `a/./b` would be other objects' files.
    if name.split('/').any(|part| part.is_empty() || part == ".") {
        return refused("it has an empty part");
    }
    Ok(folder.join(path))
}

/// A path as text. No two paths have the same.
#[must_use]
pub fn shown(path: &Path) -> String {
    path.to_str().map_or_else(|| path.as_os_str().as_bytes().escape_ascii().to_string(), String::from)
}

/// A hidden file beside another, with as much of its name as fits before this ending.
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    /// What file systems take, nearly all of them.
    const NAME_BYTES: usize = 255;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut end = name.len().min(NAME_BYTES.saturating_sub(ending.len() + 1));
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    path.with_file_name(format!(".{}{ending}", &name[..end]))
}

/// Which names are meant: with any of the ones and with none of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Patterns, one of which has to match; without any, every name does.
    pub include: Vec<String>,
    /// Patterns, none of which may match.
    pub exclude: Vec<String>,
}

impl Filter {
    /// Whether this name, relative to what is moved, is meant.
    #[must_use]
    pub fn takes(&self, name: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
        (self.include.is_empty() || any(&self.include)) && !any(&self.exclude)
    }

    /// Whether no name below a folder of this name can be meant, so that the folder need not be opened.
    #[must_use]
    pub fn leaves_out_folder(&self, name: &str) -> bool {
        self.exclude.iter().any(|pattern| {
            let above = pattern.strip_suffix("/**");
            pattern == "**" || above.is_some_and(|above| matches_whole(above, name))
        })
    }
}

/// Whether a pattern matches all of a name, or, if it has no slash, its last part: `?` is any character but a slash,
/// `*` any number of them, `**` any number of any.
///
/// ```
/// use ascertain_transfer::matches;
///
/// assert!(matches("*.log", "var/today.log"));
/// assert!(matches("var/**", "var/a/b") && !matches("var/*", "var/a/b"));
/// ```
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let name = if pattern.contains('/') { name } else { name.rsplit('/').next().unwrap_or(name) };
    matches_whole(pattern, name)
}

fn matches_whole(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // `reached[i]`: the pattern so far matches the first i characters of the name.
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    let mut rest = &pattern[..];
    while let Some((first, after)) = rest.split_first() {
        let is_deep = *first == '*' && after.first() == Some(&'*');
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            next[at] = match first {
                '*' => reached[at] || at > 0 && next[at - 1] && (is_deep || name[at - 1] != '/'),
                '?' => at > 0 && reached[at - 1] && name[at - 1] != '/',
                exactly => at > 0 && reached[at - 1] && name[at - 1] == *exactly,
            };
        }
        (reached, rest) = (next, if is_deep { &after[1..] } else { after });
    }
    reached[name.len()]
}

/// The media type that a name's ending says.
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
    fn the_longest_name_has_room_beside_it() {
        assert_eq!(beside(Path::new("/data/a.txt"), ".7.part"), Path::new("/data/.a.txt.7.part"));
        let folder = tempfile::tempdir().unwrap();
        for name in ["x".repeat(255), format!("{}é", "x".repeat(253)), format!("x{}", "é".repeat(127))] {
            let path = folder.path().join(name);
            std::fs::write(&path, b"").unwrap();
            std::fs::write(beside(&path, ".0123456789abcdef.part"), b"").unwrap();
        }
    }

    #[test]
    fn patterns() {
        for (pattern, name, is_match) in [
            ("*", "a", true),
            ("*", "a/b", true),
            ("a*", "b/abc", true),
            ("a/*", "a/b", true),
            ("a/*", "a/b/c", false),
            ("a/**", "a/b/c", true),
            ("**/c", "a/b/c", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a/?/c", "a/b/c", true),
            ("x/a?c", "x/a/c", false),
            ("*.txt", "a.txt.gz", false),
            ("ü*", "üb", true),
            ("", "a", false),
            ("*a*b*c*", "xaybzc", true),
        ] {
            assert_eq!(matches(pattern, name), is_match, "{pattern} {name}");
        }
        // It takes time that is a product of the two, not more.
        assert!(!matches(&"*a".repeat(200), &"a".repeat(199)));
    }

    #[test]
    fn a_filter_needs_one_and_none_of_the_others() {
        let filter = Filter { include: vec!["*.txt".into()], exclude: vec!["secret*".into()] };
        assert!(filter.takes("a/b.txt") && !filter.takes("a/secret.txt") && !filter.takes("b.png"));
        assert!(Filter::default().takes("anything"));
        assert_eq!(content_type("a/B.HTML"), Some("text/html"));
        assert_eq!(content_type("a/b"), None);
    }
}
