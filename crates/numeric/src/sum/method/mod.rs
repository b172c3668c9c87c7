//! The methods, each written once for all registers.

mod compensated;
#[cfg(target_arch = "x86_64")]
mod fused;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod limit;
mod plain;
mod two_sum;

pub use compensated::{Babuska, Kahan, Neumaier, OnAdders, Subtract, lanes_total};
#[cfg(target_arch = "x86_64")]
pub use fused::{BabuskaFma, BlockTwoSumBits, BlockTwoSumFma, KahanFma, OnMultipliers};
#[cfg(target_arch = "aarch64")]
pub use limit::Additions;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub use limit::LimitOfAdders;
#[cfg(target_arch = "x86_64")]
pub use limit::{Limit, LoadOnly, Work};
pub use plain::{ExactSum, Method, Naive, Pairwise, Plain};
pub use two_sum::{BlockTwoSum, Pair};
