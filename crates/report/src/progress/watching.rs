//! Who hears of a run for the person that waits for it.

use std::io::{self, Write};

use ascertain_engine::evidence;
use ascertain_engine::observations::Observations;
use ascertain_engine::outcome::Outcome;
use ascertain_engine::run::{Observer, Outlook, Progress};

use super::line::{Line, fitted};
use crate::alphabet::Alphabet;
use crate::exports::Files;
use crate::outlook;
use crate::text::escape_controls_in_lines;

/// Draws the line of progress, says above it what can't wait, and has the files written that other tools read. Drop it
/// before anything is printed.
pub struct Watching<'f> {
    /// Where it is drawn.
    pub line: Line,
    /// What is written meanwhile.
    pub files: &'f mut Files,
    /// Whether nobody wants to hear what the run takes.
    pub is_quiet: bool,
}

impl Observer for Watching<'_> {
    fn unkept(&mut self, error: &evidence::Error) {
        self.line.above(|| note(&format!("warning: {error}. The run goes on without.")));
    }

    fn outlook(&mut self, outlook: &Outlook) {
        if !self.is_quiet {
            self.line.above(|| note(&fitted(&outlook::sentence(outlook))));
        }
    }

    fn progress(&mut self, progress: &Progress) {
        self.line.run(progress);
    }

    fn outcome_due(&mut self, now_ns: u64) -> bool {
        self.files.outcome_due(now_ns)
    }

    fn outcome(&mut self, outcome: &Outcome, observations: &Observations) {
        self.files.outcome(outcome, observations);
    }
}

/// Writes a line to standard error, with what could steer a terminal as escapes, in the characters that the locale has;
/// nothing can be done when that is closed.
pub fn note(text: &str) {
    let text = escape_controls_in_lines(text);
    let _ = writeln!(io::stderr(), "{}", Alphabet::of_environment().shown(&text));
}
