//! A cost calculation in all formats.

use ascertain_engine::unit::significant;

use super::data::{ClaimOnCost, CostComparison, CostReport, Interval, RecordedFigures, WorkloadCost};
use super::finding::CostFinding;
use super::sentence::{answer, chance, explained};
use crate::csv::{self, Field};
use crate::figure::Figure;
use crate::formats::{Element, Report};
use crate::grid::{Cell, ColumnKind, Grid};
use crate::text::{counted, distinct, ended, escape_controls, listed, quoted};

/// The reason why no answer is exact.
const NOT_EXACT: &str =
    "Not exact: the intervals treat the workloads as a sample of your work, and assume normal differences.";

impl Report for CostReport {
    const SCHEMA: &'static str = "ascertain.cost/1";

    /// Returns the answers, the offers, a table of workloads for each comparison, the claims, and the findings.
    fn elements(&self) -> Vec<Element> {
        let mut elements = vec![Element::Sentences(self.comparisons.iter().map(answer).collect())];
        let explained: Vec<String> = self.comparisons.iter().filter_map(explained).collect();
        let has_interval = self
            .comparisons
            .iter()
            .filter_map(|one| one.suite.as_ref())
            .any(|suite| suite.workloads > 2 && suite.speed.low.is_some());
        let not_exact = has_interval.then(|| NOT_EXACT.to_string());
        elements.push(Element::Paragraph(explained.into_iter().chain(not_exact).collect()));
        elements.push(Element::Table(self.offers_grid()));
        for comparison in &self.comparisons {
            elements.push(Element::Sentences(vec![self.caption(comparison)]));
            elements.push(Element::Table(self.workloads_grid(comparison)));
        }
        if !self.claims.is_empty() {
            elements.push(Element::Table(claims_grid(&self.claims)));
            let contrary = self.claims.iter().filter_map(contrary);
            elements.push(Element::Sentences(contrary.collect()));
        }
        elements.push(Element::Sentences(self.findings.iter().map(|finding| finding.sentence()).collect()));
        elements
    }

    /// Returns a line for each workload of each comparison.
    fn csv(&self) -> String {
        let mut text = String::from(
            "offer,reference,break_even,decision,workload,unit_of_work,threads,reference_threads,load,is_in_mean,speed,\
             speed_low,speed_high,units,cost,reference_cost,currency,cost_ratio,cost_ratio_low,cost_ratio_high,\
             chance_cheaper,machines,reference_machines\n",
        );
        for comparison in &self.comparisons {
            let CostComparison { offer, reference, break_even, decision, .. } = comparison;
            let decision = decision.word();
            for row in &comparison.workloads {
                let WorkloadCost { workload, unit_of_work, threads, reference_threads, speed, cost, .. } = row;
                let in_mean = if row.is_in_mean { "true" } else { "false" };
                let ratio = row.cost_ratio;
                let [ratio, low, high] = [
                    ratio.map(|ratio| ratio.value),
                    ratio.and_then(|ratio| ratio.low),
                    ratio.and_then(|ratio| ratio.high),
                ];
                let names: [&dyn Field; 6] = [offer, reference, break_even, &decision, workload, unit_of_work];
                let counts: [&dyn Field; 4] = [threads, reference_threads, &row.load.word(), &in_mean];
                let speeds: [&dyn Field; 4] = [&speed.value, &speed.low, &speed.high, &self.units];
                let costs: [&dyn Field; 6] = [cost, &row.reference_cost, &self.currency, &ratio, &low, &high];
                let rest: [&dyn Field; 3] = [&row.chance_cheaper, &row.machines[0], &row.machines[1]];
                text += &csv::record(&[&names[..], &counts, &speeds, &costs, &rest].concat());
            }
        }
        text
    }
}

impl Report for RecordedFigures {
    const SCHEMA: &'static str = "ascertain.figures/1";

    fn elements(&self) -> Vec<Element> {
        let headings = ["Type", "Run", "Workloads", "Machines measured", "Figures"];
        let mut grid = Grid::new(&headings)
            .kind(ColumnKind::Word, &["Run"])
            .kind(ColumnKind::Number, &["Workloads", "Machines measured", "Figures"]);
        grid.rows.extend(self.runs.iter().map(|run| {
            vec![
                Cell::Code(run.machine_type.clone()),
                Cell::Code(run.run_id.clone()),
                run.workloads.to_string().into(),
                machines(run.fewest_machines, run.machines).into(),
                run.figures.to_string().into(),
            ]
        }));
        let copies = Some(CostFinding::Copies { figures: self.copies }).filter(|_| self.copies > 0);
        let recorded = "Recorded as other people's figures. The label of each run is its type of machine.".to_string();
        let sentences = copies.map(|finding| finding.sentence()).into_iter().chain([recorded]);
        vec![Element::Table(grid), Element::Paragraph(sentences.collect())]
    }

    /// Returns a line for each run.
    fn csv(&self) -> String {
        let line = |run: &super::data::Recorded| {
            let (workloads, most, fewest) = (&run.workloads, &run.machines, &run.fewest_machines);
            csv::record(&[&run.machine_type, &run.run_id, workloads, most, fewest, &run.figures])
        };
        format!(
            "type,run,workloads,machines,fewest_machines,figures\n{}",
            self.runs.iter().map(line).collect::<String>()
        )
    }
}

/// Returns the number of machines as text: `2`, or `1 to 2` if it depends on the workload.
fn machines(fewest: u64, most: u64) -> String {
    if fewest < most { format!("{fewest} to {most}") } else { most.to_string() }
}

