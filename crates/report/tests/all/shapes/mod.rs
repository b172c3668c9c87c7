//! Recorded runs of many kinds. Each run is a folder of evidence, with the same content every time.
#![allow(dead_code, unused_imports, reason = "the tests, and an example, each use a part of it")]

mod runs;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use ascertain_engine::claim::{Bound, Claim, Effect, Judging, Test};
use ascertain_engine::command::{CommandSet, NamedCommand};
use ascertain_engine::evidence::{self, Header, Writer};
use ascertain_engine::experiment::{Arm, Better, Metric, Point, Sample, Spec, Status, Variant};
use ascertain_engine::plan::{Config, Plan, Table};
use ascertain_engine::predicate::Predicate;
use ascertain_engine::recorded;
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::{Cache, Machine};

pub use runs::{MILLION, SHAPES, many_claims};

/// A function that returns the samples that the experiment observes for one arm in a trial.
pub type See = fn(trial: u64, arm: &Arm, random: &mut Random) -> Vec<Sample>;

/// The description of a run whose evidence can be written.
pub struct Shape {
    /// The name of the shape. The name of the run's folder begins with this name.
    pub name: &'static str,
    pub spec: Spec,
    pub arms: Vec<Arm>,
    pub claims: Vec<Claim>,
    /// The measured commands; empty for functions.
    pub commands: Vec<CommandSet>,
    pub trials: u64,
    pub see: See,
    /// `true` if the run finished, `false` if it was killed.
    pub is_finished: bool,
    pub command_line: &'static [&'static str],
}

impl Shape {
    /// Creates a run of functions: an experiment with a variant for each name, and with one metric.
    pub fn of_functions(name: &'static str, variants: &[&str], trials: u64, see: See) -> Shape {
        let metric = Metric::new("time", "time of a call, mean of a batch", Unit::Nanosecond, Better::Lower);
        let about = |name: &&str| Variant { name: name.to_string(), about: String::new() };
        let spec = Spec {
            id: "example".into(),
            title: "functions that take their time".into(),
            readme: README.into(),
            emulates: None,
            variants: variants.iter().map(about).collect(),
            factors: Vec::new(),
            metrics: vec![metric],
            plots: Vec::new(),
        };
        let arms = variants.iter().map(|variant| arm(variant)).collect();
        Shape {
            name,
            spec,
            arms,
            claims: Vec::new(),
            commands: Vec::new(),
            trials,
            see,
            is_finished: true,
            command_line: &["ascertain", "run", "example"],
        }
    }

    /// Creates a run of commands. The first command is the reference.
    pub fn of_commands(name: &'static str, lines: &[&str], trials: u64, see: See) -> Shape {
        let commands = lines.iter().map(|line| NamedCommand { line: line.to_string(), ..NamedCommand::default() });
        let set = CommandSet { id: "compare".into(), commands: commands.collect(), ..CommandSet::default() };
        let spec = set.spec();
        let arms: Vec<Arm> = lines.iter().map(|line| arm(line)).collect();
        let wall = &spec.metrics[0];
        let claims = arms[1..].iter().map(|candidate| Claim::order("compare", wall, candidate, &arms[0])).collect();
        Shape {
            name,
            spec,
            arms,
            claims,
            commands: vec![set],
            trials,
            see,
            is_finished: true,
            command_line: &["ascertain", "compare", "…"],
        }
    }

    /// Adds a claim: the candidate is this many times as fast as the baseline in half of the trials.
    pub fn claiming(mut self, id: &str, candidate: &str, baseline: &str, times: f64) -> Shape {
        let test = Test::Versus {
            measure: (&self.spec.metrics[0]).into(),
            candidate: arm(candidate),
            baseline: arm(baseline),
            scale: Effect::Ratio,
            bound: Bound::AtLeast(times),
        };
        self.claims.push(self.claim(id, test, 0.5));
        self
    }

    /// Adds a claim: a predicate about a variant is true at least at this rate.
    pub fn claiming_rate(mut self, id: &str, variant: &str, predicate: &str, rate: f64) -> Shape {
        let predicate = Predicate::parse(predicate, &self.spec.metrics).expect("the shape's own predicate");
        let test = Test::predicate(arm(variant), predicate);
        self.claims.push(self.claim(id, test, rate));
        self
    }

    fn claim(&self, id: &str, test: Test, rate: f64) -> Claim {
        let any = Claim::in_half(&self.spec.id, id.into(), String::new(), test);
        Claim {
            source: "000_example.txt".into(),
            source_value: "8x".into(),
            analysis: "The `fast` one has more lanes;\nit won't hold where both wait for memory.".into(),
            restated: String::new(),
            rate,
            ..any
        }
    }

