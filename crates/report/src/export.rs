//! Writing files for other programs. Each path is tested before the measurement, so that a wrong one is found early. A
//! file appears only when it is complete.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ascertain_sys::files::{self, Draft, Lasting, WriteTarget};

/// The reason why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path is a folder or has no file name.
    #[error("can't export to `{0}`: name a file, not a folder")]
    NotAFile(PathBuf),
    /// Two exports were requested to the same path.
    #[error("two exports can't both be written to `{0}`; name a file for each")]
    Twice(PathBuf),
    /// Before the measurement, the file could not be created, opened or read.
    #[error("can't export to `{path}`: {reason}; choose a folder that exists and may be written to")]
    Open {
        /// The path of the export.
        path: PathBuf,
        /// The I/O error that was returned.
        reason: io::Error,
    },
    /// During or after the measurement, the file could not be written.
    #[error(
        "can't write `{path}`: {reason}; the previous file is unchanged; {}, or name another file",
        way_out(.reason)
    )]
    Write {
        /// The path of the export.
        path: PathBuf,
        /// The I/O error that was returned.
        reason: io::Error,
    },
}

fn way_out(reason: &io::Error) -> &'static str {
    match reason.kind() {
        io::ErrorKind::NotFound => "create its folder again",
        io::ErrorKind::PermissionDenied => "make it writable",
        _ => "free some space",
    }
}

/// An output file that appears at its path when it is complete, and then replaces the previous file.
#[derive(Debug)]
pub struct Export {
    target: PathBuf,
    /// The open device or pipe that the path names, which can't be replaced by renaming; `None` for a file.
    device: Option<File>,
}

/// The path that means standard output.
const STDOUT: &str = "/dev/stdout";

impl Export {
    /// Tests whether a file can be created in the folder of the path. If the path is a device or a pipe, such as
    /// `/dev/stdout`, opens it for writing. If the path is a symbolic link, the export replaces the file it points to.
    ///
    /// # Errors
    /// Fails if the path is a folder, or if the folder that should contain the file does not exist or is not writable.
    pub fn open(path: &Path) -> Result<Export, Error> {
        let failed = |reason| Error::Open { path: path.to_path_buf(), reason };
        if path.is_dir() || path.file_name().is_none() {
            return Err(Error::NotAFile(path.to_path_buf()));
        }
        match files::write_target(path).map_err(failed)? {
            WriteTarget::Direct(file) => Ok(Export { target: path.to_path_buf(), device: Some(file) }),
            WriteTarget::File { path: target, .. } => {
                Draft::create(&target).map_err(failed)?;
                Ok(Export { target, device: None })
            }
        }
    }

    /// Returns whether two exports write to the same file, or both write to standard output. Exports to another device
    /// never count as the same, because such a device can take the text of both.
    pub fn is_same(&self, other: &Export) -> bool {
        let is_shared = self.device.is_some() && self.target != Path::new(STDOUT);
        !is_shared && self.target == other.target
    }

    /// Returns the content that the file has before the export, with invalid UTF-8 replaced. Empty if there is no file,
    /// and for a device.
    ///
    /// # Errors
    /// Fails if the file exists and can't be read.
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

    /// Replaces the file with a new one that has the results so far. Does nothing for a device, because text that was
    /// written to it can't be replaced later; only [`finish`](Self::finish) writes to a device.
    ///
    /// # Errors
    /// Fails if the file can't be written. The previous file is then unchanged.
    pub fn update(&self, text: &str) -> Result<(), Error> {
        if self.device.is_some() { Ok(()) } else { self.put(text, false) }
    }

    /// Writes the complete text, and replaces the previous file.
    ///
    /// # Errors
    /// Fails if the file can't be written (for example, because the disk is full) or renamed. The previous file is then
    /// unchanged.
    pub fn finish(&self, text: &str) -> Result<(), Error> {
        self.put(text, true)
    }

    fn put(&self, text: &str, is_final: bool) -> Result<(), Error> {
        let put = || -> io::Result<()> {
            if let Some(mut device) = self.device.as_ref() {
                return device.write_all(text.as_bytes());
            }
            // The final file is flushed to the disk, because otherwise a crash soon after could leave an empty file.
            // During the run, flushing would disturb the measurement.
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

/// Writes a text to a file in one step: [`Export::open`], then [`Export::finish`].
///
/// # Errors
/// Fails in the cases of [`Export::open`] and [`Export::finish`].
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    Export::open(path)?.finish(text)
}

/// Writes a file to a folder that other users may write to. If the name is a symbolic link, the file replaces the link,
/// not the link's target.
///
/// # Errors
/// Fails if the file can't be written. The previous file is then unchanged.
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
