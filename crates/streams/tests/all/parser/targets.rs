//! Properties that the parser and the planner have for any text. `fuzz/` also checks them.

use ascertain_streams::{
    Engine, Failure, OneClock, Plan, PlanOptions, Problem, Recorded, RunError, Unit, WayOut, parse,
};

/// Largest memory of a plan that is also run, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Checks that a parsed expression is the same after it was printed and parsed again. Also checks that errors have a
/// place in the text, and that every accepted plan runs without a panic.
pub fn expressions(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match parse(text) {
        Ok(expression) => {
            let printed = expression.to_string();
            let again = parse(&printed).unwrap_or_else(|error| panic!("`{printed}`: {error}"));
            assert_eq!(again.to_string(), printed);
        }
        Err(error) => assert!(text.get(error.place()).is_some() && !error.to_string().is_empty(), "{error}"),
    }
    let series = [("time", Unit::TIME), ("memory", Unit::BYTES), ("x", Unit::ONE)];
    let options = PlanOptions { block: 8, has_ranges: text.len() % 2 == 0, is_endless: false };
    let plan = match Plan::with(text, &OneClock::new(&series), options) {
        Ok(plan) => plan,
        Err(error) => {
            assert!(text.get(error.place()).is_some() && !error.to_string().is_empty(), "{error}");
            let Problem::Unbounded(unbounded) = error.problem() else { return };
            for WayOut { expression, .. } in &unbounded.ways {
                Plan::with(expression, &OneClock::new(&series), options).expect("each way out is accepted");
            }
            return;
        }
    };
    assert!(!plan.to_string().is_empty());
    if plan.memory().total() > MOST_BYTES {
        return;
    }
    let values = [3.0, 1.0, f64::NAN, 4.0, 1.0, 5.0, f64::INFINITY, 9.0, 2.0, 6.0, 5.0, 3.0, 5.0, 0.0, 7.0, 9.0, 7.0];
    let mut engine = Engine::new(&plan).expect("the plan is small");
    let mut results = 0_u64;
    let ran = engine.run(&mut Recorded::new(&[&values[..]; 3]), |some| {
        results += some.lows.len() as u64;
        true
    });
    match (ran, plan.results_after(values.len() as u64)) {
        (Ok(()), Some(counted)) if plan.readings() == 1 => assert_eq!(results, counted, "{text}"),
        // The run ends when a reading that is ahead reaches the end.
        (Ok(()), Some(counted)) => assert!(results <= counted, "{text}: {results} {counted}"),
        (Ok(()), None) => {}
        (Err(Failure::Run(RunError::BufferFull { .. })), _) if text.contains("buffer") => {}
        (Err(error), _) => panic!("{text}: {error}"),
    }
}
