//! Exit codes, as documented in docs/guide.md and in `--help`.

use std::process::ExitCode;

use ascertain::Ending;

/// What a run's exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Done, and nothing gated failed.
    Done,
    /// A gate failed: a claim is refuted, or `compare --fail-if slower`.
    GateFailed,
    /// Wrong usage, or a file that can't be read or written.
    Usage,
    /// Undecided at the budget, where a gate needed it.
    Undecided,
    /// Nothing selected, or nothing that this machine can run.
    Nothing,
    /// A target failed, or gave a wrong answer.
    TargetFailed,
    /// Ctrl-C or SIGTERM.
    Interrupted,
}

/// Every code, and what it means.
pub const CODES: [(Code, &str); 7] = [
    (Code::Done, "done"),
    (Code::GateFailed, "a gate failed"),
    (Code::Usage, "usage, or a file that can't be read or written"),
    (Code::Undecided, "undecided where a gate needed it"),
    (Code::Nothing, "nothing to run here"),
    (Code::TargetFailed, "a target failed or gave a wrong answer"),
    (Code::Interrupted, "interrupted"),
];

impl Code {
    /// What the process ends with.
    pub fn number(self) -> u8 {
        match self {
            Code::Done => 0,
            Code::GateFailed => 1,
            Code::Usage => 2,
            Code::Undecided => 3,
            Code::Nothing => 4,
            Code::TargetFailed => 5,
            Code::Interrupted => 130,
        }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> ExitCode {
        ExitCode::from(code.number())
    }
}

/// The codes for `--help`.
pub fn help() -> String {
    let codes = CODES.map(|(code, meaning)| format!("{} {meaning}", code.number()));
    format!("Exit codes: {}.", codes.join("; "))
}

/// Which verdicts fail a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// The claim is refuted: exit code 1.
    Refuted,
    /// The claim is undecided: exit code 3.
    Undecided,
    /// No verdict fails the gate.
    Nothing,
}

/// Those that fail.
pub fn fail_on(words: &[FailOn]) -> Vec<ascertain::GatedVerdict> {
    let failing = words.iter().filter_map(|word| match word {
        FailOn::Refuted => Some(ascertain::GatedVerdict::Refuted),
        FailOn::Undecided => Some(ascertain::GatedVerdict::Undecided),
        FailOn::Nothing => None,
    });
    failing.collect()
}

impl From<Ending> for Code {
    fn from(ending: Ending) -> Code {
        match ending {
            Ending::Done => Code::Done,
            Ending::GateFailed => Code::GateFailed,
            Ending::Undecided => Code::Undecided,
            Ending::Nothing => Code::Nothing,
            Ending::TargetFailed => Code::TargetFailed,
            Ending::Interrupted => Code::Interrupted,
        }
    }
}
