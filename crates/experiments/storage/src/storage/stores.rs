//! The stores to measure: the stores of the source, emulated within this process, and the user's stores at addresses.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use ascertain_engine::experiment::TargetError;
use ascertain_experiments_networks::links::failed;
use ascertain_netlab::store::{RunningStore, Store as Serving};
use ascertain_transfer::{Environment, Options, Store, crc64};

use super::{Operation, emulated};

/// Time until an unused connection is closed. It is longer than every `gap_ms`, because a connection that is kept must
/// not be opened again. If the server closes it, the metric `reopened` shows this.
const KEPT: Duration = Duration::from_secs(3_600);
/// The bucket of an emulated store.
const BUCKET: &str = "bucket";
/// The beginnings of the addresses of stores. In an address with an endpoint, the host and port of the endpoint follow.
pub const SCHEMES: [&str; 11] = [
    "s3://",
    "az://",
    "gs://",
    "http://",
    "https://",
    "s3+http://",
    "s3+https://",
    "az+http://",
    "az+https://",
    "gs+http://",
    "gs+https://",
];

/// A store, and the prefix of the objects that are written to it.
#[derive(Debug)]
pub struct TargetStore {
    /// The name in results: the name of an emulated store, or the address.
    pub name: String,
    pub store: Arc<dyn Store>,
    /// The prefix of the address, with a slash at its end unless it is empty.
    pub prefix: String,
    /// The server of an emulated store, which ends when this value is dropped; `None` for a store at an address.
    serving: Option<Running>,
}

struct Running(RunningStore);

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RunningStore")
    }
}

impl TargetStore {
    /// Opens the store with this name or address. With the same `seed`, stores with different names draw unrelated
    /// times.
    pub fn open(
        name: &str,
        operation: Operation,
        (scale, seed): (u64, u64),
        environment: &Environment,
    ) -> Result<Self, TargetError> {
        match emulated::figures(name, operation) {
            Some(figures) => {
                let service = Some(figures.service(scale));
                let seed = seed ^ crc64(name.as_bytes());
                let buckets = vec![BUCKET.into()];
                let serving = Serving { service, seed, buckets, smallest_part_bytes: 1, ..Serving::s3() };
                let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
                Self::emulated(name, serving.start(listener, None).map_err(failed)?)
            }
            None => Self::at_address(name, environment).map_err(TargetError::Failed),
        }
    }

    /// Opens a store within this process.
    fn emulated(name: &str, running: RunningStore) -> Result<Self, TargetError> {
        let Serving { account, secret, .. } = running.store();
        let variables = [("AWS_ACCESS_KEY_ID", account), ("AWS_SECRET_ACCESS_KEY", secret)];
        let options = Options {
            environment: variables.into_iter().collect(),
            endpoint_url: Some(running.url()),
            kept: Some(KEPT),
            ..Options::default()
        };
        let location = ascertain_transfer::open(&format!("s3://{BUCKET}/"), &options).map_err(failed)?;
        Ok(Self { name: name.into(), store: location.store, prefix: String::new(), serving: Some(Running(running)) })
    }

    /// Opens the store at an address. Takes credentials from the environment, as `ascertain put` does.
    ///
    /// # Errors
    /// Returns the reason, for the user, if the address is invalid or credentials are missing.
    pub fn at_address(address: &str, environment: &Environment) -> Result<Self, String> {
        let (url, endpoint_url) = split_endpoint(address)?;
        let environment = environment.clone();
        let options = Options { environment, endpoint_url, kept: Some(KEPT), ..Options::default() };
        let location = ascertain_transfer::Location::open(url.as_ref(), &options).map_err(|error| error.to_string())?;
        let prefix = match &*location.name {
            "" => String::new(),
            name => format!("{}/", name.trim_end_matches('/')),
        };
        if prefix.contains(char::is_control) {
            return Err(format!("{address}: the prefix contains a control character; choose another prefix"));
        }
        Ok(Self { name: address.into(), store: location.store, prefix, serving: None })
    }

