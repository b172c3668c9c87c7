//! The main function of a bench, from parsing the command line to the exit code. Measures one group after another, and
//! prints the results of each.

use std::path::PathBuf;
use std::process::ExitCode;

use ascertain_engine::claim::Claim;
use ascertain_engine::evidence;
use ascertain_engine::experiment::{Arm, Experiment};
use ascertain_engine::function::Group;
use ascertain_engine::outcome::Outcome;
use ascertain_engine::plan::{Config, Plan, Table, UseCase};
use ascertain_engine::result::{Ending, RunResult};
use ascertain_report::allocations;
use ascertain_report::alphabet::Alphabet;
use ascertain_report::exports::Files;
use ascertain_report::fastest;
use ascertain_report::figure::error_in_words;
use ascertain_report::options::{Format, TableLayout};
use ascertain_report::progress::{Line, LivePicture, ProgressObserver};
use ascertain_report::terminal::{self, Style, escape_controls};
use ascertain_report::{csv, json, markdown};
use ascertain_sys::{clock, interrupt};

use super::baseline;
use super::options::{HELP, Options, Task};
use crate::error::{Error, refused};
use crate::names;

use crate::run::{self, Request, RunContext};

/// Number of batches to measure for a function that is the only one at its input. It is not compared with any other
/// function.
const ALONE_BATCHES: u64 = 100;

/// Measures the groups one after another, and prints the results of each. The first function of a group is its
/// reference. Exit codes: 0 for success, 2 for wrong usage, 4 if the filters match no function, 5 for a wrong answer,
/// 130 if interrupted.
pub fn run<'a>(groups: impl IntoIterator<Item = Group<'a>>) -> ExitCode {
    execute(groups).unwrap_or_else(|error| fail(&*error, 2)).into()
}

fn execute<'a>(groups: impl IntoIterator<Item = Group<'a>>) -> Result<u8, Box<dyn std::error::Error>> {
    let seed = clock::unix_ns() % 1_000_000_007;
    let options = Options::read(std::env::args_os().skip(1), seed)?;
    if options.task == Task::Help {
        print!("{HELP}");
        return Ok(0);
    }
    let wanted = wanted(groups, &options)?.into_iter();
    match options.task {
        Task::List => Ok(list(wanted)),
        Task::Test => Ok(test(wanted, &options)),
        _ => measure(wanted, &options),
    }
}

/// Reduces each group to the functions that the options select, and drops groups that are then empty. A function that
/// `--reference` names becomes the reference of its group.
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
                "the filters leave out `{}`, the reference of its group; add it to the filters, or choose another with \
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

/// Selects which functions of a group are compared with each other, at each input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairs {
    /// Compares each function with the reference, the first function at the same input.
    #[default]
    WithTheFirst,
    /// Compares each function with all other functions at its input.
    All,
}

