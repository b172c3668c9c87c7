//! What moves of a process that was killed have left: beside files of this machine, and in stores.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::BoxFuture;
use crate::error::Error;
use crate::journal::{self, Begun, JOURNAL, Journal, NOTE, Recorded};
use crate::local::Local;
use crate::moving::{Mover, Place, Spot};
use crate::remote::{Options, open};
use crate::store::Upload;

/// What the names of folders of blocks end with.
pub(crate) const UPLOAD: &str = ".upload";
/// What the names of files end with that are not whole yet.
const DOWNLOAD: &str = ascertain_sys::files::UNFINISHED;

/// Whose a name is: an upload's, of some id and process, or that of a download without a journal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Made<'a> {
    pub id: &'a str,
    pub by_process: u32,
}

impl<'a> Made<'a> {
    /// None for somebody's own that is called nearly so.
    pub fn parse(name: &'a str) -> Option<Self> {
        let hidden = name.strip_prefix('.')?;
        let is_hex = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (of, id, by_process) = if let Some(hidden) = hidden.strip_suffix(UPLOAD) {
            let (of, id) = hidden.rsplit_once('.')?;
            let [at, process, number] = *id.split('-').collect::<Vec<_>>() else { return None };
            let process = u32::from_str_radix(process, 16).ok().filter(|_| is_hex(at) && is_hex(number));
            (of, id, process)
        } else {
            let (of, id) = hidden.strip_suffix(DOWNLOAD)?.rsplit_once('.')?;
            let (pair, process) = id.split_once('-')?;
            (of, id, process.parse().ok().filter(|_| is_hex(pair) && pair.len() == 16))
        };
        Some(Self { id, by_process: by_process.filter(|_| !of.is_empty())? })
    }
}

/// What can't be read, and why.
type Unread = (PathBuf, io::Error);

/// Unfinished uploads into files below a folder, and downloads, that no journal in its folder goes on with: each with
/// the process that it is of, which may not be over. Links are not followed.
///
/// Beside them is what can't be read; the rest is looked through nevertheless. Where that is a journal, or one that
/// makes no sense, uploads are left out: any may be the one that it goes on with.
#[must_use]
pub fn unfinished(folder: &Path, journals: &Path) -> (Vec<(PathBuf, u32)>, Vec<Unread>) {
    let (kept, mut unread) = kept(journals);
    let (are_all_kept, mut found, mut folders) = (!unread.is_empty(), Vec::new(), vec![folder.to_path_buf()]);
    while let Some(next) = folders.pop() {
        let entries = match entries(&next) {
            Ok(entries) => entries,
            // It has gone meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound && next != folder => continue,
            Err(error) => {
                unread.push((next, error));
                continue;
            }
        };
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_str().unwrap_or_default();
            match Made::parse(name) {
                Some(made) if kept.contains(made.id) || are_all_kept && name.ends_with(UPLOAD) => {}
                Some(made) => found.push((entry.path(), made.by_process)),
                None if entry.file_type().is_ok_and(|kind| kind.is_dir()) => folders.push(entry.path()),
                None => {}
            }
        }
    }
    found.sort();
    (found, unread)
}

/// The uploads that journals go on with, and the journals that don't say which.
fn kept(journals: &Path) -> (BTreeSet<String>, Vec<Unread>) {
    let (mut kept, mut unread) = (BTreeSet::new(), Vec::new());
    let entries = match entries(journals) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return (kept, vec![(journals.to_path_buf(), error)]),
    };
    for path in entries.iter().map(DirEntry::path).filter(|path| path.extension().is_some_and(|end| end == "journal")) {
        let senseless = |why| io::Error::new(io::ErrorKind::InvalidData, format!("{why}; so uploads stay as they are"));
        let begun = fs::read(&path).and_then(|text| match journal::read(&text) {
            (Recorded { begun: None, .. }, _, Some(why)) => Err(senseless(why)),
            (Recorded { begun, .. }, ..) => Ok(begun),
        });
        match begun {
            Ok(Some(Begun { upload, temporary, .. })) => {
                let name = temporary.and_then(|temporary| temporary.name.into_string().ok());
                kept.extend(name.as_deref().and_then(Made::parse).map(|made| made.id.to_string()));
                kept.insert(upload);
            }
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => unread.push((path, error)),
        }
    }
    (kept, unread)
}

