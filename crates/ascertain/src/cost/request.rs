//! Carries out a cost calculation.

use std::collections::BTreeSet;

use ascertain_engine::names::suggestion;
use ascertain_report::cost::{CostFinding, CostReport, Load, Offer};

use super::claims::{CostClaim, judge};
use super::compare::{FEWEST_WORKLOADS, comparison, matched, unmatched};
use super::date::day;
use super::measured::{Machines, MeasuredType, Series};
use super::prices::{Price, PriceList};
use crate::error::{Error, refused};

/// A request to compute the cost of work on several types of machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// The prices of the types.
    pub prices: PriceList,
    /// The speeds of the machines.
    pub machines: Machines,
    /// The types to compare; the first is the reference. If empty, all types that were measured are compared. Types
    /// whose figures other people recorded are compared in the order of the price file, and only if they have a price.
    pub types: Vec<String>,
    /// Region whose prices apply; `None` if the file has only one.
    pub region: Option<String>,
    /// Number of threads for figures that do not contain this number, by type. An entry without a type applies to all
    /// other types.
    pub threads: Vec<(Option<String>, u64)>,
    /// Number of units of work to price, such as executions or GB.
    pub units: f64,
    /// `true` if only figures under full load may be priced.
    pub full_load: bool,
    /// Claims to judge.
    pub claims: Vec<CostClaim>,
    /// Today's date, such as `2026-11-30`, to which the dates of prices are compared.
    pub today: String,
}

impl Default for Cost {
    fn default() -> Cost {
        Cost {
            prices: PriceList::default(),
            machines: Machines::default(),
            types: Vec::new(),
            region: None,
            threads: Vec::new(),
            units: 1e6,
            full_load: false,
            claims: Vec::new(),
            today: String::new(),
        }
    }
}

/// Age from which a price counts as old, in days.
const OLD_DAYS: i64 = 365;

/// A type of machine with one of its prices, and with the figures that were measured on it.
pub(super) struct PricedType<'a> {
    pub offer: Offer,
    pub measured: &'a MeasuredType,
    /// Number of threads for figures that do not contain this number.
    default_threads: u64,
}

impl PricedType<'_> {
    pub(super) fn threads(&self, series: &Series) -> u64 {
        series.threads.unwrap_or(self.default_threads)
    }

    pub(super) fn load(&self, series: &Series) -> Load {
        if self.threads(series) >= self.offer.cpus { Load::Full } else { Load::Part }
    }

    /// Returns the share of the machine's price that a workload pays, which is the share of the cores that it uses. A
    /// thread that runs alone uses a whole core, even if the core has two CPUs.
    pub(super) fn share(&self, series: &Series) -> f64 {
        match self.load(series) {
            Load::Full => 1.0,
            Load::Part => {
                let cores = self.offer.cores.unwrap_or(self.offer.cpus);
                (self.threads(series) as f64 / cores as f64).min(1.0)
            }
        }
    }

    pub(super) fn is_same_as(&self, other: &PricedType) -> bool {
        self.offer.machine_type == other.offer.machine_type
    }
}

