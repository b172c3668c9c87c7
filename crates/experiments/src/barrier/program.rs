//! How long the kernel ran the daemon's program: it counts that while it is told to.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// What the kernel says of each descriptor of this process.
const DESCRIPTORS: &str = "/proc/self/fdinfo";
/// Whether it counts, for all programs of the machine.
const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";
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
    /// Has the kernel count from here on, for one who asks at a time: the others wait.
    ///
    /// # Errors
    /// Without the privilege; where the kernel can't.
    pub fn count(&self) -> io::Result<Counted> {
        let in_context = |error: io::Error| io::Error::new(error.kind(), format!("{SWITCH}: {error}"));
        let switch = Switch::on().map_err(in_context)?;
        Ok(Counted { before_ns: self.run_ns()?, program: self.clone(), _switch: switch })
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
    _switch: Switch,
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

/// The kernel counts while this lives. One at a time has it: the first to end would stop the others' counting.
struct Switch {
    file: File,
    before: String,
}

impl Switch {
    fn on() -> io::Result<Self> {
        let mut file = File::options().read(true).write(true).open(SWITCH)?;
        file.lock()?;
        let mut before = String::new();
        file.read_to_string(&mut before)?;
        // Numbers are written to the beginning, or not at all.
        file.write_all_at(b"1", 0)?;
        Ok(Self { file, before })
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // It could be written to before.
        let _ = self.file.write_all_at(self.before.trim().as_bytes(), 0);
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

    /// The switch ends as it was, where it may be moved.
    #[test]
    fn counting_ends() {
        let Ok(switch) = Switch::on() else { return };
        let before = switch.before.clone();
        assert_eq!(fs::read_to_string(SWITCH).unwrap().trim(), "1");
        drop(switch);
        assert_eq!(Switch::on().unwrap().before, before);
    }
}
