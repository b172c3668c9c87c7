//! The stores of the source as data: the quantiles that the source published. Emulated stores in this process draw
//! their times from these quantiles.

use ascertain_netlab::store::ServiceTimes;

use super::{AZURE, GOOGLE, Operation, S3};

/// The published figures of a store for one operation.
pub struct Figures {
    /// Time to the first byte in milliseconds, at p50, p90, p99 and p99.9.
    pub first_byte_ms: [f64; 4],
    /// Throughput of one stream in MB/s, at p50, p90 and p99. The p99 is the lowest throughput.
    pub mb_per_s: [f64; 3],
    /// Throughput in MB/s of 1, 5, 10 and 20 streams together; empty if the source did not measure it.
    pub total_mb_per_s: &'static [f64],
}

/// The numbers of streams for which the source measured the total throughput.
const STREAMS: [f64; 4] = [1.0, 5.0, 10.0, 20.0];

/// The stores, each with its figures for downloads and for uploads. Zach Bjornson, *AWS S3 vs Google Cloud vs Azure:
/// Cloud Storage Performance*, 29 December 2015, figures 1 and 6, and table 3.
pub const STORES: [(&str, Figures, Figures); 3] = [
    (
        GOOGLE,
        published([38.2, 51.9, 129.8, 238.0], [122.3, 106.9, 67.1], &[113.0, 480.0, 641.0, 845.0]),
        published([106.2, 161.7, 311.4, 408.2], [59.3, 49.3, 22.1], &[34.0, 156.0, 284.0, 588.0]),
    ),
    (
        S3,
        published([10.6, 14.7, 125.0, 432.1], [73.3, 59.1, 47.0], &[61.0, 306.0, 520.0, 603.0]),
        published([16.2, 36.8, 274.8, 645.2], [23.7, 20.3, 6.1], &[20.0, 87.0, 128.0, 141.0]),
    ),
    (
        AZURE,
        published([10.7, 16.7, 44.5, 106.3], [27.0, 23.6, 20.1], &[]),
        published([8.3, 13.2, 35.6, 236.3], [20.5, 17.2, 15.6], &[]),
    ),
];

const fn published(first_byte_ms: [f64; 4], mb_per_s: [f64; 3], total_mb_per_s: &'static [f64]) -> Figures {
    Figures { first_byte_ms, mb_per_s, total_mb_per_s }
}

/// The time of the quickest answer, as a share of the median. The source publishes no quantile below the median.
const QUICKEST: f64 = 0.8;

/// Returns the figures of a store; `None` if there is no such store.
pub fn figures(store: &str, operation: Operation) -> Option<&'static Figures> {
    let (_, download, upload) = STORES.iter().find(|(name, ..)| *name == store)?;
    Some(if operation == Operation::Upload { upload } else { download })
}

impl Figures {
    /// Returns the times of an emulated store. The times to the first byte are divided by `scale`; the rates are not.
    pub fn service(&self, scale: u64) -> ServiceTimes {
        let ns = |ms: f64| ms * 1e6 / scale as f64;
        let [p50, p90, p99, p999] = self.first_byte_ms.map(ns);
        let first_byte_ns = vec![(0.0, QUICKEST * p50), (0.5, p50), (0.9, p90), (0.99, p99), (0.999, p999)];
        let [p50, p90, p99] = self.mb_per_s.map(|rate| rate * 1e6);
        let bytes_per_s = vec![(0.01, p99), (0.1, p90), (0.5, p50), (1.0, p50 / QUICKEST)];
        let alone = self.total_mb_per_s.first().copied().unwrap_or(1.0);
        let share = |(streams, total): (f64, &f64)| (streams, total / (streams * alone));
        let scaling = STREAMS.into_iter().zip(self.total_mb_per_s).map(share).collect();
        ServiceTimes { first_byte_ns, bytes_per_s, scaling }
    }

    /// Returns the size in bytes at which the medians of two stores are equal, by T = L + size/B. `None` if one store
    /// is faster at every size.
    #[cfg(test)]
    pub fn crossover_bytes(&self, other: &Figures) -> Option<f64> {
        let [(latency_s, rate), (other_latency_s, other_rate)] =
            [self, other].map(|one| (one.first_byte_ms[0] * 1e-3, one.mb_per_s[0] * 1e6));
        let bytes = (latency_s - other_latency_s) / (1.0 / other_rate - 1.0 / rate);
        (bytes > 0.0).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shares of linear scaling that 20 streams reach in the source's own data.
    #[test]
    fn streams_of_the_source_do_not_scale_linearly() {
        let share = |store, operation| {
            let scaling = figures(store, operation).unwrap().service(10).scaling;
            scaling.last().map(|(streams, share)| (*streams as u64, (share * 100.0).round() as u64))
        };
        use Operation::{Download, Upload};
        assert_eq!([GOOGLE, S3].map(|store| share(store, Download)), [Some((20, 37)), Some((20, 49))]);
        assert_eq!([GOOGLE, S3].map(|store| share(store, Upload)), [Some((20, 86)), Some((20, 35))]);
        assert_eq!(share(AZURE, Download), None);
    }

    /// The crossovers that follow from the medians of the source.
    #[test]
    fn medians_of_the_source_give_its_crossovers() {
        let crossover = |operation, one, other| {
            let [one, other] = [one, other].map(|store| figures(store, operation).unwrap());
            one.crossover_bytes(other).map(|bytes| (bytes / 1e4).round() / 100.0)
        };
        use Operation::{Download, Upload};
        assert_eq!(crossover(Download, GOOGLE, AZURE), Some(0.95));
        assert_eq!(crossover(Download, GOOGLE, S3), Some(5.05));
        assert_eq!(crossover(Download, S3, AZURE), None);
        assert_eq!(crossover(Upload, GOOGLE, AZURE), Some(3.07));
        assert_eq!(crossover(Upload, GOOGLE, S3), Some(3.55));
        assert_eq!(crossover(Upload, S3, AZURE), Some(1.2));
        assert!(figures("nowhere", Download).is_none());
    }
}
