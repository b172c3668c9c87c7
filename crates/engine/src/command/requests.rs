//! Recorded requests, in an order of their own in each pass.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Recorded requests. Trial n takes the request at place n mod N of pass n / N, so that each pass
/// takes every request once; all arms of a trial take the same.
pub(super) struct Requests {
    texts: Vec<String>,
    seed: u64,
    pass: u64,
    order: Vec<usize>,
}

impl Requests {
    /// The texts are not empty.
    pub fn new(texts: Vec<String>, seed: u64) -> Self {
        let order = order(texts.len(), seed, 0);
        Requests { texts, seed, pass: 0, order }
    }

    /// The request of a trial.
    pub fn of(&mut self, trial: u64) -> &str {
        let count = self.texts.len() as u64;
        let (pass, place) = (trial / count, trial % count);
        if pass != self.pass {
            self.pass = pass;
            self.order = order(self.texts.len(), self.seed, pass);
        }
        &self.texts[self.order[place as usize]]
    }
}

/// The order of one pass, which depends on nothing but the seed and the pass.
fn order(count: usize, seed: u64, pass: u64) -> Vec<usize> {
    // An odd factor takes no two passes to one seed; the generator's own seeding mixes the bits.
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(!seed ^ pass.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut order: Vec<usize> = (0..count).collect();
    order.shuffle(&mut rng);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: u64 = 40;

    fn requests(seed: u64) -> Requests {
        Requests::new((0..COUNT).map(|number| number.to_string()).collect(), seed)
    }

    fn pass(requests: &mut Requests, pass: u64) -> Vec<String> {
        (0..COUNT).map(|place| requests.of(pass * COUNT + place).to_string()).collect()
    }

    #[test]
    fn every_pass_takes_each_request_once_in_another_order() {
        let mut requests = requests(7);
        let passes: Vec<Vec<String>> = (0..5).map(|number| pass(&mut requests, number)).collect();
        for (number, taken) in passes.iter().enumerate() {
            let mut sorted: Vec<u64> = taken.iter().map(|text| text.parse().unwrap()).collect();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..COUNT).collect::<Vec<_>>());
            assert!(!passes[..number].contains(taken), "pass {number} repeats an order");
        }
    }

    #[test]
    fn the_order_depends_on_seed_and_pass_only() {
        let (mut here, mut there) = (requests(7), requests(7));
        let later = pass(&mut here, 3);
        assert_eq!(pass(&mut there, 0), pass(&mut here, 0), "whatever was asked before");
        assert_eq!(pass(&mut there, 3), later);
        assert_ne!(pass(&mut requests(8), 3), later);
    }

    #[test]
    fn the_last_trial_number_is_as_good_as_any() {
        assert!(requests(1).of(u64::MAX).parse::<u64>().unwrap() < COUNT);
    }
}
