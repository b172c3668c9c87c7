//! The mounts of this process: the type of a file system, and the mounts below a folder.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// One line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The folder of the mount.
    pub folder: Vec<u8>,
    /// The type, such as `ext4`.
    pub kind: String,
    /// Major and minor number of the device, as the file shows them.
    device: String,
    /// The folder of the file system that is mounted: `/`, or another one for a bind mount.
    part: Vec<u8>,
}

/// Returns the mounts in the order in which they were mounted: a later mount hides an earlier one. The list is empty if
/// there is no /proc.
pub fn mounts() -> Vec<Mount> {
    parse(&fs::read("/proc/self/mountinfo").unwrap_or_default())
}

fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|byte| *byte == b'\n').filter_map(mount).collect()
}

fn mount(line: &[u8]) -> Option<Mount> {
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let dash = words.iter().position(|word| *word == b"-")?;
    let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    let (folder, part) = (unescaped(words.get(4)?), unescaped(words.get(3)?));
    Some(Mount { folder, kind: text(words.get(dash + 1)?), device: text(words.get(2)?), part })
}

/// Replaces escapes such as `\040` by the bytes that they stand for.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let (mut plain, mut rest) = (Vec::new(), word);
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        (plain, rest) = match code.filter(|_| byte == b'\\') {
            Some(code) => (with(plain, code), &after[3..]),
            None => (with(plain, byte), after),
        };
    }
    plain
}

fn with(mut bytes: Vec<u8>, byte: u8) -> Vec<u8> {
    bytes.push(byte);
    bytes
}

/// Returns the type of the file system that contains a folder, by its absolute path.
pub fn kind_of(mounts: &[Mount], folder: &Path) -> Option<String> {
    around(mounts, folder.as_os_str().as_bytes()).map(|mount| mount.kind.clone())
}

/// Returns the mount that contains a folder: the innermost one, and the last one of several on the same folder.
fn around<'a>(mounts: &'a [Mount], folder: &[u8]) -> Option<&'a Mount> {
    mounts.iter().filter(|mount| is_below(folder, &mount.folder)).max_by_key(|mount| mount.folder.len())
}

/// Returns whether the same folder may be at two paths below `folder`, because two mounts show overlapping parts of the
/// same file system, as after `mount --bind`.
pub fn has_aliases(mounts: &[Mount], folder: &Path) -> bool {
    let of_folder = around(mounts, folder.as_os_str().as_bytes()).map(|mount| {
        let rest = &folder.as_os_str().as_bytes()[if mount.folder == b"/" { 0 } else { mount.folder.len() }..];
        let part = [if mount.part == b"/" { &b""[..] } else { &mount.part }, rest].concat();
        Mount { part: if part.is_empty() { b"/".to_vec() } else { part }, ..mount.clone() }
    });
    let shown: Vec<Mount> = below(mounts, folder).into_iter().chain(of_folder).collect();
    let do_overlap = |one: &Mount, other: &Mount| {
        one.device == other.device && (is_below(&one.part, &other.part) || is_below(&other.part, &one.part))
    };
    shown.iter().enumerate().any(|(index, one)| shown[..index].iter().any(|other| do_overlap(one, other)))
}

/// Returns the mounts below a folder, without the mount that contains the folder.
pub fn below(mounts: &[Mount], folder: &Path) -> Vec<Mount> {
    let folder = folder.as_os_str().as_bytes();
    mounts.iter().filter(|mount| mount.folder != folder && is_below(&mount.folder, folder)).cloned().collect()
}

fn is_below(path: &[u8], folder: &[u8]) -> bool {
    folder == b"/" || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// File systems that other machines or programs can change without an event here.
const REMOTE: &[&str] = &[
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "drvfs",
    "gfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "nfs",
    "nfs4",
    "ocfs2",
    "orangefs",
    "prl_fs",
    "smb3",
    "smbfs",
    "vboxsf",
    "virtiofs",
    "vmhgfs",
    "wslfs",
];

/// Returns whether files on a file system of this type can change without an event.
pub fn is_remote(kind: &str) -> bool {
    REMOTE.contains(&kind) || kind == "fuse" || kind.starts_with("fuse.")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home/a\\040b rw - nfs4 server:/x rw
31 22 0:41 / /home/a\\040b/c rw master:1 shared:2 - fuse.sshfs u@h: rw
32 22 8:2 / /mnt rw - fuseblk /dev/sdb rw
broken line
";

    #[test]
    fn the_innermost_mount_decides() {
        let mounts = parse(TEXT);
        assert_eq!(mounts.len(), 4);
        let kind = |path: &str| kind_of(&mounts, Path::new(path)).unwrap();
        assert_eq!(kind("/home"), "ext4");
        assert_eq!(kind("/home/a b"), "nfs4");
        assert_eq!(kind("/home/a bc"), "ext4");
        assert_eq!(kind("/home/a b/c/d"), "fuse.sshfs");
        assert!(is_remote(&kind("/home/a b/c")) && is_remote("nfs4") && is_remote("9p"));
        assert!(!is_remote("ext4") && !is_remote(&kind("/mnt")) && !is_remote("overlay"));
    }

    #[test]
    fn the_last_mount_on_a_folder_decides() {
        let mounts = parse(
            b"22 1 8:1 / / rw - ext4 a rw\n30 22 0:40 / /home rw - autofs b rw\n31 30 0:41 / /home rw - nfs4 c rw",
        );
        assert_eq!(kind_of(&mounts, Path::new("/home/a")).unwrap(), "nfs4");
    }

    #[test]
    fn two_mounts_of_the_same_folder_are_aliases() {
        let below = |lines: &str| {
            let mounts =
                parse(format!("22 1 8:1 / / rw - ext4 a rw\n23 22 8:2 /u /home rw - ext4 b rw\n{lines}").as_bytes());
            has_aliases(&mounts, Path::new("/home/r"))
        };
        assert!(!below(""));
        // Other file systems, other folders of the same one, and mounts elsewhere.
        assert!(!below("30 23 0:40 / /home/r/m rw - tmpfs c rw\n31 23 0:41 / /home/r/n rw - tmpfs d rw"));
        assert!(!below("30 23 8:2 /u/rest /home/r/m rw - ext4 b rw\n31 23 8:2 /v /home/r/n rw - ext4 b rw"));
        assert!(!below("30 22 8:2 /u/r /mnt rw - ext4 b rw"));
        // The worktree contains the folder, the folder contains the worktree, or two mounts show the same.
        assert!(below("30 23 8:2 /u/r/a /home/r/m rw - ext4 b rw"));
        assert!(below("30 23 8:2 / /home/r/m rw - ext4 b rw"));
        assert!(below("30 23 0:40 / /home/r/m rw - tmpfs c rw\n31 23 0:40 /x /home/r/n rw - tmpfs c rw"));
    }

    #[test]
    fn mounts_below_a_folder_do_not_include_its_own() {
        let mounts = parse(TEXT);
        let below = below(&mounts, Path::new("/home/a b"));
        assert_eq!(below.iter().map(|mount| &*mount.kind).collect::<Vec<_>>(), ["fuse.sshfs"]);
    }
}
