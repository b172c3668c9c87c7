//! The folders that belong to a worktree, and the files of the daemon.

use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::geteuid;

/// A worktree that can be watched.
pub struct Worktree {
    /// The root folder, as an absolute path.
    pub root: PathBuf,
    /// The git folder that belongs to this worktree alone, as an absolute path. A linked worktree or a submodule has
    /// it inside the git folder of another repository.
    pub git_dir: PathBuf,
}

/// The name of a file of the daemon. Each user has its own daemon, because no user trusts the answers of another.
pub fn file_name(extension: &str) -> String {
    format!("ascertain-fsmonitor.{}.{extension}", geteuid().as_raw())
}

/// Name of the file in which `enable` records the root, if `.git` in the root does not lead to the git folder.
pub const ROOT_FILE: &str = "ascertain-fsmonitor.root";

impl Worktree {
    /// Returns the path of a file of the daemon.
    pub fn file(&self, extension: &str) -> PathBuf {
        self.git_dir.join(file_name(extension))
    }
}

/// Returns the number of the worktree with this git folder, for tokens. It stays the same if the folders are renamed.
pub fn number(git_dir: &Metadata) -> u64 {
    let mix = |value: u64| (value ^ value >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mix(git_dir.dev().wrapping_add(mix(git_dir.ino())))
}

/// Returns device and inode, which identify a file on this machine.
pub fn identity(there: &Metadata) -> (u64, u64) {
    (there.dev(), there.ino())
}

/// Returns the git folder to which `root/.git` leads: the folder itself, or the one that a file names.
pub fn git_dir_of(root: &Path) -> Option<PathBuf> {
    let path = root.join(".git");
    if fs::metadata(&path).ok()?.is_dir() {
        return Some(path);
    }
    let text = read_small(&path)?;
    let named = text.strip_prefix(b"gitdir: ")?;
    let end = named.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
    Some(root.join(Path::new(std::ffi::OsStr::from_bytes(&named[..=end]))))
}

/// Returns the git folder of the worktree with this root, if git names the same folder (`git_dir`). If git is called
/// with the git folder of another worktree, it takes any folder for a worktree, so no question can be answered.
pub fn confirmed_git_dir(root: &Path, git_dir: Option<&Path>) -> Option<PathBuf> {
    let own = git_dir_of(root);
    let Some(named) = git_dir else { return own };
    let there = fs::metadata(named).ok()?;
    if let Some(own) = own
        && identity(&fs::metadata(&own).ok()?) == identity(&there)
    {
        return Some(own);
    }
    // `enable` has recorded the root of a worktree without `.git`.
    let recorded = read_small(&named.join(ROOT_FILE))?;
    let recorded = fs::metadata(Path::new(std::ffi::OsStr::from_bytes(&recorded))).ok()?;
    (identity(&recorded) == identity(&fs::metadata(root).ok()?)).then(|| named.to_owned())
}

/// Returns the content of a regular file of at most 64 KiB. Does not wait for other kinds of files.
pub fn read_small(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = fs::File::options().read(true).custom_flags(flags).open(path).ok()?;
    let mut content = Vec::new();
    file.metadata().ok()?.is_file().then(|| file.take(64 << 10).read_to_end(&mut content).ok())??;
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_dir_is_confirmed_only_for_its_own_root() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("a/.git")).unwrap();
        fs::create_dir_all(at("b/.git")).unwrap();
        fs::create_dir_all(at("elsewhere")).unwrap();
        fs::create_dir_all(at("linked")).unwrap();
        fs::write(at("linked/.git"), "gitdir: ../a/.git\n").unwrap();
        assert!(confirmed_git_dir(&at("a"), None).is_some());
        assert!(confirmed_git_dir(&at("a"), Some(&at("a/.git"))).is_some());
        assert!(confirmed_git_dir(&at("linked"), Some(&at("a/.git"))).is_some());
        assert_eq!(confirmed_git_dir(&at("b"), Some(&at("a/.git"))), None);
        assert_eq!(confirmed_git_dir(&at("elsewhere"), Some(&at("a/.git"))), None);
        assert_eq!(confirmed_git_dir(&at("elsewhere"), None), None);
        fs::write(at("a/.git").join(ROOT_FILE), at("elsewhere").as_os_str().as_bytes()).unwrap();
        assert!(confirmed_git_dir(&at("elsewhere"), Some(&at("a/.git"))).is_some());
        // A FIFO in place of the file must not block.
        fs::remove_file(at("linked/.git")).unwrap();
        std::process::Command::new("mkfifo").arg(at("linked/.git")).status().unwrap();
        assert_eq!(confirmed_git_dir(&at("linked"), None), None);
    }
}
