//! `ascertain run`.

use std::collections::BTreeSet;
use std::slice;

use anyhow::{anyhow, bail};
use ascertain::experiments::Experiments;
pub use ascertain::experiments::USE_CASE;
use ascertain::names::among;
use ascertain::{Done, Ending, GatedVerdict, Request};
use ascertain_engine::claim::Claim;
use ascertain_engine::experiment::{Accepts, Arm, Experiment, Factor, Level, Point};
use ascertain_engine::memory::{self, Shortage};
use ascertain_engine::outcome::Outcome;
use ascertain_engine::plan::Table;
use ascertain_engine::recorded;
use ascertain_report::html;
use ascertain_report::pictures::PictureKind;
use ascertain_report::terminal::{self, Shown, Style};
use ascertain_sys::machine::{self, Machine};

use super::report;
use crate::exit::{FAIL_ON, fail_on};
use crate::options::{Common, Display, count, one_of, with_default};
use crate::output;
use crate::session::{self, Printed};

/// Enough for medians with narrow intervals on a noisy machine.
const TABLE_TRIALS: u64 = 100;

const EXAMPLES: &str = "\
Examples:
  ascertain run sum
      Measure an experiment and judge the shipped claims about it
  ascertain run sum --at elements=1Ki,64Ki --variants naive,kahan
      Measure two of its variants at two sizes";

/// Run experiments: their tables, and the shipped claims about them
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("max_time", |arg| with_default(arg, "45 s for each experiment")))]
pub struct Args {
    /// The experiments; `ascertain list` names them
    #[arg(required = true, value_name = "EXPERIMENT")]
    experiments: Vec<String>,
    /// Levels to measure at instead of the defaults: `elements=1Ki,64Ki`; claims about other levels are not judged.
    /// What is given of one factor several times is taken together; of one that takes a list, commas stand within a
    /// level. A size that takes more than half of the memory is an error
    #[arg(long, value_name = "FACTOR=LEVELS")]
    at: Vec<String>,
    /// Only these variants; claims that need others are not judged
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    variants: Vec<String>,
    /// Trials of each table [default: 100, and 1 of what happens once]
    #[arg(short, long, value_name = "N", value_parser = count, help_heading = "Judging")]
    trials: Option<u64>,
    /// Do not judge the shipped claims
    #[arg(long, help_heading = "Judging")]
    no_claims: bool,
    /// Print whole tables, each verdict as a sentence, however many there are, and a table of all claims
    #[arg(long, help_heading = "Output")]
    all: bool,
    /// Verdicts that fail: refuted (exit code 1), undecided (3), nothing
    #[arg(long, value_parser = one_of(FAIL_ON), value_delimiter = ',', default_value = "nothing",
          help_heading = "Judging")]
    fail_on: Vec<Option<GatedVerdict>>,
    #[command(flatten)]
    common: Common,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let chosen = args.experiments.iter().map(|id| find(id)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut tables = chosen.iter().map(|experiment| table(*experiment, args)).collect::<anyhow::Result<Vec<_>>>()?;
    check_names(&chosen, args)?;
    let machine = machine::describe();
    check_sizes(&chosen, &tables, args, &machine)?;
    let happen_once = all_happen_once(&chosen, &tables, &machine);
    let mut claims = ascertain_experiments::shipped_claims()?.claims;
    claims.retain(|claim| !args.no_claims && args.experiments.contains(&claim.experiment));
    // What an experiment leaves out by itself is not what this run is about.
    claims.retain(|claim| !args.variants.is_empty() || tables.iter().all(|table| has_variants(table, claim)));
    let mut said = args.leave_out(&mut tables, &mut claims);
    if !args.no_claims {
        for Table { experiment, arms } in &tables {
            claims.extend(told_apart(find(experiment)?.claims_about(arms)));
        }
    }
    said.extend(beyond(&tables, &claims));
    if !args.common.display.quiet {
        said.iter().for_each(|sentence| output::note(sentence));
    }
    let experiments = Experiments {
        tables,
        trials: args.trials.unwrap_or(if happen_once { 1 } else { TABLE_TRIALS }),
        claims,
        fail_on: fail_on(&args.fail_on),
        terms: session::terms(&args.common),
    };
    let (request, plan) = experiments.plan(args.experiments.len());
    let shown = Shown { all: args.all, ..Shown::default() };
    session::carry_out((Request { shown, ..request }, plan), &args.common)
}

