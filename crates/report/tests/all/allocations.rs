//! Sentences about allocations of functions.

use ascertain_engine::outcome::{Outcome, PointSummary};
use ascertain_engine::unit::Unit;
use ascertain_report::allocations::uneven;

use crate::common::functions;

/// Returns the outcome of two functions with these numbers of allocations and of bytes per call.
fn counted(allocations: [[f64; 2]; 2], bytes: [[f64; 2]; 2]) -> Outcome {
    let mut outcome = functions();
    let times: Vec<PointSummary> = outcome.points.iter().filter(|point| point.metric == "time").cloned().collect();
    for (metric, unit, counts) in [("allocations", Unit::One, allocations), ("allocated_bytes", Unit::Byte, bytes)] {
        let points = times.iter().zip(counts).map(|(time, [min, max])| {
            let (min, max) = (Some(min), Some(max));
            PointSummary { metric: metric.into(), unit, median: min, min, max, ..time.clone() }
        });
        outcome.points.extend(points);
    }
    outcome
}

#[test]
fn calls_that_do_not_allocate_the_same_are_named() {
    let even = [[1.0, 1.0], [0.0, 0.0]];
    assert_eq!(uneven(&functions()), None, "times differ");
    assert_eq!(uneven(&counted(even, even)), None);
    assert_eq!(
        uneven(&counted([[2.0, 5.0], [1.0, 1.0]], [[64.0, 2048.0], [8.0, 16.0]])).unwrap(),
        "Not every call allocates the same amount: `loop` (2 to 5 times, 64 B to 2.048 kB), `chunks` (8 B to 16 B)."
    );
}
