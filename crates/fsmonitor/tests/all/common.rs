//! Repositories for tests, with git commands that do not depend on the user's settings.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ascertain_fsmonitor::{EnableOptions, Enabled, MonitorStatus, disable, enable, status};
use ascertain_sys::testing::{left_out, wait_until};
use tempfile::TempDir;

/// The program that git calls.
pub const HOOK: &str = env!("CARGO_BIN_EXE_ascertain-fsmonitor-hook");

/// A repository in a temporary folder. Its daemon ends with it.
pub struct Repo {
    folder: TempDir,
    pub root: PathBuf,
    /// The git program; tests can use several versions.
    git: PathBuf,
    /// Limits of the daemon, such as `journal=10`.
    limits: String,
}

impl Repo {
    /// Creates a repository with the files `f1` to `f<count>`, and a first commit.
    pub fn new(count: usize) -> Repo {
        let mut repo = Repo::empty();
        repo.commit_files(count);
        repo
    }

    pub fn empty() -> Repo {
        let folder = TempDir::new().unwrap();
        let root = folder.path().canonicalize().unwrap().join("r");
        fs::create_dir(&root).unwrap();
        let git = std::env::var_os("ASCERTAIN_TEST_GIT").map_or_else(|| "git".into(), PathBuf::from);
        let repo = Repo { folder, root, git, limits: String::new() };
        repo.git(["init", "-q"]);
        repo.git(["config", "user.name", "t"]);
        repo.git(["config", "user.email", "t@example.com"]);
        repo
    }

    pub fn with_limits(mut self, limits: &str) -> Repo {
        self.limits = limits.into();
        self
    }

    pub fn commit_files(&mut self, count: usize) {
        for number in 1..=count {
            self.write(&format!("f{number}"), &number.to_string());
        }
        self.git(["add", "."]);
        self.git(["commit", "-qm", "a"]);
    }

    /// A path beside the repository.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.root.with_file_name(name)
    }

    /// The folder that contains the repository.
    pub fn outside(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.root.join(name.as_ref())
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub fn append(&self, name: &str, text: &str) {
        append(&self.path(name), text);
    }

    pub fn command(&self) -> Command {
        self.command_in(&self.root)
    }

    pub fn command_in(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.git);
        command.current_dir(folder).stdin(Stdio::null());
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
        command.env("GIT_CONFIG_COUNT", "0").env("ASCERTAIN_FSMONITOR_LIMITS", &self.limits);
        command.env("GIT_AUTHOR_DATE", "1700000000 +0000").env("GIT_COMMITTER_DATE", "1700000000 +0000");
        command
    }

    /// Runs a git command that must succeed, and returns its output.
    #[track_caller]
    pub fn git<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Vec<u8> {
        run(self.command().args(arguments))
    }

    pub fn text<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> String {
        String::from_utf8_lossy(&self.git(arguments)).into_owned()
    }

    /// A git command without any monitor or cache, which does not write the index.
    pub fn plain(&self) -> Command {
        let mut command = self.command();
        command.env("GIT_OPTIONAL_LOCKS", "0");
        command.args(["-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false"]);
        command
    }

    pub fn enable(&self) -> Enabled {
        self.enable_in(&self.root)
    }

    pub fn enable_in(&self, folder: &Path) -> Enabled {
        // The library would start the daemon without these limits: git starts it here.
        let options = EnableOptions { hook: Some(HOOK.into()), ..EnableOptions::default() };
        let enabled = enable(folder, &options).unwrap();
        if !self.limits.is_empty() {
            self.kill();
        }
        enabled
    }

    pub fn status(&self) -> MonitorStatus {
        status(&self.root).unwrap()
    }

    /// Process ID of the daemon.
    pub fn pid(&self) -> Option<u32> {
        self.status().pid
    }

    /// Kills the daemon at once, and waits until it is gone.
    pub fn kill(&self) {
        if let Some(pid) = self.pid() {
            signal(pid, "KILL");
            wait_until("the killed daemon is gone", || !is_running(pid));
        }
    }

    /// Returns the path of a file of the daemon in the git folder, such as its socket: `sock`.
    pub fn daemon_file(&self, extension: &str) -> Option<PathBuf> {
        let mut paths = self.path(".git").read_dir().unwrap().flatten().map(|entry| entry.path());
        paths.find(|path| {
            path.file_name().unwrap().as_bytes().starts_with(b"ascertain-fsmonitor.")
                && path.extension() == Some(extension.as_ref())
        })
    }

    /// Stops the daemon, and causes more events than the kernel's queue holds. The caller lets the daemon go on.
    pub fn overflow(&self, pid: u32) {
        signal(pid, "STOP");
        for number in 0..6000 {
            let path = self.path(format!("overflow{}", number % 2));
            fs::write(&path, "").and_then(|()| fs::remove_file(&path)).unwrap();
        }
    }

    /// Asks twice, so that the index has a token and git's cache is full.
    pub fn prime(&self) {
        self.git(["status"]);
        self.git(["status"]);
    }

    /// Checks that `git status` prints the same with and without the monitor. Returns what it prints.
    #[track_caller]
    pub fn same(&self) -> String {
        let ours = self.text(["status", "--porcelain"]);
        let plain = String::from_utf8_lossy(&run(self.plain().args(["status", "--porcelain"]))).into_owned();
        assert_eq!(ours, plain, "git status with the monitor (left) and without");
        ours
    }

    /// Calls the hook as git does, in a folder. Returns its exit code, its token and its paths.
    pub fn hook(&self, folder: &Path, arguments: &[&str]) -> (i32, String, Vec<String>) {
        let mut command = Command::new(HOOK);
        let Output { status, stdout, .. } = command.args(arguments).current_dir(folder).output().unwrap();
        let mut parts = stdout.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned());
        let token = parts.next().unwrap_or_default();
        (status.code().unwrap(), token, parts.filter(|part| !part.is_empty()).collect())
    }
}

impl Drop for Repo {
    fn drop(&mut self) {
        if self.root.exists() {
            let _ = disable(&self.root);
        }
    }
}

pub fn append(path: &Path, text: &str) {
    use std::io::Write;
    fs::File::options().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

pub fn signal(pid: u32, name: &str) {
    run(Command::new("kill").args(["-s", name, &pid.to_string()]));
}

/// Returns whether a process exists and has not ended.
pub fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).is_some_and(|state| !"ZX".contains(state))
}

/// Runs a command that must succeed, and returns its output.
#[track_caller]
pub fn run(command: &mut Command) -> Vec<u8> {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?}: {status}\n{}", String::from_utf8_lossy(&stderr));
    stdout
}

/// Runs a shell script as root of a user namespace, with mounts and processes of its own. Returns its output and its
/// messages; `None`, with a note, if this machine allows no namespaces. `$HOOK` is the program that git calls.
pub fn in_namespaces(script: &str) -> Option<(String, String)> {
    let folder = TempDir::new().unwrap();
    let mut shell = Command::new("unshare");
    shell.args(["--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    shell.args(["sh", "-c", script]).current_dir(folder.path()).env("HOOK", HOOK);
    shell.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let Output { stdout, stderr, .. } = shell.output().unwrap();
    let [text, errors] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if errors.contains("unshare") || errors.contains("mount:") {
        left_out(format!("no namespace: {errors}"));
        return None;
    }
    Some((text, errors))
}

pub fn os(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}
