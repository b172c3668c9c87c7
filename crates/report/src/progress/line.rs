//! The progress line on the terminal, the thread that redraws it, and the observer that updates it during a run.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use ascertain_engine::command::Output;
use ascertain_engine::evidence;
use ascertain_engine::observations::Observations;
use ascertain_engine::outcome::Outcome;
use ascertain_engine::plan::Plan;
use ascertain_engine::run::{Observer, Outlook, Progress};
use ascertain_engine::windows::{MemoryReport, WindowPlan, WindowSummary};
use ascertain_sys::{clock, terminal};
use unicode_width::UnicodeWidthStr;

use super::picture::LivePicture;
use super::words::{bar, expected, preparing, run_line};
use crate::alphabet::Alphabet;
use crate::exports::Files;
use crate::outlook;
use crate::terminal::{Style, is_dumb};
use crate::text::{cut, escape_controls, escape_controls_in_lines, plain};
use crate::windows;

/// Maximum time between two drawings of a line that is overwritten, in nanoseconds.
const BEAT_NS: u64 = 1_000_000_000;
/// Time between two lines that are not overwritten, in nanoseconds.
const PLAIN_BEAT_NS: u64 = 5_000_000_000;
/// Time, in nanoseconds, after which a log gets a line with the shortest possible duration of the run. The line is
/// written only if the first trial is still running.
const EARLY_NS: u64 = 4_000_000_000;

/// A progress line on standard error. It is drawn at each report and at least once a second, because a single
/// observation may take minutes. On a terminal that can't move its cursor (`TERM=dumb`), a line is printed every five
/// seconds. If standard error is not a terminal, at most one line is printed, and only if the first trial takes long.
/// That line has the shortest time in which an answer is possible.
///
/// A thread redraws the line if the measuring thread has not drawn it for a second. The thread then reads the state of
/// the measuring thread, and writes a few hundred bytes.
pub struct Line {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    ends: Condvar,
    screen: Screen,
    beat_ns: u64,
    alphabet: Alphabet,
}

/// The output that the line is written to, which determines how it is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Screen {
    /// There is no output, and the line is not drawn.
    Off,
    /// A terminal whose cursor can be moved, so that the line is overwritten.
    Terminal,
    /// A terminal whose cursor can't be moved, so that each line stays.
    Dumb,
    /// A file or a pipe, in which each line stays.
    Log,
}

struct State {
    status: Option<Status>,
    drawn_ns: u64,
    is_shown: bool,
    has_ended: bool,
}

/// The last report, from which the line is drawn.
enum Status {
    /// The name of the experiment that is being prepared, and when the preparation began, in nanoseconds.
    Preparing(String, u64),
    Run(Box<Progress>),
    Share(f64, String),
}

impl Line {
    /// Creates a line. Nothing is drawn unless `is_wanted`.
    #[must_use]
    pub fn new(is_wanted: bool) -> Line {
        // On a terminal, the line appears after a second, because shorter runs need none.
        let (screen, beat_ns, first_ns) = match () {
            () if !is_wanted => (Screen::Off, BEAT_NS, BEAT_NS),
            () if !io::stderr().is_terminal() => (Screen::Log, EARLY_NS, EARLY_NS),
            () if is_dumb() => (Screen::Dumb, PLAIN_BEAT_NS, BEAT_NS),
            () => (Screen::Terminal, BEAT_NS, BEAT_NS),
        };
        let drawn_ns = (clock::now_ns() + first_ns).saturating_sub(beat_ns);
        let shared = Arc::new(Shared {
            state: Mutex::new(State { status: None, drawn_ns, is_shown: false, has_ended: false }),
            ends: Condvar::new(),
            screen,
            beat_ns,
            alphabet: Alphabet::from_environment(),
        });
        let theirs = Arc::clone(&shared);
        let redraw = || Builder::new().name("progress".into()).stack_size(1 << 18).spawn(move || theirs.redraw()).ok();
        // If no thread can be started, the line is redrawn only at reports.
        Line { thread: is_wanted.then(redraw).flatten(), shared }
    }

