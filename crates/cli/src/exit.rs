//! Exit codes, as documented in docs/guide.md and in `--help`.

use ascertain::{Ending, GatedVerdict};

use crate::options::Word;

/// Wrong usage, or a file that can't be read or written: nothing came of it.
pub const USAGE: u8 = 2;

/// What the process ends with.
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

/// Every code, and what it means.
pub fn meanings() -> [(u8, &'static str); 7] {
    [
        (code(Ending::Done), "done"),
        (code(Ending::GateFailed), "a gate failed"),
        (USAGE, "usage, or a file that can't be read or written"),
        (code(Ending::Undecided), "undecided where a gate needed it"),
        (code(Ending::Nothing), "nothing to run here"),
        (code(Ending::TargetFailed), "a target failed or gave a wrong answer"),
        (code(Ending::Interrupted), "interrupted"),
    ]
}

/// The codes for `--help`.
pub fn help() -> String {
    format!("Exit codes: {}.", meanings().map(|(code, meaning)| format!("{code} {meaning}")).join("; "))
}

/// Which verdicts fail a gate.
pub const FAIL_ON: &[Word<Option<GatedVerdict>>] = &[
    (&["refuted"], "The claim is refuted: exit code 1", Some(GatedVerdict::Refuted)),
    (&["undecided"], "The claim is undecided: exit code 3", Some(GatedVerdict::Undecided)),
    (&["nothing"], "No verdict fails the gate", None),
];

/// Those that fail.
pub fn fail_on(words: &[Option<GatedVerdict>]) -> Vec<GatedVerdict> {
    words.iter().copied().flatten().collect()
}
