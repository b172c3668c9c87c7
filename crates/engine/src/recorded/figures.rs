//! Writes other people's recorded figures as the evidence of a run, so that reports, histories and cost calculations
//! can read them. Ascertain measures nothing here, and the evidence records this.

use std::path::{Path, PathBuf};

use ascertain_sys::clock;
use ascertain_sys::machine::Machine;

use super::read::RecordedExperiment;
use crate::block::TrialRecord;
use crate::error::Error;
use crate::evidence::{self, Header, Writer};
use crate::experiment::{Arm, Experiment, Sample, Spec, Status};
use crate::finding::Threat;
use crate::plan::{self, Config, Plan, Table, UseCase};
use crate::summary::{self, RunFacts};
use crate::values::Bounds;

/// Id of the experiment in evidence that consists of other people's figures.
pub const EXPERIMENT: &str = "figures";

/// Figures that other people recorded on machines of one type.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Type of the machines, such as `c7g.16xlarge`. It becomes the label of the run.
    pub machine_type: String,
    /// Number of CPUs of each machine.
    pub cpus: usize,
    /// Number of whole cores of each machine; `None` if it is not known.
    pub cores: Option<u64>,
    /// Origin of the figures, with its licence if that is known.
    pub source: String,
    /// The workloads as variants, with their factors and metrics. The id is [`EXPERIMENT`].
    pub spec: Spec,
    /// The figures, each of one workload on one machine.
    pub figures: Vec<Figure>,
    /// The command line that read the figures.
    pub command_line: Vec<String>,
}

/// A figure of one workload on one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The workload and its levels.
    pub arm: Arm,
    /// Index of the metric in the experiment's description.
    pub metric: usize,
    /// The value, in the metric's unit.
    pub value: f64,
    /// Name of the machine that was measured; empty if it is not known.
    pub machine: String,
}

impl Figures {
    /// Writes the figures as a finished run, in a new folder below `runs`, and returns this folder. Each figure is a
    /// separate trial, because the order of the measurements is not known. `known` is the folder that lists this user's
    /// runs; `None` if the run is not to be listed.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn record(&self, runs: &Path, known: Option<&Path>) -> Result<PathBuf, Error> {
        let unix_ns = clock::unix_ns();
        let entropy = clock::now_ns() ^ u64::from(std::process::id());
        let header = self.header(evidence::new_run_id(unix_ns, entropy), evidence::rfc3339(unix_ns));
        let experiment = RecordedExperiment(&self.spec);
        let registry: [&dyn Experiment; 1] = [&experiment];
        let (plan, machine, run_id) = (header.plan.clone(), header.machine.clone(), header.run_id.clone());
        let (mut run, _) = plan::lanes(&plan, &registry, &machine, &|_, _| None)?;
        let mut writer = Writer::create(runs, header, known)?;
        let mut places = Vec::new();
        for (lane, group) in run.lanes.iter().enumerate() {
            for (slot, arm) in group.arms.iter().enumerate() {
                places.push((arm.clone(), lane, slot, writer.add_arm(&self.spec, lane, arm)));
            }
        }
        let (mut record, now_ns) = (TrialRecord::default(), clock::now_ns());
        for (number, figure) in (0..).zip(&self.figures) {
            let Figure { metric, value, .. } = *figure;
            let place = places.iter().find(|(arm, ..)| *arm == figure.arm);
            let &(_, lane, slot, index) = place.expect("the plan's table has the arm of every figure");
            writer.set_worker(&figure.machine);
            let sample = Sample { metric, key: "".into(), offset_ns: 0, value, status: Status::Ok };
            writer.record(index, number, 0, now_ns, &[sample]);
            record.clear();
            record.add(slot, metric, "", Bounds::exact(value));
            run.conclude(lane, number, &record);
        }
        let facts = RunFacts { registry: &registry, machine: &machine, cpu_times: None, plan: &plan, run_id: &run_id };
        let mut outcome = summary::summarise(&facts, &run.observations, Vec::new(), false);
        outcome.points.retain(|point| point.n > 0);
        outcome.threats = vec![self.threat()];
        Ok(writer.finish(outcome)?)
    }

    /// Returns the finding that other people recorded these figures.
    fn threat(&self) -> Threat {
        let Figures { machine_type, cores, source, .. } = self;
        Threat::RecordedByOthers { machine_type: machine_type.clone(), cores: *cores, source: source.clone() }
    }

    fn header(&self, run_id: String, started: String) -> Header {
        let mut arms: Vec<Arm> = Vec::new();
        for figure in &self.figures {
            if !arms.contains(&figure.arm) {
                arms.push(figure.arm.clone());
            }
        }
        let machine = Machine {
            cpu_model: format!("{} (recorded by others)", self.machine_type),
            architecture: "unknown".into(),
            cpus_online: self.cpus,
            cpus_allowed: self.cpus,
            ..Machine::default()
        };
        let tables = vec![Table { experiment: self.spec.id.clone(), arms }];
        Header {
            schema: evidence::SCHEMA.to_string(),
            run_id,
            started,
            ascertain_version: env!("CARGO_PKG_VERSION").to_string(),
            command_line: self.command_line.clone(),
            render: serde_json::Value::Null,
            label: Some(self.machine_type.clone()),
            revision: None,
            machine,
            experiments: vec![self.spec.clone()],
            plan: Plan { use_case: UseCase::Run, tables, config: Config::default(), ..Plan::default() },
            unavailable: Vec::new(),
            outcome: None,
            lines_bytes: None,
            lines_checksum: None,
            parquet_checksum: None,
        }
    }
}
