//! Addresses of objects in stores and of files on this machine.

use std::ffi::OsStr;
use std::fs;
use std::path::{self, Path};
use std::sync::Arc;

use ascertain_sys::files::Identity;

use crate::error::{Error, Result};
use crate::names::shown;
use crate::store::{Local, Options, Store, open};

/// The location of an object in a store, or a prefix of object names.
#[derive(Clone, Debug)]
pub struct Location {
    /// The store that holds the object.
    pub store: Arc<dyn Store>,
    /// Name of the object, or the prefix.
    pub name: String,
    /// Address of the object, without user, password and query.
    pub address: String,
}

impl Location {
    /// Opens the store that an address names. `text` can also be a path of a file or folder on this machine.
    ///
    /// # Errors
    /// Returns the errors of [`open`](crate::open). Also fails if `text` is a path that looks like an address.
    pub fn open(text: &OsStr, options: &Options) -> Result<Self> {
        let path = match text.to_str() {
            Some(text) => match text.split_once("://") {
                Some(("file", path)) => path,
                Some(_) => return open(text, options),
                None => local_path(text)?,
            },
            None => return Self::from_path(Path::new(text), options),
        };
        options.check(path, &text.to_string_lossy())?;
        let absolute =
            path::absolute(path).map_err(|error| Error::Request(format!("`{}`: {error}", text.to_string_lossy())))?;
        // The path of the folder is resolved before it becomes part of an object name, which must not contain `..`.
        let absolute = match (absolute.parent(), absolute.file_name()) {
            (Some(folder), Some(name)) => folder.canonicalize().unwrap_or(folder.to_path_buf()).join(name),
            _ => absolute,
        };
        let Some(name) = absolute.to_str() else { return Self::from_path(&absolute, options) };
        let end = if path.ends_with('/') || absolute.is_dir() { "/" } else { "" };
        let name = format!("{}{end}", name.trim_start_matches('/'));
        Ok(Self { store: Arc::new(Local::new("/")), address: format!("file:///{name}"), name })
    }

    /// Returns the location of a file or folder. The path need not be UTF-8.
    fn from_path(path: &Path, options: &Options) -> Result<Self> {
        options.check("", &shown(path))?;
        if path.is_dir() {
            let address = format!("{}/", shown(path));
            return Ok(Self { store: Arc::new(Local::new(path)), name: String::new(), address });
        }
        Ok(Self::file(path))
    }

    /// Returns the location of a file on this machine.
    pub(crate) fn file(path: &Path) -> Self {
        Self { store: Arc::new(Local::from_file(path)), name: shown(path), address: shown(path) }
    }

    /// Returns the location of the object `name` in the same store. The name of this location must be a prefix, and
    /// `name` must start with it.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        let rest = name.strip_prefix(&self.name).unwrap_or(name);
        Self { store: Arc::clone(&self.store), name: name.into(), address: format!("{}{rest}", self.address) }
    }

    /// Returns the location of the prefix `folder` in the same store. The name of this location must be below it.
    pub(crate) fn folder(&self, folder: String) -> Self {
        let address = match self.address.strip_suffix(&*self.name) {
            Some(store) => format!("{store}{folder}"),
            // The name is percent-encoded in the address.
            None => {
                let below = self.name.matches('/').count() - folder.matches('/').count();
                let start = self.address.rmatch_indices('/').nth(below).map_or(0, |(at, _)| at + 1);
                self.address[..start].into()
            }
        };
        Self { store: Arc::clone(&self.store), name: folder, address }
    }

    /// Returns whether the name is a prefix of object names: it is empty, or ends with a slash.
    pub(crate) fn is_prefix(&self) -> bool {
        self.name.is_empty() || self.name.ends_with('/')
    }

    /// Returns whether the store is read-only, such as an HTTP server.
    pub(crate) fn is_read_only(&self) -> bool {
        self.store.limits().max_put_bytes == 0
    }

    /// Checks that a transfer between this location and the file `path` does not copy a file onto itself. Detects this
    /// even if the two paths differ, for example because of a link.
    ///
    /// # Errors
    /// Returns [`Error::Request`] if `path` is the file that this location names.
    pub fn check_differs_from(&self, path: &Path) -> Result<()> {
        let identity = |path: &Path| fs::metadata(path).map(|there| Identity::from_metadata(&there)).ok();
        let there = self.store.local_path(&self.name).and_then(|there| identity(&there));
        if there.is_none() || there != identity(path) {
            return Ok(());
        }
        Err(Error::Request(format!("{} and {} are the same file", path.display(), self.address)))
    }
}

/// Returns the path of a local file or folder. `text` is a path, with or without `file://` in front.
///
/// # Errors
/// Fails if `text` is an address, or looks like one. For example, other programs write addresses as `s3:bucket/name`.
/// Nobody expects such a text to create a folder `s3:`.
pub(crate) fn local_path(text: &str) -> Result<&str> {
    match text.split_once("://") {
        Some(("file", path)) => Ok(path),
        Some((scheme, _)) => Err(Error::Request(format!(
            "the target of `get` must be a file or folder of this machine; to write to {scheme}://, use `put`"
        ))),
        None if starts_with_scheme(text) => {
            let path = text.strip_prefix("file:").map_or_else(|| format!("./{text}"), str::to_string);
            Err(Error::Request(format!(
                "`{text}` is not an address (`s3://BUCKET/NAME`); for a file of this machine, write `{path}`"
            )))
        }
        None => Ok(text),
    }
}

/// Returns whether `text` starts like an address (`s3:`, `file:`). Returns `false` if a file or folder of this name
/// exists.
fn starts_with_scheme(text: &str) -> bool {
    let is_plain = |scheme: &str| scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    text.split_once(':').is_some_and(|(scheme, _)| is_plain(scheme)) && !Path::new(text).exists()
}
