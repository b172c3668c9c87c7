//! What a bench does from its command line to its exit code: it measures group by group, and prints what came of each.

use std::path::PathBuf;
use std::process::ExitCode;

use ascertain_engine::claim::Claim;
use ascertain_engine::evidence;
use ascertain_engine::experiment::{Arm, Experiment};
use ascertain_engine::function::Group;
use ascertain_engine::plan::{Config, Plan, Table};
use ascertain_engine::run::Run;
use ascertain_report::alphabet::Alphabet;
use ascertain_report::exports::{Files, Purpose};
use ascertain_report::layout::TableLayout;
use ascertain_report::progress::{Line, Watching};
use ascertain_report::terminal::{self, Style, escape_controls};
use ascertain_report::{csv, json, markdown};
use ascertain_sys::{clock, interrupt};

use super::baseline;
use super::options::{Format, HELP, Options, Task};
use crate::error::{Error, refused};
use crate::request::Request;
use crate::run::{RunContext, carry_out};

/// One function alone has nothing to be compared with: this many observations describe it.
const ALONE_BATCHES: u64 = 100;

/// Measures the groups one after the other and prints what came of each. The first function of a group
/// is the reference. Exit code 0: done; 2: usage; 4: no function passes the filter; 5: a wrong answer;
/// 130: interrupted.
pub fn run<'a>(groups: impl IntoIterator<Item = Group<'a>>) -> ExitCode {
    let seed = clock::unix_ns() % 1_000_000_007;
    let options = match Options::read(std::env::args_os().skip(1), seed) {
        Ok(options) => options,
        Err(error) => return fail(&error, 2),
    };
    if options.task == Task::Help {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let mut names: Vec<String> = Vec::new();
    let wanted = groups.into_iter().filter_map(|mut group| {
        group.rename_if(|name| names.iter().any(|taken| taken == name));
        names.push(group.spec().id.clone());
        let (id, all) = (group.spec().id.clone(), group.table_arms());
        group.retain(|name| options.wants(&id, name));
        if let (Task::Measure, Some(missing)) = (options.task, missing_reference(&all, &group.table_arms())) {
            let reference = escape_controls(&format!("{id}/{missing}"));
            eprintln!("no verdict: `{reference}`, which the others are compared with, was not selected");
        }
        (!group.spec().variants.is_empty()).then_some(group)
    });
    match options.task {
        Task::List => list(wanted),
        Task::Test => test(wanted, &options),
        _ => measure(wanted, &options),
    }
}

/// Functions of a group to be compared, at each input with the first one there; without another there they are
/// described. The time is for each input.
#[must_use]
pub fn plan(group: &Group, config: &Config) -> Plan {
    let id = &group.spec().id;
    let table = Table { experiment: id.clone(), arms: group.table_arms() };
    let versus = table.with_the_first().into_iter();
    let claims: Vec<Claim> = versus.map(|[candidate, reference]| Claim::order(id, candidate, reference)).collect();
    let inputs = u32::try_from(table.arms.len() - claims.len()).unwrap_or(u32::MAX);
    let max_time = config.max_time.saturating_mul(inputs);
    let table_trials = claims.is_empty().then_some(ALONE_BATCHES);
    let config = Config { table_trials, max_time, ..config.clone() };
    Plan { claims, tables: vec![table], commands: Vec::new(), config }
}

/// What a function that is measured alone at its input would be compared with.
fn missing_reference<'a>(all: &'a [Arm], kept: &[Arm]) -> Option<&'a str> {
    let is_alone = |arm: &&Arm| kept.iter().filter(|other| other.point == arm.point).count() == 1;
    let reference = |arm: &Arm| all.iter().find(|other| other.point == arm.point).filter(|first| *first != arm);
    kept.iter().filter(is_alone).find_map(reference).map(|first| first.variant.as_str())
}

fn fail(error: &dyn std::error::Error, code: u8) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(code)
}

/// What a function at an input is called, and filtered by.
fn path(group: &Group, arm: &Arm) -> String {
    format!("{}/{}", escape_controls(&group.spec().id), escape_controls(&arm.to_string()))
}

/// A line a function, as other benches list theirs.
fn list<'a>(groups: impl Iterator<Item = Group<'a>>) -> ExitCode {
    for group in groups {
        for arm in group.table_arms() {
            println!("{}: benchmark", path(&group, &arm));
        }
    }
    ExitCode::SUCCESS
}

fn test<'a>(groups: impl Iterator<Item = Group<'a>>, options: &Options) -> ExitCode {
    let mut all_right = true;
    for group in groups {
        for (arm, is_right) in group.call_each_once() {
            let word = if is_right { "ok" } else { "WRONG ANSWER" };
            println!("{}: {word}", path(&group, &arm));
            all_right &= is_right;
        }
    }
    if !options.is_bench {
        eprintln!("Each function was called once; `cargo bench`, or --bench, measures.");
    }
    ExitCode::from(if all_right { 0 } else { 5 })
}

