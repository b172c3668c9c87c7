//! The numbers that trials are held against, as rules.

use ascertain_engine::claim::{Bound, Judging, Scale};
use ascertain_engine::experiment::Metric;
use ascertain_engine::outcome::{AskedTest, ClaimResult, Measure};
use ascertain_engine::predicate::Predicate;
use ascertain_engine::unit::Unit;

use crate::plot::{Layer, Which};

/// A comparison of two arms, as a claim asks it.
#[derive(Clone, Copy)]
pub(super) struct Versus<'a> {
    pub measure: &'a Measure,
    pub scale: Scale,
    pub bound: Bound,
}

impl<'a> Versus<'a> {
    /// The first comparison of a claim: the one whose ratios or differences are recorded.
    pub fn of(claim: &'a ClaimResult) -> Option<Versus<'a>> {
        claim.asked.tests.iter().find_map(|test| match test {
            AskedTest::Versus { measure, scale, bound, .. } => Some(Versus { measure, scale: *scale, bound: *bound }),
            AskedTest::Predicate { .. } => None,
        })
    }

    /// What its numbers are in.
    pub fn unit(self) -> Unit {
        match self.scale {
            Scale::Ratio => Unit::One,
            Scale::Difference => self.measure.unit,
        }
    }

    /// The rules of its bound: for an order the one where both do equally well, or those of its margin.
    pub fn rules(self, claim: &ClaimResult, on: Which) -> Vec<Layer> {
        let rule = |at: f64, label: String| Layer::Rule { on, at, label };
        let write = |number: f64| self.unit().exact(number);
        match (claim.asked.judging, claim.asked.margin, self.bound) {
            (Judging::Order, None, _) => vec![rule(1.0, "equal".into())],
            (Judging::Order, Some(margin), _) => {
                vec![rule(1.0 / (1.0 + margin), "slower below".into()), rule(1.0 + margin, "faster above".into())]
            }
            (_, _, Bound::AtLeast(low)) => vec![rule(low, format!("claimed: at least {}", write(low)))],
            (_, _, Bound::AtMost(high)) => vec![rule(high, format!("claimed: at most {}", write(high)))],
            (_, _, Bound::Within(low, high)) => {
                vec![
                    rule(low, format!("claimed: from {}", write(low))),
                    rule(high, format!("claimed: to {}", write(high))),
                ]
            }
        }
    }

    /// What trials that keep to the bound are called, and what others are.
    pub fn sides(self, claim: &ClaimResult) -> [String; 2] {
        let write = |number: f64| self.unit().exact(number);
        match (claim.asked.judging, self.bound) {
            _ if claim.asked.tests.len() > 1 => ["all conditions true".into(), "not all true".into()],
            (Judging::Order, _) => ["faster".into(), "slower".into()],
            (_, Bound::AtLeast(low)) => [format!("at least {}", write(low)), format!("below {}", write(low))],
            (_, Bound::AtMost(high)) => [format!("at most {}", write(high)), format!("above {}", write(high))],
            (_, Bound::Within(low, high)) => [format!("from {} to {}", write(low), write(high)), "outside".to_string()],
        }
    }
}

/// The rules of what a predicate asks of a metric: none where it can't be read with these metrics.
pub(super) fn of_predicate(predicate: &str, measure: &Measure, metrics: &[Metric]) -> Vec<Layer> {
    let Ok(Predicate(comparisons)) = Predicate::parse(predicate, metrics) else { return Vec::new() };
    let of_metric = comparisons.into_iter().filter(|comparison| metrics[comparison.metric].name == measure.metric);
    let rules = of_metric.map(|comparison| {
        let label = format!("{} {}", comparison.relation, measure.unit.exact(comparison.bound));
        Layer::Rule { on: Which::Y, at: comparison.bound, label }
    });
    rules.collect()
}

/// Where the rules are.
pub(super) fn places(rules: &[Layer]) -> impl Iterator<Item = f64> {
    rules.iter().filter_map(|rule| match rule {
        Layer::Rule { at, .. } => Some(*at),
        _ => None,
    })
}
