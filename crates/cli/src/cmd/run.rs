//! `ascertain run`: runs experiments, and judges the shipped claims about them.

use std::collections::BTreeSet;
use std::slice;

use anyhow::{anyhow, bail};
use ascertain::experiments::{self, Experiments};
use ascertain::names::among;
use ascertain::{Ending, GatedVerdict, Request};
use ascertain_engine::claim::{Claim, Judging};
use ascertain_engine::experiment::{Accepts, Arm, Experiment, Factor, Level, Point};
use ascertain_engine::memory::{self, Shortage};
use ascertain_engine::plan::{Config, Table};
use ascertain_report::options::{RenderOptions, Shown};
use ascertain_report::stores;
use ascertain_sys::machine::{self, Machine};

use crate::exit::{FAIL_ON, fail_on};
use crate::measure::{Start, measure};
use crate::options::{Common, count, one_of, with_default};
use crate::output;

/// Default number of trials of a table. It is large enough for narrow intervals of the medians, even on a noisy
/// machine.
const TABLE_TRIALS: u64 = 100;

const EXAMPLES: &str = "\
Examples:
  ascertain run sum
      Measure an experiment and judge the shipped claims about it
  ascertain run sum --at elements=1Ki,64Ki --variants naive,kahan
      Measure two of its variants at two sizes";

/// Run experiments, and judge the shipped claims about them
#[derive(clap::Args, Clone)]
#[command(after_help = EXAMPLES, mut_arg("max_time", |arg| with_default(arg, "45 s for each experiment, 100 s for `runtimes`")))]
pub struct Args {
    /// Ids of experiments, as printed by `ascertain list`
    #[arg(required = true, value_name = "EXPERIMENT")]
    experiments: Vec<String>,
    /// Levels of a factor to measure instead of the defaults, such as `elements=1Ki,64Ki`
    ///
    /// Claims about other levels are not judged. If you give a factor several times, all its levels are measured. If a
    /// level can itself be a list, commas belong to the level; give the option once for each level. A level that needs
    /// more than half of the memory is an error.
    #[arg(long, value_name = "FACTOR=LEVELS")]
    at: Vec<String>,
    /// Builds of one version of a runtime, for the experiment `runtimes`; repeat the option for each version
    ///
    /// The first build of the first version is the baseline. From three builds of a version on, the answer has an
    /// interval for builds like these. Copies of one build count once.
    #[arg(long, value_name = "VERSION=PATH,PATH,PATH")]
    build: Vec<String>,
    /// Variants to measure; claims that need other variants are not judged
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    variants: Vec<String>,
    /// Number of trials of each table [default: 100, or 1 if nothing can be measured repeatedly]
    ///
    /// Claims may need more trials than the table. `runtimes` compares the arms of its table, so it then measures exactly
    /// this number of trials.
    #[arg(short, long, value_name = "N", value_parser = count, help_heading = "Judging")]
    trials: Option<u64>,
    /// Limit on the bill of each store of `storage`, such as `2USD`; needs --prices
    #[arg(long, value_name = "MONEY", help_heading = "Object stores")]
    max_cost: Option<String>,
    /// File with the prices of stores, their source and their date
    #[arg(long, value_name = "FILE", help_heading = "Object stores")]
    prices: Option<String>,
    /// The only object that `storage` reads; then it writes nothing
    #[arg(long, value_name = "KEY", help_heading = "Object stores")]
    object: Option<String>,
    /// Leave out the shipped claims
    #[arg(long, help_heading = "Judging")]
    no_claims: bool,
    /// Print whole tables, a sentence for every verdict, and a table of all claims, however long
    #[arg(long, help_heading = "Output")]
    all: bool,
    /// Verdicts that make the command fail, separated by commas
    #[arg(long, value_parser = one_of(FAIL_ON), value_delimiter = ',', default_value = "nothing",
          help_heading = "Judging")]
    fail_on: Vec<Option<GatedVerdict>>,
    #[command(flatten)]
    common: Common,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let args = &with_builds(args)?;
    let chosen = args.experiments.iter().map(|id| find(id)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut tables = chosen.iter().map(|experiment| table(*experiment, args)).collect::<anyhow::Result<Vec<_>>>()?;
    check_names(&chosen, args)?;
    let machine = machine::describe();
    let of_experiment = chosen.iter().zip(&tables);
    let arms: Vec<(&dyn Experiment, &Arm)> =
        of_experiment.flat_map(|(one, table)| table.arms.iter().map(|arm| (*one, arm))).collect();
    // It is an error to request a size that does not fit in memory.
    let factors = args.factors();
    arms.iter().try_for_each(|(experiment, arm)| check_size(*experiment, arm, &factors, &machine))?;
    let happen_once = all_happen_once(&arms, &machine);
    let mut claims = ascertain_experiments::shipped_claims()?.claims;
    claims.iter_mut().for_each(|claim| claim.place = None);
    claims.retain(|claim| !args.no_claims && args.experiments.contains(&claim.experiment));
    // Leave out claims that need a variant which the experiment does not measure by default.
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
    let trials = args.trials.unwrap_or(if happen_once { 1 } else { TABLE_TRIALS });
    for Table { experiment, arms } in &tables {
        let notices = find(experiment)?.notices(arms, trials).map_err(|why| anyhow!("{experiment}: {why}"))?;
        if !args.common.display.quiet {
            notices.iter().for_each(|remark| output::note(&stores::notice(remark)));
        }
    }
    let config = Config {
        table_trials: Some(trials),
        fail_on: fail_on(&args.fail_on),
        ..args.common.config(experiments::config(&chosen))
    };
    // A comparison of the table's arms has no trials of its own.
    let config = match args.trials.filter(|_| chosen.iter().zip(&tables).all(|(one, table)| compares(*one, table))) {
        Some(trials) => {
            Config { max_trials: Some(config.max_trials.map_or(trials, |most| most.min(trials))), ..config }
        }
        None => config,
    };
    let request = Request::Run(Experiments { tables, claims, config });
    let shown = Shown { all: args.all, ..Shown::default() };
    let options = RenderOptions { shown, ..args.common.render() };
    measure(Start::New(Box::new(request), &args.common), &options, &args.common.exports)
}