fn measure<'a>(groups: impl Iterator<Item = Group<'a>>, options: &Options) -> ExitCode {
    if let Err(error) = interrupt::install() {
        return fail(&error, 2);
    }
    let exports = options.exports.iter().map(|(kind, path)| (*kind, path.as_path()));
    let mut bench = match Files::open(exports, Purpose::default()) {
        Ok(files) => Bench::new(options, files),
        Err(error) => return fail(&error, 2),
    };
    let mut stopped = None;
    for group in groups {
        stopped = match bench.measure(&group) {
            // What was measured until then is exported all the same.
            Err(error) => {
                fail(&error, 2);
                Some(2)
            }
            Ok(run) if run.outcome.interrupted => Some(130),
            Ok(run) if run.target_failed => Some(5),
            Ok(_) => continue,
        };
        break;
    }
    let code = stopped.unwrap_or_else(|| {
        bench.end();
        match bench.groups > 0 || options.ignored_only {
            true => 0,
            false => {
                eprintln!("No function passes the filter; --list names them.");
                4
            }
        }
    });
    let unwritten = if code == 130 { 130 } else { 2 };
    bench.exports.finish().map_or_else(|error| fail(&error, unwritten), |()| ExitCode::from(code))
}

struct Bench<'o> {
    options: &'o Options,
    style: Style,
    /// What threatens the results, as the last group's run found it.
    threats: String,
    folders: Vec<PathBuf>,
    groups: usize,
    exports: Files,
}

impl<'o> Bench<'o> {
    fn new(options: &'o Options, exports: Files) -> Self {
        let style = Style::of_stdout(None);
        Bench { options, style, threats: String::new(), folders: Vec::new(), groups: 0, exports }
    }

    /// Measures a group, prints what came of it, and lays it beside its baseline.
    fn measure(&mut self, group: &Group) -> Result<Run, Error> {
        let options = self.options;
        let runs = options.evidence.clone().unwrap_or_else(evidence::runs_folder);
        let id = &group.spec().id;
        let baseline = options.baseline.as_ref().map(|name| (name, baseline::folder(&runs, id, name)));
        if let Some((name, folder)) = &baseline
            && !folder.exists()
        {
            return refused(format!(
                "there is no baseline `{name}` of `{id}` in {}: --save-baseline {name} keeps one",
                runs.display()
            ));
        }
        let mut watching = Watching { line: Line::new(true), files: &mut self.exports, is_quiet: false };
        let evidence = (!options.no_evidence).then(|| runs.clone());
        let context = RunContext { registry: &[group], evidence, ..RunContext::new(&mut watching) };
        let done = carry_out(Request::new("bench"), plan(group, &options.config), context);
        // The line is gone before anything is printed.
        drop(watching);
        let mut run = done?.run;
        self.exports.keep(&run.outcome, &run.observations);
        print!("{}", self.text(group, &run));
        if options.format == Format::Table {
            self.threats = terminal::threats(&run.outcome, &self.style);
        }
        self.groups += 1;
        #[cfg(feature = "recorded")]
        if let (Some((name, baseline)), Some(folder)) = (&baseline, &run.folder) {
            print!("\n{}", baseline::beside(name, [baseline, folder], options.format, &self.style)?);
        }
        match (&options.save_baseline, &mut run.folder) {
            (Some(name), _) if run.outcome.interrupted || run.target_failed => {
                eprintln!("not kept as `{name}`: it was interrupted, or a function failed");
            }
            (Some(name), Some(folder)) => {
                let kept = baseline::folder(&runs, id, name);
                baseline::save(folder, &kept)?;
                *folder = kept;
            }
            (Some(name), None) => {
                return refused(format!("`{id}` is not kept as `{name}`: its evidence could not be written"));
            }
            (None, _) => {}
        }
        self.folders.extend(run.folder.clone());
        Ok(run)
    }

    fn text(&self, group: &Group, run: &Run) -> String {
        let (outcome, is_first) = (&run.outcome, self.groups == 0);
        match self.options.format {
            Format::Json => json::outcome(outcome),
            Format::Markdown => {
                format!("{}{}", if is_first { "" } else { "\n" }, markdown::outcome(outcome, &TableLayout::default()))
            }
            Format::Csv => {
                let text = csv::outcome(outcome);
                // One table has one heading.
                let rows = text.split_once('\n').map_or("", |(_, rows)| rows);
                if is_first { text.clone() } else { rows.to_string() }
            }
            Format::Table => {
                let heading = escape_controls(&group.spec().id);
                let table = terminal::compare_table(outcome, &TableLayout::default(), &self.style);
                let said = terminal::sentences(outcome, &self.style);
                let said = if said.is_empty() { terminal::left_out(outcome, &self.style) } else { said };
                let gap = if said.is_empty() { "" } else { "\n" };
                let text = format!("{}{heading}\n{table}{gap}{said}", if is_first { "" } else { "\n" });
                Alphabet::of_environment().shown(&text).into_owned()
            }
        }
    }

    /// Prints what is said once: threats, where the evidence is, and what to do with it.
    fn end(&self) {
        if !self.threats.is_empty() {
            print!("\n{}", self.threats);
        }
        for folder in &self.folders {
            eprintln!("evidence: {}", folder.display());
        }
        if let Some(last) = self.folders.last() {
            eprintln!("`ascertain report {}` makes an HTML report of it", last.display());
        }
    }
}
