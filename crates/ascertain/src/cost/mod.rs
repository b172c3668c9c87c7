//! Computes what work costs on several types of machine, from recorded runs or from figures that other people recorded.
//!
//! ```
//! use ascertain::cost::{Cost, FigureFile, PriceList};
//!
//! let prices = "type,cpus,cores,usd_hour\nx,8,4,0.34\ny,8,8,0.43\n";
//! let times = "type,processes,seconds\nx,8,1.90\ny,8,1.05\n";
//! let asked = Cost {
//!     prices: PriceList::read(prices.as_bytes(), "prices.csv")?,
//!     machines: FigureFile::read(times.as_bytes(), "times.csv")?.into(),
//!     today: "2026-11-30".into(),
//!     ..Cost::default()
//! };
//! let report = ascertain::cost::cost(&asked)?;
//! let row = &report.comparisons[0].workloads[0];
//! assert_eq!(format!("{:.2} {:.2}", row.reference_cost.unwrap(), row.cost.unwrap()), "22.43 15.68");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod claims;
mod compare;
mod date;
mod figure_row;
mod figures;
mod measured;
mod prices;
mod recorded;
mod request;
#[cfg(test)]
mod tests;

pub use claims::{Bound, CostClaim, read_claims};
pub use figures::{FigureFile, is_price_file};
pub use measured::{MachineValue, Machines, MeasuredType, Series, WorkUnit};
pub use prices::{Price, PriceList};
pub use recorded::{TypedRun, read_runs};
pub use request::{Cost, cost};
