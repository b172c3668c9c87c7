//! Small drawings for a claim: its interval relative to the claimed value, and a square for each trial.

use std::fmt::Write;

use ascertain_engine::claim::Judging;
use ascertain_engine::outcome::{ClaimResult, Verdict};

use super::markup::Html;
use crate::amount::size_cells;
use crate::clause::{ArmComparison, failures, joined};
use crate::figure::{Estimate, exact_percent};
use crate::standing::{range_claimed, standing};
use crate::text::grouped;

/// The axis that all claims of a page share. It is logarithmic and shows the measured value divided by the claimed one.
/// The claimed value of each claim is therefore at 1, in the middle.
#[derive(Clone, Copy)]
pub(super) struct SharedAxis {
    /// The number at the right end of the axis; the number at the left end is its inverse, and 1 is in the middle.
    span: f64,
    /// `true` if all claims are comparisons. The middle of the axis then means that both arms are equal.
    is_order: bool,
}

const WIDTH: f64 = 220.0;
const MIDDLE: f64 = WIDTH / 2.0;
/// The distance from the middle of the axis to each of its ends, in units of the SVG.
const REACH: f64 = 104.0;

impl SharedAxis {
    /// Creates an axis that is wide enough for these claims and not wider, so that small differences stay visible.
    pub fn new<'a>(claims: impl IntoIterator<Item = &'a ClaimResult>) -> SharedAxis {
        const SPANS: [f64; 5] = [1.1, 1.25, 2.0, 5.0, 10.0];
        let (mut most, mut is_order) = (0.0_f64, true);
        for claim in claims {
            is_order &= claim.asked.judging == Judging::Order;
            let places = standing(claim).into_iter().flat_map(|standing| [standing.value, standing.low, standing.high]);
            most = places.map(|place| place.ln().abs()).filter(|far| far.is_finite()).fold(most, f64::max);
        }
        let span = SPANS.into_iter().find(|span| most <= span.ln()).unwrap_or(10.0);
        SharedAxis { span, is_order }
    }

    fn x(self, value: f64) -> f64 {
        MIDDLE + REACH * (value.ln() / self.span.ln())
    }

    /// Draws the axis, to be shown above the rows of claims.
    pub fn drawn(self) -> Html {
        let [low, high] = [1.0 / self.span, self.span].map(|end| format!("{}×", (end * 100.0).round() / 100.0));
        let middle = self.middle();
        let [left, right] = [MIDDLE - REACH, MIDDLE + REACH];
        Html(format!(
            "<svg class=\"scale\" viewBox=\"0 0 {WIDTH} 24\"><text x=\"{left}\" y=\"10\">{low}</text>\
             <text x=\"{MIDDLE}\" y=\"10\" text-anchor=\"middle\">{middle}</text>\
             <text x=\"{right}\" y=\"10\" text-anchor=\"end\">{high}</text>\
             <path d=\"M{left} 16v8M{MIDDLE} 14v10M{right} 16v8M{left} 20H{right}\"/></svg>"
        ))
    }

    /// Returns the label of the middle of the axis.
    fn middle(self) -> &'static str {
        if self.is_order { "equal" } else { "as claimed" }
    }

    /// Draws a claim on the axis: a shape for its verdict, and a line for its interval, with an arrow if the line is
    /// longer than the axis. Returns words instead if the claim has no ratio and no rate.
    pub fn mark(self, claim: &ClaimResult) -> Html {
        let standing = match (claim.verdict, standing(claim)) {
            (Verdict::Unavailable | Verdict::Failed | Verdict::Deferred, _) => return words("not measured"),
            (_, None) if claim.asked.judging == Judging::Exact => return words("exact: checked once"),
            (_, None) => return words("no ratio and no rate"),
            (_, Some(standing)) => standing,
        };
        let Estimate { value, low, high } = standing;
        // Zero and infinite ends are beyond the axis; NaN has no position.
        let place = |number: f64| Some(number).filter(|number| !number.is_nan()).map(|number| self.x(number.max(0.0)));
        let (Some(at), Some(from), Some(to)) = (place(value), place(low), place(high)) else {
            return words("no ratio");
        };
        let [left, right] = [MIDDLE - REACH, MIDDLE + REACH];
        let inside = |x: f64| x.clamp(left, right);
        let band = range_claimed(claim).map(|end| inside(self.x(end)) - MIDDLE);
        let band = band.map(|width| format!("<path class=\"band\" d=\"M{MIDDLE} 0h{width:.1}v20H{MIDDLE}\"/>"));
        let mut drawing = band.unwrap_or_default();
        let mut line = format!("M{:.1} 10H{:.1}", inside(from), inside(to));
        if from < left {
            let _ = write!(line, "M{} 6l-4 4 4 4", left);
        }
        if to > right {
            let _ = write!(line, "M{} 6l4 4-4 4", right);
        }
        let _ = write!(drawing, "<path d=\"{line}\"/>");
        let x = inside(at);
        let _ = match claim.verdict {
            Verdict::Holds => write!(drawing, "<circle cx=\"{x:.1}\" cy=\"10\" r=\"4.5\"/>"),
            Verdict::Refuted => write!(drawing, "<rect x=\"{:.1}\" y=\"6\" width=\"8\" height=\"8\"/>", x - 4.0),
            _ => write!(drawing, "<circle class=\"open\" cx=\"{x:.1}\" cy=\"10\" r=\"4\"/>"),
        };
        let label = match ArmComparison::new(claim).filter(|_| self.is_order) {
            Some(comparison) => format!("{} (vs. reference)", joined(&size_cells(claim, comparison.measure))),
            None => format!("{} times what was claimed", standing.ratio()),
        };
        Html(format!(
            "<svg class=\"mini\" viewBox=\"0 0 {WIDTH} 20\" role=\"img\" aria-label=\"{label}\">{drawing}</svg>"
        ))
    }
}

