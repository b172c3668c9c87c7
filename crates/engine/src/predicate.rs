//! Predicates on one observation: `exit == 0 and wall <= 50 ms`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::claim::{Bound, Measure};
use crate::experiment::Metric;
use crate::names;
use crate::unit::parse_quantity;
use crate::values::Bounds;

/// A list of conditions on one observation. The predicate is true if all conditions are true.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate(pub Vec<Condition>);

/// A comparison of a metric's value with a bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// Metric whose value is compared.
    pub measure: Measure,
    /// The relation between the value and the bound.
    pub relation: Relation,
    /// The bound with which the value is compared, in the metric's unit.
    pub bound: f64,
    /// `true` if the user wrote the bound in percent. The bound is then printed in percent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_percent: bool,
}

/// The relation between a value and a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Relation {
    /// The value is at most the bound.
    #[serde(rename = "<=")]
    AtMost,
    /// The value is less than the bound.
    #[serde(rename = "<")]
    Below,
    /// The value is at least the bound.
    #[serde(rename = ">=")]
    AtLeast,
    /// The value is greater than the bound.
    #[serde(rename = ">")]
    Above,
    /// The value equals the bound.
    #[serde(rename = "==")]
    Equal,
    /// The value differs from the bound.
    #[serde(rename = "!=")]
    Unequal,
}

/// The spellings of relations. The longer spellings come first, so that the parser does not read `<=` as `<`.
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

/// The error for a text that is not a predicate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PredicateError(String);

impl Predicate {
    /// Returns the predicate "`metric` is at most `bound`". The bound is in the metric's unit.
    pub fn at_most(metric: &Metric, bound: f64) -> Predicate {
        Predicate(vec![Condition { measure: metric.into(), relation: Relation::AtMost, bound, in_percent: false }])
    }

    /// Parses a predicate: one or more comparisons, joined by `and`.
    ///
    /// # Errors
    /// If a comparison is malformed, if its metric is not one of `metrics`, or if its quantity does not fit the
    /// metric's unit.
    pub fn parse(text: &str, metrics: &[Metric]) -> Result<Predicate, PredicateError> {
        let conditions = Predicate::parts(text).into_iter().map(|part| Condition::parse(part, metrics));
        conditions.collect::<Result<_, _>>().map(Predicate)
    }

    /// Returns the comparisons of a predicate as texts. An `and` between parentheses belongs to an expression.
    fn parts(text: &str) -> Vec<&str> {
        let mut ends: Vec<usize> = outside_parentheses(text).filter(|at| text[*at..].starts_with(" and ")).collect();
        ends.push(text.len());
        let mut start = 0;
        let part = |end: usize| {
            let part = text[start.min(end)..end].trim();
            start = end + " and ".len();
            part
        };
        ends.into_iter().map(part).collect()
    }

    /// Returns the left sides of the comparisons in a text: names of metrics, or expressions.
    pub(crate) fn subjects(text: &str) -> Vec<&str> {
        let parts = Predicate::parts(text).into_iter();
        parts.filter_map(|part| Some(part[..relation_in(part)?.0].trim())).collect()
    }

    /// Returns whether any of the conditions compares the metric of this name.
    pub fn mentions(&self, metric: &str) -> bool {
        self.0.iter().any(|condition| condition.measure.metric == metric)
    }

    /// Returns the metric that the conditions compare, apart from the exit code. Returns `None` if the conditions
    /// compare several metrics, or only the exit code.
    pub fn measure(&self) -> Option<&Measure> {
        let mut measures = self.0.iter().map(|condition| &condition.measure).filter(|measure| measure.metric != "exit");
        let first = measures.next()?;
        measures.all(|other| other.metric == first.metric).then_some(first)
    }
}

/// Writes the predicate as in a claims file: `exit == 0 and wall <= 50 ms`.
impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conditions: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&conditions.join(" and "))
    }
}

/// Writes the condition as in a claims file: `wall <= 50 ms`.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Condition { measure: Measure { metric, unit, .. }, relation, bound, in_percent } = self;
        match in_percent {
            // 0.29 * 100 is 28.999999999999996; `exact` prints only twelve digits and so writes 29.
            true => write!(f, "{metric} {relation} {} %", unit.exact(bound * 100.0)),
            false => write!(f, "{metric} {relation} {}", unit.exact(*bound)),
        }
    }
}

