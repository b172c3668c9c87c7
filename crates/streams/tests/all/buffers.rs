//! Buffers of a stated size: a run has the same results, and ends at the same observation, in blocks of every size.

use ascertain_streams::{Engine, Failure, Plan, PlanOptions, Recorded, RunError};

use crate::catalogue;

/// The results of a run as bits, and the number of results in the error of a full buffer.
type Ended = (Vec<u64>, Option<u64>);

fn ended(text: &str, values: &[f64], block: usize) -> Ended {
    let options = PlanOptions { block, has_ranges: false, is_endless: false };
    let plan = Plan::with(text, &catalogue(), options).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut results = Vec::new();
    let mut engine = Engine::new(&plan).unwrap();
    let ran = engine.run(&mut Recorded::new(&[values; 5]), |some| {
        results.extend(some.lows.iter().map(|value| value.to_bits()));
        true
    });
    match ran {
        Ok(()) => (results, None),
        Err(Failure::Run(RunError::BufferFull { results: before, .. })) => (results, Some(before)),
        Err(error) => panic!("{text}: {error}"),
    }
}

#[test]
fn blocks_of_every_size_have_the_same_results_and_errors() {
    let values: Vec<f64> = (0..3000).map(|index| f64::from(index * 7919 % 1000)).collect();
    for (text, is_full) in [
        ("every(x, 2) - buffer(x, 10)", true),
        ("every(x, 2) - buffer(x, 100)", true),
        ("every(x, 2) - buffer(x, 1499)", true),
        ("every(x, 2) - buffer(x, 1500)", false),
        ("mean(window(every(x, 2) - buffer(x, 333), 4))", true),
        // The window has no result in the first 39 observations.
        ("mean(window(x, 40, 3)) - buffer(x, 38)", true),
        ("mean(window(x, 40, 3)) - buffer(x, 50)", true),
        // The other side is ahead at first.
        ("buffer(repeat(drop(x, 30), 2), 20) - x", true),
        ("buffer(repeat(drop(x, 30), 2), 700) - x", true),
        // Values wait before each burst of 40 values.
        ("repeat(every(x, 50), 40) - buffer(x, 45)", true),
        ("repeat(every(x, 300), 290) - buffer(x, 17)", true),
        ("repeat(every(x, 300), 290) - buffer(x, 1000)", false),
        ("every(where(x, x > 500), 3) - buffer(where(x, x > 500), 100)", true),
        ("every(where(x, x > 990), 2) - buffer(where(x, x > 990), 10)", true),
        ("where(every(x, 2) - buffer(x, 200), every(x, 2) > 100) - 1", true),
        ("mean(window(every(x, 2) - buffer(x, 300), 10 ms))", true),
        ("x - hold(every(x, 2) - buffer(x, 300))", true),
        ("(every(x, 2) - buffer(x, 300)) + (every(y, 2) - buffer(y, 77))", true),
        ("(repeat(x, 2) - again(x)) + buffer(repeat(x, 3), 100)", true),
        ("(repeat(x, 2) - again(x)) + buffer(repeat(x, 3), 2000)", false),
        ("every(x, 9) - again(every(y, 2) - buffer(y, 250))", true),
        ("every(x, 9) - again(every(y, 2) - buffer(y, 400))", false),
    ] {
        let expected = ended(text, &values, 1);
        assert_eq!(expected.1.is_some(), is_full, "{text}: {:?}", expected.1);
        for block in [2, 7, 64, 256, 1024] {
            let found = ended(text, &values, block);
            assert_eq!(found.1, expected.1, "{text} in blocks of {block}");
            assert!(found.0 == expected.0, "{text} in blocks of {block}: {} results", found.0.len());
        }
    }
}

#[test]
fn a_full_buffer_ends_the_run() {
    // After 201 observations there are 101 results, and 100 values wait.
    for block in [1, 64, 256] {
        let (results, error) = ended("every(x, 2) - buffer(x, 100)", &[1.0; 1000], block);
        assert_eq!((results.len(), error), (101, Some(101)), "in blocks of {block}");
    }
}
