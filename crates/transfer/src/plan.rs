//! The plan of a command: the object for each file, or the file for each object. A command only adds or replaces files
//! and objects. It never removes what is missing at the source.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Omission, Result};
use crate::location::Location;
use crate::manager::TransferManager;
use crate::names::Filter;
use crate::pattern::Pattern;
use crate::source::version;
use crate::store::ObjectMeta;
use crate::walk::{Entry, Links, Walk};

/// Smallest number of files for which the store is listed, instead of asking for each object.
const LISTED_FILES: usize = 4;

/// Selects which files of a folder, or which objects under a prefix, are transferred.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Patterns for the names of files, relative to the folder or prefix. If a command has several sources, the patterns
    /// also apply to the names of the files among them.
    pub filter: Filter,
    /// Treatment of symbolic links in a folder of this machine.
    pub links: Links,
}

/// The information about an object that a list of the store contains.
#[derive(Clone, Debug, Default)]
pub(crate) enum Listing {
    /// The store was not asked.
    #[default]
    Unknown,
    /// The store has no such object.
    Missing,
    /// The store has this object. A description from a list has no checksums.
    There(ObjectMeta),
}

impl Listing {
    /// Returns the description of the object; `None` if it does not exist or is unknown.
    pub fn meta(&self) -> Option<&ObjectMeta> {
        if let Self::There(meta) = self { Some(meta) } else { None }
    }
}

/// A planned transfer: a file and an object, one of which is copied to the other.
#[derive(Debug, Default)]
pub(crate) struct PlannedFile {
    pub path: PathBuf,
    /// Name of the file, relative to the folder or prefix.
    pub relative: String,
    /// Name of the object that is the source or the target.
    pub object: String,
    pub bytes: u64,
    /// The version of a regular file of this machine when it was listed; `None` for an object, a pipe or a device.
    pub version: Option<String>,
    pub listing: Listing,
    /// `true` if the user named this file; `false` if it was found in a folder that the user named.
    pub is_named: bool,
    /// The reason why the file can't be transferred, if that is known before the transfer.
    pub problem: Option<Error>,
    /// The reason why the file is transferred again, although an earlier attempt has transferred it.
    pub restart_reason: Option<String>,
}

impl Selection {
    /// Returns the selection that also requires that names match the pattern `only`.
    pub(crate) fn with_only(&self, only: Option<Pattern>) -> Self {
        Self { filter: Filter { only, ..self.filter.clone() }, ..*self }
    }
}

impl PlannedFile {
    /// Creates an entry for a file, or for a path that can't be transferred. `is_named` is `true` if the user named it.
    /// The name of the object is set later.
    pub fn new(Entry { name, path, found }: Entry, is_named: bool) -> Self {
        let mut file = Self { path, relative: name, is_named, ..Self::default() };
        match found {
            Ok(metadata) => {
                file.bytes = metadata.len();
                file.version = metadata.is_file().then(|| version(&metadata));
            }
            Err(reason) => file.problem = Some(Error::Omitted { path: file.path.clone(), reason }),
        }
        file
    }
}

/// Lists the files at `paths` and in folders at `paths`. If a path can't be read, its entry contains the problem. If
/// there are several paths, the names of their files must also be selected, because a shell may have found the files by a
/// pattern.
pub(crate) fn list_sources<P: AsRef<Path>>(paths: &[P], selection: &Selection) -> Vec<PlannedFile> {
    let mut files = Vec::new();
    for path in paths.iter().map(AsRef::as_ref) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                let walk = Walk { filter: Some(&selection.filter), links: selection.links };
                walk.visit(path, "", &mut |entry| files.push(PlannedFile::new(entry, false)));
            }
            Ok(_) if paths.len() > 1 && !selection.filter.takes(&name) => {}
            Ok(metadata) => {
                files.push(PlannedFile::new(Entry { name, path: path.to_path_buf(), found: Ok(metadata) }, true));
            }
            Err(error) => {
                let (path, problem) = (path.to_path_buf(), Some(Error::file("can't read", path)(error)));
                files.push(PlannedFile { path, relative: name, is_named: true, problem, ..PlannedFile::default() });
            }
        }
    }
    files
}

/// Returns the longest text with which all names begin.
fn common_prefix<'a>(names: impl Iterator<Item = &'a str>) -> &'a str {
    let common = |one: &'a str, other: &'a str| {
        let mut alike = one.char_indices().zip(other.chars());
        let end = alike.find(|((_, one), other)| one != other).map(|((at, _), _)| at);
        &one[..end.unwrap_or(one.len().min(other.len()))]
    };
    names.reduce(common).unwrap_or_default()
}

impl TransferManager {
    /// Determines the object that each file becomes, in the store and under the name or prefix of `to`.
    pub(crate) fn plan_put(&self, mut files: Vec<PlannedFile>, to: &Location) -> Result<Vec<PlannedFile>> {
        self.check_attributes(to)?;
        let slash = if to.is_prefix() { "" } else { "/" };
        let mut named = BTreeMap::new();
        for file in &mut files {
            file.object = match file.is_named && !to.is_prefix() {
                true => to.name.clone(),
                false => format!("{}{slash}{}", to.name, file.relative),
            };
            if file.is_named && to.is_prefix() && file.path.file_name().and_then(|name| name.to_str()).is_none() {
                file.problem = Some(Error::Omitted { path: file.path.clone(), reason: Omission::NotUnicode });
            }
            if file.problem.is_some() {
                continue;
            }
            let object = to.named(&file.object);
            if let Some(other) = named.insert(file.object.clone(), file.path.clone()) {
                let (one, other, both) = (file.path.display(), other.display(), object.address);
                return Err(Error::Request(format!(
                    "{other} and {one} would both become {both}; transfer them separately"
                )));
            }
            object.check_differs_from(&file.path)?;
            if file.is_named && !file.path.is_file() {
                // The file is a pipe or a device, which is sent as a stream. Its first part must fit into the memory
                // limit.
                self.first_part_bytes(&object)?;
            }
            self.check_memory_for(file.bytes, &object)?;
        }
        Ok(files)
    }

    /// Lists the objects of the store, which saves a request for each file. Does so only if an earlier attempt is
    /// resumed (`is_resumed`), or if existing files are skipped and there are many files. Without a list, the files
    /// keep [`Listing::Unknown`]. The list ends when it has taken as many requests as there are files. Files that it
    /// does not contain then keep [`Listing::Unknown`], too.
    pub(crate) async fn list_targets(&self, files: &mut [PlannedFile], to: &Location, is_resumed: bool) -> Result<()> {
        let skips = (self.settings.no_clobber || self.settings.skip_unchanged) && files.len() >= LISTED_FILES;
        if !(skips || is_resumed) || to.store.local_path(&to.name).is_some() {
            return Ok(());
        }
        let prefix = common_prefix(files.iter().map(|file| &*file.object)).to_string();
        let mut wanted: HashMap<_, _> = files.iter_mut().map(|file| (file.object.clone(), &mut file.listing)).collect();
        let mut pages_left = wanted.len();
        let take = |page: Vec<ObjectMeta>| {
            for meta in page {
                if let Some(listing) = wanted.remove(&meta.name) {
                    *listing = Listing::There(meta);
                }
            }
            pages_left -= 1;
            pages_left > 0
        };
        match self.list_pages(to, &prefix, take).await {
            Ok(true) => wanted.into_values().for_each(|listing| *listing = Listing::Missing),
            Err(Error::Stopped) => return Err(Error::Stopped),
            // These credentials may permit only writing. Then each file is sent, or looked up on its own.
            Ok(false) | Err(_) => {}
        }
        Ok(())
    }
}