/// Computes the cost of each workload on each offer, and compares every offer with the first.
///
/// # Errors
/// - A type has no price, or no figures.
/// - The prices are in several currencies or regions.
/// - The number of CPUs of a type is unknown, or the price file contradicts the machines.
/// - There are fewer than two offers, or the types have no workload in common.
/// - A claim names a type or a workload that was not measured.
pub fn cost(asked: &Cost) -> Result<CostReport, Error> {
    if asked.units.is_nan() || asked.units <= 0.0 || asked.units.is_infinite() {
        return refused("the number of units of work must be a number above 0".into());
    }
    let types = types(asked)?;
    check_threads(asked, &types)?;
    let offers = offers(asked, &types)?;
    let [reference, others @ ..] = offers.as_slice() else {
        return refused("there is nothing to price; give the figures of two types of machine".into());
    };
    if others.is_empty() {
        return refused(format!(
            "there is only one offer, `{}`; give figures of another type, or a second price of this type",
            reference.offer.name
        ));
    }
    let mut findings = Vec::new();
    let mut comparisons = Vec::new();
    for offer in others {
        let pairs = matched(reference, offer);
        if pairs.is_empty() {
            return refused(no_pairs(reference, offer));
        }
        for (one, other, side) in [(reference, offer, 0), (offer, reference, 1)] {
            let workloads = unmatched(one.measured, &pairs, side);
            let machine_type = other.offer.machine_type.clone();
            let finding = CostFinding::Unmatched { machine_type, workloads: workloads.clone() };
            if !workloads.is_empty() && !findings.contains(&finding) {
                findings.push(finding);
            }
        }
        comparisons.push(comparison(reference, offer, asked.units, asked.full_load));
    }
    let claims = asked.claims.iter().map(|claim| judge(claim, &offers, asked.full_load)).collect::<Result<_, _>>()?;
    let mut report = CostReport {
        units: asked.units,
        currency: asked
            .prices
            .prices
            .iter()
            .find(|price| price.line == reference.offer.line)
            .map(|price| price.currency.clone())
            .unwrap_or_default(),
        offers: offers.iter().map(|offer| offer.offer.clone()).collect(),
        comparisons,
        claims,
        findings: Vec::new(),
    };
    let mut all = limits(asked, &offers, &report);
    all.extend(findings);
    all.extend(ages(asked, &offers));
    report.findings = all;
    Ok(report)
}

/// Returns the types to compare, in order.
fn types(asked: &Cost) -> Result<Vec<&MeasuredType>, Error> {
    let measured = &asked.machines.types;
    if !asked.types.is_empty() {
        let find = |name: &String| {
            measured.iter().find(|one| one.machine_type == *name).ok_or_else(|| {
                let names = || measured.iter().map(|one| one.machine_type.as_str());
                let hint = suggestion(name, names()).unwrap_or_default();
                Error::Request(format!("there are no figures of `{name}`{hint}"))
            })
        };
        return asked.types.iter().map(find).collect();
    }
    if measured.iter().all(|one| one.recorded_by_others.is_none()) {
        return Ok(measured.iter().collect());
    }
    let mut types: Vec<&MeasuredType> = Vec::new();
    for price in &asked.prices.prices {
        let found = measured.iter().find(|one| one.machine_type == price.machine_type);
        types.extend(found.filter(|found| types.iter().all(|known| known.machine_type != found.machine_type)));
    }
    if types.len() < 2 {
        // An error about the first type without a price is more useful than one about too few offers.
        let missing = measured.iter().find(|one| types.iter().all(|known| known.machine_type != one.machine_type));
        if let Some(missing) = missing {
            asked.prices.of(&missing.machine_type, None)?;
        }
    }
    Ok(types)
}

/// Returns the offers: for each type its prices, in the order of the file.
fn offers<'a>(asked: &Cost, types: &[&'a MeasuredType]) -> Result<Vec<PricedType<'a>>, Error> {
    let mut offers = Vec::new();
    let mut first: Option<&Price> = None;
    for measured in types {
        let prices = asked.prices.of(&measured.machine_type, asked.region.as_deref())?;
        for price in &prices {
            let first = *first.get_or_insert(price);
            let file = &asked.prices.file;
            if first.currency != price.currency {
                return refused(format!(
                    "{file}: prices are in {} (line {}) and in {} (line {}); convert them to one currency",
                    first.currency, first.line, price.currency, price.line
                ));
            }
            if first.region != price.region {
                return Err(Error::Regions {
                    file: file.clone(),
                    regions: [first.region.clone(), price.region.clone()],
                    lines: [first.line, price.line],
                });
            }
            offers.push(priced(asked, measured, price, prices.len() > 1)?);
        }
    }
    Ok(offers)
}