impl CostReport {
    fn offers_grid(&self) -> Grid {
        let price = format!("{}/h", self.currency);
        let headings = ["Offer", "Region", &price, "CPUs", "Cores", "Machines measured", "Price of"];
        let mut grid = Grid::new(&headings)
            .kind(ColumnKind::Number, &[&price, "CPUs", "Cores", "Machines measured"])
            .kind(ColumnKind::Word, &["Price of"]);
        grid.rows.extend(self.offers.iter().map(|offer| {
            let cores = offer.cores.map_or_else(|| "unknown".into(), |cores| cores.to_string());
            vec![
                Cell::Code(offer.name.clone()),
                Cell::Code(offer.region.clone()),
                significant(offer.price_per_hour).into(),
                offer.cpus.to_string().into(),
                cores.into(),
                machines(offer.fewest_machines, offer.machines).into(),
                offer.date.clone().into(),
            ]
        }));
        grid.without_empty_columns()
    }

    /// Returns the table of workloads, beginning with the workload for which the offer is slowest.
    fn workloads_grid(&self, comparison: &CostComparison) -> Grid {
        let headings = [
            "Workload",
            "Threads",
            "Load",
            "Speed ratio",
            "95 % interval",
            "Cost",
            "Reference",
            "Cost ratio",
            "Chance cheaper",
        ];
        let mut grid = Grid::new(&headings)
            .kind(ColumnKind::Word, &["Load"])
            .kind(ColumnKind::Number, &[&headings[3..], &["Threads"]].concat());
        let mut rows: Vec<&WorkloadCost> = comparison.workloads.iter().collect();
        rows.sort_by(|one, other| one.speed.value.total_cmp(&other.speed.value));
        for row in rows {
            let Interval { value, low, high } = row.speed;
            let threads = match (row.threads, row.reference_threads) {
                (own, reference) if own == reference => own.to_string(),
                (own, reference) => format!("{own}, {reference}"),
            };
            let figure = Figure::new(Some(value), low, high, &[1.0, comparison.break_even]);
            let (speed, range) =
                if low.is_some() { (figure.value, figure.range) } else { (significant(value), String::new()) };
            let money = |cost: Option<f64>| cost.map_or_else(|| "-".to_string(), significant);
            grid.rows.push(vec![
                Cell::Code(row.workload.clone()),
                threads.into(),
                row.load.word().into(),
                speed.into(),
                range.into(),
                money(row.cost).into(),
                money(row.reference_cost).into(),
                money(row.cost_ratio.map(|ratio| ratio.value)).into(),
                row.chance_cheaper.map_or_else(String::new, chance).into(),
            ]);
        }
        grid.without_empty_columns()
    }

    /// Returns a sentence that explains the table of workloads of a comparison.
    fn caption(&self, comparison: &CostComparison) -> String {
        let CostComparison { offer, reference, workloads, .. } = comparison;
        let kinds = distinct(workloads.iter().map(|row| row.unit_of_work.as_str()));
        let number = if self.units >= 1e5 { format!("{:e}", self.units) } else { self.units.to_string() };
        let of = match kinds.as_slice() {
            ["run"] => "runs".to_string(),
            [one] => (*one).to_string(),
            _ => format!("units of work ({})", listed(&kinds, 3)),
        };
        let (offer, reference) = (quoted(offer), quoted(reference));
        format!("{offer} against {reference}; costs are in {} for {number} {}:", self.currency, escape_controls(&of))
    }
}

fn claims_grid(claims: &[ClaimOnCost]) -> Grid {
    let headings = ["Verdict", "Claim", "Claimed", "Mean", "95 % interval", "Workloads"];
    let mut grid = Grid::new(&headings)
        .kind(ColumnKind::Word, &["Verdict"])
        .kind(ColumnKind::Number, &["Claimed", "Mean", "95 % interval", "Workloads"]);
    for claim in claims {
        let figure = claim.mean.map(|mean| match mean.low {
            Some(_) => Figure::new(Some(mean.value), mean.low, mean.high, &[1.0, claim.at_least]),
            None => Figure { value: significant(mean.value), range: String::new() },
        });
        let Figure { value, range } = figure.unwrap_or(Figure { value: "-".into(), range: String::new() });
        grid.rows.push(vec![
            claim.verdict.word().into(),
            claim.says.clone().into(),
            format!("≥ {}", significant(claim.at_least)).into(),
            value.into(),
            range.into(),
            claim.workloads.to_string().into(),
        ]);
    }
    grid
}

/// Maximum number of workloads that a sentence about a claim names.
const NAMED: usize = 8;

/// Returns a sentence with the reason for a missing verdict, or with the workloads that contradict the verdict.
fn contrary(claim: &ClaimOnCost) -> Option<String> {
    let names: Vec<String> =
        claim.contrary.iter().map(|(name, speed)| format!("{} ({})", quoted(name), significant(*speed))).collect();
    let id = quoted(&claim.id);
    let reason = (!claim.reason.is_empty()).then(|| format!("{id}: {}", ended(&claim.reason)));
    let list = (!names.is_empty()).then(|| {
        let (named, count) = (listed(&names, NAMED), counted(names.len() as u64, "workload"));
        match &reason {
            Some(_) => format!(" Below the bound: {named}."),
            None => format!("{id}: {count} of {} on the other side of the bound: {named}.", claim.workloads),
        }
    });
    match (reason, list) {
        (None, None) => None,
        (reason, list) => Some(reason.unwrap_or_default() + &list.unwrap_or_default()),
    }
}
