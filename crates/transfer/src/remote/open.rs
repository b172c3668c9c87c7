//! From an address to the store that it names.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use percent_encoding::percent_decode_str;

use super::address::{Address, shown};
use super::azure::Container;
use super::client::Client;
use super::connect::fatal;
use super::credentials::{self, AzureHints};
use super::dialect::Dialect;
use super::http::Web;
use super::ini::Profile;
use super::s3::Bucket;
use super::site::Site;
use crate::{Failure, Found, Reached};

/// The environment variables that credentials, certificates and proxies are found by, as they are given: a test has its
/// own, and none is looked up behind anybody's back. Its `Debug` has names only.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Those of this process. What is not Unicode is left out.
    #[must_use]
    pub fn of_process() -> Self {
        let unicode =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        unicode.collect()
    }

    /// The first of these that is set to something.
    pub(super) fn first(&self, names: &[&str]) -> Option<&str> {
        let values = names.iter().filter_map(|name| self.0.get(*name));
        values.map(|value| value.trim()).find(|value| !value.is_empty())
    }

    /// A file in the home folder.
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

/// Makes sockets for TCP to addresses like the one that it is given.
pub type Sockets = Arc<dyn Fn(&SocketAddr) -> io::Result<OwnedFd> + Send + Sync>;

/// What is known of stores beside an address.
#[derive(Clone)]
pub struct Options {
    /// Where credentials, proxies and certificates are looked up.
    pub environment: Environment,
    /// Where the store is, if not where its cloud has it.
    pub endpoint_url: Option<String>,
    /// S3: the region.
    pub region: Option<String>,
    /// S3: the profile of `~/.aws`.
    pub profile: Option<String>,
    /// S3: whether the bucket is put in front of the endpoint's host rather than behind it.
    pub virtual_hosted: bool,
    /// No credentials, for what is everybody's.
    pub anonymous: bool,
    /// Whether a cloud's machine may be asked for credentials at its metadata address.
    pub metadata: bool,
    /// Whether we pay for what we read from S3 and GCS; GCS takes the project from `GOOGLE_CLOUD_PROJECT`.
    pub requester_pays: bool,
    /// How long nothing may move before a request is given up.
    pub patience: Duration,
    /// Where sockets come from, if they are not simply made: those of another network namespace, or bound to a device.
    pub sockets: Option<Sockets>,
}

impl Default for Options {
    /// No environment, and a minute of patience.
    fn default() -> Self {
        Self {
            environment: Environment::default(),
            endpoint_url: None,
            region: None,
            profile: None,
            virtual_hosted: false,
            anonymous: false,
            metadata: false,
            requester_pays: false,
            patience: Duration::from_secs(60),
            sockets: None,
        }
    }
}

