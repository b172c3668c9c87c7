//! The flat quantile table against sorted values.

use ascertain_streams::{FlatTable, RELATIVE_ERROR};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::reference::quantile;
use crate::run_on;

fn random_values(rng: &mut Xoshiro256PlusPlus, count: usize, is_signed: bool) -> Vec<f64> {
    let spread = rng.random_range(0.01..20.0);
    let one = |rng: &mut Xoshiro256PlusPlus| {
        let exponent: f64 = rng.random_range(-1.0..1.0) * spread;
        let sign = if is_signed && rng.random_range(0..2) == 0 { -1.0 } else { 1.0 };
        sign * 1000.0 * exponent.exp2()
    };
    (0..count).map(|_| one(rng)).collect()
}

fn is_near(found: f64, expected: f64, most: f64) -> bool {
    (found - expected).abs() <= RELATIVE_ERROR * most.abs().max(expected.abs())
}

#[test]
fn merged_tables_have_the_stated_error() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    for round in 0..200 {
        let is_signed = round % 2 == 1;
        let parts = rng.random_range(1..5);
        let mut merged = FlatTable::new(is_signed, 8).unwrap();
        let mut all = Vec::new();
        for _ in 0..parts {
            let count = rng.random_range(1..2_000);
            let values = random_values(&mut rng, count, is_signed);
            let mut table = FlatTable::new(is_signed, 8).unwrap();
            values.iter().for_each(|value| table.insert(*value).unwrap());
            merged.merge(&table).unwrap();
            all.extend(values);
        }
        all.sort_by(f64::total_cmp);
        for level in [0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let (found, expected) = (merged.quantile(level).unwrap(), quantile(&all, level));
            // Between two neighbours of different signs, the error is relative to the larger of them.
            let neighbour = all[((level * (all.len() - 1) as f64).ceil()) as usize];
            let below = all[((level * (all.len() - 1) as f64).floor()) as usize];
            assert!(is_near(found, expected, neighbour.abs().max(below.abs())), "{level}: {found} {expected}");
        }
    }
}

#[test]
fn windows_above_the_limit_of_selection_have_the_stated_error() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    let values = random_values(&mut rng, 60_000, false);
    for (text, step) in [
        ("quantile(.99, window(time, 20000))", 20_000),
        ("quantile(.99, window(time, 20000, 3))", 3),
        ("quantile(.99, window(time, 20000, 25000))", 25_000),
    ] {
        let found = run_on(text, &values, 256);
        let starts = (0..=values.len() - 20_000).step_by(step);
        assert_eq!(found.len(), starts.clone().count(), "{text}");
        for (found, start) in found.iter().zip(starts).step_by(if step == 3 { 500 } else { 1 }) {
            let mut window = values[start..start + 20_000].to_vec();
            window.sort_by(f64::total_cmp);
            let expected = quantile(&window, 0.99);
            assert!(is_near(*found, expected, expected), "{text} from {start}: {found} {expected}");
        }
    }
}

#[test]
fn values_outside_of_the_octaves_are_counted_at_the_ends() {
    let mut table = FlatTable::new(false, 0).unwrap();
    for value in [0.0, 1e-9, f64::INFINITY, 1e300] {
        table.insert(value).unwrap();
    }
    assert_eq!(table.quantile(0.0), Some(0.0));
    assert_eq!(table.quantile(1.0 / 3.0), Some(0.0));
    assert_eq!(table.quantile(1.0), Some(f64::INFINITY));
    assert_eq!([1.5, -0.1, f64::NAN].map(|level| table.quantile(level)), [None; 3]);
    let mut table = FlatTable::new(true, 0).unwrap();
    for value in [f64::NEG_INFINITY, -5.0, -0.0, 5.0] {
        table.insert(value).unwrap();
    }
    assert_eq!(table.quantile(0.0), Some(f64::NEG_INFINITY));
    assert!((table.quantile(1.0 / 3.0).unwrap() + 5.0).abs() < 5.0 * RELATIVE_ERROR);
    assert_eq!(table.quantile(2.0 / 3.0), Some(0.0));
}
