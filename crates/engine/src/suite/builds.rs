//! Builds of one version as a sample: how much the choice of the build affects the times, and how far another build may
//! differ.

use ascertain_stats::{MeanPart, Moments, cautious_mean_interval, student_size};
use serde::{Deserialize, Serialize};

use super::compare::ends_of;
use super::{ERROR, Ends, LEAST_SAMPLE};

/// Several builds of one version, compared with the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildGroup {
    /// Name of the version.
    pub version: String,
    /// The different builds. Copies of one build count once.
    pub builds: Vec<BuildMean>,
    /// Names of arms that are copies of an earlier build of the version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<String>,
    /// Name of the version, or of the single build, with which the builds are compared. `None` if all arms are builds
    /// of this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The factor by which the builds are faster than the baseline: the geometric mean over the builds.
    pub ratio: Option<f64>,
    /// The interval of this factor for builds like these; `None` if neither side has three builds.
    pub like_these: Option<Ends>,
    /// The largest factor between the means of two of these builds.
    pub range: Option<f64>,
    /// The factor that the ratio of two further builds of this version exceeds with a probability of 5 %. `None` for
    /// fewer than three builds.
    pub two_builds: Option<f64>,
    /// The workload that differs most between two of the builds, and its factor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<(String, f64)>,
}

/// A build with its mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildMean {
    /// Name of the arm.
    pub name: String,
    /// The factor by which this build is faster than the first arm: the geometric mean of the suite.
    pub ratio: f64,
}

/// A build, with the logarithms of its ratios to the first arm.
#[derive(Clone)]
pub(super) struct BuildLogs {
    pub name: String,
    pub mean: f64,
    /// The mean of each trial that has all workloads. `None` for the first arm itself, whose ratios are all 1.
    pub trials: Option<Vec<(u64, f64)>>,
    /// The mean for each workload.
    pub workloads: Vec<(String, f64)>,
}

/// Summarises the builds of one version. `baseline` has the builds of the version to which the first arm belongs.
pub(super) fn group(
    (version, builds): (&str, &[BuildLogs]),
    copies: Vec<String>,
    baseline: Option<(&str, &[BuildLogs])>,
) -> BuildGroup {
    let logs = |builds: &[BuildLogs]| builds.iter().map(|build| build.mean).collect::<Vec<f64>>();
    let of_group = logs(builds);
    let moments: Moments = of_group.iter().copied().collect();
    let ratio = baseline.and_then(|(_, others)| {
        let base: Moments = logs(others).into_iter().collect();
        Some((moments.mean()? - base.mean()?).exp())
    });
    let like_these = baseline.and_then(|(_, others)| interval(builds, others));
    let spread = moments.standard_deviation().filter(|_| builds.len() >= LEAST_SAMPLE);
    let two_builds = spread.and_then(|spread| {
        let size = student_size(ERROR, builds.len() as f64 - 1.0).ok()?;
        Some((size * spread * 2_f64.sqrt()).exp())
    });
    let range = moments.max().zip(moments.min()).map(|(max, min)| (max - min).exp());
    BuildGroup {
        version: version.into(),
        builds: builds.iter().map(|build| BuildMean { name: build.name.clone(), ratio: build.mean.exp() }).collect(),
        copies,
        baseline: baseline.map(|(name, _)| name.to_string()),
        ratio,
        like_these,
        range: range.filter(|_| builds.len() > 1),
        two_builds,
        most: most(builds),
    }
}

/// Returns the interval of the ratio for builds like these. A side with at least [`LEAST_SAMPLE`] builds is a sample. A
/// side with fewer builds is fixed: the interval applies to exactly these builds. `None` if both sides are fixed.
///
/// The builds of a sample share the trials of the first arm, and so its noise. This noise is not part of their spread,
/// so the variance of the result over the trials is added.
fn interval(builds: &[BuildLogs], others: &[BuildLogs]) -> Option<Ends> {
    let is_sample = |builds: &[BuildLogs]| builds.len() >= LEAST_SAMPLE;
    if !is_sample(builds) && !is_sample(others) {
        return None;
    }
    let mut parts = Vec::new();
    for (weight, side) in [(1.0, builds), (-1.0, others)] {
        let means: Vec<f64> = side.iter().map(|build| build.mean).collect();
        match is_sample(side) {
            true => parts.push(MeanPart::new(weight, &means)?),
            false => {
                let mean = means.iter().sum::<f64>() / means.len() as f64;
                parts.push(MeanPart { weight, mean, variance: 0.0, degrees: 1.0 });
            }
        }
    }
    let differences = differences(builds, others);
    if let Some(noise) = MeanPart::new(1.0, &differences) {
        parts.push(MeanPart { mean: 0.0, ..noise });
    }
    // With three builds, Welch's interval would miss 6.7 times in 100.
    Some(ends_of(&cautious_mean_interval(&parts, ERROR).ok()??))
}

/// Returns the difference between the means of the two sides, for each trial that all their builds have.
fn differences(builds: &[BuildLogs], others: &[BuildLogs]) -> Vec<f64> {
    let measured: Vec<&Vec<(u64, f64)>> =
        builds.iter().chain(others).filter_map(|build| build.trials.as_ref()).collect();
    let Some(first) = measured.first() else { return Vec::new() };
    let mean = |side: &[BuildLogs], trial: u64| {
        let of_build = |build: &BuildLogs| match &build.trials {
            Some(trials) => Some(trials[trials.binary_search_by_key(&trial, |(trial, _)| *trial).ok()?].1),
            None => Some(0.0),
        };
        Some(side.iter().map(of_build).sum::<Option<f64>>()? / side.len() as f64)
    };
    first.iter().filter_map(|(trial, _)| Some(mean(builds, *trial)? - mean(others, *trial)?)).collect()
}

/// Returns the workload with the largest factor between two builds.
fn most(builds: &[BuildLogs]) -> Option<(String, f64)> {
    let (first, rest) = builds.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let factor = |(workload, log): &(String, f64)| {
        let of_others = rest.iter().filter_map(|build| {
            let found = build.workloads.iter().find(|(other, _)| other == workload)?;
            Some(found.1)
        });
        let all: Moments = of_others.chain([*log]).collect();
        Some((workload.clone(), (all.max()? - all.min()?).exp()))
    };
    first.workloads.iter().filter_map(factor).max_by(|one, other| one.1.total_cmp(&other.1))
}
