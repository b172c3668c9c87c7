use std::io;
use std::path::{Path, PathBuf};

use crate::store::{Failure, Kind};

/// Why nothing, or not everything, was moved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store's answer, after what may be tried again was tried again.
    #[error(transparent)]
    Store(#[from] Failure),
    /// A store was not asked, for there are no credentials for it.
    #[error("{0}")]
    NoCredentials(Failure),
    /// A file of this machine.
    #[error("{what} {}: {source}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A journal that can't be kept.
    #[error("the journal {} can't be {what}: {source}", path.display())]
    Journal {
        /// What could not be done with it.
        what: &'static str,
        /// Its file, or the folder of journals.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// What was read from has changed since it was begun.
    #[error("{} {how} while it was being sent; nothing was stored", path.display())]
    SourceChanged {
        /// The file.
        path: PathBuf,
        /// In which way.
        how: &'static str,
    },
    /// What was begun can't be gone on with.
    #[error("{what}")]
    CantResume {
        /// Which side changed, and how.
        what: String,
    },
    /// Another process moves the same.
    #[error("another process moves this already ({})", journal.display())]
    InUse {
        /// Its journal.
        journal: PathBuf,
    },
    /// What came is not what was sent.
    #[error("{what}")]
    Corrupted {
        /// What, and what became of it.
        what: String,
    },
    /// The name can't be that of a file below the target.
    #[error("`{name}` can't be a file in {}: {why}", folder.display())]
    Name {
        /// The name in the store.
        name: String,
        /// The target folder.
        folder: PathBuf,
        /// Why not.
        why: &'static str,
    },
    /// Something in a folder was left out.
    #[error("{} was left out: {why}", path.display())]
    LeftOut {
        /// What.
        path: PathBuf,
        /// Why.
        why: LeftOut,
    },
    /// A request asks for what does not go together.
    #[error("{0}")]
    Request(String),
    /// The stop token was used.
    #[error("stopped")]
    Stopped,
}

/// Why something in a folder is not moved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeftOut {
    /// It leads to a folder elsewhere.
    #[error("it is a link to a folder")]
    LinkToFolder,
    /// It leads to one of the folders that it is in.
    #[error("it is a link to a folder that it is in")]
    Circle,
    /// It leads nowhere.
    #[error("it is a link to nothing")]
    BrokenLink,
    /// It has no contents that end.
    #[error("it is a pipe, a socket or a device")]
    Special,
    /// No object can have such a name.
    #[error("its name is not UTF-8, as names of objects are")]
    NotUnicode,
    /// It can't be read.
    #[error("it can't be read: {0}")]
    Unreadable(io::Error),
}

impl Error {
    /// An input or output error of a file.
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { what, path: path.to_path_buf(), source }
    }

    /// An input or output error of a journal.
    pub(crate) fn journal(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Journal { what, path: path.to_path_buf(), source }
    }
}

/// What an error of a file means for a store that has it.
pub(crate) fn failure(what: &str, path: &Path, error: &io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => Kind::Missing,
        io::ErrorKind::PermissionDenied => Kind::Denied,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => Kind::Full,
        io::ErrorKind::AlreadyExists => Kind::Changed,
        io::ErrorKind::Interrupted => Kind::Transient(None),
        _ => Kind::Fatal,
    };
    Failure { kind, said: format!("{what} {}: {error}", path.display()) }
}