/// The tables of what was asked for, and the claims.
pub fn print(done: &Done, display: &Display) -> anyhow::Result<()> {
    session::print(done, display, &Printed { asks_verdicts: false, has_report: true }, |outcome, style| {
        let report = done.run.folder.as_deref().map(report::command);
        let claims = match outcome.claims.is_empty() {
            true => terminal::threats(outcome, style),
            false => terminal::checked(outcome, &done.request.shown, report.as_deref(), style),
        };
        let table = if done.request.shown.all { terminal::points_table } else { terminal::points_screen };
        output::parts(&[table(outcome, style), curves(done, outcome, style), claims])
    })
}

/// Curves of one arm of what is not emulated, in characters: nobody may see it again, and it is not many of them.
fn curves(done: &Done, outcome: &Outcome, style: &Style) -> String {
    let mut seen = outcome.points.iter().filter(|point| point.n > 0).peekable();
    let Some(&first) = seen.peek() else { return String::new() };
    let arm = Arm { variant: first.variant.clone(), point: first.at.clone() };
    let is_alone = seen.all(|point| point.is_of(&first.experiment, &arm)) && is_real(&first.experiment, &arm);
    let Some(folder) = done.run.folder.as_deref().filter(|_| is_alone) else {
        return String::new();
    };
    // Without evidence there is nothing to be drawn: figures are not worth less for that.
    let pictures = recorded::read(folder).map_or_else(|_| Vec::new(), |run| html::pictures(&[run]));
    let curves = pictures.iter().filter(|picture| picture.kind == PictureKind::Curve);
    output::parts(&curves.map(|picture| output::plot(&picture.plot, style)).collect::<Vec<_>>())
}

/// Whether an arm of an experiment that emulates something else is of that thing itself.
fn is_real(experiment: &str, arm: &Arm) -> bool {
    let spec = find(experiment).map(|experiment| experiment.spec());
    spec.is_ok_and(|spec| spec.emulates.is_some() && spec.emulated(arm).is_none())
}

impl Args {
    /// What a run of the first version was asked for beside its plan.
    pub fn without_plan(&self) -> Request {
        Request { fail_on: fail_on(&self.fail_on), ..Request::new(USE_CASE) }
    }

    /// Takes away what has none of the variants that are asked for, and the claims that need others or are about other
    /// levels; and says so.
    fn leave_out(&self, tables: &mut Vec<Table>, claims: &mut Vec<Claim>) -> Vec<String> {
        let mut sentences = Vec::new();
        if !self.at.is_empty() {
            let all = claims.len();
            claims.retain(|claim| tables.iter().all(|table| is_within(claim, table, &self.at)));
            sentences.extend(not_judged(
                all - claims.len(),
                ["it is about", "they are about"],
                "other levels than those of --at",
            ));
        }
        if self.variants.is_empty() {
            return sentences;
        }
        let without = tables.iter().filter(|table| table.arms.is_empty()).map(|table| {
            let names: Vec<String> = self.variants.iter().map(|name| format!("`{name}`")).collect();
            format!("`{}` is not measured: it has no variant {}", table.experiment, names.join(", "))
        });
        sentences.extend(without);
        tables.retain(|table| !table.arms.is_empty());
        let all = claims.len();
        claims.retain(|claim| claim.arms().iter().all(|arm| self.variants.contains(&arm.variant)));
        let others = "variants that --variants leaves out";
        sentences.extend(not_judged(all - claims.len(), ["it needs", "they need"], others));
        sentences
    }
}

/// "2 claims not judged: they need variants that --variants leaves out".
fn not_judged(count: usize, [it, they]: [&str; 2], what: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 claim not judged: {it} {what}")),
        n => Some(format!("{n} claims not judged: {they} {what}")),
    }
}

/// Whether a table has all variants that a claim speaks of, if they are of one experiment.
fn has_variants(table: &Table, claim: &Claim) -> bool {
    let has = |of_claim: &Arm| table.arms.iter().any(|arm| arm.variant == of_claim.variant);
    claim.experiment != table.experiment || claim.arms().into_iter().all(has)
}

