//! Uniformly random subsets of a given size, as bit masks.

use rand::{Rng, RngExt};

/// Draws subsets of exactly `chosen` of `count` elements, each such subset as likely as any other.
///
/// Every bit is first set with the same chance, near `chosen / count`: random words, joined by `and` and `or`. Then
/// elements are picked at random, and taken out or put in, until the number is right. No step prefers one element to
/// another, so neither does the result: of all subsets of that size each is equally likely.
///
/// ```
/// use ascertain::permutation::RandomSubset;
/// use rand::SeedableRng;
///
/// let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(1);
/// let mut subset = RandomSubset::new(100, 30);
/// let ones: u32 = subset.draw(&mut random).iter().map(|word| word.count_ones()).sum();
/// assert_eq!(ones, 30);
/// ```
#[derive(Clone, Debug)]
pub struct RandomSubset {
    count: usize,
    chosen: usize,
    /// Bits are first set with the chance `numerator / 2^bits`.
    numerator: u32,
    bits: u32,
    words: Vec<u64>,
}

/// More bits than this are never worth their random words.
const MOST_BITS: u32 = 12;

/// Picking an element at random takes so many times as long as drawing a word.
const PICK_COST: f64 = 3.0;

impl RandomSubset {
    /// Subsets of `chosen` elements of `count`.
    ///
    /// # Panics
    /// When more are chosen than there are.
    pub fn new(count: usize, chosen: usize) -> RandomSubset {
        assert!(chosen <= count, "{chosen} of {count} elements");
        let words = count.div_ceil(64);
        let nearest = |bits: u32| {
            let share = chosen as f64 / (count as f64).max(1.0);
            (bits, (share * f64::from(1 << bits)).round() as u32)
        };
        let cost = |&(bits, numerator): &(u32, u32)| expected_cost(count as f64, chosen as f64, bits, numerator);
        let plans = (0..=MOST_BITS).map(nearest);
        let (bits, numerator) = plans.min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or((0, 0));
        RandomSubset { count, chosen, numerator, bits, words: vec![0; words] }
    }

    /// Draws the next subset: bit `i % 64` of word `i / 64` is set where element `i` is chosen.
    pub fn draw<R: Rng>(&mut self, random: &mut R) -> &[u64] {
        for word in &mut self.words {
            *word = random_bits(self.numerator, self.bits, random);
        }
        let beyond = self.words.len() * 64 - self.count;
        if let (Some(last), 1..) = (self.words.last_mut(), beyond) {
            *last &= u64::MAX >> beyond;
        }
        let mut ones: usize = self.words.iter().map(|word| word.count_ones() as usize).sum();
        while ones != self.chosen {
            let index = random.random_range(0..self.count);
            let (word, bit) = (&mut self.words[index / 64], 1 << (index % 64));
            let is_set = *word & bit != 0;
            if is_set == (ones > self.chosen) {
                *word ^= bit;
                ones = if is_set { ones - 1 } else { ones + 1 };
            }
        }
        &self.words
    }
}

/// A word each of whose bits is set with the chance `numerator / 2^bits`: from the last binary digit of the chance on, a
/// digit 1 joins a random word by `or`, 0 by `and`, which halves the chance so far, after adding 1 for the digit 1.
fn random_bits<R: Rng>(numerator: u32, bits: u32, random: &mut R) -> u64 {
    if numerator >> bits == 1 {
        return u64::MAX;
    }
    let mut word = 0;
    for digit in numerator.trailing_zeros().min(bits)..bits {
        let fresh = random.next_u64();
        word = if numerator >> digit & 1 == 1 { word | fresh } else { word & fresh };
    }
    word
}

/// The words drawn, and the picks until the number is right: the mean of what is missing or too much, and the spread, both
/// divided by the chance that a pick is of the right kind.
fn expected_cost(count: f64, chosen: f64, bits: u32, numerator: u32) -> f64 {
    let share = f64::from(numerator) / f64::from(1 << bits);
    let spread = 0.4 * (count * share * (1.0 - share)).sqrt();
    let too_many = count * share - chosen;
    let out = (too_many.max(0.0) + spread) / share;
    let into = ((-too_many).max(0.0) + spread) / (1.0 - share);
    let picks = [out, into].into_iter().filter(|picks| picks.is_finite()).sum::<f64>();
    let drawn = bits - numerator.trailing_zeros().min(bits);
    count / 64.0 * f64::from(drawn) + PICK_COST * picks
}