/// Returns the plan that compares the functions of a group at each input. A function that is the only one at its input
/// is measured, but not compared.
///
/// `config` limits the time per input (`max_time`), and the time per function for reaching the precision
/// (`precision_time`). The limits in the plan are for the whole group: `max_time` is multiplied by the number of
/// inputs, and `precision_time` by the number of functions. The resulting `precision_time` is at most half of the
/// resulting `max_time`, so that time remains for verdicts.
#[must_use]
pub fn plan(group: &Group, pairs: Pairs, config: &Config) -> Plan {
    let id = &group.spec().id;
    let table = Table { experiment: id.clone(), arms: group.table_arms() };
    let order = |[candidate, reference]: [&Arm; 2]| Claim::order(id, &group.spec().metrics[0], candidate, reference);
    let mut claims: Vec<Claim> = table.with_the_first().into_iter().map(order).collect();
    let inputs = u32::try_from(table.arms.len() - claims.len()).unwrap_or(u32::MAX);
    if pairs == Pairs::All {
        claims.extend(pairs_without_the_first(&table).into_iter().map(|[candidate, reference]| Claim {
            // The plain id of the candidate is already the id of its comparison with the first function.
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
    Plan { use_case: UseCase::Bench, claims, tables: vec![table], commands: Vec::new(), config, windows: None }
}

/// Returns all pairs of functions at the same input, except the pairs with the reference (the first function).
/// [`Pairs::All`] compares them in addition to the pairs with the reference.
fn pairs_without_the_first(table: &Table) -> Vec<[&Arm; 2]> {
    let others: Vec<&Arm> = table.with_the_first().into_iter().map(|[other, _]| other).collect();
    let with_those_before = |(index, candidate): (usize, &&'_ Arm)| {
        let before = others[..index].iter().filter(|before| before.point == candidate.point);
        before.map(|before| [others[index], *before]).collect::<Vec<_>>()
    };
    others.iter().enumerate().flat_map(with_those_before).collect()
}

/// If the filters keep a function but not the reference at its input, returns this reference; otherwise `None`. `all`
/// has all functions of the group, and `kept` has the functions that the filters keep.
fn missing_reference<'a>(all: &'a [Arm], kept: &[Arm]) -> Option<&'a Arm> {
    let reference = |arm: &Arm| all.iter().find(|other| other.point == arm.point);
    kept.iter().filter_map(reference).find(|reference| !kept.contains(reference))
}

fn fail(error: &dyn std::error::Error, code: u8) -> u8 {
    eprintln!("error: {error}");
    code
}

/// Returns the name of a function with its group and input: `GROUP/FUNCTION (INPUT)`. Filters and lists use this name.
fn path(group: &Group, arm: &Arm) -> String {
    format!("{}/{}", escape_controls(&group.spec().id), escape_controls(&arm.to_string()))
}

/// Prints one function per line, in the format that Rust's test programs use for `--list`. Returns the exit code.
fn list<'a>(groups: impl Iterator<Item = Group<'a>>) -> u8 {
    for group in groups {
        for arm in group.table_arms() {
            println!("{}: benchmark", path(&group, &arm));
        }
    }
    0
}

fn test<'a>(groups: impl Iterator<Item = Group<'a>>, options: &Options) -> u8 {
    let mut all_right = true;
    for group in groups {
        for (arm, is_right) in group.call_each_once() {
            let word = if is_right { "ok" } else { "WRONG ANSWER" };
            println!("{}: {word}", path(&group, &arm));
            all_right &= is_right;
        }
    }
    if !options.is_bench {
        eprintln!("each function was called once; use `cargo bench`, or --bench, to measure");
    }
    if all_right { 0 } else { 5 }
}

fn measure<'a>(groups: impl Iterator<Item = Group<'a>>, options: &Options) -> Result<u8, Box<dyn std::error::Error>> {
    interrupt::install()?;
    let exports = options.exports.iter().map(|(kind, path)| (*kind, path.as_path()));
    let exports = Files::open(exports, TableLayout::default())?;
    let style = Style::of_stdout(None);
    let mut bench = Bench { options, style, threats: String::new(), folders: Vec::new(), groups: 0, exports };
    // After an error, the values that were already measured are exported too.
    let code = bench.measure_all(groups).unwrap_or_else(|error| fail(&error, 2));
    let unwritten = if code == 130 { 130 } else { 2 };
    Ok(bench.exports.finish().map_or_else(|error| fail(&error, unwritten), |()| code))
}

struct Bench<'o> {
    options: &'o Options,
    style: Style,
    /// The threats to the validity of the results, as text. They come from the run of the group that was measured last.
    threats: String,
    folders: Vec<PathBuf>,
    groups: usize,
    exports: Files,
}

