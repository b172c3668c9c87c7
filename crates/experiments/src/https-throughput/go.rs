//! Both ends by Go, built by the machine's own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;
use std::{fs, io};

use ascertain_engine::experiment::TargetError;
use ascertain_netlab::http::{CERTIFICATE_PEM, KEY_PEM};
use ascertain_netlab::installed::{Folder, find};
use ascertain_netlab::{Error, now_ns};
use ascertain_sys::clock::process_cpu_ns;
use ascertain_sys::interrupt::Stop;
use ascertain_sys::process::{self, Exit, Output, Prepared};
use ascertain_sys::tether::tether;

use super::clients::{PATIENCE, attended};
use crate::links::failed;

/// Longer than Go takes to build the libraries beside them, however busy the machine is.
const BUILD: Duration = Duration::from_secs(600);
const SOURCE: &str = include_str!("ends.go");

fn installed() -> Result<PathBuf, Error> {
    find("go", "apt-get install golang-go")
}

/// Whether they can be built, which is tried once: the first time Go has its own libraries to build, which takes longer
/// than a run may, and what is tried before a run begins takes none of its time.
pub fn is_available() -> Result<(), String> {
    static TRIED: OnceLock<Result<(), String>> = OnceLock::new();
    let tried =
        || Built::new(&Stop::default()).map(drop).map_err(|error| error.to_string().trim_end().replace('\n', " "));
    TRIED.get_or_init(tried).clone()
}

/// What was built, in a folder with the certificate.
pub struct Built(Folder);

impl Built {
    /// Builds them, without fetching anything, and whatever module the working directory is in.
    fn new(stop: &Stop) -> Result<Self, TargetError> {
        let (go, folder) = (installed().map_err(failed)?, Folder::new().map_err(failed)?);
        let path = |name| folder.path().join(name);
        for (name, text) in [("ends.go", SOURCE), ("certificate.pem", CERTIFICATE_PEM), ("key.pem", KEY_PEM)] {
            fs::write(path(name), text).map_err(failed)?;
        }
        // No newer language than that of the oldest Go that is to build them.
        let of_1_19 = "-gcflags=-lang=go1.19".into();
        let args = ["build".into(), of_1_19, "-o".into(), path("ends").into(), path("ends.go").into()].into();
        let env = [("GO111MODULE", "off"), ("GOTOOLCHAIN", "local"), ("GOFLAGS", "")];
        let env = env.map(|(name, value)| (name.into(), value.into())).into();
        let (stdout, stderr) = (Output::Memory, Output::Memory);
        let command = process::Command { program: go.into(), args, env, stdout, stderr, ..Default::default() };
        let build = Prepared::new(&command).map_err(failed)?.stopping_with(stop);
        let ended = build.run(Some(BUILD)).map_err(failed)?.exit;
        match ended {
            Exit::Code(0) => Ok(Self(folder)),
            Exit::Interrupted => Err(TargetError::Interrupted),
            Exit::TimedOut => Err(failed(format!("`go build` did not end within {BUILD:?}"))),
            Exit::Code(_) | Exit::Signal(_) => {
                Err(failed(format!("`go build` failed, and says:\n{}", String::from_utf8_lossy(&build.said()))))
            }
        }
    }

    #[cfg(test)]
    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// A server, and where it listens.
    pub fn serve(&self, is_secure: bool, stop: &Stop) -> Result<(End, SocketAddr), TargetError> {
        let files: &[&str] = if is_secure { &["certificate.pem", "key.pem"] } else { &[] };
        let mut end = End::start(self.0.path(), "serve", files)?;
        let (said, _) = end.line(PATIENCE, stop)?;
        let address =
            said.parse().map_err(|_| failed(format!("Go's server does not say where it is, but `{said}`")))?;
        Ok((end, address))
    }

    pub fn client(&self, is_secure: bool) -> Result<End, TargetError> {
        End::start(self.0.path(), "get", if is_secure { &["certificate.pem"] } else { &[] })
    }
}

/// What was built, or what is now.
pub fn built<'a>(built: &'a mut Option<Built>, stop: &Stop) -> Result<&'a Built, TargetError> {
    match built {
        Some(built) => Ok(built),
        None => Ok(built.insert(Built::new(stop)?)),
    }
}

/// One of them, which ends with us.
pub struct End {
    child: Child,
    said: BufReader<ChildStdout>,
    /// It ends when this does.
    told: Option<ChildStdin>,
}

impl End {
    fn start(folder: &Path, which: &str, files: &[&str]) -> Result<Self, TargetError> {
        let mut command = Command::new(folder.join("ends"));
        command.arg(which).args(files).current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        tether(&mut command);
        let mut child = command.spawn().map_err(|error| failed(format!("Go's end could not be started: {error}")))?;
        let (told, Some(said)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("Go's end has no output"));
        };
        Ok(Self { child, said: BufReader::new(said), told })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn cpu_ns(&self) -> io::Result<u64> {
        process_cpu_ns(self.pid())
    }

    pub fn tell(&mut self, line: &str) -> Result<(), TargetError> {
        let told = self.told.as_mut().map_or(Ok(()), |told| told.write_all(format!("{line}\n").as_bytes()));
        told.map_err(|error| failed(format!("Go's end does not listen: {error}")))
    }

    /// What it says next, and when.
    pub fn line(&mut self, limit: Duration, stop: &Stop) -> Result<(String, u64), TargetError> {
        let Self { child, said, .. } = self;
        let mut line = String::new();
        let read = || said.read_line(&mut line).map(|_| now_ns());
        let read = attended(vec![read], limit, stop, || drop(child.kill()))?;
        let read_ns = read.into_iter().sum::<io::Result<u64>>().map_err(failed)?;
        if line.ends_with('\n') {
            return Ok((line.trim_end().into(), read_ns));
        }
        let mut why = String::new();
        if let Some(pipe) = &mut self.child.stderr {
            let _ = pipe.read_to_string(&mut why);
        }
        Err(failed(format!("Go's end has ended{}{}", if why.is_empty() { "" } else { ": " }, why.trim_end())))
    }
}

impl Drop for End {
    fn drop(&mut self) {
        drop(self.told.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
