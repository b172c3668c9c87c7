//! Predicates on one observation: `exit == 0 and wall <= 50 ms`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::experiment::Metric;
use crate::nearest::suggestion;
use crate::unit::{QuantityError, parse_quantity};

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
    /// Reads comparisons joined by `and`.
    ///
    /// # Errors
    /// When a part is not a comparison, its metric is not one of these, or its quantity does not fit
    /// the metric's unit.
    pub fn parse(text: &str, metrics: &[Metric]) -> Result<Predicate, PredicateError> {
        text.split(" and ").map(|part| Comparison::parse(part.trim(), metrics)).collect::<Result<_, _>>().map(Predicate)
    }

    /// Whether every comparison is true of the values, by metric. A metric without a value (NaN) makes
    /// its comparison false.
    pub fn is_true(&self, values: &[f64]) -> bool {
        self.0.iter().all(|comparison| comparison.is_true(values[comparison.metric]))
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
        let parts = self.0.iter().map(|comparison| {
            let metric = &metrics[comparison.metric];
            format!("{} {} {}", metric.name, comparison.relation, metric.unit.exact(comparison.bound))
        });
        parts.collect::<Vec<_>>().join(" and ")
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
        Ok(Comparison { metric, relation, bound })
    }

    fn is_true(&self, value: f64) -> bool {
        match self.relation {
            Relation::AtMost => value <= self.bound,
            Relation::Below => value < self.bound,
            Relation::AtLeast => value >= self.bound,
            Relation::Above => value > self.bound,
            Relation::Equal => value == self.bound,
            Relation::Unequal => value != self.bound && !value.is_nan(),
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
        assert!(predicate.is_true(&[50e6, 0.0]));
        assert!(!predicate.is_true(&[50e6 + 1.0, 0.0]));
        assert!(!predicate.is_true(&[1.0, 1.0]));
        assert!(!predicate.is_true(&[f64::NAN, 0.0]));
        assert!(!predicate.is_true(&[f64::INFINITY, 0.0]), "a time-out is an infinite time");
        assert_eq!(predicate.spelled(&metrics()), "exit == 0 and wall <= 50 ms");
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
