//! Enumerates all splits of small samples, and finds which are exceedances in the exact arithmetic of the given
//! doubles.

use std::cmp::Ordering;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::reshuffles::Deal;
use crate::{Alternative, Comparison, Null, Question, Reshuffles, Sample, Statistic, Technique};

/// Returns how many of all splits are exceedances, according to the reshuffles of this crate.
fn exceedances(samples: &[Vec<f64>], question: &Question, technique: Technique) -> usize {
    let named = samples.iter().map(|values| Sample::new("sample", values.clone())).collect();
    let mut reshuffles = Reshuffles::with_technique(named, question, 1, technique).unwrap();
    let pool = match &reshuffles.deal {
        Deal::Shuffle(shuffled) => shuffled.values.clone(),
        Deal::Mask { .. } => vec![],
    };
    let splits = splits(&samples.iter().map(Vec::len).collect::<Vec<_>>());
    let count = splits.iter().filter(|split| {
        match &mut reshuffles.deal {
            Deal::Mask { subset, .. } => {
                subset.set(vec![split.iter().enumerate().map(|(bit, sample)| (*sample as u64) << bit).sum()]);
            }
            Deal::Shuffle(shuffled) => shuffled.values = dealt(&pool, split).concat(),
        }
        reshuffles.judge().exceeds
    });
    count.count()
}

/// Returns all splits. A split has, for each value, the index of the sample to which the value goes.
fn splits(sizes: &[usize]) -> Vec<Vec<usize>> {
    let count: usize = sizes.iter().sum();
    let all = (0..sizes.len().pow(count as u32)).map(|number| {
        (0..count as u32).map(|digit| number / sizes.len().pow(digit) % sizes.len()).collect::<Vec<usize>>()
    });
    let fits = |split: &Vec<usize>| {
        sizes.iter().enumerate().all(|(sample, size)| split.iter().filter(|to| **to == sample).count() == *size)
    };
    all.filter(fits).collect()
}

fn dealt<T: Copy>(pool: &[T], split: &[usize]) -> Vec<Vec<T>> {
    let samples = 0..=split.iter().copied().max().unwrap_or(0);
    let of = |sample| pool.iter().zip(split).filter(move |(_, to)| **to == sample).map(|(value, _)| *value).collect();
    samples.map(of).collect()
}

/// Returns the statistic multiplied by a factor that is the same for all samples. For standard deviations it returns a
/// multiple of the variance.
fn whole(sample: &[i128], sizes: &[usize], statistic: Statistic) -> i128 {
    let n = sample.len() as i128;
    let product = |factor: fn(i128) -> i128| sizes.iter().map(|size| factor(*size as i128)).product::<i128>();
    let sum: i128 = sample.iter().sum();
    match statistic {
        Statistic::Mean => sum * product(|size| size) / n,
        Statistic::StandardDeviation => {
            let squares: i128 = sample.iter().map(|x| x * x).sum();
            (n * squares - sum * sum) * (product(|size| size * (size - 1)) / (n * (n - 1)))
        }
        Statistic::Quantile(level) => {
            // All levels are multiples of a quarter.
            let mut sorted = sample.to_vec();
            sorted.sort_unstable();
            let position = (level * 4.0) as usize * (sample.len() - 1);
            let next = (position / 4 + 1).min(sample.len() - 1);
            4 * sorted[position / 4] + (position % 4) as i128 * (sorted[next] - sorted[position / 4])
        }
    }
}

/// Compares two splits by the distance between their samples' statistics. `now` has the statistics of the first split,
/// `then` those of the second.
fn compare(question: &Question, now: &[i128], then: &[i128]) -> Ordering {
    let ends = |all: &[i128]| match question.alternative {
        Alternative::TwoSided => (*all.iter().min().unwrap(), *all.iter().max().unwrap()),
        Alternative::Greater => (all[0], all[1]),
        Alternative::Less => (all[1], all[0]),
    };
    let ((low, high), (then_low, then_high)) = (ends(now), ends(then));
    match (question.comparison, question.statistic) {
        (Comparison::Ratio, _) => (high * then_low).cmp(&(then_high * low)),
        (Comparison::Difference, Statistic::StandardDeviation) => {
            // Differences of roots of whole numbers that are not too large are equal, or differ by more than this.
            let apart = |low: i128, high: i128| (high as f64).sqrt() - (low as f64).sqrt();
            let (now, then) = (apart(low, high), apart(then_low, then_high));
            if (now - then).abs() < 1e-9 * now.abs().max(1.0) { Ordering::Equal } else { now.total_cmp(&then) }
        }
        (Comparison::Difference, _) => (high - low).cmp(&(then_high - then_low)),
    }
}