/// Whether all of a claim's arms are at levels that the table of its experiment has, of the factors that are asked for.
fn is_within(claim: &Claim, table: &Table, at: &[String]) -> bool {
    let asked = at.iter().filter_map(|at| Some(at.split_once('=')?.0));
    let has = |factor: &str, arm: &Arm| {
        let level = arm.point.get(factor);
        level.is_none() || table.arms.iter().any(|of_table| of_table.point.get(factor) == level)
    };
    let is_at = |factor| claim.arms().iter().all(|arm| has(factor, arm));
    claim.experiment != table.experiment || asked.into_iter().all(is_at)
}

/// Claims of one id about several arms have the levels in it by which these differ: `id[idle_ms=100]`.
fn told_apart(mut claims: Vec<Claim>) -> Vec<Claim> {
    let firsts: Vec<(String, Point)> =
        claims.iter().filter_map(|claim| Some((claim.id.clone(), claim.arms().first()?.point.clone()))).collect();
    for (claim, (id, point)) in claims.iter_mut().zip(&firsts) {
        let others = || firsts.iter().filter(|(other, _)| other == id);
        let differs = |factor: &String, level: &Level| others().any(|(_, other)| other.get(factor) != Some(level));
        let own = point.only(differs);
        if !own.0.is_empty() {
            claim.id = format!("{id}[{own}]");
        }
    }
    claims
}

/// What the claims add to the tables that were asked for.
fn beyond(tables: &[Table], claims: &[Claim]) -> Option<String> {
    let of_table = |claim: &Claim, arm: &Arm| {
        tables.iter().any(|table| table.experiment == claim.experiment && table.arms.contains(arm))
    };
    let adds = |claim: &&Claim| claim.arms().iter().any(|arm| !of_table(claim, arm));
    let of = match (claims.iter().filter(adds).count(), claims.len()) {
        (0, _) => return None,
        (1, 1) => "the claim needs".to_string(),
        (1, all) => format!("1 of {all} claims needs"),
        (count, all) => format!("{count} of {all} claims need"),
    };
    Some(format!("{of} levels that are not in the table and are measured too; --no-claims leaves them out"))
}

/// The experiment with this id.
pub fn find(id: &str) -> anyhow::Result<&'static dyn Experiment> {
    let all = ascertain_experiments::registry();
    if let Some(found) = all.iter().find(|experiment| experiment.spec().id == id) {
        return Ok(*found);
    }
    let known: Vec<&str> = all.iter().map(|experiment| experiment.spec().id.as_str()).collect();
    bail!("there is no experiment `{id}`{}", among(id, known))
}

/// The experiment's own arms, or those at the levels that were asked for: each once, though levels that are not its
/// own made several of them alike.
fn table(experiment: &dyn Experiment, args: &Args) -> anyhow::Result<Table> {
    let spec = experiment.spec();
    let mut arms = experiment.table_arms();
    let mut asked: Vec<(&Factor, Vec<Level>)> = Vec::new();
    for at in &args.at {
        let Some((name, levels)) = at.split_once('=') else { bail!("--at {at}: write FACTOR=LEVEL,LEVEL") };
        let Some(factor) = spec.factors.iter().find(|factor| factor.name == name) else { continue };
        // In what is a list itself a comma is a part of it.
        let levels: Vec<&str> =
            if factor.accepts == Accepts::List { vec![levels] } else { levels.split(',').collect() };
        let levels = levels.into_iter().map(|text| settled(experiment, factor, text, args.common.display.quiet));
        let levels = levels.collect::<anyhow::Result<Vec<_>>>()?;
        match asked.iter_mut().find(|(earlier, _)| earlier.name == name) {
            Some((_, earlier)) => earlier.extend(levels),
            None => asked.push((factor, levels)),
        }
    }
    // Of a variant's own arms those that have no use for what is asked for are not meant, where others of it have.
    for (Factor { name, .. }, levels) in &asked {
        let has_use = |arm: &Arm| {
            let at = |level: &Level| Arm { point: arm.point.clone().with(name, level.clone()), ..arm.clone() };
            levels.iter().any(|level| experiment.has(&at(level), name))
        };
        let with_use: BTreeSet<String> =
            arms.iter().filter(|arm| has_use(arm)).map(|arm| arm.variant.clone()).collect();
        arms.retain(|arm| has_use(arm) || !with_use.contains(&arm.variant));
    }
    for (factor, levels) in &asked {
        arms = widen(&arms, &factor.name, levels);
    }
    arms.iter_mut().for_each(|arm| *arm = experiment.trimmed(arm));
    let is_in_none = |factor: &Factor| arms.iter().all(|arm| arm.point.get(&factor.name).is_none());
    if let Some((Factor { name, .. }, _)) = asked.iter().find(|(factor, _)| is_in_none(factor)) {
        bail!("--at {name}: `{}` has no use for it beside the other levels", spec.id);
    }
    let mut seen = BTreeSet::new();
    arms.retain(|arm| seen.insert(arm.clone()));
    arms.retain(|arm| args.variants.is_empty() || args.variants.contains(&arm.variant));
    arms = experiment.chosen(arms, !args.variants.is_empty()).map_err(|why| anyhow!("{}: {why}", spec.id))?;
    Ok(Table { experiment: spec.id.clone(), arms })
}

