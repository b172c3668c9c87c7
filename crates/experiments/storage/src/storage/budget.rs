//! The limits on requests, bytes and money, and the expected bill.

use std::collections::BTreeMap;
use std::fs;
use std::ops::{Add, Mul};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;

/// The requests and bytes that a measurement uses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Requests that read or describe an object.
    pub reads: u64,
    /// Requests that write or list.
    pub writes: u64,
    /// Requests that delete, which no provider charges for.
    pub deletes: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
}

/// The prices of the stores whose addresses have a given beginning.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// The beginning of the addresses to which the price applies: `s3://`.
    address: String,
    pub currency: String,
    per_1000_writes: Option<f64>,
    per_1000_reads: Option<f64>,
    per_gb_read: Option<f64>,
}

/// A file of prices, with their source and date.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    pub source: String,
    pub date: String,
    #[serde(rename = "store")]
    stores: Vec<Price>,
}

/// The limits of a run for one store.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    pub max_requests: u64,
    pub max_bytes: u64,
    /// The largest bill and the price; `None` without a limit on money.
    pub money: Option<(f64, Price)>,
}

impl Usage {
    pub fn requests(&self) -> u64 {
        self.reads + self.writes + self.deletes
    }

    pub fn bytes(&self) -> u64 {
        self.bytes_read + self.bytes_written
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            deletes: self.deletes + other.deletes,
            bytes_read: self.bytes_read + other.bytes_read,
            bytes_written: self.bytes_written + other.bytes_written,
        }
    }
}

impl Mul<u64> for Usage {
    type Output = Self;

    fn mul(self, times: u64) -> Self {
        Self {
            reads: self.reads.saturating_mul(times),
            writes: self.writes.saturating_mul(times),
            deletes: self.deletes.saturating_mul(times),
            bytes_read: self.bytes_read.saturating_mul(times),
            bytes_written: self.bytes_written.saturating_mul(times),
        }
    }
}

impl Price {
    /// Returns the cost in units of the currency.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let part = |price: Option<f64>, count: u64, per: f64| price.unwrap_or(0.0) * count as f64 / per;
        part(self.per_1000_writes, usage.writes, 1e3)
            + part(self.per_1000_reads, usage.reads, 1e3)
            + part(self.per_gb_read, usage.bytes_read, 1e9)
    }

    fn check(&self) -> Result<(), String> {
        let prices = [
            ("per_1000_writes", self.per_1000_writes),
            ("per_1000_reads", self.per_1000_reads),
            ("per_gb_read", self.per_gb_read),
        ];
        for (name, price) in prices {
            match price {
                Some(price) if !(price > 0.0 && price.is_finite()) => {
                    return Err(format!(
                        "{name} of {} is {price}; give a price above 0, or leave the key out if nothing is charged",
                        self.address
                    ));
                }
                _ => {}
            }
        }
        match prices.iter().all(|(_, price)| price.is_none()) {
            true => Err(format!("{} has no price; give per_1000_writes, per_1000_reads or per_gb_read", self.address)),
            false => Ok(()),
        }
    }
}

impl Prices {
    /// Reads a file of prices.
    ///
    /// # Errors
    /// Returns the reason, for the user, if the file cannot be read, lacks a price or has a price of zero, or if its
    /// prices are in several currencies.
    pub fn read(path: &Path) -> Result<Self, String> {
        let about = |why: String| format!("{}: {why}", path.display());
        let text = fs::read_to_string(path).map_err(|error| about(error.to_string()))?;
        Self::parse(&text).map_err(about)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let prices: Self = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_string())?;
        if prices.source.trim().is_empty() || prices.date.trim().is_empty() {
            return Err("the prices need a `source` and a `date`".into());
        }
        prices.stores.iter().try_for_each(Price::check)?;
        let first = prices.stores.first().ok_or("the file has no [[store]]")?;
        match prices.stores.iter().find(|price| price.currency != first.currency) {
            Some(other) => Err(format!(
                "the prices are in {} and in {}; convert them to one currency",
                first.currency, other.currency
            )),
            None => Ok(prices),
        }
    }

    /// Returns the price of the store at an address: the entry with the longest matching beginning.
    ///
    /// # Errors
    /// Returns the reason, for the user, if no entry matches.
    pub fn of(&self, address: &str) -> Result<&Price, String> {
        let matching = self.stores.iter().filter(|price| address.starts_with(&price.address));
        matching
            .max_by_key(|price| price.address.len())
            .ok_or_else(|| format!("the prices have no entry for {address}; add one"))
    }
}