fn exact_exceedances(samples: &[Vec<i128>], question: &Question) -> usize {
    let sizes: Vec<usize> = samples.iter().map(Vec::len).collect();
    let statistics = |samples: &[Vec<i128>]| {
        samples.iter().map(|sample| whole(sample, &sizes, question.statistic)).collect::<Vec<i128>>()
    };
    let observed = statistics(samples);
    let pool = samples.concat();
    let reach = splits(&sizes)
        .into_iter()
        .filter(|split| compare(question, &statistics(&dealt(&pool, split)), &observed) != Ordering::Less);
    reach.count()
}

/// One value is so much larger than all others that the sums round away the differences between the others.
#[test]
fn a_great_value_beside_small_ones_makes_no_ties() {
    let a = vec![1e15, 1.0, 2.0, 3.0];
    let b = vec![1e15, 8.0, 9.0, 7.0];
    let whole = [&a, &b].map(|sample| sample.iter().map(|x| *x as i128).collect::<Vec<i128>>());
    for statistic in [Statistic::Mean, Statistic::Quantile(0.25)] {
        let question = Question { statistic, ..Question::default() };
        let exact = exact_exceedances(&whole, &question);
        assert!(exact < 70, "not all splits tie");
        for technique in [Technique::Mask, Technique::Shuffle] {
            let found = exceedances(&[a.clone(), b.clone()], &question, technique);
            assert_eq!(found, exact, "{question:?} {technique:?}");
        }
    }
}

/// All values are far from zero. 4 of 70 splits are exceedances, and the others must not count as ties.
#[test]
fn what_is_far_from_zero_differs_as_it_does_near_it() {
    let [a, b] = [[1.0, 2.0, 3.0, 5.0], [4.0, 6.0, 7.0, 8.0]].map(|sample| sample.map(|x| x + 1e15).to_vec());
    for technique in [Technique::Mask, Technique::Shuffle] {
        assert_eq!(exceedances(&[a.clone(), b.clone()], &Question::default(), technique), 4, "{technique:?}");
    }
}

/// The reported statistics of samples far from zero must keep their digits, too.
#[test]
fn a_difference_far_from_zero_is_not_that_of_rounded_means() {
    let samples = [vec![1e15 + 1.0, 1e15 + 2.0], vec![1e15 + 1.0, 1e15 + 2.0, 1e15 + 2.0]];
    let sample = |(index, values): (usize, &Vec<f64>)| Sample { name: index.to_string(), values: values.clone() };
    let samples: Vec<Sample> = samples.iter().enumerate().map(sample).collect();
    let reshuffles = Reshuffles::new(samples, &Question::default(), 1).unwrap();
    assert!((reshuffles.observed().value - 1.0 / 6.0).abs() < 1e-12, "{}", reshuffles.observed().value);
}

/// Tests the difference of two standard deviations, which are square roots. If each sample has one of the two large
/// values, the two roots are nearly equal, and the smaller values decide their difference.
#[test]
fn roots_are_told_apart_too() {
    let samples = [vec![1e15, 1.0, 2.0, 3.0], vec![1e15, 8.0, 9.0, 7.0]];
    let of = |comparison| {
        let question = Question { statistic: Statistic::StandardDeviation, comparison, ..Question::default() };
        [Technique::Mask, Technique::Shuffle].map(|technique| exceedances(&samples, &question, technique))
    };
    // If each sample has one of the two great values, the ratio is close to 1 and orders splits as the difference does.
    assert_eq!(of(Comparison::Difference), of(Comparison::Ratio));
    assert!(of(Comparison::Difference)[0] < 70);
}

/// Multiples of 1/3 are not exact as doubles. Two reshuffles must tie if and only if their statistics are equal when
/// they are computed from the doubles without rounding.
#[test]
fn doubles_that_are_no_decimals_are_what_they_are() {
    let samples = [[1.0, 2.0, 4.0, 5.0].map(|x| x / 3.0).to_vec(), [7.0, 7.0, 8.0].map(|x| x / 3.0 - 0.1).to_vec()];
    let whole = [0, 1].map(|at| samples[at].iter().map(|x| (x * 2f64.powi(60)) as i128).collect::<Vec<i128>>());
    for statistic in [Statistic::Mean, Statistic::Quantile(0.5)] {
        for alternative in [Alternative::TwoSided, Alternative::Greater, Alternative::Less] {
            let question = Question { statistic, alternative, ..Question::default() };
            for technique in [Technique::Mask, Technique::Shuffle] {
                let exact = exact_exceedances(&whole, &question);
                assert_eq!(exceedances(&samples, &question, technique), exact, "{question:?} {technique:?}");
            }
        }
    }
}

