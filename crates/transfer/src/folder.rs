//! Transfers the files of a command side by side.

use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::path::Path;
use std::slice;
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::Instant;

use crate::download::{RANGES, Root};
use crate::error::{Error, Result, copy};
use crate::folder_journal::FolderJournal;
use crate::location::Location;
use crate::manager::{Resume, TransferManager};
use crate::model::{Planner, WHOLE_BYTES};
use crate::pages::{FileQueue, LaterFiles, PlannedPage};
use crate::plan::PlannedFile;
use crate::pool::Pool;
use crate::result::{Observer, TransferResult, TransferStatus};
use crate::run::Direction;
use crate::total::TotalProgress;

/// Limit on the number of files of a command that are open at the same time, unless more requests are permitted. It is
/// larger than the usual number of requests, because complete files wait until the next batch is on the disk.
const MAX_ACTIVE: usize = 256;

impl TransferManager {
    /// Transfers the planned files side by side, and the files that are still being listed (`later`). Returns their
    /// results sorted by address. Downloads go below the folder `root`, which is `None` for uploads. Leaves out the
    /// files that are complete according to the journal.
    pub(crate) async fn transfer_all(
        &self,
        direction: Direction,
        location: &Location,
        (mut files, mut later): (Vec<PlannedFile>, Option<LaterFiles>),
        root: Option<Arc<Root>>,
        mut journal: FolderJournal,
    ) -> Vec<TransferResult> {
        let (mut listed_files, mut list_error) = (files.len(), None);
        let mut results = take_problems(location, &mut files);
        let restart_reason = journal.restart_reason.take();
        let complete = self.resume_files(location, &mut files, &journal);
        // A damaged journal concerns all files, but one message is enough.
        if let (Some(reason), Some(file)) = (restart_reason, files.first_mut()) {
            file.restart_reason = Some(reason);
        }
        let limits = if direction == Direction::Put { location.store.limits() } else { RANGES };
        let constraints = self.constraints(limits);
        let (mut all_bytes, mut all_files) = (files.iter().map(|file| file.bytes).sum::<u64>(), files.len());
        let (planner, earlier) = match later {
            Some(_) => (Planner::while_listing(all_bytes, all_files, constraints), None),
            None => {
                let earlier = self.earlier_forecast(all_bytes, all_files as u64);
                (Planner::for_files(all_bytes, all_files, constraints), earlier)
            }
        };
        let began = Instant::now();
        let pool = Pool::new(planner, began, earlier);
        let total = Arc::new(TotalProgress::new(self, Arc::clone(&pool)));
        results.extend(self.count_files(direction, &files, complete, &total));
        let mut queue = FileQueue::default();
        queue.add(files);
        if let (Some(file), (_, Some(_))) = (queue.first(), pool.outlook()) {
            total.report(&file.object);
        }
        let journal = Arc::new(journal);
        let most = MAX_ACTIVE.max(constraints.max_concurrency);
        let (turns, mut tasks) = (Arc::new(Semaphore::new(most)), JoinSet::new());
        // Becomes `true` when a file fails for a reason that concerns the whole store.
        let (halt, mut halted) = watch::channel(false);
        let halt = Arc::new(halt);
        // The latency is measured for all files together. If each file measured it, small files would need twice as
        // many requests.
        let mut measured = JoinSet::new();
        if let Some(file) = queue.first().filter(|_| self.gentle.is_some() && !self.settings.dry_run) {
            let (manager, object) = (self.clone(), location.named(&file.object));
            measured.spawn(async move { manager.gently(&object, pending::<()>()).await });
        }
        // The result of each running task if it panics.
        let mut if_panics = HashMap::new();
        let take = |if_panics: &mut HashMap<task::Id, TransferResult>, joined| match joined {
            Ok((id, result)) => if_panics.remove(&id).map(|_| result),
            Err(error) => if_panics.remove(&JoinError::id(&error)),
        };
        loop {
            // A large file takes many turns, because its parts can use many connections. So few large files are
            // transferred at a time, and an interruption leaves few incomplete ones.
            let weight = queue.first().map(|file| match file.bytes.div_ceil(WHOLE_BYTES) {
                ..=1 => 1,
                parts => (parts * most as u64 / constraints.max_concurrency as u64).clamp(1, most.div_ceil(2) as u64),
            });
            if weight.is_none() && later.is_none() {
                break;
            }
            let turn = Arc::clone(&turns).acquire_many_owned(weight.unwrap_or(1) as u32);
            let next = tokio::select! {
                biased;
                // Pages that have arrived are planned before the next file starts, because large files come first.
                page = next_page(&mut later) => Err(page),
                _ = halted.wait_for(|is_halted| *is_halted), if weight.is_none() => Err(Err(Error::Halted)),
                turn = turn, if weight.is_some() => Ok(turn),
            };
            let turn = match next {
                Ok(turn) => turn,
                Err(page) => {
                    let page = page.map_err(|error| list_error = Some(error));
                    let PlannedPage { mut files, is_last } = page.unwrap_or(PlannedPage::END);
                    listed_files += files.len();
                    if let Some(LaterFiles { header, .. }) = &mut later {
                        header.add(&files);
                        journal.describe(header.clone());
                    }
                    results.extend(take_problems(location, &mut files));
                    let complete = self.resume_files(location, &mut files, &journal);
                    let bytes = files.iter().map(|file| file.bytes).sum::<u64>();
                    (all_bytes, all_files) = (all_bytes + bytes, all_files + files.len());
                    pool.add_files(bytes, files.len());
                    results.extend(self.count_files(direction, &files, complete, &total));
                    queue.add(files);
                    if is_last {
                        pool.end_list(self.earlier_forecast(all_bytes, all_files as u64));
                        later = None;
                    }
                    continue;
                }
            };
            let Some(file) = queue.pop() else { break };
            while let Some(joined) = tasks.try_join_next_with_id() {
                results.extend(take(&mut if_panics, joined));
            }
            if self.stop.is_requested() {
                let (object, status) = (location.named(&file.object), TransferStatus::Failed(Error::Stopped));
                results.push(TransferResult::new(&file.path, &object, file.bytes, status));
                continue;
            }
            let (total, root, folder_journal) = (Arc::clone(&total), root.clone(), Arc::clone(&journal));
            let object = location.named(&file.object);
            let permits = Arc::new(match root {
                Some(_) => pool.next_file(file.bytes).await,
                None => pool.file(file.bytes),
            });
            let observer = Arc::clone(&total) as Arc<dyn Observer>;
            let manager = Self { observer, folder_journal, permits: Some(permits), ..self.clone() };
            let (halt, mut halted) = (Arc::clone(&halt), halted.clone());
            let status = TransferStatus::Failed(Error::Request("the transfer panicked".into()));
            let panic_result = TransferResult::new(&file.path, &object, file.bytes, status);
            // The future is large, so it is moved in a box.
            let task = tasks.spawn(Box::pin(async move {
                let transfer = async {
                    match &root {
                        _ if manager.settings.dry_run => {
                            let described = (file.bytes, &file.listing);
                            Box::pin(manager.preview(direction, &file.path, &object, described)).await
                        }
                        Some(root) => manager.get_beneath(&object, root, &file).await,
                        None => manager.put_planned(&file.path, &object, &file.listing).await,
                    }
                };
                let result = tokio::select! {
                    biased;
                    _ = halted.wait_for(|is_halted| *is_halted) => Err(Error::Halted),
                    result = transfer => result,
                };
                let mut result = result.unwrap_or_else(|error| {
                    if error.concerns_whole_store() {
                        halt.send_replace(true);
                    }
                    TransferResult::new(&file.path, &object, file.bytes, TransferStatus::Failed(error))
                });
                if direction == Direction::Put {
                    let attributes = manager.attributes_fingerprint(&file.object);
                    manager.folder_journal.record_upload(&file, &result, attributes);
                }
                result.restart_reason = result.restart_reason.or(file.restart_reason.clone());
                total.complete(&file, &result);
                drop(turn);
                result
            }));
            if_panics.insert(task.id(), panic_result);
        }
        while let Some(joined) = tasks.join_next_with_id().await {
            results.extend(take(&mut if_panics, joined));
        }
        if let (Some(error), Some(root)) = (list_error, &root) {
            let is_known = results.iter().any(|result| matches!(result.status, TransferStatus::Failed(_)));
            let error = match error {
                Error::Stopped | Error::Halted if is_known => None,
                error @ (Error::Stopped | Error::Halted) => Some(error),
                error => Some(Error::IncompleteList { files: listed_files, source: Box::new(error) }),
            };
            let failed = error.map(|error| TransferResult::new(&root.path, location, 0, TransferStatus::Failed(error)));
            results.extend(failed);
        }
        if let Err(error) = self.publisher.finish().await {
            // The names of these files may be lost if the machine crashes now.
            let not_on_disk = |error: &io::Error| Error::file("can't write", Path::new(&location.address))(copy(error));
            for result in results.iter_mut().filter(|result| direction == Direction::Get && result.is_transferred()) {
                result.status = TransferStatus::Failed(not_on_disk(&error));
            }
        }
        if results.iter().all(|result| !matches!(result.status, TransferStatus::Failed(_))) {
            // A journal that can't be removed is harmless, because both sides of each file are compared with it.
            let _ = Arc::into_inner(journal).map(FolderJournal::remove);
        }
        if let Some(history) = self.history.get() {
            history.record(&results, began.elapsed().as_secs_f64());
        }
        results.sort_by(|one: &TransferResult, other| one.address.cmp(&other.address));
        results
    }

