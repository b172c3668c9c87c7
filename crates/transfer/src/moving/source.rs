//! A file that is sent, and whether it is still the same.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::OFlags;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use crate::buffers::Buffers;
use crate::crc64::crc64_of_blocks;
use crate::error::Error;
use crate::journal::Side;
use crate::store::Block;

/// What has no length that is known before it ends: a pipe, a device, a file that says that it is empty and is not, as
/// those of `/proc` do. A pipe is waited for until somebody writes to it.
pub(super) async fn endless(path: &Path) -> Result<Option<tokio::fs::File>, Error> {
    let cant = |error| Error::file("can't read", path)(error);
    let metadata = tokio::fs::metadata(path).await.map_err(cant)?;
    if metadata.is_dir() || metadata.is_file() && metadata.len() > 0 {
        return Ok(None);
    }
    let mut file = tokio::fs::File::open(path).await.map_err(cant)?;
    if metadata.is_file() {
        if file.read(&mut [0]).await.map_err(cant)? == 0 {
            return Ok(None);
        }
        file.rewind().await.map_err(cant)?;
    }
    Ok(Some(file))
}

/// An open file, which must stay as it was when it was opened.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    file: Arc<File>,
    path: PathBuf,
    pub bytes: u64,
    pub modified: Option<SystemTime>,
    version: String,
}

impl Source {
    pub fn open(path: &Path) -> Result<Self, Error> {
        let cant = |error| Error::file("can't read", path)(error);
        // A pipe would be waited for until somebody writes to it.
        let at_once = OFlags::NONBLOCK.bits() as i32;
        let file = OpenOptions::new().read(true).custom_flags(at_once).open(path).map_err(cant)?;
        let metadata = file.metadata().map_err(cant)?;
        if !metadata.is_file() {
            return Err(cant(io::Error::new(io::ErrorKind::InvalidInput, "it is no file")));
        }
        Ok(Self {
            file: Arc::new(file),
            path: path.to_path_buf(),
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
            version: version(&metadata),
        })
    }

    pub fn side(&self) -> Side {
        let place = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        Side { place: place.display().to_string(), version: Some(self.version.clone()), bytes: self.bytes }
    }

    /// A part of it, with its checksum.
    pub async fn block(self, offset: u64, bytes: u64, buffers: &Buffers) -> Result<Block, Error> {
        let (path, buffers) = (self.path.clone(), buffers.clone());
        let read = move || match buffers.read(&self.file, offset, bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => self.changed("has become shorter"),
            read => read.map_err(Error::file("can't read", &self.path)),
        };
        let read = tokio::task::spawn_blocking(read).await;
        read.unwrap_or_else(|error| Err(Error::file("can't read", &path)(io::Error::other(error))))
    }

    /// The sum of all of it, a piece at a time.
    pub async fn sum(&self) -> Result<u64, Error> {
        const PIECE_BYTES: u64 = 4 << 20;
        let (mut sums, buffers) = (Vec::new(), Buffers::default());
        for offset in (0..self.bytes).step_by(PIECE_BYTES as usize) {
            let bytes = PIECE_BYTES.min(self.bytes - offset);
            sums.push((bytes, self.clone().block(offset, bytes, &buffers).await?.crc64));
        }
        Ok(crc64_of_blocks(sums))
    }

    /// Whether it is what it was.
    pub fn check(&self) -> Result<(), Error> {
        let now = self.file.metadata().map_err(Error::file("can't read", &self.path))?;
        match fs::metadata(&self.path) {
            Ok(there) if (there.dev(), there.ino()) == (now.dev(), now.ino()) => {}
            Ok(_) => return self.changed("was replaced"),
            Err(_) => return self.changed("was removed"),
        }
        match now.len() {
            len if len > self.bytes => self.changed("has become longer"),
            len if len < self.bytes => self.changed("has become shorter"),
            _ if version(&now) != self.version => self.changed("was written to"),
            _ => Ok(()),
        }
    }

    fn changed<T>(&self, how: &'static str) -> Result<T, Error> {
        Err(Error::SourceChanged { path: self.path.clone(), how })
    }
}

fn version(metadata: &Metadata) -> String {
    // The time of the last change too, which nobody can set back.
    let times = [(metadata.mtime(), metadata.mtime_nsec()), (metadata.ctime(), metadata.ctime_nsec())];
    let [modified, changed] = times.map(|(seconds, ns)| format!("{seconds}.{ns:09}"));
    format!("{:x}-{:x}-{:x}-{modified}-{changed}", metadata.dev(), metadata.ino(), metadata.len())
}