/// Returns the arguments with a level of the factor `runtime` for each build.
fn with_builds(args: &Args) -> anyhow::Result<Args> {
    let mut args = args.clone();
    if !args.build.is_empty() && args.experiments.iter().all(|id| id != "runtimes") {
        bail!("--build: only the experiment `runtimes` has builds; leave the option out");
    }
    for build in std::mem::take(&mut args.build) {
        let parts = build.split_once('=').filter(|(version, paths)| !version.is_empty() && !paths.is_empty());
        let Some((version, paths)) = parts else { bail!("--build {build}: write VERSION=PATH,PATH,PATH") };
        args.at.extend(paths.split(',').map(|path| format!("runtime={version}={path}")));
    }
    Ok(args)
}

impl Args {
    /// Returns all levels that the user gave: those of --at, and those of options of their own.
    fn at(&self) -> Vec<String> {
        let own = [("max_cost", &self.max_cost), ("prices", &self.prices), ("key", &self.object)];
        let own = own.into_iter().filter_map(|(factor, level)| Some(format!("{factor}={}", level.as_ref()?)));
        self.at.iter().cloned().chain(own).collect()
    }

    /// Returns the names of the factors whose levels the user gave.
    fn factors(&self) -> Vec<String> {
        self.at().iter().map(|at| at.split_once('=').map_or(&**at, |(factor, _)| factor).to_string()).collect()
    }

    /// Removes tables without any of the requested variants, and claims about variants or levels that were not
    /// requested. Returns sentences for the user about what was removed.
    fn leave_out(&self, tables: &mut Vec<Table>, claims: &mut Vec<Claim>) -> Vec<String> {
        let mut sentences = Vec::new();
        if !self.at().is_empty() {
            let all = claims.len();
            claims.retain(|claim| tables.iter().all(|table| is_within(claim, table, &self.factors())));
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

/// Returns a sentence such as "2 claims not judged: they need variants that --variants leaves out". The reason begins
/// with `it` for one claim and `they` for several, and ends with `what`. Returns `None` if `count` is 0.
fn not_judged(count: usize, [it, they]: [&str; 2], what: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 claim not judged: {it} {what}")),
        n => Some(format!("{n} claims not judged: {they} {what}")),
    }
}

/// Returns whether the experiment compares the arms of its own table, as `runtimes` does.
fn compares(experiment: &dyn Experiment, table: &Table) -> bool {
    experiment.claims_about(&table.arms).iter().any(|claim| claim.asked.judging == Judging::Order)
}

/// Returns whether the table has all variants that the claim needs. For a claim about another experiment, always
/// returns `true`.
fn has_variants(table: &Table, claim: &Claim) -> bool {
    let has = |of_claim: &Arm| table.arms.iter().any(|arm| arm.variant == of_claim.variant);
    claim.experiment != table.experiment || claim.arms().into_iter().all(has)
}

/// Returns whether the table has the levels of the claim's arms, for the factors in `asked`, which the user named. For
/// a claim about another experiment, always returns `true`.
fn is_within(claim: &Claim, table: &Table, asked: &[String]) -> bool {
    let has = |factor: &str, arm: &Arm| {
        let level = arm.point.get(factor);
        level.is_none() || table.arms.iter().any(|of_table| of_table.point.get(factor) == level)
    };
    let is_at = |factor: &String| claim.arms().iter().all(|arm| has(factor, arm));
    claim.experiment != table.experiment || asked.iter().all(is_at)
}

/// Makes the ids of claims unique. If several claims have the same id, their different levels are appended, as in
/// `id[idle_ms=100]`.
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

/// Returns a sentence about claims that need levels that the tables lack. Returns `None` if there are no such claims.
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
    Some(format!("{of} levels that are not in the table; these levels are measured too, unless you add --no-claims"))
}

/// Returns the experiment with this id; an error with a hint if there is none.
pub fn find(id: &str) -> anyhow::Result<&'static dyn Experiment> {
    let all = ascertain_experiments::registry();
    if let Some(found) = all.iter().find(|experiment| experiment.spec().id == id) {
        return Ok(*found);
    }
    let known: Vec<&str> = all.iter().map(|experiment| experiment.spec().id.as_str()).collect();
    bail!("there is no experiment `{id}`{}", among(id, known))
}

