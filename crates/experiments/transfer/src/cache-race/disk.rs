//! The cache: a folder of files on a real disk. The pages of the files are either warm (in the kernel's page cache) or
//! cold.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ascertain_engine::experiment::{Arm, Unavailable};
use ascertain_sys::page_cache::{forget, resident_share};

use super::{COLD, OURS, text};

/// Maximum number of files in the cache. Each file is read once before all files are made cold or warm again.
pub const FILES: usize = 128;
/// Maximum total size of the files in the cache, in bytes. If the objects are large, there are fewer files.
const MOST_BYTES: u64 = 256 << 20;

/// The folder that contains the files of the cache. Dropping this value removes the folder.
pub struct Disk {
    folder: PathBuf,
    files: usize,
    is_cold: bool,
}

/// Returns the folder that an arm's factor `folder` names; `/var/tmp` by default.
pub fn folder_of(arm: &Arm) -> PathBuf {
    match &*text(arm, "folder") {
        OURS => "/var/tmp".into(),
        folder => folder.into(),
    }
}

impl Disk {
    /// Creates the arm's folder, with `files` files of the given content. If the content is large, creates fewer files.
    ///
    /// # Errors
    /// Returns the system's error, with the path.
    pub fn new(arm: &Arm, content: &[u8], files: usize) -> io::Result<Self> {
        let named =
            |path: &Path, error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        // The random name can't collide with a folder that a killed process has left behind.
        let name = format!("ascertain-cache-{}-{:016x}", std::process::id(), rand::random::<u64>());
        let folder = folder_of(arm).join(name);
        fs::create_dir(&folder).map_err(|error| named(&folder, error))?;
        let files = files.min((MOST_BYTES / content.len().max(1) as u64).max(1) as usize);
        let disk = Self { folder, files, is_cold: text(arm, "page_cache") == COLD };
        let paths = || (0..files).map(|index| disk.path(index));
        paths().try_for_each(|path| fs::write(&path, content).map_err(|error| named(&path, error)))?;
        // The kernel can only drop pages that have already been written to the disk.
        let sync = |path: &Path| File::open(path)?.sync_all();
        paths().try_for_each(|path| sync(&path).map_err(|error| named(&path, error)))?;
        Ok(disk)
    }

    /// Returns the path of the file that the request number `index` reads.
    pub fn path(&self, index: usize) -> PathBuf {
        self.folder.join((index % self.files).to_string())
    }

    pub fn files(&self) -> usize {
        self.files
    }

    /// Makes the file of the request number `index` cold or warm, according to the arm's levels. Then returns the share
    /// of the file's pages that is in memory.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn prepare(&self, index: usize) -> io::Result<f64> {
        let path = self.path(index);
        let file = File::open(&path)?;
        if self.is_cold {
            forget(&file)?;
        } else if resident_share(&file)? < 1.0 {
            fs::read(&path)?;
        }
        resident_share(&file)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// If the arm's files must be cold, checks that the file system of the folder can drop their pages from memory. Creates
/// files to find this out, once for each folder.
pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    static CHECKED: Mutex<BTreeMap<PathBuf, Result<(), String>>> = Mutex::new(BTreeMap::new());
    let folder = folder_of(arm);
    if text(arm, "page_cache") != COLD {
        return Ok(());
    }
    let mut checked = CHECKED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let result = checked.entry(folder).or_insert_with_key(|folder| check_forgets(arm, folder));
    result.clone().map_err(Unavailable::other)
}

fn check_forgets(arm: &Arm, folder: &Path) -> Result<(), String> {
    let named = |error: io::Error| format!("{}: {error}", folder.display());
    let disk = Disk::new(arm, &[7; 1 << 16], 4).map_err(|error| error.to_string())?;
    let shares = (0..disk.files()).map(|index| disk.prepare(index)).collect::<io::Result<Vec<_>>>().map_err(named)?;
    // One cold file is enough, because another process may have read the others.
    if shares.contains(&0.0) {
        return Ok(());
    }
    Err(format!("the file system of {} can't drop files from memory; choose another folder", folder.display()))
}
