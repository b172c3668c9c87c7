//! The monitors of a worktree: their settings of git, and their daemons. No daemon outlives this process, except for
//! moments after a kill.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
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
use super::watchman::Watchman;
use super::{BUILT_IN, HOOK, WATCHMAN};

/// Time limit for a daemon to become ready or to end. The limit is long, because the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time between two checks of whether a daemon is ready or has ended.
const EACH: Duration = Duration::from_millis(5);

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
        HOOK => hook().map(drop).map_err(Unavailable::other),
        _ => Ok(()),
    }
}

/// Returns the path of our hook, which is beside the running program. The programs of tests are one folder deeper.
fn hook() -> Result<PathBuf, String> {
    let program = env::current_exe().and_then(|program| program.canonicalize()).map_err(|error| error.to_string())?;
    let folders = program.ancestors().skip(1).take(2).map(|folder| folder.join(ascertain_fsmonitor::HOOK));
    let beside = folders.into_iter().find(|path| path.is_file());
    let missing = || format!("{} is not in the folder of {}", ascertain_fsmonitor::HOOK, program.display());
    beside.or_else(|| git::program(ascertain_fsmonitor::HOOK)).ok_or_else(missing)
}

/// The monitors that watch one worktree. Dropping this value ends their daemons.
pub struct Monitors {
    root: PathBuf,
    folder: PathBuf,
    home: PathBuf,
    stop: Stop,
    running: Vec<(&'static str, Daemon)>,
}

/// A running daemon, which ends if this process ends.
struct Daemon {
    child: Child,
    control: Control,
}

/// The way to reach a daemon.
enum Control {
    /// A command that succeeds if the daemon is ready, and a command that ends it. The second one also ends a daemon
    /// that git or a hook started in place of ours.
    Commands { is_ready: Box<Command>, end: Box<Command> },
    /// The library of our monitor.
    Library,
}

impl Monitors {
    /// Returns no monitors yet. `folder` is for their files, and `home` takes the place of the user's home.
    pub fn new(root: &Path, folder: &Path, home: &Path, stop: &Stop) -> Self {
        Self { root: root.into(), folder: folder.into(), home: home.into(), stop: stop.clone(), running: Vec::new() }
    }

    /// Starts the monitor of a variant if it is not running, and waits until it is ready.
    ///
    /// # Errors
    /// Returns errors of the system and of the daemon.
    pub fn start(&mut self, variant: &str, git: &Git) -> Result<(), TargetError> {
        let Some(name) = daemon_of(variant) else { return Ok(()) };
        if self.running.iter().any(|(running, _)| *running == name) {
            return Ok(());
        }
        let environment = || git.command(&self.home, &[], &[]);
        let (run, control) = match name {
            BUILT_IN => {
                let root = self.root.to_string_lossy();
                let monitor = |verb: &str| git.command(&self.home, &[], &["-C", &root, "fsmonitor--daemon", verb]);
                (monitor("run"), Control::Commands { is_ready: monitor("status").into(), end: monitor("stop").into() })
            }
            WATCHMAN => {
                let watchman = Watchman::create(&self.folder).map_err(failed)?;
                let (is_ready, end) = (watchman.ping(environment()), watchman.end(environment()));
                (watchman.serve(environment()), Control::Commands { is_ready: is_ready.into(), end: end.into() })
            }
            _ => {
                let args = vec![
                    ascertain_fsmonitor::FOREGROUND.into(),
                    self.root.clone().into(),
                    self.root.join(".git").into(),
                ];
                (Command { program: hook().map_err(failed)?.into(), args, ..environment() }, Control::Library)
            }
        };
        let child = self.spawn(&run, name)?;
        self.running.push((name, Daemon { child, control }));
        self.wait_until_ready(name)
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

    fn wait_until_ready(&mut self, name: &str) -> Result<(), TargetError> {
        let start = Instant::now();
        let Some((_, daemon)) = self.running.iter_mut().find(|(running, _)| *running == name) else { return Ok(()) };
        loop {
            let is_ready = match &daemon.control {
                Control::Commands { is_ready, .. } => match git::run(Command::clone(is_ready), &self.stop) {
                    Err(TargetError::Interrupted) => return Err(TargetError::Interrupted),
                    answer => answer.is_ok(),
                },
                Control::Library => ascertain_fsmonitor::status(&self.root).is_ok_and(|status| status.is_ready),
            };
            if is_ready {
                return Ok(());
            }
            if self.stop.is_requested() {
                return Err(TargetError::Interrupted);
            }
            let has_ended = !matches!(daemon.child.try_wait(), Ok(None));
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

    /// Returns git's settings for a variant, and the variables that its hook needs.
    ///
    /// # Errors
    /// Returns errors of the system.
    pub fn settings(&self, variant: &str, git: &Git) -> Result<Settings, TargetError> {
        let asking =
            |path: &Path| vec![format!("core.fsmonitor={}", quoted(path)), "core.fsmonitorHookVersion=2".to_owned()];
        Ok(match variant {
            BUILT_IN => (vec!["core.fsmonitor=true".into()], Vec::new()),
            WATCHMAN => {
                let sample = git.sample_hook().ok_or_else(|| failed("git's sample hook is gone"))?;
                let path = self.folder.join("fsmonitor-watchman");
                fs::copy(sample, &path).map_err(failed)?;
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(failed)?;
                (asking(&path), Watchman::create(&self.folder).map_err(failed)?.variables())
            }
            HOOK => (asking(&hook().map_err(failed)?), Vec::new()),
            _ => (vec!["core.fsmonitor=".into()], Vec::new()),
        })
    }

    /// Returns the CPU time that the daemon of a variant has used so far, in nanoseconds; `None` if it has no daemon,
    /// or if the daemon has ended.
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
        HOOK => Some(HOOK),
        _ => None,
    }
}

/// Quotes a path for the shell, if necessary.
fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte);
    if path.bytes().all(is_safe) { path.into_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

impl Drop for Monitors {
    fn drop(&mut self) {
        for (_, Daemon { mut child, control }) in self.running.drain(..) {
            match control {
                // The commands get a new stop token, because the run may have been interrupted.
                Control::Commands { end, .. } => drop(Stop::new().map(|stop| git::run(*end, &stop))),
                Control::Library => drop(ascertain_fsmonitor::disable(&self.root)),
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
