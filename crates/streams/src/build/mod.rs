//! Turns the tree of an expression into a graph: names, units, clocks and rates are checked here.

mod call;
mod join;

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::Catalogue;
use crate::count::Count;
use crate::error::{Error, Problem};
use crate::expression::{Binary, Expression, Kind};
use crate::graph::{Base, Graph, Joined, Node, NodeId, Operation};
use crate::unit::Unit;
use crate::ways::RefusedJoin;

/// Largest argument of `every`, `repeat`, `lag`, `drop`, `window` and `buffer`.
const MOST_ARGUMENT: f64 = 1e12;
/// Most panes of a window of time.
const MOST_PANES: u64 = 100_000;

/// The value of a part of an expression.
enum Built {
    Number(f64, Unit),
    Stream(NodeId),
    Held(NodeId),
    Buffered(NodeId, u64),
    Window { input: NodeId, length: u64, step: u64 },
    Panes { input: NodeId, length_ns: u64, step_ns: u64 },
}

pub(crate) struct Builder<'a> {
    text: &'a str,
    catalogue: &'a dyn Catalogue,
    /// Size of a value, for the messages.
    value_bytes: u64,
    pub graph: Graph,
    /// Number of observations of each clock, if it is known.
    observations: Vec<(usize, u64)>,
    /// Times of the first and of the last observation of each clock, if they are known.
    times_ns: Vec<(usize, [u64; 2])>,
    /// The reading of the evidence to which new series belong.
    reading: usize,
    /// `true` inside of `with_gaps`.
    accepts_gaps: bool,
    /// Evaluations of counting functions that are left.
    evaluations: u64,
    /// The join that was refused because it runs out of step.
    pub refused: Option<Box<RefusedJoin>>,
    /// The nodes of the expressions that read the evidence again, under their text and their own reading.
    known: HashMap<(usize, String), NodeId>,
}

/// A join that is not added to the graph yet.
struct Sides<'e> {
    operator: Joined,
    factor: f64,
    unit: Unit,
    is_signed: bool,
    /// The whole expression, and both sides. Series without an expression are joined only if they are in step.
    written: Option<(&'e Expression, &'e Expression, &'e Expression)>,
}

