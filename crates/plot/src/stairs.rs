//! The labels of vertical rules in rows above the plot, so that no label overlaps another and no rule is drawn
//! through a label. Measures are pixels or columns.

use std::cmp::Ordering;

use crate::names::shortened;
use crate::scene::Scene;
use crate::{Layer, Which};

/// The most rows of labels.
const MOST_ROWS: usize = 8;

/// The space that labels of rules have.
pub(crate) struct LabelSpace<'a> {
    /// The width of the picture.
    pub(crate) width: f64,
    /// So much of the lowest row is taken from the left.
    pub(crate) taken: f64,
    /// The space between a rule and its label, and between labels.
    pub(crate) gap: f64,
    /// How wide a text is.
    pub(crate) measure: &'a dyn Fn(&str) -> f64,
}

/// A label in its row.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// What is written, possibly shortened.
    pub(crate) text: String,
    /// Its row, the lowest is 0.
    pub(crate) row: usize,
    /// Where the text begins and ends.
    pub(crate) from: f64,
    to: f64,
    /// Where its rule is, unless that is out of sight.
    pub(crate) rule: Option<f64>,
}

impl Step {
    /// Whether the two are in each other's way: side by side without space, or a rule drawn through a label.
    fn hinders(&self, other: &Step, gap: f64) -> bool {
        let crosses = |rule: Option<f64>, row: usize, label: &Step| {
            row > label.row && rule.is_some_and(|x| label.from - gap / 2.0 < x && x < label.to + gap / 2.0)
        };
        let overlaps = self.row == other.row && self.from < other.to + gap && other.from < self.to + gap;
        overlaps || crosses(self.rule, self.row, other) || crosses(other.rule, other.row, self)
    }
}

/// A vertical rule whose label wants a place.
struct Wanted {
    x: f64,
    text: String,
    is_drawn: bool,
}

/// The labels of all vertical rules, and how many rows they and what is taken need. A label without a place is
/// left out.
pub(crate) fn arranged(scene: &Scene, x_of: impl Fn(f64) -> f64, space: &LabelSpace) -> (Vec<Step>, usize) {
    let mut wanted: Vec<Wanted> = Vec::new();
    for layer in &scene.plot.layers {
        let Layer::Rule { on: Which::X, at, label } = layer else { continue };
        let (Some(side), Some(share)) = (scene.x.side(*at), scene.x.share(*at)) else { continue };
        let text = match side {
            Ordering::Less => format!("← {label}"),
            Ordering::Equal => label.clone(),
            Ordering::Greater => format!("{label} →"),
        };
        if !label.is_empty() {
            wanted.push(Wanted { x: x_of(share), text, is_drawn: side == Ordering::Equal });
        }
    }
    // Each to the right of its rule, from the last to the first, or each to the left from the first to the last:
    // both make stairs. What is out of sight has no rule to be at, and comes last.
    wanted.sort_by(|a, b| b.is_drawn.cmp(&a.is_drawn).then(b.x.total_cmp(&a.x)));
    let to_the_right = stairs(&wanted, space, false);
    wanted.sort_by(|a, b| b.is_drawn.cmp(&a.is_drawn).then(a.x.total_cmp(&b.x)));
    let to_the_left = stairs(&wanted, space, true);
    let is_worse = (to_the_right.0.len(), to_the_left.1) < (to_the_left.0.len(), to_the_right.1);
    if is_worse { to_the_left } else { to_the_right }
}

/// Each label in the lowest row where it hinders none before it.
fn stairs(wanted: &[Wanted], space: &LabelSpace, prefers_left: bool) -> (Vec<Step>, usize) {
    let mut steps: Vec<Step> = Vec::new();
    let taken = Step { text: String::new(), row: 0, from: 0.0, to: space.taken, rule: None };
    for Wanted { x, text, is_drawn } in wanted {
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
        // A rule that what is taken stands in the way of has its label after that, without a line up to it.
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
