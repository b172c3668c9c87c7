//! Finds the git of an arm, and runs it without any influence of the user's configuration.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ascertain_engine::experiment::TargetError;
use ascertain_sys::interrupt::Stop;
use ascertain_sys::process::{Command, Exit, Output, Prepared, Usage};

use super::INSTALLED;

/// The oldest version of git with version 2 of the hook protocol.
const OLDEST: [u32; 2] = [2, 26];
/// Time limit of a single command. The limit is long, because the repository may be large and the machine busy.
pub const LIMIT: Duration = Duration::from_secs(600);

/// A git program on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Git {
    program: PathBuf,
    /// The folder with git's own programs, if git would look for them in the wrong folder. That is so if git was
    /// unpacked beside the installed one.
    core: Option<PathBuf>,
    /// The version, such as `2.39.5`.
    pub version: String,
    /// `true` if this git has its own file system monitor.
    pub has_monitor: bool,
}

impl Git {
    /// Finds the git for a level of the factor `git`. Each level is searched for only once per process.
    ///
    /// # Errors
    /// Returns the reason, as text for the user, if there is no such git or if it is too old.
    pub fn find(level: &str) -> Result<Git, String> {
        static FOUND: Mutex<BTreeMap<String, Result<Git, String>>> = Mutex::new(BTreeMap::new());
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        found.entry(level.into()).or_insert_with(|| search(level)).clone()
    }

    fn at(program: &Path) -> Result<Git, String> {
        let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", program.display());
        let program = fs::canonicalize(program).map_err(|error| failed(&error))?;
        let output = |options: &[&str]| -> Result<String, String> {
            let output = process::Command::new(&program).args(options).output().map_err(|error| failed(&error))?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            match output.status.success() {
                true => Ok(text),
                false => Err(failed(&String::from_utf8_lossy(&output.stderr).trim())),
            }
        };
        let about = output(&["version", "--build-options"])?;
        let version = about.lines().next().and_then(|line| line.strip_prefix("git version ")?.split(' ').next());
        let version = version.ok_or_else(|| failed(&"this is not git"))?.to_owned();
        if numbers(&version).is_none_or(|version| version < OLDEST) {
            return Err(format!("{} is git {version}; the experiment needs git 2.26 or newer", program.display()));
        }
        let own = output(&["--exec-path"])?;
        let beside = program.parent().and_then(Path::parent).map(|folder| folder.join("lib/git-core"));
        let core = beside.filter(|beside| beside.join("git").exists() && *beside != Path::new(own.trim_end()));
        let has_monitor = about.lines().any(|line| line == "feature: fsmonitor--daemon");
        Ok(Git { program, core, version, has_monitor })
    }

    /// Returns the path of git's sample hook for watchman, if git was installed with its samples.
    pub fn sample_hook(&self) -> Option<PathBuf> {
        let folder = self.program.parent()?.parent()?;
        let path = folder.join("share/git-core/templates/hooks/fsmonitor-watchman.sample");
        path.exists().then_some(path)
    }

    /// Returns a command of this git with these settings. It ignores the configuration, the templates and the
    /// variables of the user. `home` is a folder that takes the place of the user's home.
    pub fn command(&self, home: &Path, settings: &[String], arguments: &[&str]) -> Command {
        let options = settings.iter().flat_map(|setting| ["-c".into(), OsString::from(setting)]);
        let set = |name: &str, value: &dyn AsRef<std::ffi::OsStr>| (name.into(), value.as_ref().to_owned());
        let mut env = vec![
            set("HOME", &home),
            set("XDG_CONFIG_HOME", &home),
            set("GIT_CONFIG_GLOBAL", &"/dev/null"),
            set("GIT_CONFIG_NOSYSTEM", &"1"),
            set("GIT_ATTR_NOSYSTEM", &"1"),
            set("GIT_TEMPLATE_DIR", &""),
            set("GIT_TERMINAL_PROMPT", &"0"),
            set("LC_ALL", &"C"),
        ];
        env.extend(self.core.iter().map(|core| set("GIT_EXEC_PATH", core)));
        let is_gits = |name: &OsString| name.to_string_lossy().starts_with("GIT_");
        Command {
            program: self.program.clone().into(),
            args: options.chain(arguments.iter().map(OsString::from)).collect(),
            env,
            env_removed: env::vars_os().map(|(name, _)| name).filter(is_gits).collect(),
            ..Command::default()
        }
    }
}