impl Options {
    /// Refuses an option that means nothing to what an address names: a store, or a file.
    ///
    /// # Errors
    /// [`Kind::Fatal`](crate::Kind::Fatal), with the option and the store.
    pub fn fit(&self, url: &str) -> Result<(), Failure> {
        let (store, known): (&str, &[&str]) = match url.split_once("://") {
            Some(("s3", _)) => return Ok(()),
            Some(("gs", _)) => ("gs://", &["--endpoint-url", "--anonymous", "--metadata", "--requester-pays"]),
            Some(("az", _)) => ("az://", &["--endpoint-url", "--anonymous", "--metadata"]),
            Some(("https", _)) if account(url).is_some() => {
                ("an address of Azure's, which says where its store is", &["--anonymous", "--metadata"])
            }
            Some(("http" | "https", _)) => ("http[s]://", &["--anonymous"]),
            Some(("file", _)) | None => ("a file", &[]),
            // What it names is none of these.
            Some(_) => return Ok(()),
        };
        let given = [
            ("--endpoint-url", self.endpoint_url.is_some()),
            ("--region", self.region.is_some()),
            ("--profile", self.profile.is_some()),
            ("--virtual-hosted", self.virtual_hosted),
            ("--anonymous", self.anonymous),
            ("--metadata", self.metadata),
            ("--requester-pays", self.requester_pays),
        ];
        match given.into_iter().find(|(option, is_given)| *is_given && !known.contains(option)) {
            Some((option, _)) => Err(fatal(format!("{option} means nothing to {store}: leave it out"))),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("environment", &self.environment)
            .field("endpoint_url", &self.endpoint_url.as_deref().map(shown))
            .field("region", &self.region)
            .field("profile", &self.profile)
            .field("virtual_hosted", &self.virtual_hosted)
            .field("anonymous", &self.anonymous)
            .field("metadata", &self.metadata)
            .field("requester_pays", &self.requester_pays)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

/// The store that an address names, and the name in it: `s3://BUCKET/NAME`, `gs://BUCKET/NAME`, `az://CONTAINER/NAME`,
/// `https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME` with or without a SAS, and any other `http[s]://` address,
/// which can only be read: there the name is the path. Nothing is asked over the network yet. Connections are
/// kept with the store: who moves many objects opens it once.
///
/// # Errors
/// [`Kind::Fatal`](crate::Kind::Fatal) for what is no such address, and for options that mean nothing to it;
/// [`Kind::Denied`](crate::Kind::Denied) where credentials are missing or can't be used.
pub fn open(url: &str, options: &Options) -> Result<Found, Failure> {
    let shown = shown(url);
    opened(url, &shown, options).map_err(|failure| Failure { said: format!("{shown}: {}", failure.said), ..failure })
}

fn opened(url: &str, shown: &str, options: &Options) -> Result<Found, Failure> {
    // Requests are dated, and signed with their date.
    if SystemTime::now() < UNIX_EPOCH {
        return Err(fatal("the clock of this machine shows a time before 1970".into()));
    }
    // What names no store is refused below, with what does.
    if url.contains("://") {
        options.fit(url)?;
    }
    let client = Client::new(options)?;
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let (first, name) = rest.split_once('/').unwrap_or((rest, ""));
    let found = |store, name: &str| {
        // Names are added to it.
        let end = if name.is_empty() && !shown.ends_with('/') { "/" } else { "" };
        Ok(Found { store, name: name.into(), shown: format!("{shown}{end}") })
    };
    match scheme {
        "s3" | "gs" | "az" if !is_bucket(first) => Err(fatal(format!("it has no bucket: {scheme}://BUCKET/NAME"))),
        "s3" => found(Box::new(s3(first, options, client)?), name),
        "gs" => found(Box::new(google(first, options, client)?), name),
        "az" => found(Box::new(azure(first, AzureHints::default(), options, client)?), name),
        "http" | "https" => {
            let address = Address::parse(url)?;
            let Some((account, path)) = account(&address.base) else {
                let path = address.base.splitn(4, '/').nth(3).unwrap_or_default();
                let name = percent_decode_str(path).decode_utf8_lossy().into_owned();
                return found(Box::new(Web::new(address, client)?), &name);
            };
            let (container, name) = path.split_once('/').unwrap_or((path, ""));
            if !is_bucket(container) {
                return Err(fatal("it has no container: https://ACCOUNT.blob.core.windows.net/CONTAINER/NAME".into()));
            }
            let name = percent_decode_str(name).decode_utf8_lossy();
            let endpoint = address.base.strip_suffix(path).map(|base| base.trim_end_matches('/').to_string());
            let hints = AzureHints { account: Some(account.into()), endpoint, sas: address.query.clone() };
            found(Box::new(azure(container, hints, options, client)?), &name)
        }
        _ => Err(fatal("an address begins with s3://, gs://, az://, https:// or http://".into())),
    }
}

/// Whether a bucket or container can be called this; what else it must be like is the store's to say.
fn is_bucket(name: &str) -> bool {
    let fits = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.$".contains(&byte));
    fits && name.bytes().any(|byte| byte.is_ascii_alphanumeric())
}

/// Where Azure keeps accounts: credentials are for these alone, and not for whoever has a name that looks like it.
const CLOUDS: [&str; 4] =
    ["blob.core.windows.net", "blob.core.chinacloudapi.cn", "blob.core.usgovcloudapi.net", "blob.core.cloudapi.de"];

/// The account and the path of an address of Azure's blobs.
fn account(base: &str) -> Option<(&str, &str)> {
    let (host, path) = base.strip_prefix("https://")?.split_once('/')?;
    let (account, rest) = host.split_once('.')?;
    (CLOUDS.contains(&rest) && !account.is_empty()).then_some((account, path))
}

/// The region that is asked for, or named elsewhere.
pub fn aws_region<'a>(options: &'a Options, profile: &'a Profile) -> &'a str {
    let named = options.environment.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]);
    options.region.as_deref().or(named).or_else(|| profile.get("region")).unwrap_or("us-east-1")
}

/// Where a store is said to be.
fn endpoint_at(text: &str) -> Result<Address, Failure> {
    let form = "http[s]://HOST[:PORT][/PATH]";
    Address::parse(text).map_err(|_| fatal(format!("the endpoint `{}` is not of the form {form}", shown(text))))
}

fn s3(bucket: &str, options: &Options, client: Client) -> Result<Bucket, Failure> {
    let environment = &options.environment;
    let profile = Profile::read(options.profile.as_deref(), environment)?;
    let region = aws_region(options, &profile);
    let endpoint = options.endpoint_url.as_deref();
    let endpoint = endpoint.or_else(|| environment.first(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]));
    let endpoint = endpoint.or_else(|| profile.get("endpoint_url")).map(endpoint_at).transpose()?;
    let style = profile.get("addressing_style");
    let (endpoint, virtual_hosted) = match endpoint {
        Some(endpoint) => (endpoint.trimmed().to_string(), options.virtual_hosted || style == Some("virtual")),
        // With a dot in it a bucket is no name that a certificate covers.
        None => (format!("https://s3.{region}.amazonaws.com"), !bucket.contains('.') && style != Some("path")),
    };
    let base = match virtual_hosted {
        true => endpoint.replacen("://", &format!("://{bucket}."), 1),
        false => format!("{endpoint}/{bucket}"),
    };
    let region = region.to_string();
    let reached = Reached {
        region: Some(region.clone()),
        profile: options.profile.clone(),
        virtual_hosted,
        ..reached(endpoint, options)
    };
    let keys = credentials::aws(options, &profile, "s3", &region, &client)?;
    let words = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile";
    let sums = environment.first(&["AWS_REQUEST_CHECKSUM_CALCULATION"]);
    // What AWS' own tools call it when a store knows nothing newer than MD5.
    let is_old = sums.or_else(|| profile.get("request_checksum_calculation")) == Some("when_required");
    let dialect = if is_old { Dialect::OldS3 } else { Dialect::S3 };
    let payer = options.requester_pays.then(|| ("x-amz-request-payer", "requester".into()));
    let site = Site::new(client, &base, format!("s3://{bucket}"), keys, words)?;
    Ok(Bucket::new(site, dialect, payer.into_iter().collect(), reached))
}

