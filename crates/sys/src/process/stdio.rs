//! What a command's standard streams are connected to.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, Seek};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::{Command, Input, Output};
use crate::Error;

/// The streams of a command, with what can be made once.
pub(super) struct Redirections {
    stdin: Source,
    stdout: Output,
    stderr: Output,
}

enum Source {
    Null,
    File(PathBuf),
    Bytes(File),
}

/// Standard input, output and error of a command; none is our own.
pub(super) type Streams = [Option<OwnedFd>; 3];

/// What one run is connected to.
pub(super) struct Opened {
    pub streams: Streams,
    /// Where the command's output can be read, if any stream is a pipe.
    pub reader: Option<PipeReader>,
}

impl Redirections {
    pub fn new(command: &Command) -> Result<Self, Error> {
        let stdin = match &command.stdin {
            Input::Null => Source::Null,
            Input::File(path) => Source::File(path.clone()),
            Input::Bytes(bytes) => {
                Source::Bytes(memory_file(bytes).map_err(Error::system("no file in memory for the input"))?)
            }
        };
        Ok(Self { stdin, stdout: command.stdout.clone(), stderr: command.stderr.clone() })
    }

    /// Everything that a run needs, so that nothing is left to do within its time.
    pub fn open(&self) -> Result<Opened, Error> {
        let stdin = match &self.stdin {
            Source::Null => null()?,
            Source::File(path) => input_file(path)?,
            Source::Bytes(file) => rewound(file).map_err(Error::system("the input could not be rewound"))?,
        };
        let mut reader = None;
        let stdout = match &self.stdout {
            Output::Null => Some(null()?),
            Output::Inherit => None,
            Output::File(path) => Some(output_file(path)?),
            Output::Pipe => Some(pipe(&mut reader)?),
        };
        let stderr = match (&self.stderr, &stdout) {
            (Output::Inherit, _) => None,
            // Two openings of one file, or two pipes to read, would only get in each other's way.
            (same, Some(stdout)) if *same == self.stdout => {
                Some(stdout.try_clone().map_err(Error::system("no copy of the output"))?)
            }
            (Output::Null, _) => Some(null()?),
            (Output::File(path), _) => Some(output_file(path)?),
            (Output::Pipe, _) => Some(pipe(&mut reader)?),
        };
        Ok(Opened { streams: [Some(stdin), stdout, stderr], reader })
    }
}

fn null() -> Result<OwnedFd, Error> {
    let file = OpenOptions::new().read(true).write(true).open("/dev/null");
    file.map(OwnedFd::from).map_err(Error::system("/dev/null could not be opened"))
}

fn input_file(path: &Path) -> Result<OwnedFd, Error> {
    let opened = File::open(path).and_then(|file| match file.metadata()?.is_dir() {
        true => Err(io::ErrorKind::IsADirectory.into()),
        false => Ok(file.into()),
    });
    opened.map_err(|source| Error::InputFile { path: path.to_owned(), source })
}

fn output_file(path: &Path) -> Result<OwnedFd, Error> {
    let made = File::create(path).map(OwnedFd::from);
    made.map_err(|source| Error::OutputFile { path: path.to_owned(), source })
}

fn pipe(reader: &mut Option<PipeReader>) -> Result<OwnedFd, Error> {
    let (read, write) = io::pipe().map_err(Error::system("no pipe for the output"))?;
    *reader = Some(read);
    Ok(write.into())
}

fn rewound(mut file: &File) -> io::Result<OwnedFd> {
    file.rewind()?;
    file.try_clone().map(OwnedFd::from)
}

/// A file without a name that holds `bytes`, and that no command can change.
#[cfg(target_os = "linux")]
fn memory_file(bytes: &[u8]) -> io::Result<File> {
    use std::io::Write;

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    let mut file = File::from(memfd_create(c"input", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(bytes)?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK)?;
    Ok(file)
}

/// A file without a name that holds `bytes`.
#[cfg(not(target_os = "linux"))]
fn memory_file(bytes: &[u8]) -> io::Result<File> {
    use std::io::Write;

    let name = format!("ascertain-input-{}-{}", std::process::id(), crate::clock::now_ns());
    let path = std::env::temp_dir().join(name);
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    file.write_all(bytes)?;
    Ok(file)
}
