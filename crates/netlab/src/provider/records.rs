//! What a provider has been told of its zones, and what became of it.

use std::collections::BTreeMap;
use std::net::TcpStream;

use super::HostedZone;
use crate::Error;
use crate::dns::{Change, Name, RData, RecordType, exchange, update};

/// All records of a name and a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordSet {
    pub name: String,
    pub kind: String,
    pub ttl_s: u32,
    pub values: Vec<String>,
}

/// What is to be done with one.
pub(super) enum Wanted {
    Added(RecordSet),
    Removed(RecordSet),
}

/// Why nothing is done.
pub(super) enum Conflict {
    /// It is there, whatever it says.
    Exists(RecordSet),
    /// It is not there.
    Missing(RecordSet),
    /// What is there is not what is to go.
    Differs(RecordSet),
    /// It can't be, or the zone's primary does not take it.
    Invalid(String),
}

/// The records of all zones, by zone, name and type, but for those that each zone begins with.
#[derive(Default)]
pub(super) struct Records(BTreeMap<[String; 3], RecordSet>);

impl Records {
    pub fn of<'a>(&'a self, zone: &'a HostedZone) -> impl Iterator<Item = &'a RecordSet> {
        self.0.iter().filter(|([id, ..], _)| *id == zone.id).map(|(_, set)| set)
    }

    /// Does all of it or, as far as can be known beforehand, nothing.
    pub fn change(&mut self, zone: &HostedZone, wanted: Vec<Wanted>) -> Result<(), Conflict> {
        let key = |set: &RecordSet| [zone.id.clone(), set.name.clone(), set.kind.clone()];
        for one in &wanted {
            let set = match one {
                Wanted::Added(set) | Wanted::Removed(set) => set,
            };
            if !format!(".{}", set.name).ends_with(&format!(".{}", zone.name)) {
                return Err(Conflict::Invalid(format!("{} is not in the zone {}", set.name, zone.name)));
            }
            match (one, self.0.get(&key(set))) {
                (Wanted::Added(_), Some(there)) => return Err(Conflict::Exists(there.clone())),
                (Wanted::Removed(_), None) => return Err(Conflict::Missing(set.clone())),
                (Wanted::Removed(_), Some(there)) if there != set => return Err(Conflict::Differs(set.clone())),
                _ => {}
            }
        }
        for one in wanted {
            match one {
                Wanted::Added(set) => {
                    told(zone, &added(&set)?)?;
                    self.0.insert(key(&set), set);
                }
                Wanted::Removed(set) => {
                    told(zone, &Change::Remove { name: name(&set.name)? })?;
                    self.0.remove(&key(&set));
                }
            }
        }
        Ok(())
    }
}

fn name(text: &str) -> Result<Name, Conflict> {
    Name::from_ascii(text).map_err(|error| Conflict::Invalid(format!("{text}: {error}")))
}

fn added(set: &RecordSet) -> Result<Change, Conflict> {
    let kind: RecordType =
        set.kind.parse().map_err(|_| Conflict::Invalid(format!("{} is no type of records", set.kind)))?;
    let [value] = &set.values[..] else {
        return Err(Conflict::Invalid("one record of a name and type is all that is known here".into()));
    };
    let value = RData::try_from_str(kind, value).map_err(|error| Conflict::Invalid(error.to_string()))?;
    Ok(Change::Add { name: name(&set.name)?, ttl_s: set.ttl_s, value })
}

/// Has the zone's primary change it.
fn told(zone: &HostedZone, change: &Change) -> Result<(), Conflict> {
    let try_it = || {
        let no_connection = |source| Error::System { what: "there is no connection to the primary", source };
        let mut stream = TcpStream::connect(zone.primary).map_err(no_connection)?;
        let origin = Name::from_ascii(&zone.name).map_err(|_| Error::message("the zone's name is none"))?;
        let mut request = update(&origin, change, None, 1, 0)?;
        request.accept(&exchange(&mut stream, &request.bytes)?)
    };
    try_it().map_err(|error| Conflict::Invalid(error.to_string()))
}

/// In small letters, with the dot at its end.
pub(super) fn canonical(name: &str) -> String {
    format!("{}.", name.trim().trim_end_matches('.').to_ascii_lowercase())
}
