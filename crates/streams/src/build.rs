//! Turns the tree of an expression into a graph: names, units, clocks and rates are checked here.

use std::sync::Arc;

use crate::catalog::Catalogue;
use crate::count::Count;
use crate::error::{Error, Problem};
use crate::expression::{Binary, Expression, Function, Kind};
use crate::graph::{Aggregate, Base, Graph, Join, JoinKind, Joined, Node, NodeId, Operation, Stamp};
use crate::ratio::Ratio;
use crate::refusal::Unbounded;
use crate::unit::Unit;

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
    pub graph: Graph,
    /// Number of observations of each clock, if it is known.
    observations: Vec<(usize, u64)>,
    /// The reading of the evidence to which new series belong.
    reading: usize,
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
    pub fn new(text: &'a str, catalogue: &'a dyn Catalogue) -> Builder<'a> {
        Builder { text, catalogue, graph: Graph::default(), observations: Vec::new(), reading: 0 }
    }

    /// Builds the whole expression, which must be a series with a unit that can be printed.
    pub fn result(&mut self, expression: &Expression) -> Result<NodeId, Error> {
        let node = self.stream(expression)?;
        self.graph.readings = self.graph.readings.max(1);
        let unit = self.graph.nodes[node].unit;
        if unit == Unit::Condition || unit.symbol().is_some() {
            return Ok(node);
        }
        let problem = format!(
            "`{expression}` is in {unit}, and results are in ns, B, B/s, 1/s or without a unit; turn the fraction \
             round, or divide by a number with a unit, such as `1 ms` or `1 MB`"
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
        let problem = match self.build(expression)? {
            Built::Stream(node) => return Ok(node),
            Built::Number(..) => format!("`{expression}` is a number; write a series in its place"),
            Built::Held(_) => {
                "`hold` has no pace of its own; use it as one side of an operator, such as `time / hold(…)`".into()
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

    fn build(&mut self, expression: &Expression) -> Result<Built, Error> {
        match &expression.kind {
            Kind::Number { value, unit, .. } => Ok(Built::Number(*value, *unit)),
            Kind::Series { arm, metric } => self.series(expression, arm.as_deref(), metric).map(Built::Stream),
            Kind::Negate(inner) => match self.build(inner)? {
                Built::Number(value, unit) => Ok(Built::Number(-value, unit)),
                _ => self.signed(expression, inner),
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

    fn signed(&mut self, expression: &Expression, inner: &Expression) -> Result<Built, Error> {
        let input = self.stream(inner)?;
        if self.node(input).unit == Unit::Condition {
            let problem = format!("`{inner}` is a condition and has no sign; write `not` instead of `-`");
            return Err(self.wrong(expression, Problem::Unit(problem)));
        }
        let negated =
            Node { is_signed: true, operation: Operation::Negate, inputs: vec![input], ..self.node(input).clone() };
        Ok(Built::Stream(self.graph.add(negated)))
    }

    /// Adds an operator that gives one value for each value of its input.
    fn unary(&mut self, operation: Operation, input: NodeId) -> NodeId {
        let node = Node { operation, inputs: vec![input], ..self.node(input).clone() };
        self.graph.add(node)
    }

    fn series(&mut self, expression: &Expression, arm: Option<&str>, metric: &str) -> Result<NodeId, Error> {
        let found = self.catalogue.find(arm, metric);
        let (index, series) = found.map_err(|problem| self.wrong(expression, Problem::Series(problem)))?;
        if let Some(observations) = series.observations {
            self.observations.push((series.clock, observations));
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
        let problem = format!("`{expression}` is not a condition; compare it, such as `{expression} > 0`");
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
        let (unit, factor) = self.unit_of_result(expression, operator, first_unit?, second_unit?)?;
        let is_signed = self.is_signed(operator, [&first, &second]);
        let sides = Sides {
            operator: Joined::Operator(operator),
            factor,
            unit,
            is_signed,
            written: Some((expression, left, right)),
        };
        match (first, second) {
            (Built::Number(first, _), Built::Number(second, _)) => {
                if unit == Unit::Condition {
                    return self.argument(expression, "both sides are numbers; compare a series".into());
                }
                Ok(Built::Number(arithmetic(operator, first, second) * factor, unit))
            }
            (Built::Number(number, _), Built::Stream(input)) => {
                Ok(self.with_number(&sides, operator, number, true, input))
            }
            (Built::Stream(input), Built::Number(number, _)) => {
                if operator == Binary::Divide && number == 0.0 {
                    return self.argument(right, "a division by zero; divide by another number".into());
                }
                Ok(self.with_number(&sides, operator, number, false, input))
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
        first: Unit,
        second: Unit,
    ) -> Result<(Unit, f64), Error> {
        let symbol = operator.symbol();
        let wrong = |problem: String| Err(self.wrong(expression, Problem::Unit(problem)));
        let conditions = [first, second].iter().filter(|unit| **unit == Unit::Condition).count();
        match operator {
            Binary::And | Binary::Or if conditions < 2 => {
                wrong(format!("`{symbol}` joins two conditions; compare both sides first, such as `time > 5 ms`"))
            }
            Binary::And | Binary::Or => Ok((Unit::Condition, 1.0)),
            _ if conditions > 0 => wrong(format!(
                "`{symbol}` is for numbers, and a side is a condition; join conditions with `and` or `or`"
            )),
            Binary::Multiply | Binary::Divide => {
                let result = if operator == Binary::Multiply { first.times(second) } else { first.over(second) };
                match result {
                    Some(result) => Ok(result),
                    None => wrong("the unit of the result has an exponent above 127; use fewer factors".into()),
                }
            }
            _ if first != second => wrong(format!(
                "`{expression}` has {first} on the left and {second} on the right of `{symbol}`; give both sides the \
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

    fn with_number(&mut self, sides: &Sides, operator: Binary, number: f64, is_first: bool, input: NodeId) -> Built {
        let operation = Operation::WithNumber { operator, number, is_number_first: is_first, factor: sides.factor };
        let (unit, is_signed) = (sides.unit, sides.is_signed);
        let node = Node { operation, inputs: vec![input], unit, is_signed, ..self.node(input).clone() };
        Built::Stream(self.graph.add(node))
    }

    /// Joins two series by index. `buffer` is the side whose values may wait, and how many.
    fn join(
        &mut self,
        sides: &Sides,
        first: NodeId,
        second: NodeId,
        buffer: Option<(usize, u64)>,
    ) -> Result<NodeId, Error> {
        let (base, kind) = self.join_kind(sides, first, second, buffer)?;
        let (first_count, second_count) = (self.node(first).count.clone(), self.node(second).count.clone());
        let count = match &kind {
            JoinKind::Again { side: 0 } => second_count,
            JoinKind::Again { .. } => first_count,
            // The side that is never ahead has all joined values.
            JoinKind::Bounded(lead) if lead.first == 0 => first_count,
            JoinKind::Bounded(lead) if lead.second == 0 => second_count,
            _ => Arc::new(Count::Least(first_count, second_count)),
        };
        let operation = Operation::Join(Join { operator: sides.operator, factor: sides.factor, kind });
        let (unit, is_signed) = (sides.unit, sides.is_signed);
        Ok(self.graph.add(Node { operation, inputs: vec![first, second], unit, base, count, is_signed }))
    }

    /// Determines how two series are kept in step, and the clock of the result.
    fn join_kind(
        &mut self,
        sides: &Sides,
        first: NodeId,
        second: NodeId,
        buffer: Option<(usize, u64)>,
    ) -> Result<(usize, JoinKind), Error> {
        let (one, two) = (self.node(first), self.node(second));
        if one.base != two.base {
            if let (Base::Clock { clock, reading }, Base::Clock { clock: other, reading: other_reading }) =
                (&self.graph.bases[one.base], &self.graph.bases[two.base])
                && clock == other
            {
                let side = usize::from(other_reading > reading);
                return Ok((if side == 1 { one.base } else { two.base }, JoinKind::Again { side }));
            }
            return Err(self.different_clocks(sides));
        }
        let base = one.base;
        if let Some(lead) = one.count.lead(&two.count) {
            return Ok((base, JoinKind::Bounded(lead)));
        }
        let (Some(first_rate), Some(second_rate)) = (one.count.rate(), two.count.rate()) else {
            return Err(self.overflow(sides));
        };
        if first_rate == second_rate {
            return Err(self.overflow(sides));
        }
        let faster = usize::from(second_rate > first_rate);
        match buffer {
            Some((side, values)) if side == faster => Ok((base, JoinKind::Buffer { side, values })),
            _ => Err(self.unbounded(sides, [first, second], [first_rate, second_rate], faster, buffer)),
        }
    }

    fn place_of(&self, sides: &Sides) -> std::ops::Range<usize> {
        sides.written.map_or(0..self.text.len(), |(whole, ..)| whole.place.clone())
    }

    fn overflow(&self, sides: &Sides) -> Error {
        let problem = "the rates of the two sides are too large to be compared exactly (more than 62 bits); use smaller \
                       factors in `every`, `repeat` and `window`";
        Error::new(self.text, self.place_of(sides), Problem::Overflow(problem.into()))
    }

    fn different_clocks(&self, sides: &Sides) -> Error {
        let problem = match sides.written {
            Some((whole, left, right)) => format!(
                "`{left}` and `{right}` have different clocks, so their values have no common index; join the latest \
                 value instead: `{left} {} hold({right})`",
                match &whole.kind {
                    Kind::Binary(operator, ..) => operator.symbol(),
                    _ => ">",
                }
            ),
            None => "a window of time needs a series with a single clock; take the window before the join".into(),
        };
        Error::new(self.text, self.place_of(sides), Problem::Clocks(problem))
    }

    fn unbounded(
        &self,
        sides: &Sides,
        nodes: [NodeId; 2],
        rates: [Ratio; 2],
        faster: usize,
        buffer: Option<(usize, u64)>,
    ) -> Error {
        let (join, left, right, symbol) = match sides.written {
            Some((whole, left, right)) => match &whole.kind {
                Kind::Binary(operator, ..) => (whole.to_string(), left, right, operator.symbol()),
                _ => (whole.to_string(), left, right, "with"),
            },
            None => return self.overflow(sides),
        };
        if let Some((side, values)) = buffer.filter(|(side, _)| *side != faster) {
            let (wrong, right_one) = if side == 0 { (left, right) } else { (right, left) };
            let problem = format!(
                "the values that wait are those of `{right_one}`, not those of the buffered side; write \
                 `buffer({right_one}, {values})` and remove the `buffer` of `{wrong}`"
            );
            return Error::new(self.text, self.place_of(sides), Problem::Argument(problem));
        }
        // The operands bind at least as strongly as the operator, and a call binds more strongly than any operator.
        let call = |name: &str, more: &str| {
            let wrapped = |side: &Expression, index: usize| match index == faster {
                true => format!("{name}({side}{more})"),
                false => side.to_string(),
            };
            match symbol {
                "with" => format!("where({}, {})", wrapped(left, 0), wrapped(right, 1)),
                symbol => format!("{} {symbol} {}", wrapped(left, 0), wrapped(right, 1)),
            }
        };
        let factor = match self.node(nodes[faster]).operation {
            Operation::Repeat(n) => n,
            _ => 1,
        };
        let growth = rates[faster].minus(rates[1 - faster]).and_then(|growth| growth.over(factor));
        let paths = [0, 1].map(|side| (self.graph.path(nodes[side]), rates[side]));
        let problem = Unbounded {
            join,
            paths,
            growth: growth.unwrap_or(Ratio::ONE),
            is_before_repeat: factor > 1,
            hold: call("hold", ""),
            again: call("again", ""),
            buffer: call("buffer", ", 1000000"),
        };
        Error::new(self.text, self.place_of(sides), Problem::Unbounded(Box::new(problem)))
    }

    fn join_held(
        &mut self,
        sides: &Sides,
        operator: Binary,
        pace: NodeId,
        held: NodeId,
        is_held_first: bool,
    ) -> Result<Built, Error> {
        let (pace_base, held_base) = (self.node(pace).base, self.node(held).base);
        let mut inputs = vec![pace, held];
        let (clock, reading) = self.graph.clock_of(pace_base);
        let (held_clock, held_reading) = self.graph.clock_of(held_base);
        if reading != held_reading {
            let whole = sides.written.map(|(whole, ..)| whole).expect("a held side is written");
            return self.argument(
                whole,
                "`hold` and `again` cannot be on the two sides of one operator; use one of them".into(),
            );
        }
        // Within one clock, the numbers of the observations show which value of the held series is the latest.
        if pace_base != held_base && clock == held_clock {
            inputs.push(self.stamp(pace, Stamp::Number)?);
            inputs.push(self.stamp(held, Stamp::Number)?);
        }
        let operation = Operation::JoinHeld { operator, is_held_first, factor: sides.factor };
        let (unit, is_signed) = (sides.unit, sides.is_signed);
        let node = Node { operation, inputs, unit, is_signed, ..self.node(pace).clone() };
        Ok(Built::Stream(self.graph.add(node)))
    }

    /// Builds the series of the times or numbers of the observations at which the values of a series appear.
    fn stamp(&mut self, of: NodeId, stamp: Stamp) -> Result<NodeId, Error> {
        let node = self.node(of).clone();
        let input = node.inputs.first().copied();
        match node.operation {
            Operation::Series { .. } | Operation::Stamp(_) => {
                let operation = Operation::Stamp(stamp);
                Ok(self.graph.add(Node { operation, unit: Unit::ONE, is_signed: false, ..node }))
            }
            Operation::WithNumber { .. }
            | Operation::Negate
            | Operation::Not
            | Operation::Lag(_)
            | Operation::Ewma(_)
            | Operation::Running(_)
            | Operation::JoinHeld { .. } => self.stamp(node.inputs[0], stamp),
            Operation::Join(Join { kind: JoinKind::Again { side }, .. }) => self.stamp(node.inputs[1 - side], stamp),
            Operation::Join(_) => {
                let (first, second) = (self.stamp(node.inputs[0], stamp)?, self.stamp(node.inputs[1], stamp)?);
                self.later(first, second)
            }
            Operation::Compact => {
                let select = self.node(node.inputs[0]).clone();
                let stamps = self.stamp(node.inputs[0], stamp)?;
                let selected = self.select(None, stamps, select.inputs[1])?;
                Ok(self.compact(selected))
            }
            Operation::Every(_) | Operation::Drop(_) | Operation::Repeat(_) => {
                let stamps = self.stamp(node.inputs[0], stamp)?;
                Ok(self.graph.add(Node { inputs: vec![stamps], unit: Unit::ONE, is_signed: false, ..node }))
            }
            Operation::Window { length, step, .. } => {
                let stamps = self.stamp(node.inputs[0], stamp)?;
                let of_input = self.node(stamps).clone();
                // The same values as those of the last observation in each window.
                let count = Arc::new(Count::Drop(of_input.count.clone(), length - 1));
                let dropped = Node { operation: Operation::Drop(length - 1), inputs: vec![stamps], count, ..of_input };
                let dropped = self.graph.add(dropped);
                let operation = Operation::Every(step);
                Ok(self.graph.add(Node { operation, inputs: vec![dropped], unit: Unit::ONE, is_signed: false, ..node }))
            }
            Operation::Panes { length_ns, step_ns, .. } => {
                let stamps = self.stamp(input.unwrap_or(of), stamp)?;
                let operation = Operation::Panes { length_ns, step_ns, aggregate: Aggregate::Closing };
                let inputs = vec![stamps, node.inputs[1]];
                Ok(self.graph.add(Node { operation, inputs, unit: Unit::ONE, is_signed: false, ..node }))
            }
        }
    }

    fn later(&mut self, first: NodeId, second: NodeId) -> Result<NodeId, Error> {
        if first == second {
            return Ok(first);
        }
        let sides = Sides { operator: Joined::Later, factor: 1.0, unit: Unit::ONE, is_signed: false, written: None };
        self.join(&sides, first, second, None)
    }

    /// Joins a series with the condition of a `where`.
    fn select(
        &mut self,
        written: Option<(&Expression, &Expression, &Expression)>,
        input: NodeId,
        condition: NodeId,
    ) -> Result<NodeId, Error> {
        let Node { unit, is_signed, .. } = *self.node(input);
        self.join(&Sides { operator: Joined::Select, factor: 1.0, unit, is_signed, written }, input, condition, None)
    }

    fn compact(&mut self, selected: NodeId) -> NodeId {
        let node = self.node(selected).clone();
        let base = Base::Where { condition: node.inputs[1], count: node.count, base: node.base };
        let base = self.graph.base(base);
        let count = Arc::new(Count::Source);
        self.graph.add(Node {
            operation: Operation::Compact,
            inputs: vec![selected],
            base,
            count,
            ..self.node(selected).clone()
        })
    }

    fn call(&mut self, expression: &Expression, function: Function, arguments: &[Expression]) -> Result<Built, Error> {
        let (least, most) = match function {
            Function::Again
            | Function::Count
            | Function::Hold
            | Function::Max
            | Function::Mean
            | Function::Min
            | Function::PerSecond
            | Function::Sum => (1, 1),
            Function::Window => (2, 3),
            _ => (2, 2),
        };
        if !(least..=most).contains(&arguments.len()) {
            let (given, form, s) = (arguments.len(), function.form(), if arguments.len() == 1 { "" } else { "s" });
            let problem = format!("`{}` has {given} argument{s}; write it as `{form}`", function.name());
            return self.argument(expression, problem);
        }
        if function == Function::Quantile {
            let level = self.share(function, &arguments[0])?;
            return self.aggregate(&arguments[1], Aggregate::Quantile(level));
        }
        let first = &arguments[0];
        match function {
            Function::Again => {
                let outer = self.reading;
                self.graph.readings = self.graph.readings.max(1);
                self.reading = self.graph.readings;
                self.graph.readings += 1;
                let built = self.stream(first);
                self.reading = outer;
                built.map(Built::Stream)
            }
            Function::Hold => self.stream(first).map(Built::Held),
            Function::Buffer => {
                let node = self.stream(first)?;
                Ok(Built::Buffered(node, self.whole(function, &arguments[1], 1)?))
            }
            Function::Min => self.aggregate(first, Aggregate::Min),
            Function::Max => self.aggregate(first, Aggregate::Max),
            Function::Mean => self.aggregate(first, Aggregate::Mean),
            Function::Sum => self.aggregate(first, Aggregate::Sum),
            Function::Count => self.aggregate(first, Aggregate::Count),
            Function::PerSecond => self.per_second(first),
            Function::Where => {
                let (input, condition) = (self.stream(first)?, self.stream(&arguments[1])?);
                self.needs_condition(&arguments[1], condition)?;
                let selected = self.select(Some((expression, first, &arguments[1])), input, condition)?;
                Ok(Built::Stream(self.compact(selected)))
            }
            Function::Window => self.window(expression, arguments),
            _ => self.resampled(expression, function, arguments),
        }
    }

    /// Builds `every`, `repeat`, `lag`, `drop` or `ewma`.
    fn resampled(
        &mut self,
        expression: &Expression,
        function: Function,
        arguments: &[Expression],
    ) -> Result<Built, Error> {
        let input = self.stream(&arguments[0])?;
        let count = self.node(input).count.clone();
        let (operation, count) = match function {
            Function::Every => {
                let n = self.whole(function, &arguments[1], 1)?;
                (Operation::Every(n), if n == 1 { count } else { Arc::new(Count::Every(count, n)) })
            }
            Function::Repeat => {
                let n = self.whole(function, &arguments[1], 1)?;
                (Operation::Repeat(n), if n == 1 { count } else { Arc::new(Count::Repeat(count, n)) })
            }
            Function::Lag => (Operation::Lag(self.whole(function, &arguments[1], 0)?), count),
            Function::Drop => {
                let k = self.whole(function, &arguments[1], 0)?;
                (Operation::Drop(k), if k == 0 { count } else { Arc::new(Count::Drop(count, k)) })
            }
            _ => {
                self.needs_number(&arguments[0], input)?;
                (Operation::Ewma(self.share(function, &arguments[1])?), count)
            }
        };
        if matches!(operation, Operation::Every(1) | Operation::Repeat(1) | Operation::Lag(0) | Operation::Drop(0)) {
            return Ok(Built::Stream(input));
        }
        if let (Operation::Lag(k) | Operation::Drop(k), Some(all)) = (&operation, self.values_of(input))
            && *k >= all
        {
            let problem = format!(
                "`{expression}` has no values: the evidence has {all} values of `{}`; use a number below {all}",
                arguments[0]
            );
            return self.argument(&arguments[1], problem);
        }
        let node = Node { operation, inputs: vec![input], count, ..self.node(input).clone() };
        Ok(Built::Stream(self.add_checked(expression, node)?))
    }

    /// Adds a node if its rate can be computed exactly.
    fn add_checked(&mut self, expression: &Expression, node: Node) -> Result<NodeId, Error> {
        if node.count.rate().is_none() {
            let problem = format!(
                "the rate of `{expression}` is too large to be computed exactly (more than 62 bits); use smaller factors \
                 in `every`, `repeat` and `window`"
            );
            return Err(self.wrong(expression, Problem::Overflow(problem)));
        }
        Ok(self.graph.add(node))
    }

    /// Returns the number of values of a series, if the length of its evidence is known.
    fn values_of(&self, node: NodeId) -> Option<u64> {
        let Base::Clock { clock, .. } = self.graph.bases[self.node(node).base] else { return None };
        let (_, observations) = self.observations.iter().find(|(known, _)| *known == clock)?;
        Some(self.node(node).count.after(*observations))
    }

    fn needs_number(&self, expression: &Expression, node: NodeId) -> Result<(), Error> {
        if self.node(node).unit != Unit::Condition {
            return Ok(());
        }
        let problem = format!("`{expression}` is a condition; use `where` to select the values for which it is true");
        Err(self.wrong(expression, Problem::Unit(problem)))
    }

    /// Builds a window of values or of time.
    fn window(&mut self, expression: &Expression, arguments: &[Expression]) -> Result<Built, Error> {
        let input = self.stream(&arguments[0])?;
        self.needs_number(&arguments[0], input)?;
        let length = &arguments[1];
        if matches!(&length.kind, Kind::Number { unit: Unit::TIME, .. }) {
            let length_ns = self.time(length)?;
            let step_ns = arguments.get(2).map_or(Ok(length_ns), |step| self.time(step))?;
            if length_ns % step_ns != 0 || length_ns / step_ns > MOST_PANES {
                let problem = format!(
                    "a window of time consists of panes of one step each: use a step that divides the length, and at most \
                     {MOST_PANES} panes"
                );
                return self.argument(expression, problem);
            }
            return Ok(Built::Panes { input, length_ns, step_ns });
        }
        let values = self.whole(Function::Window, length, 1)?;
        let step = arguments.get(2).map_or(Ok(values), |step| self.whole(Function::Window, step, 1))?;
        if let Some(all) = self.values_of(input).filter(|all| values > *all) {
            let problem = format!(
                "the window of {values} values is longer than the evidence, which has {all} values of `{}`; use a window \
                 of at most {all} values",
                arguments[0]
            );
            return self.argument(length, problem);
        }
        Ok(Built::Window { input, length: values, step })
    }

    /// Builds an aggregate of a window, or of all values so far.
    fn aggregate(&mut self, argument: &Expression, aggregate: Aggregate) -> Result<Built, Error> {
        let built = self.build(argument)?;
        let (operation, mut node) = match built {
            Built::Window { input, length, step } => {
                let node = self.node(input).clone();
                let count = match (length, step) {
                    (1, 1) => node.count.clone(),
                    _ => Arc::new(Count::Window(node.count.clone(), length, step)),
                };
                let operation = Operation::Window { length, step, aggregate };
                (operation, Node { inputs: vec![input], count, ..node })
            }
            Built::Panes { input, length_ns, step_ns } => {
                let times = self.stamp(input, Stamp::Time)?;
                let node = self.node(input).clone();
                let base = self.graph.base(Base::Panes { length_ns, step_ns, count: node.count, base: node.base });
                let operation = Operation::Panes { length_ns, step_ns, aggregate };
                (
                    operation,
                    Node {
                        inputs: vec![input, times],
                        base,
                        count: Arc::new(Count::Source),
                        ..self.node(input).clone()
                    },
                )
            }
            Built::Stream(input) => {
                self.needs_number(argument, input)?;
                (Operation::Running(aggregate), Node { inputs: vec![input], ..self.node(input).clone() })
            }
            _ => return self.stream(argument).map(Built::Stream),
        };
        if aggregate == Aggregate::Count {
            (node.unit, node.is_signed) = (Unit::ONE, false);
        }
        node.operation = operation;
        Ok(Built::Stream(self.add_checked(argument, node)?))
    }

    /// Builds the rate of a sum or count over a window of time.
    fn per_second(&mut self, argument: &Expression) -> Result<Built, Error> {
        let input = self.stream(argument)?;
        let node = self.node(input).clone();
        let length_ns = match node.operation {
            Operation::Panes { length_ns, aggregate: Aggregate::Sum | Aggregate::Count, .. } => length_ns,
            _ => {
                let problem = format!(
                    "`per_second` needs a sum or a count of a window of time, such as `{}`",
                    Function::PerSecond.form()
                );
                return self.argument(argument, problem);
            }
        };
        let unit = node.unit.over(Unit::TIME);
        let (unit, factor) = match unit.filter(|(unit, _)| unit.symbol().is_some()) {
            Some(unit) => unit,
            None => {
                let problem = format!("`{argument}` is in {}; `per_second` is for counts and bytes", node.unit);
                return Err(self.wrong(argument, Problem::Unit(problem)));
            }
        };
        let number = length_ns as f64;
        let operation = Operation::WithNumber { operator: Binary::Divide, number, is_number_first: false, factor };
        Ok(Built::Stream(self.graph.add(Node { operation, inputs: vec![input], unit, ..node })))
    }

    /// Returns the value of an argument that must be a number, and its unit.
    fn number(&mut self, function: Function, argument: &Expression) -> Result<(f64, Unit), Error> {
        match self.build(argument)? {
            Built::Number(value, unit) => Ok((value, unit)),
            _ => {
                let problem = format!("`{argument}` is not a number; write it as `{}`", function.form());
                self.argument(argument, problem)
            }
        }
    }

    /// Returns the value of an argument that must be a whole number of at least `least`.
    fn whole(&mut self, function: Function, argument: &Expression, least: u64) -> Result<u64, Error> {
        let (value, unit) = self.number(function, argument)?;
        if unit != Unit::ONE {
            let problem = format!("`{argument}` has a unit; write a number of values, as in `{}`", function.form());
            return Err(self.wrong(argument, Problem::Unit(problem)));
        }
        if value.fract() != 0.0 || value < least as f64 || value > MOST_ARGUMENT {
            let (name, form) = (function.name(), function.form());
            let reason = match (function, value == 0.0) {
                (Function::Every, true) => " (it would divide the rate by zero)",
                (Function::Window, true) => " (a window of zero values has no aggregate)",
                _ => "",
            };
            let problem = format!(
                "`{argument}` is not accepted by `{name}`{reason}; use a whole number from {least} to 10^12, as in `{form}`"
            );
            return self.argument(argument, problem);
        }
        Ok(value as u64)
    }

    /// Returns the value of an argument that must be a share between 0 and 1.
    fn share(&mut self, function: Function, argument: &Expression) -> Result<f64, Error> {
        let (value, unit) = self.number(function, argument)?;
        let is_weight = function == Function::Ewma;
        if unit == Unit::ONE && (0.0..=1.0).contains(&value) && !(is_weight && value == 0.0) {
            return Ok(value);
        }
        let range = if is_weight { "above 0 and at most 1" } else { "from 0 to 1" };
        let problem = format!(
            "`{argument}` is not accepted by `{}`; use a number {range}, as in `{}`",
            function.name(),
            function.form()
        );
        self.argument(argument, problem)
    }

    /// Returns the value of an argument that must be a time, in nanoseconds.
    fn time(&mut self, argument: &Expression) -> Result<u64, Error> {
        let (value, unit) = self.number(Function::Window, argument)?;
        if unit == Unit::TIME && (1.0..=9e18).contains(&value.round()) {
            return Ok(value.round() as u64);
        }
        let problem =
            format!("`{argument}` is not a time of at least 1 ns; write it as `window(series, 10 s, step 1 s)`");
        self.argument(argument, problem)
    }
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
