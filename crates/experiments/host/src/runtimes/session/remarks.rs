//! The facts and remarks of a session: how runtimes were built, what they start, and what failed.

use std::collections::BTreeSet;
use std::env;

use ascertain_engine::experiment::{ArmId, Point};
use ascertain_engine::finding::{FailedWorkload, Remark, StartedProgram};

use super::{ArmState, Phase, RuntimesSession};
use crate::runtimes::build_id::{digest, identity};
use crate::runtimes::languages::LANGUAGES;
use crate::runtimes::levels;
use crate::runtimes::workloads::{Source, Workload};

impl RuntimesSession {
    /// Returns the facts about an arm's build and its samples.
    pub(super) fn facts_of(&self, arm: ArmId) -> Point {
        let ArmState { runtime, phase, workloads, .. } = &self.arms[arm];
        let (own, of_pyperformance) = match phase {
            Phase::Process => ("from the start to the end of the process".to_string(), ""),
            Phase::Start => {
                ("from the start of the process to its first result".into(), "from the start to the end of the process")
            }
            Phase::First => (
                "the first pass in a fresh process".into(),
                "the mean of the first passes, which take about 50 ms together, or a single pass",
            ),
            Phase::Warm { ns } => (
                format!("a pass after {} ms of passes in a fresh process", ns / 1_000_000),
                "the mean of passes of about 50 ms together, or a single pass, after as many passes to warm up; it is \
                 unknown whether they are steady",
            ),
        };
        let is_of_pyperformance = |of: &Workload| matches!(of.source, Source::Pyperformance(_));
        let sample = match (workloads.iter().any(is_of_pyperformance), workloads.iter().all(is_of_pyperformance)) {
            (false, _) => own,
            (_, true) => of_pyperformance.into(),
            _ => format!("{own}; for workloads of pyperformance, {of_pyperformance}"),
        };
        let mut point = Point::default().with("sample", &*sample).with("build", &*runtime.identity);
        for (name, value) in runtime.build.iter().filter(|(_, value)| !value.is_empty()) {
            point = point.with(name, &**value);
        }
        // Two runs of files with the same names may have measured different work.
        let files = workloads.iter().filter_map(|of| match &of.source {
            Source::File(path) => identity(path),
            Source::Pyperformance(script) => identity(script.path()),
            Source::Driven { .. } => None,
        });
        let files: Vec<String> = files.collect();
        if !files.is_empty() {
            point = point.with("files", &*digest(&files.concat()));
        }
        let hooks = runtime.hooks.iter().map(|hook| format!("{}:{}", hook.name, hook.content)).collect::<Vec<_>>();
        if !hooks.is_empty() {
            point = point.with("at_start", &*hooks.join(" "));
        }
        point.with("path", &*runtime.program.path.display().to_string())
    }

    /// Returns the findings about an arm so far.
    pub(super) fn remarks(&self, arm: ArmId) -> Vec<Remark> {
        let state = &self.arms[arm];
        let failures: Vec<FailedWorkload> = state.failures.values().cloned().collect();
        let failed = (!failures.is_empty()).then_some(Remark::FailedWorkloads { failures });
        let started = state.runtime.wrapper.as_ref().map(|wrapper| {
            let (given, starts) = (state.runtime.given.display().to_string(), wrapper.starts.display().to_string());
            let is_followed = state.runtime.program.path == wrapper.starts;
            let [wrapper_ns, program_ns] = wrapper.start_ns;
            let kept = wrapper.kept.clone();
            Remark::StartsAnother(StartedProgram { given, starts, wrapper_ns, program_ns, is_followed, kept })
        });
        let printed: Vec<(String, String)> =
            state.errors_printed.iter().map(|(workload, line)| (workload.clone(), line.clone())).collect();
        let printed = (!printed.is_empty()).then_some(Remark::PrintedErrors { printed });
        let unstable =
            (!state.unstable.is_empty()).then(|| Remark::UnstableOutput { workloads: state.unstable.clone() });
        let setup = (arm == 0).then(|| self.setup_remark());
        let script = state
            .runtime
            .script_start_ns
            .map(|start_ns| Remark::ScriptRuntime { given: state.runtime.given.display().to_string(), start_ns });
        [failed, started, script, printed, unstable, setup].into_iter().flatten().collect()
    }

    /// Returns the remark about the processes of all arms.
    fn setup_remark(&self) -> Remark {
        let languages: BTreeSet<&str> = self.arms.iter().map(|arm| arm.runtime.language.name).collect();
        let of_languages = LANGUAGES.iter().filter(|language| languages.contains(language.name));
        let overruled = of_languages.clone().map(|language| language.seed_variable);
        let overruled = overruled.filter(|name| !name.is_empty() && env::var_os(name).is_some());
        let inherited: BTreeSet<String> = env::vars_os()
            .filter_map(|(name, _)| name.into_string().ok())
            .filter(|name| {
                of_languages.clone().any(|language| language.is_setting(name) && name != language.seed_variable)
            })
            .collect();
        Remark::Processes {
            seeds: self.seeds.clone(),
            unseeded: self.arms.iter().filter(|of| of.runtime.ignores_seed).map(|of| levels::name(&of.arm)).collect(),
            overruled: overruled.map(String::from).collect(),
            inherited: inherited.into_iter().collect(),
            control: self.control.as_ref().map(|control| control.library.clone()),
        }
    }
}
