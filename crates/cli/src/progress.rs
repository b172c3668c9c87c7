//! Progress: one line on standard error, and only when that is a terminal.

use std::io::IsTerminal;

use ascertain_engine::run::{Observer, Progress};
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

    /// Draws how much is done, and what there is to say of it.
    pub fn draw(&self, share: f64, message: impl FnOnce() -> String) {
        let Some(bar) = &self.bar else { return };
        bar.set_position((share * 1000.0) as u64);
        bar.set_message(message());
    }
}

impl Observer for Line {
    fn progress(&mut self, progress: &Progress) {
        let share = progress.elapsed.as_secs_f64() / progress.max_time.as_secs_f64();
        let claims = match progress.claims {
            0 | 1 => String::new(),
            all => format!(" · {} of {all} decided", progress.claims_closed),
        };
        let seconds = progress.elapsed.as_secs();
        self.draw(share, || format!("{seconds} s{claims} · {}", progress.headline));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
