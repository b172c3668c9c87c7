//! Where the labels of vertical rules stand: in rows above the frame. Those of level rules are in the legend, where
//! they hide no mark.

use super::layout::{Frame, LINE, text_width};
use crate::scene::Scene;
use crate::stairs;

/// A label of a rule.
pub(super) struct RuleLabel {
    /// What is written, possibly shortened; the whole is in the rule's title.
    pub(super) text: String,
    /// The left end of its baseline.
    pub(super) x: f64,
    pub(super) y: f64,
    /// The vertical rule that it belongs to, drawn up to the label.
    pub(super) rule_x: Option<f64>,
}

/// The labels of vertical rules, their y counted from the frame's top, and how many rows there are. Row 0 is the
/// lowest; its first `taken` pixels are the y axis's.
pub(super) fn above(scene: &Scene, frame: &Frame, width: f64, taken: f64) -> (Vec<RuleLabel>, usize) {
    let room = stairs::LabelSpace { width, taken, gap: 4.0, measure: &text_width };
    let (steps, rows) = stairs::arranged(scene, |share| frame.x(share), &room);
    let label = |step: stairs::Step| RuleLabel {
        text: step.text,
        x: step.from,
        y: -10.0 - step.row as f64 * LINE,
        rule_x: step.rule,
    };
    (steps.into_iter().map(label).collect(), rows)
}
