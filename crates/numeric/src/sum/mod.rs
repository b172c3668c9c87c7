#![doc = include_str!("README.md")]

mod accumulate;
mod arch;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod chosen;
mod dot;
mod element;
mod exact;
mod fastest;
mod method;
mod moments;
mod stream;
mod variants;
mod vector;

pub use chosen::{chosen, chosen_dot, sum};
pub use dot::{DotVariant, dot};
pub use element::{Element, Term};
pub use exact::{Exact, ExactBytesError, exact};
pub use moments::{mean, variance};
pub use stream::{dot_of, mean_of, strided, sum_of, variance_of};
pub use variants::Variant;
