//! Compares the memory that long measurements announce with the memory that they allocate. This is a program of its own,
//! because the allocator counts the allocations of all threads.
#![allow(missing_docs)]

use std::time::Duration;

use ascertain_engine::claim::Test;
use ascertain_engine::experiment::{Arm, Point};
use ascertain_engine::windows::{Around, MemoryReport, Meter, WindowPlan};
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

#[test]
fn the_memory_is_the_announced_one_however_many_observations_come() {
    for (windows, is_signed, observations) in
        [(1, false, 1_000_000_u64), (60, true, 1_000_000), (60, false, 10_000_000)]
    {
        let plan = plan(windows);
        let mut announced = MemoryReport::default();
        Meter::announce(&plan, is_signed, &mut announced);
        let mut meter = None;
        let allocated = count(|| meter = Some(Meter::new(&plan, is_signed).unwrap()));
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
