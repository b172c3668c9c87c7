//! The speeds of machines, in a form that does not depend on the origin of the figures.

/// The machines to price, with the figures that were measured on each type. The first type is the reference.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machines {
    /// The types, in the order in which they are compared.
    pub types: Vec<MeasuredType>,
    /// Number of figures that were dropped because they were copies of other figures.
    pub copies: u64,
    /// Number of CPUs that the work kept busy on average; `None` if it is not known.
    pub busy_cpus: Option<f64>,
    /// Differences between the builds of the programs that were measured, such as their compilers.
    pub unlike_builds: Vec<String>,
}

/// All figures of one type of machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredType {
    /// The type, such as `c7g.16xlarge`.
    pub machine_type: String,
    /// Number of CPUs of the machines; `None` if it is not known.
    pub cpus: Option<u64>,
    /// Number of whole cores of the machines; `None` if it is not known.
    pub cores: Option<u64>,
    /// Origin of figures that other people recorded; `None` if Ascertain measured them.
    pub recorded_by_others: Option<String>,
    /// Description of the processor and other facts, with which machines of two types can be told apart. Empty if
    /// nothing is known.
    pub looks: String,
    /// The workloads, in the order in which they were recorded.
    pub series: Vec<Series>,
}

/// The figures of one workload with one number of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name of the workload.
    pub workload: String,
    /// Number of threads or processes; `None` if it was not recorded.
    pub threads: Option<u64>,
    /// The unit of work, and how to compute the speed.
    pub unit: WorkUnit,
    /// The figures, one for each machine.
    pub machines: Vec<MachineValue>,
}

/// The unit of work of a figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkUnit {
    /// The figure is a time in nanoseconds, in which this number of executions ended.
    Runs(u64),
    /// The figure is a rate in bytes per second. The unit of work is 1 GB.
    Gigabytes,
    /// The figure is a rate of these units per second.
    PerSecond(String),
}

impl WorkUnit {
    /// Returns the name of the unit of work: `run`, `GB`, or the unit of the recorded rate.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            WorkUnit::Runs(_) => "run",
            WorkUnit::Gigabytes => "GB",
            WorkUnit::PerSecond(name) => name,
        }
    }

    /// Returns the speed in units of work per second.
    #[must_use]
    pub fn speed(&self, figure: f64) -> f64 {
        match self {
            WorkUnit::Runs(at_once) => *at_once as f64 * 1e9 / figure,
            WorkUnit::Gigabytes => figure / 1e9,
            WorkUnit::PerSecond(_) => figure,
        }
    }

    /// Returns whether a higher figure is a lower speed.
    #[must_use]
    pub fn is_time(&self) -> bool {
        matches!(self, WorkUnit::Runs(_))
    }
}

/// The figure of one workload on one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineValue {
    /// Name of the machine; empty if it is not known.
    pub machine: String,
    /// The figure: the median, if the machine measured several values.
    pub value: f64,
    /// Lower end of the median's interval at 95 %; `None` if it is not known.
    pub low: Option<f64>,
    /// Upper end of the median's interval at 95 %; `None` if it is not known.
    pub high: Option<f64>,
}

impl MeasuredType {
    /// Returns the number of machines that were measured. If the workloads were measured on different numbers of
    /// machines, returns the largest of these numbers.
    #[must_use]
    pub fn machines(&self) -> u64 {
        self.series.iter().map(|series| series.machines.len() as u64).max().unwrap_or(0)
    }

    /// Returns the smallest number of machines on which a workload was measured.
    #[must_use]
    pub fn fewest_machines(&self) -> u64 {
        self.series.iter().map(|series| series.machines.len() as u64).min().unwrap_or(0)
    }
}
