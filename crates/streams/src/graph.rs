//! The operators of an expression as a graph, in which equal subexpressions are one node.

use std::sync::Arc;

use crate::count::{Count, Lead};
use crate::expression::Binary;
use crate::unit::Unit;

/// Index of a node in [`Graph::nodes`].
pub(crate) type NodeId = usize;

/// An operator with its inputs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub operation: Operation,
    pub inputs: Vec<NodeId>,
    pub unit: Unit,
    /// Index into [`Graph::bases`]: the clock whose ticks `count` counts.
    pub base: usize,
    pub count: Arc<Count>,
    /// `true` if a value can be negative.
    pub is_signed: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operation {
    /// A recorded series, by its index in the catalogue.
    Series {
        index: usize,
        name: String,
    },
    /// The time or the number of each observation. Not written by the user.
    Stamp(Stamp),
    /// An operator with a number on one side.
    WithNumber {
        operator: Binary,
        number: f64,
        /// Unit of the number.
        unit: Unit,
        is_number_first: bool,
        factor: f64,
    },
    Negate,
    Not,
    /// A join of two series by index.
    Join(Join),
    /// A join with the latest value of another series. The inputs are the series that sets the pace, the held series
    /// and, if their counts have no common base, the numbers of their observations.
    JoinHeld {
        operator: Binary,
        is_held_first: bool,
        factor: f64,
    },
    /// Removes the values for which the condition of `where` is not true.
    Compact,
    Every(u64),
    Repeat(u64),
    Lag(u64),
    Drop(u64),
    Ewma(f64),
    /// An aggregate of all values so far.
    Running(Aggregate),
    /// An aggregate of the last `length` values, after every `step` values.
    Window {
        length: u64,
        step: u64,
        aggregate: Aggregate,
    },
    /// An aggregate of a window of time, in panes. The inputs are the series and the times of its values.
    Panes {
        length_ns: u64,
        step_ns: u64,
        aggregate: Aggregate,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Join {
    pub operator: Joined,
    /// Factor for the result of a multiplication or division, which converts its unit.
    pub factor: f64,
    pub kind: JoinKind,
}

/// The way in which the two sides of a join are kept in step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum JoinKind {
    /// The leads are bounded.
    Bounded(Lead),
    /// The side with this index (0 or 1) is ahead, and at most `values` of its values wait.
    Buffer { side: usize, values: u64 },
    /// The side with this index reads the evidence a second time, as far as the other side needs.
    Again { side: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    Operator(Binary),
    /// The first value if the second is true, and otherwise a mark that the value is removed.
    Select,
    /// The greater of two numbers.
    Later,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// Time of the observation, in nanoseconds.
    Time,
    /// Number of the observation.
    Number,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Aggregate {
    Min,
    Max,
    Mean,
    Sum,
    Count,
    Quantile(f64),
    /// The value after the window. Only used for the times and numbers of observations.
    Closing,
}

/// A clock whose ticks are counted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Base {
    /// The observations of recorded series. `reading` is 0, or the number of an `again`.
    Clock { clock: usize, reading: usize },
    /// The observations for which a condition is true.
    Where { condition: NodeId, count: Arc<Count>, base: usize },
    /// The windows of time.
    Panes { length_ns: u64, step_ns: u64, count: Arc<Count>, base: usize },
}

/// All nodes of an expression. Inputs come before the nodes that use them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Graph {
    pub nodes: Vec<Node>,
    pub bases: Vec<Base>,
    /// Number of readings of the evidence.
    pub readings: usize,
}

impl Graph {
    /// Adds a node, or returns the equal node that exists.
    pub fn add(&mut self, node: Node) -> NodeId {
        self.nodes.iter().position(|known| *known == node).unwrap_or_else(|| {
            self.nodes.push(node);
            self.nodes.len() - 1
        })
    }

    /// Adds a clock, or returns the equal clock that exists.
    pub fn base(&mut self, base: Base) -> usize {
        self.bases.iter().position(|known| *known == base).unwrap_or_else(|| {
            self.bases.push(base);
            self.bases.len() - 1
        })
    }

    /// Returns the clock of the recorded series below this base, and the number of the reading.
    pub fn clock_of(&self, base: usize) -> (usize, usize) {
        match &self.bases[base] {
            Base::Clock { clock, reading } => (*clock, *reading),
            Base::Where { base, .. } | Base::Panes { base, .. } => self.clock_of(*base),
        }
    }

    /// Returns the clocks of all recorded series on which a node depends, in ascending order.
    pub fn clocks_of(&self, node: NodeId) -> Vec<usize> {
        let mut is_used = vec![false; self.nodes.len()];
        is_used[node] = true;
        let mut clocks = Vec::new();
        // Inputs come before the nodes that use them.
        for index in (0..=node).rev() {
            if is_used[index] {
                clocks.push(self.clock_of(self.nodes[index].base).0);
                self.nodes[index].inputs.iter().for_each(|input| is_used[*input] = true);
            }
        }
        clocks.sort_unstable();
        clocks.dedup();
        clocks
    }

    /// Returns the node before the operators `repeat` at the end of a path, and the number of repetitions.
    pub fn before_repeat(&self, mut node: NodeId) -> (NodeId, u64) {
        let mut factor = 1;
        while let Operation::Repeat(n) = self.nodes[node].operation {
            factor *= n;
            node = self.nodes[node].inputs[0];
        }
        (node, factor)
    }

    /// Returns the operators on the path from the recorded series to a node, such as `time → every 2 → repeat 2`.
    pub fn path(&self, node: NodeId) -> String {
        let mut names = Vec::new();
        let mut at = node;
        loop {
            let node = &self.nodes[at];
            // The compacting step belongs to the `where` before it.
            if !matches!(node.operation, Operation::Join(Join { operator: Joined::Select, .. })) {
                names.push(node.operation.name());
            }
            match node.inputs.first() {
                Some(input) => at = *input,
                None => break,
            }
        }
        names.reverse();
        names.join(" → ")
    }
}

impl Operation {
    /// Returns a short name with the arguments, without the inputs.
    pub fn name(&self) -> String {
        match self {
            Operation::Series { name, .. } => name.clone(),
            Operation::Stamp(Stamp::Time) => "times of the observations".into(),
            Operation::Stamp(Stamp::Number) => "numbers of the observations".into(),
            Operation::WithNumber { operator, number, unit, is_number_first, .. } => match is_number_first {
                true => format!("{} {}", unit.written(*number), operator.symbol()),
                false => format!("{} {}", operator.symbol(), unit.written(*number)),
            },
            Operation::Negate => "-".into(),
            Operation::Not => "not".into(),
            Operation::Join(join) => join.operator.symbol().into(),
            Operation::JoinHeld { operator, .. } => format!("{} hold", operator.symbol()),
            Operation::Compact => "where".into(),
            Operation::Every(n) => format!("every {n}"),
            Operation::Repeat(n) => format!("repeat {n}"),
            Operation::Lag(k) => format!("lag {k}"),
            Operation::Drop(k) => format!("drop {k}"),
            Operation::Ewma(weight) => format!("ewma {weight}"),
            Operation::Running(aggregate) => format!("{} so far", aggregate.name()),
            Operation::Window { length, step, aggregate } => {
                format!("{} of window {length} step {step}", aggregate.name())
            }
            Operation::Panes { length_ns, step_ns, aggregate } => {
                format!("{} of window {} step {}", aggregate.name(), time(*length_ns), time(*step_ns))
            }
        }
    }
}

/// Writes a time with its unit.
pub(crate) fn time(ns: u64) -> String {
    Unit::TIME.written(ns as f64)
}

impl Joined {
    pub fn symbol(self) -> &'static str {
        match self {
            Joined::Operator(operator) => operator.symbol(),
            Joined::Select => "where",
            Joined::Later => "later of",
        }
    }
}

impl Aggregate {
    pub fn name(self) -> String {
        match self {
            Aggregate::Min => "min".into(),
            Aggregate::Max => "max".into(),
            Aggregate::Mean => "mean".into(),
            Aggregate::Sum => "sum".into(),
            Aggregate::Count => "count".into(),
            Aggregate::Quantile(level) => format!("quantile {level}"),
            Aggregate::Closing => "closing".into(),
        }
    }
}
