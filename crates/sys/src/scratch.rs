//! Private folders for temporary files.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, io, process};

use rustix::fs::{FlockOperation, flock};

/// A private folder for temporary files. Dropping this value removes the folder. If a process is killed and leaves its
/// folder behind, the next process that creates a folder for the same purpose removes the old one.
///
/// The name of the folder is `ascertain-PURPOSE-PROCESS-NUMBER`, where `PROCESS` is the id of the process that uses it.
///
/// ```
/// use ascertain_sys::scratch::ScratchFolder;
///
/// let folder = ScratchFolder::new("doc")?;
/// let path = folder.path().to_owned();
/// std::fs::write(path.join("file"), "text")?;
/// drop(folder);
/// assert!(!path.exists());
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct ScratchFolder {
    path: PathBuf,
    /// The folder, which is locked while it is open.
    _lock: File,
}

impl ScratchFolder {
    /// Creates an empty folder in the system's folder for temporary files. `purpose` is one word.
    ///
    /// # Errors
    /// Returns errors of the system.
    pub fn new(purpose: &str) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (among, prefix) = (env::temp_dir(), prefix(purpose));
        remove_abandoned(&among, &prefix);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = among.join(format!("{prefix}{}-{number}", process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                // The folder was left behind by a killed process with the same id.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    let lock = made.and_then(|()| File::open(&path))?;
                    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
                    return Ok(Self { path, _lock: lock });
                }
            }
        }
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn prefix(purpose: &str) -> String {
    format!("ascertain-{purpose}-")
}

/// Removes the folders of processes that have ended. A process in another namespace may seem to have ended, because its
/// id is unknown here. Its folders are locked, so they are kept.
fn remove_abandoned(among: &Path, prefix: &str) {
    for entry in fs::read_dir(among).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let pid = name.strip_prefix(prefix).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        let has_ended = pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists());
        let lock = |folder: File| flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok();
        if has_ended && entry.file_type().is_ok_and(|kind| kind.is_dir()) && File::open(entry.path()).is_ok_and(lock) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn only_unlocked_folders_of_ended_processes_are_removed() {
        let among = tempfile::tempdir().unwrap();
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let make = |name: String| {
            let path = among.path().join(name);
            fs::create_dir_all(path.join("data")).unwrap();
            path
        };
        let prefix = prefix("test");
        let [abandoned, locked] = ["0", "1"].map(|number| make(format!("{prefix}{}-{number}", child.id())));
        let kept = [make(format!("{prefix}{}-0", process::id())), make("other-1-0".into()), make(prefix.clone())];
        let folder = File::open(&locked).unwrap();
        flock(&folder, FlockOperation::NonBlockingLockExclusive).unwrap();
        remove_abandoned(among.path(), &prefix);
        assert!(!abandoned.exists() && locked.exists() && kept.iter().all(|path| path.exists()));
    }
}
