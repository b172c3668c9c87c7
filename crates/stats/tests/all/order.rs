//! Tests of the judge that bets on magnitudes: its evidence, unknown pairs, ties, and the soonest verdict.

use ascertain_stats::{Error, OrderJudge, Tally, Verdict, log_e_holds, log_e_refuted, soonest_order_verdict};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use statrs::distribution::{Cauchy, Continuous, StudentsT};

fn judge() -> OrderJudge {
    OrderJudge::new(0.0005, 0.0005).unwrap()
}

/// Log-ratios of all sizes, including ties and infinities.
fn log_ratios() -> impl Strategy<Value = Vec<f64>> {
    let size = prop_oneof![
        4 => (-16.0..3.0).prop_map(f64::exp),
        2 => (0.01..0.1f64).prop_map(|size| size),
        1 => prop::sample::select(vec![0.0, 5e-324, 1e-310, 5.3, 1500.0, f64::INFINITY]),
    ];
    let log_ratio = (size, 0.0..1.0).prop_map(|(size, sign): (f64, f64)| if sign < 0.7 { size } else { -size });
    prop::collection::vec(log_ratio, 1..60)
}

/// A gambler who bets on positive signs. This implementation uses the textbook formulas of the densities, without
/// shared terms.
struct Naive {
    components: Vec<Component>,
    log_wealth: f64,
}

struct Component {
    prior: f64,
    weight: f64,
    density: Box<dyn Fn(f64) -> f64>,
}

impl Naive {
    fn new() -> Naive {
        let mut components = Vec::new();
        for power in 0..16 {
            let scale = 1e-4 * 1.9_f64.powi(power);
            for (share, width) in [(0.05, 5.0), (0.3, 10.0), (0.6, 15.0), (0.8, 50.0)] {
                let noise = move |shift: f64, d: f64| {
                    let narrow = StudentsT::new(shift * scale, scale, 5.0).unwrap();
                    let wide = Cauchy::new(shift * scale, width * scale).unwrap();
                    (1.0 - share) * narrow.pdf(d) + share * wide.pdf(d)
                };
                for shift in [0.07, 0.122, 0.214, 0.374, 0.655, 1.145, 2.0, 3.5] {
                    components.push((1.0, Box::new(move |d| noise(shift, d)) as Box<dyn Fn(f64) -> f64>));
                }
                for rate in [0.55, 0.65, 0.75, 0.85, 0.95] {
                    for around in [0.0, 3.5] {
                        let sign = move |d: f64| if d > 0.0 { rate } else { 1.0 - rate };
                        let size = move |d: f64| noise(around, d) + noise(-around, d);
                        components.push((0.4, Box::new(move |d| sign(d) * size(d))));
                    }
                }
            }
        }
        let all: f64 = components.iter().map(|(prior, _)| prior).sum();
        let component = |(prior, density)| Component { prior: prior / all, weight: prior / all, density };
        Naive { components: components.into_iter().map(component).collect(), log_wealth: 0.0 }
    }

    fn observe(&mut self, log_ratio: f64) {
        let greatest = 3.5 * 1e-4 * 1.9_f64.powi(15);
        let d = log_ratio.clamp(-greatest, greatest);
        let predicted = |d: f64| self.components.iter().map(|c| c.weight * (c.density)(d)).sum::<f64>();
        let (actual, opposite) = (predicted(d), predicted(-d));
        self.log_wealth += (2.0 * actual / (actual + opposite)).ln();
        for Component { prior, weight, density } in &mut self.components {
            *weight = 0.997 * *weight * density(d) / actual + 0.003 * *prior;
        }
    }

    fn log_e(&self, log_signs: f64) -> f64 {
        (0.4 * self.log_wealth.exp() + 0.6 * log_signs.exp()).ln()
    }
}

