//! The methods, one file each, written once for every instruction set.

mod babuska;
mod compensated;
mod contract;
mod exact;
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

pub use babuska::Babuska;
#[cfg(target_arch = "x86_64")]
pub use babuska::BabuskaFma;
pub use compensated::lanes_total;
pub use contract::Method;
pub use exact::ExactSum;
pub use kahan::Kahan;
#[cfg(target_arch = "x86_64")]
pub use kahan_fma::KahanFma;
#[cfg(target_arch = "x86_64")]
pub use load_only::LoadOnly;
pub use naive::Naive;
pub use neumaier::Neumaier;
pub use pairwise::Pairwise;
pub use subtract::OnAdders;
pub use two_sum::{BlockTwoSum, Pair};
#[cfg(target_arch = "x86_64")]
pub use two_sum::{BlockTwoSumBits, BlockTwoSumFma};
