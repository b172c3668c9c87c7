#![doc = include_str!("../README.md")]

mod claims;
mod registry;

pub use claims::shipped_claims;
pub use registry::{Family, families, registry};

/// Removes the DNS records and stored objects that interrupted runs left behind. Returns a message for the user for
/// each of them, and an error for each folder that cannot be read.
#[cfg(feature = "networks")]
#[must_use]
pub fn clean() -> Vec<Result<String, String>> {
    let families = [
        ascertain_experiments_networks::clean(),
        #[cfg(feature = "storage")]
        ascertain_experiments_storage::clean(),
    ];
    families.into_iter().flat_map(|found| found.unwrap_or_else(|why| vec![Err(why)])).collect()
}
