//! Progress: one line on standard error, and only when that is a terminal.

use std::io::IsTerminal;

use ascertain::run::{Observer, Progress};
use indicatif::{ProgressBar, ProgressStyle};

/// Draws how far a run is.
pub struct Line {
    bar: Option<ProgressBar>,
}

impl Line {
    /// A line, unless nobody would see it.
    pub fn new(quiet: bool) -> Line {
        let seen = !quiet && std::io::stderr().is_terminal();
        let bar = seen.then(|| {
            let bar = ProgressBar::new(1000);
            let style = ProgressStyle::with_template("{bar:20} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style);
            bar
        });
        Line { bar }
    }
}

impl Observer for Line {
    fn progress(&mut self, progress: &Progress) {
        let Some(bar) = &self.bar else { return };
        let share = progress.elapsed.as_secs_f64() / progress.max_time.as_secs_f64();
        bar.set_position((share * 1000.0) as u64);
        let claims = match progress.claims {
            0 | 1 => String::new(),
            all => format!(" · {} of {all} decided", progress.claims_closed),
        };
        let seconds = progress.elapsed.as_secs();
        bar.set_message(format!("{seconds} s{claims} · {}", progress.headline));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
