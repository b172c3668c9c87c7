//! Compares the memory that long measurements announce with the memory that they allocate. This is a program of its
//! own, because the allocator counts the allocations of all threads.
#![allow(missing_docs)]

use std::time::Duration;

use ascertain_engine::claim::Test;
use ascertain_engine::command::{CommandSet, LineMetric};
use ascertain_engine::experiment::{Arm, Point};
use ascertain_engine::plan::Plan;
use ascertain_engine::run::Recording;
use ascertain_engine::unit::Unit;
use ascertain_engine::windows::{Around, MemoryReport, Meter, WindowPlan, allocated};
use ascertain_sys::allocations::{Allocations, CountingAllocator, count};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::system();

fn plan(windows: u64) -> WindowPlan {
    let arm = Arm { variant: "generator".into(), point: Point::default() };
    WindowPlan {
        duration: Duration::from_secs(windows),
        window: Duration::from_secs(1),
        success: Test::Predicate { arm, predicate: String::new(), measure: None, conditions: Vec::new() },
        record_every: None,
        around: Around::default(),
        series: Vec::new(),
        memory_limit_bytes: None,
    }
}

/// Returns the announced and the allocated bytes of a run.
fn bytes(windows: WindowPlan, has_lines: bool, recording: Recording) -> [u64; 2] {
    let lines = LineMetric { unit: Unit::Nanosecond, factor: None, counts_bad_lines: false };
    let set = CommandSet { lines: has_lines.then_some(lines), ..CommandSet::new("slo", ["true"]) };
    let plan = Plan { commands: vec![set], windows: Some(windows), ..Plan::default() };
    let (memory, bytes) = allocated(&plan, recording, |allocate| count(allocate).bytes).unwrap();
    [memory.total_bytes(), bytes]
}

fn all_parts_are_announced() {
    let series = |expressions: &[&str]| expressions.iter().map(|text| text.to_string()).collect::<Vec<_>>();
    for has_lines in [true, false] {
        let metric = if has_lines { "value" } else { "wall" };
        let several = [format!("ewma({metric}, .01)"), format!("quantile(.99, window({metric}, 1000))")];
        let several: Vec<&str> = several.iter().map(String::as_str).collect();
        for (windows, expressions) in [(1, series(&[])), (1000, series(&[])), (60, series(&several))] {
            let plan = WindowPlan { series: expressions, ..plan(windows) };
            let [announced, allocated] = bytes(plan.clone(), has_lines, Recording::None);
            assert_eq!(allocated, announced, "{windows} windows, {has_lines}, {:?}", plan.series);
            let recorded = |observations| {
                let runs = tempfile::tempdir().unwrap();
                let (runs, command_line) = (runs.path().to_path_buf(), Vec::new());
                let recording = Recording::New {
                    runs,
                    command_line,
                    render: Default::default(),
                    label: None,
                    revision: None,
                    known: None,
                };
                let plan = WindowPlan { around: Around { observations, most: 20_000 }, ..plan.clone() };
                bytes(plan, has_lines, recording)
            };
            let [few, many] = [10, 1000].map(recorded);
            // The buffer for every n-th row belongs to the writer, which exists before.
            let texts = few[1] + (1 << 20) - few[0];
            assert!(texts < 10_000, "{texts} B for names and paths");
            assert_eq!(many[1] - few[1], many[0] - few[0], "the latest observations");
        }
    }
}

/// A single test, because the allocator counts the allocations of all threads.
#[test]
fn the_announced_memory_is_the_allocated_one() {
    all_parts_are_announced();
    the_memory_is_the_announced_one_however_many_observations_come();
}

fn the_memory_is_the_announced_one_however_many_observations_come() {
    for (windows, is_signed, observations) in
        [(1, false, 1_000_000_u64), (60, true, 1_000_000), (60, false, 10_000_000)]
    {
        let plan = plan(windows);
        let mut announced = MemoryReport::default();
        Meter::announce(&plan, is_signed, false, &mut announced);
        let mut meter = None;
        let allocated = count(|| meter = Some(Meter::new(&plan, is_signed, false).unwrap()));
        assert_eq!(allocated.bytes, announced.total_bytes(), "{windows} windows");
        let mut meter = meter.unwrap();
        let mut values = [0.0; 1000];
        let running = count(|| {
            for block in 0..observations / 1000 {
                for (place, value) in (0_u64..).zip(&mut values) {
                    *value = ((block * 1000 + place) * 7919 % 1_000_003) as f64 * 1e3;
                }
                meter.add_all(&values, 1000);
                meter.advance(block * windows * 1_000_000_000_000 / observations, |_, _| {});
            }
            meter.finish(windows * 1_000_000_000, |_, _| {});
        });
        assert_eq!(running, Allocations { allocations: 0, bytes: 0 }, "{observations} observations");
        assert_eq!((meter.total().observations, meter.windows().len()), (observations, windows as usize));
    }
}
