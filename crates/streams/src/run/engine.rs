//! Runs the steps of a plan, block by block.

use std::fmt;
use std::ops::Range;

use super::RunError;
use super::arithmetic::operated;
use super::evidence::{Advance, Evidence};
use super::held::Order;
use super::memory::filled;
use super::state::{NO_VALUE, REMOVED, Slot, State, UNDECIDED};
use crate::graph::{Join, JoinKind, NodeId, Operation, Stamp};
use crate::plan::{Input, Plan, Step, StepKind};

/// A run of a plan.
///
/// ```
/// use ascertain_streams::{Engine, OneClock, Plan, Recorded, Unit};
///
/// let plan = Plan::new("mean(window(time, 2))", &OneClock::new(&[("time", Unit::TIME)]))?;
/// let mut evidence = Recorded::new(&[&[1.0, 3.0, 10.0, 20.0]]);
/// let mut means = Vec::new();
/// let mut engine = Engine::new(&plan)?;
/// engine.run(&mut evidence, |results| {
///     means.extend_from_slice(results.lows);
///     true
/// })?;
/// assert_eq!(means, [2.0, 15.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Engine<'p> {
    plan: &'p Plan,
    states: Box<[State]>,
    slots: Box<[Slot]>,
    places: Box<[Place]>,
    undecided: u64,
}

/// The state of a run without its plan. A program can keep it between observations, next to the plan.
#[derive(Clone, Debug)]
pub struct EngineState {
    states: Box<[State]>,
    slots: Box<[Slot]>,
    places: Box<[Place]>,
    undecided: u64,
}

/// The place of a reading in the evidence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The last step forward.
    advance: Advance,
    /// Number of observations before the last step forward.
    before: u64,
    /// `true` if a reading other than the first has reached the end of the evidence.
    has_ended: bool,
}

/// Some results of a run, in their order. A null is NaN.
#[derive(Clone, Copy, Debug)]
pub struct Results<'a> {
    /// The results, or their lower bounds.
    pub lows: &'a [f64],
    /// The upper bounds. They equal `lows` unless the plan has ranges.
    pub highs: &'a [f64],
}

/// The reason why a run ended early: the evidence could not be read, or the plan could not go on.
#[derive(Debug)]
pub enum Failure<E> {
    /// The evidence could not be read.
    Evidence(E),
    /// The plan could not go on.
    Run(RunError),
}

