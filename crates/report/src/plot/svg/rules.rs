//! Where the labels of rules stand: those of vertical rules in rows above the frame, those of level ones within,
//! where there are fewest marks.

use std::cmp::Ordering;

use super::super::scene::Scene;
use super::super::{Layer, Which, stairs};
use super::layout::{Frame, LINE, TEXT, fitting, marked_places, text_width};

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
    let room = stairs::Room { width, taken, gap: 4.0, measure: &text_width };
    let (steps, rows) = stairs::arranged(scene, |share| frame.x(share), &room);
    let label = |step: stairs::Step| RuleLabel {
        text: step.text,
        x: step.from,
        y: -10.0 - step.row as f64 * LINE,
        rule_x: step.rule,
    };
    (steps.into_iter().map(label).collect(), rows)
}

/// The labels of level rules, in the frame.
pub(super) fn beside(scene: &Scene, frame: &Frame) -> Vec<RuleLabel> {
    let marks = marked_places(scene, frame);
    let lines = rule_lines(scene, frame);
    let most = (frame.right - frame.left - 12.0).max(0.0);
    let mut placed: Vec<[f64; 4]> = Vec::new();
    let mut labels = Vec::new();
    for layer in &scene.plot.layers {
        let Layer::Rule { on: Which::Y, at, label } = layer else { continue };
        let (Some(side), Some(share)) = (scene.y.side(*at), scene.y.share(*at)) else { continue };
        if label.is_empty() {
            continue;
        }
        let text = match side {
            Ordering::Less => format!("↓ {label}"),
            Ordering::Equal => label.clone(),
            Ordering::Greater => format!("↑ {label}"),
        };
        let text = fitting(&text, most);
        let (line, length) = (frame.y(share), text_width(&text));
        let lefts = (0..6).map(|step| frame.right - 6.0 - length - (most - length) * f64::from(step) / 5.0);
        // Just above the rule, then below it, then ever further off.
        let heights = [line - 5.0, line + 13.0, line - 20.0, line + 28.0, line - 35.0, line + 43.0];
        let areas = heights
            .iter()
            .enumerate()
            .flat_map(|(rank, y)| lefts.clone().map(move |x| (rank, [x, y - TEXT, x + length, y + 3.0])));
        let is_free = |area: &[f64; 4]| {
            area[1] >= frame.top && area[3] <= frame.bottom && placed.iter().all(|other| !overlap(area, other))
        };
        let cost = |(rank, area): &(usize, [f64; 4])| {
            let inside = |p: &&[f64; 2]| (area[0]..area[2]).contains(&p[0]) && (area[1]..area[3]).contains(&p[1]);
            let crossed = lines.iter().filter(|other| overlap(area, other)).count();
            marks.iter().filter(inside).count() + 40 * crossed + 15 * (rank / 2)
        };
        if let Some((_, area)) = areas.filter(|(_, area)| is_free(area)).min_by_key(cost) {
            placed.push(area);
            labels.push(RuleLabel { text, x: area[0], y: area[3] - 3.0, rule_x: None });
        }
    }
    labels
}

/// The lines of all rules in sight, as areas.
fn rule_lines(scene: &Scene, frame: &Frame) -> Vec<[f64; 4]> {
    let line = |layer: &Layer| match layer {
        Layer::Rule { on: Which::X, at, .. } => {
            let x = frame.x(scene.x.share(*at)?);
            Some([x - 1.0, frame.top, x + 1.0, frame.bottom])
        }
        Layer::Rule { on: Which::Y, at, .. } => {
            let y = frame.y(scene.y.share(*at)?);
            Some([frame.left, y - 1.0, frame.right, y + 1.0])
        }
        _ => None,
    };
    scene.plot.layers.iter().filter_map(line).collect()
}

fn overlap(a: &[f64; 4], b: &[f64; 4]) -> bool {
    a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3]
}