#[test]
fn evidence_is_the_textbooks_and_never_above_it() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    for (effect, width) in [(0.05, 0.07), (0.001, 0.002), (0.0, 1.0), (3.0, 0.2)] {
        let (mut judge, mut faster, mut slower) = (judge(), Naive::new(), Naive::new());
        for _ in 0..40 {
            let log_ratio = effect + width * (rng.random::<f64>() - 0.5) / rng.random::<f64>();
            judge.observe(log_ratio);
            faster.observe(log_ratio);
            slower.observe(-log_ratio);
            let exact = faster.log_e(log_e_holds(judge.tally(), 0.5));
            assert!(judge.log_e_holds() < exact && exact - judge.log_e_holds() < 1e-9, "{exact} {judge:?}");
            let exact = slower.log_e(log_e_refuted(judge.tally(), 0.5));
            assert!(judge.log_e_refuted() < exact && exact - judge.log_e_refuted() < 1e-9, "{exact} {judge:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn negated_log_ratios_swap_the_directions(log_ratios in log_ratios()) {
        let (mut one, mut other) = (judge(), judge());
        for log_ratio in log_ratios {
            prop_assert_eq!(one.observe(log_ratio).is_some(), other.observe(-log_ratio).is_some());
            prop_assert_eq!((one.log_e_holds(), one.log_e_refuted()), (other.log_e_refuted(), other.log_e_holds()));
            prop_assert_eq!(one.tally().successes, other.tally().failures());
        }
    }

    #[test]
    fn units_do_not_matter(log_ratios in log_ratios(), power in -300..300) {
        let unit = 2.0_f64.powi(power);
        let (mut one, mut other) = (judge(), judge());
        for log_ratio in log_ratios {
            let (reference, candidate) = (log_ratio.clamp(-500.0, 500.0).exp(), 1.0_f64);
            one.observe((reference / candidate).ln());
            other.observe((unit * reference / (unit * candidate)).ln());
            prop_assert_eq!(one.log_e_holds(), other.log_e_holds());
        }
    }

    /// Compares the judge with one that never saw the unknown pairs.
    #[test]
    fn unknown_pairs_help_neither_direction(log_ratios in log_ratios(), places in prop::collection::vec(0..60usize, 1..5)) {
        let (mut without, mut with) = (judge(), judge());
        for (place, log_ratio) in log_ratios.into_iter().enumerate() {
            for _ in places.iter().filter(|&&unknown| unknown == place) {
                let verdict = with.verdict();
                prop_assert_eq!(with.observe_unknown(), verdict);
            }
            let (later, sooner) = (with.observe(log_ratio), without.observe(log_ratio));
            prop_assert!(later.is_none() || sooner == later);
            prop_assert!(with.log_e_holds() <= without.log_e_holds());
            prop_assert!(with.log_e_refuted() <= without.log_e_refuted());
        }
        prop_assert_eq!(with.tally(), without.tally());
    }

    #[test]
    fn evidence_is_a_number_and_grows_by_a_doubling_at_most(log_ratios in log_ratios()) {
        let mut judge = judge();
        let mut last = (0.0, 0.0);
        for log_ratio in log_ratios {
            judge.observe(log_ratio);
            let now = (judge.log_e_holds(), judge.log_e_refuted());
            prop_assert!(now.0.is_finite() && now.1.is_finite());
            prop_assert!(now.0 <= last.0 + 0.694 && now.1 <= last.1 + 0.694);
            last = now;
        }
    }
}

#[test]
fn ties_count_for_nobody() {
    let mut judge = judge();
    for log_ratio in [0.0, -0.0, 0.0] {
        judge.observe(log_ratio);
    }
    assert_eq!((judge.ties(), judge.tally(), judge.unknown()), (3, Tally::default(), 0));
    assert!(judge.log_e_holds().abs() < 1e-10 && judge.log_e_refuted().abs() < 1e-10);
    while judge.observe(0.1).is_none() {}
    judge.observe(0.0);
    assert_eq!((judge.ties(), judge.ties_at_decision()), (4, Some(3)));
}

#[test]
fn what_is_not_a_number_is_unknown() {
    let (mut one, mut other) = (judge(), judge());
    one.observe(f64::NAN);
    other.observe_unknown();
    assert_eq!((one.unknown(), one.log_e_holds()), (1, other.log_e_holds()));
    assert!(one.log_e_holds() < -0.5 && one.log_e_refuted() < -0.5);
}

#[test]
fn a_verdict_latches_with_its_tally() {
    let mut judge = judge();
    while judge.observe(0.05).is_none() {}
    let decided_at = judge.decided_at();
    assert_eq!(decided_at, Some(judge.tally()));
    assert!(!judge.contradicted() && !judge.sign_alone());
    (0..100).for_each(|_| _ = judge.observe(0.05));
    assert_eq!(judge.decided_at(), decided_at);
    assert!(!judge.sign_alone(), "only the pairs before the verdict count");
}

/// Simulates a command that is much faster in the first pairs, and slower in all later ones.
#[test]
fn the_opposite_contradicts_a_verdict() {
    let mut judge = judge();
    while judge.observe(3.0).is_none() {}
    let wins = judge.tally().successes;
    for _ in 0..wins {
        assert!(!judge.contradicted());
        assert_eq!(judge.observe(-1e-9), Some(Verdict::Holds));
    }
    // At first most pairs disagree with the verdict, then most agree again.
    judge.observe(-1e-9);
    assert!(judge.contradicted());
    judge.observe(1e-9);
    judge.observe(1e-9);
    assert!(!judge.contradicted());
    // After the other direction has reached its threshold, the verdict remains contradicted.
    while judge.log_e_refuted() < 2000.0_f64.ln() + 0.1 {
        judge.observe(-0.7);
    }
    for _ in 0..100 {
        judge.observe(0.7);
    }
    assert!(judge.tally().successes > judge.tally().failures() && judge.contradicted());
    assert_eq!(judge.verdict(), Some(Verdict::Holds));
}

/// Magnitudes favour "faster", but most pairs so far were lost by a tiny amount. "Faster" would be misleading, so no
/// verdict may be returned.
#[test]
fn a_verdict_waits_for_the_majority() {
    let mut judge = judge();
    for log_ratio in [-1e-9, 1e-9, -1e-9, 1e-9, -1e-9].repeat(24) {
        assert_eq!(judge.observe(log_ratio), None);
    }
    let is_reached = |judge: &OrderJudge| judge.log_e_holds() >= 2000.0_f64.ln();
    while !is_reached(&judge) {
        assert_eq!(judge.observe(0.5), None);
    }
    let wins = judge.tally().successes;
    assert!(wins < judge.tally().failures());
    while judge.tally().successes < judge.tally().failures() {
        assert_eq!(judge.observe(0.5), None);
    }
    assert!(is_reached(&judge));
    assert_eq!(judge.observe(0.5), Some(Verdict::Holds));
}

/// Returns the number of pairs after which a judge decides. `differences` returns the log-ratio of the next pair.
fn pairs(error: f64, mut differences: impl FnMut(&OrderJudge) -> f64) -> u64 {
    let mut judge = OrderJudge::new(error, error).unwrap();
    let decides = |_: &u64| {
        let difference = differences(&judge);
        judge.observe(difference).is_some()
    };
    (1..).find(decides).unwrap()
}

/// No sequence of wins may lead to a verdict sooner. The test tries sequences of equal differences, and the sequence in
/// which each difference raises the evidence the most.
#[test]
fn the_soonest_verdict_is_what_a_judge_gives_who_sees_one_win_all() {
    for error in [0.3, 0.05, 0.025, 0.01, 0.0005, 1e-6, 1e-12] {
        let soonest = soonest_order_verdict(error, error);
        let sizes: Vec<f64> = (0..180).map(|power| 1e-6 * 1.1_f64.powi(power)).chain([f64::INFINITY]).collect();
        let decided: Vec<u64> = sizes.iter().map(|&size| pairs(error, |_| size)).collect();
        assert_eq!(decided.iter().min(), Some(&soonest), "at {error}");
        assert!(decided.iter().all(|&pairs| pairs <= soonest + 4), "at {error}: {decided:?}");
        let after = |judge: &OrderJudge, size: f64| {
            let mut next = judge.clone();
            next.observe(size);
            next.log_e_holds()
        };
        let best = |judge: &OrderJudge| {
            let by_evidence = |one: &f64, other: &f64| after(judge, *one).total_cmp(&after(judge, *other));
            sizes.iter().copied().max_by(by_evidence).unwrap()
        };
        assert!(pairs(error, best) >= soonest, "at {error}");
    }
    assert_eq!(soonest_order_verdict(0.3, 1e-9), soonest_order_verdict(1e-9, 0.3));
    assert_eq!(soonest_order_verdict(0.3, 1e-9), soonest_order_verdict(0.3, 0.3));
    assert_eq!(soonest_order_verdict(0.0, 0.1), u64::MAX);
    assert_eq!(soonest_order_verdict(0.1, f64::NAN), u64::MAX);
}

#[test]
fn long_runs_of_anything_keep_the_bet_alive() {
    let mut judge = OrderJudge::new(1e-300, 1e-300).unwrap();
    for i in 0..4000 {
        judge.observe([1e-12, 3.0, -f64::INFINITY, 5e-324][i / 1000]);
    }
    assert!(judge.log_e_holds().is_finite() && judge.log_e_refuted().is_finite());
    // A component that was useless for long must be effective again after a few pairs.
    let before = judge.log_e_holds();
    for _ in 0..100 {
        judge.observe(0.01);
    }
    assert!(judge.log_e_holds() > before + 40.0, "{} after {before}", judge.log_e_holds());
}

#[test]
fn what_is_no_error_is_refused() {
    for error in [0.0, 1.0, -0.1, f64::NAN] {
        assert!(matches!(OrderJudge::new(error, 0.1), Err(Error::ErrorProbability { .. })), "{error}");
        assert!(matches!(OrderJudge::new(0.1, error), Err(Error::ErrorProbability { .. })), "{error}");
    }
}
