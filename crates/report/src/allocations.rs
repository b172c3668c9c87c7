//! A note about functions whose calls don't all allocate the same amount of memory.

use ascertain_engine::outcome::{Outcome, PointSummary};
use ascertain_engine::unit::Unit;

use crate::clause::arm_label;
use crate::text::{gathered, plain, quoted};

/// Returns a sentence that lists the functions whose calls did not all allocate the same amount of memory. `None` if
/// all did, or if allocations were not counted.
///
/// ```text
/// Not every call allocates the same amount: `parse` (2 to 5 times, 1.1 kB to 4 kB).
/// ```
pub fn uneven(outcome: &Outcome) -> Option<String> {
    let counts = outcome.points.iter().filter_map(|point| {
        let number = |value: f64| if point.unit == Unit::One { value.to_string() } else { point.unit.human(value) };
        let (min, max) = (point.min?, point.max?);
        let range = format!("{} to {}", number(min), number(max));
        match point.metric.as_str() {
            _ if min == max => None,
            "allocations" => Some((name(point), format!("{range} times"))),
            "allocated_bytes" => Some((name(point), range)),
            _ => None,
        }
    });
    let of_each = gathered(counts);
    let said = of_each.iter().map(|(name, ranges)| format!("{name} ({})", ranges.join(", ")));
    let said = said.collect::<Vec<_>>().join(", ");
    (!said.is_empty()).then(|| plain(&format!("Not every call allocates the same amount: {said}.")))
}

fn name(point: &PointSummary) -> String {
    quoted(&arm_label(&point.arm))
}
