//! Both tails against references of 80 digits, written by `vectors/make.py`.

use super::*;
use serde_json::Value;

#[test]
fn tails_are_as_good_as_documented() {
    let table: Value = serde_json::from_str(include_str!("../../vectors/beta_tails.json")).unwrap();
    let rows = table["rows"].as_array().unwrap();
    assert!(rows.len() > 100);
    for row in rows {
        let number = |column: usize| -> f64 { row[column].as_str().unwrap().parse().unwrap() };
        let tail = BetaTail { a: number(0), b: number(1), rate: Rate::new(number(2)), excess: number(3) };
        let deviance = tail.rate.deviance(tail.a, tail.b, tail.excess);
        for (computed, exact) in [(tail.log_upper(), number(4)), (tail.mirrored().log_upper(), number(5))] {
            let error = computed - exact;
            assert!(error.abs() <= 1e-12 + 4e-15 * deviance, "{tail:?}: off by {error}");
        }
    }
}
