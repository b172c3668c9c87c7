//! Builds the program of a revision, in the folder of the revision.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs};

use ascertain_report::terminal::escape_controls_in_lines;
use ascertain_sys::interrupt::Stop;
use ascertain_sys::process::{self, Exit, Output, Prepared};

use super::git::LOCAL_VARIABLES;
use crate::error::{Error, refused};

/// Exit code of a build that reports that its revision can't be tested, as for `git bisect run`.
const SKIP: i32 = 125;
/// Number of lines of a failed build that the error message shows.
const SHOWN_LINES: usize = 20;

/// The names of cargo's settings that move its output to another folder, and the variables that do so.
const CARGO_SETTINGS: [&str; 2] = ["target-dir", "build-dir"];
const CARGO_VARIABLES: [&str; 3] = ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR", "CARGO_BUILD_BUILD_DIR"];

/// A build of one revision.
pub(super) struct Build<'a> {
    /// The command line, for `sh`.
    pub command: &'a str,
    /// Name of the revision, for messages.
    pub name: &'a str,
    /// The top folder of the revision's working tree.
    pub top: &'a Path,
    /// The folder in which the build runs, relative to `top`.
    pub prefix: &'a Path,
    /// The path of `top` that the build sees, and the words of the command line that runs a command there. `None` if it
    /// sees `top`.
    pub elsewhere: Option<(&'a Path, &'a [OsString])>,
    /// File for the output of the build. It stays if the build fails.
    pub log: &'a Path,
}

impl Build<'_> {
    /// Returns the path of the top folder that the build sees.
    pub fn top_seen(&self) -> &Path {
        self.elsewhere.map_or(self.top, |(top, _)| top)
    }

    /// Runs the build.
    pub fn run(&self, stop: &Stop) -> Result<(), Error> {
        if let Some(logs) = self.log.parent() {
            fs::create_dir_all(logs).map_err(|source| Error::Read { path: logs.into(), source })?;
        }
        let here = ["sh", "-c", "cd \"$1\" && exec sh -c \"$2\"", "sh"].map(OsString::from);
        let (top, launcher) = self.elsewhere.unwrap_or((self.top, &here));
        let mut command = process::Command { program: launcher[0].clone(), ..process::Command::default() };
        command.args.extend_from_slice(&launcher[1..]);
        command.args.extend([top.join(self.prefix).into(), self.command.into()]);
        command.env_removed = LOCAL_VARIABLES.iter().chain(&CARGO_VARIABLES).map(OsString::from).collect();
        if let Some(target) = own_cargo_folder(self.top, self.prefix) {
            command.env.extend(CARGO_VARIABLES.map(|name| (name.into(), top.join(&target).into())));
        }
        command.stdout = Output::File(self.log.into());
        command.stderr = command.stdout.clone();
        let ran = Prepared::new(&command).and_then(|prepared| prepared.stopping_with(stop).run(None));
        let how = match ran {
            _ if stop.is_requested() => return refused("interrupted before anything was measured".into()),
            Err(error) => error.to_string(),
            Ok(usage) => match usage.exit {
                Exit::Code(0) => {
                    let _ = fs::remove_file(self.log);
                    return Ok(());
                }
                Exit::Code(SKIP) => format!("ended with exit code {SKIP}: this revision can't be tested"),
                Exit::Code(code) => format!("ended with exit code {code}"),
                Exit::Signal(signal) => format!("was killed by signal {signal}"),
                Exit::TimedOut | Exit::Interrupted => "was stopped".into(),
            },
        };
        let output = String::from_utf8_lossy(&fs::read(self.log).unwrap_or_default()).into_owned();
        let lines: Vec<&str> = output.lines().collect();
        let end = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
        Err(Error::Build {
            name: self.name.into(),
            command: self.command.into(),
            how,
            log: self.log.into(),
            end: escape_controls_in_lines(&end),
        })
    }
}

/// Returns a folder for cargo's output inside of the revision, relative to `top`, if a configuration file outside of the
/// revision names a folder. Revisions that share a folder would overwrite each other's programs.
fn own_cargo_folder(top: &Path, prefix: &Path) -> Option<PathBuf> {
    let names_folder = |line: &str| {
        let key = line.split('=').next().unwrap_or_default().trim().trim_start_matches("build.");
        CARGO_SETTINGS.contains(&key)
    };
    let mut texts = cargo_configurations(top).filter_map(|file| fs::read_to_string(file).ok());
    let workspace = || {
        let manifest = |folder: &Path| top.join(folder).join("Cargo.toml");
        let packages: Vec<&Path> = prefix.ancestors().filter(|folder| manifest(folder).is_file()).collect();
        let is_workspace =
            |folder: &&&Path| fs::read_to_string(manifest(folder)).is_ok_and(|text| text.contains("[workspace"));
        packages.iter().find(is_workspace).or(packages.first()).map(|folder| folder.join("target"))
    };
    texts.any(|text| text.lines().any(names_folder)).then(workspace).flatten()
}

/// Returns the paths of cargo's configuration files outside of a folder that apply to the packages in it. They may not
/// exist.
pub(super) fn cargo_configurations(top: &Path) -> impl Iterator<Item = PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    let of_parents = top.ancestors().skip(1).map(|folder| folder.join(".cargo"));
    of_parents.chain(home).flat_map(|folder| ["config.toml", "config"].map(|name| folder.join(name)))
}
