//! Exit codes, as documented in the guide and in `--help`.

use ascertain::{Ending, GatedVerdict};
use ascertain_sys::interrupt;

use crate::options::Word;

/// Exit code for wrong usage, or for a file that can't be read or written. The command then has no result.
pub const USAGE: u8 = 2;

/// Returns the exit code for a run that ended in this way.
pub fn code(ending: Ending) -> u8 {
    match ending {
        Ending::Done => 0,
        Ending::GateFailed => 1,
        Ending::Undecided => 3,
        Ending::Nothing => 4,
        Ending::TargetFailed => 5,
        Ending::Interrupted => 130,
    }
}

/// Returns the exit code for a command that ended with this error. The code shows an interruption, even if an error
/// occurred afterwards.
pub fn of_error(error: &anyhow::Error) -> u8 {
    match error.downcast_ref() {
        _ if interrupt::requested() => code(Ending::Interrupted),
        Some(ascertain::Error::Build { .. }) => code(Ending::TargetFailed),
        _ => USAGE,
    }
}

/// Returns every exit code with its meaning, in ascending order of the codes.
pub fn meanings() -> [(u8, &'static str); 7] {
    [
        (code(Ending::Done), "done"),
        (code(Ending::GateFailed), "a gate failed"),
        (USAGE, "wrong usage, or a file that can't be read or written"),
        (code(Ending::Undecided), "a gate is undecided"),
        (
            code(Ending::Nothing),
            "nothing was selected, or this machine can run none of the selected claims and experiments",
        ),
        (
            code(Ending::TargetFailed),
            "a build failed, or a measured command, server or store failed or gave a wrong answer",
        ),
        (code(Ending::Interrupted), "interrupted"),
    ]
}

/// Returns the text about exit codes for `--help`.
pub fn help() -> String {
    format!("Exit codes: {}.", meanings().map(|(code, meaning)| format!("{code} {meaning}")).join("; "))
}

/// The words that `--fail-on` accepts, each with its help text and value.
pub const FAIL_ON: &[Word<Option<GatedVerdict>>] = &[
    (&["refuted"], "The claim is refuted: exit code 1", Some(GatedVerdict::Refuted)),
    (&["undecided"], "The claim is undecided: exit code 3", Some(GatedVerdict::Undecided)),
    (&["nothing"], "No verdict fails the gate", None),
];

/// Returns the verdicts that make the command fail: all given words except `nothing`.
pub fn fail_on(words: &[Option<GatedVerdict>]) -> Vec<GatedVerdict> {
    words.iter().copied().flatten().collect()
}