fn priced<'a>(
    asked: &Cost,
    measured: &'a MeasuredType,
    price: &Price,
    is_one_of_several: bool,
) -> Result<PricedType<'a>, Error> {
    let (file, machine_type) = (&asked.prices.file, &price.machine_type);
    let Some(cpus) = price.cpus.or(measured.cpus) else {
        return refused(format!(
            "{file}:{}: the number of CPUs of `{machine_type}` is not known; add a column cpus",
            price.line
        ));
    };
    if let Some(other) = measured.cpus.filter(|other| *other != cpus) {
        return refused(format!(
            "{file}:{}: this line gives `{machine_type}` {cpus} CPUs, but the measured machine has {other}; check \
             which figures belong to which type, or correct the price file",
            price.line
        ));
    }
    let kind = if price.kind.is_empty() { &price.source } else { &price.kind };
    let name = match is_one_of_several && !kind.is_empty() {
        true => format!("{machine_type} {kind}"),
        false => machine_type.clone(),
    };
    let of_type = asked.threads.iter().find(|(name, _)| name.as_deref() == Some(machine_type));
    let threads = of_type.or_else(|| asked.threads.iter().find(|(name, _)| name.is_none()));
    let offer = Offer {
        name,
        machine_type: machine_type.clone(),
        kind: price.kind.clone(),
        region: price.region.clone(),
        price_per_hour: price.per_hour,
        cpus,
        cores: price.cores.or(measured.cores),
        machines: measured.machines(),
        fewest_machines: measured.fewest_machines(),
        date: price.date.clone(),
        source: price.source.clone(),
        line: price.line,
    };
    Ok(PricedType { offer, measured, default_threads: threads.map_or(1, |(_, threads)| *threads) })
}

/// Refuses a number of threads for an unknown type, and a second number for the same figures.
fn check_threads(asked: &Cost, types: &[&MeasuredType]) -> Result<(), Error> {
    let mut known = BTreeSet::new();
    for (name, _) in &asked.threads {
        if !known.insert(name) {
            let of = name.as_ref().map_or("all types".into(), |name| format!("`{name}`"));
            return refused(format!("two numbers of threads are given for {of}; remove one"));
        }
        let names = || types.iter().map(|of| of.machine_type.as_str());
        if let Some(name) = name.as_ref().filter(|name| !names().any(|known| known == **name)) {
            let hint = suggestion(name, names()).unwrap_or_default();
            return refused(format!(
                "a number of threads is given for the type `{name}`, which has no figures{hint}; remove it, or correct \
                 the name"
            ));
        }
    }
    Ok(())
}

/// Returns the error for two types without a comparable workload.
fn no_pairs(reference: &PricedType, offer: &PricedType) -> String {
    let of = |priced: &PricedType| {
        let names: Vec<String> = priced
            .measured
            .series
            .iter()
            .take(3)
            .map(|series| {
                let threads = priced.threads(series);
                format!("`{}` with {threads} thread{}", series.workload, if threads == 1 { "" } else { "s" })
            })
            .collect();
        names.join(", ")
    };
    let (one, other) = (&reference.offer.machine_type, &offer.offer.machine_type);
    format!(
        "`{one}` and `{other}` have no workload in common under the same load: the first has {}, the second {}; measure \
         the same on both",
        of(reference),
        of(offer)
    )
}

