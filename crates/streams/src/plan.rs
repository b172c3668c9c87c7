//! The plan of an expression: its steps in order, and the memory of each to the byte.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use crate::build::Builder;
use crate::catalog::Catalogue;
use crate::count::{Count, MOST_EVALUATIONS};
use crate::error::{Error, Problem};
use crate::expression::Expression;
use crate::graph::{Base, Graph, Join, JoinKind, Node, NodeId, Operation, Stamp};
use crate::parse::parse;
use crate::run::state_bytes;
use crate::unit::Unit;
use crate::ways::{Refused, with_ways_out};

/// Observations in a block, unless the caller chooses another number.
const BLOCK: usize = 256;
/// Evaluations of counting functions while the plan of a way out is made, so that a refusal takes little time.
const EVALUATIONS_OF_A_WAY_OUT: u64 = 1_000_000;
/// A slot may hold this many times the values of a block before the block is made smaller.
const MOST_EXPANSION: u64 = 16;

/// Settings of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// Most observations that are processed at once. With 1, the memory is the least; larger blocks are faster.
    pub block: usize,
    /// `true` if values can be ranges, because observations were cut off. Every value then takes 16 bytes.
    pub has_ranges: bool,
    /// `true` if the number of values has no limit, as in a measurement that goes on. Quantile tables are then never
    /// full, because they have a carry for each bucket. Otherwise, a pane may have 67 million values, and a running
    /// quantile 10^9.
    pub is_endless: bool,
}

impl Default for PlanOptions {
    fn default() -> PlanOptions {
        PlanOptions { block: BLOCK, has_ranges: false, is_endless: false }
    }
}

/// An accepted expression: what is computed in which order, and in how much memory.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) graph: Graph,
    pub(crate) root: NodeId,
    pub(crate) steps: Vec<Step>,
    /// For each slot, the most values that it holds.
    pub(crate) slots: Vec<u64>,
    pub(crate) options: PlanOptions,
    /// Observations in a block.
    pub(crate) block: u64,
    /// For each node, the most values in a block.
    most: Vec<u64>,
    /// For each series that is read again, the most values of one observation.
    pub(crate) bursts: HashMap<NodeId, u64>,
    /// For each step with a buffer of a stated size, its index and the most values that one observation adds.
    pub(crate) buffers: Vec<(usize, u64)>,
    text: String,
}

/// A step of the plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    pub node: NodeId,
    pub kind: StepKind,
    /// The slots from which the step reads, and the number of times that each value is repeated.
    pub inputs: [Input; 4],
    /// The slot that receives the values.
    pub output: usize,
    /// For a join, the side whose slot is also the output.
    pub in_place: Option<usize>,
    /// `true` for the first step that removes values by a condition. It counts those whose condition is null.
    pub is_counted: bool,
}

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepKind {
    /// Computes the values of a node.
    Node,
    /// Reads the evidence again, for the join with the id `node`, until the join's other side has its partners. The
    /// steps before `end` are repeated; their values are collected in the output.
    Again { end: usize, reading: usize },
}

/// A slot from which a step reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Input {
    pub slot: usize,
    /// The number of times that each value is repeated.
    pub factor: u64,
}

/// The memory of a plan, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Buffers and states of the operators.
    pub states: u64,
    /// Values in flight between operators.
    pub in_flight: u64,
    /// The list of steps with their positions and counters. It depends only on the number of operators.
    pub steps: u64,
}

impl Memory {
    /// Returns the sum, which is exactly the memory that a run allocates.
    #[must_use]
    pub fn total(self) -> u64 {
        self.states.saturating_add(self.in_flight).saturating_add(self.steps)
    }
}

impl Plan {
    /// Plans an expression with the default options.
    ///
    /// # Errors
    /// If the expression does not parse, names an unknown series, mixes units, or needs memory in proportion to the
    /// length of the series.
    pub fn new(text: &str, catalogue: &dyn Catalogue) -> Result<Plan, Error> {
        Plan::with(text, catalogue, PlanOptions::default())
    }

