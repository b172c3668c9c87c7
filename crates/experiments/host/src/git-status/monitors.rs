//! The monitors of a worktree: their settings of git, and their daemons. No daemon outlives this process, except for
//! moments after a kill.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ascertain_engine::experiment::{TargetError, Unavailable};
use ascertain_sys::clock::process_cpu_ns;
use ascertain_sys::interrupt::Stop;
use ascertain_sys::process::Command;
use ascertain_sys::tether::tether;

use super::git::{self, Git, failed};
use super::{BUILT_IN, HOOK, WATCHMAN};

/// Time limit for a daemon to become ready or to end. The limit is long, because the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time between two checks of whether a daemon is ready or has ended.
const EACH: Duration = Duration::from_millis(5);

/// Options of watchman's client: neither start a server nor carry out the command without one.
const CLIENT: [&str; 2] = ["--no-spawn", "--no-local"];

/// Checks that this machine has the monitor of a variant.
///
/// # Errors
/// Returns the reason if it has not.
pub fn is_available(variant: &str, git: &Git) -> Result<(), Unavailable> {
    let program = |name: &str, install: &str| match git::program(name) {
        Some(_) => Ok(()),
        None => Err(Unavailable::other(format!("{name} is not installed; install it with `{install}`"))),
    };
    match variant {
        BUILT_IN if !git.has_monitor => Err(Unavailable::other(format!(
            "git {} has no file system monitor on Linux; use git 2.55 or newer",
            git.version
        ))),
        WATCHMAN => {
            program("watchman", "apt-get install watchman")?;
            program("perl", "apt-get install perl")?;
            let sample = || format!("git {} comes without its sample hook for watchman", git.version);
            git.sample_hook().map(drop).ok_or_else(|| Unavailable::other(sample()))
        }
        HOOK => Err(Unavailable::other("the monitor is not part of this build")),
        _ => Ok(()),
    }
}

/// The monitors that watch one worktree. Dropping this value ends their daemons.
pub struct Monitors {
    folder: PathBuf,
    home: PathBuf,
    stop: Stop,
    running: Vec<(&'static str, Daemon)>,
}

/// A running daemon, which ends if this process ends.
struct Daemon {
    child: Child,
    /// A command that ends a daemon that git or a hook started in place of ours.
    end: Command,
}

impl Monitors {
    /// Returns no monitors yet. `folder` is for their files, and `home` takes the place of the user's home.
    pub fn new(folder: &Path, home: &Path, stop: &Stop) -> Self {
        Self { folder: folder.into(), home: home.into(), stop: stop.clone(), running: Vec::new() }
    }

    /// Starts the monitor of a variant if it is not running, and waits until it is ready.
    ///
    /// # Errors
    /// Returns errors of the system and of the daemon.
    pub fn start(&mut self, variant: &str, git: &Git, root: &Path) -> Result<(), TargetError> {
        let Some(name) = daemon_of(variant) else { return Ok(()) };
        if self.running.iter().any(|(running, _)| *running == name) {
            return Ok(());
        }
        let root = root.to_string_lossy().into_owned();
        let monitor =
            |verb: &[&str]| git.command(&self.home, &[], &[&["-C", &root, "fsmonitor--daemon"], verb].concat());
        let watchman = |arguments: &[&str]| Command {
            program: "watchman".into(),
            args: self.watchman_options().into_iter().chain(arguments.iter().map(|&word| word.into())).collect(),
            ..git.command(&self.home, &[], &[])
        };
        let (run, is_ready, end) = match name {
            BUILT_IN => (monitor(&["run"]), monitor(&["status"]), monitor(&["stop"])),
            _ => {
                // watchman refuses a socket in a folder that others may write to.
                let folder = self.watchman_file("");
                DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
                let mut client = git.command(&self.home, &[], &[]);
                (client.program, client.args) =
                    ("watchman".into(), CLIENT.map(OsString::from).into_iter().chain(["get-pid".into()]).collect());
                // The client has the variables of the hook, to see that the hook will find our server.
                client.env.extend(self.watchman_variables());
                (watchman(&["--foreground"]), client, watchman(&[&CLIENT[..], &["shutdown-server"]].concat()))
            }
        };
        let child = self.spawn(&run, name)?;
        self.running.push((name, Daemon { child, end }));
        self.wait_until_ready(&is_ready, name)
    }

    /// Starts a daemon as a child that the kernel ends with this thread.
    fn spawn(&self, run: &Command, name: &str) -> Result<Child, TargetError> {
        let messages = File::create(self.messages(name)).map_err(failed)?;
        let mut command = process::Command::new(&run.program);
        for name in &run.env_removed {
            command.env_remove(name);
        }
        command.args(&run.args).envs(run.env.iter().cloned());
        command.stdin(Stdio::null()).stdout(messages.try_clone().map_err(failed)?).stderr(messages);
        tether(&mut command);
        command.spawn().map_err(|error| failed(format!("could not start the daemon of {name}: {error}")))
    }