/// Returns the findings about machines, loads and workloads.
fn limits(asked: &Cost, offers: &[PricedType], report: &CostReport) -> Vec<CostFinding> {
    let mut findings = Vec::new();
    let mut types: Vec<&PricedType> = Vec::new();
    for offer in offers {
        if types.iter().all(|known| !known.is_same_as(offer)) {
            types.push(offer);
        }
    }
    let names = |is_it: &dyn Fn(&PricedType) -> bool| -> Vec<String> {
        types.iter().filter(|priced| is_it(priced)).map(|priced| priced.offer.machine_type.clone()).collect()
    };
    // An interval covers other machines only if each workload has several machines of both types.
    let is_of_these = |priced: &PricedType| {
        report.comparisons.iter().any(|comparison| {
            let is_compared = [&comparison.offer, &comparison.reference].contains(&&priced.offer.name);
            let suite = comparison.suite.as_ref();
            is_compared && suite.is_none_or(|suite| suite.speed_other_machines.is_none())
        })
    };
    let alone = names(&|priced| priced.measured.fewest_machines() < 2 && is_of_these(priced));
    if !alone.is_empty() && types.len() > 1 {
        let is_partial =
            types.iter().any(|priced| alone.contains(&priced.offer.machine_type) && priced.measured.machines() > 1);
        findings.push(CostFinding::TheseMachinesOnly { machine_types: alone, is_partial });
    }
    let is_measured = types.iter().all(|priced| priced.measured.recorded_by_others.is_none());
    if is_measured && types.iter().any(|priced| priced.measured.machines() > 1) {
        findings.push(CostFinding::RunsAsMachines);
    }
    let mut sources: Vec<&str> = Vec::new();
    for source in types.iter().filter_map(|priced| priced.measured.recorded_by_others.as_deref()) {
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    for source in sources {
        let machine_types = names(&|priced| priced.measured.recorded_by_others.as_deref() == Some(source));
        findings.push(CostFinding::RecordedByOthers { machine_types, source: source.into() });
    }
    if asked.machines.copies > 0 {
        findings.push(CostFinding::Copies { figures: asked.machines.copies });
    }
    let cores = |priced: &PricedType| priced.offer.cores;
    findings.push(CostFinding::Cores {
        whole: names(&|priced| cores(priced).is_some_and(|cores| cores >= priced.offer.cpus)),
        parts: names(&|priced| cores(priced).is_some_and(|cores| cores < priced.offer.cpus)),
        unknown: names(&|priced| cores(priced).is_none()),
    });
    if !asked.machines.unlike_builds.is_empty() {
        findings.push(CostFinding::UnlikeBuilds { differences: asked.machines.unlike_builds.clone() });
    }
    findings.extend(loads(asked, offers, report));
    for (index, one) in types.iter().enumerate() {
        let twin = types[index + 1..]
            .iter()
            .find(|other| !one.measured.looks.is_empty() && one.measured.looks == other.measured.looks);
        findings.extend(twin.map(|twin| {
            let machine_types = [one, twin].map(|priced| priced.offer.machine_type.clone());
            CostFinding::LookAlike { machine_types }
        }));
    }
    let suites = report.comparisons.iter().filter_map(|comparison| comparison.suite.as_ref());
    let fewest = suites.map(|suite| suite.workloads).min().filter(|count| (*count as usize) < FEWEST_WORKLOADS);
    findings.extend(fewest.map(|workloads| CostFinding::FewWorkloads { workloads }));
    findings
}

/// Returns the findings about idle CPUs.
fn loads(asked: &Cost, offers: &[PricedType], report: &CostReport) -> Vec<CostFinding> {
    let mut findings = Vec::new();
    let rows = || report.comparisons.iter().flat_map(|comparison| &comparison.workloads);
    let has_full = rows().any(|row| row.load == Load::Full);
    let mut part: Vec<(&str, u64)> = Vec::new();
    for row in rows().filter(|row| row.load == Load::Part) {
        let key = (row.workload.as_str(), row.threads);
        if !part.contains(&key) {
            part.push(key);
        }
    }
    if !has_full {
        let is_full = |priced: &PricedType| priced.measured.series.iter().any(|of| priced.load(of) == Load::Full);
        let is_known_for_one = offers.iter().any(is_full);
        findings.push(CostFinding::NoFullLoad { is_required: asked.full_load, is_known_for_one });
    }
    if !part.is_empty() && (has_full || !asked.full_load) {
        findings.push(CostFinding::PartLoad { workloads: part.len() as u64, is_left_out: has_full });
    }
    let is_assumed = |priced: &&PricedType| {
        let is_given = asked
            .threads
            .iter()
            .any(|(of, _)| of.as_deref().is_none_or(|machine_type| machine_type == priced.offer.machine_type));
        !is_given && priced.measured.series.iter().any(|series| series.threads.is_none())
    };
    if offers.iter().any(|priced| is_assumed(&priced)) {
        findings.push(CostFinding::OneThreadAssumed { busy_cpus: asked.machines.busy_cpus });
    }
    findings
}

/// Returns the findings about the dates of the prices.
fn ages(asked: &Cost, offers: &[PricedType]) -> Vec<CostFinding> {
    let today = day(&asked.today);
    let finding = |priced: &PricedType| {
        let Offer { machine_type, date, line, .. } = &priced.offer;
        let (place, machine_type) = (format!("{}:{line}", asked.prices.file), machine_type.clone());
        let Some(of) = day(date) else { return Some(CostFinding::UndatedPrice { place, machine_type }) };
        let age = today? - of;
        let date = date.clone();
        match age {
            ..0 => Some(CostFinding::FuturePrice { place, machine_type, date }),
            0..=OLD_DAYS => None,
            _ => Some(CostFinding::OldPrice { place, machine_type, date, days: age.unsigned_abs() }),
        }
    };
    offers.iter().filter_map(finding).collect()
}
