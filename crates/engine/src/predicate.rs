//! Predicates on one observation: `exit == 0 and wall <= 50 ms`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::claim::Bound;
use crate::experiment::Metric;
use crate::names::suggestion;
use crate::unit::{QuantityError, parse_quantity};
use crate::values::{Bounds, and};

/// Comparisons that must all be true.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Predicate(pub Vec<Comparison>);

/// A metric against a bound in the metric's unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Index into the spec's metrics.
    pub metric: usize,
    /// The relation.
    pub relation: Relation,
    /// The bound.
    pub bound: f64,
    /// Whether it was written in percent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_percent: bool,
}

/// How a value relates to a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Relation {
    /// Less than or equal.
    #[serde(rename = "<=")]
    AtMost,
    /// Less than.
    #[serde(rename = "<")]
    Below,
    /// Greater than or equal.
    #[serde(rename = ">=")]
    AtLeast,
    /// Greater than.
    #[serde(rename = ">")]
    Above,
    /// Equal.
    #[serde(rename = "==")]
    Equal,
    /// Not equal.
    #[serde(rename = "!=")]
    Unequal,
}

/// Longer spellings first, so that `<=` is not read as `<`.
const RELATIONS: [(&str, Relation); 6] = [
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("==", Relation::Equal),
    ("!=", Relation::Unequal),
    ("<", Relation::Below),
    (">", Relation::Above),
];

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spelled = RELATIONS.iter().find(|(_, relation)| relation == self);
        f.write_str(spelled.map_or("", |(text, _)| text))
    }
}

/// Why a text is not a predicate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PredicateError {
    /// A part is not a comparison.
    #[error("`{0}` is not a comparison; write `metric op quantity`, with op one of <= < >= > == !=, joined by `and`")]
    NotAComparison(String),
    /// There is no such metric.
    #[error(
        "unknown metric `{name}`; known are {}{}",
        .known.join(", "),
        suggestion(.name, .known.iter().map(String::as_str)).unwrap_or_default()
    )]
    UnknownMetric {
        /// What was written.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The quantity is wrong.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
}

impl Predicate {
    /// Returns the predicate that a metric is at most `bound`, in the metric's unit.
    pub fn at_most(metric: usize, bound: f64) -> Predicate {
        Predicate(vec![Comparison { metric, relation: Relation::AtMost, bound, in_percent: false }])
    }

    /// Reads comparisons joined by `and`.
    ///
    /// # Errors
    /// When a part is not a comparison, its metric is not one of these, or its quantity does not fit
    /// the metric's unit.
    pub fn parse(text: &str, metrics: &[Metric]) -> Result<Predicate, PredicateError> {
        text.split(" and ").map(|part| Comparison::parse(part.trim(), metrics)).collect::<Result<_, _>>().map(Predicate)
    }

    /// Whether every comparison is true of the values, by metric; `None` where what was cut off leaves that open, and
    /// where one is about the metric that is `open`. A metric that was not observed makes its comparison false.
    pub fn is_true(&self, values: &[Bounds], open: Option<usize>) -> Option<bool> {
        self.each(values, open).fold(Some(true), and)
    }

    /// The same of each comparison.
    pub fn each(&self, values: &[Bounds], open: Option<usize>) -> impl Iterator<Item = Option<bool>> {
        self.0.iter().map(move |comparison| match open {
            Some(metric) if metric == comparison.metric => None,
            _ => comparison.is_true(values[comparison.metric]),
        })
    }

    /// Whether it speaks of the metric.
    pub fn mentions(&self, metric: usize) -> bool {
        self.0.iter().any(|comparison| comparison.metric == metric)
    }

    /// The metric, where it speaks of just one.
    pub fn only_metric(&self) -> Option<usize> {
        let metric = self.0.first()?.metric;
        self.0.iter().all(|comparison| comparison.metric == metric).then_some(metric)
    }

    /// The predicate as people write it.
    pub fn spelled(&self, metrics: &[Metric]) -> String {
        self.spelled_each(metrics).collect::<Vec<_>>().join(" and ")
    }

    /// Its comparisons as people write them.
    pub fn spelled_each(&self, metrics: &[Metric]) -> impl Iterator<Item = String> {
        self.0.iter().map(|comparison| {
            let metric = &metrics[comparison.metric];
            let bound = match comparison.in_percent {
                // 0.29 * 100 is 28.999999999999996, of which `exact` writes twelve digits.
                true => format!("{} %", metric.unit.exact(comparison.bound * 100.0)),
                false => metric.unit.exact(comparison.bound),
            };
            format!("{} {} {bound}", metric.name, comparison.relation)
        })
    }
}

