//! Arranges the labels of vertical lines ([`Layer::Rule`](crate::Layer::Rule)) in rows above the plot. No label
//! overlaps another, and no line crosses a label. Lengths are in pixels (SVG) or in columns (text).

use std::cmp::Ordering;

use crate::names::shortened;
use crate::scene::Scene;
use crate::{Layer, Which};

/// The largest number of rows in which labels are arranged; the rows are above each other.
const MOST_ROWS: usize = 8;

/// The space above the plot in which the labels of vertical rules are arranged.
pub(crate) struct LabelSpace<'a> {
    /// The width of the whole picture.
    pub(crate) width: f64,
    /// The width of the label of the y axis, which takes the left end of the lowest row.
    pub(crate) taken: f64,
    /// The space between a rule and its label, and between labels.
    pub(crate) gap: f64,
    /// Returns the width of a text.
    pub(crate) measure: &'a dyn Fn(&str) -> f64,
}

/// A label whose row and position are decided.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The text, possibly shortened.
    pub(crate) text: String,
    /// The index of the row; 0 is the lowest.
    pub(crate) row: usize,
    /// Horizontal position of the left end of the text. The right end is at `to`.
    pub(crate) from: f64,
    to: f64,
    /// Horizontal position of the rule (the vertical line that is labelled); `None` if no line leads to the label.
    pub(crate) rule: Option<f64>,
}

impl Step {
    /// Returns whether two labels conflict: the gap between them is too small, or the rule of one crosses the other.
    fn hinders(&self, other: &Step, gap: f64) -> bool {
        let crosses = |rule: Option<f64>, row: usize, label: &Step| {
            row > label.row && rule.is_some_and(|x| label.from - gap / 2.0 < x && x < label.to + gap / 2.0)
        };
        let overlaps = self.row == other.row && self.from < other.to + gap && other.from < self.to + gap;
        overlaps || crosses(self.rule, self.row, other) || crosses(other.rule, other.row, self)
    }
}

/// The label of a vertical line ([`Layer::Rule`]) before it is placed. `is_drawn` is `false` if the line is outside the
/// plot, so that only its label is shown.
struct LabelRequest {
    x: f64,
    text: String,
    is_drawn: bool,
}

/// Arranges the labels of all vertical lines ([`Layer::Rule`]), and leaves out those without space. `x_of` converts a
/// position on the x axis, from 0 to 1, to pixels or columns. Also returns the number of rows used, including the
/// lowest row if it has the label of the y axis.
pub(crate) fn arranged(scene: &Scene, x_of: impl Fn(f64) -> f64, space: &LabelSpace) -> (Vec<Step>, usize) {
    let mut wanted: Vec<LabelRequest> = Vec::new();
    for layer in &scene.plot.layers {
        let Layer::Rule { on: Which::X, at, label } = layer else { continue };
        let (Some(side), Some(share)) = (scene.x.side(*at), scene.x.share(*at)) else { continue };
        let text = match side {
            Ordering::Less => format!("← {label}"),
            Ordering::Equal => label.clone(),
            Ordering::Greater => format!("{label} →"),
        };
        if !label.is_empty() {
            wanted.push(LabelRequest { x: x_of(share), text, is_drawn: side == Ordering::Equal });
        }
    }
    // Two arrangements are tried. In one, labels are to the right of their rules and are placed from the last rule to
    // the first. In the other, they are to the left and placed from the first rule to the last. Rules outside the plot
    // come last.
    wanted.sort_by(|a, b| b.is_drawn.cmp(&a.is_drawn).then(b.x.total_cmp(&a.x)));
    let to_the_right = stairs(&wanted, space, false);
    wanted.sort_by(|a, b| b.is_drawn.cmp(&a.is_drawn).then(a.x.total_cmp(&b.x)));
    let to_the_left = stairs(&wanted, space, true);
    let is_worse = (to_the_right.0.len(), to_the_left.1) < (to_the_left.0.len(), to_the_right.1);
    if is_worse { to_the_left } else { to_the_right }
}

/// Puts each label into the lowest row in which it does not conflict with the labels placed before it. With
/// `prefers_left`, labels are to the left of their lines if they fit there, otherwise to the right. Also returns the
/// number of rows used.
fn stairs(wanted: &[LabelRequest], space: &LabelSpace, prefers_left: bool) -> (Vec<Step>, usize) {
    let mut steps: Vec<Step> = Vec::new();
    let taken = Step { text: String::new(), row: 0, from: 0.0, to: space.taken, rule: None };
    for LabelRequest { x, text, is_drawn } in wanted {
        let (right, left) = (space.width - x - 2.0 * space.gap, x - 2.0 * space.gap);
        let text = shortened(text, right.max(left), space.measure);
        let length = (space.measure)(&text);
        let is_left = if prefers_left { length <= left } else { length > right };
        let from = if is_left { x - space.gap - length } else { x + space.gap };
        let step = |row: usize| Step { text: text.clone(), row, from, to: from + length, rule: is_drawn.then_some(*x) };
        let is_free = |step: &Step| {
            let hinders = |other: &Step| step.hinders(other, space.gap);
            let is_taken = space.taken > 0.0 && hinders(&taken);
            !is_taken && !steps.iter().any(hinders)
        };
        // If no row has space beside the line, the label is put after the label of the y axis, without a connection to
        // its line.
        let after = |row: usize| Step {
            from: space.taken + space.gap,
            to: space.taken + space.gap + length,
            rule: None,
            ..step(row)
        };
        let has_room = space.taken + 2.0 * space.gap + length <= space.width;
        let places = (0..MOST_ROWS).map(step).chain((0..MOST_ROWS).filter(|_| has_room).map(after));
        steps.extend(places.into_iter().find(is_free));
    }
    let rows = steps.iter().map(|step| step.row + 1).max().unwrap_or(0);
    (steps, rows.max(usize::from(space.taken > 0.0)))
}
