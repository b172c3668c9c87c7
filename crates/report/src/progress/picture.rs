//! The picture of a long measurement, which is redrawn as windows end.

use ascertain_engine::claim::Test;
use ascertain_engine::plan::Plan;
use ascertain_engine::unit::Unit;
use ascertain_engine::windows::WindowSummary;

use super::line::{Line, note, write};
use crate::windows::window_line;

/// Height of the picture, in lines.
#[cfg(feature = "html")]
const LINES: usize = 14;

/// A picture of the percentiles by window, on standard error. On a terminal whose cursor can be moved, the picture is
/// redrawn in place. Otherwise each window has a line.
#[derive(Debug, Default)]
pub struct LivePicture {
    /// Number of lines of the picture that is on the screen; 0 if there is none, or if other text is below it.
    lines: usize,
}

impl LivePicture {
    /// Leaves the present picture where it is, because other text follows it.
    pub(super) fn stays(&mut self) {
        self.lines = 0;
    }

    /// Shows the windows so far, of which the last one has just ended.
    pub(super) fn show(&mut self, plan: &Plan, windows: &[WindowSummary], line: &Line) {
        let Some(last) = windows.last() else { return };
        let (metric, unit) = metric_of(plan);
        match picture(windows, unit, &metric).filter(|_| line.is_overwritten()) {
            None => {
                let limit = plan.commands.first().and_then(|set| set.time_limit).filter(|_| metric == "wall");
                let limit = limit.map(|limit| limit.as_nanos() as f64);
                line.above(|| note(&window_line(last, unit, limit)));
            }
            Some(picture) => {
                let above = if self.lines > 0 { format!("\x1b[{}A", self.lines) } else { String::new() };
                let lines: String = picture.lines().map(|line| format!("{line}\x1b[K\n")).collect();
                self.lines = picture.lines().count();
                line.above(|| write(&format!("{above}{lines}")));
            }
        }
    }
}

/// Returns the metric whose percentiles the windows have, with its unit.
fn metric_of(plan: &Plan) -> (String, Unit) {
    let success = plan.windows.as_ref().map(|windows| &windows.success);
    let conditions = match success {
        Some(Test::Predicate { conditions, .. }) => conditions.as_slice(),
        _ => &[],
    };
    let compared = conditions.iter().map(|condition| &condition.measure).find(|measure| measure.metric != "exit");
    let first = || plan.commands.first().and_then(|set| set.metrics().into_iter().next());
    let of_set = || first().map_or((String::new(), Unit::Nanosecond), |metric| (metric.name, metric.unit));
    compared.map_or_else(of_set, |measure| (measure.metric.clone(), measure.unit))
}

#[cfg(feature = "html")]
fn picture(windows: &[WindowSummary], unit: Unit, metric: &str) -> Option<String> {
    let plot = crate::pictures::percentiles(windows, unit, metric)?;
    // A line as wide as the terminal would make some terminals begin a further line.
    let width = super::line::width().saturating_sub(1);
    let text = crate::plot::text::render(&plot, width, LINES, false);
    Some(crate::alphabet::Alphabet::from_environment().shown(&text).into_owned())
}

#[cfg(not(feature = "html"))]
fn picture(_: &[WindowSummary], _: Unit, _: &str) -> Option<String> {
    None
}