/// Parses an amount of money: `2USD` or `0.50 EUR`.
///
/// # Errors
/// Returns the reason, for the user.
pub fn parse_money(text: &str) -> Result<(f64, String), String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (amount, currency) = (text[..end].parse::<f64>(), text[end..].trim());
    match amount {
        Ok(amount) if amount > 0.0 && !currency.is_empty() => Ok((amount, currency.to_string())),
        _ => Err(format!("`{text}` is not an amount of money; write it as in `2USD`")),
    }
}

/// The usage so far of each store that has a budget. Sessions of one run share it, because they spend the same budget.
static SPENT: Mutex<BTreeMap<String, Usage>> = Mutex::new(BTreeMap::new());

impl Budget {
    /// Adds the usage of requests that are about to be sent to the store with the name `store`.
    ///
    /// # Errors
    /// Returns the reason, for the user, if the requests would exceed the budget. Then nothing is added.
    pub fn spend(&self, store: &str, usage: Usage) -> Result<(), String> {
        let mut spent = SPENT.lock().unwrap_or_else(PoisonError::into_inner);
        let before = spent.get(store).copied().unwrap_or_default();
        let after = before + usage;
        self.check(&after).map_err(|limit| {
            format!(
                "the budget for {store} is used up: {} requests and {} bytes so far, and the next step would exceed \
                 {limit}; raise this limit to continue",
                before.requests(),
                before.bytes()
            )
        })?;
        spent.insert(store.to_string(), after);
        Ok(())
    }

    /// Fails if a usage exceeds a limit of the budget. The error names the limit.
    fn check(&self, usage: &Usage) -> Result<(), String> {
        if usage.requests() > self.max_requests {
            return Err(format!("`max_requests` of {}", self.max_requests));
        }
        if usage.bytes() > self.max_bytes {
            return Err(format!("`max_mb` of {}", self.max_bytes / 1_000_000));
        }
        match &self.money {
            Some((most, price)) if price.cost(usage) > *most => Err(format!("`max_cost` of {most} {}", price.currency)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "source = 'https://example.com'\ndate = '2026-11-01'\n[[store]]\naddress = 's3://'\n\
                        currency = 'USD'\nper_1000_writes = 0.005\nper_1000_reads = 0.0004\nper_gb_read = 0.09\n";

    #[test]
    fn a_bill_follows_from_the_prices() {
        let prices = Prices::parse(FILE).unwrap();
        let usage = Usage { reads: 1_000, writes: 2_000, deletes: 9, bytes_read: 1_000_000_000, bytes_written: 5 };
        let cost = prices.of("s3://bucket/x").unwrap().cost(&usage);
        assert!((cost - (0.0004 + 0.01 + 0.09)).abs() < 1e-12, "{cost}");
        assert!(prices.of("az://box").unwrap_err().contains("no entry for az://box"));
    }

    #[test]
    fn wrong_prices_are_named() {
        let wrong = |from: &str, to: &str| Prices::parse(&FILE.replace(from, to)).unwrap_err();
        assert!(wrong("= 0.005", "= 0").contains("per_1000_writes of s3:// is 0"));
        assert!(wrong("= 0.005", "= -1").contains("above 0"));
        assert!(wrong("date = '2026-11-01'\n", "").contains("date"));
        let other = format!("{FILE}[[store]]\naddress = 'az://'\ncurrency = 'EUR'\nper_gb_read = 0.1\n");
        assert!(Prices::parse(&other).unwrap_err().contains("in USD and in EUR"));
        let none = "source = 'x'\ndate = 'y'\n[[store]]\naddress = 's3://'\ncurrency = 'USD'\n";
        assert!(Prices::parse(none).unwrap_err().contains("s3:// has no price"));
        assert!(Prices::parse("source = 'x'\ndate = 'y'\nstore = []\n").unwrap_err().contains("no [[store]]"));
        assert_eq!(parse_money("0.5 USD"), Ok((0.5, "USD".into())));
        assert!(parse_money("5").is_err() && parse_money("0USD").is_err() && parse_money("USD").is_err());
    }

    #[test]
    fn a_budget_is_never_exceeded() {
        let price = Prices::parse(FILE).unwrap().of("s3://").unwrap().clone();
        let budget = Budget { max_requests: 10, max_bytes: 1_000, money: Some((0.00001, price)) };
        let one = |reads, bytes_read| Usage { reads, bytes_read, ..Usage::default() };
        assert!(budget.spend("s3://a", one(8, 1_000)).is_ok());
        assert!(budget.spend("s3://a", one(3, 0)).unwrap_err().contains("`max_requests` of 10"));
        assert!(budget.spend("s3://a", one(1, 1)).unwrap_err().contains("`max_mb`"));
        assert!(budget.spend("s3://a", one(2, 0)).is_ok(), "a refused step costs nothing");
        let written = Usage { writes: 3, ..Usage::default() };
        assert!(budget.spend("s3://b", written).unwrap_err().contains("`max_cost` of 0.00001 USD"));
    }
}
