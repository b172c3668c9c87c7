//! Gives complete downloads their final names, in batches. One system call writes all files of a batch to the disk.
//! With one call per file, these calls would take most of the time for a folder of small files.
//!
//! A batch is on the disk before its first file is named. So if the machine loses power, each file that has its final
//! name is complete. When the command ends successfully, the names are on the disk too.
//!
//! Some systems have no such call, or do not report its errors: systems other than Linux, Linux before version 5.8, and
//! some sandboxes. There, each file of the batch is written to the disk by itself, with its name.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::sync::LazyLock;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ascertain_sys::files::{Draft, Lasting};
#[cfg(target_os = "linux")]
use rustix::io::Errno;
use tokio::sync::{Notify, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

use crate::error::copy;

/// Longest wait for further complete files before a batch is published. A batch costs several switches between threads
/// and a system call, even if it is small.
const BATCH: Duration = Duration::from_millis(20);

/// Publishes the complete files of a command: writes them to the disk in batches, then gives them their final names.
#[derive(Debug, Default)]
pub(crate) struct Publisher {
    waiting: Mutex<Vec<WaitingFile>>,
    /// The lock of the transfer that publishes a batch. Files that become complete meanwhile form the next batch.
    turn: tokio::sync::Mutex<()>,
    /// Ends the wait for further files of the batch.
    at_end: Notify,
    /// An open file on each file system with published files, by the number of the file system.
    written: Mutex<BTreeMap<u64, File>>,
    /// The time and the error of the latest failed attempt to write files to the disk.
    failed: Arc<Mutex<Option<(Instant, io::Error)>>>,
}

/// A complete file that still has its temporary name.
#[derive(Debug)]
pub(crate) struct CompleteFile {
    pub draft: Draft,
    /// The number of the file system that contains the file.
    pub device: u64,
    /// A time before the file was opened.
    pub began: Instant,
    /// `true` to fail if the name already exists.
    pub is_new: bool,
}

#[derive(Debug)]
struct WaitingFile {
    file: CompleteFile,
    published: oneshot::Sender<io::Result<()>>,
}

impl Publisher {
    /// Writes a file to the disk, together with all other files that wait, and gives it its final name. Unless
    /// `is_at_end`, further files will be complete soon.
    pub async fn publish(&self, file: CompleteFile, is_at_end: bool) -> io::Result<()> {
        let (published, mut result) = oneshot::channel();
        lock(&self.waiting).push(WaitingFile { file, published });
        if is_at_end {
            self.at_end.notify_one();
        }
        let turn = tokio::select! {
            biased;
            // The file was in the batch of another transfer.
            published = &mut result => return published.unwrap_or_else(|error| Err(io::Error::other(error))),
            turn = self.turn.lock() => turn,
        };
        let _ = timeout(BATCH, self.at_end.notified()).await;
        let batch = std::mem::take(&mut *lock(&self.waiting));
        let failed = Arc::clone(&self.failed);
        let systems = spawn_blocking(move || publish_batch(batch, &failed, sync)).await;
        lock(&self.written).extend(systems.map_err(io::Error::other)?);
        drop(turn);
        result.try_recv().unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    /// Adds a file that an earlier process has published. If that process was killed, the file's name may not be on the
    /// disk yet.
    pub fn add_named(&self, path: &Path) {
        let mut written = lock(&self.written);
        if let Ok(system) = fs::metadata(path).map(|metadata| metadata.dev())
            && !written.contains_key(&system)
        {
            written.extend(File::open(path).ok().map(|file| (system, file)));
        }
    }

    /// Writes the names of all published files to the disk.
    pub async fn finish(&self) -> io::Result<()> {
        let systems = std::mem::take(&mut *lock(&self.written));
        let synced = spawn_blocking(move || systems.values().try_for_each(|file| sync(file).map(drop)));
        synced.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

/// Publishes a batch of files. Returns an open file on each of their file systems. If a sync fails, no file that was
/// opened before the failure is published. The kernel reports an error only once for each open file, so a later sync
/// through another file may succeed. If `sync` returns `false`, each file is written to the disk by itself, with its
/// name.
fn publish_batch(
    batch: Vec<WaitingFile>,
    failed: &Mutex<Option<(Instant, io::Error)>>,
    sync: impl Fn(&File) -> io::Result<bool>,
) -> BTreeMap<u64, File> {
    let mut systems = BTreeMap::<u64, Vec<WaitingFile>>::new();
    for waiting in batch {
        systems.entry(waiting.file.device).or_default().push(waiting);
    }
    let mut written = BTreeMap::new();
    for (system, files) in systems {
        let synced = files.first().map_or(Ok(true), |first| sync(first.file.draft.file()));
        let is_synced = synced.unwrap_or_else(|error| {
            *lock(failed) = Some((Instant::now(), error));
            true
        });
        let lasting = if is_synced { Lasting::WhileRunning } else { Lasting::ThroughCrash };
        for WaitingFile { file: CompleteFile { draft, began, is_new, .. }, published } in files {
            let error = lock(failed).as_ref().filter(|(at, _)| began <= *at).map(|(_, error)| copy(error));
            let result = match error {
                None if is_new => draft.publish_new(lasting),
                None => draft.publish(lasting),
                Some(error) => Err(error),
            };
            let result = result.map(|file| {
                if is_synced {
                    written.entry(system).or_insert(file);
                }
            });
            // The receiver is gone if the transfer was cancelled.
            let _ = published.send(result);
        }
    }
    written
}

/// Writes all files of the file system that contains `file` to the disk. Returns `false` if they may not be there.
#[cfg(target_os = "linux")]
fn sync(file: &File) -> io::Result<bool> {
    static REPORTS_ERRORS: LazyLock<bool> = LazyLock::new(|| {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease");
        release.is_ok_and(|release| reports_sync_errors(&release))
    });
    match rustix::fs::syncfs(file) {
        // The kernel or a sandbox does not permit the call.
        Err(Errno::NOSYS | Errno::PERM) => Ok(false),
        synced => Ok(synced.map(|()| *REPORTS_ERRORS)?),
    }
}

/// Returns whether `syncfs` reports failed writes in this release of Linux, such as `6.1.0-13-amd64`.
#[cfg(target_os = "linux")]
fn reports_sync_errors(release: &str) -> bool {
    let mut numbers =
        release.split(|other: char| !other.is_ascii_digit()).map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(5), Some(8))
}

/// Does nothing. Other systems have no call that waits until all files are on the disk.
#[cfg(not(target_os = "linux"))]
fn sync(_file: &File) -> io::Result<bool> {
    Ok(false)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io::Write;

    use super::*;

    fn complete(folder: &tempfile::TempDir, name: &str) -> (WaitingFile, oneshot::Receiver<io::Result<()>>) {
        let draft = Draft::create(&folder.path().join(name)).unwrap();
        draft.file().write_all(name.as_bytes()).unwrap();
        let (published, result) = oneshot::channel();
        let file = CompleteFile { draft, device: 0, began: Instant::now(), is_new: name.starts_with("new") };
        (WaitingFile { file, published }, result)
    }

    /// Simulates a loss of power at every moment: the disk has the contents of the last sync, and any subset of the
    /// names given so far.
    #[test]
    fn after_a_loss_of_power_a_name_has_the_whole_file() {
        let folder = tempfile::tempdir().unwrap();
        let (batch, results): (Vec<_>, Vec<_>) =
            ["a", "b", "new c"].map(|name| complete(&folder, name)).into_iter().unzip();
        let names = || fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap()).collect::<Vec<_>>();
        let on_disk = RefCell::new(BTreeMap::new());
        publish_batch(batch, &Mutex::default(), |_| {
            for entry in names() {
                assert!(entry.file_name().as_encoded_bytes().starts_with(b"."), "{entry:?} is named before the sync");
                on_disk.borrow_mut().insert(entry.metadata()?.ino(), fs::read(entry.path())?);
            }
            Ok(true)
        });
        for mut result in results {
            result.try_recv().unwrap().unwrap();
        }
        for name in ["a", "b", "new c"] {
            let inode = fs::metadata(folder.path().join(name)).unwrap().ino();
            assert_eq!(on_disk.borrow()[&inode], name.as_bytes());
        }
    }

    #[test]
    fn a_failed_sync_publishes_nothing_and_a_name_that_exists_fails_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("new"), "before").unwrap();
        let ((file, mut result), failed) = (complete(&folder, "a"), Mutex::default());
        let (later, mut later_result) = complete(&folder, "later");
        publish_batch(vec![file], &failed, |_| Err(io::Error::from_raw_os_error(28)));
        // The next sync succeeds, but the failed one may have lost the bytes of this file.
        publish_batch(vec![later], &failed, |_| Ok(true));
        assert_eq!(later_result.try_recv().unwrap().unwrap_err().raw_os_error(), Some(28));
        assert_eq!(result.try_recv().unwrap().unwrap_err().raw_os_error(), Some(28));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the incomplete file was removed");
        let (batch, mut results): (Vec<_>, Vec<_>) =
            ["new", "b"].map(|name| complete(&folder, name)).into_iter().unzip();
        publish_batch(batch, &failed, |_| Ok(true));
        let mut result = |index: usize| results[index].try_recv().unwrap();
        assert_eq!(result(0).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        result(1).unwrap();
        assert_eq!(fs::read(folder.path().join("new")).unwrap(), b"before");
    }

    /// The files were synced with their names, so the end of the command needs no further sync.
    #[test]
    fn without_a_sync_of_the_file_system_each_file_is_published_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (batch, results): (Vec<_>, Vec<_>) = ["a", "new b"].map(|name| complete(&folder, name)).into_iter().unzip();
        assert!(publish_batch(batch, &Mutex::default(), |_| Ok(false)).is_empty());
        results.into_iter().for_each(|mut result| result.try_recv().unwrap().unwrap());
        assert_eq!(fs::read(folder.path().join("new b")).unwrap(), b"new b");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn old_kernels_do_not_report_failed_writes() {
        for (release, is_reported) in [
            ("5.8.0", true),
            ("5.10.0-28-amd64", true),
            ("6.1", true),
            ("10.0.1\n", true),
            ("5.7.19", false),
            ("4.18.0-553.el8", false),
            ("unknown", false),
            ("", false),
        ] {
            assert_eq!(reports_sync_errors(release), is_reported, "{release}");
        }
    }

    #[test]
    fn many_files_are_published_together() {
        let folder = tempfile::tempdir().unwrap();
        let publisher = Publisher::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let files = (0..100).map(|number| {
            let draft = Draft::create(&folder.path().join(number.to_string())).unwrap();
            let file = CompleteFile { draft, device: 0, began: Instant::now(), is_new: false };
            publisher.publish(file, number == 99)
        });
        let published = runtime.block_on(async {
            let published = futures_all(files).await;
            publisher.finish().await.unwrap();
            published
        });
        assert!(published.iter().all(Result::is_ok));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 100);
    }

    /// Runs futures on one task, and returns their results in order.
    async fn futures_all<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
        let mut running: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
        std::future::poll_fn(|context| {
            for (future, done) in running.iter_mut().filter(|(_, done)| done.is_none()) {
                if let std::task::Poll::Ready(value) = future.as_mut().poll(context) {
                    *done = Some(value);
                }
            }
            match running.iter().all(|(_, done)| done.is_some()) {
                true => std::task::Poll::Ready(()),
                false => std::task::Poll::Pending,
            }
        })
        .await;
        running.into_iter().filter_map(|(_, done)| done).collect()
    }
}
