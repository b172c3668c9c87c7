//! Compares the memory that plans announce with the memory that their runs allocate. This is a program of its own,
//! because the allocator counts the allocations of all threads.

use ascertain_streams::{Engine, OneClock, Plan, PlanOptions, Recorded, Unit};
use ascertain_sys::allocations::{Allocations, CountingAllocator, count};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::system();

const EXPRESSIONS: &[&str] = &[
    "ewma(time, .01) / lag(ewma(time, .01), 1000)",
    "time / hold(quantile(.99, window(time, 1000)))",
    "time - repeat(every(time, 2), 2)",
    "repeat(every(time, 6), 4) - repeat(every(time, 3), 2)",
    "time - mean(window(time, 1000, 1))",
    "max(window(time, 1000, 10)) / min(window(time, 1000, 10))",
    "quantile(.5, window(time, 100, 1))",
    "quantile(.5, window(time, 70000))",
    "quantile(.5, window(time - lag(time, 1), 70000, 7))",
    "quantile(.99, time)",
    "mean(window(time, 1 s, step 100 ms))",
    "quantile(.9, window(time, 1 s, step 250 ms))",
    "where(time, time > 5 ns) - hold(sum(window(where(time, time > 3 ns), 10)))",
    "every(time, 2) / again(time)",
    "repeat(time, 3) / again(repeat(time, 2))",
    "every(time, 2) / buffer(time, 100000)",
    "count(window(time, 12, 8)) + every(count(time), 8)",
    "per_second(count(window(time, 2 s, step 1 s)))",
];

#[test]
fn runs_allocate_exactly_the_announced_memory() {
    let values: Vec<f64> = (0..100_000).map(|index| f64::from(index * 7919 % 1000)).collect();
    let catalogue = OneClock::new(&[("time", Unit::TIME)]);
    for text in EXPRESSIONS {
        for (block, has_ranges, is_endless) in [(1, false, false), (256, false, true), (64, true, false)] {
            let options = PlanOptions { block, has_ranges, is_endless };
            let plan = Plan::with(text, &catalogue, options).unwrap_or_else(|error| panic!("{text}: {error}"));
            let announced = plan.memory().total();
            let mut engine = None;
            let allocated = count(|| engine = Some(Engine::new(&plan).unwrap()));
            assert_eq!(allocated.bytes, announced, "{text} in blocks of {block}, ranges: {has_ranges}\n{plan}");
            let mut engine = engine.unwrap();
            let series = [values.as_slice(); 2];
            let mut evidence = Recorded::ranges(&[series]).for_readings(plan.readings());
            let mut results = 0;
            let running = count(|| {
                engine.run(&mut evidence, |some| {
                    results += some.lows.len();
                    true
                })
            });
            assert_eq!(running, Allocations { allocations: 0, bytes: 0 }, "{text} allocates while it runs");
            assert!(results > 0, "{text} has no results");
            let counted = plan.results_after(values.len() as u64);
            let is_again = plan.readings() > 1;
            assert!(
                is_again || counted.is_none_or(|counted| counted == results as u64),
                "{text}: {counted:?} {results}"
            );
        }
    }
}
