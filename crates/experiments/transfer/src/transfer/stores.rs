//! The stores of the experiment: our own store behind an emulated link, or another store at an address.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, Level, Point, TargetError, Unavailable};
use ascertain_experiments_networks::links::{self, facts, failed};
use ascertain_netlab::model::{Conditions, TokenBucket};
use ascertain_netlab::store::{Dialect, RunningStore, Store as Serving};
use ascertain_netlab::{Link, RunningLink};
use ascertain_transfer::{Environment, Error, Location, Options, Sockets};
use rustix::net::SocketType;

use super::{BLOCKS, GCS, OURS, S3};

const PORT: u16 = 10_000;
const BUCKET: &str = "bucket";
/// Minimum size in bytes of the queue of an emulated link, if all its connections share one rate.
const FEWEST_BYTES: u64 = 30_000;
/// Smallest size in bytes of a block that S3 and GCS accept. The last block may be smaller.
const LEAST_PART_BYTES: u64 = 5 << 20;
/// The factors whose levels determine a store. Arms with the same levels of these factors share a store.
const FACTORS: [&str; 8] = ["scale", "rtt_ms", "rate_kb_s", "sum_mbit_s", "burst", "loss_percent", "speaks", "url"];

/// Returns the arm's levels of [`FACTORS`], which determine its store.
pub fn store_point(arm: &Arm) -> Point {
    arm.point.only(|factor, _| FACTORS.contains(&factor.as_str()))
}

fn url(arm: &Arm) -> Option<String> {
    arm.point.get("url").map(Level::to_string).filter(|url| url != OURS)
}

/// Returns the factor by which the arm's sizes and times are reduced. It is 1 if the store is not our own.
pub fn scale(arm: &Arm) -> Result<u64, TargetError> {
    if url(arm).is_some() { Ok(1) } else { arm.integer("scale") }
}

/// Returns the arm's level of `factor` (`size` or `block`) in bytes, divided by the scale.
pub fn scaled(arm: &Arm, factor: &str) -> Result<u64, TargetError> {
    Ok(arm.integer(factor)?.div_ceil(scale(arm)?))
}

fn dialect(arm: &Arm) -> Dialect {
    match arm.point.get("speaks").map(Level::to_string).as_deref() {
        Some(S3) => Dialect::S3,
        Some(GCS) => Dialect::Gcs,
        _ => Dialect::Azure,
    }
}

/// Checks that the store accepts the arm's block size, and that the link can be emulated.
pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    let url = url(arm);
    let is_azure = url.as_ref().map_or(dialect(arm) == Dialect::Azure, |url| url.starts_with("az://"));
    let scaled = |factor| scaled(arm, factor).map_err(Unavailable::other);
    if arm.variant == BLOCKS && !is_azure && scaled("block")? < LEAST_PART_BYTES.min(scaled("size")?) {
        return Err(Unavailable::levels(
            "S3 and GCS require at least 5 MiB for all blocks except the last one; use Azure for smaller blocks",
        ));
    }
    let is_some = |factor| arm.integer(factor).is_ok_and(|level| level > 0);
    if is_some("burst") && !is_some("sum_mbit_s") {
        return Err(Unavailable::levels("`burst` has no effect without `sum_mbit_s`, which is 0"));
    }
    let needs_link = url.is_none() && (is_some("sum_mbit_s") || is_some("loss_percent"));
    if needs_link { links::is_available(&Link::default()) } else { Ok(()) }
}

/// A store, and the settings to reach it.
pub struct TargetStore {
    url: String,
    options: Options,
    /// Our own store; dropping this value stops it. `None` for another store.
    pub serving: Option<RunningStore>,
    /// The link to our own store. `None` for another store, or if this machine cannot emulate links.
    pub link: Option<Arc<RunningLink>>,
    /// Time that the link's token bucket needs to refill after a transfer. The session waits this long before the next
    /// transfer.
    pub refill: Duration,
}

impl TargetStore {
    /// Opens the store that the levels of an arm describe.
    pub fn new(arm: &Arm) -> Result<Self, TargetError> {
        if let Some(url) = url(arm) {
            let options = Options { environment: Environment::from_process(), ..Options::default() };
            return Ok(Self::elsewhere(url, options));
        }
        Self::ours(arm, links::is_available(&Link::default()).is_ok())
    }

    /// Creates the target for a store other than our own, at the address `url`.
    pub fn elsewhere(url: String, options: Options) -> Self {
        Self { url, options, serving: None, link: None, refill: Duration::ZERO }
    }