impl<'a> Builder<'a> {
    pub fn new(text: &'a str, catalogue: &'a dyn Catalogue, value_bytes: u64, evaluations: u64) -> Builder<'a> {
        Builder {
            text,
            catalogue,
            value_bytes,
            graph: Graph::default(),
            observations: Vec::new(),
            times_ns: Vec::new(),
            reading: 0,
            evaluations,
            refused: None,
            known: HashMap::new(),
            accepts_gaps: false,
        }
    }

    /// Builds the whole expression, which must be a series with a unit that can be printed.
    pub fn result(&mut self, expression: &Expression) -> Result<NodeId, Error> {
        let node = self.stream(expression)?;
        self.graph.readings = self.graph.readings.max(1);
        let (_, reading) = self.graph.clock_of(self.node(node).base);
        if reading > 0 {
            let problem = "`again` is for one side of an operator, such as `every(time, 2) / again(time)`; the other \
                           side sets the pace";
            return self.argument(expression, problem.into());
        }
        let unit = self.graph.nodes[node].unit;
        if unit == Unit::Condition || unit.symbol().is_some() {
            return Ok(node);
        }
        let problem = format!(
            "`{expression}` is in {unit}, and results are in ns, B, B/s, 1/s or without a unit. Invert the fraction, \
             or divide by a number with a unit, such as `1 ms` or `1 MB`"
        );
        Err(self.wrong(expression, Problem::Unit(problem)))
    }

    fn wrong(&self, expression: &Expression, problem: Problem) -> Error {
        Error::new(self.text, expression.place.clone(), problem)
    }

    fn argument<T>(&self, expression: &Expression, problem: String) -> Result<T, Error> {
        Err(self.wrong(expression, Problem::Argument(problem)))
    }

    fn node(&self, id: NodeId) -> &Node {
        &self.graph.nodes[id]
    }

    /// Builds an expression that must be a series.
    fn stream(&mut self, expression: &Expression) -> Result<NodeId, Error> {
        let built = self.build(expression)?;
        self.stream_of(built, expression)
    }

    /// Returns the series that an expression was built into.
    fn stream_of(&self, built: Built, expression: &Expression) -> Result<NodeId, Error> {
        let problem = match built {
            Built::Stream(node) => return Ok(node),
            Built::Number(..) => format!("`{expression}` is a number; write a series in its place"),
            Built::Held(_) => {
                "`hold` gives no values by itself; use it as one side of an operator, such as `time / hold(…)`".into()
            }
            Built::Buffered(..) => {
                "`buffer` is for one side of an operator, such as `every(time, 2) / buffer(time, 1000)`".into()
            }
            Built::Window { .. } | Built::Panes { .. } => format!(
                "`{expression}` is several values; take an aggregate of it: min, max, mean, sum, count or quantile"
            ),
        };
        self.argument(expression, problem)
    }

    /// Builds an expression. Equal expressions that read the evidence again become one node. All others do so without
    /// help, because their nodes are equal.
    fn build(&mut self, expression: &Expression) -> Result<Built, Error> {
        if !self.known.is_empty()
            && let Some(node) = self.known.get(&(self.reading, expression.to_string()))
        {
            return Ok(Built::Stream(*node));
        }
        let readings = self.graph.readings;
        let built = self.build_new(expression)?;
        if let Built::Stream(node) = built
            && self.graph.readings > readings
            && self.graph.clock_of(self.node(node).base).1 == self.reading
        {
            self.known.insert((self.reading, expression.to_string()), node);
        }
        Ok(built)
    }

    fn build_new(&mut self, expression: &Expression) -> Result<Built, Error> {
        match &expression.kind {
            Kind::Number { value, unit, .. } => Ok(Built::Number(*value, *unit)),
            Kind::Series { arm, metric } => self.series(expression, arm.as_deref(), metric).map(Built::Stream),
            Kind::Negate(inner) => match self.build(inner)? {
                Built::Number(value, unit) => Ok(Built::Number(-value, unit)),
                built => self.signed(expression, inner, built),
            },
            Kind::Not(inner) => {
                let input = self.stream(inner)?;
                self.needs_condition(inner, input)?;
                Ok(Built::Stream(self.unary(Operation::Not, input)))
            }
            Kind::Binary(operator, left, right) => self.binary(expression, *operator, left, right),
            Kind::Call(function, arguments) => self.call(expression, *function, arguments),
        }
    }

    fn signed(&mut self, expression: &Expression, inner: &Expression, built: Built) -> Result<Built, Error> {
        let (input, is_held) = match built {
            Built::Held(node) => (node, true),
            built => (self.stream_of(built, inner)?, false),
        };
        if self.node(input).unit == Unit::Condition {
            let problem = format!("`{inner}` is a condition and has no sign; write `not` instead of `-`");
            return Err(self.wrong(expression, Problem::Unit(problem)));
        }
        let negated =
            Node { is_signed: true, operation: Operation::Negate, inputs: vec![input], ..self.node(input).clone() };
        let negated = self.graph.add(negated);
        Ok(if is_held { Built::Held(negated) } else { Built::Stream(negated) })
    }

    /// Adds an operator that gives one value for each value of its input.
    fn unary(&mut self, operation: Operation, input: NodeId) -> NodeId {
        let node = Node { operation, inputs: vec![input], ..self.node(input).clone() };
        self.graph.add(node)
    }

    fn series(&mut self, expression: &Expression, arm: Option<&str>, metric: &str) -> Result<NodeId, Error> {
        let found = self.catalogue.find(arm, metric);
        let (index, series) = found.map_err(|problem| self.wrong(expression, Problem::Series(problem)))?;
        if let Some(gaps) = series.gaps.filter(|_| !self.accepts_gaps) {
            let problem = format!(
                "{gaps}; write `with_gaps({expression})` to treat these values as nulls, which aggregates leave out"
            );
            return Err(self.wrong(expression, Problem::Gaps(problem)));
        }
        if let Some(observations) = series.observations {
            self.observations.push((series.clock, observations));
        }
        if let Some(times_ns) = series.times_ns {
            self.times_ns.push((series.clock, times_ns));
        }
        let base = self.graph.base(Base::Clock { clock: series.clock, reading: self.reading });
        Ok(self.graph.add(Node {
            operation: Operation::Series { index, name: expression.to_string() },
            inputs: Vec::new(),
            unit: series.unit,
            base,
            count: Arc::new(Count::Source),
            is_signed: series.is_signed,
        }))
    }

    fn needs_condition(&self, expression: &Expression, node: NodeId) -> Result<(), Error> {
        if self.node(node).unit == Unit::Condition {
            return Ok(());
        }
        let problem = not_a_condition(expression, self.node(node).unit);
        Err(self.wrong(expression, Problem::Unit(problem)))
    }

    /// Builds an operator between two expressions.
    fn binary(
        &mut self,
        expression: &Expression,
        operator: Binary,
        left: &Expression,
        right: &Expression,
    ) -> Result<Built, Error> {
        let (first, second) = (self.build(left)?, self.build(right)?);
        let units = [(&first, left), (&second, right)].map(|(built, side)| self.unit_of(built, side));
        let [first_unit, second_unit] = units;
        let (unit, factor) = self.unit_of_result(expression, operator, [(left, first_unit?), (right, second_unit?)])?;
        let is_signed = self.is_signed(operator, [&first, &second]);
        let sides = Sides {
            operator: Joined::Operator(operator),
            factor,
            unit,
            is_signed,
            written: Some((expression, left, right)),
        };
        if operator == Binary::Divide && matches!(second, Built::Number(number, _) if number == 0.0) {
            return self.argument(right, "a division by zero; divide by another number".into());
        }
        match (first, second) {
            (Built::Number(first, _), Built::Number(second, _)) => {
                if unit == Unit::Condition {
                    return self.argument(expression, "both sides are numbers; compare a series".into());
                }
                let number = arithmetic(operator, first, second) * factor;
                if !number.is_finite() {
                    return self.argument(expression, format!("`{expression}` is too large; use smaller numbers"));
                }
                Ok(Built::Number(number, unit))
            }
            (Built::Number(number, unit), Built::Stream(input)) => {
                Ok(Built::Stream(self.with_number(&sides, operator, (number, unit), true, input)))
            }
            (Built::Stream(input), Built::Number(number, unit)) => {
                Ok(Built::Stream(self.with_number(&sides, operator, (number, unit), false, input)))
            }
            // The latest value of a result is the result of the latest value.
            (Built::Number(number, unit), Built::Held(input)) => {
                Ok(Built::Held(self.with_number(&sides, operator, (number, unit), true, input)))
            }
            (Built::Held(input), Built::Number(number, unit)) => {
                Ok(Built::Held(self.with_number(&sides, operator, (number, unit), false, input)))
            }
            (Built::Stream(first), Built::Stream(second)) => self.join(&sides, first, second, None).map(Built::Stream),
            (Built::Held(held), Built::Stream(pace)) => self.join_held(&sides, operator, pace, held, true),
            (Built::Stream(pace), Built::Held(held)) => self.join_held(&sides, operator, pace, held, false),
            (Built::Buffered(first, most), Built::Stream(second)) => {
                self.join(&sides, first, second, Some((0, most))).map(Built::Stream)
            }
            (Built::Stream(first), Built::Buffered(second, most)) => {
                self.join(&sides, first, second, Some((1, most))).map(Built::Stream)
            }
            (Built::Held(_), _) | (_, Built::Held(_)) => {
                let problem = format!("`{expression}` has no series that sets the pace; use `hold` on one side only");
                self.argument(expression, problem)
            }
            (Built::Buffered(..), _) | (_, Built::Buffered(..)) => {
                self.argument(expression, "`buffer` needs a series on the other side".into())
            }
            (Built::Window { .. } | Built::Panes { .. }, _) => self.stream(left).map(Built::Stream),
            (_, Built::Window { .. } | Built::Panes { .. }) => self.stream(right).map(Built::Stream),
        }
    }

    fn unit_of(&mut self, built: &Built, expression: &Expression) -> Result<Unit, Error> {
        match built {
            Built::Number(_, unit) => Ok(*unit),
            Built::Stream(node) | Built::Held(node) | Built::Buffered(node, _) => Ok(self.node(*node).unit),
            Built::Window { .. } | Built::Panes { .. } => self.stream(expression).map(|node| self.node(node).unit),
        }
    }

    fn unit_of_result(
        &self,
        expression: &Expression,
        operator: Binary,
        sides: [(&Expression, Unit); 2],
    ) -> Result<(Unit, f64), Error> {
        let symbol = operator.symbol();
        let [(left, first), (right, second)] = sides;
        let wrong = |problem: String| Err(self.wrong(expression, Problem::Unit(problem)));
        match operator {
            Binary::And | Binary::Or => match sides.iter().find(|(_, unit)| *unit != Unit::Condition) {
                Some((side, unit)) => {
                    wrong(format!("`{symbol}` joins two conditions, and {}", not_a_condition(side, *unit)))
                }
                None => Ok((Unit::Condition, 1.0)),
            },
            _ if first == Unit::Condition || second == Unit::Condition => wrong(format!(
                "`{symbol}` is for numbers, and a side is a condition; join conditions with `and` or `or`"
            )),
            Binary::Multiply | Binary::Divide => {
                let result = if operator == Binary::Multiply { first.times(second) } else { first.over(second) };
                match result {
                    Some(result) => Ok(result),
                    None => wrong("the unit of the result has an exponent above 127; use fewer factors".into()),
                }
            }
            _ if first == Unit::ONE
                && let Some(number) = left.with_unit(second) =>
            {
                let joined = Expression::joined(number, operator, right.clone());
                wrong(format!("`{left}` has no unit, and `{right}` is in {second}; write a unit, such as `{joined}`"))
            }
            _ if second == Unit::ONE
                && let Some(number) = right.with_unit(first) =>
            {
                let joined = Expression::joined(left.clone(), operator, number);
                wrong(format!("`{right}` has no unit, and `{left}` is in {first}; write a unit, such as `{joined}`"))
            }
            _ if first != second => wrong(format!(
                "`{expression}` has {first} on the left and {second} on the right of `{symbol}`. Give both sides the \
                 same unit, for example by dividing each by a number with its unit, such as `1 ms` or `1 MB`"
            )),
            _ if operator.is_comparison() => Ok((Unit::Condition, 1.0)),
            _ => Ok((first, 1.0)),
        }
    }

    /// Returns whether the result of an operator can be negative.
    fn is_signed(&self, operator: Binary, sides: [&Built; 2]) -> bool {
        let can_be_negative = |built: &Built| match built {
            Built::Number(number, _) => *number < 0.0,
            Built::Stream(node) | Built::Held(node) | Built::Buffered(node, _) => self.node(*node).is_signed,
            Built::Window { .. } | Built::Panes { .. } => false,
        };
        match operator {
            Binary::Subtract => true,
            Binary::Add | Binary::Multiply | Binary::Divide => sides.into_iter().any(can_be_negative),
            _ => false,
        }
    }

    fn with_number(
        &mut self,
        sides: &Sides,
        operator: Binary,
        (number, unit): (f64, Unit),
        is_number_first: bool,
        input: NodeId,
    ) -> NodeId {
        let operation = Operation::WithNumber { operator, number, unit, is_number_first, factor: sides.factor };
        let (unit, is_signed) = (sides.unit, sides.is_signed);
        let node = Node { operation, inputs: vec![input], unit, is_signed, ..self.node(input).clone() };
        self.graph.add(node)
    }
}

/// Returns a message about an expression that is not a condition, with a comparison that would be one.
fn not_a_condition(expression: &Expression, unit: Unit) -> String {
    let compared = Expression::zero(unit).map(|zero| Expression::joined(expression.clone(), Binary::Greater, zero));
    let such_as = compared.map_or_else(String::new, |compared| format!(", such as `{compared}`"));
    format!("`{expression}` is not a condition; compare it{such_as}")
}

/// Computes an arithmetic operator on numbers.
pub(crate) fn arithmetic(operator: Binary, first: f64, second: f64) -> f64 {
    match operator {
        Binary::Add => first + second,
        Binary::Subtract => first - second,
        Binary::Multiply => first * second,
        _ => first / second,
    }
}
