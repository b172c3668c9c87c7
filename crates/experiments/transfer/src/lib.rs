#![doc = include_str!("../README.md")]

// On the command line, an experiment has the name of its folder.
#[path = "cache-race/experiment.rs"]
mod cache_race;
#[path = "transfer/experiment.rs"]
mod transfer;

#[cfg(target_os = "linux")]
use std::collections::btree_map::{BTreeMap, Entry};

pub use cache_race::CacheRace;
pub use transfer::Transfer;

/// Returns the value of a key in a map of values that several arms share. If the map lacks the key, first creates the
/// value and inserts it.
#[cfg(target_os = "linux")]
fn shared<K: Ord, V: Clone, E>(
    values: &mut BTreeMap<K, V>,
    key: K,
    make: impl FnOnce() -> Result<V, E>,
) -> Result<V, E> {
    match values.entry(key) {
        Entry::Occupied(there) => Ok(there.get().clone()),
        Entry::Vacant(free) => make().map(|value| free.insert(value).clone()),
    }
}
