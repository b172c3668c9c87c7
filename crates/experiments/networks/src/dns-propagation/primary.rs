//! The provider for updates (RFC 2136): sends changes to the zone's primary server.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, thread};

use ascertain_netlab::dns::{Change, Key, RData, RecordType, exchange, update};
use ascertain_netlab::{Error, RunningLink};
use ascertain_sys::clock::unix_ns;
use ascertain_sys::interrupt::Stop;

use super::providers::{Failure, Provider, Record, TTL_S};

/// Time limit for the server's answer to an update.
const PATIENCE: Duration = Duration::from_secs(20);
/// Name of the environment variable that contains a key in the format of `nsupdate -y`.
const KEY: &str = "TSIG_KEY";
/// Name of the environment variable that contains the path of a key file from `tsig-keygen`.
const KEY_FILE: &str = "TSIG_KEY_FILE";

/// A client of a zone's primary server, with the key that signs the updates.
pub struct Primary {
    address: SocketAddr,
    key: Option<Key>,
    /// Function that returns the current time for signatures, in seconds since 1970. Tests replace this clock.
    pub clock: fn() -> u64,
    /// For a simulated zone: its emulated link, and the delay before a change is reported as done. `None` for zones on
    /// real servers.
    simulated: Option<(Arc<RunningLink>, Duration)>,
}

impl Primary {
    pub fn new(address: SocketAddr, key: Option<Key>) -> Self {
        Self { address, key, clock: unix_s, simulated: None }
    }

    pub fn simulated(address: SocketAddr, link: Arc<RunningLink>, done_after: Duration) -> Self {
        Self { simulated: Some((link, done_after)), ..Self::new(address, None) }
    }

    fn change(&self, record: &Record, change: &Change) -> Result<(), Failure> {
        let try_it = || {
            let connected = match &self.simulated {
                Some((link, _)) => link.near().connect(self.address),
                None => TcpStream::connect_timeout(&self.address, PATIENCE),
            };
            let no_connection = |source| Error::System { what: "could not connect to the server", source };
            let mut stream = connected.map_err(no_connection)?;
            stream.set_read_timeout(Some(PATIENCE)).map_err(no_connection)?;
            let mut request = update(&record.zone, change, self.key.as_ref(), rand::random(), (self.clock)())?;
            request.accept(&exchange(&mut stream, &request.bytes)?)
        };
        try_it().map_err(|error| Failure {
            why: match (&error, &self.key) {
                (Error::NoUpdate(_), None) => format!("{}: {error}; ${KEY} is not set", self.address),
                _ => format!("{}: {error}", self.address),
            },
            is_sure: matches!(error, Error::NoUpdate(_) | Error::Clocks { .. } | Error::System { .. }),
        })
    }
}

impl Provider for Primary {
    fn add(&self, record: &Record, call: &dyn Fn(), _: &Stop) -> Result<(), Failure> {
        let value = RData::try_from_str(RecordType::TXT, &record.text);
        let value = value.map_err(|error| Failure { why: error.to_string(), is_sure: true })?;
        call();
        self.change(record, &Change::Add { name: record.name.clone(), ttl_s: TTL_S, value })?;
        if let Some((_, done_after)) = self.simulated {
            thread::sleep(done_after);
        }
        Ok(())
    }

    fn remove(&self, record: &Record) -> Result<(), Failure> {
        self.change(record, &Change::Remove { name: record.name.clone() })
    }

    fn server(&self) -> Option<SocketAddr> {
        Some(self.address)
    }

    fn address(&self) -> Option<String> {
        self.simulated.is_none().then(|| format!("rfc2136 {}", self.address))
    }
}

pub fn unix_s() -> u64 {
    unix_ns() / 1_000_000_000
}

/// Returns the key from the environment variable `TSIG_KEY`, or else from the file that `TSIG_KEY_FILE` names. Returns
/// `None` if neither variable is set.
pub fn key_here() -> Result<Option<Key>, String> {
    let (variable, text) = match (env::var(KEY), env::var(KEY_FILE)) {
        (Ok(text), _) => (KEY, text),
        (_, Ok(path)) => {
            let text = fs::read_to_string(&path).map_err(|error| format!("${KEY_FILE}, {path}: {error}"))?;
            (KEY_FILE, text)
        }
        _ => return Ok(None),
    };
    Key::parse(&text).map(Some).map_err(|error| format!("${variable}: {error}"))
}
