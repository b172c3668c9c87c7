//! How long the kernel ran the daemon's program: it counts that while it is told to.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use ascertain_sys::bpf::count_run_time;

/// What the kernel says of each descriptor of this process.
const DESCRIPTORS: &str = "/proc/self/fdinfo";
const RUN_TIME: &str = "run_time_ns:";

/// A program that this process has made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program(PathBuf);

/// The programs that this process has made so far; none where the kernel tells of none.
pub fn all() -> BTreeSet<Program> {
    let descriptors = fs::read_dir(DESCRIPTORS).into_iter().flatten().flatten();
    let programs = descriptors.map(|descriptor| Program(descriptor.path()));
    programs.filter(|program| program.run_ns().is_ok()).collect()
}

impl Program {
    /// Has the kernel count from here on.
    ///
    /// # Errors
    /// Without the privilege; where the kernel can't.
    pub fn count(&self) -> io::Result<Counted> {
        let counting = count_run_time()?;
        Ok(Counted { before_ns: self.run_ns()?, program: self.clone(), _counting: counting })
    }

    /// How long the kernel has run it, on all CPUs together, while it counted.
    fn run_ns(&self) -> io::Result<u64> {
        let text = fs::read_to_string(&self.0)?;
        let number = text.lines().find_map(|line| line.strip_prefix(RUN_TIME)?.trim().parse().ok());
        number.ok_or_else(|| io::Error::other(format!("{} does not tell of a program", self.0.display())))
    }
}

/// What a program takes while this lives.
pub struct Counted {
    program: Program,
    before_ns: u64,
    _counting: OwnedFd,
}

impl Counted {
    /// So far, on all CPUs together.
    ///
    /// # Errors
    /// None, as long as the program is there.
    pub fn run_ns(&self) -> io::Result<u64> {
        Ok(self.program.run_ns()?.saturating_sub(self.before_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_program_is_an_error() {
        let error = Program(format!("{DESCRIPTORS}/0").into()).run_ns().unwrap_err().to_string();
        assert!(error.contains("does not tell of a program"), "{error}");
        assert!(Program(format!("{DESCRIPTORS}/none").into()).run_ns().is_err());
    }
}
