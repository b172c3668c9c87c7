//! What a bench does from its command line to its exit code: it measures group by group, and prints what came of each.

use std::path::PathBuf;
use std::process::ExitCode;

use ascertain_engine::claim::Claim;
use ascertain_engine::evidence;
use ascertain_engine::experiment::{Arm, Experiment};
use ascertain_engine::function::Group;
use ascertain_engine::outcome::Outcome;
use ascertain_engine::plan::{Config, Plan, Table};
use ascertain_engine::run::Run;
use ascertain_report::allocations;
use ascertain_report::alphabet::Alphabet;
use ascertain_report::exports::{Files, Purpose};
use ascertain_report::fastest;
use ascertain_report::figure::odds;
use ascertain_report::layout::TableLayout;
use ascertain_report::progress::{Line, Watching};
use ascertain_report::terminal::{self, Style, escape_controls};
use ascertain_report::{csv, json, markdown};
use ascertain_sys::{clock, interrupt};

use super::baseline;
use super::options::{Format, HELP, Options, Task};
use crate::error::{Error, refused};
use crate::names;
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
    let wanted = match wanted(groups, &options) {
        Ok(wanted) => wanted.into_iter(),
        Err(error) => return fail(&error, 2),
    };
    match options.task {
        Task::List => list(wanted),
        Task::Test => test(wanted, &options),
        _ => measure(wanted, &options),
    }
}

/// The groups with the functions that the options select, and with the reference that they choose.
fn wanted<'a>(groups: impl IntoIterator<Item = Group<'a>>, options: &Options) -> Result<Vec<Group<'a>>, Error> {
    let mut wanted: Vec<Group> = Vec::new();
    let (mut names, mut functions) = (Vec::<String>::new(), Vec::<String>::new());
    let mut is_reference_known = false;
    for mut group in groups {
        group.rename_if(|name| names.iter().any(|taken| taken == name));
        let id = group.spec().id.clone();
        names.push(id.clone());
        functions.extend(group.spec().variants.iter().map(|variant| variant.name.clone()));
        is_reference_known |= options.reference.as_ref().is_some_and(|reference| group.put_first(reference));
        let all = group.table_arms();
        group.retain(|name| options.wants(&id, name));
        let missing = missing_reference(&all, &group.table_arms()).filter(|_| options.task == Task::Measure);
        if let Some(reference) = missing.filter(|_| !options.all_pairs) {
            let name = format!("{id}/{reference}");
            return refused(format!(
                "the filters leave out `{}`, the reference of its group: add it to the filters, or choose another with \
                 --reference NAME",
                escape_controls(&name)
            ));
        }
        if !group.spec().variants.is_empty() {
            wanted.push(group);
        }
    }
    match &options.reference {
        Some(reference) if !is_reference_known => {
            functions.sort();
            functions.dedup();
            let known = names::among(reference, functions.iter().map(String::as_str));
            refused(format!("--reference: there is no function `{reference}`{known}"))
        }
        _ => Ok(wanted),
    }
}

/// Which functions of a group are compared at each input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairs {
    /// Each with the first, which is the reference.
    #[default]
    WithTheFirst,
    /// Each with every other.
    All,
}

/// The plan that compares the functions of a group: at each input with the first one there, or each with every other.
/// A function that is alone at its input is only described. `max_time` is per input. `precision_time` is per function,
/// and in sum at most half of the total time, so that answers come first.
#[must_use]
pub fn plan(group: &Group, pairs: Pairs, config: &Config) -> Plan {
    let id = &group.spec().id;
    let table = Table { experiment: id.clone(), arms: group.table_arms() };
    let order = |[candidate, reference]: [&Arm; 2]| Claim::order(id, candidate, reference);
    let mut claims: Vec<Claim> = table.with_the_first().into_iter().map(order).collect();
    let inputs = u32::try_from(table.arms.len() - claims.len()).unwrap_or(u32::MAX);
    if pairs == Pairs::All {
        claims.extend(pairs_without_the_first(&table).into_iter().map(|[candidate, reference]| Claim {
            // The candidate alone is the name of its comparison with the first.
            id: format!("{candidate} against {reference}"),
            ..order([candidate, reference])
        }));
    }
    let max_time = config.max_time.saturating_mul(inputs);
    let is_alone = |arm: &Arm| table.arms.iter().filter(|other| other.point == arm.point).count() == 1;
    let table_trials = table.arms.iter().any(is_alone).then_some(ALONE_BATCHES);
    let functions = u32::try_from(table.arms.len()).unwrap_or(u32::MAX);
    let precision_time = config.precision_time.map(|of_each| of_each.saturating_mul(functions).min(max_time / 2));
    let config = Config { table_trials, max_time, precision_time, ..config.clone() };
    Plan { claims, tables: vec![table], commands: Vec::new(), config }
}

/// At each input, each function behind the first with each of those between.
fn pairs_without_the_first(table: &Table) -> Vec<[&Arm; 2]> {
    let others: Vec<&Arm> = table.with_the_first().into_iter().map(|[other, _]| other).collect();
    let with_those_before = |(index, candidate): (usize, &&'_ Arm)| {
        let before = others[..index].iter().filter(|before| before.point == candidate.point);
        before.map(|before| [others[index], *before]).collect::<Vec<_>>()
    };
    others.iter().enumerate().flat_map(with_those_before).collect()
}

/// The reference at an input of which the filters keep other functions alone.
fn missing_reference<'a>(all: &'a [Arm], kept: &[Arm]) -> Option<&'a Arm> {
    let reference = |arm: &Arm| all.iter().find(|other| other.point == arm.point);
    kept.iter().filter_map(reference).find(|reference| !kept.contains(reference))
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
        let plan = plan(group, options.pairs(), &options.config);
        let done = carry_out(Request::new("bench"), plan, context);
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
                let fastest = fastest::sentences(outcome).into_iter().chain(self.shared_error(outcome));
                let fastest = fastest.chain(allocations::uneven(outcome));
                let summary = fastest.map(|sentence| self.style.paragraph(&sentence)).collect::<String>();
                let said = [summary, said].into_iter().filter(|part| !part.is_empty());
                let said = said.map(|part| format!("\n{part}")).collect::<String>();
                let text = format!("{}{heading}\n{table}{said}", if is_first { "" } else { "\n" });
                Alphabet::of_environment().shown(&text).into_owned()
            }
        }
    }

    /// A sentence on how the pairs of a group share its error, if every pair is compared.
    fn shared_error(&self, outcome: &Outcome) -> Option<String> {
        let (pairs, error) = (outcome.claims.len(), self.options.config.error);
        let each = odds(error / pairs as f64);
        (self.options.all_pairs && pairs > 1)
            .then(|| format!("{pairs} pairs share the error of {error}. Each answer: error at most {each}."))
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
