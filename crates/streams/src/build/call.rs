//! Calls of functions and their arguments.

use std::sync::Arc;

use super::{Builder, Built, MOST_ARGUMENT, MOST_PANES};
use crate::count::Count;
use crate::describe::grouped;
use crate::error::{Error, Problem};
use crate::expression::{Binary, Expression, Function};
use crate::graph::{Aggregate, Base, Node, NodeId, Operation, Stamp, time};
use crate::unit::Unit;

impl Builder<'_> {
    pub(super) fn call(
        &mut self,
        expression: &Expression,
        function: Function,
        arguments: &[Expression],
    ) -> Result<Built, Error> {
        let (least, most) = match function {
            Function::Again
            | Function::Count
            | Function::Hold
            | Function::Max
            | Function::Mean
            | Function::Min
            | Function::PerSecond
            | Function::Sum
            | Function::WithGaps => (1, 1),
            Function::Window => (2, 3),
            _ => (2, 2),
        };
        if !(least..=most).contains(&arguments.len()) {
            let (given, form, s) = (arguments.len(), function.form(), if arguments.len() == 1 { "" } else { "s" });
            let problem = format!("`{}` has {given} argument{s}; write it as `{form}`", function.name());
            return self.argument(expression, problem);
        }
        if let Some(order) = in_order(function, arguments) {
            return self.exchanged(expression, function, &order);
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
                let node = built?;
                if self.graph.clocks_of(node).len() > 1 {
                    let problem = format!(
                        "`{first}` has series with different clocks, and `again` reads a single clock; put `again` \
                         around a series with one clock"
                    );
                    return self.argument(first, problem);
                }
                Ok(Built::Stream(node))
            }
            Function::WithGaps => {
                let outer = std::mem::replace(&mut self.accepts_gaps, true);
                let built = self.stream(first);
                self.accepts_gaps = outer;
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
                if self.node(input).unit == Unit::Condition && self.node(condition).unit != Unit::Condition {
                    return self.exchanged(expression, function, &[arguments[1].clone(), first.clone()]);
                }
                self.needs_condition(&arguments[1], condition)?;
                let selected = self.select(Some((expression, first, &arguments[1])), input, condition)?;
                Ok(Built::Stream(self.compact(selected)))
            }
            Function::Window => self.window(expression, arguments),
            _ => self.resampled(expression, function, arguments),
        }
    }

    /// Refuses a call whose arguments are in the wrong order. `order` has them in the right order.
    fn exchanged(&self, expression: &Expression, function: Function, order: &[Expression]) -> Result<Built, Error> {
        let right = order[0].within(function, &order[1..]);
        self.argument(
            expression,
            format!("the arguments of `{}` are in the wrong order; write `{right}`", function.name()),
        )
    }

    /// Builds `every`, `repeat`, `lag`, `drop` or `ewma`.
    pub(super) fn resampled(
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
                arguments[0],
                all = grouped(all)
            );
            return self.argument(&arguments[1], problem);
        }
        let node = Node { operation, inputs: vec![input], count, ..self.node(input).clone() };
        Ok(Built::Stream(self.add_checked(expression, node)?))
    }

    /// Adds a node if its rate can be computed exactly.
    pub(super) fn add_checked(&mut self, expression: &Expression, node: Node) -> Result<NodeId, Error> {
        if node.count.rate().is_none() {
            let problem = format!(
                "the rate of `{expression}` is too large to be computed exactly (more than 62 bits); use smaller \
                 factors in `every`, `repeat` and `window`"
            );
            return Err(self.wrong(expression, Problem::Overflow(problem)));
        }
        Ok(self.graph.add(node))
    }

    /// Returns the number of values of a series, if the length of its evidence is known.
    pub(super) fn values_of(&self, node: NodeId) -> Option<u64> {
        let Base::Clock { clock, .. } = self.graph.bases[self.node(node).base] else { return None };
        let (_, observations) = self.observations.iter().find(|(known, _)| *known == clock)?;
        Some(self.node(node).count.after(*observations))
    }

    pub(super) fn needs_number(&self, expression: &Expression, node: NodeId) -> Result<(), Error> {
        if self.node(node).unit != Unit::Condition {
            return Ok(());
        }
        let problem = format!("`{expression}` is a condition; use `where` to select the values for which it is true");
        Err(self.wrong(expression, Problem::Unit(problem)))
    }

    /// Builds a window of values or of time.
    pub(super) fn window(&mut self, expression: &Expression, arguments: &[Expression]) -> Result<Built, Error> {
        let input = self.stream(&arguments[0])?;
        self.needs_number(&arguments[0], input)?;
        let length = &arguments[1];
        if let Some(step) = arguments.get(2)
            && matches!(self.build(step)?, Built::Number(0.0, _))
        {
            let problem = format!(
                "the step `{step}` of the window is zero, so the window would not move; use a step above zero, as in \
                 `{}`",
                Function::Window.form()
            );
            return self.argument(step, problem);
        }
        if matches!(self.build(length)?, Built::Number(_, Unit::TIME)) {
            let length_ns = self.time(length, "length")?;
            let step_ns = arguments.get(2).map_or(Ok(length_ns), |step| self.time(step, "step"))?;
            if length_ns % step_ns != 0 || length_ns / step_ns > MOST_PANES {
                let problem = format!(
                    "a window of time consists of panes of one step each: use a step that divides the length, and \
                     at most {} panes",
                    grouped(MOST_PANES)
                );
                return self.argument(expression, problem);
            }
            if let Some([first_ns, last_ns]) = self.times_of(input)
                && last_ns / step_ns - first_ns / step_ns < length_ns / step_ns
            {
                let problem = format!(
                    "no window of {} ends before the last observation of `{}`, which is {} after the first; use a shorter \
                     window",
                    time(length_ns),
                    arguments[0],
                    time(last_ns - first_ns)
                );
                return self.argument(length, problem);
            }
            return Ok(Built::Panes { input, length_ns, step_ns });
        }
        let values = self.whole(Function::Window, length, 1)?;
        let step = arguments.get(2).map_or(Ok(values), |step| self.whole(Function::Window, step, 1))?;
        if step < values && values > u64::from(u32::MAX) {
            let problem = format!(
                "an overlapping window has at most {} values; use a shorter window, or a step of at least its length",
                grouped(u32::MAX.into())
            );
            return self.argument(length, problem);
        }
        if let Some(all) = self.values_of(input).filter(|all| values > *all) {
            let problem = format!(
                "the window of {} values is longer than the evidence, which has {all} values of `{}`; use a \
                 window of at most {all} values",
                grouped(values),
                arguments[0],
                all = grouped(all)
            );
            return self.argument(length, problem);
        }
        Ok(Built::Window { input, length: values, step })
    }

    /// Builds an aggregate of a window, or of all values so far.
    pub(super) fn aggregate(&mut self, argument: &Expression, aggregate: Aggregate) -> Result<Built, Error> {
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
    pub(super) fn per_second(&mut self, argument: &Expression) -> Result<Built, Error> {
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
        let operation = Operation::WithNumber {
            operator: Binary::Divide,
            number,
            unit: Unit::TIME,
            is_number_first: false,
            factor,
        };
        Ok(Built::Stream(self.graph.add(Node { operation, inputs: vec![input], unit, ..node })))
    }

    /// Returns the value of an argument that must be a number, and its unit.
    pub(super) fn number(&mut self, function: Function, argument: &Expression) -> Result<(f64, Unit), Error> {
        match self.build(argument)? {
            Built::Number(value, unit) => Ok((value, unit)),
            _ => {
                let problem = format!("`{argument}` is not a number; write it as `{}`", function.form());
                self.argument(argument, problem)
            }
        }
    }

    /// Returns the value of an argument that must be a whole number of at least `least`.
    pub(super) fn whole(&mut self, function: Function, argument: &Expression, least: u64) -> Result<u64, Error> {
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
                "`{argument}` is not accepted by `{name}`{reason}; use a whole number from {least} to 10^12, as in \
                 `{form}`"
            );
            return self.argument(argument, problem);
        }
        Ok(value as u64)
    }

    /// Returns the value of an argument that must be a share between 0 and 1.
    pub(super) fn share(&mut self, function: Function, argument: &Expression) -> Result<f64, Error> {
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

    /// Returns the times of the first and of the last observation below a series, if they are known.
    fn times_of(&self, node: NodeId) -> Option<[u64; 2]> {
        let (clock, _) = self.graph.clock_of(self.node(node).base);
        self.times_ns.iter().find(|(known, _)| *known == clock).map(|(_, times_ns)| *times_ns)
    }

    /// Returns the length or the step of a window of time, in nanoseconds. `name` tells which of them it is.
    fn time(&mut self, argument: &Expression, name: &str) -> Result<u64, Error> {
        let (value, unit) = self.number(Function::Window, argument)?;
        if unit == Unit::TIME && (1.0..=9e18).contains(&value.round()) {
            return Ok(value.round() as u64);
        }
        let problem = format!(
            "the {name} `{argument}` of the window is not a time of at least 1 ns; write it as `window(series, 10 s, \
             step 1 s)`"
        );
        self.argument(argument, problem)
    }
}

/// Returns the arguments of a call in the right order, if a number is in the place of the series and the other way
/// round.
fn in_order(function: Function, arguments: &[Expression]) -> Option<Vec<Expression>> {
    let is_number_first = function == Function::Quantile;
    let is_resampling = matches!(
        function,
        Function::Buffer
            | Function::Drop
            | Function::Every
            | Function::Ewma
            | Function::Lag
            | Function::Repeat
            | Function::Window
    );
    let [first, second, ..] = arguments else { return None };
    let is_exchanged = first.is_number() != is_number_first && second.is_number() == is_number_first;
    ((is_number_first || is_resampling) && is_exchanged).then(|| {
        let mut order = arguments.to_vec();
        order.swap(0, 1);
        order
    })
}
