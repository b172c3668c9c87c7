#![doc = include_str!("../README.md")]

mod claims;
mod registry;

pub use claims::shipped_claims;
pub use registry::{Family, families, registry};

/// Removes the DNS records and stored objects that interrupted runs left behind. Returns a message for the user for
/// each of them.
///
/// # Errors
/// Returns the reason if a folder that lists them cannot be read.
#[cfg(feature = "networks")]
pub fn clean() -> Result<Vec<Result<String, String>>, String> {
    let records = ascertain_experiments_networks::clean()?;
    #[cfg(feature = "storage")]
    let records = records.into_iter().chain(ascertain_experiments_storage::clean()?).collect();
    Ok(records)
}
