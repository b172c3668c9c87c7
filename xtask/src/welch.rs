//! Welch's test, for what hyperfine's samples would have said.

/// The two-sided p-value that two samples have one mean, by Student's t with Welch's degrees of freedom.
pub fn p_value(a: &[f64], b: &[f64]) -> f64 {
    let moments = |values: &[f64]| {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, variance / n, n - 1.0)
    };
    let ((mean_a, var_a, free_a), (mean_b, var_b, free_b)) = (moments(a), moments(b));
    let t = (mean_a - mean_b) / (var_a + var_b).sqrt();
    let freedom = (var_a + var_b).powi(2) / (var_a.powi(2) / free_a + var_b.powi(2) / free_b);
    2.0 * tail(t.abs(), freedom)
}

/// The chance that Student's t with so many degrees of freedom exceeds `t`, by Simpson's rule.
fn tail(t: f64, freedom: f64) -> f64 {
    let half = (freedom + 1.0) / 2.0;
    let log_scale = libm::lgamma(half) - libm::lgamma(freedom / 2.0) - 0.5 * (freedom * std::f64::consts::PI).ln();
    let density = |x: f64| (log_scale - half * (x * x / freedom).ln_1p()).exp();
    let steps = 4000;
    let width = t / f64::from(steps);
    let inner = (1..steps).map(|i| density(width * f64::from(i)) * if i % 2 == 1 { 4.0 } else { 2.0 });
    let below = width / 3.0 * (density(0.0) + density(t) + inner.sum::<f64>());
    (0.5 - below).max(0.0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn tails_are_those_of_the_tables() {
        for (t, freedom, chance) in [(2.228, 10.0, 0.025), (1.645, 1e6, 0.05), (12.706, 1.0, 0.025)] {
            assert!((super::tail(t, freedom) - chance).abs() < 2e-4, "{t} {freedom}");
        }
    }
}
