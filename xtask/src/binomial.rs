//! How many of so many may come out false by chance.

/// The greatest count that is not beyond chance: more than that many successes in `n` trials of chance `p` have a
/// probability below `chance`.
pub fn most(n: u64, p: f64, chance: f64) -> u64 {
    let log_factorial = |k: u64| libm::lgamma(k as f64 + 1.0);
    let probability = |k: u64| {
        let log_ways = log_factorial(n) - log_factorial(k) - log_factorial(n - k);
        (log_ways + k as f64 * p.ln() + (n - k) as f64 * (-p).ln_1p()).exp()
    };
    // From the far end, where the terms are small: their sum loses nothing.
    let mut beyond = 0.0;
    let mut is_beyond = |k: &u64| {
        beyond += probability(*k);
        beyond < chance
    };
    (0..=n).rev().find(|k| !is_beyond(k)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::most;

    #[test]
    fn more_than_that_is_rarer_than_the_chance() {
        // P(X > 0) = 0.5, P(X > 1) = 0.25 - … of two fair coins: 0.75, 0.25, 0.
        assert_eq!([0.8, 0.5, 0.2].map(|chance| most(2, 0.5, chance)), [0, 1, 2]);
        // By R's qbinom(1e-6, n, p, lower.tail = FALSE).
        assert_eq!(most(200, 0.001, 1e-6), 5);
        assert_eq!(most(200, 0.05, 1e-6), 27);
        assert_eq!(most(1, 0.001, 1e-6), 1, "one that is decided is no proof");
    }
}