/// A move that was broken off, as its journal has it, and that nobody goes on with now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenOff {
    /// Its journal, or the note of an upload that has none.
    pub journal: PathBuf,
    /// From where; `-` is a stream.
    pub from: String,
    /// To where.
    pub to: String,
    /// What of it is there.
    pub moved_bytes: u64,
    /// Of how much; none of a stream, …
    pub bytes: Option<u64>,
    /// … which nobody can go on with, nor with what was to have no journal.
    pub is_resumable: bool,
    /// Since its journal was written to.
    pub at_rest: Duration,
}

/// What became of what a store had of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// It is gone.
    Gone,
    /// The store forgets it by itself: Azure, within a week.
    Expires,
}

/// What was broken off, of the journals in a folder, and those that can't be read.
#[must_use]
pub fn broken_off(journals: &Path) -> (Vec<BrokenOff>, Vec<(PathBuf, Error)>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    let entries = match entries(journals) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return (found, vec![(journals.to_path_buf(), Error::file("can't read", journals)(error))]),
    };
    for path in entries.iter().map(DirEntry::path) {
        match BrokenOff::read(&path) {
            Ok(broken_off) => found.extend(broken_off),
            Err(error) => unread.push((path, error)),
        }
    }
    found.sort_by(|one, other| one.journal.cmp(&other.journal));
    (found, unread)
}

impl BrokenOff {
    /// None where somebody has it open, or it is no journal.
    fn read(path: &Path) -> Result<Option<Self>, Error> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_resumable = name.ends_with(JOURNAL);
        if !is_resumable && !name.ends_with(NOTE) {
            return Ok(None);
        }
        let Some((_, Begun { source, destination, .. }, moved_bytes)) = opened(path)? else { return Ok(None) };
        let written = fs::metadata(path).and_then(|there| there.modified()).map_err(Error::file("can't read", path))?;
        Ok(Some(Self {
            journal: path.to_path_buf(),
            bytes: (source.place != "-").then_some(source.bytes),
            from: source.place,
            to: destination.place,
            moved_bytes,
            is_resumable,
            at_rest: written.elapsed().unwrap_or_default(),
        }))
    }

    /// Gives it up for good: its upload is aborted where the store knows that, a file that is not whole is removed, and
    /// the journal at last. None where somebody goes on with it meanwhile.
    ///
    /// # Errors
    /// When the store can't be reached or refuses; then the journal is kept.
    pub fn give_up<'a>(
        &'a self,
        mover: &'a Mover,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<Option<GivenUp>, Error>> {
        Box::pin(async move {
            let Some((journal, begun, _)) = opened(&self.journal)? else { return Ok(None) };
            let given_up = if begun.upload.is_empty() {
                // Removed when it is dropped, if it is still there and ours.
                let spot = Spot::of(PathBuf::from(&begun.destination.place));
                drop(spot.ok().and_then(|spot| spot.reopen(&begun).ok()));
                GivenUp::Gone
            } else if let Some(place) = abortable(&begun, options)? {
                let upload = Upload { name: place.name.clone(), id: begun.upload };
                mover.abort(&place, &upload).await?;
                GivenUp::Gone
            } else {
                GivenUp::Expires
            };
            journal.remove().map(|()| Some(given_up))
        })
    }
}

