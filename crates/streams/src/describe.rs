//! The words of a plan.

use crate::graph::{Aggregate, Base, Graph, Join, JoinKind, Joined, Node, Operation, time};
use crate::plan::{Memory, Plan, Step, StepKind};
use crate::run::{MOST_NEAR, Sketch, sketch_of};

/// Writes a plan as a table of steps, with the total of the memory below it. `reading_bytes` is the memory for reading
/// the evidence, if it is part of the total.
pub(crate) fn plan(plan: &Plan, reading_bytes: Option<u64>) -> String {
    let mut number_of = vec![0; plan.graph.nodes.len()];
    let mut rows = Vec::new();
    for step in plan.steps.iter().filter(|step| step.kind == StepKind::Node) {
        let number = rows.len() + 1;
        number_of[step.node] = number;
        let node = &plan.graph.nodes[step.node];
        let inputs = plan.reads(step.node).into_iter().map(|(read, factor)| match factor {
            1 => format!("#{}", number_of[read]),
            factor => format!("repeat(#{}, {factor})", number_of[read]),
        });
        let text = operation(&node.operation, &inputs.collect::<Vec<_>>());
        let of_step = bytes_or_nothing(plan.state_of(step));
        rows.push([format!("#{number}"), text, rate(&plan.graph, node), of_step, memory(plan, step)]);
    }
    let Memory { states, in_flight, steps } = plan.memory();
    let values = plan.values_in_flight();
    let per_block = match plan.block() {
        1 => String::new(),
        block => format!(", for {block} observations at a time"),
    };
    let s = if values == 1 { "" } else { "s" };
    let flight = format!("{} value{s} in flight{per_block}", grouped(values));
    rows.push([String::new(), "between the steps".into(), String::new(), bytes_or_nothing(in_flight), flight]);
    let widths = [0, 1, 2, 3].map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let mut text = format!("plan of {}\n", plan.text());
    for [number, operation, rate, bytes, memory] in &rows {
        let [first, second, third, fourth] = widths;
        let line = format!("  {number:>first$}  {operation:second$}  {rate:third$}  {bytes:>fourth$}  {memory}");
        text += &format!("{}\n", line.trim_end());
    }
    let of = |bytes: u64, part: &str| format!("{} B {part}", grouped(bytes));
    let parts = [of(states, "buffers and states"), of(in_flight, "in flight"), of(steps, "list of steps")];
    let reading = reading_bytes.map(|bytes| of(bytes, "reading"));
    let parts: Vec<String> = parts.into_iter().chain(reading).collect();
    let total = plan.memory().total().saturating_add(reading_bytes.unwrap_or(0));
    text + &format!("memory: {} B = {}", grouped(total), parts.join(" + "))
}

/// Writes an operator with the numbers of the steps that it reads.
fn operation(operation: &Operation, inputs: &[String]) -> String {
    let first = || inputs.first().map_or("", String::as_str);
    let second = || inputs.get(1).map_or("", String::as_str);
    match operation {
        Operation::Series { .. } | Operation::Stamp(_) => operation.name(),
        Operation::WithNumber { operator, number, unit, is_number_first: true, .. } => {
            format!("{} {} {}", unit.written(*number), operator.symbol(), first())
        }
        Operation::WithNumber { operator, number, unit, .. } => {
            format!("{} {} {}", first(), operator.symbol(), unit.written(*number))
        }
        Operation::Negate => format!("-{}", first()),
        Operation::Not => format!("not {}", first()),
        Operation::Join(Join { operator: Joined::Select, .. }) => format!("select {} if {}", first(), second()),
        Operation::Join(Join { operator: Joined::Later, .. }) => format!("later of {} and {}", first(), second()),
        Operation::Join(Join { operator, kind, .. }) => {
            let again = |side: usize, input: &str| match kind {
                JoinKind::Again { side: again } if *again == side => format!("again({input})"),
                JoinKind::Buffer { side: buffered, values } if *buffered == side => {
                    format!("buffer({input}, {values})")
                }
                _ => input.to_string(),
            };
            format!("{} {} {}", again(0, first()), operator.symbol(), again(1, second()))
        }
        Operation::JoinHeld { operator, is_held_first: true, .. } => {
            format!("hold({}) {} {}", second(), operator.symbol(), first())
        }
        Operation::JoinHeld { operator, .. } => format!("{} {} hold({})", first(), operator.symbol(), second()),
        Operation::Compact => format!("drop unselected of {}", first()),
        Operation::Every(n) => format!("every({}, {n})", first()),
        Operation::Repeat(n) => format!("repeat({}, {n})", first()),
        Operation::Lag(k) => format!("lag({}, {k})", first()),
        Operation::Drop(k) => format!("drop({}, {k})", first()),
        Operation::Ewma(weight) => format!("ewma({}, {weight})", first()),
        Operation::Running(aggregate) => aggregated(*aggregate, first()),
        Operation::Window { length, step, aggregate } => {
            let step = if step == length { String::new() } else { format!(", step {step}") };
            aggregated(*aggregate, &format!("window({}, {length}{step})", first()))
        }
        Operation::Panes { length_ns, step_ns, aggregate } => {
            let (length, step) = (time(*length_ns), time(*step_ns));
            aggregated(*aggregate, &format!("window({}, {length}, step {step})", first()))
        }
    }
}

