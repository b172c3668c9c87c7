//! The state of each step, and its size.

use super::RunError;
use super::accumulator::Accumulator;
use super::cursor::SlidingCursor;
use super::held::HeldState;
use super::join::JoinState;
use super::memory::filled;
use super::panes::{Panes, carries};
use super::quantiles::QuantileWindow;
use super::ring::Ring;
use super::window::{DisjointWindow, SlidingWindow};
use crate::graph::{Aggregate, Join, JoinKind, Operation};
use crate::plan::{Plan, Step};
use crate::table::{FlatTable, VALUES_PER_CARRY};

/// Most values of a window whose quantiles are exact.
pub const MOST_EXACT: u64 = 16_384;

/// The mark of a value that `where` removes. It is a NaN that no operator computes.
pub(crate) const REMOVED: f64 = f64::from_bits(0x7ff8_0072_656d_6f76);

/// The mark of a value that `where` removes because its condition is null.
pub(crate) const UNDECIDED: f64 = f64::from_bits(0x7ff8_756e_6465_6331);

/// The average of no values. It differs from the NaN that the processor computes, such as ∞ − ∞.
pub(crate) const NO_VALUE: f64 = f64::from_bits(0x7ff8_006e_6f6e_6531);

/// Values between two steps: one buffer for each lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    pub values: [Box<[f64]>; 2],
    pub len: usize,
}

impl Slot {
    pub fn new(capacity: u64, lanes: usize) -> Result<Slot, RunError> {
        let second = if lanes == 2 { filled(capacity as usize, 0.0)? } else { Box::default() };
        Ok(Slot { values: [filled(capacity as usize, 0.0)?, second], len: 0 })
    }
}

/// The method by which a quantile is computed, with its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sketch {
    Exact { values: u64 },
    ExactSliding { values: u64 },
    Table { is_signed: bool, carries: u64 },
    TableSliding { is_signed: bool, carries: u64, values: u64 },
}

impl Sketch {
    fn bytes(self) -> u64 {
        match self {
            Sketch::Exact { values } => values * 8,
            Sketch::ExactSliding { values } => SlidingCursor::bytes(values),
            Sketch::Table { is_signed, carries } => FlatTable::bytes(is_signed, carries),
            Sketch::TableSliding { is_signed, carries, values } => {
                FlatTable::bytes(is_signed, carries).saturating_add(values.saturating_mul(4))
            }
        }
    }
}

/// Returns the method for the quantile of a step.
pub(crate) fn sketch_of(plan: &Plan, step: &Step) -> Sketch {
    let node = &plan.graph.nodes[step.node];
    let is_signed = node.is_signed;
    match node.operation {
        Operation::Window { length, step, .. } => match (length <= MOST_EXACT, step < length) {
            (true, false) => Sketch::Exact { values: length },
            (true, true) => Sketch::ExactSliding { values: length },
            (false, false) => Sketch::Table { is_signed, carries: length / VALUES_PER_CARRY },
            (false, true) => Sketch::TableSliding { is_signed, carries: length / VALUES_PER_CARRY, values: length },
        },
        _ => Sketch::Table { is_signed, carries: carries(is_signed, plan.options.is_endless) },
    }
}

/// Returns the number of values that can wait in the join of a step.
pub(crate) fn ring_of(plan: &Plan, step: &Step) -> u64 {
    let node = &plan.graph.nodes[step.node];
    let Operation::Join(Join { kind, .. }) = &node.operation else { return 0 };
    let [first, second] = [step.inputs[0].factor.max(1), step.inputs[1].factor.max(1)];
    match kind {
        JoinKind::Bounded(lead) => lead.first.div_ceil(first).max(lead.second.div_ceil(second)),
        JoinKind::Buffer { values, .. } => *values,
        JoinKind::Again { side } => plan.bursts[&node.inputs[*side]].saturating_sub(1).div_ceil([first, second][*side]),
    }
}

