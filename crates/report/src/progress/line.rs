//! The line on the terminal, the thread that keeps it moving, and who hears of a run for the person that waits for it.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use ascertain_engine::evidence;
use ascertain_engine::observations::Observations;
use ascertain_engine::outcome::Outcome;
use ascertain_engine::run::{Observer, Outlook, Progress};
use ascertain_sys::{clock, terminal};
use unicode_width::UnicodeWidthStr;

use super::words::{bar, expected, of_run, preparing};
use crate::alphabet::Alphabet;
use crate::exports::Files;
use crate::outlook;
use crate::terminal::{Style, is_dumb};
use crate::text::{cut, escape_controls_in_lines};

/// The line moves as often at least.
const BEAT_NS: u64 = 1_000_000_000;
/// Where it can't be drawn over, a line is written as often.
const PLAIN_BEAT_NS: u64 = 5_000_000_000;
/// Whoever sees no line hears so soon how long a slow answer takes.
const EARLY_NS: u64 = 4_000_000_000;

/// A line on standard error, drawn when something is told, and once a second while nothing is: a single observation may
/// take minutes. A terminal that can't move its cursor (`TERM=dumb`) gets a plain line every five seconds, and what is
/// no terminal a single one, where the first trial takes long: what an answer takes at the least.
///
/// What draws in between is a thread that sleeps a second, looks at what the measuring thread has noted, and writes
/// some hundred bytes, where that has drawn nothing for a second itself.
pub struct Line(Option<Drawn>);

struct Drawn {
    shared: Arc<Shared>,
    beat: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    ends: Condvar,
    screen: Screen,
    beat_ns: u64,
    alphabet: Alphabet,
}

/// Where the line goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Screen {
    /// It is drawn over.
    Moving,
    /// Each stays.
    Dumb,
    /// Nobody may be looking.
    None,
}

struct State {
    told: Option<Told>,
    drawn_ns: u64,
    is_shown: bool,
    has_ended: bool,
}

enum Told {
    /// This experiment is made ready, since then.
    Preparing(String, u64),
    Run(Box<Progress>),
    Share(f64, String),
}

impl Line {
    /// A line, unless nobody would see it.
    #[must_use]
    pub fn new(is_wanted: bool) -> Line {
        if !is_wanted {
            return Line(None);
        }
        // The first line on a terminal comes after a second: what is over by then needs none.
        let (screen, beat_ns, first_ns) = match () {
            () if !io::stderr().is_terminal() => (Screen::None, EARLY_NS, EARLY_NS),
            () if is_dumb() => (Screen::Dumb, PLAIN_BEAT_NS, BEAT_NS),
            () => (Screen::Moving, BEAT_NS, BEAT_NS),
        };
        let drawn_ns = (clock::now_ns() + first_ns).saturating_sub(beat_ns);
        let shared = Arc::new(Shared {
            state: Mutex::new(State { told: None, drawn_ns, is_shown: false, has_ended: false }),
            ends: Condvar::new(),
            screen,
            beat_ns,
            alphabet: Alphabet::of_environment(),
        });
        let theirs = Arc::clone(&shared);
        let beat = Builder::new().name("progress".into()).stack_size(1 << 18).spawn(move || theirs.beat());
        // Without a thread it moves when something is told.
        Line(Some(Drawn { shared, beat: beat.ok() }))
    }

    /// Notes that an experiment is made ready, which is drawn with the next beat: mostly it is over by then.
    pub fn preparing(&self, experiment: &str) {
        let Some(Drawn { shared, .. }) = &self.0 else { return };
        let mut state = shared.lock();
        if !matches!(&state.told, Some(Told::Preparing(same, _)) if same == experiment) {
            state.told = Some(Told::Preparing(experiment.into(), clock::now_ns()));
        }
    }

    /// Draws how far a run is.
    pub fn run(&self, progress: &Progress) {
        self.tell(|| Told::Run(Box::new(progress.clone())));
    }

    /// Draws how much is done, and what there is to say of it.
    pub fn draw(&self, share: f64, message: impl FnOnce() -> String) {
        if self.0.as_ref().is_some_and(|drawn| drawn.shared.screen != Screen::None) {
            self.tell(|| Told::Share(share, message()));
        }
    }

    /// Writes something else to standard error, above the line.
    pub fn above(&self, write: impl FnOnce()) {
        match &self.0 {
            None => write(),
            Some(Drawn { shared, .. }) => {
                let mut state = shared.lock();
                shared.clear(&mut state);
                write();
                shared.draw(&mut state);
            }
        }
    }

