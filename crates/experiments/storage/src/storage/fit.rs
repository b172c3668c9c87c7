//! The model T = L + size/B, which is shown next to the crossovers but does not affect them.

/// A fit of the times of one store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The latency L, in nanoseconds.
    pub latency_ns: f64,
    /// The rate B, in bytes per second. Infinite if the times do not rise with the size.
    pub bytes_per_s: f64,
    /// The largest distance of a median from the fit, as a share of the median.
    pub off: f64,
    /// The size at which the fit is furthest off, in bytes.
    pub off_at_bytes: f64,
}

/// Fits the medians of the times, given as pairs of a size in bytes and a time in nanoseconds. Minimises the squares of
/// the relative distances, so that small and large sizes count alike. `None` for fewer than two sizes.
pub fn fit(medians: &[(f64, f64)]) -> Option<Fit> {
    let medians: Vec<(f64, f64)> =
        medians.iter().copied().filter(|(_, time)| *time > 0.0 && time.is_finite()).collect();
    if medians.len() < 2 {
        return None;
    }
    // The sums of the normal equations of 1 = L/T + slope·size/T.
    let sum = |of: &dyn Fn(f64, f64) -> f64| medians.iter().map(|(size, time)| of(*size, *time)).sum::<f64>();
    let ones = sum(&|_, time| 1.0 / time.powi(2));
    let (mixed, squares) = (sum(&|size, time| size / time.powi(2)), sum(&|size, time| (size / time).powi(2)));
    let (right_one, right_size) = (sum(&|_, time| 1.0 / time), sum(&|size, time| size / time));
    let determinant = ones * squares - mixed * mixed;
    let slope = if determinant > 0.0 { (ones * right_size - mixed * right_one) / determinant } else { 0.0 };
    // Neither the latency nor the time per byte can be negative.
    let (latency_ns, slope) = match (right_one - slope * mixed) / ones {
        _ if slope <= 0.0 => (right_one / ones, 0.0),
        latency if latency < 0.0 => (0.0, right_size / squares),
        latency => (latency, slope),
    };
    let off = |(size, time): &(f64, f64)| ((latency_ns + slope * size - time) / time).abs();
    let furthest = medians.iter().max_by(|one, other| off(one).total_cmp(&off(other)))?;
    Some(Fit { latency_ns, bytes_per_s: 1e9 / slope, off: off(furthest), off_at_bytes: furthest.0 })
}

impl Fit {
    /// Returns the time of one request for `bytes` bytes, in nanoseconds.
    pub fn time_ns(&self, bytes: f64) -> f64 {
        self.latency_ns + bytes * 1e9 / self.bytes_per_s
    }

    /// Returns the number of requests of `bytes` bytes in flight that fill a line: rate × (L/size + 1/B).
    pub fn requests_in_flight(&self, bytes: f64, line_bytes_per_s: f64) -> f64 {
        line_bytes_per_s * self.time_ns(bytes) * 1e-9 / bytes
    }

    /// Returns the smallest size in bytes of a ranged read with which `most` requests in flight fill the line. Larger
    /// ranges need fewer requests, smaller ones are more expensive. `None` if no size does.
    pub fn cheapest_range_bytes(&self, most: u64, line_bytes_per_s: f64) -> Option<f64> {
        let left = most as f64 / line_bytes_per_s - 1.0 / self.bytes_per_s;
        (left > 0.0).then(|| self.latency_ns * 1e-9 / left)
    }

    /// Returns the size in bytes at which both fits are equal; `None` if one is lower at every size.
    pub fn crossover_bytes(&self, other: &Fit) -> Option<f64> {
        let bytes = (self.latency_ns - other.latency_ns) / (1e9 / other.bytes_per_s - 1e9 / self.bytes_per_s);
        (bytes > 0.0 && bytes.is_finite()).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(latency_ns: f64, bytes_per_s: f64) -> Vec<(f64, f64)> {
        (0..12).map(|step| 4_f64.powi(step)).map(|size| (size, latency_ns + size * 1e9 / bytes_per_s)).collect()
    }

    #[test]
    fn a_straight_line_is_fitted_exactly() {
        let fit = fit(&line(38.2e6, 122.3e6)).unwrap();
        assert!((fit.latency_ns / 38.2e6 - 1.0).abs() < 1e-6 && (fit.bytes_per_s / 122.3e6 - 1.0).abs() < 1e-6);
        assert!(fit.off < 1e-6);
        let other = super::fit(&line(10.7e6, 27.0e6)).unwrap();
        assert!((fit.crossover_bytes(&other).unwrap() / 952_930.0 - 1.0).abs() < 1e-3);
        assert_eq!(fit.crossover_bytes(&fit), None);
    }

    #[test]
    fn a_step_shows_as_a_bad_fit() {
        let mut times = line(2e6, 2e8);
        times.iter_mut().filter(|(size, _)| *size <= 8192.0).for_each(|(_, time)| *time = 42e6);
        assert!(fit(&times).unwrap().off > 0.5);
    }

    #[test]
    fn times_that_fall_or_start_at_zero_have_no_negative_part() {
        let falls = fit(&[(1.0, 9e6), (1e6, 1e6)]).unwrap();
        assert!(falls.bytes_per_s.is_infinite() && falls.latency_ns > 0.0);
        let steep = fit(&[(1.0, 1.0), (1e3, 2e3), (1e6, 4e6)]).unwrap();
        assert!(steep.latency_ns >= 0.0 && steep.bytes_per_s > 0.0);
        assert!(fit(&[(1.0, 1.0)]).is_none() && fit(&[]).is_none());
    }

    /// 150 GB in 10 s, the question of the source.
    #[test]
    fn requests_in_flight_fill_the_line() {
        let fit = Fit { latency_ns: 10e6, bytes_per_s: 1e8, off: 0.0, off_at_bytes: 0.0 };
        // One request for 1 MB takes 20 ms. So one stream reads 50 MB/s, and 300 streams read 15 GB/s.
        assert!((fit.requests_in_flight(1e6, 15e9) - 300.0).abs() < 1e-6);
        let bytes = fit.cheapest_range_bytes(300, 15e9).unwrap();
        assert!((bytes - 1e6).abs() < 1.0, "{bytes}");
        assert_eq!(fit.cheapest_range_bytes(150, 15e9), None, "even very large requests reach only 100 MB/s each");
    }
}
