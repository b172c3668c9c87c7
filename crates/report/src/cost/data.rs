//! The result of a cost calculation as plain data.

use ascertain_engine::outcome::Verdict;
use serde::{Serialize, Serializer};

use super::finding::CostFinding;
use super::sentence::answer;
use crate::text::plain;

/// The cost of the same work on several offers. An offer is a type of machine at a price. Unknown values are `None`, in
/// JSON `null`. All intervals are at 95 %, and none of them is exact.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostReport {
    /// Number of units of work to which each cost applies. The unit of work is one execution if times were measured,
    /// and 1 GB if rates in bytes were measured.
    pub units: f64,
    /// Currency of all prices and costs.
    pub currency: String,
    /// The offers; the first is the reference.
    pub offers: Vec<Offer>,
    /// One comparison for each offer after the first, in the same order.
    #[serde(serialize_with = "with_answers")]
    pub comparisons: Vec<CostComparison>,
    /// The verdicts on claims about these machines.
    pub claims: Vec<ClaimOnCost>,
    /// Observations that limit the result.
    #[serde(serialize_with = "with_sentences")]
    pub findings: Vec<CostFinding>,
}

/// Serialises comparisons, each with its answer as a sentence.
fn with_answers<S: Serializer>(comparisons: &[CostComparison], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Answered<'a> {
        answer: String,
        #[serde(flatten)]
        comparison: &'a CostComparison,
    }
    let answered = |comparison| Answered { answer: plain(&answer(comparison)), comparison };
    serializer.collect_seq(comparisons.iter().map(answered))
}

/// Serialises findings, each with its sentence.
fn with_sentences<S: Serializer>(findings: &[CostFinding], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Worded<'a> {
        #[serde(flatten)]
        finding: &'a CostFinding,
        sentence: String,
    }
    serializer.collect_seq(findings.iter().map(|finding| Worded { finding, sentence: plain(&finding.sentence()) }))
}

/// A type of machine at a price.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Offer {
    /// Name of the offer. It is the type of machine, followed by the kind of price if the type has several prices.
    pub name: String,
    /// Type of the machine, such as `c7g.16xlarge`.
    pub machine_type: String,
    /// Kind of the price, such as `spot`; empty if the price file has none.
    pub kind: String,
    /// Region of the price; empty if the price file has none.
    pub region: String,
    /// Price for an hour.
    pub price_per_hour: f64,
    /// Number of CPUs of the machine, as its provider counts them.
    pub cpus: u64,
    /// Number of whole cores of the machine. With fewer cores than CPUs, a CPU is a part of a core.
    pub cores: Option<u64>,
    /// Number of machines of this type that were measured.
    pub machines: u64,
    /// The smallest number of machines on which a workload was measured.
    pub fewest_machines: u64,
    /// Date of the price; empty if the price file has none.
    pub date: String,
    /// Origin of the price; empty if the price file has none.
    pub source: String,
    /// Number of the line in the price file.
    pub line: u64,
}

/// An offer compared with the reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostComparison {
    /// Name of the offer.
    pub offer: String,
    /// Name of the reference, which is the first offer.
    pub reference: String,
    /// The offer's price divided by the reference's price. For work that leaves CPUs idle, both are the prices of the
    /// cores in use. The offer is cheaper for work that it does more than this
    /// many times as fast as the reference.
    pub break_even: f64,
    /// Answer about the mean of all priced workloads. It treats the workloads as a sample of the user's work, so it is
    /// never exact.
    pub decision: CostDecision,
    /// Mean of the priced workloads; `None` if no workload is priced.
    pub suite: Option<CostMean>,
    /// The workloads, in the order in which they were recorded.
    pub workloads: Vec<WorkloadCost>,
    /// The priced workloads that reverse the decision, most contrary first. If the offer is not cheaper for the
    /// mean, these are the workloads for which it is cheaper.
    pub reversing: Vec<String>,
}

/// The answer about an offer and the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CostDecision {
    /// A unit of work costs less than on the reference.
    Cheaper,
    /// A unit of work costs more than on the reference.
    Dearer,
    /// According to these figures, a unit of work costs less than on the reference, but there is no interval.
    CheaperOnTheseFigures,
    /// According to these figures, a unit of work costs more than on the reference, but there is no interval.
    DearerOnTheseFigures,
    /// The interval of the cost contains the cost on the reference, or no workload has a cost.
    Undecided,
}

impl CostDecision {
    /// Returns the answer as a word for tables and CSV.
    pub fn word(self) -> &'static str {
        match self {
            CostDecision::Cheaper => "cheaper",
            CostDecision::Dearer => "dearer",
            CostDecision::CheaperOnTheseFigures => "cheaper on these figures",
            CostDecision::DearerOnTheseFigures => "dearer on these figures",
            CostDecision::Undecided => "undecided",
        }
    }
}