    /// Stores that an experiment is being prepared. The line shows this up to a second later, because most preparations
    /// are shorter.
    pub fn preparing(&self, experiment: &str) {
        let mut state = self.shared.lock();
        if !matches!(&state.status, Some(Status::Preparing(same, _)) if same == experiment) {
            state.status = Some(Status::Preparing(experiment.into(), clock::now_ns()));
        }
    }

    /// Stores the progress of a run, and draws the line.
    pub fn run(&self, progress: &Progress) {
        if self.shared.screen != Screen::Off {
            self.show(Status::Run(Box::new(progress.clone())));
        }
    }

    /// Draws a bar for the share of the work that is done, from 0 to 1, followed by a message.
    pub fn draw(&self, share: f64, message: impl FnOnce() -> String) {
        if matches!(self.shared.screen, Screen::Terminal | Screen::Dumb) {
            self.show(Status::Share(share, message()));
        }
    }

    /// Calls `write`, which writes other text to standard error. The progress line is removed before the call and drawn
    /// again after it, so that the text is above the progress line.
    pub fn above(&self, write: impl FnOnce()) {
        let mut state = self.shared.lock();
        self.shared.clear(&mut state);
        write();
        self.shared.draw(&mut state);
    }

    /// Returns whether the line is overwritten, because standard error is a terminal whose cursor can be moved.
    pub(super) fn is_overwritten(&self) -> bool {
        self.shared.screen == Screen::Terminal
    }

