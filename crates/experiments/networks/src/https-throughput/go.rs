//! A client and a server written in Go, built with the Go installation of this machine.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ascertain_engine::experiment::TargetError;
use ascertain_netlab::http::{CERTIFICATE_PEM, KEY_PEM};
use ascertain_netlab::installed::{Folder, find};
use ascertain_netlab::now_ns;
use ascertain_sys::clock::process_cpu_ns;
use ascertain_sys::interrupt::Stop;
use ascertain_sys::process::{self, Exit, Output, Prepared};
use ascertain_sys::tether::tether;

use super::clients::PATIENCE;
use crate::links::{attended, failed};

/// Time limit for building the program and Go's libraries. The limit is long, because the machine may be busy.
const BUILD: Duration = Duration::from_secs(600);
const SOURCE: &str = include_str!("ends.go");
/// Name and content of the certificate's file.
const CERTIFICATE: (&str, &str) = ("certificate.pem", CERTIFICATE_PEM);

/// Returns the file of the Go program, which contains the client and the server. It is built once per process, before a
/// run. The first build on a machine also builds Go's libraries, which takes longer than a run may take. The program's
/// folder is removed after the build; the open file is enough to run the program.
fn ends() -> Result<Arc<File>, TargetError> {
    static ENDS: Mutex<Option<Result<Arc<File>, String>>> = Mutex::new(None);
    let mut ends = ENDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = &*ends {
        return known.clone().map_err(failed);
    }
    let installed = find("go", "apt-get install golang-go");
    let built = match installed.map_err(failed).and_then(|go| build(go, &Stop::default())) {
        Err(TargetError::Interrupted) => return Err(TargetError::Interrupted),
        built => built.map(Arc::new).map_err(|error| error.to_string().trim_end().replace('\n', " ")),
    };
    ends.insert(built).clone().map_err(failed)
}

/// Checks, once per process, whether the program can be built. If the user interrupts the build, reports the program as
/// available: the whole run then ends, so this result has no effect.
pub fn is_available() -> Result<(), String> {
    match ends() {
        Ok(_) | Err(TargetError::Interrupted) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Builds the program without downloads, and independently of a Go module in the working directory.
pub fn build(go: PathBuf, stop: &Stop) -> Result<File, TargetError> {
    let folder = Folder::new().map_err(failed)?;
    let path = |name| folder.path().join(name);
    fs::write(path("ends.go"), SOURCE).map_err(failed)?;
    // The version of the language in the oldest Go that is supported.
    let of_1_19 = "-gcflags=-lang=go1.19".into();
    let args = ["build".into(), of_1_19, "-o".into(), path("ends").into(), path("ends.go").into()].into();
    let env = [("GO111MODULE", "off"), ("GOTOOLCHAIN", "local"), ("GOFLAGS", "")];
    let env = env.map(|(name, value)| (name.into(), value.into())).into();
    let (stdout, stderr) = (Output::Memory, Output::Memory);
    let command = process::Command { program: go.into(), args, env, stdout, stderr, ..Default::default() };
    let build = Prepared::new(&command).map_err(failed)?.stopping_with(stop);
    match build.run(Some(BUILD)).map(|usage| usage.exit) {
        Ok(Exit::Code(0)) => File::open(path("ends")).map_err(failed),
        Ok(Exit::Interrupted) | Err(ascertain_sys::Error::Interrupted) => Err(TargetError::Interrupted),
        Ok(Exit::TimedOut) => Err(failed(format!("`go build` did not end within {BUILD:?}"))),
        Ok(_) => Err(failed(format!(
            "`go build` failed; its output:\n{}",
            String::from_utf8_lossy(&build.captured_output())
        ))),
        Err(error) => Err(failed(error)),
    }
}

/// Starts a Go server, and returns its process and its address.
pub fn serve(is_secure: bool, stop: &Stop) -> Result<(GoProcess, SocketAddr), TargetError> {
    let files = [CERTIFICATE, ("key.pem", KEY_PEM)];
    let mut end = GoProcess::start("serve", if is_secure { &files } else { &[] })?;
    let (said, _) = end.line(PATIENCE, stop)?;
    let address =
        said.parse().map_err(|_| failed(format!("Go's server should print its address, but printed `{said}`")))?;
    Ok((end, address))
}

pub fn client(is_secure: bool) -> Result<GoProcess, TargetError> {
    GoProcess::start("get", if is_secure { &[CERTIFICATE] } else { &[] })
}

/// A running Go client or server, which ends if this process ends.
pub struct GoProcess {
    child: Child,
    said: BufReader<ChildStdout>,
    /// The standard input of the process, through which it receives commands. Closing the input ends the process.
    told: Option<ChildStdin>,
    /// The folder with the certificate. Dropping this field removes the folder.
    _folder: Folder,
}

impl GoProcess {
    fn start(which: &str, files: &[(&str, &str)]) -> Result<Self, TargetError> {
        let (ends, folder) = (ends()?, Folder::new().map_err(failed)?);
        for (name, text) in files {
            fs::write(folder.path().join(name), text).map_err(failed)?;
        }
        let mut command = Command::new(format!("/proc/self/fd/{}", ends.as_raw_fd()));
        command.arg(which).args(files.iter().map(|(name, _)| name)).current_dir(folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        tether(&mut command);
        let mut child =
            command.spawn().map_err(|error| failed(format!("the Go program could not be started: {error}")))?;
        let (told, Some(said)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("the Go program has no output"));
        };
        Ok(Self { child, said: BufReader::new(said), told, _folder: folder })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn cpu_ns(&self) -> io::Result<u64> {
        process_cpu_ns(self.pid())
    }

    pub fn tell(&mut self, line: &str) -> Result<(), TargetError> {
        let told = self.told.as_mut().map_or(Ok(()), |told| told.write_all(format!("{line}\n").as_bytes()));
        told.map_err(|error| failed(format!("the Go program does not read its input: {error}")))
    }

    /// Reads the next line of output, and returns it with the time at which it arrived.
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
        Err(failed(format!("the Go program has ended{}{}", if why.is_empty() { "" } else { ": " }, why.trim_end())))
    }
}

impl Drop for GoProcess {
    fn drop(&mut self) {
        drop(self.told.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