/// Runs a command once, and returns its output. The output may have up to 1 MiB.
///
/// # Errors
/// Returns [`TargetError::Interrupted`] if the run was interrupted, and otherwise a message with the command's output.
pub fn run(command: Command, stop: &Stop) -> Result<String, TargetError> {
    let command = Command { stdout: Output::Memory, stderr: Output::Memory, ..command };
    let prepared = prepare(&command, stop)?;
    let usage = prepared.run(Some(LIMIT));
    let output = String::from_utf8_lossy(&prepared.captured_output()).trim_end().to_owned();
    succeeded(usage, &command, &output)?;
    Ok(output)
}

/// Prepares a command that ends if the run is interrupted.
///
/// # Errors
/// Returns the reason why the command cannot be started.
pub fn prepare(command: &Command, stop: &Stop) -> Result<Prepared, TargetError> {
    Prepared::new(command).map(|prepared| prepared.stopping_with(stop)).map_err(failed)
}

/// Returns the usage of a command that has succeeded.
///
/// # Errors
/// As [`run`].
pub fn succeeded(
    usage: Result<Usage, ascertain_sys::Error>,
    command: &Command,
    output: &str,
) -> Result<Usage, TargetError> {
    let how = match usage {
        Err(ascertain_sys::Error::Interrupted) => return Err(TargetError::Interrupted),
        Err(error) => return Err(failed(error)),
        Ok(usage) => match usage.exit {
            Exit::Code(0) => return Ok(usage),
            Exit::Interrupted => return Err(TargetError::Interrupted),
            Exit::TimedOut => format!("did not end within {LIMIT:?}"),
            Exit::Code(code) => format!("failed with exit code {code}"),
            Exit::Signal(signal) => format!("was ended by signal {signal}"),
        },
    };
    let words = command.args.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let colon = if output.is_empty() { "" } else { ": " };
    Err(TargetError::Failed(format!("`git {words}` {how}{colon}{output}")))
}

pub fn failed(error: impl std::fmt::Display) -> TargetError {
    TargetError::Failed(error.to_string())
}

fn search(level: &str) -> Result<Git, String> {
    if level.contains('/') {
        return Git::at(Path::new(level));
    }
    let installed = |name: &str| match program(name) {
        Some(path) => Git::at(&path),
        None => Err(format!("{name} is not installed; install git, or name the path of a git")),
    };
    if numbers(level).is_none() {
        return installed(level);
    }
    let is_wanted = |git: &Git| git.version == level || git.version.starts_with(&format!("{level}."));
    if let Some(git) = installed(INSTALLED).ok().filter(is_wanted) {
        return Ok(git);
    }
    let fetched = fetched().map(|folder| folder.join(level).join("usr/bin/git")).filter(|path| path.exists());
    let path = fetched.ok_or_else(|| {
        format!(
            "git {level} is neither installed nor fetched; `cargo xtask gits` fetches it, or name the path of a git"
        )
    })?;
    Git::at(&path)
}

/// Returns the folder into which `cargo xtask gits` unpacks other versions of git.
fn fetched() -> Option<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    Some(cache.or_else(|| Some(env::home_dir()?.join(".cache")))?.join("ascertain-xtask/gits"))
}

/// Returns the first two numbers of a version such as `2.39.5`; `None` for any other text.
fn numbers(version: &str) -> Option<[u32; 2]> {
    let mut parts = version.split('.');
    let [major, minor] = [parts.next()?, parts.next()?].map(|part| part.parse().ok());
    Some([major?, minor?])
}

/// Returns the path of a program in `PATH`.
pub fn program(name: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}
