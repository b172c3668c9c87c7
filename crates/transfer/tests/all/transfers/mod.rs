//! Tests of transfers with a store in memory, in which every kind of fault can be simulated.

mod faults;
mod folders;
mod full;
mod links;
mod many;
mod memory;
mod outages;
mod pages;
mod paths;
mod repair;
mod resume;
mod resume_folder;
mod slow;
mod whole;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ascertain_transfer::{Settings, Stop, TransferManager};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Runs a future on a runtime with two threads.
fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(future)
}

/// Runs a future on a simulated clock. When no task can run, the clock jumps to the next timer.
fn simulate<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap().block_on(future)
}

fn settings() -> Settings {
    Settings { back_off: Duration::from_millis(1), memory_bytes: 16 << 20, ..Settings::default() }
}

fn manager(settings: Settings) -> TransferManager {
    TransferManager::new(settings, Stop::default(), Box::new(()))
}

/// Returns pseudorandom bytes, so that no two parts are equal.
fn noise(bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    Xoshiro256PlusPlus::seed_from_u64(bytes as u64).fill_bytes(&mut noise);
    noise
}

/// Creates a folder with a file of `bytes` bytes.
fn file(bytes: usize) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let (path, content) = (folder.path().join("file"), noise(bytes));
    std::fs::write(&path, &content).unwrap();
    (folder, path, content)
}

/// Returns the names of the files in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
