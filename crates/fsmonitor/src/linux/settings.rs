//! The settings of git: `enable` writes them, and `disable` restores the earlier settings.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;
use std::{env, fs, io};

use super::place::{self, ROOT_FILE, Worktree};
use super::protocol::Request;
use super::{client, daemon, git, mounts};
use crate::{EnableOptions, Enabled, Error, HOOK, Untracked};

const MONITOR: &str = "core.fsmonitor";
const VERSION: &str = "core.fsmonitorHookVersion";
const CACHE: &str = "core.untrackedCache";
const SHOWN: &str = "status.showUntrackedFiles";
/// Name of the file with the earlier settings.
const SAVED_FILE: &str = "ascertain-fsmonitor.saved";
/// Name of the file with the earlier settings of a worktree that has its own configuration file.
const SAVED_OWN_FILE: &str = "ascertain-fsmonitor.saved-worktree";

/// Sets git up to ask the monitor in this worktree, starts the monitor, and runs `git status` once, which makes the
/// next `git status` fast. Calling it again renews the settings, for example after the hook has moved.
///
/// # Errors
/// The settings are unchanged after an error, unless the monitor was enabled before: then git may use the new settings,
/// and [`disable`] still restores the earlier ones. [`Error::AlreadySet`]: another monitor is configured.
pub fn enable(path: &Path, options: &EnableOptions) -> Result<Enabled, Error> {
    let worktree = git::worktree(path)?;
    let mounts = mounts::mounts();
    for folder in [&worktree.root, &worktree.git_dir] {
        if let Some(kind) = mounts::kind_of(&mounts, folder).filter(|kind| mounts::is_remote(kind)) {
            return Err(Error::NetworkFileSystem { path: folder.clone(), kind });
        }
    }
    let hook = hook(options)?;
    let (git, has_builtin) = git::version(&worktree)?;
    let store = Store::of(&worktree)?;
    if !options.replace {
        refuse_other(&worktree)?;
    }
    let mut settings: Vec<(&'static str, OsString)> =
        vec![(MONITOR, quoted(&hook)), (VERSION, "2".into()), (CACHE, "true".into())];
    if options.untracked == Untracked::All {
        settings.push((SHOWN, "all".into()));
    }
    let was_enabled = store.saved.exists();
    store.save_and_set(&worktree, &settings)?;
    if let Err(error) = check(&worktree, &settings).and_then(|()| record_root(&worktree)) {
        if !was_enabled {
            store.restore(&worktree)?;
        }
        return Err(error);
    }
    if options.untracked == Untracked::Normal {
        store.restore_shown(&worktree)?;
    }
    // An earlier daemon may belong to another hook.
    client::stop(&worktree);
    let _ = fs::remove_file(worktree.file("lock"));
    let problem = start(&hook, &worktree).err();
    Ok(Enabled {
        worktrees: worktrees(&worktree)?.len(),
        submodules: submodules(&worktree),
        root: worktree.root,
        hook,
        git,
        has_builtin,
        problem,
    })
}

/// Restores the settings from before [`enable`], and stops the monitors of all worktrees that used the new settings.
/// Returns whether the monitor was enabled.
///
/// # Errors
/// [`Error::NotAWorktree`], [`Error::Bare`], or [`Error::Git`] if git cannot change its settings.
pub fn disable(path: &Path) -> Result<bool, Error> {
    let worktree = git::worktree(path)?;
    let store = Store::of(&worktree)?;
    let was_enabled = store.restore(&worktree)?;
    let all = if store.scope == "--worktree" { vec![worktree.git_dir.clone()] } else { worktrees(&worktree)? };
    for git_dir in all {
        let one = Worktree { root: worktree.root.clone(), git_dir };
        client::stop(&one);
        for extension in ["sock", "lock", "log"] {
            let _ = fs::remove_file(one.file(extension));
        }
        let _ = fs::remove_file(one.git_dir.join(ROOT_FILE));
    }
    Ok(was_enabled)
}

/// Returns the hook that git calls in a worktree, if it is ours.
pub fn configured_hook(worktree: &Worktree) -> Result<Option<PathBuf>, Error> {
    Ok(configured(worktree)?.and_then(|(value, _)| own_hook(&value)))
}

/// Returns the value of `core.fsmonitor` that git uses, and where it comes from.
pub fn configured(worktree: &Worktree) -> Result<Option<(Vec<u8>, String)>, Error> {
    effective(worktree, MONITOR)
}

fn effective(worktree: &Worktree, key: &str) -> Result<Option<(Vec<u8>, String)>, Error> {
    let Some(found) = git::config(worktree, &["--show-origin", "-z", "--get", key])? else { return Ok(None) };
    let mut parts = found.split(|byte| *byte == 0);
    let origin = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    Ok(Some((parts.next().unwrap_or_default().to_vec(), origin)))
}

/// Returns the path in a value of `core.fsmonitor` if it is that of our hook.
pub fn own_hook(value: &[u8]) -> Option<PathBuf> {
    let path = PathBuf::from(OsString::from_vec(unquoted(value)));
    (path.file_name() == Some(OsStr::new(HOOK))).then_some(path)
}

/// Characters that make git start a hook through a shell.
const SHELL: &[u8] = b"|&;<>()$`\\\"' \t\n*?[#~=%";

/// Quotes a path for a shell if it needs quotes. Git starts a path without such characters directly.
fn quoted(path: &Path) -> OsString {
    let bytes = path.as_os_str().as_bytes();
    if !bytes.iter().any(|byte| SHELL.contains(byte)) {
        return path.as_os_str().to_owned();
    }
    let parts: Vec<&[u8]> = bytes.split(|byte| *byte == b'\'').collect();
    OsString::from_vec([b"'", &parts.join(&b"'\\''"[..])[..], b"'"].concat())
}

fn unquoted(value: &[u8]) -> Vec<u8> {
    match value.strip_prefix(b"'").and_then(|rest| rest.strip_suffix(b"'")) {
        None => value.to_vec(),
        Some(inner) => {
            let (mut plain, mut rest) = (Vec::new(), inner);
            while let Some(at) = rest.windows(4).position(|part| part == b"'\\''") {
                plain.extend_from_slice(&rest[..at]);
                plain.push(b'\'');
                rest = &rest[at + 4..];
            }
            plain.extend_from_slice(rest);
            plain
        }
    }
}

/// Finds the hook that the options name, or else the hook in the folder of the running program.
pub fn hook(options: &EnableOptions) -> Result<PathBuf, Error> {
    let beside = || env::current_exe().and_then(|exe| exe.canonicalize()).map(|exe| exe.with_file_name(HOOK));
    let path = match &options.hook {
        Some(path) => std::path::absolute(path),
        None => beside(),
    };
    let path = path.map_err(Error::system("find the hook"))?;
    let there = fs::metadata(&path).ok().filter(|there| there.is_file() && there.permissions().mode() & 0o111 != 0);
    there.map(|_| path.clone()).ok_or(Error::HookMissing(path))
}

/// Fails if another monitor is configured.
fn refuse_other(worktree: &Worktree) -> Result<(), Error> {
    let Some((value, origin)) = configured(worktree)? else { return Ok(()) };
    let is_off = [&b""[..], b"false", b"no", b"off", b"0"].contains(&&*value.to_ascii_lowercase());
    if is_off || own_hook(&value).is_some() {
        return Ok(());
    }
    Err(Error::AlreadySet { value: String::from_utf8_lossy(&value).into_owned(), origin })
}

/// Checks that git uses these settings, and that no setting with a higher precedence hides one of them.
fn check(worktree: &Worktree, settings: &[(&'static str, OsString)]) -> Result<(), Error> {
    for (key, expected) in settings {
        let (value, origin) = effective(worktree, key)?.unwrap_or_default();
        if value != expected.as_bytes() {
            return Err(Error::Overridden { key, value: String::from_utf8_lossy(&value).into_owned(), origin });
        }
    }
    Ok(())
}

/// Records the root if its `.git` does not lead to the git folder.
fn record_root(worktree: &Worktree) -> Result<(), Error> {
    if place::confirmed_git_dir(&worktree.root, Some(&worktree.git_dir)).is_some() {
        return Ok(());
    }
    let path = worktree.git_dir.join(ROOT_FILE);
    fs::write(&path, worktree.root.as_os_str().as_bytes()).map_err(Error::system(format!("write {}", path.display())))
}

/// Starts the daemon, waits until it is ready, and stores a token in the index.
fn start(hook: &Path, worktree: &Worktree) -> Result<(), String> {
    let deadline = Instant::now() + client::PATIENCE * 12;
    let wait = || -> io::Result<()> {
        let mut client = client::connect_or_start(hook, worktree, deadline)?;
        loop {
            let status = client.request(&Request::Status, deadline)?;
            let is = |line: &[u8]| status.split(|byte| *byte == b'\n').any(|other| other == line);
            if is(b"ready=true") {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    };
    let failure = |error: io::Error| daemon::failure(worktree).map_or_else(|| error.to_string(), |(why, _)| why);
    wait().map_err(failure)?;
    for _ in 0..2 {
        let _ = git::command(worktree).args(["status"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
    Ok(())
}

/// Returns the git folders of all worktrees of the repository.
fn worktrees(worktree: &Worktree) -> Result<Vec<PathBuf>, Error> {
    let common = git::common_dir(worktree)?;
    let linked = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten().map(|entry| entry.path());
    Ok([common].into_iter().chain(linked.filter(|path| path.join("gitdir").exists())).collect())
}

fn submodules(worktree: &Worktree) -> usize {
    let list = git::config(worktree, &["--file", ".gitmodules", "--name-only", "--get-regexp", r"\.path$"]);
    list.ok().flatten().map_or(0, |list| list.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count())
}

/// The configuration file that is changed, and the file with its earlier settings.
struct Store {
    /// `--local`, or `--worktree` if each worktree has its own configuration file.
    scope: &'static str,
    saved: PathBuf,
}

impl Store {
    fn of(worktree: &Worktree) -> Result<Store, Error> {
        let extension = git::config(worktree, &["--local", "--bool", "--get", "extensions.worktreeConfig"])?;
        let local = Store { scope: "--local", saved: git::common_dir(worktree)?.join(SAVED_FILE) };
        // `git sparse-checkout` turns the extension on. Settings that `enable` wrote before are in the shared file.
        if extension.as_deref() != Some(b"true\n") || local.saved.exists() {
            return Ok(local);
        }
        Ok(Store { scope: "--worktree", saved: worktree.git_dir.join(SAVED_OWN_FILE) })
    }

    fn values(&self, worktree: &Worktree, key: &str) -> Result<Vec<Vec<u8>>, Error> {
        let found = git::config(worktree, &[self.scope, "-z", "--get-all", key])?.unwrap_or_default();
        let mut values: Vec<Vec<u8>> = found.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        // Each value has a NUL byte at its end.
        values.pop();
        Ok(values)
    }

    /// Saves the earlier settings, unless an earlier call has saved them, and writes the new ones.
    fn save_and_set(&self, worktree: &Worktree, settings: &[(&'static str, OsString)]) -> Result<(), Error> {
        let mut saved = fs::read(&self.saved).unwrap_or_default();
        let old = saved.clone();
        for (key, _) in settings {
            let name = format!("set {key}\0");
            if !contains(&saved, name.as_bytes()) {
                saved.extend_from_slice(name.as_bytes());
                for value in self.values(worktree, key)? {
                    saved.extend_from_slice(&[format!("was {key}=").as_bytes(), &value, b"\0"].concat());
                }
            }
        }
        fs::write(&self.saved, &saved).map_err(Error::system(format!("write {}", self.saved.display())))?;
        let set = |(key, value): &(&str, OsString)| {
            let words = ["config", self.scope, "--replace-all", key].map(OsStr::new);
            git::output_of(git::command(worktree), &[&words[..], &[value.as_os_str()]].concat()).map(drop)
        };
        settings.iter().try_for_each(set).inspect_err(|_| {
            // Undo the part that was done. If that fails too, for the same reason, `disable` can do it later.
            if old.is_empty() {
                let _ = self.restore(worktree);
            }
        })
    }

    /// Restores the saved settings. Returns whether there were any.
    fn restore(&self, worktree: &Worktree) -> Result<bool, Error> {
        let Ok(saved) = fs::read(&self.saved) else { return self.remove_own(worktree) };
        let fields: Vec<&[u8]> = saved.split(|byte| *byte == 0).collect();
        for key in fields.iter().filter_map(|field| std::str::from_utf8(field.strip_prefix(b"set ")?).ok()) {
            let prefix = format!("was {key}=");
            let values: Vec<&[u8]> = fields.iter().filter_map(|field| field.strip_prefix(prefix.as_bytes())).collect();
            if key == MONITOR && !self.values(worktree, key)?.iter().all(|value| own_hook(value).is_some()) {
                // The user has set another monitor since.
                continue;
            }
            self.replace(worktree, key, &values)?;
        }
        fs::remove_file(&self.saved).map_err(Error::system(format!("remove {}", self.saved.display())))?;
        Ok(true)
    }

    /// Replaces all values of a setting.
    fn replace(&self, worktree: &Worktree, key: &str, values: &[&[u8]]) -> Result<(), Error> {
        let _ = git::config(worktree, &[self.scope, "--unset-all", key]);
        for value in values {
            let words = ["config", self.scope, "--add", key].map(OsStr::new);
            git::output_of(git::command(worktree), &[&words[..], &[OsStr::from_bytes(value)]].concat())?;
        }
        if values.is_empty() && !self.values(worktree, key)?.is_empty() {
            return Err(Error::Git {
                command: format!("config --unset-all {key}"),
                why: "the setting is still there: the configuration file may be locked or read-only".into(),
            });
        }
        Ok(())
    }

    /// Restores `status.showUntrackedFiles` if an earlier call has set it, and forgets its saved value. A value that
    /// the user has set since stays.
    fn restore_shown(&self, worktree: &Worktree) -> Result<(), Error> {
        let saved = fs::read(&self.saved).unwrap_or_default();
        let (set, was) = (format!("set {SHOWN}"), format!("was {SHOWN}="));
        let is_of_shown = |field: &&[u8]| *field == set.as_bytes() || field.starts_with(was.as_bytes());
        let (own, other): (Vec<&[u8]>, Vec<&[u8]>) = saved.split(|byte| *byte == 0).partition(is_of_shown);
        if own.is_empty() || self.values(worktree, SHOWN)? != [b"all"] {
            return Ok(());
        }
        let values: Vec<&[u8]> = own.iter().filter_map(|field| field.strip_prefix(was.as_bytes())).collect();
        self.replace(worktree, SHOWN, &values)?;
        let path = &self.saved;
        fs::write(path, other.join(&0)).map_err(Error::system(format!("write {}", path.display())))
    }

    /// Removes our hook from a configuration whose earlier settings were lost.
    fn remove_own(&self, worktree: &Worktree) -> Result<bool, Error> {
        let values = self.values(worktree, MONITOR)?;
        if values.is_empty() || !values.iter().all(|value| own_hook(value).is_some()) {
            return Ok(false);
        }
        for key in [MONITOR, VERSION] {
            git::config(worktree, &[self.scope, "--unset-all", key])?;
        }
        Ok(true)
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_path_is_read_back() {
        for path in ["/usr/bin/x", "/a b/x", "/it's/x", "/'", "/$HOME/`x`", "/a\nb", "/*?"] {
            let quoted = quoted(Path::new(path));
            assert_eq!(unquoted(quoted.as_bytes()), path.as_bytes());
            let printed = std::process::Command::new("sh")
                .arg("-c")
                .arg([OsStr::new("printf %s"), &quoted].join(OsStr::new(" ")))
                .output()
                .unwrap();
            assert_eq!(printed.stdout, path.as_bytes());
        }
        assert_eq!(quoted(Path::new("/usr/bin/x")), "/usr/bin/x");
        let odd = Path::new(OsStr::from_bytes(b"/\xff x"));
        assert_eq!(unquoted(quoted(odd).as_bytes()), odd.as_os_str().as_bytes());
    }
}
