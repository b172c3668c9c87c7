//! The rate calculus against brute force: operators that are executed literally, observation by observation.

use std::sync::Arc;

use ascertain_streams::Count;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// An operator that is executed literally: it takes values one by one and returns how many it gives.
enum Literal {
    Every { n: u64, seen: u64 },
    Repeat { n: u64 },
    Drop { left: u64 },
    Window { length: u64, step: u64, seen: u64 },
}

impl Literal {
    fn take(&mut self) -> u64 {
        match self {
            Literal::Every { n, seen } => {
                *seen += 1;
                u64::from((*seen - 1) % *n == 0)
            }
            Literal::Repeat { n } => *n,
            Literal::Drop { left } => {
                let is_dropped = *left > 0;
                *left = left.saturating_sub(1);
                u64::from(!is_dropped)
            }
            Literal::Window { length, step, seen } => {
                *seen += 1;
                u64::from(*seen >= *length && (*seen - *length) % *step == 0)
            }
        }
    }
}

/// A path of operators, as a counting function and as literal operators.
struct Path {
    count: Count,
    literal: Vec<Literal>,
    total: u64,
}

impl Path {
    fn random(rng: &mut Xoshiro256PlusPlus) -> Path {
        let mut path = Path { count: Count::Source, literal: Vec::new(), total: 0 };
        for _ in 0..rng.random_range(0..5) {
            let input = Arc::new(path.count);
            let n = rng.random_range(1..9);
            let (count, literal) = match rng.random_range(0..5) {
                0 | 1 => (Count::Every(input, n), Literal::Every { n, seen: 0 }),
                2 => (Count::Repeat(input, n), Literal::Repeat { n }),
                3 => {
                    let k = rng.random_range(0..40);
                    (Count::Drop(input, k), Literal::Drop { left: k })
                }
                _ => {
                    let length = rng.random_range(1..40);
                    (Count::Window(input, length, n), Literal::Window { length, step: n, seen: 0 })
                }
            };
            path.count = count;
            path.literal.push(literal);
        }
        path
    }

    /// Takes one observation. Returns the total number of values so far.
    fn advance(&mut self) -> u64 {
        let mut values = 1;
        for literal in &mut self.literal {
            values = (0..values).map(|_| literal.take()).sum();
        }
        self.total += values;
        self.total
    }
}

#[test]
fn ten_thousand_plans_keep_to_their_bounds_and_attain_them() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(38);
    let (mut bounded, mut unbounded) = (0, 0);
    while bounded + unbounded < 10_000 {
        let (mut first, mut second) = (Path::random(&mut rng), Path::random(&mut rng));
        if rng.random_range(0..2) == 0 {
            // Give both paths the same rate, because two random rates rarely agree.
            let parts = |path: &Path| path.count.rate().unwrap().parts();
            let ((a, b), (c, d)) = (parts(&first), parts(&second));
            let (to_first, to_second) = ((c * b) as u64, (a * d) as u64);
            first.count = Count::Repeat(Arc::new(first.count), to_first);
            first.literal.push(Literal::Repeat { n: to_first });
            second.count = Count::Repeat(Arc::new(second.count), to_second);
            second.literal.push(Literal::Repeat { n: to_second });
        }
        let periods = first.count.period().zip(second.count.period());
        let (one, two) = periods.expect("the numbers are small");
        let observations = (one.start.max(two.start) + 3 * one.period * two.period).min(30_000);
        let lead = first.count.lead(&second.count);
        let (mut of_first, mut of_second) = (0, 0);
        for observation in 1..=observations {
            let (a, b) = (first.advance(), second.advance());
            assert_eq!((a, b), (first.count.after(observation), second.count.after(observation)), "{:?}", first.count);
            of_first = of_first.max(a.saturating_sub(b));
            of_second = of_second.max(b.saturating_sub(a));
        }
        for (path, period) in [(&first, one), (&second, two)] {
            let at = period.start + observations / 2;
            let next = path.count.after(at + period.period) - path.count.after(at);
            assert_eq!(next, period.values, "{:?}", path.count);
            envelope_holds(path, observations);
        }
        match lead {
            Some(lead) => {
                bounded += 1;
                assert!(lead.is_exact);
                assert_eq!((lead.first, lead.second), (of_first, of_second), "{:?}\n{:?}", first.count, second.count);
            }
            None => {
                unbounded += 1;
                assert_ne!(first.count.rate(), second.count.rate());
            }
        }
    }
    assert!(bounded > 3_000 && unbounded > 3_000, "{bounded} {unbounded}");
}

/// Checks that a path stays between the lines of its envelope, and that blocks give at most the predicted values.
fn envelope_holds(path: &Path, observations: u64) {
    let envelope = path.count.envelope().unwrap();
    let (rate, low, high) = (envelope.rate.value(), envelope.low.value(), envelope.high.value());
    let most = path.count.most_of(7).unwrap();
    let mut attained = 0;
    for observation in (0..observations).step_by(observations.div_ceil(500).max(1) as usize) {
        let count = path.count.after(observation) as f64 - rate * observation as f64;
        assert!(low - 1e-6 <= count && count <= high + 1e-6, "{:?} at {observation}", path.count);
        attained = attained.max(path.count.after(observation + 7) - path.count.after(observation));
    }
    assert!(attained <= most, "{:?}", path.count);
}

#[test]
fn joins_of_joins_count_the_values_that_both_have() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(39);
    for _ in 0..1_000 {
        let [first, second, third] = [(); 3].map(|()| Path::random(&mut rng));
        let rate = first.count.rate();
        if second.count.rate() != rate {
            continue;
        }
        let both = Count::Least(Arc::new(first.count.clone()), Arc::new(second.count.clone()));
        for observation in 0..500 {
            let least = first.count.after(observation).min(second.count.after(observation));
            assert_eq!(both.after(observation), least);
            let index = both.after(observation);
            let at = both.observation_of(index);
            assert!(both.after(at) <= index && index < both.after(at + 1), "{both:?}");
        }
        if let Some(lead) = both.lead(&third.count) {
            let ahead = (0..5_000).map(|t| both.after(t).saturating_sub(third.count.after(t))).max();
            assert_eq!(ahead, Some(lead.first), "{both:?} {:?}", third.count);
        }
    }
}

#[test]
fn bounds_from_envelopes_are_never_exceeded() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(40);
    for _ in 0..200 {
        let (a, b) = (rng.random_range(1_001..2_000), rng.random_range(1_001..2_000));
        let path = |n: u64| {
            let every = Count::Every(Arc::new(Count::Drop(Arc::new(Count::Source), n / 2)), n);
            Count::Repeat(Arc::new(every), n)
        };
        let (first, second) = (path(a), path(b));
        let lead = first.lead(&second).unwrap();
        for observation in 0..50_000 {
            let (one, two) = (first.after(observation), second.after(observation));
            assert!(one.saturating_sub(two) <= lead.first && two.saturating_sub(one) <= lead.second, "{a} {b}");
        }
    }
}