    pub fn killed(mut self) -> Shape {
        self.is_finished = false;
        self
    }

    /// Writes the evidence of the run to a new folder in `runs`.
    pub fn write(&self, runs: &Path) -> PathBuf {
        let mut writer = Writer::create(runs, self.header(), None).expect("the folder is new");
        let slots: Vec<usize> = self.arms.iter().map(|arm| writer.add_arm(&self.spec, 0, arm)).collect();
        let mut random = Random(self.trials ^ 0x5eed);
        for trial in 0..self.trials {
            let mut order: Vec<usize> = (0..self.arms.len()).collect();
            random.shuffle(&mut order);
            for (position, &arm) in order.iter().enumerate() {
                let samples = (self.see)(trial, &self.arms[arm], &mut random);
                writer.record(slots[arm], trial, position as u32, 1000 * trial, &samples);
            }
            writer.end_trial(0.0).expect("the disk has room");
        }
        writer.flush().expect("the disk has room");
        drop(writer);
        let folder = runs.join(self.header().run_id);
        if self.is_finished {
            let outcome = recorded::read(&folder).expect("the run was just written").outcome;
            let (writer, _) = Writer::resume(&folder, None).expect("no other process uses the folder");
            writer.finish(outcome).expect("the disk has room");
        }
        folder
    }

    fn header(&self) -> Header {
        let table = Table { experiment: self.spec.id.clone(), arms: self.arms.clone() };
        Header {
            schema: evidence::SCHEMA.into(),
            run_id: format!("20261121T093012000Z-{}", self.name),
            started: "2026-11-21T09:30:12.000Z".into(),
            ascertain_version: "0.1.0".into(),
            command_line: self.command_line.iter().map(|word| word.to_string()).collect(),
            render: Default::default(),
            label: None,
            revision: None,
            machine: machine(),
            experiments: vec![self.spec.clone()],
            plan: Plan {
                claims: self.claims.clone(),
                tables: if self.commands.is_empty() { vec![table] } else { Vec::new() },
                commands: self.commands.clone(),
                config: Config { seed: 42, ..Config::default() },
                ..Plan::default()
            },
            unavailable: Vec::new(),
            outcome: None,
            lines_bytes: None,
            lines_checksum: None,
            parquet_checksum: None,
        }
    }
}

/// A README with all usual sections, in their usual order.
const README: &str = "\
# example: functions that take their time

**Question.** Which of them is fastest, and how surely?

**Source.** None: the values are drawn from known distributions.

**Design.** Every variant is measured in each trial, in random order.

**Threats.** None but the random numbers.
";

pub fn machine() -> Machine {
    let cache = |level, kind: &str, size_bytes| Cache { level, kind: kind.into(), size_bytes, shared_by: 2 };
    Machine {
        cpu_model: "Example 9000".into(),
        architecture: "x86_64".into(),
        cpus_online: 8,
        cpus_allowed: 2,
        memory_bytes: 16_000_000_000,
        caches: vec![cache(1, "Data", 48 << 10), cache(2, "Unified", 2 << 20), cache(3, "Unified", 32 << 20)],
        governor: Some("schedutil".into()),
        kernel: "Linux 6.18.0".into(),
        os: "Example Linux 13".into(),
        virtualisation: Some("kvm".into()),
        clock_source: Some("tsc".into()),
        clock_step_ns: 10.0,
        ..Machine::default()
    }
}

pub fn arm(variant: &str) -> Arm {
    Arm { variant: variant.into(), point: Point::default() }
}

pub fn scalar(value: f64) -> Sample {
    keyed("", 0, value)
}

pub fn keyed(key: impl Into<Cow<'static, str>>, offset_ns: u64, value: f64) -> Sample {
    let status = if value == f64::INFINITY { Status::Censored } else { Status::Ok };
    Sample { metric: 0, key: key.into(), offset_ns, value, status }
}

/// A generator of pseudo-random numbers (splitmix64), with the same numbers on all machines.
pub struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns a number between 0 and 1, uniformly distributed.
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns an approximately normally distributed number with mean 0 and standard deviation 1.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    /// Returns a time from a distribution with this median and a tail to the right.
    pub fn time_ns(&mut self, median_ns: f64, spread: f64) -> f64 {
        let slow = if self.uniform() < 0.03 { 1.0 + 2.0 * self.uniform() } else { 1.0 };
        median_ns * slow * (spread * self.normal()).exp()
    }

    fn shuffle(&mut self, order: &mut [usize]) {
        for last in (1..order.len()).rev() {
            order.swap(last, (self.next() % (last as u64 + 1)) as usize);
        }
    }
}
