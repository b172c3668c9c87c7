//! The total progress of the files of a command.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use crate::manager::TransferManager;
use crate::plan::PlannedFile;
use crate::pool::Pool;
use crate::result::{Observer, Progress, TransferResult};

/// Combines the progress of all files into one total.
pub(crate) struct TotalProgress {
    observer: Arc<dyn Observer>,
    pool: Arc<Pool>,
    began: Instant,
    state: Mutex<TotalState>,
}

#[derive(Default)]
struct TotalState {
    /// Number of all files that are known so far.
    files: u64,
    complete_files: u64,
    /// Number of transferred bytes of the files that are complete.
    complete_bytes: u64,
    /// Total size of all files that are known so far, without the files that were skipped or failed.
    bytes: u64,
    /// Number of bytes transferred so far, for each file that is being transferred. The key is the name of its object.
    in_transfer: BTreeMap<String, u64>,
}

impl TotalProgress {
    pub fn new(manager: &TransferManager, pool: Arc<Pool>) -> Self {
        let state = Mutex::new(TotalState::default());
        Self { observer: Arc::clone(&manager.observer), pool, began: Instant::now(), state }
    }

    /// Adds files to the total.
    pub fn add(&self, files: &[PlannedFile]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.files += files.len() as u64;
        state.bytes += files.iter().map(|file| file.bytes).sum::<u64>();
    }

    /// Counts a file whose transfer has ended. If it was skipped or has failed, its size is removed from the total.
    pub fn complete(&self, file: &PlannedFile, result: &TransferResult) {
        let transferred_bytes = if result.is_transferred() { result.bytes } else { 0 };
        self.change(&file.object, |state| {
            state.in_transfer.remove(&file.object);
            state.complete_files += 1;
            state.complete_bytes += transferred_bytes;
            state.bytes = (state.bytes + transferred_bytes).saturating_sub(file.bytes);
        });
    }

    /// Reports the total to the observer. `name` is the name of an object.
    pub fn report(&self, name: &str) {
        self.change(name, |_| {});
    }

    /// Changes the total, and reports it to the observer.
    fn change(&self, name: &str, change: impl FnOnce(&mut TotalState)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        let (plan, forecast) = self.pool.outlook();
        self.observer.progress(&Progress {
            name,
            done_bytes: state.complete_bytes + state.in_transfer.values().sum::<u64>(),
            bytes: Some(state.bytes),
            elapsed_s: self.began.elapsed().as_secs_f64(),
            shape: plan.map(|plan| plan.shape),
            forecast,
            files: Some([state.complete_files, state.files]),
        });
    }
}

impl Observer for TotalProgress {
    fn progress(&self, progress: &Progress<'_>) {
        self.change(progress.name, |state| {
            state.in_transfer.insert(progress.name.into(), progress.done_bytes);
        });
    }
}