/// A figure that was measured or computed, with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The estimated figure.
    pub value: f64,
    /// Lower end of the interval at 95 %.
    pub low: Option<f64>,
    /// Upper end of the interval at 95 %.
    pub high: Option<f64>,
}

impl Interval {
    /// Returns the interval of `dividend / self`.
    #[must_use]
    pub fn under(self, dividend: f64) -> Interval {
        Interval {
            value: dividend / self.value,
            low: self.high.map(|high| dividend / high),
            high: self.low.map(|low| dividend / low),
        }
    }
}

/// The geometric mean over the priced workloads. Each workload has the same weight, whatever its length or unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostMean {
    /// Number of workloads in the mean.
    pub workloads: u64,
    /// The load of the machines in these workloads.
    pub load: Load,
    /// Speed of the offer divided by the speed of the reference, with the interval for other workloads like these. If
    /// several machines of each type were measured, the interval also covers other machines like these. With fewer than
    /// three workloads, the interval covers these workloads only.
    pub speed: Interval,
    /// The speed with the interval for exactly these workloads on other machines of these types; `None` if only one
    /// machine of a type was measured.
    pub speed_other_machines: Option<Interval>,
    /// Cost of a unit of work over the cost on the reference.
    pub cost_ratio: Interval,
    /// Degrees of freedom of Student's t distribution for the interval of `speed`.
    pub degrees: Option<f64>,
    /// Chance that the mean cost is lower than on the reference.
    pub chance_cheaper: Option<f64>,
    /// Chance that the next workload like these costs less than on the reference.
    pub chance_next_cheaper: Option<f64>,
}

/// The load of the machines while a workload was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// All CPUs of both machines were busy. The cost is the cost of the whole machine.
    Full,
    /// Some CPUs were idle. The cost is the cost of the cores in use, as if all other cores did as much work.
    Part,
}

impl Load {
    /// Returns the load as a word for tables and CSV.
    pub fn word(self) -> &'static str {
        match self {
            Load::Full => "full",
            Load::Part => "part",
        }
    }
}

/// A workload on an offer and on the reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkloadCost {
    /// Name of the workload.
    pub workload: String,
    /// Unit of work: `run`, `GB`, or the unit of the recorded rate.
    pub unit_of_work: String,
    /// Number of threads or processes on the offer.
    pub threads: u64,
    /// Number of threads or processes on the reference.
    pub reference_threads: u64,
    /// The load of the machines.
    pub load: Load,
    /// `true` if the workload has a cost and is part of the mean. If any workload has full load, workloads that left
    /// CPUs idle have no cost.
    pub is_in_mean: bool,
    /// Speed of the offer divided by the speed of the reference.
    pub speed: Interval,
    /// Degrees of freedom of Student's t distribution for the interval; `None` if it comes from other intervals.
    pub degrees: Option<f64>,
    /// Cost on the offer; `None` if the workload is not priced.
    pub cost: Option<f64>,
    /// Cost on the reference; `None` if the workload is not priced.
    pub reference_cost: Option<f64>,
    /// Cost over the cost on the reference, with its interval.
    pub cost_ratio: Option<Interval>,
    /// Chance that the cost is lower than on the reference.
    pub chance_cheaper: Option<f64>,
    /// Number of machines of the offer's type, and of the reference's type.
    pub machines: [u64; 2],
}

/// A claim about two types of machine, and its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClaimOnCost {
    /// Id of the claim.
    pub id: String,
    /// The claim as a sentence.
    pub says: String,
    /// Origin of the claim, such as a document.
    pub source: String,
    /// The figure that the claim states, as written in the source.
    pub source_value: String,
    /// The claim in the form in which it is judged.
    pub restated: String,
    /// The verdict. It treats the workloads as a sample, so it is never exact.
    pub verdict: Verdict,
    /// The reason for a missing verdict; empty if there is one.
    pub reason: String,
    /// The factor that the mean must reach.
    pub at_least: f64,
    /// Number of workloads that the claim is about.
    pub workloads: u64,
    /// Geometric mean of the factors, with the interval for workloads like these.
    pub mean: Option<Interval>,
    /// The workloads that contradict the verdict, with their factors.
    pub contrary: Vec<(String, f64)>,
}

/// Figures of other people that were recorded as runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordedFigures {
    /// The folder that has the runs.
    pub folder: String,
    /// Number of figures that were left out, because they were copies of other figures.
    pub copies: u64,
    /// The runs, one for each type of machine.
    pub runs: Vec<Recorded>,
}

/// A run of evidence that was written from other people's figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recorded {
    /// Type of the machines.
    pub machine_type: String,
    /// Id of the run.
    pub run_id: String,
    /// Number of workloads.
    pub workloads: u64,
    /// Number of figures.
    pub figures: u64,
    /// Number of machines that were measured. If the workloads were measured on different numbers of machines, the
    /// largest of these numbers.
    pub machines: u64,
    /// Smallest number of machines on which a workload was measured.
    pub fewest_machines: u64,
}