/// Returns the offsets of the characters that are outside of parentheses.
fn outside_parentheses(text: &str) -> impl Iterator<Item = usize> {
    let mut depth = 0_usize;
    text.char_indices().filter_map(move |(at, character)| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// Finds the relation of a comparison. Returns its offset, its length and the relation.
fn relation_in(text: &str) -> Option<(usize, usize, Relation)> {
    outside_parentheses(text).find_map(|at| {
        let spelled = RELATIONS.iter().find(|(spelling, _)| text[at..].starts_with(spelling));
        spelled.map(|(spelling, relation)| (at, spelling.len(), *relation))
    })
}

impl Condition {
    fn parse(text: &str, metrics: &[Metric]) -> Result<Condition, PredicateError> {
        let (at, len, relation) = relation_in(text).ok_or_else(|| {
            PredicateError(format!(
                "`{text}` is not a comparison; write `metric op quantity`, with op one of <= < >= > == !=, joined by `and`"
            ))
        })?;
        let (name, quantity) = (text[..at].trim(), &text[at + len..]);
        let metric = metrics.iter().find(|metric| metric.name == name);
        let metric = metric.ok_or_else(|| {
            let known: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
            PredicateError(names::unknown("metric", name, known))
        })?;
        let bound = parse_quantity(quantity, metric.unit).map_err(|error| PredicateError(error.to_string()))?;
        Ok(Condition { measure: metric.into(), relation, bound, in_percent: quantity.trim_end().ends_with('%') })
    }

    /// Returns whether the value meets the condition. Returns `None` if this is unknown because the value was cut off,
    /// and `Some(false)` if the metric was not observed.
    pub(crate) fn is_true(&self, value: Bounds) -> Option<bool> {
        let keeps_to = |bound| value.keeps_to(bound);
        // A value that was not observed meets no condition, not even a negated one.
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
    use crate::values::and;

    fn metrics() -> Vec<Metric> {
        let metric = |name: &str, unit| Metric::new(name, "", unit, Better::Lower);
        vec![metric("wall", Unit::Nanosecond), metric("exit", Unit::One)]
    }

    #[test]
    fn comparisons_are_joined_by_and() {
        let predicate = Predicate::parse("exit == 0 and wall<=50ms", &metrics()).unwrap();
        let is_true = |wall, code| {
            let [exit, time] = &predicate.0[..] else { panic!("two conditions") };
            and(exit.is_true(Bounds::exact(code)), time.is_true(wall))
        };
        assert_eq!(is_true(Bounds::exact(50e6), 0.0), Some(true));
        assert_eq!(is_true(Bounds::exact(50e6 + 1.0), 0.0), Some(false));
        assert_eq!(is_true(Bounds::exact(1.0), 1.0), Some(false));
        assert_eq!(is_true(Bounds::NONE, 0.0), Some(false));
        assert_eq!(is_true(Bounds::above(50e6), 0.0), Some(false), "a time-out is above its limit");
        assert_eq!(is_true(Bounds::above(49e6), 0.0), None, "it is not known how far");
        assert_eq!(predicate.to_string(), "exit == 0 and wall <= 50 ms");
        // Bounds that were written in percent are printed in percent.
        for percent in
            ["exit <= 29 %", "exit <= 0.7 %", "exit <= 99.999 %", "exit > 1e-20 %", "exit < 1.79769313486e308 %"]
        {
            assert_eq!(Predicate::parse(percent, &metrics()).unwrap().to_string(), percent);
        }
    }

    #[test]
    fn what_is_missing_is_on_neither_side() {
        for relation in ["<=", "<", ">=", ">", "==", "!="] {
            let predicate = Predicate::parse(&format!("wall {relation} 5 ns"), &metrics()).unwrap();
            assert_eq!(predicate.0[0].is_true(Bounds::NONE), Some(false), "{relation}");
            assert_eq!(predicate.0[0].is_true(Bounds::above(4.0)), None, "{relation}");
        }
        let is_true = |relation: &str, wall| {
            let predicate = Predicate::parse(&format!("wall {relation} 5 ns"), &metrics()).unwrap();
            predicate.0[0].is_true(wall)
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
    fn parentheses_belong_to_expressions() {
        let text = "exit == 0 and max(window(where(wall, wall > 1 ms and wall < 2 ms), 3)) <= 50 ms";
        let expression = "max(window(where(wall, wall > 1 ms and wall < 2 ms), 3))";
        assert_eq!(Predicate::subjects(text), ["exit", expression]);
        assert_eq!(Predicate::subjects("(wall and"), Vec::<&str>::new());
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