    fn tell(&self, told: impl FnOnce() -> Told) {
        let Some(Drawn { shared, .. }) = &self.0 else { return };
        let mut state = shared.lock();
        state.told = Some(told());
        shared.draw(&mut state);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let Some(Drawn { shared, beat }) = &mut self.0 else { return };
        let mut state = shared.lock();
        state.has_ended = true;
        shared.clear(&mut state);
        drop(state);
        shared.ends.notify_all();
        // It draws nothing any more; that it panicked is no reason to.
        let _ = beat.take().map(JoinHandle::join);
    }
}

impl Shared {
    /// Whoever panicked while it drew left a line, and nothing worse.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn beat(&self) {
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

    /// Draws what was told, as it stands now.
    fn draw(&self, state: &mut State) {
        let now_ns = clock::now_ns();
        if self.screen != Screen::Moving && now_ns.saturating_sub(state.drawn_ns) < self.beat_ns {
            return;
        }
        let width = width().saturating_sub(1);
        let line = match &state.told {
            None => String::new(),
            Some(Told::Preparing(..)) if self.screen == Screen::None => String::new(),
            Some(Told::Preparing(experiment, began_ns)) => {
                let elapsed = Duration::from_nanos(now_ns.saturating_sub(*began_ns));
                cut(&preparing(experiment, elapsed, self.alphabet), width, self.alphabet.ellipsis())
            }
            Some(Told::Run(progress)) if self.screen == Screen::None => {
                let said = if state.is_shown { None } else { expected(progress, progress.now.doing()) };
                said.unwrap_or_default()
            }
            Some(Told::Run(progress)) => {
                let later = Duration::from_nanos(now_ns.saturating_sub(progress.at_ns));
                of_run(progress, (progress.now.doing(), progress.now.remarked(), later), width, self.alphabet)
            }
            Some(Told::Share(share, message)) => {
                let line = format!("{} {}", bar(*share, self.alphabet), self.alphabet.of(message));
                cut(&line, width, self.alphabet.ellipsis())
            }
        };
        // What can't be said yet can be soon.
        let has_begun = matches!(&state.told, Some(Told::Run(progress)) if progress.trials > 0);
        let is_early = self.screen == Screen::None && line.is_empty() && !state.is_shown && !has_begun;
        state.drawn_ns = if is_early { now_ns.saturating_sub(self.beat_ns - BEAT_NS) } else { now_ns };
        if !line.is_empty() {
            state.is_shown = true;
            write(&if self.screen == Screen::Moving { format!("\r{line}\x1b[K") } else { format!("{line}\n") });
        }
    }

    /// Leaves the line empty, with the cursor at its beginning.
    fn clear(&self, state: &mut State) {
        if state.is_shown && self.screen == Screen::Moving {
            state.is_shown = false;
            write("\r\x1b[K");
        }
    }
}

/// In one go, so that nothing comes in between. Nothing can be done when standard error is closed.
fn write(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// The text in lines that fit on the terminal, where standard error is one.
fn fitted(text: &str) -> String {
    if io::stderr().is_terminal() { fitted_to(text, width()) } else { text.into() }
}

/// A line that fits stays as it is, with what it begins with.
fn fitted_to(text: &str, width: usize) -> String {
    let style = Style { width, ..Style::default() };
    let lines = text.lines().map(|line| match line.width() <= width {
        true => line.to_string(),
        false => style.paragraph(line).trim_end().to_string(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The columns of the terminal, as it is now.
fn width() -> usize {
    let columns = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    terminal::columns(io::stderr()).map(usize::from).or_else(columns).unwrap_or(80)
}

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
            self.line.above(|| note(&outlook::sentence(outlook)));
        }
    }

    fn preparing(&mut self, experiment: &str) {
        self.line.preparing(experiment);
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

/// Writes a line to standard error, with what could steer a terminal as escapes, in the characters that the locale has,
/// and broken between words where that is a terminal; nothing can be done when it is closed.
pub fn note(text: &str) {
    let text = fitted(&escape_controls_in_lines(text));
    let _ = writeln!(io::stderr(), "{}", Alphabet::of_environment().shown(&text));
}

#[cfg(test)]
mod tests {
    use super::fitted_to;

    #[test]
    fn notes_are_broken_between_words() {
        let note = "interrupted: `ascertain continue 5eed` goes on with it, and takes a few pairs more: the one that \
                    was cut off counts against either answer\n  as it is";
        let lines = "interrupted: `ascertain continue 5eed` goes on\nwith it, and takes a few pairs more: the one\n\
                     that was cut off counts against either answer\n  as it is";
        assert_eq!(fitted_to(note, 46), lines);
        assert_eq!(fitted_to("  as it is", 46), "  as it is");
    }
}
