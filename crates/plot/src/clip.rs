//! Outliers: a few marks far from all others. If an axis showed them, the other marks would be squeezed together.

use crate::{Axis, Layer, Scale, label, scale};

/// The range of an axis without the outliers, which are drawn at its edge.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Clip {
    low: f64,
    high: f64,
    /// Labelled lines ([`Layer::Rule`]), one for each end of the range with outliers beyond it. The label gives the
    /// number of these outliers and the value of the farthest one.
    pub(crate) rules: Vec<Layer>,
}

/// A plot with fewer marks than this has no outliers.
const LEAST_MARKS: usize = 20;
/// Smallest distance of an outlier from the range of the middle 80 % of the marks. The unit of the distance is the
/// length of that range.
const APART: f64 = 3.0;
/// Largest amount by which outliers at one end may lengthen the axis. If they would lengthen it more, they are drawn at
/// its edge instead. The unit is the length of the axis without outliers.
const TOO_LONG: f64 = 2.0;

impl Clip {
    /// Finds the outliers on a numeric y axis. `None` if there are none, or if the axis can show them and still
    /// distinguish the other marks. Hollow dots, such as times that were stopped at a limit, are never outliers.
    pub(crate) fn find(axis: &Axis, layers: &[Layer]) -> Option<Clip> {
        if matches!(axis.scale, Scale::Names(_) | Scale::Logit) || axis.in_percent {
            return None;
        }
        let points = layers.iter().filter_map(|layer| match layer {
            Layer::Line { points, .. } | Layer::Dots { points, hollow: false, .. } => Some(points),
            _ => None,
        });
        let place = |point: &[f64; 2]| scale::place(&axis.scale, point[1]).map(|place| (place, point[1]));
        let mut marks: Vec<(f64, f64)> = points.flatten().filter_map(place).collect();
        if marks.len() < LEAST_MARKS {
            return None;
        }
        let by_place = |a: &(f64, f64), b: &(f64, f64)| a.0.total_cmp(&b.0);
        let last = marks.len() - 1;
        let [tenth, ninetieth] =
            [last / 10, last - last / 10].map(|rank| marks.select_nth_unstable_by(rank, by_place).1.0);
        let reach = APART * (ninetieth - tenth);
        let is_inside = |(place, _): &&(f64, f64)| (tenth - reach..=ninetieth + reach).contains(place);
        let inside = || marks.iter().filter(is_inside);
        let (low, high) = (inside().copied().min_by(by_place)?, inside().copied().max_by(by_place)?);
        let most = TOO_LONG * (high.0 - low.0);
        let (least, greatest) = (marks.iter().copied().min_by(by_place)?, marks.iter().copied().max_by(by_place)?);
        let (is_below, is_above) = (low.0 - least.0 > most, greatest.0 - high.0 > most);
        if high.0 <= low.0 || !(is_below || is_above) {
            return None;
        }
        let rule = |count: usize, word: &str, furthest: f64| {
            let label = format!("{count} {word}, to {}", label::own(furthest, axis.unit));
            Layer::Rule { on: crate::Which::Y, at: furthest, label }
        };
        let mut rules = Vec::new();
        if is_below {
            rules.push(rule(marks.iter().filter(|mark| mark.0 < low.0).count(), "lower", least.1));
        }
        if is_above {
            rules.push(rule(marks.iter().filter(|mark| mark.0 > high.0).count(), "higher", greatest.1));
        }
        let [low, high] =
            [if is_below { low.1 } else { f64::NEG_INFINITY }, if is_above { high.1 } else { f64::INFINITY }];
        Some(Clip { low, high, rules })
    }

    /// Returns whether a number is within the range that is shown.
    pub(crate) fn has(&self, number: f64) -> bool {
        (self.low..=self.high).contains(&number)
    }
}
