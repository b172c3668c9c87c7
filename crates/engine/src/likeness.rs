//! Evidence against the trials being alike: what a rate measured here says of other trials hangs on it,
//! although the verdict on these does not.

/// Outcomes in the order measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Likeness {
    outcomes: Vec<bool>,
}

/// How many standard deviations are worth a sentence: by chance in 1 of 15,000 claims.
const NOTABLE: f64 = 4.0;

impl Likeness {
    pub fn push(&mut self, success: bool) {
        self.outcomes.push(success);
    }

    /// Signs that the trials are not alike, in plain sentences.
    pub fn signs(&self) -> Vec<String> {
        let mut signs = Vec::new();
        let n = self.outcomes.len() as f64;
        let successes = self.outcomes.iter().filter(|&&success| success).count() as f64;
        let rate = successes / n;
        let variance = rate * (1.0 - rate);
        // Below that, normal approximations of the counts say nothing.
        if n * variance < 10.0 {
            return signs;
        }
        let correlation = self.lag_1(rate) / variance;
        if correlation.abs() * n.sqrt() > NOTABLE {
            let how = if correlation > 0.0 { "alike" } else { "opposite" };
            signs.push(format!("neighbouring trials tend to come out {how} (lag-1 correlation {correlation:.2})"));
        }
        let half = self.outcomes.len() / 2;
        let share = |part: &[bool]| part.iter().filter(|&&s| s).count() as f64 / part.len() as f64;
        let (early, late) = (share(&self.outcomes[..half]), share(&self.outcomes[half..]));
        if (late - early).abs() / (4.0 * variance / n).sqrt() > NOTABLE {
            let (early, late) = (early * 100.0, late * 100.0);
            signs.push(format!("it drifts: {early:.1} % of the first half of the trials, {late:.1} % of the second"));
        }
        signs
    }

    fn lag_1(&self, rate: f64) -> f64 {
        let deviation = |success: bool| f64::from(u8::from(success)) - rate;
        let products = self.outcomes.windows(2).map(|pair| deviation(pair[0]) * deviation(pair[1]));
        products.sum::<f64>() / self.outcomes.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(outcomes: impl IntoIterator<Item = bool>) -> Vec<String> {
        Likeness { outcomes: outcomes.into_iter().collect() }.signs()
    }

    #[test]
    fn like_trials_raise_nothing() {
        let mut state = 1_u64;
        let mut coin = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 63 == 1
        };
        assert_eq!(signs((0..2000).map(|_| coin())), Vec::<String>::new());
        assert_eq!(signs([]), Vec::<String>::new());
        assert_eq!(signs([true; 100]), Vec::<String>::new());
    }

    #[test]
    fn drift_and_correlation_are_said() {
        let drifting = signs((0..1000).map(|i| i % 10 < if i < 500 { 3 } else { 6 }));
        assert!(drifting.iter().any(|sign| sign.contains("30.0 % of the first half")), "{drifting:?}");
        let alternating = signs((0..1000).map(|i| i % 2 == 0));
        assert!(alternating[0].contains("opposite"), "{alternating:?}");
    }
}
