//! What a command's standard streams are connected to.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use rustix::fs::SealFlags;

use super::{Command, Input, Output};
use crate::Error;

const NULL: &str = "/dev/null";
/// Discards what is written to it, as `/dev/null` does and at the same cost. No program is known to recognise it.
const DISCARD: &str = "/dev/zero";

/// The streams of a command, with what can be made once.
pub(super) struct Redirections {
    /// The device that discards output.
    pub(super) discard: PathBuf,
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
    /// The other end of the streams that are pipes.
    pub reader: Option<Reader>,
    /// What keeps it, if any stream goes to memory.
    pub memory: Option<File>,
}

/// The end of a pipe that output comes out of.
pub(super) struct Reader {
    pub pipe: PipeReader,
    /// The device that the output is moved to without copying it. Without one the output is read.
    pub moves_to: Option<OwnedFd>,
}

impl Reader {
    /// Takes out what is there, and returns the number of bytes; 0 at the end.
    pub fn drain(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(target_os = "linux")]
        if let Some(device) = &self.moves_to {
            let flags = rustix::pipe::SpliceFlags::MOVE;
            return Ok(rustix::pipe::splice(&self.pipe, None, device, None, SPLICE_BYTES, flags)?);
        }
        self.pipe.read(buffer)
    }
}

/// The largest number of bytes that is moved out of a pipe at once.
#[cfg(target_os = "linux")]
const SPLICE_BYTES: usize = 1 << 20;

/// Bytes that [`Prepared::said`](super::Prepared::said) gives at most: the end of what went to memory.
pub const KEPT_BYTES: u64 = 1 << 20;

impl Opened {
    /// The end of what was kept, after the end of the command.
    pub fn said(memory: &File) -> Vec<u8> {
        let length = memory.metadata().map_or(0, |of| of.len());
        let kept = length.min(KEPT_BYTES);
        let mut end = vec![0; kept as usize];
        if memory.read_exact_at(&mut end, length - kept).is_err() {
            end.clear();
        }
        close_for_descendants(memory);
        end
    }
}

impl Redirections {
    pub fn new(command: &Command) -> Result<Self, Error> {
        let stdin = match &command.stdin {
            Input::Null => Source::Null,
            Input::File(path) => Source::File(path.clone()),
            Input::Bytes(bytes) => {
                Source::Bytes(input_in_memory(bytes).map_err(Error::system("no file in memory for the input"))?)
            }
        };
        Ok(Self { discard: DISCARD.into(), stdin, stdout: command.stdout.clone(), stderr: command.stderr.clone() })
    }

    /// Everything that a run needs, so that nothing is left to do within its time.
    pub fn open(&self) -> Result<Opened, Error> {
        let stdin = match &self.stdin {
            Source::Null => null()?,
            Source::File(path) => input_file(path)?,
            Source::Bytes(file) => rewound(file).map_err(Error::system("the input could not be rewound"))?,
        };
        let (mut reader, mut memory) = (None, None);
        let stdout = match &self.stdout {
            Output::Discard => Some(discard(&self.discard, &mut reader)?),
            Output::Null => Some(null()?),
            Output::Inherit => None,
            Output::File(path) => Some(output_file(path)?),
            Output::Pipe => Some(pipe(&mut reader, None)?),
            Output::Memory => Some(kept(&mut memory)?),
        };
        let stderr = match (&self.stderr, &stdout) {
            (Output::Inherit, _) => None,
            // Two openings of one file, or two pipes to read, would only get in each other's way.
            (same, Some(stdout)) if *same == self.stdout => {
                Some(stdout.try_clone().map_err(Error::system("no copy of the output"))?)
            }
            (Output::Discard, _) => Some(discard(&self.discard, &mut reader)?),
            (Output::Null, _) => Some(null()?),
            (Output::File(path), _) => Some(output_file(path)?),
            (Output::Pipe, _) => Some(pipe(&mut reader, None)?),
            (Output::Memory, _) => Some(kept(&mut memory)?),
        };
        Ok(Opened { streams: [Some(stdin), stdout, stderr], reader, memory })
    }
}

fn null() -> Result<OwnedFd, Error> {
    let file = OpenOptions::new().read(true).write(true).open(NULL);
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

fn pipe(reader: &mut Option<Reader>, moves_to: Option<OwnedFd>) -> Result<OwnedFd, Error> {
    let (pipe, write) = io::pipe().map_err(Error::system("no pipe for the output"))?;
    *reader = Some(Reader { pipe, moves_to });
    Ok(write.into())
}

/// Opens the device that discards output. A container may lack the device, or have a file of that name, which would
/// grow: then the output goes through a pipe to `/dev/null`.
fn discard(device: &Path, reader: &mut Option<Reader>) -> Result<OwnedFd, Error> {
    // `/dev/null` and `/dev/zero` are devices of one driver.
    let driver = |path: &Path| {
        let metadata = std::fs::metadata(path).ok().filter(|metadata| metadata.file_type().is_char_device())?;
        Some(rustix::fs::major(metadata.rdev()))
    };
    let is_there = driver(device).is_some_and(|number| driver(Path::new(NULL)) == Some(number));
    match is_there.then(|| OpenOptions::new().read(true).write(true).open(device)) {
        Some(Ok(opened)) => Ok(opened.into()),
        // There is one reader, and the other stream has it.
        _ if reader.is_some() => null(),
        _ => pipe(reader, Some(null()?)),
    }
}

fn kept(memory: &mut Option<File>) -> Result<OwnedFd, Error> {
    let what = Error::system("no file in memory for the output");
    let file = memory_file("output").and_then(|file| Ok((file.try_clone()?, file)));
    let (writer, reader) = file.map_err(what)?;
    *memory = Some(reader);
    Ok(writer.into())
}

fn rewound(mut file: &File) -> io::Result<OwnedFd> {
    file.rewind()?;
    file.try_clone().map(OwnedFd::from)
}

/// A file without a name that holds `bytes`, and that no command can change where the kernel can see to it.
fn input_in_memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = memory_file("input")?;
    file.write_all(bytes)?;
    #[cfg(target_os = "linux")]
    seal(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK)?;
    Ok(file)
}

/// Gives the memory back, and lets whoever still has the file write no more into it. What can't be done is left.
fn close_for_descendants(file: &File) {
    let _ = file.set_len(0);
    #[cfg(target_os = "linux")]
    let _ = seal(file, SealFlags::GROW);
}

#[cfg(target_os = "linux")]
fn seal(file: &File, seals: SealFlags) -> io::Result<()> {
    Ok(rustix::fs::fcntl_add_seals(file, seals)?)
}

/// An empty file without a name.
#[cfg(target_os = "linux")]
fn memory_file(name: &str) -> io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};

    Ok(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?.into())
}

/// An empty file without a name.
#[cfg(not(target_os = "linux"))]
fn memory_file(name: &str) -> io::Result<File> {
    let name = format!("ascertain-{name}-{}-{}", std::process::id(), crate::clock::now_ns());
    let path = std::env::temp_dir().join(name);
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
