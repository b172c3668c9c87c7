#![doc = include_str!("README.md")]

mod accumulate;
mod arch;
mod element;
mod exact;
mod method;
mod plain;
mod table;
mod variant;
mod vector;

pub use element::Element;
pub use exact::exact;
pub use plain::sum;
pub use variant::Variant;
