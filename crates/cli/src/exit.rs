//! Exit codes, as documented in the README and in `--help`.

use std::process::ExitCode;

use ascertain::outcome::{ClaimResult, Verdict};
use ascertain::run::Run;

/// What a run's exit code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Done, and nothing gated failed.
    Done,
    /// A gate failed: a claim is refuted, or `compare --fail-if slower`.
    GateFailed,
    /// Wrong usage, or a bad file.
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

/// The codes for `--help`.
pub const HELP: &str = "Exit codes: 0 done; 1 a gate failed; 2 usage or a bad file; 3 undecided where a gate needed it;\n4 nothing to run here; 5 a target failed or gave a wrong answer; 130 interrupted.";

impl From<Code> for ExitCode {
    fn from(code: Code) -> ExitCode {
        ExitCode::from(match code {
            Code::Done => 0,
            Code::GateFailed => 1,
            Code::Usage => 2,
            Code::Undecided => 3,
            Code::Nothing => 4,
            Code::TargetFailed => 5,
            Code::Interrupted => 130,
        })
    }
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

/// The exit code of a run: 130 before 5 before 1 before 3 before 4.
pub fn code(run: &Run, fail_on: &[FailOn]) -> Code {
    let outcome = &run.outcome;
    let any = |wanted: fn(&ClaimResult) -> bool| outcome.claims.iter().any(wanted);
    let measured = outcome.points.iter().any(|point| point.n > 0);
    match () {
        () if outcome.interrupted => Code::Interrupted,
        () if run.target_failed => Code::TargetFailed,
        () if fail_on.contains(&FailOn::Refuted) && any(|c| c.verdict == Verdict::Refuted) => Code::GateFailed,
        () if fail_on.contains(&FailOn::Undecided)
            && any(|c| matches!(c.verdict, Verdict::Undecided | Verdict::Deferred)) =>
        {
            Code::Undecided
        }
        () if !measured && !any(|c| c.verdict == Verdict::Deferred) => Code::Nothing,
        () => Code::Done,
    }
}