/// The level that an experiment makes of what was asked for, which is said where it is another.
fn settled(experiment: &dyn Experiment, factor: &Factor, text: &str, is_quiet: bool) -> anyhow::Result<Level> {
    let asked = level(factor, text)?;
    let settled = experiment.settled(&factor.name, asked.clone());
    let settled = settled.map_err(|why| match &factor.accepts {
        // A comma may have cut a secret in two.
        Accepts::Address { .. } => anyhow!("--at {}: {why}", factor.name),
        _ => anyhow!("--at {}={text}: {why}", factor.name),
    })?;
    if settled != asked && !is_quiet {
        output::note(&format!("--at {}={text} is {settled}", factor.name));
    }
    Ok(settled)
}

fn widen(arms: &[Arm], factor: &str, levels: &[Level]) -> Vec<Arm> {
    let of_arm = |level: &Level, arm: &Arm| Arm { point: arm.point.clone().with(factor, level.clone()), ..arm.clone() };
    arms.iter().flat_map(|arm| levels.iter().map(|level| of_arm(level, arm))).collect()
}

fn level(factor: &Factor, text: &str) -> anyhow::Result<Level> {
    let level = Level::parse(text);
    let Factor { name, accepts, .. } = factor;
    match accepts {
        accepts if accepts.admits(&level) => Ok(level),
        Accepts::OneOf(_) => bail!("--at {name}={text}: it takes one of {accepts}"),
        // What is refused may have a secret in it, which nobody repeats.
        Accepts::Address { .. } => bail!("--at {name}: it takes {accepts}"),
        _ => {
            let suffixes = "1k, 1M and 1G are powers of 1,000, and 1Ki, 1Mi and 1Gi powers of 1,024";
            bail!("--at {name}={text}: it takes {accepts}; {suffixes}")
        }
    }
}

/// The arms, each with its experiment.
fn arms_of<'a>(
    chosen: &'a [&dyn Experiment],
    tables: &'a [Table],
) -> impl Iterator<Item = (&'a dyn Experiment, &'a Arm)> {
    chosen.iter().zip(tables).flat_map(|(experiment, table)| table.arms.iter().map(move |arm| (*experiment, arm)))
}

/// A size that does not fit in memory is a mistake too, where it was asked for.
fn check_sizes(chosen: &[&dyn Experiment], tables: &[Table], args: &Args, machine: &Machine) -> anyhow::Result<()> {
    let given: Vec<&str> = args.at.iter().filter_map(|at| Some(at.split_once('=')?.0)).collect();
    arms_of(chosen, tables).try_for_each(|(experiment, arm)| check_size(experiment, arm, &given, machine))
}

/// Whether there is nothing that this machine can measure again and again. What can be is asked only of experiments
/// with something that happens once: to find out may take a while.
fn all_happen_once(chosen: &[&dyn Experiment], tables: &[Table], machine: &Machine) -> bool {
    let is_available = |(experiment, arm): (&dyn Experiment, &Arm)| experiment.available(arm, machine).is_ok();
    let (once, again): (Vec<_>, Vec<_>) =
        arms_of(chosen, tables).partition(|(experiment, arm)| experiment.happens_once(arm));
    once.into_iter().any(is_available) && !again.into_iter().any(is_available)
}

