use std::io;
use std::path::{Path, PathBuf};

use crate::store::{Failure, Kind};

/// The result of a function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a transfer failed or is incomplete.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A store rejected a request or did not answer it, and retries did not help.
    #[error(transparent)]
    Store(#[from] Failure),
    /// There are no credentials for the store, so no request was sent.
    #[error("{0}")]
    NoCredentials(Failure),
    /// A field of [`Options`](crate::Options) does not apply to this kind of store.
    #[error("{address}: `{option}` does not apply to {store}; leave it out")]
    UnsupportedOption {
        /// Address of the store, without secrets.
        address: String,
        /// Name of the field that does not apply.
        option: &'static str,
        /// Kind of the store as the message names it, for example `gs://`.
        store: &'static str,
    },
    /// The memory limit leaves no room for a single part.
    #[error("{address}: one part takes at least {least_bytes} bytes of memory; raise the memory limit")]
    TooLittleMemory {
        /// Address of the object that would be stored or fetched.
        address: String,
        /// Size of the smallest possible part in bytes.
        least_bytes: u64,
    },
    /// An operation on a file of this machine failed.
    #[error("{action} {}: {source}", path.display())]
    File {
        /// The failed operation, for example `can't read`.
        action: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// The error that the operating system returned.
        source: io::Error,
    },
    /// A journal can't be read or written.
    #[error("the journal {} can't be {action}: {source}", path.display())]
    Journal {
        /// The failed operation as a participle, for example `written`.
        action: &'static str,
        /// Path of the journal, or of the folder of journals.
        path: PathBuf,
        /// The error that the operating system returned.
        source: io::Error,
    },
    /// The source file changed during the transfer.
    #[error("{} {change} while it was being sent; nothing was stored", path.display())]
    SourceChanged {
        /// Path of the changed file.
        path: PathBuf,
        /// The kind of change, for example `was replaced`.
        change: &'static str,
    },
    /// An interrupted transfer can't be resumed. The text is the reason, for example that the source or the destination
    /// has changed.
    #[error("{0}")]
    CantResume(String),
    /// Another process is carrying out the same transfer.
    #[error("another process is carrying out the same transfer (its journal is {})", journal.display())]
    InUse {
        /// Path of the journal that the other process has locked.
        journal: PathBuf,
    },
    /// The bytes that arrived differ from the bytes that were sent. The text contains both checksums or sizes.
    #[error("{0}")]
    Corrupted(String),
    /// The name of an object can't be the path of a file below the target folder.
    #[error("`{name}` can't be a file in {}: {reason}", folder.display())]
    Name {
        /// Name of the object in the store.
        name: String,
        /// Path of the target folder.
        folder: PathBuf,
        /// The reason why the name can't be used.
        reason: &'static str,
    },
    /// A text is not a valid pattern for names.
    #[error("`{pattern}` is not a pattern for names: {reason}")]
    Pattern {
        /// The text that is not a pattern.
        pattern: String,
        /// The reason, and the way to write the pattern if there is one.
        reason: &'static str,
    },
    /// A file or link in a folder was not transferred.
    #[error("{} was left out: {reason}", path.display())]
    Omitted {
        /// Path of the omitted file or link.
        path: PathBuf,
        /// The reason for the omission.
        reason: Omission,
    },
    /// The request contradicts itself, or does not fit the files and folders of this machine. The text is the message.
    #[error("{0}")]
    Request(String),
    /// A page of the list of objects can't be read. The objects on the pages before it were transferred.
    #[error("only the first {files} objects were listed: {source}")]
    IncompleteList {
        /// Number of selected objects on the pages that were read.
        files: usize,
        /// The error of the page that can't be read.
        source: Box<Error>,
    },
    /// The transfer was cancelled, because the transfer of another file failed for a reason that concerns all files
    /// ([`Error::concerns_whole_store`]).
    #[error("not transferred, because an error of another file concerns all files")]
    Halted,
    /// A stop was requested before the transfer was complete.
    #[error("stopped")]
    Stopped,
}

/// The reason why a file or link in a folder is not transferred.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Omission {
    /// The entry is a symbolic link to a folder, and such links are not followed.
    #[error("it is a link to a folder")]
    LinkToFolder,
    /// The entry is a symbolic link to a folder that contains the link.
    #[error("it is a link to a folder that contains it")]
    Circle,
    /// The entry is a symbolic link whose target does not exist.
    #[error("it is a broken link")]
    BrokenLink,
    /// The entry is a pipe, a socket or a device.
    #[error("it is a pipe, a socket or a device")]
    Special,
    /// The name of the entry is not UTF-8, so no object can have this name.
    #[error("its name is not UTF-8, but object names must be")]
    NotUnicode,
    /// The entry is a file or folder that can't be read.
    #[error("it can't be read: {0}")]
    Unreadable(io::Error),
}

impl Error {
    /// Returns whether the same error would occur for every object of the store. Examples are wrong credentials, a
    /// missing bucket, and a store or a disk without room. A command then need not try its other files.
    #[must_use]
    pub fn concerns_whole_store(&self) -> bool {
        match self {
            Self::Store(failure) => failure.concerns_whole_store,
            Self::NoCredentials(_) => true,
            Self::File { source, .. } => is_disk_full(source),
            _ => false,
        }
    }

    /// Returns a closure for `map_err` that wraps an I/O error with the operation and the path of a file.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { action, path: path.to_path_buf(), source }
    }

    /// Returns a closure for `map_err` that wraps an I/O error with the operation and the path of a journal.
    pub(crate) fn journal(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Journal { action, path: path.to_path_buf(), source }
    }

    /// Returns the error for a journal that contains an invalid line, which `damage` describes.
    pub(crate) fn damaged_journal(path: &Path, damage: String) -> Self {
        Self::file("can't read the journal", path)(io::Error::new(io::ErrorKind::InvalidData, damage))
    }
}

/// Copies an error, because [`io::Error`] can't be cloned.
pub(crate) fn copy(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Returns whether the operating system has reported that a disk or a quota is full. The error for a single file that is
/// larger than the free space does not come from the operating system.
fn is_disk_full(error: &io::Error) -> bool {
    let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    is_full && error.raw_os_error().is_some()
}

/// Converts an I/O error on a file to a failure of the local store that the file is in.
pub(crate) fn file_failure(action: &str, path: &Path, error: &io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => Kind::Missing,
        io::ErrorKind::PermissionDenied => Kind::Denied,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => Kind::Full,
        io::ErrorKind::Interrupted => Kind::Transient(None),
        _ => Kind::Fatal,
    };
    let failure = Failure::new(kind, format!("{action} {}: {error}", path.display()));
    if is_disk_full(error) { failure.of_whole_store() } else { failure }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A single file that is larger than the free space does not concern the other files.
    #[test]
    fn a_full_disk_concerns_all_files() {
        let full = || io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
        let too_large = || io::Error::new(io::ErrorKind::StorageFull, "the file needs more room");
        let concerns = |error: io::Error| Error::file("can't write", Path::new("a"))(error).concerns_whole_store();
        assert_eq!([concerns(full()), concerns(too_large())], [true, false]);
        let failed = |error: io::Error| file_failure("can't write", Path::new("a"), &error);
        assert!(failed(full()).concerns_whole_store && failed(full()).kind == Kind::Full);
        assert!(!failed(too_large()).concerns_whole_store);
    }
}
