//! Reads a file of prices.

use std::io::Read;

use ascertain_engine::names::suggestion;
use ascertain_engine::samples::{Table, read_table};

use super::date::day;
use crate::error::{Error, refused};

/// A file of prices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriceList {
    /// Name of the file, for messages.
    pub file: String,
    /// The prices, in the order of the file.
    pub prices: Vec<Price>,
}

/// The price of a type of machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    /// Type of the machine.
    pub machine_type: String,
    /// Region of the price; may be empty.
    pub region: String,
    /// Kind of the price, such as `spot`; may be empty.
    pub kind: String,
    /// Price for an hour, in `currency`.
    pub per_hour: f64,
    /// Currency, in capitals.
    pub currency: String,
    /// Number of CPUs; `None` if the file does not contain it.
    pub cpus: Option<u64>,
    /// Number of whole cores; `None` if the file does not contain it.
    pub cores: Option<u64>,
    /// Date of the price; may be empty.
    pub date: String,
    /// Origin of the price; may be empty.
    pub source: String,
    /// Number of the line in the file.
    pub line: u64,
}

/// Maximum number of rows of a price file.
const MOST_ROWS: usize = 1_000_000;

/// The headings for the type of machine, in files of prices and of figures.
pub(super) const TYPE: &[&str] = &["type", "machine_type", "instance", "instance_type", "name"];
/// The headings for the number of CPUs.
pub(super) const CPUS: &[&str] = &["cpus", "vcpus", "vcpu", "cpu"];
/// The headings for the number of whole cores.
pub(super) const CORES: &[&str] = &["cores", "physical_cores"];
/// The headings for the source.
pub(super) const SOURCE: &[&str] = &["source"];

/// The periods to which a price may apply, each with its number of hours.
const PERIODS: &[(&str, f64)] = &[
    ("second", 1.0 / 3600.0),
    ("minute", 1.0 / 60.0),
    ("hour", 1.0),
    ("day", 24.0),
    ("month", 730.0),
    ("year", 8760.0),
];

impl PriceList {
    /// Reads prices from CSV with the columns `type, region, price, currency, per, cpus, date, source`. The columns
    /// `type`, `price`, `currency` and `per` are required; `kind` (such as `spot` or `reserved`) and `cores` are
    /// optional too. A single column such as `usd_hour` may replace `price`, `currency` and `per`. `file` is the file's
    /// name for errors.
    ///
    /// # Errors
    /// The message names the line. There are these errors:
    /// - A price is missing, zero, negative or not a number.
    /// - A currency, a period, a date or a number of CPUs is invalid.
    /// - Two rows are for the same type, region, kind and source.
    pub fn read(input: impl Read, file: &str) -> Result<PriceList, Error> {
        let table = read_table(input, file, MOST_ROWS)?;
        let columns = Columns::of(&table, file)?;
        let rows = table.rows.iter().map(|row| columns.price(&row.fields, row.line, file));
        let prices: Vec<Price> = rows.collect::<Result<_, _>>()?;
        if prices.is_empty() {
            return refused(format!("{file} contains no prices; add a row for each type of machine"));
        }
        let key = |price: &Price| {
            let Price { machine_type, region, kind, source, .. } = price.clone();
            (machine_type, region, kind, source)
        };
        let mut known = std::collections::BTreeMap::new();
        for price in &prices {
            if let Some(first) = known.insert(key(price), price.line) {
                let Price { machine_type, line, .. } = price;
                return refused(format!(
                    "{file}:{line}: `{machine_type}` already has a price in line {first}; keep one of the prices, or \
                     distinguish them by region, kind or source"
                ));
            }
        }
        Ok(PriceList { file: file.into(), prices })
    }

    /// Returns the prices of a type in a region, in the order of the file. Without a region, returns the prices of all
    /// regions.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn of(&self, machine_type: &str, region: Option<&str>) -> Result<Vec<&Price>, Error> {
        let file = &self.file;
        let of_type: Vec<&Price> = self.prices.iter().filter(|price| price.machine_type == machine_type).collect();
        if of_type.is_empty() {
            let names: Vec<&str> = self.prices.iter().map(|price| price.machine_type.as_str()).collect();
            let hint = suggestion(machine_type, names.iter().copied()).unwrap_or_default();
            return refused(format!("{file} has no price of `{machine_type}`; add a row for it{hint}"));
        }
        let Some(region) = region else { return Ok(of_type) };
        let here: Vec<&Price> = of_type.iter().copied().filter(|price| price.region == region).collect();
        if here.is_empty() {
            let regions: Vec<String> = of_type.iter().map(|price| format!("`{}`", price.region)).collect();
            let regions = regions.join(", ");
            return refused(format!(
                "{file} has no price of `{machine_type}` in `{region}`, only in {regions}; choose one of these \
                 regions, or add a price"
            ));
        }
        Ok(here)
    }
}

/// The indices of the columns of a price file.
struct Columns {
    machine_type: usize,
    price: usize,
    /// `Ok`: the columns of the currency and of the period. `Err`: the currency, and the period in hours, from the
    /// heading of the price column.
    unit: Result<(usize, usize), (String, f64)>,
    region: Option<usize>,
    kind: Option<usize>,
    cpus: Option<usize>,
    cores: Option<usize>,
    date: Option<usize>,
    source: Option<usize>,
}

