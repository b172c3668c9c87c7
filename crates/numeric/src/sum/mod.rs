#![doc = include_str!("README.md")]

mod accumulate;
mod arch;
mod chosen;
mod dot;
mod element;
mod exact;
mod method;
mod moments;
mod plain;
mod stream;
mod table;
mod variant;
mod vector;

pub use chosen::{chosen, chosen_dot};
pub use dot::{DotVariant, dot};
pub use element::{Element, Term};
pub use exact::{Exact, ExactBytesError, exact};
pub use moments::{mean, variance};
pub use plain::sum;
pub use stream::{dot_of, mean_of, strided, sum_of, variance_of};
pub use variant::Variant;
