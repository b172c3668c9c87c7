//! The records of a provider's zones, and the changes of these records.

use std::collections::BTreeMap;
use std::net::TcpStream;

use super::HostedZone;
use crate::Error;
use crate::dns::{Change, Name, RData, RecordType, exchange, update};

/// All records of one name and one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordSet {
    pub name: String,
    pub kind: String,
    pub ttl_s: u32,
    pub values: Vec<String>,
}

/// A record set, and whether it is to be added or removed.
pub(super) struct RecordChange {
    pub set: RecordSet,
    pub is_added: bool,
}

/// The reason why a change is refused.
pub(super) enum Conflict {
    /// The record set to be added exists already. Its values may be different.
    Exists(RecordSet),
    /// The record set to be removed does not exist.
    Missing(RecordSet),
    /// The record set to be removed has other values than the request states.
    Differs(RecordSet),
    /// The change is invalid, or the zone's primary refuses it.
    Invalid(String),
}

/// The record sets that were added through the provider, in all its zones. The key has the zone, the name and the
/// record type.
#[derive(Default)]
pub(super) struct Records(BTreeMap<[String; 3], RecordSet>);

impl Records {
    pub fn in_zone<'a>(&'a self, zone: &'a HostedZone) -> impl Iterator<Item = &'a RecordSet> {
        self.0.iter().filter(|([id, ..], _)| *id == zone.id).map(|(_, set)| set)
    }

    /// Checks all changes of a request to `zone`, and then makes them. If the check finds a conflict, no change is
    /// made.
    pub fn change(&mut self, zone: &HostedZone, changes: Vec<RecordChange>) -> Result<(), Conflict> {
        let key = |set: &RecordSet| [zone.id.clone(), set.name.clone(), set.kind.clone()];
        for RecordChange { set, is_added } in &changes {
            if !format!(".{}", set.name).ends_with(&format!(".{}", zone.name)) {
                return Err(Conflict::Invalid(format!("{} is not in the zone {}", set.name, zone.name)));
            }
            match (is_added, self.0.get(&key(set))) {
                (true, Some(there)) => return Err(Conflict::Exists(there.clone())),
                (false, None) => return Err(Conflict::Missing(set.clone())),
                (false, Some(there)) if there != set => return Err(Conflict::Differs(set.clone())),
                _ => {}
            }
        }
        for RecordChange { set, is_added } in changes {
            let change = if is_added { addition(&set)? } else { Change::Remove { name: name(&set.name)? } };
            send_update(zone, &change)?;
            if is_added {
                self.0.insert(key(&set), set);
            } else {
                self.0.remove(&key(&set));
            }
        }
        Ok(())
    }
}

fn name(text: &str) -> Result<Name, Conflict> {
    Name::from_ascii(text).map_err(|error| Conflict::Invalid(format!("{text}: {error}")))
}

fn addition(set: &RecordSet) -> Result<Change, Conflict> {
    let kind: RecordType =
        set.kind.parse().map_err(|_| Conflict::Invalid(format!("{} is not a record type", set.kind)))?;
    let [value] = &set.values[..] else {
        return Err(Conflict::Invalid("only one record per name and type is supported".into()));
    };
    let value = RData::try_from_str(kind, value).map_err(|error| Conflict::Invalid(error.to_string()))?;
    Ok(Change::Add { name: name(&set.name)?, ttl_s: set.ttl_s, value })
}

/// Sends an update to the zone's primary server.
fn send_update(zone: &HostedZone, change: &Change) -> Result<(), Conflict> {
    let try_it = || {
        let no_connection = |source| Error::System { what: "could not connect to the primary", source };
        let mut stream = TcpStream::connect(zone.primary).map_err(no_connection)?;
        let origin = Name::from_ascii(&zone.name).map_err(|_| Error::message("the zone's name is invalid"))?;
        let mut request = update(&origin, change, None, 1, 0)?;
        request.accept(&exchange(&mut stream, &request.bytes)?)
    };
    try_it().map_err(|error| Conflict::Invalid(error.to_string()))
}

/// Returns a name in lower case, with a dot at its end.
pub(super) fn canonical(name: &str) -> String {
    format!("{}.", name.trim().trim_end_matches('.').to_ascii_lowercase())
}