/// Splits a heading such as `usd_hour` into the currency, in capitals, and the number of hours in the period.
fn priced(heading: &str) -> Option<(String, f64)> {
    let (currency, period) = heading.split_once('_').filter(|(currency, _)| currency.len() == 3)?;
    let period = period.strip_prefix("per_").unwrap_or(period);
    let is_word = currency.bytes().all(|byte| byte.is_ascii_alphabetic());
    Some((currency.to_uppercase(), hours(period)?)).filter(|_| is_word)
}

/// Returns whether these are the headings of a price file.
pub(super) fn has_prices(table: &Table) -> bool {
    table.column(&["price"]).is_some() || table.headings.iter().any(|heading| priced(heading).is_some())
}

/// Returns the number of hours of a period, such as `hour` or `month`.
fn hours(period: &str) -> Option<f64> {
    let period = period.to_ascii_lowercase();
    let is_it = |name: &str| period == name || period.strip_suffix('s') == Some(name);
    PERIODS.iter().find(|(name, _)| is_it(name) || (*name == "hour" && period == "h")).map(|(_, hours)| *hours)
}

impl Columns {
    fn of(table: &Table, file: &str) -> Result<Columns, Error> {
        let need = |names: &[&str]| match table.column(names) {
            Some(index) => Ok(index),
            None => refused(format!(
                "{file} has no column `{}`; a price file has the columns type, region, price, currency, per, cpus, date \
                 and source",
                names[0]
            )),
        };
        let combined = || {
            let found = table.headings.iter().enumerate().find_map(|(index, heading)| Some((index, priced(heading)?)));
            found.filter(|_| table.column(&["price"]).is_none())
        };
        let (price, unit) = match combined() {
            Some((index, unit)) => (index, Err(unit)),
            None => (need(&["price"])?, Ok((need(&["currency"])?, need(&["per"])?))),
        };
        Ok(Columns {
            machine_type: need(TYPE)?,
            price,
            unit,
            region: table.column(&["region"]),
            kind: table.column(&["kind", "purchase"]),
            cpus: table.column(CPUS),
            cores: table.column(CORES),
            date: table.column(&["date"]),
            source: table.column(SOURCE),
        })
    }

    fn price(&self, fields: &[String], line: u64, file: &str) -> Result<Price, Error> {
        let wrong = |problem: String| -> Result<Price, Error> { refused(format!("{file}:{line}: {problem}")) };
        let optional = |column: Option<usize>| column.map(|index| fields[index].clone()).unwrap_or_default();
        let machine_type = fields[self.machine_type].clone();
        if machine_type.is_empty() {
            return wrong("the type of the machine is empty; name it, or remove the line".into());
        }
        let text = &fields[self.price];
        let price = match text.parse::<f64>() {
            _ if text.is_empty() => {
                return wrong(format!("the price of `{machine_type}` is missing; add it, or remove the line"));
            }
            Ok(0.0) => {
                return wrong(format!(
                    "the price of `{machine_type}` is 0; enter the price that you would pay without a free offer"
                ));
            }
            Ok(price) if price < 0.0 => {
                return wrong(format!("the price of `{machine_type}` is negative, {text}; enter what you pay"));
            }
            Ok(price) if price.is_finite() => price,
            _ => {
                return wrong(format!(
                    "the price `{text}` of `{machine_type}` is not a number; write it like 2.176, without a currency"
                ));
            }
        };
        let (currency, hours) = match &self.unit {
            Err((currency, hours)) => (currency.clone(), *hours),
            Ok((currency, per)) => {
                let (currency, per) = (fields[*currency].to_uppercase(), &fields[*per]);
                if currency.is_empty() {
                    return wrong(format!("the price of `{machine_type}` has no currency; enter one, such as USD"));
                }
                let Some(hours) = hours(per) else {
                    let periods: Vec<&str> = PERIODS.iter().map(|(name, _)| *name).collect();
                    return wrong(format!("`{per}` is not a period of a price; write one of {}", periods.join(", ")));
                };
                (currency, hours)
            }
        };
        let count = |column: Option<usize>, what: &str| {
            count(&optional(column), what).or_else(|problem| refused(format!("{file}:{line}: {problem}")))
        };
        let (cpus, cores) = (count(self.cpus, "CPUs")?, count(self.cores, "cores")?);
        if let (Some(cpus), Some(cores)) = (cpus, cores)
            && cores > cpus
        {
            return wrong(format!("`{machine_type}` has {cores} cores but only {cpus} CPUs; correct one of them"));
        }
        let date = optional(self.date);
        if !date.is_empty() && day(&date).is_none() {
            return wrong(format!("`{date}` is not a date; write it like 2026-11-30"));
        }
        let (region, kind, source) = (optional(self.region), optional(self.kind), optional(self.source));
        let per_hour = price / hours;
        if per_hour.is_infinite() {
            return wrong(format!("the price of `{machine_type}` is too large; correct it"));
        }
        Ok(Price { machine_type, region, kind, per_hour, currency, cpus, cores, date, source, line })
    }
}

/// Parses a number of CPUs or cores; an empty field is `None`. On failure, returns the problem and the way out.
pub(super) fn count(text: &str, what: &str) -> Result<Option<u64>, String> {
    match text.parse::<u64>() {
        _ if text.is_empty() => Ok(None),
        Ok(count) if (1..=1_000_000).contains(&count) => Ok(Some(count)),
        _ => Err(format!("`{text}` is not a number of {what}; write a whole number from 1")),
    }
}