    /// Starts our own store. If `has_link`, the store is behind an emulated link. Otherwise the store itself delays its
    /// answers.
    pub fn ours(arm: &Arm, has_link: bool) -> Result<Self, TargetError> {
        let rtt = Duration::from_millis(arm.integer("rtt_ms")?) / scale(arm)? as u32;
        let bytes_per_s = Some(arm.integer("rate_kb_s")? * 1_000).filter(|rate| *rate > 0);
        let dialect = dialect(arm);
        let like = match dialect {
            Dialect::Azure => Serving::azure(),
            Dialect::S3 => Serving::s3(),
            Dialect::Gcs => Serving::gcs(),
        };
        let serving = Serving { bytes_per_s, buckets: vec![BUCKET.into()], ..like };
        let bucket = token_bucket(arm)?;
        let start = || -> Result<RunningLink, TargetError> {
            let link = emulated_link(arm, rtt, bucket.is_some())?;
            let conditions = link.conditions().map(|conditions| Conditions { bucket, ..conditions });
            link.start_with(&conditions[0], &conditions[1]).map_err(failed)
        };
        let link = has_link.then(start).transpose()?.map(Arc::new);
        let refill = bucket.map_or(Duration::ZERO, |bucket| {
            Duration::from_secs_f64(8.0 * bucket.burst_bytes as f64 / bucket.rate_bits_per_s as f64)
        });
        let (listener, serving) = match &link {
            Some(link) => (link.far().listen((link.far().address(), PORT)), serving),
            None => (TcpListener::bind("127.0.0.1:0"), Serving { latency: rtt, ..serving }),
        };
        let store = serving.start(listener.map_err(failed)?, None).map_err(failed)?;
        let scheme = match dialect {
            Dialect::Azure => "az",
            Dialect::S3 => "s3",
            Dialect::Gcs => "gs",
        };
        let options = options_for(&store, link.clone());
        Ok(Self { url: format!("{scheme}://{BUCKET}"), options, serving: Some(store), link, refill })
    }

    /// Returns the location of the object `name` in a newly opened store, which has no open connections yet.
    pub fn open(&self, name: &str) -> Result<Location, Error> {
        ascertain_transfer::open(&format!("{}/{name}", self.url.trim_end_matches('/')), &self.options)
    }

    /// Returns the contents of an object in our own store.
    pub fn object(&self, name: &str) -> Option<Vec<u8>> {
        self.serving.as_ref()?.object(BUCKET, name)
    }

    /// Returns the properties of the link that are recorded as evidence.
    pub fn facts(&self) -> Result<Point, TargetError> {
        match (&self.serving, &self.link) {
            (Some(_), Some(link)) => facts(Some(link)),
            (Some(_), None) => Ok(Point::default().with("carrier", "none: the store delays its answers by itself")),
            (None, _) => Ok(Point::default()),
        }
    }
}

/// Returns the token bucket that limits the rate of all connections together. `None` if its size, the factor `burst`,
/// is 0.
fn token_bucket(arm: &Arm) -> Result<Option<TokenBucket>, TargetError> {
    let (burst_bytes, rate_bits_per_s) = (scaled(arm, "burst")?, arm.integer("sum_mbit_s")? * 1_000_000);
    Ok(Some(TokenBucket { burst_bytes, rate_bits_per_s }).filter(|bucket| bucket.burst_bytes > 0))
}

/// Returns the emulated link of the arm. Its queue holds as many bytes as the link transfers in one round trip. If
/// `has_bucket`, the token bucket limits the rate, and the link does not.
fn emulated_link(arm: &Arm, rtt: Duration, has_bucket: bool) -> Result<Link, TargetError> {
    let rate_bits_per_s = Some(arm.integer("sum_mbit_s")? * 1_000_000).filter(|rate| *rate > 0);
    let loss = arm.integer("loss_percent")? as f64 / 100.0;
    let under_way = rate_bits_per_s.map(|rate| ((rate as f64 / 8.0 * rtt.as_secs_f64()) as u64).max(FEWEST_BYTES));
    let queue_bytes = under_way.map_or(Link::default().queue_bytes, |bytes| bytes as usize);
    let rate_bits_per_s = rate_bits_per_s.filter(|_| !has_bucket);
    Ok(Link { rtt, rate_bits_per_s, loss, queue_bytes, ..Link::default() })
}

/// Returns the options to reach our own store.
pub(super) fn options_for(store: &RunningStore, link: Option<Arc<RunningLink>>) -> Options {
    let Serving { account, secret, .. } = store.store();
    let environment = [
        ("AWS_ACCESS_KEY_ID", account),
        ("AWS_SECRET_ACCESS_KEY", secret),
        ("AZURE_STORAGE_ACCOUNT", account),
        ("AZURE_STORAGE_KEY", secret),
        ("GOOGLE_OAUTH_ACCESS_TOKEN", secret),
    ];
    let sockets = link.map(|link| -> Sockets { Arc::new(move |like| link.near().socket(like, SocketType::STREAM)) });
    Options {
        environment: environment.into_iter().collect(),
        endpoint_url: Some(store.url()),
        sockets,
        ..Options::default()
    }
}
