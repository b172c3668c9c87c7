//! Lists the files in a folder of this machine and in the folders below.

use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use ascertain_sys::files::Identity;

use crate::error::Omission;
use crate::leftovers::TemporaryName;
use crate::names::Filter;

/// The treatment of symbolic links in a folder. By default, links to files are followed, but not links to folders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// Links to files are followed. Each link to a folder, and each broken link, is reported as an error.
    #[default]
    FilesOnly,
    /// Links to files and folders are followed. Each broken link is reported as an error.
    Follow,
    /// No link is followed, and none is reported as an error.
    Skip,
}

/// The settings of a walk through a folder and all folders below. The filter is applied first, so an entry that it
/// excludes can't cause an error.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walk<'a> {
    pub filter: Option<&'a Filter>,
    pub links: Links,
}

/// A file that the walk found, or a path that it omitted.
pub(crate) struct Entry {
    /// Path relative to the walked folder, preceded by the prefix that was passed to [`Walk::visit`]. Bytes that are
    /// not UTF-8 are replaced.
    pub name: String,
    pub path: PathBuf,
    pub found: Result<Metadata, Omission>,
}

impl Walk<'_> {
    /// Calls `found` for each file in or below `folder`, and for each path that can't be transferred. The names of
    /// these entries begin with `prefix`. A missing folder counts as empty.
    pub fn visit(self, folder: &Path, prefix: &str, found: &mut dyn FnMut(Entry)) {
        self.visit_folder(folder, prefix, &mut Vec::new(), found);
    }

    /// Visits one folder. `above` has the identities of the folders that contain it, so that circular links are
    /// detected.
    fn visit_folder(self, folder: &Path, prefix: &str, above: &mut Vec<Identity>, found: &mut dyn FnMut(Entry)) {
        let unreadable = |error| {
            let name = prefix.trim_end_matches('/').to_string();
            Entry { name, path: folder.to_path_buf(), found: Err(Omission::Unreadable(error)) }
        };
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            // After its parent was listed, another process removed this folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return found(unreadable(error)),
        };
        if let Ok(there) = fs::metadata(folder) {
            above.push(Identity::from_metadata(&there));
        }
        for entry in entries {
            match entry {
                Ok(entry) => self.visit_entry(&entry, prefix, above, found),
                Err(error) => found(unreadable(error)),
            }
        }
        above.pop();
    }

    fn visit_entry(self, entry: &DirEntry, prefix: &str, above: &mut Vec<Identity>, found: &mut dyn FnMut(Entry)) {
        let (file_name, path) = (entry.file_name(), entry.path());
        let name = format!("{prefix}{}", file_name.to_string_lossy());
        let mut report = |entry| found(Entry { name: name.clone(), path: path.clone(), found: entry });
        let is_selected = || self.filter.is_none_or(|filter| filter.takes(&name));
        let leaves_out_folder = || self.filter.is_some_and(|filter| filter.leaves_out_folder(&name));
        let kind = match entry.file_type() {
            Ok(kind) => kind,
            Err(error) => {
                return if is_selected() {
                    report(Err(Omission::Unreadable(error)))
                };
            }
        };
        if kind.is_symlink() && self.links == Links::Skip {
            return;
        }
        let there = match fs::metadata(&path) {
            Ok(there) => there,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !kind.is_symlink() => return,
            Err(_) if !is_selected() => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return report(Err(Omission::BrokenLink)),
            Err(error) => return report(Err(Omission::Unreadable(error))),
        };
        if there.is_dir() {
            let is_ours = !kind.is_symlink() && TemporaryName::parse(&file_name.to_string_lossy()).is_some();
            if is_ours || leaves_out_folder() {
                return;
            }
            match file_name.to_str() {
                _ if kind.is_symlink() && self.links != Links::Follow => report(Err(Omission::LinkToFolder)),
                _ if above.contains(&Identity::from_metadata(&there)) => report(Err(Omission::Circle)),
                Some(_) => self.visit_folder(&path, &format!("{name}/"), above, found),
                None => report(Err(Omission::NotUnicode)),
            }
        } else if is_selected() {
            report(match file_name.to_str() {
                _ if !there.is_file() => Err(Omission::Special),
                None => Err(Omission::NotUnicode),
                Some(_) => Ok(there),
            });
        }
    }
}
