//! Sequential tests, confidence sequences and exact bounds for Bernoulli claims.

mod deviance;
mod double_double;
mod eprocess;
mod error;
mod incomplete_beta;
mod moments;
mod quantile;
mod rate;
mod stream_quantiles;
mod tally;

pub use deviance::{bd0, binomial_deviance, excess, log_binomial, stirling_remainder};
pub use eprocess::{expected_growth, log_e_holds, log_e_refuted};
pub use error::Error;
pub use moments::Moments;
pub use quantile::{median_sorted, quantile_sorted};
pub use stream_quantiles::StreamQuantiles;
pub use tally::Tally;
