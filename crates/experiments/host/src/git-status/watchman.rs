//! watchman's server and its client, separate from the user's server and client.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ascertain_sys::process::Command;

/// Options of the client: neither start a server nor carry out the command without one.
const CLIENT: [&str; 2] = ["--no-spawn", "--no-local"];

/// The place of a server's files.
pub struct Watchman {
    folder: PathBuf,
}

impl Watchman {
    /// Creates the folder for the files.
    ///
    /// # Errors
    /// Returns errors of the system.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let watchman = Self { folder: folder.join("watchman") };
        // watchman refuses a socket in a folder that others may write to.
        DirBuilder::new().recursive(true).mode(0o700).create(watchman.file(""))?;
        Ok(watchman)
    }

    fn file(&self, name: &str) -> PathBuf {
        // Version 4.9 computes this path from the variables `TMPDIR` and `USER`.
        self.folder.join("ascertain-state").join(name)
    }

    /// Returns the variables that lead a hook to this server. Version 4.9 ignores `WATCHMAN_SOCK`, and newer versions
    /// ignore the others.
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        vec![
            ("WATCHMAN_SOCK".into(), self.file("sock").into()),
            ("TMPDIR".into(), self.folder.clone().into()),
            ("USER".into(), "ascertain".into()),
        ]
    }

    /// Returns the command that is the server. `environment` is a command with its environment.
    pub fn serve(&self, environment: Command) -> Command {
        let foreground = ["--foreground".into(), "--no-save-state".into()];
        command(environment, self.options().into_iter().chain(foreground))
    }

    /// Returns a command that succeeds if a hook would find the server.
    pub fn ping(&self, environment: Command) -> Command {
        let mut ping = command(environment, CLIENT.map(OsString::from).into_iter().chain(["get-pid".into()]));
        ping.env.extend(self.variables());
        ping
    }

    /// Returns a command that ends the server.
    pub fn end(&self, environment: Command) -> Command {
        let words = CLIENT.map(OsString::from).into_iter().chain(["shutdown-server".into()]);
        command(environment, self.options().into_iter().chain(words))
    }

    fn options(&self) -> [OsString; 4] {
        let files = [("sockname", "sock"), ("statefile", "state"), ("logfile", "log"), ("pidfile", "pid")];
        files.map(|(name, file)| {
            let mut option = OsString::from(format!("--{name}="));
            option.push(self.file(file));
            option
        })
    }
}

fn command(environment: Command, arguments: impl Iterator<Item = OsString>) -> Command {
    Command { program: "watchman".into(), args: arguments.collect(), ..environment }
}