    /// Adds files to the total: those in `files`, and those in `complete`, which an earlier attempt has transferred.
    /// Returns the results of the latter.
    fn count_files(
        &self,
        direction: Direction,
        files: &[PlannedFile],
        complete: Vec<(PlannedFile, TransferResult)>,
        total: &TotalProgress,
    ) -> Vec<TransferResult> {
        total.add(files);
        complete.iter().for_each(|(file, _)| total.add(slice::from_ref(file)));
        let count = |(file, result): (PlannedFile, TransferResult)| {
            if direction == Direction::Get && result.is_transferred() {
                self.publisher.add_named(&file.path);
            }
            total.complete(&file, &result);
            result
        };
        complete.into_iter().map(count).collect()
    }

    /// Removes from `files` every file that an earlier attempt has transferred completely, and returns these files with
    /// their results. Under [`Resume::Only`], a file that has changed since that attempt is also removed from `files`;
    /// its result is an error.
    fn resume_files(
        &self,
        location: &Location,
        files: &mut Vec<PlannedFile>,
        journal: &FolderJournal,
    ) -> Vec<(PlannedFile, TransferResult)> {
        let mut complete = Vec::new();
        for mut file in std::mem::take(files) {
            let object = location.named(&file.object);
            let attributes = self.attributes_fingerprint(&file.object);
            match journal.earlier_result(&file, &object.address, attributes, self.settings.verify) {
                Ok(Some(result)) => complete.push((file, result)),
                Ok(None) => files.push(file),
                Err(Error::CantResume(reason)) if self.settings.resume != Resume::Only => {
                    file.restart_reason = Some(reason);
                    files.push(file);
                }
                Err(error) => {
                    let status = TransferStatus::Failed(error);
                    let result = TransferResult::new(&file.path, &object, file.bytes, status);
                    complete.push((file, result));
                }
            }
        }
        complete
    }
}

/// Waits for the next page of a list. Waits forever if there is no list.
async fn next_page(later: &mut Option<LaterFiles>) -> Result<PlannedPage> {
    match later {
        Some(later) => later.pages.next().await,
        None => pending().await,
    }
}

/// Removes from `files` every file whose problem is known before the transfer. Returns the results of these files.
fn take_problems(location: &Location, files: &mut Vec<PlannedFile>) -> Vec<TransferResult> {
    let result = |file: PlannedFile| {
        let status = TransferStatus::Failed(file.problem.unwrap_or(Error::Stopped));
        TransferResult::new(&file.path, &location.named(&file.object), file.bytes, status)
    };
    files.extract_if(.., |file| file.problem.is_some()).map(result).collect()
}