    /// Opens the same store through a proxy on this machine.
    ///
    /// # Errors
    /// Returns the reason, for the user, if the address has no endpoint with `http`, because the proxy cannot read TLS.
    pub fn through<T>(
        &self,
        environment: &Environment,
        start: impl FnOnce(SocketAddr) -> std::io::Result<(SocketAddr, T)>,
    ) -> Result<(Self, T), String> {
        let needs_plain = || format!("{}: a fault check needs an address such as s3+http://HOST/BUCKET", self.name);
        let (address, variables) = match &self.serving {
            Some(Running(running)) => {
                let Serving { account, secret, .. } = running.store();
                let variables = [("AWS_ACCESS_KEY_ID", account), ("AWS_SECRET_ACCESS_KEY", secret)];
                (format!("s3+http://{}/{BUCKET}", running.address()), variables.into_iter().collect())
            }
            None => (self.name.clone(), environment.clone()),
        };
        let (scheme, rest) = address.split_once("+http://").ok_or_else(needs_plain)?;
        let (host, path) = rest.split_once('/').ok_or_else(needs_plain)?;
        let host = if host.contains(':') { host.to_string() } else { format!("{host}:80") };
        let target = host.to_socket_addrs().map_err(|error| format!("{host}: {error}"))?.next();
        let target = target.ok_or_else(|| format!("{host} has no address"))?;
        let (proxy, started) = start(target).map_err(|error| format!("the proxy could not be started: {error}"))?;
        Ok((Self::at_address(&format!("{scheme}+http://{proxy}/{path}"), &variables)?, started))
    }

    /// Returns the URL of the bucket or container, with the endpoint and the account, and without secrets.
    pub fn base(&self) -> String {
        self.store.base_url().unwrap_or_default()
    }

    pub fn is_emulated(&self) -> bool {
        self.serving.is_some()
    }

    /// Returns whether objects can be written to the store. An HTTP server can only be read.
    pub fn is_writable(&self) -> bool {
        self.store.limits().max_put_bytes > 0
    }

    /// Returns the content of an object in an emulated store.
    #[cfg(test)]
    pub fn object(&self, key: &str) -> Option<Vec<u8>> {
        self.serving.as_ref()?.0.object(BUCKET, key)
    }
}

/// Splits an address with an endpoint, such as `s3+http://HOST:PORT/BUCKET/PREFIX`, into `s3://BUCKET/PREFIX` and
/// `http://HOST:PORT`. For Azure, the account is a part of the endpoint.
///
/// # Errors
/// Returns the reason, for the user, if a part is missing.
pub fn split_endpoint(address: &str) -> Result<(String, Option<String>), String> {
    let Some((scheme, rest)) = address.split_once("://") else {
        return Err(format!("`{address}` is not an address; it must begin with {}", SCHEMES.join(" or ")));
    };
    let Some((store, transport)) = scheme.split_once('+') else { return Ok((address.into(), None)) };
    if !SCHEMES.contains(&&*format!("{scheme}://")) {
        return Err(format!("`{address}` must begin with {}", SCHEMES.join(" or ")));
    }
    let parts: Vec<&str> = rest.splitn(if store == "az" { 3 } else { 2 }, '/').collect();
    match (store, &parts[..]) {
        ("az", [host, account, container]) if !container.is_empty() => {
            Ok((format!("az://{container}"), Some(format!("{transport}://{host}/{account}"))))
        }
        ("s3" | "gs", [host, bucket]) if !bucket.is_empty() => {
            Ok((format!("{store}://{bucket}"), Some(format!("{transport}://{host}"))))
        }
        ("az", _) => Err(format!("`{address}`: expected {scheme}://HOST/ACCOUNT/CONTAINER/PREFIX")),
        _ => Err(format!("`{address}`: expected {scheme}://HOST/BUCKET/PREFIX")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_name_its_endpoint() {
        let split = |address: &str| split_endpoint(address);
        let is = |url: &str, endpoint: &str| Ok((url.to_string(), Some(endpoint.to_string())));
        assert_eq!(split("s3://b/p"), Ok(("s3://b/p".into(), None)));
        assert_eq!(split("s3+http://127.0.0.1:9000/b/p/q"), is("s3://b/p/q", "http://127.0.0.1:9000"));
        assert_eq!(split("az+http://h:1/account/box/p"), is("az://box/p", "http://h:1/account"));
        for wrong in ["b/p", "s3+ftp://h/b", "s3+http://h", "s3+http://h/", "az+http://h/account"] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_store_of_the_source_opens() {
        for (name, ..) in &emulated::STORES {
            let store = TargetStore::open(name, Operation::Download, (10, 1), &Environment::default()).unwrap();
            assert!(store.is_emulated() && store.is_writable());
            assert_eq!(store.object("none"), None);
        }
    }
}
