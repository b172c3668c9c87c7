//! The log of a daemon: a small file in the git folder.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{self, Mode, OFlags};

use super::place::{file_name, read_small};
use crate::{Error, linux::git};

/// Size at which the log begins anew, in bytes.
const LOG_MAX: u64 = 32 << 10;

/// Returns the log of the monitor for the worktree that contains `path`: one line per event, the newest last. It is
/// empty if no daemon has run.
///
/// # Errors
/// [`Error::NotAWorktree`], [`Error::Bare`] or [`Error::Git`].
pub fn log(path: &Path) -> Result<String, Error> {
    let text = read_small(&git::worktree(path)?.file("log")).unwrap_or_default();
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn open(git_dir: BorrowedFd<'_>, extra: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | extra;
    fs::openat(git_dir, file_name("log"), flags, Mode::from_raw_mode(0o600))
}

/// Creates the file when a daemon starts. Later, a new file could disturb a program that removes the whole folder.
pub fn create(git_dir: BorrowedFd<'_>) {
    let _ = open(git_dir, OFlags::CREATE);
}

/// Appends a line with the time, if the file exists. A full disk loses the line, and nothing else.
pub fn append(git_dir: BorrowedFd<'_>, text: &str) {
    let _ = open(git_dir, OFlags::empty()).map(|file| write(file, text));
}

fn write(file: OwnedFd, text: &str) -> std::io::Result<()> {
    let mut file = File::from(file);
    if !file.metadata()?.is_file() {
        return Ok(());
    }
    if file.metadata()?.len() > LOG_MAX {
        file.set_len(0)?;
        file.rewind()?;
    }
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    file.write_all(format!("{} {text}\n", utc(now_s)).as_bytes())
}

/// Writes a time as `2026-11-30 07:56:19Z`.
fn utc(unix_s: u64) -> String {
    let (days, seconds) = ((unix_s / 86_400) as i64, unix_s % 86_400);
    // Days since 1 March of year 0, in eras of 400 years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{:02}Z", seconds % 60)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn times_are_in_utc() {
        assert_eq!(utc(0), "1970-01-01 00:00:00Z");
        assert_eq!(utc(951_782_400 + 3661), "2000-02-29 01:01:01Z");
        assert_eq!(utc(1_796_025_379), "2026-11-30 07:56:19Z");
    }

    #[test]
    fn a_log_does_not_grow_for_ever_and_follows_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let there = std::fs::File::open(folder.path()).unwrap();
        append(there.as_fd(), "not before the start");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        create(there.as_fd());
        for _ in 0..3000 {
            append(there.as_fd(), "a line of a log");
        }
        let path = folder.path().join(file_name("log"));
        assert!(std::fs::metadata(&path).unwrap().len() <= LOG_MAX + 100);
        let victim = folder.path().join("victim");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&victim, "").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        append(there.as_fd(), "not here");
        assert_eq!(std::fs::read(&victim).unwrap(), b"");
    }
}
