//! The trait that all providers implement, and the [notes](Note) about records that this process adds. A provider is a
//! service, server or program that changes a zone. The command `clean` uses the notes to remove records that a killed
//! process left behind.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ascertain_engine::evidence::runs_folder;
use ascertain_netlab::dns::Name;
use ascertain_sys::files::is_named;
use ascertain_sys::interrupt::Stop;
use ascertain_transfer::Environment;

use super::exec::Exec;
use super::hosted::ProviderOptions;
use super::primary::{Primary, key_here};
use super::{cloud_dns, route53};

/// A TXT record that is added to measure a change, and removed again.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub zone: Name,
    pub name: Name,
    pub text: String,
}

impl Record {
    /// Returns the text in quotes, as in zone files.
    pub fn quoted(&self) -> String {
        format!("\"{}\"", self.text)
    }
}

/// Time in seconds for which resolvers may cache the added records.
pub const TTL_S: u32 = 1;

/// The reason why a change of a zone failed.
#[derive(Debug)]
pub struct Failure {
    pub why: String,
    /// `true` if it is certain that the zone is unchanged. No record then has to be removed.
    pub is_sure: bool,
}

/// A service, server or program through which a zone is changed.
pub trait Provider: Send + Sync {
    /// Adds a record, and waits until the provider reports that it is added. Calls `call` before each request to add
    /// the record.
    fn add(&self, record: &Record, call: &dyn Fn(), stop: &Stop) -> Result<(), Failure>;
    /// Removes a record that may have been added.
    fn remove(&self, record: &Record) -> Result<(), Failure>;
    /// Returns the server to which the provider sends changes; `None` if there is no such server, or none that can be
    /// queried.
    fn server(&self) -> Option<SocketAddr> {
        None
    }
    /// Returns the text that names the provider in a [`Note`], from which `clean` finds the provider again. Returns
    /// `None` if the zone exists only as long as this process.
    fn address(&self) -> Option<String>;
}

/// Creates the provider from its [address](Provider::address) in a [`Note`]. Takes credentials from the environment.
fn noted(address: &str) -> Result<Box<dyn Provider>, String> {
    let hosted = |project: Option<&&str>, zone_id: &str, endpoint: &[&str]| {
        let options = ProviderOptions {
            environment: Environment::from_process(),
            project: project.map(ToString::to_string),
            zone_id: Some(zone_id.into()),
            endpoint: endpoint.first().map(ToString::to_string),
            ..ProviderOptions::default()
        };
        let open = if project.is_some() { cloud_dns::open } else { route53::open };
        Ok(Box::new(open(&options)?) as Box<dyn Provider>)
    };
    match &address.split_whitespace().collect::<Vec<_>>()[..] {
        ["route53", zone_id, endpoint @ ..] => return hosted(None, zone_id, endpoint),
        ["cloud-dns", project, zone_id, endpoint @ ..] => return hosted(Some(project), zone_id, endpoint),
        _ => {}
    }
    match address.split_once(' ') {
        Some(("rfc2136", server)) => {
            let address = server.parse().map_err(|_| format!("`{server}` is not an address"))?;
            Ok(Box::new(Primary::new(address, key_here()?)))
        }
        Some(("exec", program)) => Ok(Box::new(Exec::new(program.into()))),
        _ => Err(format!("this version does not support the provider `{address}`")),
    }
}

/// Returns the folder for [notes](Note), which is next to the folder for runs.
pub fn notes_folder() -> PathBuf {
    runs_folder().with_file_name("dns-changes")
}

/// A file that names a record which may exist in a zone. It has four lines: the provider's address, the zone, the
/// record's name and its text. The file is locked as long as a process is responsible for the record.
pub struct Note {
    path: PathBuf,
    _file: File,
}

impl Note {
    /// Writes a note. Call this before the record is added.
    pub fn new(folder: &Path, address: &str, record: &Record) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let Record { zone, name, text } = record;
        let path = folder.join(format!("{text}-{}", std::process::id()));
        let mut file = loop {
            let file = File::create(&path)?;
            file.lock()?;
            // An unlocked note looks like that of a run that has ended. `clean` may therefore have removed the file
            // before this process locked it. In that case the file is created again.
            if is_named(&file, &path)? {
                break file;
            }
        };
        writeln!(file, "{address}\n{}\n{}\n{text}", zone.to_ascii(), name.to_ascii())?;
        file.sync_all()?;
        // Syncs the folder, so that the file's name is also on the disk.
        File::open(folder)?.sync_all()?;
        Ok(Self { path, _file: file })
    }

    /// Removes the note. Call this after the record was removed.
    pub fn done(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Removes the records that killed runs left behind. Returns a message for the user for each note in the folder.
///
/// # Errors
/// Returns the reason if the folder of notes cannot be read.
pub fn clean(folder: &Path) -> Result<Vec<Result<String, String>>, String> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| format!("{}: {error}", folder.display()))?,
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths.iter().map(|path| clean_one(path).map_err(|why| format!("{}: {why}", path.display()))).collect())
}

fn clean_one(path: &Path) -> Result<String, String> {
    let failed = |error: io::Error| error.to_string();
    let file = File::open(path).map_err(failed)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            return Ok(format!("{}: not removed, because a run still uses the record", path.display()));
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
        Ok(()) => {}
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    let lines: Vec<&str> = text.lines().collect();
    let [address, zone, name, value] = lines[..] else {
        // An incomplete note means that the run had not yet sent a request to add the record.
        fs::remove_file(path).map_err(failed)?;
        return Ok(format!("{}: the run ended before it changed anything", path.display()));
    };
    let name_of =
        |text: &str| Name::from_ascii(text).map_err(|error| format!("`{text}` is not a domain name: {error}"));
    let record = Record { zone: name_of(zone)?, name: name_of(name)?, text: value.into() };
    let removed = noted(address)?.remove(&record);
    removed.map_err(|failure| {
        format!(
            "could not remove the record {name} at {address}: {}; if the record exists, remove it by hand",
            failure.why
        )
    })?;
    fs::remove_file(path).map_err(failed)?;
    Ok(format!("removed {name} at {address}"))
}
