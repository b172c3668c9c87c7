//! The check that the results of an expression do not depend on the share of the observations that was recorded.

use crate::error::{Error, Problem};
use crate::expression::Binary;
use crate::graph::{Aggregate, Base, Join, Joined, Node, NodeId, Operation};
use crate::plan::Plan;

/// The power of n with which the results of an operator grow if all observations are recorded instead of every n-th. It
/// is 1 for a count of a window of time, and 0 for a mean.
type Power = i32;

impl Plan {
    /// Checks that the results do not depend on n if only every n-th observation was recorded. A sum or a count of a
    /// window of time, or of all values so far, is too small by the factor n. A ratio of two of them is not.
    ///
    /// ```
    /// use ascertain_streams::{OneClock, Plan, Unit};
    ///
    /// let catalogue = OneClock::new(&[("time", Unit::TIME)]);
    /// let check = |text| Plan::new(text, &catalogue)?.check_sampled(64);
    /// assert!(check("per_second(count(window(time, 10 s)))").unwrap_err().to_string().contains("one in 64"));
    /// check("sum(time) / count(time)")?;
    /// # Ok::<(), ascertain_streams::Error>(())
    /// ```
    ///
    /// # Errors
    /// If n is above 1, and the results depend on it. The error names the operator.
    pub fn check_sampled(&self, every: u64) -> Result<(), Error> {
        let mut powers = Vec::with_capacity(self.graph.nodes.len());
        // Inputs come before the nodes that use them.
        for node in &self.graph.nodes {
            powers.push(self.power(node, &powers));
        }
        if every <= 1 || powers[self.root] == Some(0) {
            return Ok(());
        }
        let counted = self.graph.nodes.iter().find(|node| self.is_total(node));
        let name = counted.map_or_else(String::new, |node| node.operation.name());
        let problem = format!(
            "`{name}` is too small, because the run recorded only one in {every} of its observations. Use a mean, a \
             quantile, or the ratio of two counts. For an exact figure, compute the series during a run, or record \
             every observation"
        );
        Err(Error::new(self.text(), 0..self.text().len(), Problem::Sampled(problem)))
    }

    /// Returns the power of a node; `None` if its results depend on n in another way.
    fn power(&self, node: &Node, powers: &[Option<Power>]) -> Option<Power> {
        let of = |input: usize| node.inputs.get(input).and_then(|input: &NodeId| powers[*input]);
        match &node.operation {
            Operation::Series { .. } | Operation::Stamp(_) => Some(0),
            Operation::WithNumber { operator, is_number_first: true, .. } => joined(*operator, 0, of(0)?),
            Operation::WithNumber { operator, .. } => joined(*operator, of(0)?, 0),
            Operation::Join(Join { operator: Joined::Operator(operator), .. }) => joined(*operator, of(0)?, of(1)?),
            Operation::Join(Join { operator: Joined::Select, .. }) => of(1).and(of(0)),
            Operation::Join(Join { operator: Joined::Later, .. }) => Some(0),
            Operation::JoinHeld { operator, is_held_first: true, .. } => joined(*operator, of(1)?, of(0)?),
            Operation::JoinHeld { operator, .. } => joined(*operator, of(0)?, of(1)?),
            Operation::Running(aggregate)
            | Operation::Window { aggregate, .. }
            | Operation::Panes { aggregate, .. } => {
                let of_values = if *aggregate == Aggregate::Count { of(0).map(|_| 0) } else { of(0) };
                of_values.map(|power| power + Power::from(self.is_total(node)))
            }
            Operation::Negate
            | Operation::Not
            | Operation::Compact
            | Operation::Every(_)
            | Operation::Repeat(_)
            | Operation::Lag(_)
            | Operation::Drop(_)
            | Operation::Ewma(_) => of(0),
        }
    }

    /// Returns whether a node counts or adds up as many values as there are observations. A window of n values has the
    /// same number of values in any run.
    fn is_total(&self, node: &Node) -> bool {
        let (Operation::Running(aggregate) | Operation::Panes { aggregate, .. }) = node.operation else { return false };
        let input = node.inputs.first().map(|input| self.graph.nodes[*input].base);
        matches!(aggregate, Aggregate::Sum | Aggregate::Count)
            && input.is_some_and(|base| self.is_per_observation(base))
    }

    /// Returns whether the ticks of a clock are observations. The number of windows of time does not depend on n.
    fn is_per_observation(&self, base: usize) -> bool {
        match &self.graph.bases[base] {
            Base::Clock { .. } => true,
            Base::Where { base, .. } => self.is_per_observation(*base),
            Base::Panes { .. } => false,
        }
    }
}

/// Returns the power of an operator between two values with these powers.
fn joined(operator: Binary, left: Power, right: Power) -> Option<Power> {
    match operator {
        Binary::Multiply => Some(left + right),
        Binary::Divide => Some(left - right),
        _ if left != right => None,
        Binary::Add | Binary::Subtract => Some(left),
        // A comparison has the same result if both sides grow by the same factor.
        _ => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::OneClock;
    use crate::unit::Unit;

    fn check(text: &str) -> Result<(), Error> {
        let catalogue = OneClock::new(&[("time", Unit::TIME), ("memory", Unit::BYTES), ("x", Unit::ONE)]);
        Plan::new(text, &catalogue).unwrap_or_else(|error| panic!("{text}: {error}")).check_sampled(64)
    }

    #[test]
    fn sums_and_counts_of_a_sample_are_refused() {
        for (text, name) in [
            ("count(time)", "count so far"),
            ("sum(time)", "sum so far"),
            ("count(window(time, 10 s))", "count of window 10 s step 10 s"),
            ("per_second(count(window(time, 10 s)))", "count of window 10 s step 10 s"),
            ("per_second(sum(window(memory, 10 s, step 1 s)))", "sum of window 10 s step 1 s"),
            ("mean(window(count(window(time, 1 s)), 10))", "count of window 1 s step 1 s"),
            ("count(window(where(time, time > 1 s), 10 s))", "count of window 10 s step 10 s"),
            ("count(time) + 1", "count so far"),
            ("1 / count(time)", "count so far"),
            ("count(time) * count(time)", "count so far"),
            ("sum(sum(x))", "sum so far"),
            ("where(time, count(time) > 100)", "count so far"),
            ("count(time) - x", "count so far"),
            ("x / hold(count(time))", "count so far"),
        ] {
            let error = check(text).expect_err(text).to_string();
            assert!(error.contains(&format!("`{name}` is too small")), "{text}: {error}");
            assert!(error.contains("recorded only one in 64 of its observations"), "{text}: {error}");
        }
    }

    #[test]
    fn results_that_do_not_depend_on_the_share_are_accepted() {
        for text in [
            "time",
            "mean(time)",
            "quantile(.99, window(time, 10 s))",
            "max(window(time, 10 s)) / 1 ms",
            "sum(window(time, 1000))",
            "count(window(time, 1000))",
            "sum(time) / count(time)",
            "sum(window(time, 10 s)) / count(window(time, 10 s))",
            "count(window(where(time, time > 1 s), 10 s)) / hold(count(window(time, 10 s)))",
            "lag(count(time), 3) / count(time)",
            "count(time) > count(x)",
            "sum(max(window(time, 1 s)))",
            "count(max(window(time, 1 s)))",
            "-sum(x) / sum(time) * 1 ms",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn a_run_that_recorded_everything_has_counts() {
        let plan = Plan::new("count(time)", &OneClock::new(&[("time", Unit::TIME)])).unwrap();
        assert_eq!(plan.check_sampled(1), Ok(()));
        assert!(plan.check_sampled(2).is_err());
    }
}
