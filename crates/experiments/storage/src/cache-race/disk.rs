//! A folder of objects on a real disk, each of which the kernel has in memory, or has not.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ascertain_engine::experiment::{Arm, Unavailable};
use ascertain_sys::page_cache::{forget, resident_share};

use super::{COLD, OURS, text};

/// Each is read once between two moments at which all are made cold, or warm.
pub const FILES: usize = 128;
/// All of them together, where objects are large.
const MOST_BYTES: u64 = 256 << 20;

/// A cache. It goes away when dropped.
pub struct Disk {
    folder: PathBuf,
    files: usize,
    is_cold: bool,
}

/// The folder that an arm names.
pub fn folder_of(arm: &Arm) -> PathBuf {
    match &*text(arm, "folder") {
        OURS => "/var/tmp".into(),
        folder => folder.into(),
    }
}

impl Disk {
    /// So many objects with this content, or fewer where they are large.
    ///
    /// # Errors
    /// As the system says, and of what.
    pub fn new(arm: &Arm, content: &[u8], files: usize) -> io::Result<Self> {
        let named =
            |path: &Path, error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        // What a killed one has left has another name.
        let name = format!("ascertain-cache-{}-{:016x}", std::process::id(), rand::random::<u64>());
        let folder = folder_of(arm).join(name);
        fs::create_dir(&folder).map_err(|error| named(&folder, error))?;
        let files = files.min((MOST_BYTES / content.len().max(1) as u64).max(1) as usize);
        let disk = Self { folder, files, is_cold: text(arm, "page_cache") == COLD };
        let paths = || (0..files).map(|index| disk.path(index));
        paths().try_for_each(|path| fs::write(&path, content).map_err(|error| named(&path, error)))?;
        // What is not on the disk yet can't be forgotten.
        let sync = |path: &Path| File::open(path)?.sync_all();
        paths().try_for_each(|path| sync(&path).map_err(|error| named(&path, error)))?;
        Ok(disk)
    }

    /// Where an object is.
    pub fn path(&self, index: usize) -> PathBuf {
        self.folder.join((index % self.files).to_string())
    }

    /// How many there are.
    pub fn files(&self) -> usize {
        self.files
    }

    /// An object is going to be read, cold or warm: the share of it that is in memory now.
    ///
    /// # Errors
    /// As the system says.
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

/// Whether a folder's file system forgets what was read, which cold reads need: a file is made to see that, once.
pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    static TRIED: Mutex<Vec<(PathBuf, Result<(), String>)>> = Mutex::new(Vec::new());
    let folder = folder_of(arm);
    if text(arm, "page_cache") != COLD {
        return Ok(());
    }
    let mut tried = TRIED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let before = tried.iter().find(|(of, _)| *of == folder).map(|(_, before)| before.clone());
    let seen = before.unwrap_or_else(|| {
        let seen = forgets(arm, &folder);
        tried.push((folder, seen.clone()));
        seen
    });
    seen.map_err(Unavailable::other)
}

fn forgets(arm: &Arm, folder: &Path) -> Result<(), String> {
    let named = |error: io::Error| format!("{}: {error}", folder.display());
    let disk = Disk::new(arm, &[7; 1 << 16], 4).map_err(|error| error.to_string())?;
    let shares = (0..disk.files()).map(|index| disk.prepare(index)).collect::<io::Result<Vec<_>>>().map_err(named)?;
    // Another process may look at new files.
    if shares.contains(&0.0) {
        return Ok(());
    }
    Err(format!("{} keeps files in memory that it is asked to forget: name another folder", folder.display()))
}