impl<E> From<RunError> for Failure<E> {
    fn from(error: RunError) -> Failure<E> {
        Failure::Run(error)
    }
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Evidence(error) => error.fmt(f),
            Failure::Run(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error> std::error::Error for Failure<E> {}

impl<'p> Engine<'p> {
    /// Allocates the memory that the plan has announced. Nothing is allocated afterwards.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(plan: &'p Plan) -> Result<Engine<'p>, RunError> {
        let mut states = filled(plan.steps.len(), State::Nothing)?;
        for (state, step) in states.iter_mut().zip(&plan.steps) {
            if step.kind == StepKind::Node {
                *state = State::new(plan, step)?;
            }
        }
        let mut slots = filled(plan.slots.len(), Slot::default())?;
        for (slot, values) in slots.iter_mut().zip(&plan.slots) {
            *slot = Slot::new(*values, plan.lanes())?;
        }
        let start = Place { advance: Advance { clock: 0, observations: 0 }, before: 0, has_ended: false };
        Ok(Engine { plan, states, slots, places: filled(plan.readings(), start)?, undecided: 0 })
    }

    /// Goes on with a run. The state must come from a run of the same plan.
    #[must_use]
    pub fn resume(plan: &'p Plan, state: EngineState) -> Engine<'p> {
        let EngineState { states, slots, places, undecided } = state;
        Engine { plan, states, slots, places, undecided }
    }

    /// Returns the state of the run, for [`resume`](Engine::resume).
    #[must_use]
    pub fn pause(self) -> EngineState {
        let Engine { states, slots, places, undecided, .. } = self;
        EngineState { states, slots, places, undecided }
    }

    /// Returns the number of values that were left out because the condition of a `where` was null for them.
    #[must_use]
    pub fn undecided(&self) -> u64 {
        self.undecided
    }

    /// Reads the evidence to its end. Calls `observe` after each block with its results, of which there may be none. If
    /// `observe` returns `false`, the run ends.
    ///
    /// # Errors
    /// If the evidence cannot be read, or a buffer or table is full.
    pub fn run<E: Evidence>(
        &mut self,
        evidence: &mut E,
        mut observe: impl FnMut(Results) -> bool,
    ) -> Result<(), Failure<E::Error>> {
        let output = self.plan.steps.last().map_or(0, |step| step.output);
        loop {
            let most = self.observations_of_block();
            if self.advance(evidence, 0, None, most)? == 0 {
                return Ok(());
            }
            self.steps(evidence, 0..self.plan.steps.len())?;
            let slot = &self.slots[output];
            let lows = &slot.values[0][..slot.len];
            let highs = if self.plan.lanes() == 2 { &slot.values[1][..slot.len] } else { lows };
            if !observe(Results { lows, highs }) {
                return Ok(());
            }
        }
    }

    /// Returns the most observations in the next block. They are so few that a buffer of a stated size can become full
    /// only in a block of a single observation. The results and errors therefore do not depend on the size of blocks.
    fn observations_of_block(&self) -> usize {
        let room = |(step, growth): &(usize, u64)| match &self.states[*step] {
            State::Join(join) => join.room() / growth,
            _ => u64::MAX,
        };
        let most = self.plan.buffers.iter().map(room).min().unwrap_or(u64::MAX);
        self.plan.block.min(most.max(1)) as usize
    }

    fn advance<E: Evidence>(
        &mut self,
        evidence: &mut E,
        reading: usize,
        clock: Option<usize>,
        most: usize,
    ) -> Result<usize, Failure<E::Error>> {
        let advance = evidence.advance(reading, clock, most).map_err(Failure::Evidence)?;
        let place = &mut self.places[reading];
        place.before += place.advance.observations as u64;
        place.advance = advance;
        Ok(advance.observations)
    }

    /// Executes some steps for the current observations.
    fn steps<E: Evidence>(&mut self, evidence: &mut E, range: Range<usize>) -> Result<(), Failure<E::Error>> {
        let mut at = range.start;
        while at < range.end {
            let step = self.plan.steps[at];
            match step.kind {
                StepKind::Node => {
                    self.step(evidence, at, &step)?;
                    at += 1;
                }
                StepKind::Again { end, reading } => {
                    self.read_again(evidence, at, &step, end, reading)?;
                    at = end;
                }
            }
        }
        Ok(())
    }

    /// Reads the evidence again until the join has a partner for each value of its other side.
    fn read_again<E: Evidence>(
        &mut self,
        evidence: &mut E,
        at: usize,
        step: &Step,
        end: usize,
        reading: usize,
    ) -> Result<(), Failure<E::Error>> {
        let node = &self.plan.graph.nodes[step.node];
        let Operation::Join(Join { kind: JoinKind::Again { side }, .. }) = node.operation else { return Ok(()) };
        let source = &self.plan.graph.nodes[node.inputs[side]];
        let (clock, _) = self.plan.graph.clock_of(source.base);
        // The join's own step comes right after the steps that are repeated.
        let join = &self.plan.steps[end];
        let other = join.inputs[1 - side];
        let State::Join(state) = &self.states[end] else { return Ok(()) };
        let fresh = self.slots[other.slot].len as u64 * other.factor + state.waiting(1 - side, other.factor);
        let needed = state.results() + fresh;
        self.slots[step.output].len = 0;
        if needed == 0 {
            return Ok(());
        }
        let observations = source.count.observation_of(needed - 1) + 1;
        loop {
            let place = self.places[reading];
            let read = place.before + place.advance.observations as u64;
            if read >= observations {
                return Ok(());
            }
            let most = (observations - read).min(self.plan.block) as usize;
            if self.advance(evidence, reading, Some(clock), most)? == 0 {
                self.places[reading].has_ended = true;
                return Ok(());
            }
            self.steps(evidence, at + 1..end)?;
            self.collect(step.inputs[0], step.output);
        }
    }

    /// Appends the values of one slot to another.
    fn collect(&mut self, input: Input, output: usize) {
        let mut collected = std::mem::take(&mut self.slots[output]);
        let slot = &self.slots[input.slot];
        for lane in 0..self.plan.lanes() {
            collected.values[lane][collected.len..collected.len + slot.len]
                .copy_from_slice(&slot.values[lane][..slot.len]);
        }
        collected.len += slot.len;
        self.slots[output] = collected;
    }

    /// Executes a step for the current observations.
    fn step<E: Evidence>(&mut self, evidence: &E, at: usize, step: &Step) -> Result<(), RunError> {
        let mut output = std::mem::take(&mut self.slots[step.output]);
        let operation = &self.plan.graph.nodes[step.node].operation;
        let done = match operation {
            Operation::Series { .. } | Operation::Stamp(_) => {
                self.read(evidence, step, operation, &mut output);
                Ok(())
            }
            Operation::Join(join) => self.join(at, step, join, &mut output),
            Operation::Panes { .. } => self.panes(at, step, &mut output),
            operation => {
                if step.in_place.is_none() {
                    let input = &self.slots[step.inputs[0].slot];
                    for lane in 0..self.plan.lanes() {
                        output.values[lane][..input.len].copy_from_slice(&input.values[lane][..input.len]);
                    }
                    output.len = input.len;
                }
                self.in_place(at, step, operation, &mut output)
            }
        };
        self.slots[step.output] = output;
        done
    }

    /// Fills a slot from the evidence.
    fn read<E: Evidence>(&self, evidence: &E, step: &Step, operation: &Operation, output: &mut Slot) {
        let (clock, reading) = self.plan.graph.clock_of(self.plan.graph.nodes[step.node].base);
        let Place { advance, before, .. } = self.places[reading];
        output.len = if advance.clock == clock { advance.observations } else { 0 };
        if output.len == 0 {
            return;
        }
        let has_ranges = self.plan.lanes() == 2;
        let [lows, highs] = &mut output.values;
        let lows = &mut lows[..output.len];
        let highs = if has_ranges { &mut highs[..output.len] } else { &mut [][..] };
        match operation {
            Operation::Series { index, .. } => return evidence.fill(reading, *index, lows, highs),
            Operation::Stamp(Stamp::Time) => evidence.fill_times(reading, lows),
            _ => lows.iter_mut().zip(before..).for_each(|(number, observation)| *number = observation as f64),
        }
        if has_ranges {
            highs.copy_from_slice(lows);
        }
    }

    fn join(&mut self, at: usize, step: &Step, join: &Join, output: &mut Slot) -> Result<(), RunError> {
        let State::Join(state) = &mut self.states[at] else { return Ok(()) };
        let slots = [0, 1].map(|side| match step.in_place {
            Some(in_place) if in_place == side => None,
            _ => Some(&self.slots[step.inputs[side].slot]),
        });
        let factors = [step.inputs[0].factor, step.inputs[1].factor];
        if step.in_place.is_none() {
            output.len = 0;
        }
        let done = match self.plan.lanes() {
            1 => state.process::<1>(join.operator, join.factor, output, slots, factors),
            _ => state.process::<2>(join.operator, join.factor, output, slots, factors),
        };
        let ahead = state.ahead();
        // After the end of a reading, the partners of the waiting values never arrive. Losing these values is allowed.
        let may_lose = match join.kind {
            JoinKind::Buffer { .. } => self.is_over(self.plan.graph.nodes[step.node].inputs[1 - ahead]),
            _ => self.places.iter().any(|place| place.has_ended),
        };
        if may_lose { Ok(()) } else { done }
    }

    /// Returns whether a node has given its last value, because a reading that it needs has reached its end.
    fn is_over(&self, node: NodeId) -> bool {
        let needed = &self.plan.graph.nodes[node];
        match needed.operation {
            Operation::Series { .. } | Operation::Stamp(_) => {
                self.places[self.plan.graph.clock_of(needed.base).1].has_ended
            }
            // A held series gives no values of its own.
            Operation::JoinHeld { .. } => self.is_over(needed.inputs[0]),
            Operation::Join(_) => {
                let at = self.plan.steps.iter().position(|step| step.node == node);
                match at.map(|at| &self.states[at]) {
                    Some(State::Join(state)) if state.has_waiting() => self.is_over(needed.inputs[1 - state.ahead()]),
                    _ => needed.inputs.iter().any(|input| self.is_over(*input)),
                }
            }
            _ => needed.inputs.iter().any(|input| self.is_over(*input)),
        }
    }

    fn panes(&mut self, at: usize, step: &Step, output: &mut Slot) -> Result<(), RunError> {
        let State::Panes(lanes) = &mut self.states[at] else { return Ok(()) };
        let (input, times) = (&self.slots[step.inputs[0].slot], &self.slots[step.inputs[1].slot]);
        let times = &times.values[0][..input.len];
        for (lane, panes) in lanes.iter_mut().flatten().enumerate() {
            output.len = panes.process(&input.values[lane][..input.len], times, &mut output.values[lane])?;
        }
        Ok(())
    }

    /// Executes a step whose input is already in the slot of its output.
    fn in_place(&mut self, at: usize, step: &Step, operation: &Operation, output: &mut Slot) -> Result<(), RunError> {
        let (lanes, len) = (self.plan.lanes(), output.len);
        match (operation, &mut self.states[at]) {
            (Operation::WithNumber { operator, number, is_number_first, factor, .. }, _) => {
                let (operator, number, factor) = (*operator, *number, *factor);
                if lanes == 2 {
                    let number = [number; 2];
                    map_ranges(output, |range| match is_number_first {
                        true => operated(operator, factor, number, range),
                        false => operated(operator, factor, range, number),
                    });
                } else if *is_number_first {
                    map(output, |value| operated(operator, factor, [number], [value])[0]);
                } else {
                    map(output, |value| operated(operator, factor, [value], [number])[0]);
                }
            }
            (Operation::Negate, _) => {
                map(output, |value| -value);
                if lanes == 2 {
                    map_ranges(output, |[low, high]| [low, -high]);
                    let [lows, highs] = &mut output.values;
                    lows[..len].swap_with_slice(&mut highs[..len]);
                }
            }
            (Operation::Not, _) => {
                let values = output.values.iter_mut().take(lanes);
                values.for_each(|lane| lane[..len].iter_mut().for_each(|value| *value = 1.0 - *value));
            }
            (Operation::Compact, _) => {
                let undecided = compact(output, lanes);
                self.undecided += if step.is_counted { undecided } else { 0 };
            }
            (Operation::Every(n), State::Every(skip)) => every(output, lanes, *n, skip),
            (Operation::Drop(_), State::Drop(left)) => {
                let dropped = (*left).min(len as u64);
                *left -= dropped;
                let dropped = dropped as usize;
                output.values.iter_mut().take(lanes).for_each(|lane| lane.copy_within(dropped..len, 0));
                output.len -= dropped;
            }
            (Operation::Repeat(n), _) => repeat(output, lanes, *n as usize),
            (Operation::Lag(_), State::Lag(rings)) => {
                for (ring, lane) in rings.iter_mut().flatten().zip(&mut output.values) {
                    ring.exchange(&mut lane[..len]);
                }
            }
            (Operation::Ewma(weight), State::Ewma(averages)) => {
                for (average, lane) in averages.iter_mut().zip(&mut output.values) {
                    ewma(&mut lane[..len], average, *weight);
                }
            }
            (Operation::Running(_), State::Running(all)) => {
                for (accumulator, lane) in all.iter_mut().flatten().zip(&mut output.values) {
                    accumulator.running(&mut lane[..len]);
                }
            }
            (Operation::Running(_), State::Quantiles(all)) => {
                for (quantile, lane) in all.iter_mut().flatten().zip(&mut output.values) {
                    quantile.running(&mut lane[..len])?;
                }
            }
            (Operation::Window { .. }, State::Disjoint(all)) => {
                for (window, lane) in all.iter_mut().flatten().zip(&mut output.values) {
                    output.len = window.process(&mut lane[..len])?;
                }
            }
            (Operation::Window { .. }, State::Sliding(all)) => {
                for (window, lane) in all.iter_mut().flatten().zip(&mut output.values) {
                    output.len = window.process(&mut lane[..len]);
                }
            }
            (Operation::Window { .. }, State::Quantiles(all)) => {
                for (window, lane) in all.iter_mut().flatten().zip(&mut output.values) {
                    output.len = window.process(&mut lane[..len])?;
                }
            }
            (Operation::JoinHeld { .. }, State::Held(_)) => self.join_held(at, step, output),
            _ => {}
        }
        Ok(())
    }

    fn join_held(&mut self, at: usize, step: &Step, output: &mut Slot) {
        let graph = &self.plan.graph;
        let node = &graph.nodes[step.node];
        let (Operation::JoinHeld { operator, is_held_first, factor }, State::Held(state)) =
            (&node.operation, &mut self.states[at])
        else {
            return;
        };
        let slot = |input: usize| &self.slots[step.inputs[input].slot];
        let numbers = |input: usize, len: usize| &slot(input).values[0][..len];
        let (pace, held) = (&graph.nodes[node.inputs[0]], &graph.nodes[node.inputs[1]]);
        let order = if node.inputs.len() == 4 {
            Order::Numbers { pace: numbers(2, output.len), held: numbers(3, slot(1).len) }
        } else if pace.base == held.base {
            Order::Counts { pace: &pace.count, held: &held.count }
        } else {
            Order::Blocks
        };
        let held = slot(1);
        match self.plan.lanes() {
            1 => state.process::<1>(*operator, *factor, *is_held_first, output, held, &order),
            _ => state.process::<2>(*operator, *factor, *is_held_first, output, held, &order),
        }
    }
}

/// Replaces each value of the first lane.
#[inline(always)]
fn map(slot: &mut Slot, of: impl Fn(f64) -> f64) {
    let len = slot.len;
    slot.values[0][..len].iter_mut().for_each(|value| *value = of(*value));
}

/// Replaces each range.
fn map_ranges(slot: &mut Slot, of: impl Fn([f64; 2]) -> [f64; 2]) {
    let [lows, highs] = &mut slot.values;
    for (low, high) in lows[..slot.len].iter_mut().zip(&mut highs[..slot.len]) {
        [*low, *high] = of([*low, *high]);
    }
}

/// Removes the values that are marked. Returns the number of values whose condition was null.
fn compact(slot: &mut Slot, lanes: usize) -> u64 {
    let (mut kept, mut undecided) = (0, 0);
    for index in 0..slot.len {
        let bits = slot.values[0][index].to_bits();
        undecided += u64::from(bits == UNDECIDED.to_bits());
        let is_kept = bits != REMOVED.to_bits() && bits != UNDECIDED.to_bits();
        for lane in 0..lanes {
            slot.values[lane][kept] = slot.values[lane][index];
        }
        kept += usize::from(is_kept);
    }
    slot.len = kept;
    undecided
}

/// Keeps the first value and then every n-th one.
fn every(slot: &mut Slot, lanes: usize, n: u64, skip: &mut u64) {
    let len = slot.len as u64;
    let (first, mut kept) = (*skip, 0);
    if n == 1 || first >= len {
        *skip = if n == 1 { 0 } else { first - len };
        slot.len = if n == 1 { slot.len } else { 0 };
        return;
    }
    let mut index = first;
    while index < len {
        for lane in 0..lanes {
            slot.values[lane][kept] = slot.values[lane][index as usize];
        }
        kept += 1;
        index += n;
    }
    *skip = index - len;
    slot.len = kept;
}

/// Writes each value n times, from the last value to the first.
fn repeat(slot: &mut Slot, lanes: usize, n: usize) {
    for values in slot.values.iter_mut().take(lanes) {
        for index in (0..slot.len).rev() {
            let value = values[index];
            values[index * n..(index + 1) * n].fill(value);
        }
    }
    slot.len *= n;
}

/// Replaces each value by the exponentially weighted average. A null leaves the average as it is.
fn ewma(values: &mut [f64], average: &mut f64, weight: f64) {
    let mut current = *average;
    for value in values {
        if !value.is_nan() {
            // With a weight of 1, the product of an infinite average and 0 would be undefined.
            let is_replaced = weight == 1.0 || current.to_bits() == NO_VALUE.to_bits();
            current = if is_replaced { *value } else { current * (1.0 - weight) + *value * weight };
        }
        *value = current;
    }
    *average = current;
}