/// A journal that nobody else has open, what it says, and how much of that is there.
fn opened(path: &Path) -> Result<Option<(Journal, Begun, u64)>, Error> {
    let (journal, Recorded { begun, pieces }) = match Journal::open_there(path) {
        Ok(Some(opened)) => opened,
        Ok(None) | Err(Error::InUse { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let done = pieces.values().filter(|(_, part)| part.is_some());
    let moved_bytes = done.map(|(piece, _)| piece.bytes).sum();
    Ok(begun.map(|begun| (journal, begun, moved_bytes)))
}

/// Where an upload can be aborted.
fn abortable(begun: &Begun, options: &Options) -> Result<Option<Place>, Error> {
    let (address, reached) = (&begun.destination.place, begun.reached.clone());
    if let Some(path) = address.strip_prefix("file:///") {
        let (store, name) = (Arc::new(Local::new("/")), path.to_string());
        return Ok(Some(Place { store, name, shown: address.clone() }));
    }
    if !address.starts_with("s3://") && !address.starts_with("gs://") {
        return Ok(None);
    }
    let options = Options {
        endpoint_url: reached.endpoint_url.or(options.endpoint_url.clone()),
        region: reached.region.or(options.region.clone()),
        profile: reached.profile.or(options.profile.clone()),
        virtual_hosted: reached.virtual_hosted,
        anonymous: reached.anonymous || options.anonymous,
        requester_pays: reached.requester_pays || options.requester_pays,
        ..options.clone()
    };
    Ok(Some(open(address, &options)?.into()))
}

fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    fs::read_dir(folder).and_then(Iterator::collect)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Side, VERSION};

    #[test]
    fn an_upload_is_given_up_as_it_was_put() {
        let here = Options { endpoint_url: Some("http://127.0.0.1:1".into()), ..Options::default() };
        let options = Options { anonymous: true, requester_pays: true, ..here.clone() };
        let reached = open("s3://bucket/a", &options).unwrap().store.reached();
        let side = |place: &str| Side { place: place.into(), version: None, bytes: 1 };
        let (source, destination) = (side("a"), side("s3://bucket/a"));
        let begun = Begun {
            version: VERSION,
            source,
            destination,
            upload: "1".into(),
            reached: reached.clone(),
            temporary: None,
        };
        let place = abortable(&begun, &here).unwrap().unwrap();
        assert_eq!(place.store.reached(), reached);
        // As journals had it.
        let older = r#"{"endpoint_url": null, "region": null, "profile": null, "virtual_hosted": true}"#;
        let older = serde_json::from_str::<crate::store::Reached>(older).unwrap();
        assert!(older.virtual_hosted);
        // What they don't say, the caller does.
        let says_less = crate::store::Reached { virtual_hosted: false, ..older };
        let place = abortable(&Begun { reached: says_less, ..begun }, &options).unwrap().unwrap();
        assert!(place.store.reached().anonymous && place.store.reached().requester_pays);
    }

    #[test]
    fn only_our_own_names_are_ours() {
        let made = |name| Made::parse(name).map(|made| (made.id, made.by_process));
        assert_eq!(made(".a.b.18f-2a-0.upload"), Some(("18f-2a-0", 42)));
        assert_eq!(made(".a.0123456789abcdef-42.part"), Some(("0123456789abcdef-42", 42)));
        for theirs in [
            "a.18f-2a-0.upload",
            "..18f-2a-0.upload",
            ".18f-2a-0.upload",
            ".a.1-2.upload",
            ".a.1-2-3-4.upload",
            ".a.1-123456789-3.upload",
            ".a.x-2-3.upload",
            ".upload",
            ".cache.upload",
            // Its journal has no process.
            ".a.0123456789abcdef.part",
            ".a.0123-42.part",
            ".part",
            ".a",
        ] {
            assert_eq!(made(theirs), None, "{theirs}");
        }
    }

    #[test]
    fn what_cant_be_read_is_told_and_the_rest_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let (root, left) = (folder.path(), folder.path().join("z/.a.18f-2a-0.upload"));
        fs::create_dir_all(&left).unwrap();
        // Deeper than names of files may be long, which not even the superuser can read.
        let mut deep = root.join("a");
        while fs::create_dir(&deep).is_ok() {
            deep.push("a".repeat(100));
        }
        fs::rename(root.join("a"), root.join("a".repeat(200))).unwrap();
        let (found, unread) = unfinished(root, &root.join("none"));
        assert_eq!((found, unread.len()), (vec![(left, 42)], 1), "{unread:?}");
        assert!(unread[0].0.starts_with(root.join("a".repeat(200))), "{unread:?}");
        let (found, unread) = unfinished(&root.join("none"), root);
        assert!(found.is_empty() && unread[0].0 == root.join("none"), "{unread:?}");
    }

    #[test]
    fn a_journal_that_says_nothing_may_go_on_with_any_upload() {
        let folder = tempfile::tempdir().unwrap();
        let (root, journals) = (folder.path(), folder.path().join("journals"));
        let parts = [root.join(".a.0123456789abcdef-42.part"), root.join(".a.18f-2a-0.upload")];
        parts.iter().for_each(|part| fs::write(part, "").unwrap());
        fs::create_dir(&journals).unwrap();
        let journal = journals.join("1.journal");
        let left = || unfinished(root, &journals).0.into_iter().map(|(path, _)| path).collect::<Vec<_>>();
        // What was torn off before it was begun, and what is no journal.
        for (name, text) in [("1.journal", "{"), ("other", "nonsense\n")] {
            fs::write(journals.join(name), text).unwrap();
            assert_eq!(left(), parts, "{name}");
        }
        for text in ["nonsense\n", "{\"begun\":{\"version\":2}}\n"] {
            fs::write(&journal, text).unwrap();
            assert_eq!(left(), parts[..1], "{text}");
            let (path, error) = unfinished(root, &journals).1.remove(0);
            assert!(path == journal && error.to_string().contains("uploads stay"), "{error}");
        }
        fs::remove_file(&journal).unwrap();
        fs::create_dir(&journal).unwrap();
        assert_eq!(left(), parts[..1]);
    }
}
