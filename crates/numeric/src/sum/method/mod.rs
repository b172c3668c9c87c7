//! The methods, one file each, written once for every instruction set.

mod babuska;
mod compensated;
mod contract;
mod exact;
#[cfg(target_arch = "x86_64")]
mod fused;
mod kahan;
#[cfg(target_arch = "x86_64")]
mod kahan_fma;
#[cfg(target_arch = "x86_64")]
mod limit;
#[cfg(target_arch = "x86_64")]
mod load_only;
mod naive;
mod neumaier;
mod pairwise;
mod subtract;
mod two_sum;

pub use babuska::Babuska;
pub use compensated::lanes_total;
pub use contract::Method;
pub use exact::ExactSum;
#[cfg(target_arch = "x86_64")]
pub use fused::{BabuskaFma, BlockTwoSumBits, BlockTwoSumFma, OnMultipliers};
pub use kahan::Kahan;
#[cfg(target_arch = "x86_64")]
pub use kahan_fma::KahanFma;
#[cfg(target_arch = "x86_64")]
pub use limit::{Limit, Work};
#[cfg(target_arch = "x86_64")]
pub use load_only::LoadOnly;
pub use naive::Naive;
pub use neumaier::Neumaier;
pub use pairwise::Pairwise;
pub use subtract::{OnAdders, Subtract};
pub use two_sum::{BlockTwoSum, Pair};
