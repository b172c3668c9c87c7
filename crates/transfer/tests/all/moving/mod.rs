//! Moving, against a store in memory that does everything wrong in turn.

mod faults;
mod full;
mod links;
mod many;
mod memory;
mod paths;
mod resume;
mod whole;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ascertain_transfer::{Mover, Stop, Terms};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Runs a test on a runtime of two threads.
fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(future)
}

/// Runs a test by a clock that stands still while anything can go on, and then goes on to the next timer.
fn simulate<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap().block_on(future)
}

fn terms() -> Terms {
    Terms { back_off: Duration::from_millis(1), memory_bytes: 16 << 20, ..Terms::default() }
}

fn mover(terms: Terms) -> Mover {
    Mover::new(terms, Stop::default(), Box::new(()))
}

/// Bytes that no two blocks of have in common.
fn noise(bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    Xoshiro256PlusPlus::seed_from_u64(bytes as u64).fill_bytes(&mut noise);
    noise
}

/// A folder with a file of so many bytes.
fn file(bytes: usize) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let (path, content) = (folder.path().join("file"), noise(bytes));
    std::fs::write(&path, &content).unwrap();
    (folder, path, content)
}

/// The files in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