impl Bench<'_> {
    /// Measures all groups, but stops if one is interrupted or gives a wrong answer. Returns the exit code.
    fn measure_all<'a>(&mut self, groups: impl Iterator<Item = Group<'a>>) -> Result<u8, Error> {
        for group in groups {
            match self.measure(&group)? {
                Ending::Interrupted => return Ok(130),
                Ending::TargetFailed => return Ok(5),
                _ => {}
            }
        }
        self.end();
        if self.groups > 0 || self.options.ignored_only {
            return Ok(0);
        }
        eprintln!("no function passes the filter; use --list to list all functions");
        Ok(4)
    }

    /// Measures a group, and prints its results. If the user requests it, also compares the results with a baseline,
    /// and saves them as a baseline.
    fn measure(&mut self, group: &Group) -> Result<Ending, Error> {
        let options = self.options;
        let runs = options.evidence.clone().unwrap_or_else(evidence::runs_folder);
        let id = &group.spec().id;
        let baseline = options.baseline.as_ref().map(|name| (name, baseline::folder(&runs, id, name)));
        if let Some((name, folder)) = &baseline
            && !folder.exists()
        {
            return refused(format!(
                "there is no baseline `{name}` of `{id}` in {}; create one with --save-baseline {name}",
                runs.display()
            ));
        }
        let (line, evidence_options) = (Line::new(true), " (--evidence DIR, --no-evidence)");
        let mut watching = ProgressObserver {
            line,
            files: &mut self.exports,
            is_quiet: false,
            evidence_options,
            picture: LivePicture::default(),
        };
        let evidence = (!options.no_evidence).then(|| runs.clone());
        let context = RunContext { registry: &[group], evidence, ..RunContext::new(&mut watching) };
        let plan = plan(group, options.pairs(), &options.config);
        let result = run::run(Request::Bench(plan), context);
        // Erases the progress line, before anything else is printed.
        drop(watching);
        let mut run = result?;
        self.exports.keep(&run.plan, &run.outcome, &run.observations);
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
                eprintln!("not saved as baseline `{name}`: the run was interrupted, or a function failed");
            }
            (Some(name), Some(folder)) => {
                let kept = baseline::folder(&runs, id, name);
                baseline::save(folder, &kept)?;
                *folder = kept;
            }
            (Some(name), None) => {
                return refused(format!("`{id}` is not saved as baseline `{name}`: its evidence could not be written"));
            }
            (None, _) => {}
        }
        let ending = run.ending();
        self.folders.extend(run.folder);
        Ok(ending)
    }

    fn text(&self, group: &Group, run: &RunResult) -> String {
        let (outcome, is_first) = (&run.outcome, self.groups == 0);
        match self.options.format {
            Format::Json => json::outcome(outcome),
            Format::Markdown => {
                format!("{}{}", if is_first { "" } else { "\n" }, markdown::outcome(outcome, &TableLayout::default()))
            }
            Format::Csv => {
                let text = csv::outcome(outcome);
                // Print the heading of the CSV table only once, above the rows of all groups.
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
                Alphabet::from_environment().shown(&text).into_owned()
            }
        }
    }

    /// If all functions are compared with each other, returns a sentence on the error probability of each pair;
    /// otherwise `None`.
    fn shared_error(&self, outcome: &Outcome) -> Option<String> {
        let (pairs, error) = (outcome.claims.len(), self.options.config.error);
        let [shared, each] = [error, error / pairs as f64].map(error_in_words);
        (self.options.all_pairs && pairs > 1).then(|| {
            format!("The error probability of {shared} is divided among {pairs} pairs: at most {each} for each answer.")
        })
    }

    /// Prints the last part of the output: the threats to validity, the folders of the evidence, and the command that
    /// makes a report.
    fn end(&self) {
        if !self.threats.is_empty() {
            print!("\n{}", self.threats);
        }
        for folder in &self.folders {
            eprintln!("evidence: {}", folder.display());
        }
        if let Some(last) = self.folders.last() {
            eprintln!("to make an HTML report, run `ascertain report {}`", last.display());
        }
    }
}