/// Returns the size in bytes of the buffers and states of a step, for one lane.
pub(crate) fn state_bytes(plan: &Plan, step: &Step) -> u64 {
    let node = &plan.graph.nodes[step.node];
    match node.operation {
        Operation::Join(_) => ring_of(plan, step).saturating_mul(8),
        Operation::JoinHeld { .. } | Operation::Ewma(_) => 8,
        Operation::Lag(k) => k.saturating_mul(8),
        Operation::Running(Aggregate::Quantile(_)) => sketch_of(plan, step).bytes(),
        Operation::Running(aggregate) => 8 * Accumulator::numbers(aggregate),
        Operation::Window { aggregate: Aggregate::Quantile(_), .. } => sketch_of(plan, step).bytes(),
        Operation::Window { length, step, aggregate } if step >= length => 8 * Accumulator::numbers(aggregate),
        Operation::Window { length, step, aggregate } => SlidingWindow::bytes(aggregate, length, step),
        Operation::Panes { length_ns, step_ns, aggregate } => {
            Panes::bytes(aggregate, length_ns / step_ns, node.is_signed, plan.options.is_endless)
        }
        _ => 0,
    }
}

/// Returns the size in bytes of the list of steps and slots.
pub(crate) fn step_bytes(plan: &Plan) -> u64 {
    let states = plan.steps.len() * size_of::<State>();
    let slots = plan.slots.len() * size_of::<Slot>();
    let readings = plan.readings() * size_of::<super::engine::Place>();
    (states + slots + readings) as u64
}

/// The state of a step. Operators that treat values one by one have a state for each lane.
#[derive(Clone, Debug)]
pub(crate) enum State {
    Nothing,
    /// Values until the next one that is kept.
    Every(u64),
    /// Values that are still to be dropped.
    Drop(u64),
    Lag(Lanes<Ring>),
    /// The average of each lane.
    Ewma(Box<[f64]>),
    Running(Lanes<Accumulator>),
    Disjoint(Lanes<DisjointWindow>),
    Sliding(Lanes<SlidingWindow>),
    Quantiles(Lanes<QuantileWindow>),
    Panes(Lanes<Panes>),
    Join(JoinState),
    Held(HeldState),
}

/// A value for each lane that is used.
pub(crate) type Lanes<T> = [Option<T>; 2];

fn lanes<T>(count: usize, make: impl Fn() -> Result<T, RunError>) -> Result<Lanes<T>, RunError> {
    Ok([Some(make()?), if count == 2 { Some(make()?) } else { None }])
}

impl State {
    /// Allocates the buffers and states of a step.
    pub fn new(plan: &Plan, step: &Step) -> Result<State, RunError> {
        let (node, count) = (&plan.graph.nodes[step.node], plan.lanes());
        let quantiles = |level: f64, length: u64, every: u64| {
            let sketch = sketch_of(plan, step);
            lanes(count, || QuantileWindow::new(level, length, every, sketch)).map(State::Quantiles)
        };
        match node.operation {
            Operation::Every(_) => Ok(State::Every(0)),
            Operation::Drop(k) => Ok(State::Drop(k)),
            Operation::Lag(k) => {
                let ring = || {
                    let mut ring = Ring::new(k)?;
                    ring.fill(f64::NAN);
                    Ok(ring)
                };
                lanes(count, ring).map(State::Lag)
            }
            Operation::Ewma(_) => filled(count, NO_VALUE).map(State::Ewma),
            Operation::Running(Aggregate::Quantile(level)) => quantiles(level, 1, 1),
            Operation::Running(aggregate) => lanes(count, || Accumulator::new(aggregate)).map(State::Running),
            Operation::Window { length, step, aggregate: Aggregate::Quantile(level) } => quantiles(level, length, step),
            Operation::Window { length, step, aggregate } if step >= length => {
                lanes(count, || DisjointWindow::new(aggregate, length, step)).map(State::Disjoint)
            }
            Operation::Window { length, step, aggregate } => {
                lanes(count, || SlidingWindow::new(aggregate, length, step)).map(State::Sliding)
            }
            Operation::Panes { length_ns, step_ns, aggregate } => {
                let is_endless = plan.options.is_endless;
                let panes = || Panes::new(aggregate, length_ns / step_ns, step_ns, node.is_signed, is_endless);
                lanes(count, panes).map(State::Panes)
            }
            Operation::Join(_) => JoinState::new(ring_of(plan, step), count).map(State::Join),
            Operation::JoinHeld { .. } => HeldState::new(count).map(State::Held),
            Operation::Series { .. }
            | Operation::Stamp(_)
            | Operation::WithNumber { .. }
            | Operation::Negate
            | Operation::Not
            | Operation::Compact
            | Operation::Repeat(_) => Ok(State::Nothing),
        }
    }
}
