//! Builds a worktree at the path of the user's checkout, in a mount namespace that only the build sees.
//!
//! Two builds of the same source at the same path are usually equal, byte for byte. At different paths, even paths of
//! equal length, the order of functions in memory can differ, and so can their speed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use super::worktree::Worktree;

/// Options of `unshare`: for root, and for a user who may create user namespaces.
const OPTIONS: [&[&str]; 2] = [&["--mount"], &["--mount", "--map-current-user", "--keep-caps"]];

/// Mounts the worktree (`$3`) in the place of the checkout (`$2`). The git folder (`$1`), which may be in the checkout,
/// is then mounted in the place of the worktree, and `.git` becomes a file (`$4`) that leads there.
const SCRIPT: &str = "exec 3<\"$1\" && mount --bind \"$3\" \"$2\" && mount -c --bind /proc/self/fd/3 \"$3\" && \
                      mount --bind \"$3/$4\" \"$2/.git\" && cd \"$5\" && exec sh -c \"$6\" 3<&-";

/// Returns the words of a command line that runs a command in a worktree at the path of the user's checkout `top`. Two
/// words must be added: the folder and the command. `None` if this machine does not allow it, or if an environment
/// variable names a folder in the checkout, which the command could not see.
pub(super) fn launcher(worktree: &Worktree, top: &Path) -> Option<Vec<OsString>> {
    let below = format!("{}/", top.to_str()?);
    let is_hidden = |(name, value): (OsString, OsString)| {
        name != "PWD" && name != "OLDPWD" && value.to_string_lossy().contains(&below)
    };
    if cfg!(not(target_os = "linux")) || env::vars_os().any(is_hidden) {
        return None;
    }
    let link = worktree.link_to_itself()?;
    let folders: [PathBuf; 4] = [worktree.common_dir.clone(), top.into(), worktree.path.clone(), link];
    OPTIONS.into_iter().find_map(|options| {
        let words = ["unshare"].iter().chain(options).chain(&["sh", "-c", SCRIPT, "sh"]).map(OsString::from);
        let words: Vec<OsString> = words.chain(folders.iter().map(|folder| folder.clone().into())).collect();
        let mut probe = Command::new(&words[0]);
        probe.args(&words[1..]).arg(top).arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success()).then_some(words)
    })
}

/// Returns whether a program names a file in the checkout, such as a library. The program of another revision would
/// then use the file of the checkout.
pub(super) fn names_file_in(program: &Path, top: &Path) -> bool {
    let below = format!("{}/", top.display());
    let contains = |bytes: Vec<u8>| bytes.windows(below.len()).any(|window| window == below.as_bytes());
    fs::read(program).is_ok_and(contains)
}