    /// Plans an expression.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn with(text: &str, catalogue: &dyn Catalogue, options: PlanOptions) -> Result<Plan, Error> {
        let expression = parse(text)?;
        Plan::of(&expression, text, catalogue, options, MOST_EVALUATIONS).map_err(|refused| {
            with_ways_out(&expression, refused, |text| {
                let expression = parse(text).map_err(|error| (error, None))?;
                Plan::of(&expression, text, catalogue, options, EVALUATIONS_OF_A_WAY_OUT)
            })
        })
    }

    /// Plans an expression that was parsed from `text`. After this many evaluations of counting functions, numbers come
    /// from envelopes.
    fn of(
        expression: &Expression,
        text: &str,
        catalogue: &dyn Catalogue,
        options: PlanOptions,
        evaluations: u64,
    ) -> Result<Plan, Refused> {
        let mut builder = Builder::new(text, catalogue, value_bytes(options.has_ranges), evaluations);
        let root = builder.result(expression).map_err(|error| (error, builder.refused.take()))?;
        let graph = builder.graph;
        let is_buffered_again = |node: &Node| is_buffered(node) && graph.clock_of(node.base).1 > 0;
        // A second reading is ahead by a number of observations that depends on the values, so a block in which its
        // buffer becomes full is not known beforehand.
        let block = if graph.nodes.iter().any(is_buffered_again) { 1 } else { options.block.max(1) as u64 };
        let mut plan = Plan {
            graph,
            root,
            steps: Vec::new(),
            slots: Vec::new(),
            options,
            block,
            most: Vec::new(),
            bursts: HashMap::new(),
            buffers: Vec::new(),
            text: expression.to_string(),
        };
        let too_large = || -> Refused {
            let problem = "the values of one observation are too many to be counted; use smaller factors in `repeat`";
            (Error::new(text, expression.place.clone(), Problem::Overflow(problem.into())), None)
        };
        let mut scans = Scans { known: HashMap::new(), evaluations };
        plan.most = plan.most_of_nodes(&mut scans).ok_or_else(too_large)?;
        let most = plan.most.iter().copied().max().unwrap_or(0);
        if most > MOST_EXPANSION.saturating_mul(block) {
            plan.block = (u128::from(block) * u128::from(block) / u128::from(most)).max(1) as u64;
            plan.most = plan.most_of_nodes(&mut scans).ok_or_else(too_large)?;
        }
        plan.bursts = plan.bursts_of_series(&mut scans).ok_or_else(too_large)?;
        plan.schedule().ok_or_else(too_large)?;
        plan.buffers = plan.buffered_steps(&mut scans).ok_or_else(too_large)?;
        Ok(plan)
    }

    /// Returns the expression in its printed form.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the unit of the result.
    #[must_use]
    pub fn unit(&self) -> Unit {
        self.graph.nodes[self.root].unit
    }

    /// Returns the most observations that a run processes at once.
    #[must_use]
    pub fn block(&self) -> usize {
        self.block as usize
    }

    /// Returns the options of the plan.
    #[must_use]
    pub fn options(&self) -> PlanOptions {
        self.options
    }

    /// Returns the number of times that the evidence is read at the same time: 1, and one more for each `again`.
    #[must_use]
    pub fn readings(&self) -> usize {
        self.graph.readings
    }

    /// Returns the indices of the recorded series that the expression uses, in ascending order.
    #[must_use]
    pub fn series(&self) -> Vec<usize> {
        let index = |operation: &Operation| match operation {
            Operation::Series { index, .. } => Some(*index),
            _ => None,
        };
        let mut all: Vec<usize> = self.graph.nodes.iter().filter_map(|node| index(&node.operation)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns the number of results after this many observations. Returns `None` if the number depends on the values,
    /// or on the times of the observations.
    #[must_use]
    pub fn results_after(&self, observations: u64) -> Option<u64> {
        let root = &self.graph.nodes[self.root];
        let is_counted = matches!(self.graph.bases[root.base], Base::Clock { .. });
        is_counted.then(|| root.count.after(observations))
    }

    /// Returns the number of observations for each result, if it is the same for every result.
    ///
    /// ```
    /// use ascertain_streams::{OneClock, Plan, Unit};
    ///
    /// let catalogue = OneClock::new(&[("time", Unit::TIME)]);
    /// let per_result = |text| Plan::new(text, &catalogue).map(|plan| plan.observations_per_result());
    /// assert_eq!(per_result("mean(window(time, 10))"), Ok(Some(10)));
    /// assert_eq!(per_result("where(time, time > 1 s)"), Ok(None));
    /// ```
    #[must_use]
    pub fn observations_per_result(&self) -> Option<u64> {
        let root = &self.graph.nodes[self.root];
        let is_counted = matches!(self.graph.bases[root.base], Base::Clock { .. });
        let (results, observations) = root.count.rate().filter(|_| is_counted)?.parts();
        u64::try_from(observations).ok().filter(|_| results == 1)
    }

    /// Returns whether the results depend on the times of the observations.
    #[must_use]
    pub fn uses_times(&self) -> bool {
        self.graph.nodes.iter().any(|node| node.operation == Operation::Stamp(Stamp::Time))
    }

    /// Checks that each result comes from observations of its own. Only such a series can be judged: the outcomes of
    /// overlapping windows, lags and averages depend on one another, so a claim about them would not be valid.
    ///
    /// # Errors
    /// If an operator uses an observation for several results. The error names it.
    pub fn check_independent(&self) -> Result<(), Error> {
        let dependent = |node: &Node| match &node.operation {
            Operation::Join(join) => {
                let counts = [0, 1].map(|side: usize| &self.graph.nodes[node.inputs[side]].count);
                let is_aligned = matches!(join.kind, JoinKind::Bounded(_)) && counts[0] == counts[1];
                (!is_aligned).then(|| format!("{} of values with different indices", node.operation.name()))
            }
            Operation::Window { length, step, .. } if step >= length => None,
            Operation::Panes { length_ns, step_ns, .. } if step_ns >= length_ns => None,
            Operation::JoinHeld { .. }
            | Operation::Repeat(_)
            | Operation::Lag(_)
            | Operation::Ewma(_)
            | Operation::Running(_)
            | Operation::Window { .. }
            | Operation::Panes { .. } => Some(node.operation.name()),
            _ => None,
        };
        let Some(operator) = self.graph.nodes.iter().find_map(dependent) else { return Ok(()) };
        let problem = format!(
            "`{operator}` makes outcomes that depend on one another, and a claim needs one fresh outcome per trial; use \
             windows that do not overlap, such as `mean(window(series, 10))`"
        );
        Err(Error::new(&self.text, 0..self.text.len(), Problem::Dependent(problem)))
    }

    /// Returns the memory of a run, in bytes.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let states = self.steps.iter().map(|step| self.state_of(step)).fold(0, u64::saturating_add);
        let in_flight = self.values_in_flight().saturating_mul(self.value_bytes());
        Memory { states, in_flight, steps: crate::run::step_bytes(self) }
    }

    /// Returns the plan as text, with a number of bytes for reading the evidence in its total.
    #[must_use]
    pub fn with_reading(&self, reading_bytes: u64) -> String {
        crate::describe::plan(self, Some(reading_bytes))
    }

    pub(crate) fn values_in_flight(&self) -> u64 {
        self.slots.iter().copied().fold(0, u64::saturating_add)
    }

    /// Returns the size of a value: 8 bytes, or 16 if values can be ranges.
    #[must_use]
    pub fn value_bytes(&self) -> u64 {
        value_bytes(self.options.has_ranges)
    }

    pub(crate) fn lanes(&self) -> usize {
        if self.options.has_ranges { 2 } else { 1 }
    }

    pub(crate) fn state_of(&self, step: &Step) -> u64 {
        match step.kind {
            StepKind::Node => state_bytes(self, step).saturating_mul(self.lanes() as u64),
            StepKind::Again { .. } => 0,
        }
    }

    /// Returns the most values that a clock gives for these observations.
    fn most_of_base(&self, base: usize, observations: u64, scans: &mut Scans) -> Option<u64> {
        match &self.graph.bases[base] {
            Base::Clock { .. } => Some(observations),
            Base::Where { count, base, .. } => {
                let ticks = self.most_of_base(*base, observations, scans)?;
                scans.most_of(count, ticks)
            }
            Base::Panes { length_ns, step_ns, count, base } => {
                let ticks = self.most_of_base(*base, observations, scans)?;
                scans.most_of(count, ticks)?.checked_mul(length_ns / step_ns)
            }
        }
    }

    /// Returns the most values that a node gives for these observations.
    fn most_of_node(&self, node: &Node, observations: u64, scans: &mut Scans) -> Option<u64> {
        let ticks = self.most_of_base(node.base, observations, scans)?;
        scans.most_of(&node.count, ticks)
    }

    /// Returns the most values that each node gives in a block.
    fn most_of_nodes(&self, scans: &mut Scans) -> Option<Vec<u64>> {
        self.graph.nodes.iter().map(|node| self.most_of_node(node, self.block, scans)).collect()
    }

    /// Returns the index of each step with a buffer of a stated size, and the most values that one observation adds.
    fn buffered_steps(&self, scans: &mut Scans) -> Option<Vec<(usize, u64)>> {
        let is_step = |step: &Step| step.kind == StepKind::Node && is_buffered(&self.graph.nodes[step.node]);
        let steps = self.steps.iter().enumerate().filter(|(_, step)| is_step(step));
        let with_growth = |(index, step): (usize, &Step)| {
            let mut growth = 1;
            for (side, _) in self.reads(step.node) {
                growth = self.most_of_node(&self.graph.nodes[side], 1, scans)?.max(growth);
            }
            Some((index, growth))
        };
        steps.map(with_growth).collect()
    }

    /// Returns the most values that one observation gives, for each series that is read again.
    fn bursts_of_series(&self, scans: &mut Scans) -> Option<HashMap<NodeId, u64>> {
        let source = |node: &Node| match node.operation {
            Operation::Join(Join { kind: JoinKind::Again { side }, .. }) => Some(node.inputs[side]),
            _ => None,
        };
        let sources = self.graph.nodes.iter().filter_map(source);
        sources.map(|source| Some((source, scans.most_of(&self.graph.nodes[source].count, 1)?))).collect()
    }

    /// Returns the nodes whose values a step for this node reads, with the number of repetitions.
    pub(crate) fn reads(&self, node: NodeId) -> Vec<(NodeId, u64)> {
        let Operation::Join(_) = self.graph.nodes[node].operation else {
            return self.graph.nodes[node].inputs.iter().map(|input| (*input, 1)).collect();
        };
        self.graph.nodes[node].inputs.iter().map(|input| self.graph.before_repeat(*input)).collect()
    }

    /// Puts the nodes in order and assigns slots.
    fn schedule(&mut self) -> Option<()> {
        let mut order = Vec::new();
        self.visit(self.root, &mut order);
        let mut last_use = vec![0; self.graph.nodes.len()];
        let mut schedule = Slots::default();
        for (index, entry) in order.iter().enumerate() {
            if let Entry::Node(node) = entry {
                self.reads(*node).iter().for_each(|(read, _)| last_use[*read] = index);
            }
        }
        last_use[self.root] = order.len();
        let mut slot_of = vec![usize::MAX; self.graph.nodes.len()];
        let mut starts = Vec::new();
        let mut counted = HashSet::new();
        for (index, entry) in order.iter().enumerate() {
            match *entry {
                Entry::Node(node) => {
                    let mut step = self.step(node, &slot_of, &|read| last_use[read] == index, &mut schedule);
                    let Node { operation, base, .. } = &self.graph.nodes[node];
                    step.is_counted = *operation == Operation::Compact && counted.insert(*base);
                    slot_of[node] = step.output;
                    self.steps.push(step);
                }
                Entry::AgainStart { join, side } => {
                    let (read, _) = self.graph.before_repeat(self.graph.nodes[join].inputs[side]);
                    let (_, reading) = self.graph.clock_of(self.graph.nodes[read].base);
                    // A last observation may give more values than the join needs at once.
                    let burst = self.bursts[&self.graph.nodes[join].inputs[side]];
                    let output = schedule.take(self.most[join].checked_add(burst.saturating_sub(1))?);
                    let kind = StepKind::Again { end: 0, reading };
                    starts.push(self.steps.len());
                    let inputs = [Input::default(); 4];
                    self.steps.push(Step { node: join, kind, inputs, output, in_place: None, is_counted: false });
                }
                Entry::AgainEnd { join, side } => {
                    let start = starts.pop()?;
                    let (read, factor) = self.graph.before_repeat(self.graph.nodes[join].inputs[side]);
                    let (end, from) = (self.steps.len(), slot_of[read]);
                    let StepKind::Again { reading, .. } = self.steps[start].kind else { return None };
                    self.steps[start].kind = StepKind::Again { end, reading };
                    self.steps[start].inputs[0] = Input { slot: from, factor };
                    slot_of[read] = self.steps[start].output;
                    schedule.free.push(from);
                }
            }
        }
        self.slots = schedule.slots;
        Some(())
    }

    fn visit(&self, node: NodeId, order: &mut Vec<Entry>) {
        if order.contains(&Entry::Node(node)) {
            return;
        }
        let reads = self.reads(node);
        match self.graph.nodes[node].operation {
            Operation::Join(Join { kind: JoinKind::Again { side }, .. }) => {
                self.visit(reads[1 - side].0, order);
                if self.is_read_for_another_join(node, side, order) {
                    order.push(Entry::Node(node));
                    return;
                }
                order.push(Entry::AgainStart { join: node, side });
                self.visit(reads[side].0, order);
                order.push(Entry::AgainEnd { join: node, side });
            }
            _ => reads.iter().for_each(|(read, _)| self.visit(*read, order)),
        }
        order.push(Entry::Node(node));
    }

    /// Returns whether another join has already read the evidence again for the same values, as many as this join
    /// needs. Both joins then read one slot. This happens if a `where` and the times of its values have a condition
    /// that reads again.
    fn is_read_for_another_join(&self, join: NodeId, side: usize, order: &[Entry]) -> bool {
        let nodes = &self.graph.nodes;
        let of_sides = |join: NodeId| (nodes[join].inputs[side], &nodes[nodes[join].inputs[1 - side]].count);
        let is_alike = |entry: &Entry| match *entry {
            Entry::AgainStart { join: other, side: of_other } => of_other == side && of_sides(other) == of_sides(join),
            Entry::AgainEnd { .. } | Entry::Node(_) => false,
        };
        order.iter().any(is_alike)
    }

    /// Makes the step of a node: its slots, and whether it works in place. `ends` returns whether no later step reads
    /// the values of a node.
    fn step(&self, node: NodeId, slot_of: &[usize], ends: &dyn Fn(NodeId) -> bool, slots: &mut Slots) -> Step {
        let reads = self.reads(node);
        let most = self.most[node];
        let mut inputs = [Input::default(); 4];
        for (input, (read, factor)) in inputs.iter_mut().zip(&reads) {
            *input = Input { slot: slot_of[*read], factor: *factor };
        }
        let is_once = |read: &NodeId| reads.iter().filter(|(other, _)| other == read).count() == 1;
        let can_reuse = match self.graph.nodes[node].operation {
            Operation::Series { .. } | Operation::Stamp(_) | Operation::Panes { .. } => 0,
            Operation::Join(_) => 2,
            _ => 1,
        };
        let candidates = reads.iter().take(can_reuse).enumerate();
        let in_place = candidates
            .filter(|(_, (read, factor))| *factor == 1 && ends(*read) && is_once(read))
            .map(|(side, _)| side)
            .next();
        let output = match in_place {
            Some(side) => {
                let slot = inputs[side].slot;
                slots.slots[slot] = slots.slots[slot].max(most);
                slot
            }
            // The input is copied, and the copy is then processed in place.
            None if can_reuse == 1 => slots.take(most.max(self.most[reads[0].0])),
            None => slots.take(most),
        };
        let mut ended: Vec<usize> =
            reads.iter().filter(|(read, _)| ends(*read)).map(|(read, _)| slot_of[*read]).collect();
        ended.sort_unstable();
        ended.dedup();
        slots.free.extend(ended.into_iter().filter(|slot| *slot != output));
        Step { node, kind: StepKind::Node, inputs, output, in_place, is_counted: false }
    }
}