fn question() -> impl Strategy<Value = Question> {
    let statistic = prop_oneof![
        Just(Statistic::Mean),
        Just(Statistic::StandardDeviation),
        (0..=4).prop_map(|quarters| Statistic::Quantile(f64::from(quarters) / 4.0)),
    ];
    let comparison = prop_oneof![Just(Comparison::Difference), Just(Comparison::Ratio)];
    let alternative = prop_oneof![Just(Alternative::TwoSided), Just(Alternative::Greater), Just(Alternative::Less)];
    (statistic, comparison, alternative).prop_map(|(statistic, comparison, alternative)| Question {
        statistic,
        comparison,
        alternative,
        ..Question::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Tests small whole numbers, multiplied by 0.1 or by a power of two. A large offset may be added to one of the
    /// numbers, or to all of them.
    #[test]
    fn exceedances_are_those_of_whole_numbers(
        mut samples in prop_oneof![vec(vec(1..9_i128, 2..5), 2), vec(vec(1..9_i128, 2..3), 3)],
        question in question(),
        far in prop_oneof![Just(0_i128), Just(1_000_000), Just(1_000_000_000_000_000)],
        which in prop_oneof![Just(0_usize), Just(1), Just(usize::MAX)],
        unit in prop_oneof![Just(None), (-60..60_i32).prop_map(Some)],
        shift in prop_oneof![Just(0.0), -3.0..3.0_f64],
        mask: bool,
    ) {
        let of_squares = question.statistic == Statistic::StandardDeviation;
        // Either all values are large, or one of them.
        let far = if of_squares { far.min(1_000_000) } else { far };
        let pooled = samples.iter_mut().flatten().enumerate();
        pooled.for_each(|(index, x)| if which == usize::MAX || index == which { *x += far });
        let alternative = if samples.len() == 2 { question.alternative } else { Alternative::TwoSided };
        let can_shift = samples.len() == 2 && question.comparison == Comparison::Difference;
        let shift = if can_shift { shift.round() as i128 } else { 0 };
        let plain = Question { alternative, ..question };
        prop_assume!(plain.comparison == Comparison::Difference || samples.iter().all(|x| {
            !of_squares || x.iter().any(|other| *other != x[0])
        }));
        // This test compares sums of roots in doubles, which is too imprecise for large values.
        prop_assume!(!(of_squares && plain.comparison == Comparison::Difference && far > 0 && which != usize::MAX));
        let exact = exact_exceedances(&samples, &plain);
        samples[1].iter_mut().for_each(|x| *x += shift);
        let value = |x: i128| match unit {
            Some(power) => x as f64 * 2f64.powi(power),
            None => x as f64 / 10.0,
        };
        let given: Vec<Vec<f64>> = samples.iter().map(|sample| sample.iter().map(|x| value(*x)).collect()).collect();
        let asked = Question { null: Null { shift: value(shift), scale: 1.0 }, ..plain };
        let technique = if mask { Technique::Mask } else { Technique::Shuffle };
        prop_assert_eq!(exceedances(&given, &asked, technique), exact, "{:?} {:?} {:?}", given, asked, technique);
    }

    /// Tests numbers of any size, some of them equal or opposite. Decisions by bounds must agree with exact arithmetic.
    /// The test above verifies the exact arithmetic against whole numbers.
    #[test]
    fn bounds_are_never_wrong(
        values in vec((1_u64..1 << 53, -150..150_i32, any::<bool>()), 8),
        near in 0..150_i32,
        alike in 0..4_usize,
        question in question(),
        mask: bool,
    ) {
        let is_signed = question.comparison == Comparison::Difference || question.statistic == Statistic::StandardDeviation;
        let number = |(digits, exponent, negative): (u64, i32, bool)| {
            let magnitude = digits as f64 * 2f64.powi(exponent % (near + 1));
            if negative && is_signed { -magnitude } else { magnitude }
        };
        let mut values: Vec<f64> = values.into_iter().map(number).collect();
        for index in 0..alike {
            values[index + 4] = if is_signed && index % 2 == 1 { -values[index] } else { values[index] };
        }
        let named = values.chunks(4).map(|values| Sample::new("sample", values.to_vec())).collect();
        let technique = if mask { Technique::Mask } else { Technique::Shuffle };
        // A sample without any spread cannot have a ratio.
        let Ok(mut reshuffles) = Reshuffles::with_technique(named, &question, 1, technique) else { return Ok(()) };
        for _ in 0..100 {
            let exceeds = reshuffles.draw().exceeds;
            prop_assert_eq!(Some(exceeds), reshuffles.exceeds_exactly(), "{:?} {:?}", values, question);
        }
    }
}
