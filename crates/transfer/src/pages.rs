//! The planned files of a download. The list of the store is read page by page, and the first objects are fetched while
//! later pages are still being read.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::error::{Error, Result};
use crate::folder_journal::FolderHeader;
use crate::location::Location;
use crate::manager::TransferManager;
use crate::model::WHOLE_BYTES;
use crate::names::beneath;
use crate::pattern::Pattern;
use crate::plan::{Listing, PlannedFile, Selection};
use crate::store::{ListCursor, ObjectMeta};
use crate::walk::Walk;

/// The planned files for one page of a list.
#[derive(Debug)]
pub(crate) struct PlannedPage {
    pub files: Vec<PlannedFile>,
    pub is_last: bool,
}

impl PlannedPage {
    /// A page without files, at the end of a list that can't be read to its end.
    pub const END: Self = Self { files: Vec::new(), is_last: true };
}

/// The pages of a list of objects, which a task reads in the background.
#[derive(Debug)]
pub(crate) struct PlannedPages {
    pages: UnboundedReceiver<Result<PlannedPage>>,
    /// The task that reads the list. It is cancelled when the value is dropped.
    _reader: JoinSet<()>,
}

impl PlannedPages {
    /// Waits for the next page. An error ends the list.
    pub async fn next(&mut self) -> Result<PlannedPage> {
        let ended_early = || Err(Error::Request("reading the list of objects panicked".into()));
        self.pages.recv().await.unwrap_or_else(ended_early)
    }
}

/// The files of a command that are still being listed.
#[derive(Debug)]
pub(crate) struct LaterFiles {
    pub pages: PlannedPages,
    /// The description of the command with the files so far.
    pub header: FolderHeader,
}

/// The files that wait for the start of their transfer. Large files come first. If they came last, few connections
/// would be busy at the end.
#[derive(Debug, Default)]
pub(crate) struct FileQueue {
    large: VecDeque<PlannedFile>,
    small: VecDeque<PlannedFile>,
}

impl FileQueue {
    pub fn add(&mut self, files: Vec<PlannedFile>) {
        let (large, small): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.bytes > WHOLE_BYTES);
        self.small.extend(small);
        self.large.extend(large);
        self.large.make_contiguous().sort_by_key(|file| Reverse(file.bytes));
    }

    pub fn first(&self) -> Option<&PlannedFile> {
        self.large.front().or(self.small.front())
    }

    pub fn pop(&mut self) -> Option<PlannedFile> {
        self.large.pop_front().or_else(|| self.small.pop_front())
    }
}

/// The state that turns the objects of a list into planned files in or below a folder.
struct DownloadPlan {
    manager: TransferManager,
    from: Location,
    folder: PathBuf,
    selection: Selection,
    /// The paths of the files on all pages so far.
    taken: BTreeSet<PathBuf>,
}

impl TransferManager {
    /// Starts to list the selected objects whose names start with the prefix `from.name`. Determines the file that each
    /// object becomes, in or below `folder`. The rest of an object's name becomes its relative name. If an object's
    /// name can't be a path, its entry contains the problem.
    pub(crate) fn plan_get(&self, from: &Location, folder: &Path, selection: &Selection) -> PlannedPages {
        let (manager, from, folder, selection) = (self.clone(), from.clone(), folder.to_path_buf(), selection.clone());
        let plan = DownloadPlan { manager, from, folder, selection, taken: BTreeSet::new() };
        let (sender, pages) = unbounded_channel();
        let mut reader = JoinSet::new();
        reader.spawn(async move {
            if let Err(error) = plan.read(&sender).await {
                let _ = sender.send(Err(error));
            }
        });
        PlannedPages { pages, _reader: reader }
    }
}

impl DownloadPlan {
    /// Reads the list, and sends the planned files of each page.
    async fn read(mut self, pages: &UnboundedSender<Result<PlannedPage>>) -> Result<()> {
        let filter = &self.selection.filter;
        if let Some(folder) = self.from.store.local_path(self.from.name.trim_end_matches('/')) {
            let mut files = Vec::new();
            let walk = Walk { filter: Some(filter), links: self.selection.links };
            walk.visit(&folder, "", &mut |entry| files.push(PlannedFile::new(entry, false)));
            self.plan(&mut files)?;
            let _ = pages.send(Ok(PlannedPage { files, is_last: true }));
            return Ok(());
        }
        let start = filter.only.as_ref().map(Pattern::prefix).unwrap_or_default();
        let (prefix, mut cursor) = (format!("{}{start}", self.from.name), ListCursor::default());
        loop {
            let (objects, is_last) = self.manager.list_page(&self.from, &prefix, &mut cursor).await?;
            let mut files = self.selected(objects);
            self.plan(&mut files)?;
            // The receiver is gone if the command has ended.
            if pages.send(Ok(PlannedPage { files, is_last })).is_err() || is_last {
                return Ok(());
            }
        }
    }

    /// Returns an entry for each selected object.
    fn selected(&self, objects: Vec<ObjectMeta>) -> Vec<PlannedFile> {
        let mut files = Vec::new();
        for meta in objects {
            let (name, bytes) = (&meta.name, meta.bytes);
            let relative = name.strip_prefix(&self.from.name).unwrap_or(name).to_string();
            let shown = relative.trim_start_matches('/');
            // Some tools mark each folder by an empty object whose name ends with a slash.
            let is_marker = (shown.is_empty() || shown.ends_with('/')) && bytes == 0;
            if !is_marker && self.selection.filter.takes(shown) {
                files.push(PlannedFile { relative, bytes, listing: Listing::There(meta), ..PlannedFile::default() });
            }
        }
        files
    }

    /// Determines the paths of files. An object on an earlier page may already have the same path.
    fn plan(&mut self, files: &mut [PlannedFile]) -> Result<()> {
        let Self { from, folder, taken, .. } = self;
        for file in files {
            file.object = format!("{}{}", from.name, file.relative);
            file.relative = file.relative.trim_start_matches('/').to_string();
            if file.problem.is_some() {
                file.path = folder.join(&file.relative);
                continue;
            }
            match beneath(folder, &file.relative) {
                Ok(path) => file.path = path,
                Err(error) => {
                    (file.path, file.problem) = (folder.clone(), Some(error));
                    continue;
                }
            }
            from.named(&file.object).check_differs_from(&file.path)?;
            // The objects `dir/x` and `dir//x` would become the same file below `dir`.
            if !taken.insert(file.path.clone()) {
                let message = format!("another object would be downloaded to the same file, {}", file.path.display());
                file.problem = Some(Error::Request(message));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_files_of_later_pages_come_before_small_files() {
        let file = |bytes| PlannedFile { bytes, ..PlannedFile::default() };
        let mut queue = FileQueue::default();
        queue.add([1, WHOLE_BYTES + 1, WHOLE_BYTES, WHOLE_BYTES + 2].map(file).into());
        assert_eq!(queue.pop().map(|file| file.bytes), Some(WHOLE_BYTES + 2));
        queue.add([2, WHOLE_BYTES + 3, 3].map(file).into());
        assert_eq!(queue.first().map(|file| file.bytes), Some(WHOLE_BYTES + 3));
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|file| file.bytes).collect();
        assert_eq!(rest, [WHOLE_BYTES + 3, WHOLE_BYTES + 1, 1, WHOLE_BYTES, 2, 3]);
        assert!(queue.first().is_none());
    }
}
