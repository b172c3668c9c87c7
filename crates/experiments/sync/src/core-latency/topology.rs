//! The distances between CPUs, according to the kernel and according to latencies.

use std::fs;
use std::path::Path;

/// The sysfs files that show what CPUs share, such as a cache. For example, all CPUs with the same L2 cache have the
/// same content in the file about it. The files about the nearest CPUs come first.
const SHARED: [&str; 6] = [
    "topology/thread_siblings_list",
    "cache/index2/shared_cpu_list",
    "topology/cluster_cpus_list",
    "cache/index3/shared_cpu_list",
    "topology/die_cpus_list",
    "topology/package_cpus_list",
];

/// Ratio of a latency to the next smaller one, above which a new distance level begins.
const GAP: f64 = 1.25;
/// Smallest number of pairs of CPUs in a distance level, a group of pairs with similar latencies. A single pair may
/// have been disturbed, so there must be at least two.
const LEVEL_PAIRS: usize = 2;
/// Smallest number of CPUs that can show two distance levels. Two levels need four pairs of CPUs, but three CPUs have
/// only three pairs.
pub const LEVEL_CPUS: usize = 4;

/// The CPUs, each with the content of the files in `SHARED`.
pub struct Topology(Vec<(usize, Vec<Option<String>>)>);

impl Topology {
    /// Reads the topology from `/sys/devices/system/cpu`, or from a folder with the same layout.
    pub fn read(folder: &Path, cpus: &[usize]) -> Topology {
        let shared = |cpu: usize| {
            let text = |file: &&str| fs::read_to_string(folder.join(format!("cpu{cpu}")).join(file)).ok();
            (cpu, SHARED.iter().map(text).collect())
        };
        Topology(cpus.iter().map(|&cpu| shared(cpu)).collect())
    }

    /// Returns the distance of two CPUs: the index of the first file in `SHARED` with the same content for both. If
    /// there is none, the distance is the length of `SHARED`. Returns `None` if the kernel does not report what the
    /// CPUs share.
    pub fn distance(&self, [a, b]: [usize; 2]) -> Option<usize> {
        let of = |wanted: usize| self.0.iter().find(|(cpu, _)| *cpu == wanted).map(|(_, shared)| shared);
        let (a, b) = (of(a)?, of(b)?);
        let is_known = a.iter().any(Option::is_some);
        let nearest = a.iter().zip(b).position(|(a, b)| a.is_some() && a == b);
        is_known.then(|| nearest.unwrap_or(SHARED.len()))
    }
}

/// Returns the number of distance levels, groups of pairs of CPUs with similar latencies. Returns `None` if there are
/// too few latencies for two levels.
pub fn levels(latencies_ns: &[f64]) -> Option<usize> {
    if latencies_ns.len() < 2 * LEVEL_PAIRS {
        return None;
    }
    let mut sorted_ns = latencies_ns.to_vec();
    sorted_ns.sort_by(f64::total_cmp);
    let (mut levels, mut start) = (1, 0);
    for at in 1..sorted_ns.len() {
        let is_gap = sorted_ns[at] > sorted_ns[at - 1] * GAP;
        if is_gap && (at - start).min(sorted_ns.len() - at) >= LEVEL_PAIRS {
            (levels, start) = (levels + 1, at);
        }
    }
    Some(levels)
}

/// Compares the kernel's distances of pairs of CPUs with the pairs' latencies.
#[derive(Debug, PartialEq)]
pub struct Comparison {
    /// Number of distance levels in the kernel's topology.
    pub kernel_levels: usize,
    /// The share of comparisons in which the nearer pair of CPUs is faster. Every two pairs with different distances
    /// are compared. `None` if all distances are equal.
    pub agreement: Option<f64>,
}

/// Compares the latencies of pairs of CPUs with the kernel's distances. Each entry is the latency and the distance of
/// one pair of CPUs.
pub fn compare(pairs: &[(f64, usize)]) -> Comparison {
    let mut distances: Vec<usize> = pairs.iter().map(|(_, distance)| *distance).collect();
    distances.sort_unstable();
    distances.dedup();
    let (mut nearer_is_faster, mut differ) = (0_u64, 0_u64);
    for (latency_ns, distance) in pairs {
        for (other_ns, _) in pairs.iter().filter(|(_, other)| other > distance) {
            differ += 1;
            nearer_is_faster += u64::from(latency_ns < other_ns);
        }
    }
    let agreement = (differ > 0).then(|| nearer_is_faster as f64 / differ as f64);
    Comparison { kernel_levels: distances.len(), agreement }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sockets_of_two_cores_of_two_threads() {
        let folder = tempfile::tempdir().unwrap();
        for cpu in 0..8_usize {
            let (core, package) = (cpu / 2, cpu / 4);
            for (file, of) in [("topology/thread_siblings_list", core), ("cache/index3/shared_cpu_list", 10 + package)]
            {
                let path = folder.path().join(format!("cpu{cpu}/{file}"));
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, format!("{of}\n")).unwrap();
            }
        }
        let topology = Topology::read(folder.path(), &(0..8).collect::<Vec<_>>());
        assert_eq!([[0, 1], [0, 2], [0, 4]].map(|pair| topology.distance(pair)), [Some(0), Some(3), Some(6)]);
        assert_eq!(topology.distance([0, 9]), None);
        let nothing = Topology::read(&folder.path().join("nothing"), &[0, 1]);
        assert_eq!(nothing.distance([0, 1]), None);
    }

    #[test]
    fn a_level_is_two_pairs_or_more() {
        assert_eq!(levels(&[131.0, 10.0, 41.0, 11.0, 40.0, 130.0]), Some(3));
        // In the first cases one pair of CPUs was disturbed; in the last case two pairs were.
        assert_eq!(levels(&[40.0, 41.0, 42.0, 40.0, 41.0, 90.0]), Some(1));
        assert_eq!(levels(&[10.0, 40.0, 41.0, 42.0, 40.0, 90.0]), Some(1));
        assert_eq!(levels(&[10.0, 11.0, 25.0, 40.0, 41.0]), Some(2));
    }

    #[test]
    fn one_level_is_seen_only_where_two_could_be() {
        for cpus in 0..=6_usize {
            let pairs = cpus * cpus.saturating_sub(1) / 2;
            assert_eq!(levels(&vec![40.0; pairs]).is_some(), cpus >= LEVEL_CPUS, "{cpus} CPUs");
        }
    }

    #[test]
    fn latencies_agree_with_the_kernels_topology() {
        let near = [(10.0, 0), (11.0, 0), (40.0, 3), (41.0, 3), (130.0, 6)];
        assert_eq!(compare(&near), Comparison { kernel_levels: 3, agreement: Some(1.0) });
        let one_swapped = [(10.0, 3), (40.0, 0)];
        assert_eq!(compare(&one_swapped), Comparison { kernel_levels: 2, agreement: Some(0.0) });
        let alike = [(40.0, 3), (41.0, 3)];
        assert_eq!(compare(&alike), Comparison { kernel_levels: 1, agreement: None });
        assert_eq!(compare(&[]), Comparison { kernel_levels: 0, agreement: None });
    }
}