    fn wait_until_ready(&mut self, is_ready: &Command, name: &str) -> Result<(), TargetError> {
        let start = Instant::now();
        loop {
            match git::run(is_ready.clone(), &self.stop) {
                Ok(_) => return Ok(()),
                Err(TargetError::Interrupted) => return Err(TargetError::Interrupted),
                Err(_) => {}
            }
            let ended = self.running.iter_mut().find(|(running, _)| *running == name);
            let has_ended = ended.is_none_or(|(_, daemon)| !matches!(daemon.child.try_wait(), Ok(None)));
            if has_ended || start.elapsed() > PATIENCE {
                let messages = fs::read_to_string(self.messages(name)).unwrap_or_default();
                let how = if has_ended { "ended".into() } else { format!("was not ready within {PATIENCE:?}") };
                return Err(failed(format!("the daemon of {name} {how}: {}", messages.trim_end())));
            }
            sleep(EACH);
        }
    }

    fn messages(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    /// Returns the folder for watchman's temporary files.
    fn watchman_folder(&self) -> PathBuf {
        self.folder.join("watchman")
    }

    /// Returns the path of a file of watchman's server.
    fn watchman_file(&self, name: &str) -> PathBuf {
        // Older clients compute this path from the variables below.
        self.watchman_folder().join("ascertain-state").join(name)
    }

    /// Returns options that keep watchman's server apart from the user's.
    fn watchman_options(&self) -> Vec<OsString> {
        let option = |(name, file): (&str, &str)| {
            let mut option = OsString::from(format!("--{name}="));
            option.push(self.watchman_file(file));
            option
        };
        let files = [("sockname", "sock"), ("statefile", "state"), ("logfile", "log"), ("pidfile", "pid")];
        files.map(option).into_iter().chain(["--no-save-state".into()]).collect()
    }

    /// Returns variables that lead a hook to our server instead of the user's. Version 4.9 ignores `WATCHMAN_SOCK`, and
    /// newer versions ignore the others.
    fn watchman_variables(&self) -> Vec<(OsString, OsString)> {
        vec![
            ("WATCHMAN_SOCK".into(), self.watchman_file("sock").into()),
            ("TMPDIR".into(), self.watchman_folder().into()),
            ("USER".into(), "ascertain".into()),
        ]
    }

    /// Returns git's settings for a variant, and the variables that its hook needs.
    ///
    /// # Errors
    /// Returns errors of the system.
    pub fn settings(&self, variant: &str, git: &Git) -> Result<Settings, TargetError> {
        let hook =
            |path: &str| vec![format!("core.fsmonitor={}", quoted(path)), "core.fsmonitorHookVersion=2".to_owned()];
        Ok(match variant {
            BUILT_IN => (vec!["core.fsmonitor=true".into()], Vec::new()),
            WATCHMAN => {
                let sample = git.sample_hook().ok_or_else(|| failed("git's sample hook is gone"))?;
                let path = self.folder.join("fsmonitor-watchman");
                fs::copy(sample, &path).map_err(failed)?;
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(failed)?;
                (hook(&path.to_string_lossy()), self.watchman_variables())
            }
            _ => (vec!["core.fsmonitor=".into()], Vec::new()),
        })
    }

    /// Returns the CPU time that the daemon of a variant has used so far, in nanoseconds; `None` if it has no daemon, or
    /// if the daemon has ended.
    pub fn cpu_ns(&self, variant: &str) -> Option<u64> {
        let name = daemon_of(variant)?;
        let (_, daemon) = self.running.iter().find(|(running, _)| *running == name)?;
        process_cpu_ns(daemon.child.id()).ok()
    }
}

/// Git's settings for a variant, and environment variables.
pub type Settings = (Vec<String>, Vec<(OsString, OsString)>);

/// Returns the name of the daemon that a variant needs.
fn daemon_of(variant: &str) -> Option<&'static str> {
    match variant {
        BUILT_IN => Some(BUILT_IN),
        WATCHMAN => Some(WATCHMAN),
        _ => None,
    }
}

/// Quotes a path for the shell, if necessary.
fn quoted(path: &str) -> String {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte);
    if path.bytes().all(is_safe) { path.into() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

impl Drop for Monitors {
    fn drop(&mut self) {
        for (_, Daemon { mut child, end }) in self.running.drain(..) {
            // A daemon that is not ours may run in place of ours. A new token is used, because the run may have been
            // interrupted.
            if let Ok(stop) = Stop::new() {
                let _ = git::run(end, &stop);
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
