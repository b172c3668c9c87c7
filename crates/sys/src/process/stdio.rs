//! The targets of a command's standard streams.

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
/// A device that discards data written to it, as `/dev/null` does and at the same cost. No program is known to
/// recognise it.
const DISCARD: &str = "/dev/zero";

/// The standard streams of a command, with everything about them that needs to be created only once.
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

/// Standard input, output and error of a command; `None` stands for the stream of this process.
pub(super) type Streams = [Option<OwnedFd>; 3];

/// The open streams of one execution of a command.
pub(super) struct OpenStreams {
    pub streams: Streams,
    /// The read end of the pipe to which output streams are connected; `None` if none of them is.
    pub reader: Option<Reader>,
    /// The file in memory to which output streams write; `None` if none of them does.
    pub memory: Option<File>,
}

/// The read end of a pipe for output.
pub(super) struct Reader {
    pub pipe: PipeReader,
    /// The device to which the kernel moves the output without copying it (`splice`). If this is `None`, this process
    /// reads the output.
    pub moves_to: Option<OwnedFd>,
}

impl Reader {
    /// Takes the pending data out of the pipe, and returns the number of bytes; 0 if no process can write to the pipe
    /// any more.
    pub fn drain(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(target_os = "linux")]
        if let Some(device) = &self.moves_to {
            let flags = rustix::pipe::SpliceFlags::MOVE;
            return Ok(rustix::pipe::splice(&self.pipe, None, device, None, SPLICE_BYTES, flags)?);
        }
        self.pipe.read(buffer)
    }
}

/// Maximum number of bytes that are moved out of a pipe per call.
#[cfg(target_os = "linux")]
const SPLICE_BYTES: usize = 1 << 20;

/// Maximum number of bytes that [`Prepared::captured_output`](super::Prepared::captured_output) returns. If the output
/// was longer, only its last part is kept.
pub const KEPT_BYTES: u64 = 1 << 20;

impl OpenStreams {
    /// Returns the last [`KEPT_BYTES`] of the captured output. Call this after the end of the command.
    pub fn read_captured(memory: &File) -> Vec<u8> {
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
            Input::Bytes(bytes) => Source::Bytes(
                input_in_memory(bytes).map_err(Error::system("could not create a file in memory for the input"))?,
            ),
        };
        Ok(Self { discard: DISCARD.into(), stdin, stdout: command.stdout.clone(), stderr: command.stderr.clone() })
    }

    /// Opens everything that an execution needs, so that none of this happens within the measured time.
    pub fn open(&self) -> Result<OpenStreams, Error> {
        let stdin = match &self.stdin {
            Source::Null => null()?,
            Source::File(path) => input_file(path)?,
            Source::Bytes(file) => rewound(file).map_err(Error::system("could not rewind the input"))?,
        };
        let (mut reader, mut memory) = (None, None);
        let mut open = |output: &Output| match output {
            Output::Discard => discard(&self.discard, &mut reader).map(Some),
            Output::Null => null().map(Some),
            Output::Inherit => Ok(None),
            Output::File(path) => output_file(path).map(Some),
            Output::Pipe => pipe(&mut reader, None).map(Some),
            Output::Memory => kept(&mut memory).map(Some),
        };
        let stdout = open(&self.stdout)?;
        let stderr = match &stdout {
            // Equal outputs share a descriptor: a file opened twice would overwrite its own data, and only one pipe can
            // be read.
            Some(stdout) if self.stderr == self.stdout => {
                Some(stdout.try_clone().map_err(Error::system("could not duplicate the output"))?)
            }
            _ => open(&self.stderr)?,
        };
        Ok(OpenStreams { streams: [Some(stdin), stdout, stderr], reader, memory })
    }
}

fn null() -> Result<OwnedFd, Error> {
    let file = OpenOptions::new().read(true).write(true).open(NULL);
    file.map(OwnedFd::from).map_err(Error::system("could not open /dev/null"))
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
    let (pipe, write) = io::pipe().map_err(Error::system("could not create a pipe for the output"))?;
    *reader = Some(Reader { pipe, moves_to });
    Ok(write.into())
}

/// Opens the device that discards output. A container may lack the device, or have a regular file of that name, which
/// would grow. In these cases the output goes through a pipe to `/dev/null`.
fn discard(device: &Path, reader: &mut Option<Reader>) -> Result<OwnedFd, Error> {
    // `/dev/null` and `/dev/zero` are devices of the same driver.
    let driver = |path: &Path| {
        let metadata = std::fs::metadata(path).ok().filter(|metadata| metadata.file_type().is_char_device())?;
        Some(rustix::fs::major(metadata.rdev()))
    };
    let is_there = driver(device).is_some_and(|number| driver(Path::new(NULL)) == Some(number));
    match is_there.then(|| OpenOptions::new().read(true).write(true).open(device)) {
        Some(Ok(opened)) => Ok(opened.into()),
        // There can be only one reader, and the other stream uses it.
        _ if reader.is_some() => null(),
        _ => pipe(reader, Some(null()?)),
    }
}

fn kept(memory: &mut Option<File>) -> Result<OwnedFd, Error> {
    let what = Error::system("could not create a file in memory for the output");
    let file = memory_file("output").and_then(|file| Ok((file.try_clone()?, file)));
    let (writer, reader) = file.map_err(what)?;
    *memory = Some(reader);
    Ok(writer.into())
}

fn rewound(mut file: &File) -> io::Result<OwnedFd> {
    file.rewind()?;
    file.try_clone().map(OwnedFd::from)
}

/// Creates a file in memory, without a path, that contains `bytes`. No command can change it, if the kernel supports
/// seals.
fn input_in_memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = memory_file("input")?;
    file.write_all(bytes)?;
    #[cfg(target_os = "linux")]
    seal(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK)?;
    Ok(file)
}

/// Releases the memory of the file, and prevents further writes to it. Some processes may still have the file open.
/// Errors are ignored.
fn close_for_descendants(file: &File) {
    let _ = file.set_len(0);
    #[cfg(target_os = "linux")]
    let _ = seal(file, SealFlags::GROW);
}

#[cfg(target_os = "linux")]
fn seal(file: &File, seals: SealFlags) -> io::Result<()> {
    Ok(rustix::fs::fcntl_add_seals(file, seals)?)
}

/// Creates an empty file in memory, without a path. `name` only describes it, in `/proc`.
#[cfg(target_os = "linux")]
fn memory_file(name: &str) -> io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};

    Ok(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?.into())
}

/// Creates an empty file for temporary data. It has a path, with `name` in it, only until this function returns.
#[cfg(not(target_os = "linux"))]
fn memory_file(name: &str) -> io::Result<File> {
    let name = format!("ascertain-{name}-{}-{}", std::process::id(), crate::clock::now_ns());
    let path = std::env::temp_dir().join(name);
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