/// Returns whether a node is a join with a buffer of a stated size.
fn is_buffered(node: &Node) -> bool {
    matches!(node.operation, Operation::Join(Join { kind: JoinKind::Buffer { .. }, .. }))
}

/// Returns the size of a value in bytes.
fn value_bytes(has_ranges: bool) -> u64 {
    if has_ranges { 16 } else { 8 }
}

/// The most values of counting functions, each computed once.
struct Scans {
    known: HashMap<(Arc<Count>, u64), Option<u64>>,
    evaluations: u64,
}

impl Scans {
    fn most_of(&mut self, count: &Arc<Count>, observations: u64) -> Option<u64> {
        let Scans { known, evaluations } = self;
        *known.entry((count.clone(), observations)).or_insert_with(|| count.most_within(observations, evaluations))
    }
}

/// An entry of the order in which nodes are computed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Entry {
    Node(NodeId),
    AgainStart { join: NodeId, side: usize },
    AgainEnd { join: NodeId, side: usize },
}

/// The slots while they are assigned.
#[derive(Default)]
struct Slots {
    slots: Vec<u64>,
    free: Vec<usize>,
}

impl Slots {
    /// Takes a free slot, or a new one, for this many values.
    fn take(&mut self, values: u64) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(0);
            self.slots.len() - 1
        });
        self.slots[slot] = self.slots[slot].max(values);
        slot
    }
}

impl fmt::Display for Plan {
    /// Writes the plan as a table: the steps, their rates and their memory.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::describe::plan(self, None))
    }
}