    fn show(&self, status: Status) {
        let mut state = self.shared.lock();
        state.status = Some(status);
        self.shared.draw(&mut state);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.has_ended = true;
        self.shared.clear(&mut state);
        drop(state);
        self.shared.ends.notify_all();
        // If the thread that redraws panicked, this thread must not panic too.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Shared {
    /// Locks the state. If another thread panicked while drawing, the state is still valid.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn redraw(&self) {
        let mut state = self.lock();
        while !state.has_ended {
            let gone_ns = clock::now_ns().saturating_sub(state.drawn_ns);
            match self.beat_ns.saturating_sub(gone_ns) {
                0 => self.draw(&mut state),
                wait_ns => {
                    let wait = Duration::from_nanos(wait_ns);
                    state = self.ends.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    /// Draws the line from the last report.
    fn draw(&self, state: &mut State) {
        let now_ns = clock::now_ns();
        let is_early = self.screen != Screen::Terminal && now_ns.saturating_sub(state.drawn_ns) < self.beat_ns;
        if self.screen == Screen::Off || is_early {
            return;
        }
        let line = self.text(state, now_ns);
        // Until the first trial has ended, a log gets its line as soon as the shortest time to an answer is known.
        let has_begun = matches!(&state.status, Some(Status::Run(progress)) if progress.trials > 0);
        let is_due_soon = self.screen == Screen::Log && line.is_empty() && !state.is_shown && !has_begun;
        state.drawn_ns = if is_due_soon { now_ns.saturating_sub(self.beat_ns - BEAT_NS) } else { now_ns };
        if !line.is_empty() {
            state.is_shown = true;
            write(&if self.screen == Screen::Terminal { format!("\r{line}\x1b[K") } else { format!("{line}\n") });
        }
    }

    fn text(&self, state: &State, now_ns: u64) -> String {
        let width = width().saturating_sub(1);
        let since = |then_ns: u64| Duration::from_nanos(now_ns.saturating_sub(then_ns));
        let line = match (&state.status, self.screen) {
            (Some(Status::Run(progress)), Screen::Log) if !state.is_shown => {
                expected(progress, progress.now.activity()).unwrap_or_default()
            }
            (None, _) | (_, Screen::Log) => String::new(),
            (Some(Status::Run(progress)), _) => run_line(
                progress,
                (progress.now.activity(), progress.now.latest_remark(), since(progress.at_ns)),
                width,
            ),
            (Some(Status::Preparing(experiment, began_ns)), _) => cut(&preparing(experiment, since(*began_ns)), width),
            (Some(Status::Share(share, message)), _) => {
                cut(&format!("{} {}", bar(*share), escape_controls(message)), width)
            }
        };
        self.alphabet.in_line(&line)
    }

    /// Removes the line, and leaves the cursor at its beginning.
    fn clear(&self, state: &mut State) {
        if state.is_shown && self.screen == Screen::Terminal {
            state.is_shown = false;
            write("\r\x1b[K");
        }
    }
}

/// Writes a text with a single call, so that other output can't interrupt it. Errors are ignored, because standard
/// error may be closed.
pub(super) fn write(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Wraps a text to `width` columns. If it fits in one line, its indentation stays.
fn fitted(text: &str, width: usize) -> String {
    let style = Style { width, ..Style::default() };
    let lines = text.lines().map(|line| match line.width() <= width {
        true => line.to_string(),
        false => style.paragraph(line).trim_end().to_string(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the current width of the terminal on standard error, in columns.
pub(super) fn width() -> usize {
    let columns = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    terminal::columns(io::stderr()).map(usize::from).or_else(columns).unwrap_or(80)
}

/// The observer of a run that draws the progress line, prints urgent messages above it, and updates the export files.
/// Drop it before you print anything, so that the line is removed.
pub struct ProgressObserver<'f> {
    /// The progress line.
    pub line: Line,
    /// The export files, which are updated during the run.
    pub files: &'f mut Files,
    /// `true` to leave out the sentence about the time that the run needs.
    pub is_quiet: bool,
    /// The options that set the folder of the evidence. A warning recommends them if the evidence can't be written.
    pub evidence_options: &'static str,
    /// The picture of a long measurement.
    pub picture: LivePicture,
}

impl Observer for ProgressObserver<'_> {
    fn started(&mut self, plan: &Plan) {
        // If commands write to the terminal themselves, a progress line would be mixed with their output.
        if plan.commands.iter().any(|set| set.output == Output::Inherit) {
            self.line = Line::new(false);
        }
    }

    fn unkept(&mut self, error: &evidence::Error) {
        self.picture.stays();
        self.line
            .above(|| note(&format!("warning: {error}{}. The run continues without evidence.", self.evidence_options)));
    }

    fn outlook(&mut self, outlook: &Outlook) {
        if !self.is_quiet {
            self.line.above(|| note(&outlook::sentence(outlook)));
        }
    }

    fn preparing(&mut self, experiment: &str) {
        self.line.preparing(experiment);
    }

    fn announced(&mut self, plan: &Plan, windows: &WindowPlan, memory: &MemoryReport, is_recorded: bool) {
        if !self.is_quiet {
            let sentences = windows::announcement(plan, windows, memory, is_recorded);
            self.line.above(|| sentences.iter().for_each(|sentence| note(&plain(sentence))));
        }
    }

    fn window(&mut self, plan: &Plan, windows: &[WindowSummary]) {
        if !self.is_quiet {
            self.picture.show(plan, windows, &self.line);
        }
    }

    fn progress(&mut self, progress: &Progress) {
        self.line.run(progress);
    }

    fn outcome_due(&mut self, now_ns: u64) -> bool {
        self.files.outcome_due(now_ns)
    }

    fn outcome(&mut self, plan: &Plan, outcome: &Outcome, observations: &Observations) {
        self.files.outcome(plan, outcome, observations);
    }
}

/// Writes a line to standard error. Control characters are escaped, and characters that the locale lacks are replaced.
/// On a terminal the line is wrapped. Errors are ignored, because standard error may be closed.
pub fn note(text: &str) {
    let text = escape_controls_in_lines(text);
    let text = if io::stderr().is_terminal() { fitted(&text, width()) } else { text };
    let _ = writeln!(io::stderr(), "{}", Alphabet::from_environment().shown(&text));
}

#[cfg(test)]
mod tests {
    use super::fitted;

    #[test]
    fn notes_are_broken_between_words() {
        let note = "interrupted: `ascertain continue 5eed` continues. The interrupted pair counts against both answers, so a \
                    few more pairs are needed\n  as it is";
        let lines = "interrupted: `ascertain continue 5eed`\ncontinues. The interrupted pair counts against\nboth answers, so a few more pairs are needed\n  as it is";
        assert_eq!(fitted(note, 46), lines);
        assert_eq!(fitted("  as it is", 46), "  as it is");
    }
}
