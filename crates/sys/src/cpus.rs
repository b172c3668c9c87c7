//! Which CPUs there are, and which one this is. Linux only.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::cpu_list;

/// The CPU that the calling thread runs on, or did a moment ago.
#[inline]
#[must_use]
pub fn current() -> Option<u32> {
    // SAFETY: no conditions.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// As many as the CPU numbers that this machine can ever have, offline and empty sockets counted.
///
/// # Errors
/// Where `/sys` is not mounted, or says something else.
pub fn possible() -> io::Result<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = cpu_list::parse(&text).and_then(|ranges| ranges.last()?.end().checked_add(1));
    last.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The CPUs that are online, asked again and again.
#[derive(Debug)]
pub struct Online {
    file: File,
    is_online: Vec<bool>,
}

impl Online {
    /// Nothing is read yet: all of `cpus` count as online.
    ///
    /// # Errors
    /// Where `/sys` is not mounted.
    pub fn new(cpus: u32) -> io::Result<Self> {
        let file = File::open("/sys/devices/system/cpu/online")?;
        Ok(Self { file, is_online: vec![true; cpus as usize] })
    }

    /// Whether each CPU is online, as of now.
    ///
    /// # Errors
    /// As the kernel says, or if what it says can't be understood.
    pub fn read(&mut self) -> io::Result<&[bool]> {
        let mut text = [0; 4096];
        let length = self.file.read_at(&mut text, 0)?;
        let text = std::str::from_utf8(&text[..length]).map_err(io::Error::other)?;
        let ranges = cpu_list::parse(text).ok_or(io::ErrorKind::InvalidData)?;
        self.is_online.fill(false);
        for range in ranges {
            let range = self.is_online.iter_mut().take(*range.end() as usize + 1).skip(*range.start() as usize);
            range.for_each(|is_online| *is_online = true);
        }
        Ok(&self.is_online)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_that_this_runs_on_is_online() {
        // Some sandboxes have no /sys.
        let Ok(possible) = possible() else { return };
        let mut online = Online::new(possible).unwrap();
        let is_online = online.read().unwrap();
        assert_eq!(is_online.len(), possible as usize);
        assert!(is_online[current().unwrap() as usize]);
    }

    #[test]
    fn fewer_than_there_are() {
        if let (Ok(mut none), Ok(mut one)) = (Online::new(0), Online::new(1)) {
            assert_eq!((none.read().unwrap().len(), one.read().unwrap().len()), (0, 1));
        }
    }
}
