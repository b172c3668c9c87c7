//! Files for others to read. They are tried before anything is measured, so that a wrong path is found
//! then, and appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ascertain_sys::files::{self, Draft, Lasting, Target};

/// Why a file can't be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path names no file.
    #[error("can't export to `{0}`: name a file, not a folder")]
    NotAFile(PathBuf),
    /// It is asked for twice.
    #[error("two exports can't both be written to `{0}`; name a file for each")]
    Twice(PathBuf),
    /// It can't be opened.
    #[error("can't export to `{path}`: {reason}; choose a folder that exists and may be written to")]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// It can't be written.
    #[error(
        "can't write `{path}`: {reason}; what stood there before is untouched: {}, or name another file",
        way_out(.reason)
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
}

fn way_out(reason: &io::Error) -> &'static str {
    match reason.kind() {
        io::ErrorKind::NotFound => "make its folder again, which is gone",
        io::ErrorKind::PermissionDenied => "allow it to be written",
        _ => "make room",
    }
}

/// A file that may be written, and does not show before it is. What is written appears whole, in the place
/// of what stood there.
#[derive(Debug)]
pub struct Export {
    target: PathBuf,
    /// The target itself, where it is a device or a pipe and can't be renamed to.
    device: Option<File>,
}

/// The path of standard output.
const STDOUT: &str = "/dev/stdout";

impl Export {
    /// Tries whether a file beside the path can be made. A device or a pipe, such as `/dev/stdout`, is
    /// opened itself; through a symbolic link, what it points to is replaced.
    ///
    /// # Errors
    /// When the path is a folder, or its folder does not exist or may not be written to.
    pub fn open(path: &Path) -> Result<Export, Error> {
        let failed = |reason| Error::Open { path: path.to_path_buf(), reason };
        if path.is_dir() || path.file_name().is_none() {
            return Err(Error::NotAFile(path.to_path_buf()));
        }
        match files::target(path).map_err(failed)? {
            Target::Direct(file) => Ok(Export { target: path.to_path_buf(), device: Some(file) }),
            Target::File { path: target, .. } => {
                Draft::create(&target).map_err(failed)?;
                Ok(Export { target, device: None })
            }
        }
    }

    /// Whether both are the same file, or standard output; another device takes what comes.
    pub fn is_same(&self, other: &Export) -> bool {
        let is_shared = self.device.is_some() && self.target != Path::new(STDOUT);
        !is_shared && self.target == other.target
    }

    /// What stands in the file, whatever its bytes; of a device nothing.
    ///
    /// # Errors
    /// When it is there and can't be read.
    pub fn standing(&self) -> Result<String, Error> {
        if self.device.is_some() {
            return Ok(String::new());
        }
        match fs::read(&self.target) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(reason) => Err(Error::Open { path: self.target.clone(), reason }),
        }
    }

    /// Writes what is known so far and lets it appear. What goes to a device can't be taken back, so that
    /// only [`finish`](Self::finish) writes there.
    ///
    /// # Errors
    /// When it can't be written. What stood there before is untouched.
    pub fn update(&self, text: &str) -> Result<(), Error> {
        if self.device.is_some() { Ok(()) } else { self.put(text, false) }
    }

    /// Writes the text and lets the file appear under its name.
    ///
    /// # Errors
    /// When it can't be written (the disk is full) or renamed. What stood there before is untouched.
    pub fn finish(&self, text: &str) -> Result<(), Error> {
        self.put(text, true)
    }

    fn put(&self, text: &str, is_final: bool) -> Result<(), Error> {
        let put = || -> io::Result<()> {
            if let Some(mut device) = self.device.as_ref() {
                return device.write_all(text.as_bytes());
            }
            // A crash soon after could otherwise leave an empty file under the final name. Before the end, to wait for
            // the disk would disturb what is measured.
            let lasting = if is_final { Lasting::ThroughCrash } else { Lasting::WhileRunning };
            fill(Draft::create(&self.target)?, text, lasting)
        };
        put().map_err(|reason| Error::Write { path: self.target.clone(), reason })
    }
}

fn fill(draft: Draft, text: &str, lasting: Lasting) -> io::Result<()> {
    draft.file().write_all(text.as_bytes())?;
    draft.publish(lasting).map(drop)
}

/// Opens and finishes a file whose text is known already.
///
/// # Errors
/// As [`Export::open`] and [`Export::finish`].
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    Export::open(path)?.finish(text)
}

/// Writes a file into a folder that may come from elsewhere: a symbolic link of that name is replaced, not followed.
///
/// # Errors
/// When it can't be written. What stood there before is untouched.
pub fn write_in(folder: &Path, name: &str, text: &str) -> Result<(), Error> {
    let begin = || Draft::create_in(files::open_folder(folder)?, name.as_ref());
    let written = begin().and_then(|draft| fill(draft, text, Lasting::ThroughCrash));
    written.map_err(|reason| Error::Write { path: folder.join(name), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let other = folder.path().join("b.csv");
        let (first, second) = (Export::open(&path).unwrap(), Export::open(&other).unwrap());
        assert!(!path.exists() && !other.exists());
        first.finish("{}\n").unwrap();
        drop(second);
        assert_eq!(names(folder.path()), ["a.json"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n");
    }

    #[test]
    fn what_stood_there_is_kept_until_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write(&path, "old").unwrap();
        drop(Export::open(&path).unwrap());
        let export = Export::open(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        export.finish("new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn what_is_known_so_far_appears_and_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let export = Export::open(&path).unwrap();
        for text in ["some", "more"] {
            export.update(text).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(names(folder.path()), ["a"]);
        }
        export.finish("all").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "all");
        assert!(Export::open(&path).unwrap().is_same(&Export::open(&path).unwrap()));
        assert!(!Export::open(&path).unwrap().is_same(&Export::open(&folder.path().join("b")).unwrap()));
    }

    #[test]
    fn wrong_paths_are_found_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let message = |path: &Path| Export::open(path).unwrap_err().to_string();
        assert!(message(folder.path()).contains("name a file, not a folder"));
        assert!(message(Path::new("..")).contains("name a file, not a folder"));
        assert!(message(&folder.path().join("none/a.json")).contains("choose a folder that exists"));
    }

    #[test]
    fn links_are_followed_and_modes_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("link"));
        write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&path, &link).unwrap();
        write(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        write(Path::new("/dev/null"), "gone").unwrap();
        write_in(folder.path(), "link", "replaced").unwrap();
        assert_eq!([&path, &link].map(|path| fs::read_to_string(path).unwrap()), ["new", "replaced"]);
        assert!(!link.is_symlink());
    }
}
