//! Compares the memory that long measurements announce with the memory that they allocate. This is a program of its
//! own, because the allocator counts the allocations of all threads.
#![allow(missing_docs)]

use std::cell::Cell;
use std::sync::Mutex;
use std::time::Duration;

use ascertain_engine::claim::{Claim, Test};
use ascertain_engine::command::{CommandSet, LineMetric};
use ascertain_engine::experiment::{Arm, Point};
use ascertain_engine::plan::Plan;
use ascertain_engine::predicate::Predicate;
use ascertain_engine::run::{Clock, Recording};
use ascertain_engine::unit::Unit;
use ascertain_engine::windows::{Around, MemoryReport, Meter, WindowPlan, allocated, fed};
use ascertain_sys::allocations::{Allocations, CountingAllocator, count, peak_bytes};

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

/// Only one test at a time can count, because the allocator counts the allocations of all threads.
static COUNTING: Mutex<()> = Mutex::new(());

/// A clock that advances by the same time at each reading.
struct Steps {
    now_ns: Cell<u64>,
    step_ns: u64,
}

impl Clock for Steps {
    fn now_ns(&self) -> u64 {
        self.now_ns.replace(self.now_ns.get() + self.step_ns)
    }

    fn sleep(&self, _: Duration) {}
}

fn recording(runs: &tempfile::TempDir) -> Recording {
    let (runs, command_line) = (runs.path().to_path_buf(), Vec::new());
    Recording::New { runs, command_line, render: Default::default(), label: None, revision: None, known: None }
}

/// Feeds lines, of which every thousandth is a failure, through the parser, the windows, the judge, the series and the
/// recorder. Only the recorder allocates: the paths of its files, for messages.
fn feeding_allocates_nothing(blocks: u64) {
    let line = |index: u64| if index % 1000 == 500 { "90\n".to_string() } else { format!("{}\n", index % 17) };
    let text: String = (0..10_000).map(line).collect();
    let series = ["ewma(value, .01)", "quantile(.99, window(value, 100000))", "quantile(.5, window(value, 2 s))"];
    let lines = LineMetric { unit: Unit::Nanosecond, factor: Some(1e6), counts_bad_lines: true };
    let set = CommandSet { lines: Some(lines), ..CommandSet::new("slo", ["true"]) };
    let arm = Arm { variant: "true".into(), point: Point::default() };
    let success = Test::predicate(arm, Predicate::parse("value <= 20 ms", &set.metrics()).unwrap());
    let claim = Claim::in_half("slo", "slo".into(), "in time".into(), success.clone());
    for (claims, is_recorded) in [(Vec::new(), false), (vec![claim.clone()], false), (vec![claim], true)] {
        let series = series.map(String::from).to_vec();
        let windows = WindowPlan { success: success.clone(), series, ..plan(60) };
        let plan = Plan { commands: vec![set.clone()], claims, windows: Some(windows), ..Plan::default() };
        let runs = tempfile::tempdir().unwrap();
        let recording = if is_recorded { recording(&runs) } else { Recording::None };
        // The clock is read twice for each block, and 59 s pass.
        let clock = Steps { now_ns: Cell::new(0), step_ns: 59_000_000_000 / (2 * blocks) };
        let bytes = |feed: &mut dyn FnMut()| if is_recorded { peak_bytes(feed) } else { count(feed).bytes };
        let (observations, bytes) = fed(&plan, recording, &clock, (text.as_bytes(), blocks), bytes).unwrap();
        assert_eq!(observations, blocks * 10_000);
        assert!(bytes <= if is_recorded { 1000 } else { 0 }, "{bytes} B for {observations} observations");
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
                let plan = WindowPlan { around: Around { observations, most: 20_000 }, ..plan.clone() };
                bytes(plan, has_lines, recording(&runs))
            };
            let [few, many] = [10, 1000].map(recorded);
            // The buffer for every n-th row belongs to the writer, which exists before.
            let texts = few[1] + (1 << 20) - few[0];
            assert!(texts < 10_000, "{texts} B for names and paths");
            assert_eq!(many[1] - few[1], many[0] - few[0], "the latest observations");
        }
    }
}

#[test]
fn the_announced_memory_is_the_allocated_one() {
    let _counting = COUNTING.lock().unwrap();
    all_parts_are_announced();
    the_memory_is_the_announced_one_however_many_observations_come();
    feeding_allocates_nothing(50);
}

#[test]
#[ignore = "takes minutes in a debug build"]
fn a_hundred_million_observations_allocate_nothing() {
    let _counting = COUNTING.lock().unwrap();
    feeding_allocates_nothing(10_000);
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
