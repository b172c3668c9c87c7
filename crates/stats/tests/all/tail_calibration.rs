//! If the tails of two alternatives do not differ, the judge must not find a difference more often than promised. If
//! they differ, it must find the difference soon enough.

use ascertain_stats::TailValue::{Known, Stopped};
use ascertain_stats::{TailJudge, TailValue, Verdict, expected_growth};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus as Random;

fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

/// Returns the two values of a pair in a random order, as the coin of a trial does.
fn by_coin([one, other]: [f64; 2], random: &mut Random) -> [TailValue; 2] {
    if random.random() { [Known(one), Known(other)] } else { [Known(other), Known(one)] }
}

/// A machine that drifts, has bursts that last for many pairs, and slows down the second measurement of each pair.
struct Machine {
    level: f64,
    is_burst: bool,
}

impl Machine {
    fn pair(&mut self, random: &mut Random) -> [f64; 2] {
        self.level *= 1.0 + 0.003 * normal(random);
        if random.random_bool(if self.is_burst { 0.05 } else { 0.005 }) {
            self.is_burst = !self.is_burst;
        }
        let share = if self.is_burst { 0.4 } else { 0.01 };
        [1.0, 1.02].map(|position| {
            let slow = if random.random_bool(share) { 3.0 } else { 1.0 };
            self.level * position * slow * (0.03 * normal(random)).exp()
        })
    }
}

/// Two levels share an error of 0.05, and both directions share the error of a level.
#[test]
fn false_tail_verdicts_under_drift_and_bursts_are_at_most_the_error() {
    const RUNS: u64 = 400;
    let is_decided = |run: u64| {
        let mut random = Random::seed_from_u64(run);
        let mut machine = Machine { level: 10.0, is_burst: false };
        let mut judges = [0.95, 0.99].map(|level| TailJudge::new(level, 0.05 / 4.0).unwrap());
        (0..1500).any(|_| {
            let pair = by_coin(machine.pair(&mut random), &mut random);
            judges.iter_mut().map(|judge| judge.observe(pair)).fold(false, |any, verdict| any | verdict.is_some())
        })
    };
    let decided = (0..RUNS).filter(|run| is_decided(*run)).count();
    // 20 are allowed. With none, the runs would be too short to show anything.
    assert!((1..=20).contains(&decided), "{decided} of {RUNS}");
}

/// The candidate is stopped by somebody who sees each pair before it ends, whenever only the reference is above.
#[test]
fn pairs_that_are_cut_off_make_no_tail_look_worse() {
    const RUNS: u64 = 400;
    let is_worse = |run: u64| {
        let mut random = Random::seed_from_u64(run);
        let mut judge = TailJudge::new(0.9, 0.05).unwrap();
        (0..1000).any(|_| {
            let pair = by_coin([0, 1].map(|_| normal(&mut random)), &mut random);
            let before = judge.counts().only_reference;
            let mut next = judge.clone();
            next.observe(pair);
            match next.counts().only_reference > before {
                true => _ = judge.observe_unknown(),
                false => judge = next,
            }
            judge.verdict() == Some(Verdict::Holds)
        })
    };
    let worse = (0..RUNS).filter(|run| is_worse(*run)).count();
    assert!((1..=20).contains(&worse), "{worse} of {RUNS}");
}

/// 3 % of the candidate's runs take three times as long. Signs of the differences alone do not find this.
#[test]
fn rare_slow_runs_are_found_in_fewer_than_900_pairs() {
    let pairs = |run: u64| {
        let mut random = Random::seed_from_u64(run);
        let mut judge = TailJudge::new(0.98, 0.001 / 2.0).unwrap();
        let found = (1..=4000).find(|_| {
            let slow = if random.random_bool(0.03) { 3.0 } else { 1.0 };
            let [candidate, reference] = [slow, 1.0].map(|factor| factor * (0.05 * normal(&mut random)).exp());
            judge.observe([Known(candidate), Known(reference)]).is_some()
        });
        assert_eq!(judge.verdict(), Some(Verdict::Holds), "run {run}");
        found.unwrap()
    };
    let mut pairs: Vec<u64> = (0..21).map(pairs).collect();
    pairs.sort_unstable();
    assert!(pairs[10] < 900, "{pairs:?}");
}

/// Wald's bound, ln(1/error)/KL, is the number of discordant pairs that a test needs if it knows their rate.
#[test]
fn tail_verdicts_come_within_1_4_of_the_fewest_discordant_pairs_possible() {
    const RUNS: u64 = 300;
    let error = 0.0005;
    for share in [0.65, 0.75, 0.88] {
        let discordant = |run: u64| {
            let mut random = Random::seed_from_u64(run);
            let mut judge = TailJudge::new(0.95, error).unwrap();
            // Only one pair in 20 is discordant, so the threshold stays at 1.
            for number in 0_u64.. {
                let is_candidate = random.random_bool(share);
                let pair = match number % 20 {
                    0 if is_candidate => [Known(2.0), Known(1.0)],
                    0 => [Known(1.0), Known(2.0)],
                    _ => [Known(1.0); 2],
                };
                if judge.observe(pair).is_some() {
                    break;
                }
            }
            judge.counts().only_candidate + judge.counts().only_reference
        };
        let mean = (0..RUNS).map(discordant).sum::<u64>() as f64 / RUNS as f64;
        let fewest = (1.0 / error).ln() / expected_growth(0.5, share);
        assert!(mean <= 1.4 * fewest, "{mean} discordant pairs, and at least {fewest}, at {share}");
    }
}

/// More than half of the runs are stopped at the limit, so the threshold is the limit.
#[test]
fn a_time_out_is_above_and_no_threshold_exceeds_the_limit() {
    let mut judge = TailJudge::new(0.5, 0.01).unwrap();
    let verdict = (0..60).find_map(|number| match number {
        0..10 => judge.observe([Stopped(40.0), Stopped(40.0)]),
        _ => judge.observe([Stopped(40.0), Known(39.0)]),
    });
    assert_eq!(verdict, Some(Verdict::Holds));
    assert_eq!(judge.counts().thresholds, Some((40.0, 40.0)));
    // A limit that is not known does not enter the past, and the observation is above even so.
    let mut judge = TailJudge::new(0.5, 0.01).unwrap();
    (0..60).for_each(|_| _ = judge.observe([Stopped(f64::INFINITY), Known(5.0)]));
    assert_eq!((judge.counts().thresholds, judge.verdict()), (Some((5.0, 5.0)), Some(Verdict::Holds)));
}

/// A verdict is taken back if later pairs prove the opposite.
#[test]
fn later_pairs_can_contradict_a_tail_verdict() {
    let mut judge = TailJudge::new(0.5, 0.01).unwrap();
    let (slow, fast) = (Known(2.0), Known(1.0));
    (0..10).for_each(|_| _ = judge.observe([fast; 2]));
    (0..20).for_each(|_| _ = judge.observe([slow, fast]));
    let decided = judge.decided_at();
    assert!(judge.verdict() == Some(Verdict::Holds) && decided.is_some() && !judge.contradicted());
    (0..500).for_each(|_| _ = judge.observe([fast, slow]));
    assert!(judge.verdict() == Some(Verdict::Holds) && judge.contradicted());
    assert_eq!(judge.decided_at(), decided);
}
