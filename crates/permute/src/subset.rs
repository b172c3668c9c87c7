//! Uniformly random subsets of a given size, as bit masks.

use rand::{Rng, RngExt};

/// Draws subsets of exactly `chosen` of `count` elements, each such subset as likely as any other.
///
/// Every bit is first set with the same chance, near `chosen / count`: random words, joined by `and` and `or`. Then
/// elements are picked at random, and taken out or put in, until the number is right. No step prefers one element to
/// another, so neither does the result: of all subsets of that size each is equally likely.
#[derive(Clone, Debug)]
pub(crate) struct RandomSubset {
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

    /// The subset that was drawn last.
    pub fn drawn(&self) -> &[u64] {
        &self.words
    }

    /// As if this subset had been drawn.
    #[cfg(test)]
    pub(crate) fn set(&mut self, words: Vec<u64>) {
        self.words = words;
    }
}

/// A word each of whose bits is set with the chance `numerator / 2^bits`: from the last binary digit of the chance on,
/// a digit 1 joins a random word by `or`, 0 by `and`, which halves the chance so far, after adding 1 for the digit 1.
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

/// The words drawn, and the picks until the number is right: the mean of what is missing or too much, and the spread,
/// both divided by the chance that a pick is of the right kind.
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    /// Whether the sum of squared deviations is what chance makes it: exceeded less than once in a million.
    fn is_by_chance(chi_squared: f64, degrees: f64) -> bool {
        // Wilson and Hilferty: its cube root is nearly normal.
        let z = ((chi_squared / degrees).cbrt() - (1.0 - 2.0 / (9.0 * degrees))) / (2.0 / (9.0 * degrees)).sqrt();
        z < 4.75
    }

    /// Each subset is as likely as any other, with whatever chance its bits are first set.
    #[test]
    fn small_subsets_are_uniform() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        for (count, chosen, subsets) in [(6, 2, 15.0), (7, 3, 35.0), (5, 4, 5.0), (8, 4, 70.0), (3, 1, 3.0)] {
            for (bits, numerator) in [(0, 0), (0, 1), (1, 1), (2, 1), (2, 3), (3, 5), (4, 2)] {
                let mut subset = RandomSubset { numerator, bits, ..RandomSubset::new(count, chosen) };
                let draws = 200.0 * subsets;
                let mut seen: HashMap<u64, f64> = HashMap::new();
                for _ in 0..draws as u32 {
                    *seen.entry(subset.draw(&mut random)[0]).or_default() += 1.0;
                }
                assert!(seen.keys().all(|mask| mask.count_ones() as usize == chosen && mask >> count == 0));
                assert_eq!(seen.len() as f64, subsets, "every subset comes up");
                let chi_squared: f64 = seen.values().map(|times| (times - 200.0).powi(2) / 200.0).sum();
                assert!(
                    is_by_chance(chi_squared, subsets - 1.0),
                    "{chosen} of {count}, {numerator}/2^{bits}: {chi_squared}"
                );
            }
        }
    }

    /// Of large subsets: the right size, each element as often as it should be, and draws that overlap as independent
    /// ones.
    #[test]
    fn large_subsets_have_the_right_moments() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
        for (count, chosen) in [(2000, 1000), (2000, 37), (1999, 1300), (65, 64), (640, 639), (3000, 1)] {
            let mut subset = RandomSubset::new(count, chosen);
            let draws = 2000;
            let mut times = vec![0.0; count];
            let (mut overlap, mut before) = (0.0, subset.draw(&mut random).to_vec());
            for _ in 0..draws {
                let mask = subset.draw(&mut random);
                assert_eq!(mask.iter().map(|word| word.count_ones() as usize).sum::<usize>(), chosen);
                overlap += mask.iter().zip(&before).map(|(a, b)| f64::from((a & b).count_ones())).sum::<f64>();
                for (index, times) in times.iter_mut().enumerate() {
                    *times += (mask[index / 64] >> (index % 64) & 1) as f64;
                }
                before = mask.to_vec();
            }
            let [n, m, draws] = [count, chosen, draws].map(|number| number as f64);
            let variance = draws * m / n * (1.0 - m / n) * n / (n - 1.0);
            let chi_squared: f64 = times.iter().map(|times| (times - draws * m / n).powi(2) / variance).sum();
            assert!(is_by_chance(chi_squared, n - 1.0), "{chosen} of {count}: {chi_squared}");
            // Hypergeometric: m of n were marked by the draw before.
            let (mean, variance) = (m * m / n, m * m / n * (1.0 - m / n) * (n - m) / (n - 1.0));
            assert!(
                (overlap / draws - mean).abs() <= 5.0 * (variance / draws).sqrt(),
                "{chosen} of {count}: {overlap}"
            );
        }
    }

    #[test]
    fn the_ends_are_all_and_nothing() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        assert_eq!(RandomSubset::new(70, 0).draw(&mut random), [0, 0]);
        assert_eq!(RandomSubset::new(70, 70).draw(&mut random), [u64::MAX, 63]);
        assert_eq!(RandomSubset::new(128, 128).draw(&mut random), [u64::MAX; 2]);
        assert!(RandomSubset::new(0, 0).draw(&mut random).is_empty());
    }
}