fn aggregated(aggregate: Aggregate, of: &str) -> String {
    match aggregate {
        Aggregate::Quantile(level) => format!("quantile({level}, {of})"),
        aggregate => format!("{}({of})", aggregate.name()),
    }
}

/// Writes the rate of a node: values per observation, or the clock that is unknown beforehand.
fn rate(graph: &Graph, node: &Node) -> String {
    let rate = node.count.rate().map_or_else(String::new, |rate| rate.to_string());
    let (of, reading) = match &graph.bases[node.base] {
        Base::Clock { reading, .. } => ("observation", *reading),
        Base::Where { .. } => ("selected value", graph.clock_of(node.base).1),
        Base::Panes { .. } => ("window", graph.clock_of(node.base).1),
    };
    let again = if reading > 0 { format!(", reading {}", reading + 1) } else { String::new() };
    format!("{rate} per {of}{again}")
}

/// Writes the contents of a step's buffers and states.
fn memory(plan: &Plan, step: &Step) -> String {
    let node = &plan.graph.nodes[step.node];
    let values = |count: u64| format!("{} value{}", grouped(count), if count == 1 { "" } else { "s" });
    match &node.operation {
        Operation::Join(join) => join_memory(plan, step, join),
        Operation::JoinHeld { .. } => "the held value".into(),
        Operation::Lag(k) => values(*k),
        Operation::Ewma(_) => "the average so far".into(),
        Operation::Running(Aggregate::Quantile(_)) => sketch(sketch_of(plan, step)),
        Operation::Running(_) => "the aggregate so far".into(),
        Operation::Window { aggregate: Aggregate::Quantile(_), .. } => sketch(sketch_of(plan, step)),
        Operation::Window { length, step, .. } if step >= length => "the aggregate so far".into(),
        Operation::Window { length, step, .. } => {
            let pane = crate::ratio::gcd(*length, *step);
            let each = if pane == 1 { "value".to_string() } else { format!("{} values", grouped(pane)) };
            format!("{} partial aggregates, one per {each}", grouped(length / pane))
        }
        Operation::Panes { length_ns, step_ns, aggregate } => {
            let panes = grouped(length_ns / step_ns);
            let s = if panes == "1" { "" } else { "s" };
            match aggregate {
                Aggregate::Quantile(_) => format!("{panes} pane{s}, {}", sketch(sketch_of(plan, step))),
                _ => format!("{panes} pane{s}"),
            }
        }
        _ => String::new(),
    }
}

fn join_memory(plan: &Plan, step: &Step, join: &Join) -> String {
    let ring = crate::run::ring_of(plan, step);
    let s = if ring == 1 { "" } else { "s" };
    let ring_text = grouped(ring);
    match &join.kind {
        JoinKind::Bounded(lead) if lead.first.max(lead.second) > 0 => {
            let at_most = if lead.is_exact { "" } else { "at most " };
            let most = lead.first.max(lead.second);
            match most == ring {
                true => format!("{at_most}{ring_text} value{s} waiting"),
                false => format!("{at_most}{ring_text} value{s} waiting, {} after repeat", grouped(most)),
            }
        }
        JoinKind::Buffer { .. } => format!("at most {ring_text} value{s} waiting; if more wait, the run stops"),
        JoinKind::Again { .. } if ring > 0 => format!("{ring_text} value{s} waiting"),
        _ => String::new(),
    }
}

/// The error of a flat table.
const TABLE_ERROR: &str = "relative error 0.0367 %; values within 2^-16 of 0 count as 0";

fn sketch(sketch: Sketch) -> String {
    match sketch {
        Sketch::Exact { values } => format!("exact, by selection among {} values", grouped(values)),
        Sketch::ExactSliding { values } => {
            format!("exact, by a cursor in {} values, of which up to {MOST_NEAR} in order", grouped(values))
        }
        Sketch::Table { .. } => format!("flat table, {TABLE_ERROR}"),
        Sketch::TableSliding { values, .. } => {
            format!("flat table and the buckets of {} values, {TABLE_ERROR}", grouped(values))
        }
    }
}

/// Writes a number of bytes, or nothing for zero.
fn bytes_or_nothing(bytes: u64) -> String {
    if bytes == 0 { String::new() } else { format!("{} B", grouped(bytes)) }
}

/// Writes a number with a comma before each group of three digits: `65,536`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
