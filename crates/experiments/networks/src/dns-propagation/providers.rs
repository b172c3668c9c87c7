//! Who changes a zone: one trait, whoever it is; and notes of what is about to be added, so that what is left when this
//! process is killed can be taken away.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ascertain_engine::evidence::runs_folder;
use ascertain_netlab::dns::Name;
use ascertain_sys::interrupt::Stop;
use ascertain_transfer::Environment;

use super::exec::Exec;
use super::hosted::Told;
use super::primary::{Primary, key_here};
use super::{cloud_dns, route53};

/// A text that a name is to have, for as long as it takes to see that everywhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub zone: Name,
    pub name: Name,
    pub text: String,
}

impl Record {
    /// The text as zones' files have it.
    pub fn quoted(&self) -> String {
        format!("\"{}\"", self.text)
    }
}

/// For how long others may keep what is there for us.
pub const TTL_S: u32 = 1;

/// Why nothing became of a change.
#[derive(Debug)]
pub struct Failure {
    pub why: String,
    /// Whether the zone is surely as it was.
    pub is_sure: bool,
}

/// Who changes a zone.
pub trait Provider: Send + Sync {
    /// Adds a record, and waits until the provider says that this is done. Tells when it is about to `call` for it, and
    /// again if it has to once more.
    fn add(&self, record: &Record, call: &dyn Fn(), stop: &Stop) -> Result<(), Failure>;
    /// Takes it away.
    fn remove(&self, record: &Record) -> Result<(), Failure>;
    /// The server that is told of changes, where it is one that can be asked, too.
    fn server(&self) -> Option<SocketAddr> {
        None
    }
    /// How [`noted`] finds it again; none of a zone that ends with this process.
    fn address(&self) -> Option<String>;
}

/// The provider of an address, with what the environment has for it.
fn noted(address: &str) -> Result<Box<dyn Provider>, String> {
    let told = |endpoint: &[&str]| Told {
        environment: Environment::of_process(),
        endpoint: endpoint.first().map(ToString::to_string),
        ..Told::default()
    };
    match &address.split_whitespace().collect::<Vec<_>>()[..] {
        ["route53", zone_id, endpoint @ ..] => return Ok(Box::new(route53::noted(zone_id, &told(endpoint))?)),
        ["cloud-dns", project, zone_id, endpoint @ ..] => {
            return Ok(Box::new(cloud_dns::noted(project, zone_id, &told(endpoint))?));
        }
        _ => {}
    }
    match address.split_once(' ') {
        Some(("rfc2136", server)) => {
            let address = server.parse().map_err(|_| format!("`{server}` is no address"))?;
            Ok(Box::new(Primary::new(address, key_here()?)))
        }
        Some(("exec", program)) => Ok(Box::new(Exec::new(program.into()))),
        _ => Err(format!("`{address}` is no provider of this version")),
    }
}

/// Where notes are: beside the folder of runs.
pub fn notes_folder() -> PathBuf {
    runs_folder().with_file_name("dns-changes")
}

/// A note of a record that may be there: a file with a line each of the provider, the zone, the name and the text,
/// locked for as long as somebody sees to it.
pub struct Note {
    path: PathBuf,
    _file: File,
}

impl Note {
    /// Notes that a record is about to be added.
    pub fn new(folder: &Path, address: &str, record: &Record) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let Record { zone, name, text } = record;
        let path = folder.join(format!("{text}-{}", std::process::id()));
        let mut file = loop {
            let file = File::create(&path)?;
            file.lock()?;
            // Before it was locked `clean` may have taken it for one of a run that is over, and away.
            if is_at(&file, &path)? {
                break file;
            }
        };
        writeln!(file, "{address}\n{}\n{}\n{text}", zone.to_ascii(), name.to_ascii())?;
        file.sync_all()?;
        // Its name is to be on the disk, too.
        File::open(folder)?.sync_all()?;
        Ok(Self { path, _file: file })
    }

    /// The record is gone.
    pub fn done(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Whether that file is still what has the path.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        there => Ok(identity(there?) == identity(file.metadata()?)),
    }
}

/// Takes away what is left of runs that were killed: what became of each, for people.
///
/// # Errors
/// Where the notes can't be read.
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
        Err(TryLockError::WouldBlock) => return Ok(format!("{}: a run that is not over sees to it", path.display())),
        Err(TryLockError::Error(error)) => return Err(failed(error)),
        Ok(()) => {}
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    let lines: Vec<&str> = text.lines().collect();
    let [address, zone, name, value] = lines[..] else {
        // Nothing is sent before the note is whole.
        fs::remove_file(path).map_err(failed)?;
        return Ok(format!("{}: the run ended before it changed anything", path.display()));
    };
    let name_of = |text: &str| Name::from_ascii(text).map_err(|error| format!("`{text}` is no name: {error}"));
    let record = Record { zone: name_of(zone)?, name: name_of(name)?, text: value.into() };
    let removed = noted(address)?.remove(&record);
    removed.map_err(|failure| format!("{name} is still there, or was never: {address}: {}", failure.why))?;
    fs::remove_file(path).map_err(failed)?;
    Ok(format!("{name} is gone, by {address}"))
}
