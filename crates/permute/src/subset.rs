//! Uniformly random subsets of a given size, as bit masks.

use rand::{Rng, RngExt};

/// A source of random subsets with exactly `chosen` of `count` elements. All such subsets are equally likely.
///
/// Every bit is first set with the same chance, near `chosen / count`, by joining random words with `and` and `or`.
/// Then random elements are removed or added until the number is right. No step prefers one element to another, so all
/// subsets of that size are equally likely.
#[derive(Clone, Debug)]
pub(crate) struct RandomSubset {
    count: usize,
    chosen: usize,
    /// Numerator of the chance `numerator / 2^bits`, with which each bit of the mask is set in the first step. In the
    /// second step, the number of set bits is corrected.
    numerator: u32,
    bits: u32,
    words: Vec<u64>,
}

/// Largest number of random words that are joined for one word of the mask. Joining more words would bring the number
/// of set bits closer to the right one. But it would take longer than the single corrections that it saves.
const MOST_BITS: u32 = 12;

/// Time of picking a random element, to remove it or to add it, as a multiple of the time of drawing a random word.
const PICK_COST: f64 = 3.0;

impl RandomSubset {
    /// Creates a source of random subsets with `chosen` of `count` elements.
    ///
    /// # Panics
    /// Panics if `chosen` is greater than `count`.
    pub fn new(count: usize, chosen: usize) -> RandomSubset {
        assert!(chosen <= count, "cannot choose {chosen} of {count} elements");
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

    /// Draws the next subset: bit `i % 64` of word `i / 64` is set if element `i` is chosen.
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

    /// Returns the words of the subset that was drawn last.
    pub fn drawn(&self) -> &[u64] {
        &self.words
    }

    /// Replaces the subset that was drawn last, as if these words had been drawn.
    #[cfg(test)]
    pub(crate) fn set(&mut self, words: Vec<u64>) {
        self.words = words;
    }
}

/// Returns a random word. Each of its bits is set with the chance `numerator / 2^bits`. The loop starts at the last
/// binary digit of the chance that is 1. For a digit 1 it joins a new random word by `or`, which halves the chance and
/// adds ½. For a digit 0 it joins the word by `and`, which only halves the chance.
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

/// Returns the expected cost of a draw: the cost of the random words, and the cost of the picks that correct the number
/// of elements. A pick chooses a random element. If the subset has too many elements, the pick helps only if the
/// element is in the subset. If it has too few, the pick helps only if the element is outside. The expected number of
/// picks is the expected surplus or lack, divided by the chance that a pick helps.
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

    /// Returns whether a sum of squared deviations is small enough to be due to chance. By chance, the limit is
    /// exceeded less than once in a million times.
    fn is_by_chance(chi_squared: f64, degrees: f64) -> bool {
        // Wilson and Hilferty: the cube root is nearly normal.
        let z = ((chi_squared / degrees).cbrt() - (1.0 - 2.0 / (9.0 * degrees))) / (2.0 / (9.0 * degrees)).sqrt();
        z < 4.75
    }

    /// All subsets must be equally likely, whatever the chance with which bits are first set.
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
                assert_eq!(seen.len() as f64, subsets, "every subset occurs");
                let chi_squared: f64 = seen.values().map(|times| (times - 200.0).powi(2) / 200.0).sum();
                assert!(
                    is_by_chance(chi_squared, subsets - 1.0),
                    "{chosen} of {count}, {numerator}/2^{bits}: {chi_squared}"
                );
            }
        }
    }

    /// Large subsets must have the right size, contain each element with the right frequency, and overlap like
    /// independent draws.
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
            // Hypergeometric distribution: the previous draw has chosen m of the n elements.
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