/// Returns the table for an experiment: its default arms, or the arms at the requested levels. Different requested
/// levels may lead to the same arm, so duplicate arms are removed.
fn table(experiment: &dyn Experiment, args: &Args) -> anyhow::Result<Table> {
    let spec = experiment.spec();
    let mut arms = experiment.table_arms();
    let mut asked: Vec<(&Factor, Vec<Level>)> = Vec::new();
    for at in &args.at() {
        let Some((name, levels)) = at.split_once('=') else { bail!("--at {at}: write FACTOR=LEVEL,LEVEL") };
        let Some(factor) = spec.factors.iter().find(|factor| factor.name == name) else { continue };
        // For a factor whose levels are lists, a comma is part of the level.
        let levels: Vec<&str> =
            if factor.accepts == Accepts::List { vec![levels] } else { levels.split(',').collect() };
        let levels = levels.into_iter().map(|text| settled(experiment, factor, text, args.common.display.quiet));
        let levels = levels.collect::<anyhow::Result<Vec<_>>>()?;
        match asked.iter_mut().find(|(earlier, _)| earlier.name == name) {
            Some((_, earlier)) => earlier.extend(levels),
            None => asked.push((factor, levels)),
        }
    }
    // If a requested factor applies to only some arms of a variant, keep these arms and drop the variant's other arms.
    for (Factor { name, .. }, levels) in &asked {
        let has_use = |arm: &Arm| {
            let at = |level: &Level| Arm { point: arm.point.clone().with(name, level.clone()), ..arm.clone() };
            levels.iter().any(|level| experiment.has(&at(level), name))
        };
        let with_use: BTreeSet<String> =
            arms.iter().filter(|arm| has_use(arm)).map(|arm| arm.variant.clone()).collect();
        arms.retain(|arm| has_use(arm) || !with_use.contains(&arm.variant));
    }
    for (Factor { name, .. }, levels) in &asked {
        let at = |level: &Level, arm: &Arm| Arm { point: arm.point.clone().with(name, level.clone()), ..arm.clone() };
        arms = arms.iter().flat_map(|arm| levels.iter().map(|level| at(level, arm))).collect();
    }
    arms.iter_mut().for_each(|arm| *arm = experiment.trimmed(arm));
    let is_in_none = |factor: &Factor| arms.iter().all(|arm| arm.point.get(&factor.name).is_none());
    if let Some((Factor { name, .. }, _)) = asked.iter().find(|(factor, _)| is_in_none(factor)) {
        bail!(
            "--at {name}: `{}` does not use this factor at the requested levels of the other factors; leave it out",
            spec.id
        );
    }
    let mut seen = BTreeSet::new();
    arms.retain(|arm| seen.insert(arm.clone()));
    arms.retain(|arm| args.variants.is_empty() || args.variants.contains(&arm.variant));
    arms = experiment.chosen(arms, !args.variants.is_empty()).map_err(|why| anyhow!("{}: {why}", spec.id))?;
    Ok(Table { experiment: spec.id.clone(), arms })
}

/// Returns the level that is measured if the user requests the level `text`. The experiment may replace the requested
/// level, for example a name by its address. Unless `is_quiet`, a note then reports the replacement.
fn settled(experiment: &dyn Experiment, factor: &Factor, text: &str, is_quiet: bool) -> anyhow::Result<Level> {
    let asked = level(factor, text)?;
    let settled = experiment.settled(&factor.name, asked.clone());
    let settled = settled.map_err(|why| match &factor.accepts {
        // Don't print the level: it may be part of a secret that contains a comma.
        Accepts::Address { .. } => anyhow!("--at {}: {why}", factor.name),
        _ => anyhow!("--at {}={text}: {why}", factor.name),
    })?;
    if settled != asked && !is_quiet {
        output::note(&format!("--at {}={text} is measured as {settled}", factor.name));
    }
    Ok(settled)
}

