//! Where files are moved to: our stores behind emulated links, and somebody's.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, Level, Point, TargetError, Unavailable};
use ascertain_experiments_networks::links::{self, facts, failed};
use ascertain_netlab::model::{Conditions, TokenBucket};
use ascertain_netlab::store::{Dialect, RunningStore, Store as Serving};
use ascertain_netlab::{Link, RunningLink};
use ascertain_transfer::{Environment, Failure, Found, Options, Sockets};
use rustix::net::SocketType;

use super::{BLOCKS, GCS, OURS, S3};

const PORT: u16 = 10_000;
const BUCKET: &str = "bucket";
/// What may wait at least, where all connections together have a rate.
const FEWEST_BYTES: u64 = 30_000;
/// S3 and GCS take no smaller blocks but the last.
const LEAST_PART_BYTES: u64 = 5 << 20;
/// What tells places apart.
const FACTORS: [&str; 8] = ["scale", "rtt_ms", "rate_kb_s", "sum_mbit_s", "burst", "loss_percent", "speaks", "url"];

/// Those of an arm's levels that tell where it moves its file to.
pub fn place_of(arm: &Arm) -> Point {
    arm.point.only(|factor, _| FACTORS.contains(&factor.as_str()))
}

fn url_of(arm: &Arm) -> Option<String> {
    arm.point.get("url").map(Level::to_string).filter(|url| url != OURS)
}

/// By how much everything is smaller through a link of ours.
pub fn scale_of(arm: &Arm) -> Result<u64, TargetError> {
    if url_of(arm).is_some() { Ok(1) } else { arm.integer("scale") }
}

/// How many bytes stand for the arm's `size` or `block`.
pub fn scaled(arm: &Arm, factor: &str) -> Result<u64, TargetError> {
    Ok(arm.integer(factor)?.div_ceil(scale_of(arm)?))
}

fn dialect_of(arm: &Arm) -> Dialect {
    match arm.point.get("speaks").map(Level::to_string).as_deref() {
        Some(S3) => Dialect::S3,
        Some(GCS) => Dialect::Gcs,
        _ => Dialect::Azure,
    }
}

/// Whether the store takes such blocks, and can be as far away as it is to be.
pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    let url = url_of(arm);
    let is_azure = url.as_ref().map_or(dialect_of(arm) == Dialect::Azure, |url| url.starts_with("az://"));
    let scaled = |factor| scaled(arm, factor).map_err(Unavailable::other);
    if arm.variant == BLOCKS && !is_azure && scaled("block")? < LEAST_PART_BYTES.min(scaled("size")?) {
        return Err(Unavailable::levels("S3 and GCS take no blocks below 5 MiB but the last: Azure does"));
    }
    let is_some = |factor| arm.integer(factor).is_ok_and(|level| level > 0);
    if is_some("burst") && !is_some("sum_mbit_s") {
        return Err(Unavailable::levels("`burst` is what goes before `sum_mbit_s` holds, which is 0"));
    }
    let needs_link = url.is_none() && (is_some("sum_mbit_s") || is_some("loss_percent"));
    if needs_link { links::is_available(&Link::default()) } else { Ok(()) }
}

/// Somewhere to move files to.
pub struct Place {
    url: String,
    options: Options,
    /// Ours, which ends with this.
    pub store: Option<RunningStore>,
    /// The way to it, where such ways can be had.
    pub link: Option<Arc<RunningLink>>,
    /// How long it takes until its bucket is full again.
    pub refill: Duration,
}

impl Place {
    /// The arm's.
    pub fn of(arm: &Arm) -> Result<Self, TargetError> {
        if let Some(url) = url_of(arm) {
            let options = Options { environment: Environment::of_process(), ..Options::default() };
            return Ok(Self::elsewhere(url, options));
        }
        Self::ours(arm, links::is_available(&Link::default()).is_ok())
    }

    /// Somebody's.
    pub fn elsewhere(url: String, options: Options) -> Self {
        Self { url, options, store: None, link: None, refill: Duration::ZERO }
    }

    /// Our store, behind a link, or as far away as if it were.
    pub fn ours(arm: &Arm, has_link: bool) -> Result<Self, TargetError> {
        let rtt = Duration::from_millis(arm.integer("rtt_ms")?) / scale_of(arm)? as u32;
        let bytes_per_s = Some(arm.integer("rate_kb_s")? * 1_000).filter(|rate| *rate > 0);
        let dialect = dialect_of(arm);
        let like = match dialect {
            Dialect::Azure => Serving::azure(),
            Dialect::S3 => Serving::s3(),
            Dialect::Gcs => Serving::gcs(),
        };
        let serving = Serving { bytes_per_s, buckets: vec![BUCKET.into()], ..like };
        let bucket = bucket_of(arm)?;
        let start = || -> Result<RunningLink, TargetError> {
            let link = link_of(arm, rtt, bucket.is_some())?;
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
        Ok(Self { url: format!("{scheme}://{BUCKET}"), options, store: Some(store), link, refill })
    }

    /// A name in it, by a client of its own: it has no connections yet.
    pub fn open(&self, name: &str) -> Result<Found, Failure> {
        ascertain_transfer::open(&format!("{}/{name}", self.url.trim_end_matches('/')), &self.options)
    }

    /// What an object in ours is.
    pub fn object(&self, name: &str) -> Option<Vec<u8>> {
        self.store.as_ref()?.object(BUCKET, name)
    }

    /// How it was reached.
    pub fn facts(&self) -> Result<Point, TargetError> {
        match (&self.store, &self.link) {
            (Some(_), Some(link)) => facts(link),
            (Some(_), None) => Ok(Point::default().with("carrier", "none: the store delays its answers by itself")),
            (None, _) => Ok(Point::default()),
        }
    }
}

/// What goes before the rate of all connections holds.
fn bucket_of(arm: &Arm) -> Result<Option<TokenBucket>, TargetError> {
    let (burst_bytes, rate_bits_per_s) = (scaled(arm, "burst")?, arm.integer("sum_mbit_s")? * 1_000_000);
    Ok(Some(TokenBucket { burst_bytes, rate_bits_per_s }).filter(|bucket| bucket.burst_bytes > 0))
}

/// As much may wait as is under way in a round trip. Where there is a bucket, it alone has the rate.
fn link_of(arm: &Arm, rtt: Duration, has_bucket: bool) -> Result<Link, TargetError> {
    let rate_bits_per_s = Some(arm.integer("sum_mbit_s")? * 1_000_000).filter(|rate| *rate > 0);
    let loss = arm.integer("loss_percent")? as f64 / 100.0;
    let under_way = rate_bits_per_s.map(|rate| ((rate as f64 / 8.0 * rtt.as_secs_f64()) as u64).max(FEWEST_BYTES));
    let queue_bytes = under_way.map_or(Link::default().queue_bytes, |bytes| bytes as usize);
    let rate_bits_per_s = rate_bits_per_s.filter(|_| !has_bucket);
    Ok(Link { rtt, rate_bits_per_s, loss, queue_bytes, ..Link::default() })
}

/// What one knows who may use our store, and nobody else's.
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