fn words(text: &str) -> Html {
    Html(format!("<span class=\"na\">{text}</span>"))
}

/// Draws a square for each trial, and a legend. `None` if no trial was judged, or if the claim is exact, because its
/// value is then the same in all trials.
pub(super) fn squares(claim: &ClaimResult) -> Option<(Html, Html)> {
    const A_ROW: u64 = 40;
    const MOST_SQUARES: u64 = 400;
    if claim.trials == 0 || claim.asked.judging == Judging::Exact {
        return None;
    }
    let each = claim.trials.div_ceil(MOST_SQUARES);
    let missed = failures(claim.judged());
    let mut drawing = String::new();
    let mut begin = 0;
    for (class, count) in [("holds", claim.successes), ("refuted", missed), ("undecided", claim.ties + claim.unknown)] {
        // Each kind of outcome that occurred gets at least one square.
        let squares = if each == 1 {
            count
        } else {
            (count as f64 / each as f64).round().max(f64::from(u8::from(count > 0))) as u64
        };
        let end = begin + squares;
        let mut data = String::new();
        while begin < end {
            let (row, column) = (begin / A_ROW, begin % A_ROW);
            let here = (A_ROW - column).min(end - begin);
            // The squares of a row are one line, whose dashes are the squares.
            let _ = write!(data, "M{} {}h{}", column * 13, row * 13 + 6, here * 13);
            begin += here;
        }
        if !data.is_empty() {
            let _ = write!(drawing, "<path class=\"{class}\" d=\"{data}\"/>");
        }
    }
    let rows = begin.div_ceil(A_ROW);
    let (width, height) = (begin.min(A_ROW) * 13, rows * 13);
    let svg = format!(
        "<svg class=\"squares\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         aria-hidden=\"true\">{drawing}</svg>"
    );
    let said = |class: &str, count: u64, words: &str| format!("<b class=\"{class}\">{}</b> {words}", grouped(count));
    let a_square =
        if each == 1 { "Each square is a trial".to_string() } else { format!("Each square is {each} trials") };
    let is_order = claim.asked.judging == Judging::Order;
    let [yes, no] = if is_order { ["won", "lost"] } else { ["as claimed", "not as claimed"] };
    let mut parts = vec![said("holds", claim.successes, yes), said("refuted", missed, no)];
    let neither = [(claim.ties, if claim.ties == 1 { "tie" } else { "ties" }), (claim.unknown, "left open")];
    let neither = neither.into_iter().filter(|(count, _)| *count > 0);
    parts.extend(neither.map(|(count, words)| said("undecided", count, words)));
    let least = match is_order {
        true => String::new(),
        false => format!(" The claim needs at least {}.", Html::sentence(&exact_percent(claim.rate_claimed))),
    };
    Some((Html(svg), Html(format!("{a_square}: {}.{least}", parts.join(", ")))))
}
