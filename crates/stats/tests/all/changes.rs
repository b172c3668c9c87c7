//! Tests of change points: the rate of false alarms, simulated and on recorded runs, and how soon a step is found.

use ascertain_stats::{ChangePoint, VALUES_PER_FALSE_ALARM, change_points, median_sorted};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Returns normal noise with standard deviation 1.
fn noise(rng: &mut Xoshiro256PlusPlus) -> f64 {
    let (radius, angle): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

fn series(rng: &mut Xoshiro256PlusPlus, levels: &[(usize, f64)]) -> Vec<f64> {
    levels
        .iter()
        .flat_map(|&(count, level)| std::iter::repeat_n(level, count))
        .map(|level| level + noise(rng))
        .collect()
}

/// Returns the ratio and the baseline's median in milliseconds of 2,000 runs of `compare -r 12`, in their order. They
/// compared an `awk` program of 6 ms with itself, on two cores on which compilers were running part of the time.
fn recorded() -> (Vec<f64>, Vec<f64>) {
    let rows = include_str!("../data/same-command.csv").lines().skip(1);
    rows.map(|row| row.split_once(',').unwrap())
        .map(|(a, b)| (a.parse::<f64>().unwrap(), b.parse::<f64>().unwrap()))
        .unzip()
}

#[test]
fn false_alarms_are_rarer_than_stated() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    // Short series, and one long series that continues after its false alarms.
    let short: usize = (0..150).map(|_| change_points(&series(&mut rng, &[(200, 0.0)])).len()).sum();
    let long = change_points(&series(&mut rng, &[(30_000, 0.0)])).len();
    let most = 30_000.0 / VALUES_PER_FALSE_ALARM;
    assert!((short as f64) < most && (long as f64) < most, "{short} and {long} in 30,000 values each");
    assert!(short + long > 5, "the bound is not far from the truth: {short} and {long}");
}

#[test]
fn recorded_runs_of_equal_commands_have_few_alarms() {
    let (ratios, baselines) = recorded();
    assert_eq!(ratios.len(), 2000);
    let alarms = change_points(&ratios);
    assert!(alarms.len() as f64 <= ratios.len() as f64 / VALUES_PER_FALSE_ALARM, "{alarms:?}");
    // The load of the machine changed many times, which the ratio hides.
    assert!(change_points(&baselines).len() > 10);
}

/// A step of 5 % at a noise of 1 %, after 8 to 60 runs, in each direction.
#[test]
fn a_step_is_found_within_ten_values() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    let (mut late, mut misplaced) = (0, 0);
    for step in 0..600 {
        let (before, size) = (8 + step % 53, if step % 2 == 0 { 5.0 } else { -5.0 });
        let changes = change_points(&series(&mut rng, &[(before, 100.0), (10, 100.0 + size)]));
        let found = changes.iter().find(|change| change.found >= before);
        late += usize::from(found.is_none());
        misplaced += usize::from(found.is_some_and(|change| change.first != before));
    }
    assert!(late <= 3 && misplaced <= 30, "{late} late and {misplaced} misplaced of 600");
}

/// The same with recorded noise: a step of five standard deviations, estimated from the median deviation.
#[test]
fn a_step_in_recorded_runs_is_found_within_ten_values() {
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        median_sorted(&values).unwrap()
    };
    let (ratios, _) = recorded();
    let is_found = |part: &&[f64]| {
        let middle = median(part.to_vec());
        let deviation = 1.4826 * median(part.iter().map(|value| (value - middle).abs()).collect());
        let mut values = part.to_vec();
        values[30..].iter_mut().for_each(|value| *value += 5.0 * deviation);
        change_points(&values).iter().any(|change| change.first.abs_diff(30) <= 5 && (30..40).contains(&change.found))
    };
    let found = ratios.chunks_exact(50).filter(is_found).count();
    assert!(found >= 38, "{found} of 40");
}

#[test]
fn a_step_that_ends_is_two_changes() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let changes = change_points(&series(&mut rng, &[(30, 0.0), (12, 6.0), (30, 0.0)]));
    let firsts: Vec<usize> = changes.iter().map(|change| change.first).collect();
    assert_eq!(firsts, [30, 42]);
}

/// Only the order of the values counts, so the distribution of the noise does not matter.
#[test]
fn the_distribution_of_the_noise_does_not_matter() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
    let values = series(&mut rng, &[(40, 0.0), (20, 3.0), (40, 1.0)]);
    let heavy: Vec<f64> = values.iter().map(|value| (3.0 * value).exp()).collect();
    let found = |values: &[f64]| change_points(values).first().map(|change| change.found);
    assert!(found(&values).is_some());
    assert_eq!(found(&values), found(&heavy));
}

#[test]
fn outliers_are_no_change() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let mut values = series(&mut rng, &[(120, 0.0)]);
    for index in [60, 61, 90] {
        values[index] = 1e6 + index as f64;
    }
    assert_eq!(change_points(&values), []);
}

/// Counts of instructions are often all equal.
#[test]
fn equal_values_are_no_evidence() {
    let mut counts = vec![1.0; 100];
    assert_eq!(change_points(&counts), []);
    counts[50..].fill(1.001);
    assert_eq!(change_points(&counts), [ChangePoint { first: 50, found: 54 }]);
    assert_eq!(change_points(&[]), []);
    assert_eq!(change_points(&[1.0, 2.0, f64::INFINITY, f64::NAN]), []);
}
