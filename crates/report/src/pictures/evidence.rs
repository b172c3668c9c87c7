//! The path of the evidence to its threshold.

use ascertain_engine::claim::Judging;
use ascertain_engine::outcome::ClaimResult;
use ascertain_engine::recorded::{ClaimPath, EvidencePoint};
use ascertain_engine::unit::Unit;

use super::claim::{directions, said};
use super::{Picture, PictureKind, Table, names};
use crate::plot::{Axis, Layer, Plot, Scale, Which};

/// The evidence in both directions after each trial, in powers of ten, from the even odds that it starts with.
/// Nothing where none grows.
pub(super) fn evidence(claim: &ClaimResult, path: &ClaimPath, id: String) -> Option<Picture> {
    let last = path.evidence.last()?;
    let (words, statements) = (directions(claim), statements(claim));
    let holds = line(path, |point| point.log_e_holds);
    let refuted = line(path, |point| point.log_e_refuted);
    let thresholds = [path.log_threshold_holds, path.log_threshold_refuted].map(powers_of_ten);
    let mut layers: Vec<Layer> = match thresholds {
        [one, other] if one == other => vec![rule(one, "enough to decide".into())],
        both => both.iter().zip(words).map(|(at, word)| rule(*at, format!("enough for {word}"))).collect(),
    };
    let decided = decided(path);
    for (index, points) in [&refuted, &holds].into_iter().enumerate() {
        let series = Some(1 - index);
        layers.push(Layer::Line { series, points: points.clone(), steps: false, dashed: false });
    }
    if let Some((point, direction)) = decided {
        let log_e = [point.log_e_holds, point.log_e_refuted][direction];
        let points = vec![[point.counted as f64, powers_of_ten(log_e)]];
        layers.push(Layer::Dots { series: Some(direction), points, hollow: false });
        let label = format!("{} after {}", words[direction], names::counted(point.counted as usize, "trial"));
        layers.push(Layer::Rule { on: Which::X, at: point.counted as f64, label });
    }
    let ends = [last.log_e_holds, last.log_e_refuted].map(powers_of_ten);
    let verdict = match decided {
        Some((point, direction)) => format!("It was enough for {} after {}.", words[direction], point.counted),
        None => "That is not enough to decide.".into(),
    };
    let plot = Plot {
        id,
        title: "The path of the evidence to its threshold".into(),
        alt: format!(
            "{}: after {} the evidence {} is 10^{:.2}, and {} 10^{:.2}. {verdict}",
            said(claim),
            names::counted(last.counted as usize, "trial"),
            statements[0],
            ends[0],
            statements[1],
            ends[1]
        ),
        x: Axis::new("trials judged", Scale::Linear, Unit::One),
        y: Axis::new("evidence in powers of ten", Scale::Linear, Unit::One)
            .showing(0.0, thresholds[0].max(thresholds[1])),
        series: statements.map(String::from).into(),
        layers,
    };
    let mut table = Table::new(&["Evidence", "After the last trial", "At most", "Enough"]);
    for (((statement, end), line), enough) in statements.iter().zip(ends).zip([&holds, &refuted]).zip(thresholds) {
        let most = line.iter().fold(0.0, |most: f64, point| most.max(point[1]));
        let power = |exponent: f64| format!("10^{exponent:.2}");
        table.rows.push(vec![statement.to_string(), power(end), power(most), power(enough)]);
    }
    Some(Picture { kind: PictureKind::Evidence, plot, table })
}

/// What either line is evidence of.
pub(crate) fn statements(claim: &ClaimResult) -> [&'static str; 2] {
    if claim.asked.judging == Judging::Order {
        ["that it is faster", "that it is slower"]
    } else {
        ["that it holds", "that it does not"]
    }
}

/// What decided: the evidence after the trial at which the verdict fell, and the direction's index.
fn decided(path: &ClaimPath) -> Option<(EvidencePoint, usize)> {
    let decided_after = path.decided_after?;
    let point = *path.evidence.iter().find(|point| point.counted >= decided_after)?;
    let is_for = point.log_e_holds - path.log_threshold_holds >= point.log_e_refuted - path.log_threshold_refuted;
    Some((point, usize::from(!is_for)))
}

fn line(path: &ClaimPath, log_e: impl Fn(&EvidencePoint) -> f64) -> Vec<[f64; 2]> {
    let points = path.evidence.iter().map(|point| [point.counted as f64, powers_of_ten(log_e(point))]);
    [[0.0, 0.0]].into_iter().chain(points).collect()
}

fn powers_of_ten(log_e: f64) -> f64 {
    log_e / std::f64::consts::LN_10
}

fn rule(at: f64, label: String) -> Layer {
    Layer::Rule { on: Which::Y, at, label }
}