fn level(factor: &Factor, text: &str) -> anyhow::Result<Level> {
    let level = Level::parse(text);
    let Factor { name, accepts, .. } = factor;
    match accepts {
        accepts if accepts.admits(&level) => Ok(level),
        Accepts::OneOf(_) => bail!("--at {name}={text}: not a level of this factor; give one of {accepts}"),
        // Don't print the level: an address that was refused may contain a secret.
        Accepts::Address { .. } => bail!("--at {name}: not a level of this factor; give {accepts}"),
        _ => {
            let suffixes = "1k, 1M and 1G are powers of 1,000, and 1Ki, 1Mi and 1Gi powers of 1,024";
            bail!("--at {name}={text}: not a level of this factor; give {accepts} ({suffixes})")
        }
    }
}

/// Returns whether one trial is enough: every arm that the machine can measure is about an event that happens only
/// once, and there is such an arm. The other arms are checked last, because their checks may be slow.
fn all_happen_once(arms: &[(&dyn Experiment, &Arm)], machine: &Machine) -> bool {
    let is_available = |(experiment, arm): &(&dyn Experiment, &Arm)| experiment.available(arm, machine).is_ok();
    let (once, again): (Vec<_>, Vec<_>) = arms.iter().partition(|(experiment, arm)| experiment.happens_once(arm));
    once.into_iter().any(is_available) && !again.into_iter().any(is_available)
}

/// Returns an error if a level that the user requested makes the arm too large for the memory. `given` has the names of
/// the factors with requested levels.
fn check_size(experiment: &dyn Experiment, arm: &Arm, given: &[String], machine: &Machine) -> anyhow::Result<()> {
    let sizes = Sizes { experiment, arm, machine };
    let Err(shortage) = sizes.fits(arm) else { return Ok(()) };
    // The arm is too large even with the default levels, so the requested levels are not the reason.
    let Some((factor, level)) = sizes.too_large(given) else { return Ok(()) };
    let name = &factor.name;
    let way_out = match sizes.largest(factor) {
        Some(largest) => format!("the largest that fits is {name}={largest}"),
        None if sizes.fits(&sizes.with(factor, factor.default.clone())).is_ok() => {
            format!("{name}={} fits", factor.default)
        }
        None => "lower every level of --at".into(),
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

    /// Returns the factor in `given` whose default level would reduce the needed memory most, and its requested level.
    /// Returns `None` if no default level would reduce the memory.
    fn too_large(&self, given: &[String]) -> Option<(&'a Factor, &'a Level)> {
        let factors = self.experiment.spec().factors.iter().filter(|factor| given.contains(&factor.name));
        let by_default = factors.map(|factor| (self.bytes(&self.with(factor, factor.default.clone())), factor));
        let smaller = by_default.filter(|(bytes, _)| *bytes < self.bytes(self.arm));
        let (_, factor) = smaller.min_by_key(|(bytes, _)| *bytes)?;
        Some((factor, self.arm.point.get(&factor.name)?))
    }

    /// Returns the largest level of a whole-number factor at which the arm fits in memory.
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

/// Returns an error if a requested factor or variant exists in none of the experiments.
fn check_names(chosen: &[&dyn Experiment], args: &Args) -> anyhow::Result<()> {
    let factors: Vec<&str> = chosen.iter().flat_map(|e| e.spec().factors.iter().map(|f| f.name.as_str())).collect();
    let variants: Vec<&str> = chosen.iter().flat_map(|e| e.spec().variants.iter().map(|v| v.name.as_str())).collect();
    let given = args.factors();
    let names = given.iter().map(|name| ("factor", name.as_str(), &factors));
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

    /// An arm is real if its variant or one of its levels selects a real system instead of the emulated one. If an
    /// experiment emulates nothing, its arms need not be distinguished, so `is_real` returns `false` for all of them.
    #[test]
    fn real_systems_are_distinguished_from_emulated_ones() {
        let arm =
            |variant: &str, trace: &str| Arm { variant: variant.into(), point: Point::default().with("trace", trace) };
        let is_real = |id: &str, arm: &Arm| {
            let spec = find(id).unwrap().spec();
            spec.emulates.is_some() && spec.emulated(arm).is_none()
        };
        assert!(is_real("cache-race", &arm("never", "live")));
        assert!(!is_real("cache-race", &arm("race", "live")) && !is_real("sum", &arm("naive", "live")));
    }
}
