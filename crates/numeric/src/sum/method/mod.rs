//! The methods, one file each, written once for every instruction set.

mod babuska;
mod compensated;
mod contract;
mod kahan;
#[cfg(target_arch = "x86_64")]
mod kahan_fma;
#[cfg(target_arch = "x86_64")]
mod load_only;
mod naive;
mod neumaier;
mod pairwise;
mod subtract;
mod two_sum;

pub use babuska::{Babuska, BabuskaFma};
pub use contract::Method;
pub use kahan::Kahan;
#[cfg(target_arch = "x86_64")]
pub use kahan_fma::KahanFma;
#[cfg(target_arch = "x86_64")]
pub use load_only::LoadOnly;
pub use naive::Naive;
pub use neumaier::Neumaier;
pub use pairwise::Pairwise;
pub use two_sum::{BlockTwoSum, BlockTwoSumBits, BlockTwoSumFma};
