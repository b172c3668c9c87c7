//! Student's t against statrs, and the coverage of its intervals in simulations.

use ascertain_stats::{
    MeanPart, combined_mean_interval, mean_interval, means_without_each, student_size, student_tails,
};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use statrs::distribution::{ContinuousCDF, StudentsT};

#[test]
fn tails_and_sizes_are_those_of_the_distribution() {
    for degrees in [1.0, 1.5, 2.0, 3.0, 9.0, 17.3, 100.0, 1e4, 1e6] {
        let known = StudentsT::new(0.0, 1.0, degrees).unwrap();
        for size in [1e-6, 0.01, 0.5, 1.0, 2.0, 4.3, 12.7, 40.0] {
            let (tails, expected) = (student_tails(size, degrees), 2.0 * known.sf(size));
            // statrs computes ν / (ν + t²), which is rounded to 1 for a small t and many degrees.
            let rounding = (1.0 - tails) * degrees * f64::EPSILON / (size * size);
            assert!(
                (tails - expected).abs() <= 1e-9 * expected + 1e-11 + rounding,
                "{degrees} {size}: {tails} {expected}"
            );
        }
        for error in [0.5, 0.05, 0.01, 1e-6] {
            let size = student_size(error, degrees).unwrap();
            assert!((student_tails(size, degrees) / error - 1.0).abs() < 1e-9, "{degrees} {error}: {size}");
        }
    }
    // The published table of the t distribution, for an error of 5 %.
    for (degrees, expected) in [(1.0, 12.7062), (2.0, 4.30265), (4.0, 2.77645), (9.0, 2.26216), (30.0, 2.04227)] {
        assert!((student_size(0.05, degrees).unwrap() - expected).abs() < 1e-4 * expected);
    }
    assert!((student_size(0.05, f64::INFINITY).unwrap() - 1.959_964).abs() < 1e-5);
    for degrees in [0.0, -1.0, f64::NAN] {
        assert!(student_size(0.05, degrees).is_err());
    }
    assert!(student_size(0.0, 3.0).is_err());
}

#[test]
fn few_or_infinite_values_have_no_interval() {
    for sample in [&[][..], &[1.0], &[1.0, f64::INFINITY], &[1.0, f64::NAN, 2.0]] {
        assert_eq!(mean_interval(sample, 0.05).unwrap(), None, "{sample:?}");
    }
    let constant = mean_interval(&[2.0; 5], 0.05).unwrap().unwrap();
    assert_eq!((constant.low, constant.high, constant.degrees), (2.0, 2.0, 4.0));
    assert_eq!(means_without_each(&[1.0, 2.0, 6.0]), [4.0, 3.5, 1.5]);
    assert!(means_without_each(&[1.0]).is_empty());
}

#[test]
fn a_single_part_is_the_interval_of_its_sample() {
    let sample = [0.1, 0.4, 0.25, -0.3];
    let part = MeanPart::new(1.0, &sample).unwrap();
    assert_eq!(combined_mean_interval(&[part], 0.05).unwrap(), mean_interval(&sample, 0.05).unwrap());
    // Two parts of the same size and variance have twice the degrees of freedom.
    let halves = [MeanPart { weight: 0.5, ..part }; 2];
    let both = combined_mean_interval(&halves, 0.05).unwrap().unwrap();
    assert!((both.degrees - 6.0).abs() < 1e-9 && (both.mean - part.mean).abs() < 1e-12);
    assert!((both.standard_error - part.variance.sqrt() / 2_f64.sqrt()).abs() < 1e-12);
}

fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    // The sum of twelve uniform numbers has variance 1, and tails that are close enough here.
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

/// Returns how many of 4,000 intervals miss 0.
fn misses(mut interval: impl FnMut(&mut Xoshiro256PlusPlus) -> (f64, f64)) -> usize {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(37);
    let is_miss = |(low, high): (f64, f64)| low > 0.0 || high < 0.0;
    (0..4000).filter(|_| is_miss(interval(&mut rng))).count()
}

/// Of 4,000 intervals at 95 %, 200 should miss. The limits are five standard deviations.
#[test]
fn intervals_miss_one_time_in_twenty() {
    for count in [3, 10] {
        let missed = misses(|rng| {
            let sample: Vec<f64> = (0..count).map(|_| normal(rng)).collect();
            let interval = mean_interval(&sample, 0.05).unwrap().unwrap();
            (interval.low, interval.high)
        });
        assert!((131..=269).contains(&missed), "{count}: {missed}");
        // Normal quantiles would be wrong with so few values.
        let normal_missed = misses(|rng| {
            let sample: Vec<f64> = (0..count).map(|_| normal(rng)).collect();
            let interval = mean_interval(&sample, 0.05).unwrap().unwrap();
            (interval.mean - 1.96 * interval.standard_error, interval.mean + 1.96 * interval.standard_error)
        });
        assert!(normal_missed > 269, "{count}: {normal_missed}");
    }
    // Ten workloads with variances that differ by a factor of 10,000.
    let missed = misses(|rng| {
        let part = |workload: i32| {
            let sample: Vec<f64> =
                (0..12).map(|_| normal(rng) * 10_f64.powf(-2.0 + f64::from(workload) / 4.5)).collect();
            MeanPart::new(0.1, &sample).unwrap()
        };
        let parts: Vec<MeanPart> = (0..10).map(part).collect();
        let interval = combined_mean_interval(&parts, 0.05).unwrap().unwrap();
        (interval.low, interval.high)
    });
    assert!((131..=269).contains(&missed), "{missed}");
}
