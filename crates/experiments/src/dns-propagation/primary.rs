//! Who changes a zone: its primary server, which takes updates (RFC 2136); and a note of what it was told, so that a
//! record that is left when this process is killed can be taken away.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, thread};

use ascertain_engine::evidence::runs_folder;
use ascertain_netlab::Error;
use ascertain_netlab::dns::{Change, Key, Name, exchange, update};
use ascertain_sys::clock::unix_ns;

/// As long as a server may take to answer what changes its zone.
const PATIENCE: Duration = Duration::from_secs(20);
/// What a key is in: as `nsupdate -y` has it, or the name of a file that `tsig-keygen` wrote.
const KEY: &str = "TSIG_KEY";
const KEY_FILE: &str = "TSIG_KEY_FILE";

/// A zone's primary server.
pub struct Primary {
    pub zone: Name,
    pub address: SocketAddr,
    pub key: Option<Key>,
    /// How long a simulated one takes to say that a change is done.
    pub done_after: Duration,
    /// Where notes are left; none of a zone that ends with this process.
    pub notes: Option<PathBuf>,
}

impl Primary {
    /// Changes the zone, and waits until the server says that this is done.
    ///
    /// # Errors
    /// As [`Request::accept`](ascertain_netlab::dns::Request::accept) has them, of which a refusal is sure, and
    /// [`Error::System`] where there is no connection.
    pub fn change(
        &self,
        connect: impl FnOnce(SocketAddr) -> io::Result<TcpStream>,
        change: &Change,
        number: u16,
    ) -> Result<(), Error> {
        let no_connection = |source| Error::System { what: "there is no connection to it", source };
        let mut stream = connect(self.address).map_err(no_connection)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(no_connection)?;
        let mut request = update(&self.zone, change, self.key.as_ref(), number, unix_ns() / 1_000_000_000)?;
        request.accept(&exchange(&mut stream, &request.bytes)?)?;
        thread::sleep(self.done_after);
        Ok(())
    }

    /// Notes that a record is about to be added.
    pub fn note(&self, name: &Name) -> io::Result<Option<Note>> {
        self.notes.as_deref().map(|folder| Note::new(folder, &self.zone, self.address, name)).transpose()
    }
}

/// Connects to a server that is no one's of ours.
pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    TcpStream::connect_timeout(&address, PATIENCE)
}

/// Whether the zone is surely as it was.
pub fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::NoUpdate { .. } | Error::Clocks { .. } | Error::System { .. })
}

/// The key that the environment has.
pub fn key_here() -> Result<Option<Key>, String> {
    let text = match (env::var(KEY), env::var(KEY_FILE)) {
        (Ok(text), _) => text,
        (_, Ok(path)) => fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?,
        _ => return Ok(None),
    };
    Key::parse(&text).map(Some).map_err(|error| error.to_string())
}

/// Where notes are: beside the folder of runs.
pub fn notes_folder() -> PathBuf {
    runs_folder().with_file_name("dns-changes")
}

/// A note of a record that may be there: a file with zone, server and name, locked for as long as somebody sees to it.
pub struct Note {
    path: PathBuf,
    _file: File,
}

impl Note {
    fn new(folder: &Path, zone: &Name, address: SocketAddr, name: &Name) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let label = name.iter().next().map(String::from_utf8_lossy).unwrap_or_default();
        let path = folder.join(format!("{label}-{}", std::process::id()));
        let mut file = File::create(&path)?;
        file.lock()?;
        writeln!(file, "{} {address} {}", zone.to_ascii(), name.to_ascii())?;
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

/// Takes away what is left of runs that were killed: what became of each, for people.
///
/// # Errors
/// Where the notes can't be read, or there is a key that is none.
pub fn clean(folder: &Path, key: Option<&Key>) -> Result<Vec<Result<String, String>>, String> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| format!("{}: {error}", folder.display()))?,
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths.iter().map(|path| clean_one(path, key).map_err(|why| format!("{}: {why}", path.display()))).collect())
}

fn clean_one(path: &Path, key: Option<&Key>) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Ok(format!("{}: a run that is not over sees to it", path.display())),
        locked => locked.map_err(|error| error.to_string())?,
    }
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let name_of = |text: &str| Name::from_ascii(text).ok();
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [zone, address, name] = parts[..] else {
        // Nothing is sent before the note is whole.
        fs::remove_file(path).map_err(|error| error.to_string())?;
        return Ok(format!("{}: the run ended before it changed anything", path.display()));
    };
    let noted = || Some((name_of(zone)?, address.parse().ok()?, name_of(name)?));
    let (zone, address, name) = noted().ok_or("it is no note of ours")?;
    let primary = Primary { zone, address, key: key.cloned(), done_after: Duration::ZERO, notes: None };
    let remove = Change::Remove { name: name.clone() };
    let removed = primary.change(connect, &remove, rand::random());
    removed.map_err(|error| format!("{name} is still there, or was never: {address}: {error}"))?;
    fs::remove_file(path).map_err(|error| error.to_string())?;
    Ok(format!("{name} is gone from the zone at {address}"))
}
