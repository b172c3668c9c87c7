//! Finds the file of a command's program, and the reason if the kernel could not start it.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::{env, fs};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::Command;
use crate::Error;

/// The path that the C library searches if `PATH` is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Finds the file of the command's program. Searches the `PATH` that the command itself gets.
pub(super) fn resolve(command: &Command) -> Result<PathBuf, Error> {
    let program = command.program.as_os_str();
    if program.as_bytes().contains(&b'/') {
        let path = PathBuf::from(program);
        return match judge(&path) {
            Ok(()) => Ok(path),
            Err(Refusal::Missing) => Err(not_found(program, false)),
            Err(Refusal::Directory) => Err(Error::IsDirectory { path }),
            Err(Refusal::NotExecutable) => Err(Error::NotExecutable { path }),
        };
    }
    let search = environment(command)
        .into_iter()
        .find_map(|(name, value)| (name == "PATH").then_some(value))
        .unwrap_or_else(|| DEFAULT_PATH.into());
    let mut refused = None;
    for directory in env::split_paths(&search).filter(|_| !program.is_empty()) {
        // An empty entry in `PATH` stands for the working directory.
        let path = Path::new(".").join(directory).join(program);
        match judge(&path) {
            Ok(()) => return Ok(path),
            // The file exists but is not executable. If a folder may not be searched, its programs count as absent, as
            // in a shell.
            Err(Refusal::NotExecutable) if path.exists() => {
                refused.get_or_insert(Error::NotExecutable { path });
            }
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| not_found(program, true)))
}

/// Returns the environment of the command: that of this process, with the command's variables removed, added or
/// replaced. Each name occurs once.
pub(super) fn environment(command: &Command) -> Vec<(OsString, OsString)> {
    let is_replaced = |name: &OsString| command.env.iter().any(|(added, _)| added == name);
    let is_kept = |name: &OsString| !is_replaced(name) && !command.env_removed.contains(name);
    let mut variables: Vec<_> = env::vars_os().filter(|(name, _)| is_kept(name)).collect();
    for (at, (name, value)) in command.env.iter().enumerate() {
        if !command.env[at + 1..].iter().any(|(later, _)| later == name) {
            variables.push((name.clone(), value.clone()));
        }
    }
    variables
}

/// Converts a string for the kernel. Returns [`Error::Nul`] if it contains a NUL.
pub(super) fn c_string(text: &OsStr) -> Result<CString, Error> {
    CString::new(text.as_bytes())
        .map_err(|error| Error::Nul { text: OsString::from_vec(error.into_vec()).to_string_lossy().into_owned() })
}

/// Converts the error of starting `path` into an [`Error`] with the reason.
pub(super) fn start_error(path: &Path, source: io::Error) -> Error {
    let path = path.to_owned();
    match source.raw_os_error() {
        Some(libc::EAGAIN | libc::ENOMEM) => Error::OutOfProcesses { source },
        Some(libc::ENOEXEC) => {
            let hint = if beginning(&path).starts_with(b"\x7fELF") {
                "the program was built for another kind of machine"
            } else {
                "begin the script with `#!` and its interpreter, name the \
                 interpreter first, or use a shell"
            };
            Error::NotAProgram { path, hint }
        }
        Some(libc::ENOENT) if path.exists() => match interpreter(&beginning(&path)) {
            Some(interpreter) => Error::InterpreterMissing { path, interpreter },
            None => Error::InterpreterMissing { path, interpreter: "dynamic loader".to_owned() },
        },
        Some(libc::ENOENT) => not_found(path.as_os_str(), false),
        Some(libc::EACCES) if path.is_dir() => Error::IsDirectory { path },
        Some(libc::EACCES) => Error::NotExecutable { path },
        _ => Error::Start { path, source },
    }
}

enum Refusal {
    Missing,
    Directory,
    NotExecutable,
}

fn judge(path: &Path) -> Result<(), Refusal> {
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => Refusal::NotExecutable,
        _ => Refusal::Missing,
    })?;
    if metadata.is_dir() {
        return Err(Refusal::Directory);
    }
    match accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS) {
        Ok(()) if metadata.is_file() => Ok(()),
        _ => Err(Refusal::NotExecutable),
    }
}

fn not_found(program: &OsStr, is_searched: bool) -> Error {
    Error::NotFound { program: program.to_string_lossy().into_owned(), is_searched }
}

/// Returns the first bytes of a file; an empty list if the file cannot be read.
fn beginning(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = fs::File::open(path) {
        // If reading fails, the error has less detail, but nothing else changes.
        let _ = file.take(256).read_to_end(&mut bytes);
    }
    bytes
}

/// Returns the interpreter that the first line of a script names after `#!`; `None` if the file is not a script.
fn interpreter(beginning: &[u8]) -> Option<String> {
    let line = beginning.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    // A line that ends with CR LF names an interpreter that ends with CR, which must be visible.
    line.split([' ', '\t']).find(|word| !word.is_empty()).map(|word| word.escape_debug().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_of_scripts() {
        assert_eq!(interpreter(b"#! /bin/nosh -x\nexit"), Some("/bin/nosh".to_owned()));
        assert_eq!(interpreter(b"#!/bin/sh\r\n"), Some("/bin/sh\\r".to_owned()));
        assert_eq!(interpreter(b"echo"), None);
    }

    #[test]
    fn a_later_variable_replaces_an_earlier_one_and_ours() {
        let pair = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let command = Command {
            env: vec![pair("PATH", "/a"), pair("X", "1"), pair("PATH", "/b")],
            env_removed: vec!["HOME".into(), "X".into()],
            ..Command::default()
        };
        let variables = environment(&command);
        let paths: Vec<_> = variables.iter().filter(|(name, _)| name == "PATH").collect();
        assert_eq!(paths, [&pair("PATH", "/b")]);
        assert!(variables.contains(&pair("X", "1")));
        assert!(!variables.iter().any(|(name, _)| name == "HOME"));
    }
}