impl Comparison {
    fn parse(text: &str, metrics: &[Metric]) -> Result<Comparison, PredicateError> {
        let found = text.char_indices().find_map(|(at, _)| {
            let spelled = RELATIONS.iter().find(|(spelling, _)| text[at..].starts_with(spelling));
            spelled.map(|(spelling, relation)| (at, spelling.len(), *relation))
        });
        let (at, len, relation) = found.ok_or_else(|| PredicateError::NotAComparison(text.to_string()))?;
        let (name, quantity) = (text[..at].trim(), &text[at + len..]);
        let metric = metrics.iter().position(|metric| metric.name == name);
        let metric = metric.ok_or_else(|| PredicateError::UnknownMetric {
            name: name.to_string(),
            known: metrics.iter().map(|metric| metric.name.clone()).collect(),
        })?;
        let bound = parse_quantity(quantity, metrics[metric].unit)?;
        Ok(Comparison { metric, relation, bound, in_percent: quantity.trim_end().ends_with('%') })
    }

    fn is_true(&self, value: Bounds) -> Option<bool> {
        let keeps_to = |bound| value.keeps_to(bound);
        // A number that is missing is on neither side.
        let not = |is_true: Option<bool>| is_true.map(|is_true| !is_true && !value.is_none());
        match self.relation {
            Relation::AtMost => keeps_to(Bound::AtMost(self.bound)),
            Relation::Below => not(keeps_to(Bound::AtLeast(self.bound))),
            Relation::AtLeast => keeps_to(Bound::AtLeast(self.bound)),
            Relation::Above => not(keeps_to(Bound::AtMost(self.bound))),
            Relation::Equal => keeps_to(Bound::Within(self.bound, self.bound)),
            Relation::Unequal => not(keeps_to(Bound::Within(self.bound, self.bound))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Better;
    use crate::unit::Unit;

    fn metrics() -> Vec<Metric> {
        let metric = |name: &str, unit| Metric::new(name, "", unit, Better::Lower);
        vec![metric("wall", Unit::Nanosecond), metric("exit", Unit::One)]
    }

    #[test]
    fn comparisons_are_joined_by_and() {
        let predicate = Predicate::parse("exit == 0 and wall<=50ms", &metrics()).unwrap();
        let is_true = |wall, exit| predicate.is_true(&[wall, Bounds::exact(exit)], None);
        assert_eq!(is_true(Bounds::exact(50e6), 0.0), Some(true));
        assert_eq!(is_true(Bounds::exact(50e6 + 1.0), 0.0), Some(false));
        assert_eq!(is_true(Bounds::exact(1.0), 1.0), Some(false));
        assert_eq!(is_true(Bounds::NONE, 0.0), Some(false));
        assert_eq!(is_true(Bounds::above(50e6), 0.0), Some(false), "a time-out is above its limit");
        assert_eq!(is_true(Bounds::above(49e6), 0.0), None, "and who knows how far");
        assert_eq!(predicate.spelled(&metrics()), "exit == 0 and wall <= 50 ms");
        // Whoever wrote percent thinks in percent.
        for percent in
            ["exit <= 29 %", "exit <= 0.7 %", "exit <= 99.999 %", "exit > 1e-20 %", "exit < 1.79769313486e308 %"]
        {
            assert_eq!(Predicate::parse(percent, &metrics()).unwrap().spelled(&metrics()), percent);
        }
    }

    #[test]
    fn what_is_missing_is_on_neither_side() {
        for relation in ["<=", "<", ">=", ">", "==", "!="] {
            let predicate = Predicate::parse(&format!("wall {relation} 5 ns"), &metrics()).unwrap();
            assert_eq!(predicate.is_true(&[Bounds::NONE, Bounds::NONE], None), Some(false), "{relation}");
            assert_eq!(predicate.is_true(&[Bounds::above(4.0), Bounds::NONE], None), None, "{relation}");
        }
        let is_true = |relation: &str, wall| {
            let predicate = Predicate::parse(&format!("wall {relation} 5 ns"), &metrics()).unwrap();
            predicate.is_true(&[wall, Bounds::NONE], None)
        };
        let stopped = Bounds::above(5.0);
        let expected = [("<=", false), ("<", false), (">=", true), (">", true), ("==", false), ("!=", true)];
        for (relation, expected) in expected {
            assert_eq!(is_true(relation, stopped), Some(expected), "{relation}");
        }
        let five = [("<=", true), ("<", false), (">=", true), (">", false), ("==", true), ("!=", false)];
        for (relation, expected) in five {
            assert_eq!(is_true(relation, Bounds::exact(5.0)), Some(expected), "{relation}");
        }
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let message = |text| Predicate::parse(text, &metrics()).unwrap_err().to_string();
        assert!(message("wal <= 50 ms").contains("did you mean `wall`?"));
        assert!(message("wall 50 ms").contains("not a comparison"));
        assert!(message("wall <= 50").contains("write it in ns"));
        assert!(message("wall <= 50 ms and").contains("unknown unit `ms and`"));
        assert!(message("").contains("not a comparison"));
    }
}
