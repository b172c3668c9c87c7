//! A local file that is being sent, and that must not change during the transfer.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ascertain_sys::files::Identity;
use rustix::fs::OFlags;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use crate::buffers::Buffers;
use crate::crc64::{crc64_of_blocks, digest_of_crc32c};
use crate::error::{Error, Result};
use crate::journal::Side;
use crate::store::{ObjectMeta, PartBody};

/// Opens a file whose length is known only at its end: a pipe, a device, or a file of `/proc`, which reports a size of
/// 0. Returns `None` for other files. For a pipe, waits until another process opens it for writing.
pub(crate) async fn open_endless(path: &Path) -> Result<Option<tokio::fs::File>> {
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

/// An open file that must not change during the transfer.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    file: Arc<File>,
    path: PathBuf,
    pub bytes: u64,
    pub modified: Option<SystemTime>,
    version: String,
}

impl Source {
    pub fn open(path: &Path) -> Result<Self> {
        let cant = |error| Error::file("can't read", path)(error);
        // Without this flag, opening a pipe would wait until another process opens it for writing.
        let at_once = OFlags::NONBLOCK.bits() as i32;
        let file = OpenOptions::new().read(true).custom_flags(at_once).open(path).map_err(cant)?;
        let metadata = file.metadata().map_err(cant)?;
        if !metadata.is_file() {
            return Err(cant(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")));
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
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        Side { address: path.display().to_string(), version: Some(self.version.clone()), bytes: self.bytes }
    }

    /// Reads the part of `bytes` bytes at `offset` into a buffer of the pool `buffers`, and computes its checksum.
    pub async fn read(&self, offset: u64, bytes: u64, buffers: &Buffers) -> Result<PartBody> {
        let (file, buffers) = (Arc::clone(&self.file), buffers.clone());
        let read = tokio::task::spawn_blocking(move || buffers.read(&file, offset, bytes)).await;
        match read.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => self.changed("has become shorter"),
            read => read.map_err(Error::file("can't read", &self.path)),
        }
    }

    /// Returns the CRC-64/NVME of the whole file.
    pub async fn crc64(&self) -> Result<u64> {
        let mut sums = Vec::new();
        self.read_all(|body| sums.push((body.bytes.len() as u64, body.crc64))).await?;
        Ok(crc64_of_blocks(sums))
    }

    /// Returns the CRC-32C of the whole file.
    async fn crc32c(&self) -> Result<u32> {
        let mut sum = digest_of_crc32c();
        self.read_all(|body| sum.update(&body.bytes)).await?;
        Ok(sum.finalize() as u32)
    }

    /// Reads the whole file in steps, and passes each step to `add`.
    async fn read_all(&self, mut add: impl FnMut(PartBody)) -> Result<()> {
        const STEP_BYTES: u64 = 4 << 20;
        let buffers = Buffers::default();
        for offset in (0..self.bytes).step_by(STEP_BYTES as usize) {
            add(self.read(offset, STEP_BYTES.min(self.bytes - offset), &buffers).await?);
        }
        Ok(())
    }

    /// Returns whether the file has the checksum of an object. `None` if the object's checksum is unknown.
    pub async fn equals(&self, meta: &ObjectMeta) -> Result<Option<bool>> {
        match (meta.crc64, meta.crc32c) {
            (Some(crc64), _) => Ok(Some(self.crc64().await? == crc64)),
            (None, Some(crc32c)) => Ok(Some(self.crc32c().await? == crc32c)),
            (None, None) => Ok(None),
        }
    }

    /// Returns an error if the file has changed since it was opened.
    pub fn check(&self) -> Result<()> {
        let now = self.file.metadata().map_err(Error::file("can't read", &self.path))?;
        match fs::metadata(&self.path) {
            Ok(there) if Identity::from_metadata(&there) == Identity::from_metadata(&now) => {}
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

    fn changed<T>(&self, change: &'static str) -> Result<T> {
        Err(Error::SourceChanged { path: self.path.clone(), change })
    }
}

/// Returns a tag that changes whenever the contents of the file change.
pub(crate) fn version(metadata: &Metadata) -> String {
    // The tag includes the time of the inode's last change (ctime), because programs can't set this time back.
    let times = [(metadata.mtime(), metadata.mtime_nsec()), (metadata.ctime(), metadata.ctime_nsec())];
    let [modified, changed] = times.map(|(seconds, ns)| format!("{seconds}.{ns:09}"));
    format!("{:x}-{:x}-{:x}-{modified}-{changed}", metadata.dev(), metadata.ino(), metadata.len())
}
