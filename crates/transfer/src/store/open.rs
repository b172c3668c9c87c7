//! Opens the store that an address names.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use percent_encoding::percent_decode_str;

use super::Result;
use super::address::{Address, shown};
use super::aws;
use super::azure::{Container, VERSION};
use super::client::Client;
use super::credentials::{self, AzureHints};
use super::dialect::Dialect;
use super::http::WebFile;
use super::profile::Profile;
use super::s3::Bucket;
use super::transport::Transport;
use crate::{Error, Failure, Kind, Location, Store, StoreLocation};

/// The environment variables that are read for credentials, certificates and proxies. The caller passes them, so that
/// tests can set their own. `Debug` shows the names of the variables, but not their values.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Returns the variables of this process. Variables that are not Unicode are omitted.
    #[must_use]
    pub fn from_process() -> Self {
        let unicode =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        unicode.collect()
    }

    /// Returns the value of the first variable in `names` that is set and not empty; `None` if there is none.
    pub(super) fn first(&self, names: &[&str]) -> Option<&str> {
        let values = names.iter().filter_map(|name| self.0.get(*name));
        values.map(|value| value.trim()).find(|value| !value.is_empty())
    }

    /// Returns `path` below the user's home folder; `None` if the environment does not name this folder.
    pub(super) fn home(&self, path: &str) -> Option<PathBuf> {
        Some(PathBuf::from(self.first(&["HOME", "USERPROFILE"])?).join(path))
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A function that creates the socket for a TCP connection to the given address.
pub type Sockets = Arc<dyn Fn(&SocketAddr) -> io::Result<OwnedFd> + Send + Sync>;

/// The settings that are needed, in addition to an address, to reach a store.
#[derive(Clone, Default)]
pub struct Options {
    /// The environment variables with credentials, proxies and certificates.
    pub environment: Environment,
    /// URL of the endpoint. `None` means the usual endpoint of the cloud.
    pub endpoint_url: Option<String>,
    /// The region for S3. By default, the environment or the profile determines it, or else it is `us-east-1`.
    pub region: Option<String>,
    /// The profile in `~/.aws` whose credentials and settings are used for S3.
    pub profile: Option<String>,
    /// `true` if the name of the bucket is part of the host name (`BUCKET.HOST`), for S3. By default, it is part of the
    /// path.
    pub virtual_hosted: bool,
    /// `true` to send requests without credentials, for public objects.
    pub anonymous: bool,
    /// `true` to permit getting credentials from the metadata address of a cloud's machine.
    pub machine_credentials: bool,
    /// `true` if the caller pays for reading, instead of the owner of the bucket (S3 and GCS). For GCS,
    /// `GOOGLE_CLOUD_PROJECT` names the project that pays.
    pub requester_pays: bool,
    /// Time without progress after which a request fails; one minute by default.
    pub timeout: Option<Duration>,
    /// Time until an unused connection is closed; four seconds by default.
    pub kept: Option<Duration>,
    /// Maximum number of connections that are open at the same time; unlimited by default.
    pub max_connections: Option<usize>,
    /// A function that creates the sockets of all connections, for example in another network namespace. By default,
    /// they are ordinary sockets.
    pub sockets: Option<Sockets>,
}

impl Options {
    /// Checks that all options that are set apply to the store or file that `url` names. The error contains `address`.
    ///
    /// # Errors
    /// Returns [`Error::UnsupportedOption`] for the first option that does not apply.
    pub fn check(&self, url: &str, address: &str) -> Result<(), Error> {
        let (store, known): (&str, &[&str]) = match url.split_once("://") {
            Some(("s3", _)) => return Ok(()),
            Some(("gs", _)) => ("gs://", &["endpoint_url", "anonymous", "machine_credentials", "requester_pays"]),
            Some(("az", _)) => ("az://", &["endpoint_url", "anonymous", "machine_credentials"]),
            Some(("https", _)) if account(url).is_some() => {
                ("an Azure address, which contains the endpoint", &["anonymous", "machine_credentials"])
            }
            Some(("http" | "https", _)) => ("http[s]://", &["anonymous"]),
            Some(("file", _)) | None => ("a file", &[]),
            // An unknown scheme is accepted here, because opening the store reports it.
            Some(_) => return Ok(()),
        };
        let given = [
            ("endpoint_url", self.endpoint_url.is_some()),
            ("region", self.region.is_some()),
            ("profile", self.profile.is_some()),
            ("virtual_hosted", self.virtual_hosted),
            ("anonymous", self.anonymous),
            ("machine_credentials", self.machine_credentials),
            ("requester_pays", self.requester_pays),
        ];
        match given.into_iter().find(|(option, is_given)| *is_given && !known.contains(option)) {
            Some((option, _)) => Err(Error::UnsupportedOption { address: address.into(), option, store }),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("environment", &self.environment)
            .field("endpoint_url", &self.endpoint_url.as_deref().map(shown))
            .finish_non_exhaustive()
    }
}

/// Opens the store that an address names. The returned location also contains the object's name from the address.
///
/// - `s3://BUCKET/NAME`
/// - `gs://BUCKET/NAME`
/// - `az://CONTAINER/NAME`
/// - `https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME`, with or without a SAS
/// - any other `http[s]://` address, which can only be read; the name is the path
///
/// Sends no request. The store keeps its connections, so open it only once for several objects.
///
/// # Errors
/// Returns [`Error::Request`] if the address has another form, or [`Error::UnsupportedOption`] if an option does not
/// apply. Returns [`Error::NoCredentials`] if credentials are missing or can't be used.
pub fn open(url: &str, options: &Options) -> Result<Location, Error> {
    let shown = shown(url);
    // A text that is not an address causes the error at the end of this function.
    if url.contains("://") {
        options.check(url, &shown)?;
    }
    match open_store(url, options) {
        Ok((store, name)) => {
            // The address ends with a slash, because names will be appended to it.
            let end = if name.is_empty() && !shown.ends_with('/') { "/" } else { "" };
            Ok(Location { store, name, address: format!("{shown}{end}") })
        }
        Err(failure) if failure.kind == Kind::Denied && !options.anonymous => {
            Err(Error::NoCredentials(failure.about(&shown)))
        }
        Err(failure) => Err(Error::Request(failure.about(&shown).message)),
    }
}

fn open_store(url: &str, options: &Options) -> Result<(Arc<dyn Store>, String)> {
    // Signing would fail for a time before 1970, because the signature covers the date.
    if SystemTime::now() < UNIX_EPOCH {
        return Err(Failure::fatal("the clock of this machine shows a time before 1970"));
    }
    let transport = Transport::new(options);
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let (first, name) = rest.split_once('/').unwrap_or((rest, ""));
    let store: Arc<dyn Store> = match scheme {
        "s3" | "gs" | "az" if !is_bucket(first) => {
            return Err(Failure::fatal(format!("the bucket is missing; expected {scheme}://BUCKET/NAME")));
        }
        "s3" => Arc::new(s3(first, options, transport)?),
        "gs" => Arc::new(google(first, options, transport)?),
        "az" => Arc::new(azure(first, AzureHints::default(), options, transport)?),
        "http" | "https" => return open_web(&Address::parse(url)?, options, transport),
        _ => return Err(Failure::fatal("expected an address with s3://, gs://, az://, https:// or http://")),
    };
    Ok((store, name.into()))
}

fn open_web(address: &Address, options: &Options, transport: Transport) -> Result<(Arc<dyn Store>, String)> {
    let decoded = |name: &str| percent_decode_str(name).decode_utf8_lossy().into_owned();
    let Some((account, path)) = account(&address.base) else {
        let name = decoded(address.base.splitn(4, '/').nth(3).unwrap_or_default());
        return Ok((Arc::new(WebFile::new(address.clone(), transport)), name));
    };
    let (container, name) = path.split_once('/').unwrap_or((path, ""));
    if !is_bucket(container) {
        return Err(Failure::fatal(
            "the container is missing; expected https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME",
        ));
    }
    let endpoint = address.base.strip_suffix(path).map(|base| base.trim_end_matches('/').to_string());
    let hints = AzureHints { account: Some(account.into()), endpoint, sas: address.query.clone() };
    Ok((Arc::new(azure(container, hints, options, transport)?), decoded(name)))
}

/// Returns whether a name may be the name of a bucket or container. Checks only a few rules; the store checks all of
/// them.
fn is_bucket(name: &str) -> bool {
    let fits = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.$".contains(&byte));
    fits && name.bytes().any(|byte| byte.is_ascii_alphanumeric())
}

/// The domains of Azure's storage accounts. Credentials are sent only to these, and not to domains with similar names.
const CLOUDS: [&str; 4] =
    ["blob.core.windows.net", "blob.core.chinacloudapi.cn", "blob.core.usgovcloudapi.net", "blob.core.cloudapi.de"];

/// Splits the address of an Azure blob into the storage account and the path. `None` for other addresses.
fn account(base: &str) -> Option<(&str, &str)> {
    let (host, path) = base.strip_prefix("https://")?.split_once('/')?;
    let (account, rest) = host.split_once('.')?;
    (CLOUDS.contains(&rest) && !account.is_empty()).then_some((account, path))
}

/// Parses the endpoint of a store or service.
pub fn parse_endpoint(text: &str) -> Result<Address> {
    let form = "http[s]://HOST[:PORT][/PATH]";
    Address::parse(text)
        .map_err(|_| Failure::fatal(format!("the endpoint `{}` is not of the form {form}", shown(text))))
}

fn s3(bucket: &str, options: &Options, transport: Transport) -> Result<Bucket> {
    let environment = &options.environment;
    let profile = Profile::read(options.profile.as_deref(), environment)?;
    let region = aws::region(options, &profile).to_string();
    let endpoint = options.endpoint_url.as_deref().or_else(|| aws::endpoint(environment, &profile, "s3"));
    let endpoint = endpoint.map(parse_endpoint).transpose()?;
    let style = profile.get("s3.addressing_style");
    let (endpoint, virtual_hosted) = match endpoint {
        Some(endpoint) => (endpoint.trimmed().to_string(), options.virtual_hosted || style == Some("virtual")),
        // AWS's certificate does not cover a host name that contains a bucket name with a dot.
        None => {
            (format!("https://s3.{region}.{}", aws::domain(&region)), !bucket.contains('.') && style != Some("path"))
        }
    };
    let base = match virtual_hosted {
        true => endpoint.replacen("://", &format!("://{bucket}."), 1),
        false => format!("{endpoint}/{bucket}"),
    };
    let keys = aws::keys(options, &profile, "s3", &region, &transport)?;
    let location = StoreLocation {
        region: Some(region.clone()),
        profile: options.profile.clone(),
        virtual_hosted,
        ..location(endpoint, options)
    };
    let words = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile";
    let sums = environment.first(&["AWS_REQUEST_CHECKSUM_CALCULATION"]);
    // In AWS's own tools, users choose this setting for stores that support only MD5 checksums.
    let is_old = sums.or_else(|| profile.get("request_checksum_calculation")) == Some("when_required");
    let dialect = if is_old { Dialect::OldS3 } else { Dialect::S3 };
    let payer = options.requester_pays.then(|| ("x-amz-request-payer", "requester".into()));
    let headers = payer.into_iter().collect();
    let client = Client::new(transport, &base, format!("s3://{bucket}"), headers, (keys, words))?;
    let client = client.in_region(region);
    Ok(Bucket::new(client, dialect, location))
}

fn google(bucket: &str, options: &Options, transport: Transport) -> Result<Bucket> {
    let endpoint = options.endpoint_url.as_deref().unwrap_or("https://storage.googleapis.com");
    let endpoint = parse_endpoint(endpoint)?.trimmed().to_string();
    let base = format!("{endpoint}/{bucket}");
    let keys = credentials::google(options, &transport)?;
    let project = options.environment.first(&["GOOGLE_CLOUD_PROJECT"]).map(String::from);
    if options.requester_pays && project.is_none() {
        return Err(Failure::fatal(
            "requests that the caller pays for need a billing project; set GOOGLE_CLOUD_PROJECT",
        ));
    }
    // Without this header, GCS would decompress objects that are stored in compressed form.
    let mut headers = vec![("accept-encoding", "gzip".into())];
    headers.extend(project.filter(|_| options.requester_pays).map(|project| ("x-goog-user-project", project)));
    let words = "the file that GOOGLE_APPLICATION_CREDENTIALS names";
    let client = Client::new(transport, &base, format!("gs://{bucket}"), headers, (keys, words))?;
    Ok(Bucket::new(client, Dialect::Google, location(endpoint, options)))
}

fn location(endpoint: String, options: &Options) -> StoreLocation {
    let &Options { anonymous, requester_pays, .. } = options;
    StoreLocation { endpoint_url: Some(endpoint), anonymous, requester_pays, ..StoreLocation::default() }
}

fn azure(container: &str, hints: AzureHints, options: &Options, transport: Transport) -> Result<Container> {
    let account = credentials::azure(hints, options, &transport)?;
    let base = format!("{}/{container}", parse_endpoint(&account.endpoint)?.trimmed());
    let words = "AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or the connection string";
    let headers = vec![(VERSION.0, VERSION.1.into())];
    let client = Client::new(transport, &base, format!("az://{container}"), headers, (account.keys, words))?;
    Ok(Container::new(client))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_at_azure_and_nowhere_else() {
        assert_eq!(account("https://acc.blob.core.windows.net/box/name"), Some(("acc", "box/name")));
        for other in [
            "https://acc.blob.core.example.com/box/name",
            "https://acc.blob.core.windows.net.example.com/box/name",
            "https://acc.blob.core.windows.net:8443/box/name",
            "https://.blob.core.windows.net/box/name",
            "http://acc.blob.core.windows.net/box/name",
        ] {
            assert_eq!(account(other), None, "{other}");
        }
    }
}
