//! Compares the share of exceedances with the exact p-value for small samples. The exact p-value is found by
//! enumerating all splits, in integer arithmetic.

use crate::{Alternative, Comparison, Null, Question, Reshuffles, Sample, Statistic, Technique};

/// Returns the statistic as a whole number: twice the median, or the sum times the other sample's size.
fn whole(sample: &mut [i64], other_size: usize, statistic: Statistic) -> i64 {
    sample.sort_unstable();
    match statistic {
        Statistic::Mean => sample.iter().sum::<i64>() * other_size as i64,
        _ => sample[(sample.len() - 1) / 2] + sample[sample.len() / 2],
    }
}

fn exact_p(a: &[i64], b: &[i64], statistic: Statistic, alternative: Alternative) -> f64 {
    let distance = |a: &mut [i64], b: &mut [i64]| {
        let (of_a, of_b) = (whole(a, b.len(), statistic), whole(b, a.len(), statistic));
        match alternative {
            Alternative::TwoSided => (of_b - of_a).abs(),
            Alternative::Greater => of_b - of_a,
            Alternative::Less => of_a - of_b,
        }
    };
    let observed = distance(&mut a.to_vec(), &mut b.to_vec());
    let pooled = [a, b].concat();
    let splits = (0..1_u32 << pooled.len()).filter(|mask| mask.count_ones() as usize == b.len());
    let (mut all, mut exceeding) = (0.0, 0.0);
    for mask in splits {
        let of = |bit: u32| pooled.iter().enumerate().filter(move |(i, _)| mask >> i & 1 == bit).map(|(_, x)| *x);
        let (mut a, mut b): (Vec<i64>, Vec<i64>) = (of(0).collect(), of(1).collect());
        all += 1.0;
        exceeding += f64::from(u8::from(distance(&mut a, &mut b) >= observed));
    }
    exceeding / all
}

fn share(a: &[f64], b: &[f64], question: &Question, technique: Technique) -> f64 {
    let samples = vec![Sample::new("a", a.to_vec()), Sample::new("b", b.to_vec())];
    let mut reshuffles = Reshuffles::with_technique(samples, question, 5, technique).unwrap();
    (0..DRAWS).filter(|_| reshuffles.draw().exceeds).count() as f64 / f64::from(DRAWS)
}

const DRAWS: u32 = 2000;

fn is_near(share: f64, p: f64) -> bool {
    // The difference exceeds this less than once in a million times.
    (share - p).abs() <= 5.0 * (p * (1.0 - p) / f64::from(DRAWS)).sqrt()
}

/// Small whole numbers have many ties. They must remain ties if the numbers are divided by ten, or moved far from zero.
#[test]
fn shares_are_the_exact_p_values() {
    let samples: [(&[i64], &[i64]); 5] = [
        (&[1, 2], &[3, 4]),
        (&[1, 3], &[2, 4]),
        (&[0, 1, 1, 2, 5], &[2, 2, 3, 7]),
        (&[1, 2, 3, 4, 5, 6, 7], &[8, 9, 10, 3, 5]),
        (&[4, 4, 4], &[4, 4, 4, 4]),
    ];
    for (a, b) in samples {
        for statistic in [Statistic::Mean, Statistic::Quantile(0.5)] {
            for alternative in [Alternative::TwoSided, Alternative::Greater, Alternative::Less] {
                let p = exact_p(a, b, statistic, alternative);
                for (factor, offset) in [(1.0, 0.0), (10.0, 0.0), (10.0, 1e6), (8.0, -7.0)] {
                    let [a, b] = [a, b].map(|x| x.iter().map(|x| *x as f64 / factor + offset).collect::<Vec<_>>());
                    for technique in [Technique::Mask, Technique::Shuffle] {
                        let question = Question { statistic, alternative, ..Question::default() };
                        let share = share(&a, &b, &question, technique);
                        assert!(is_near(share, p), "{a:?} {b:?} {question:?} {technique:?}: {share}, exactly {p}");
                    }
                }
            }
        }
    }
}

/// If the second sample is shifted or scaled as the null hypothesis states, the p-value must be that of the original
/// samples.
#[test]
fn what_the_null_says_is_undone() {
    let (a, b) = ([1.0, 2.0, 4.0, 5.5, 7.25], [3.0, 5.0, 6.5, 9.0]);
    for (comparison, null) in [
        (Comparison::Difference, Null { shift: 12.5, scale: 1.0 }),
        (Comparison::Difference, Null { shift: -0.1, scale: 1.0 }),
        (Comparison::Ratio, Null { shift: 0.0, scale: 3.0 }),
        (Comparison::Ratio, Null { shift: 0.0, scale: 0.1 }),
    ] {
        let moved = b.map(|x| x * null.scale + null.shift);
        for statistic in [Statistic::Mean, Statistic::StandardDeviation, Statistic::Quantile(0.75)] {
            for alternative in [Alternative::TwoSided, Alternative::Greater, Alternative::Less] {
                for technique in [Technique::Mask, Technique::Shuffle] {
                    let plain = Question { statistic, comparison, alternative, null: Null::default() };
                    let p = share(&a, &b, &plain, technique);
                    let undone = share(&a, &moved, &Question { null, ..plain }, technique);
                    assert_eq!(p, undone, "{plain:?} {null:?} {technique:?}");
                }
            }
        }
    }
}

/// Tests three samples in three cases: one sample differs from the others, none differs, or all differ slightly.
#[test]
fn of_many_samples_the_greatest_and_the_least_are_compared() {
    let sample = |name: &str, from: f64| Sample::new(name, (0..12).map(|i| from + f64::from(i % 5)).collect());
    for comparison in [Comparison::Difference, Comparison::Ratio] {
        let question = Question { comparison, ..Question::default() };
        let exceeding = |starts: [f64; 3]| {
            let samples = ["a", "b", "c"].into_iter().zip(starts).map(|(name, from)| sample(name, from)).collect();
            let mut reshuffles = Reshuffles::new(samples, &question, 7).unwrap();
            (0..500).filter(|_| reshuffles.draw().exceeds).count()
        };
        assert_eq!(exceeding([10.0, 10.0, 14.0]), 0);
        assert_eq!(exceeding([10.0, 10.0, 10.0]), 500, "every reshuffle reaches a difference of zero");
        assert!(exceeding([10.0, 10.1, 10.2]) > 250);
    }
}