fn google(bucket: &str, options: &Options, client: Client) -> Result<Bucket, Failure> {
    let endpoint = options.endpoint_url.as_deref().unwrap_or("https://storage.googleapis.com");
    let endpoint = endpoint_at(endpoint)?.trimmed().to_string();
    let base = format!("{endpoint}/{bucket}");
    let keys = credentials::google(options, &client)?;
    let project = options.environment.first(&["GOOGLE_CLOUD_PROJECT"]).map(String::from);
    if options.requester_pays && project.is_none() {
        return Err(fatal("who pays? Name the project in GOOGLE_CLOUD_PROJECT".into()));
    }
    // What is kept packed would be unpacked for those who don't say that they can do it.
    let mut headers = vec![("accept-encoding", "gzip".into())];
    headers.extend(project.filter(|_| options.requester_pays).map(|project| ("x-goog-user-project", project)));
    let words = "what GOOGLE_APPLICATION_CREDENTIALS names";
    let site = Site::new(client, &base, format!("gs://{bucket}"), keys, words)?;
    Ok(Bucket::new(site, Dialect::Google, headers, reached(endpoint, options)))
}

fn reached(endpoint: String, options: &Options) -> Reached {
    let &Options { anonymous, requester_pays, .. } = options;
    Reached { endpoint_url: Some(endpoint), anonymous, requester_pays, ..Reached::default() }
}

fn azure(container: &str, hints: AzureHints, options: &Options, client: Client) -> Result<Container, Failure> {
    let account = credentials::azure(hints, options, &client)?;
    let base = format!("{}/{container}", endpoint_at(&account.endpoint)?.trimmed());
    let words = "AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or the connection string";
    Ok(Container::new(Site::new(client, &base, format!("az://{container}"), account.keys, words)?))
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