/// Refuses an arm that the levels in `given`, which are factors' names, make too large for the machine.
fn check_size(experiment: &dyn Experiment, arm: &Arm, given: &[&str], machine: &Machine) -> anyhow::Result<()> {
    let sizes = Sizes { experiment, arm, machine };
    let Err(shortage) = sizes.fits(arm) else { return Ok(()) };
    // Not what was asked for, but what the experiment does anyway: this machine lacks the memory for it.
    let Some((factor, level)) = sizes.too_large(given) else { return Ok(()) };
    let name = &factor.name;
    let way_out = match sizes.largest(factor) {
        Some(largest) => format!("the largest that fits is {name}={largest}"),
        None if sizes.fits(&sizes.with(factor, factor.default.clone())).is_ok() => {
            format!("{name}={} fits", factor.default)
        }
        None => "take less of everything that --at names".into(),
    };
    bail!("--at {name}={level}: `{}` at {} {shortage}; {way_out}", experiment.spec().id, arm.point)
}

struct Sizes<'a> {
    experiment: &'a dyn Experiment,
    arm: &'a Arm,
    machine: &'a Machine,
}

impl<'a> Sizes<'a> {
    fn bytes(&self, arm: &Arm) -> u64 {
        self.experiment.memory_bytes(slice::from_ref(arm))
    }

    fn fits(&self, arm: &Arm) -> Result<(), Shortage> {
        memory::has_room(self.bytes(arm), self.machine)
    }

    fn with(&self, factor: &Factor, level: impl Into<Level>) -> Arm {
        Arm { point: self.arm.point.clone().with(&factor.name, level), ..self.arm.clone() }
    }

    /// The factor that was given and would be smaller by default; of several, the one that would need the least then.
    fn too_large(&self, given: &[&str]) -> Option<(&'a Factor, &'a Level)> {
        let factors = self.experiment.spec().factors.iter().filter(|factor| given.contains(&factor.name.as_str()));
        let by_default = factors.map(|factor| (self.bytes(&self.with(factor, factor.default.clone())), factor));
        let smaller = by_default.filter(|(bytes, _)| *bytes < self.bytes(self.arm));
        let (_, factor) = smaller.min_by_key(|(bytes, _)| *bytes)?;
        Some((factor, self.arm.point.get(&factor.name)?))
    }

    /// The largest whole number that fits.
    fn largest(&self, factor: &Factor) -> Option<u64> {
        let Accepts::Integers { min, max } = factor.accepts else { return None };
        let fits = |level: u64| self.fits(&self.with(factor, level)).is_ok();
        let (mut fitting, mut too_large) = (min, max);
        while fitting + 1 < too_large {
            let middle = fitting + (too_large - fitting) / 2;
            *if fits(middle) { &mut fitting } else { &mut too_large } = middle;
        }
        fits(fitting).then_some(fitting)
    }
}

/// A factor or variant that none of the experiments has is a mistake.
fn check_names(chosen: &[&dyn Experiment], args: &Args) -> anyhow::Result<()> {
    let factors: Vec<&str> = chosen.iter().flat_map(|e| e.spec().factors.iter().map(|f| f.name.as_str())).collect();
    let variants: Vec<&str> = chosen.iter().flat_map(|e| e.spec().variants.iter().map(|v| v.name.as_str())).collect();
    let names = args.at.iter().map(|at| ("factor", at.split('=').next().unwrap_or_default(), &factors));
    let variant_names = args.variants.iter().map(|name| ("variant", name.as_str(), &variants));
    for (kind, name, known) in names.chain(variant_names) {
        if !known.contains(&name) {
            bail!("there is no {kind} `{name}`{}", among(name, known.iter().copied()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ascertain_engine::experiment::Point;

    use super::*;

    /// Whole variants are real too, not only levels; and what emulates nothing has nothing to be told apart.
    #[test]
    fn what_is_real_is_told_from_what_is_emulated() {
        let arm =
            |variant: &str, trace: &str| Arm { variant: variant.into(), point: Point::default().with("trace", trace) };
        assert!(is_real("cache-race", &arm("never", "live")));
        assert!(!is_real("cache-race", &arm("race", "live")) && !is_real("sum", &arm("naive", "live")));
    }
}
