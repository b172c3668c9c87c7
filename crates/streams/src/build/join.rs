//! Joins: the clocks and rates of both sides, and the values that wait.

use std::ops::Range;
use std::sync::Arc;

use super::{Builder, Built, Sides};
use crate::count::Count;
use crate::error::{Error, Problem};
use crate::expression::{Binary, Expression, Function, Kind};
use crate::graph::{Aggregate, Base, Join, JoinKind, Joined, Node, NodeId, Operation, Stamp};
use crate::ratio::Ratio;
use crate::refusal::{SUGGESTED_BUFFER, Unbounded, Way};
use crate::unit::Unit;
use crate::ways::RefusedJoin;

impl Builder<'_> {
    /// Joins two series by index. `buffer` is the side whose values may wait, and how many.
    pub(super) fn join(
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
    pub(super) fn join_kind(
        &mut self,
        sides: &Sides,
        first: NodeId,
        second: NodeId,
        buffer: Option<(usize, u64)>,
    ) -> Result<(usize, JoinKind), Error> {
        let (one, two) = (&self.graph.nodes[first], &self.graph.nodes[second]);
        if one.base != two.base {
            if let (Base::Clock { clock, reading }, Base::Clock { clock: other, reading: other_reading }) =
                (&self.graph.bases[one.base], &self.graph.bases[two.base])
                && clock == other
            {
                let side = usize::from(other_reading > reading);
                return Ok((if side == 1 { one.base } else { two.base }, JoinKind::Again { side }));
            }
            return Err(self.different_clocks(sides, [one.base, two.base]));
        }
        let base = one.base;
        if let Some(lead) = one.count.lead_within(&two.count, &mut self.evaluations) {
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

    pub(super) fn place_of(&self, sides: &Sides) -> Range<usize> {
        sides.written.map_or(0..self.text.len(), |(whole, ..)| whole.place.clone())
    }

    pub(super) fn overflow(&self, sides: &Sides) -> Error {
        let problem = "the rates of the two sides are too large to be compared exactly (more than 62 bits); use \
                       smaller factors in `every`, `repeat` and `window`";
        Error::new(self.text, self.place_of(sides), Problem::Overflow(problem.into()))
    }

    pub(super) fn different_clocks(&self, sides: &Sides, bases: [usize; 2]) -> Error {
        let [(_, reading), (_, other_reading)] = bases.map(|base| self.graph.clock_of(base));
        let problem = match sides.written {
            Some((whole, left, right)) => {
                let (left, right) = (left.without_buffer(), right.without_buffer());
                let way_out = match &whole.kind {
                    _ if reading != other_reading => "a second reading cannot follow a `where` or a window of time, \
                                                      so use `hold` without `again`"
                        .to_string(),
                    Kind::Binary(operator, ..) => {
                        let held = right.within(Function::Hold, &[]);
                        let joined = Expression::joined(left.clone(), *operator, held);
                        format!("join the latest value instead: `{joined}`")
                    }
                    _ => "use the latest value inside the condition, such as `where(series, series > hold(other))`"
                        .to_string(),
                };
                format!("`{left}` and `{right}` have different clocks, so their values have no common index; {way_out}")
            }
            None => "a window of time needs a series with a single clock; take the window before the join".into(),
        };
        Error::new(self.text, self.place_of(sides), Problem::Clocks(problem))
    }

    pub(super) fn unbounded(
        &mut self,
        sides: &Sides,
        nodes: [NodeId; 2],
        rates: [Ratio; 2],
        faster: usize,
        buffer: Option<(usize, u64)>,
    ) -> Error {
        let Some((whole, left, right)) = sides.written else { return self.overflow(sides) };
        // The expression with each side as the first argument of a call, if there is one.
        let call = |calls: [Option<(Function, u64)>; 2]| {
            let [first, second] = [(left, calls[0]), (right, calls[1])].map(|(side, call)| match call {
                Some((function @ (Function::Every | Function::Buffer), number)) => {
                    side.within(function, &[Expression::number(number)])
                }
                Some((function, _)) => side.within(function, &[]),
                None => side.clone(),
            });
            match &whole.kind {
                Kind::Binary(operator, ..) => Expression::joined(first, *operator, second),
                _ => first.within(Function::Where, &[second]),
            }
        };
        let longer = |function: Function, number: u64| {
            let mut calls = [None; 2];
            calls[faster] = Some((function, number));
            call(calls)
        };
        if let Some((_, values)) = buffer {
            let [left, right] = [left, right].map(|side| side.without_buffer().clone());
            let waiting = [&left, &right][faster].clone();
            let buffered = waiting.within(Function::Buffer, &[Expression::number(values)]);
            let right_way = match (&whole.kind, faster) {
                (Kind::Binary(operator, ..), 0) => Expression::joined(buffered, *operator, right),
                (Kind::Binary(operator, ..), _) => Expression::joined(left, *operator, buffered),
                _ => buffered,
            };
            let problem = format!("the values that wait are those of `{waiting}`; write `{right_way}`");
            return Error::new(self.text, self.place_of(sides), Problem::Argument(problem));
        }
        let is_operator = matches!(whole.kind, Kind::Binary(..));
        // A second reading has no index after a `where` or a window of time, and reads a single clock.
        let base = &self.graph.bases[self.node(nodes[faster]).base];
        let can_read_again = matches!(base, Base::Clock { .. }) && self.graph.clocks_of(nodes[faster]).len() == 1;
        // With `every` of the rate of the other side, both sides have the same rate.
        let every = steps_of(rates).map(|steps| call(steps.map(|n| (n > 1).then_some((Function::Every, n)))));
        let ways = [
            (Way::Hold, is_operator.then(|| longer(Function::Hold, 0))),
            (Way::Every, every),
            (Way::Again, can_read_again.then(|| longer(Function::Again, 0))),
            (Way::Buffer, is_operator.then(|| longer(Function::Buffer, SUGGESTED_BUFFER))),
        ];
        let ways = ways.into_iter().filter_map(|(way, expression)| Some((way, expression?))).collect();
        self.refused = Some(Box::new(RefusedJoin { join: whole.clone(), ways }));
        let (_, factor) = self.graph.before_repeat(nodes[faster]);
        let growth = rates[faster].minus(rates[1 - faster]).and_then(|growth| growth.over(factor));
        let paths = [0, 1].map(|side| (self.graph.path(nodes[side]), rates[side]));
        let problem = Unbounded {
            join: whole.to_string(),
            paths,
            growth: growth.unwrap_or(Ratio::ONE),
            is_before_repeat: factor > 1,
            value_bytes: self.value_bytes,
            ways: Vec::new(),
            other: None,
        };
        Error::new(self.text, self.place_of(sides), Problem::Unbounded(Box::new(problem)))
    }

    pub(super) fn join_held(
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
    pub(super) fn stamp(&mut self, of: NodeId, stamp: Stamp) -> Result<NodeId, Error> {
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
            Operation::Join(join) => {
                let (first, second) = (self.stamp(node.inputs[0], stamp)?, self.stamp(node.inputs[1], stamp)?);
                // The stamps of a side wait as long as its values, so they need a buffer of the same size.
                let buffer = match join.kind {
                    JoinKind::Buffer { side, values } => Some((side, values)),
                    _ => None,
                };
                self.later(first, second, buffer)
            }
            Operation::Compact => {
                let select = self.node(node.inputs[0]).clone();
                let stamps = self.stamp(node.inputs[0], stamp)?;
                let selected = self.select(None, stamps, select.inputs[1])?;
                // The condition is the same, so the values and their stamps have the same clock.
                Ok(self.graph.add(Node { inputs: vec![selected], unit: Unit::ONE, is_signed: false, ..node }))
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

    /// Adds the later one of two stamps. `buffer` is the side whose stamps may wait, and how many.
    fn later(&mut self, first: NodeId, second: NodeId, buffer: Option<(usize, u64)>) -> Result<NodeId, Error> {
        if first == second {
            return Ok(first);
        }
        let sides = Sides { operator: Joined::Later, factor: 1.0, unit: Unit::ONE, is_signed: false, written: None };
        self.join(&sides, first, second, buffer)
    }

    /// Joins a series with the condition of a `where`.
    pub(super) fn select(
        &mut self,
        written: Option<(&Expression, &Expression, &Expression)>,
        input: NodeId,
        condition: NodeId,
    ) -> Result<NodeId, Error> {
        let Node { unit, is_signed, .. } = *self.node(input);
        self.join(&Sides { operator: Joined::Select, factor: 1.0, unit, is_signed, written }, input, condition, None)
    }

    pub(super) fn compact(&mut self, selected: NodeId) -> NodeId {
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
}

/// Returns for each side the number n of `every(side, n)` that gives both sides the same rate.
fn steps_of([first, second]: [Ratio; 2]) -> Option<[u64; 2]> {
    let (above, below) = first.relative_to(second)?.parts();
    Some([u64::try_from(above).ok()?, u64::try_from(below).ok()?])
}
