//! The experiment `storage`: how fast is a store, and at which size does another store become faster?

mod attempt;
mod budget;
mod crossover;
mod emulated;
mod faults;
mod fit;
mod journal;
mod levels;
mod limits;
mod line;
mod objects;
mod search;
mod session;
mod stores;
mod streams;
mod workload;

use std::sync::{LazyLock, Mutex, PoisonError};

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Emulates, Experiment, Factor, Level, Metric, Plot, Point, Reduce, Session, Setup, Spec,
    TargetError, Unavailable,
};
use ascertain_engine::finding::Remark;
use ascertain_engine::unit::Unit;
use ascertain_experiments_networks::links::OURS;
use ascertain_sys::machine::Machine;
use ascertain_transfer::Environment;

/// The experiment `storage`, which measures object stores.
pub struct Storage;

const GOOGLE: &str = "google";
const S3: &str = "s3";
const AZURE: &str = "azure";
const URL: &str = "url";
const CROSSOVER: &str = "crossover";
const FAULTS: &str = "faults";

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Download,
    /// A read of a range in the middle of an object.
    Ranged,
    Upload,
}

const DOWNLOAD: &str = "download";
const RANGED: &str = "ranged";
const UPLOAD: &str = "upload";

const TIME: usize = 0;
const FIRST_BYTE: usize = 1;
const THROUGHPUT: usize = 2;
const ANSWERED: usize = 3;
const INCOMPLETE: usize = 4;
const WAIT: usize = 5;
const GAP: usize = 6;
const TOTAL_THROUGHPUT: usize = 7;
const REQUEST_RATE: usize = 8;
const REQUEST_CPU: usize = 9;
const ENCODED: usize = 10;
const PHASE: usize = 11;
const FIRST_TIME: usize = 12;
const SECOND_TIME: usize = 13;
const REOPENED: usize = 14;
const NOTICED: usize = 15;

/// The sizes in bytes of the objects in the default table.
const TABLE_SIZES: [u64; 3] = [16_000, 1_000_000, 4_000_000];
/// The size in bytes of the objects in the default table of a store at an address.
const URL_SIZE: u64 = 64_000;
/// The default range of sizes, in bytes, in which the experiment searches for a crossover of two emulated stores. The
/// source covers 16 KB to 32 MB.
const EMULATED_RANGE: [u64; 2] = [16_000, 16_000_000];

/// The factors that apply to one store, to a pair of stores, and to stores at an address.
const OF_ONE_STORE: [&str; 8] =
    ["size", "concurrency", "requests", "rate", "placement", "part", "line_mbit_s", "timeout_ms"];
/// The factor with the listener that measures the client's line.
const LISTENER: &str = "listener";
const OF_A_PAIR: [&str; 5] = ["pair", "smallest", "largest", "timeout_ms", "goal_mb_s"];
const OF_ALL: [&str; 4] = ["operation", "connection", "object", "gap_ms"];
const OF_AN_ADDRESS: [&str; 4] = ["max_requests", "max_mb", "max_cost", "prices"];

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "The time of requests to object stores, and the sizes at which another store becomes faster".into(),
    emulates: Some(Emulates::new("stores in this process, with the times that the source measured").unless(&[URL])),
    variants: vec![
        (GOOGLE, "Google Cloud Storage as measured by the source in 2015").into(),
        (S3, "Amazon S3 as measured by the source in 2015").into(),
        (AZURE, "Azure Storage as measured by the source in 2015").into(),
        (URL, "the store at the address `url`").into(),
        (CROSSOVER, "the sizes at which the faster store of `pair` changes").into(),
        (FAULTS, "one flipped bit in each part of requests and answers; shows which side notices").into(),
    ],
    factors: factors(),
    metrics: metrics(),
    plots: ["time", "first_byte", "throughput"]
        .into_iter()
        .map(|metric| Plot::sweep(metric, "size"))
        .chain(["total_throughput", "requests_per_s"].map(|metric| Plot::sweep(metric, "concurrency")))
        .chain([Plot::Waterfall { metric: "phase".into() }])
        .collect(),
    ..Spec::new("storage", include_str!("README.md"))
});

fn factors() -> Vec<Factor> {
    let url = Accepts::Address {
        none: OURS.into(),
        schemes: ["s3", "az", "gs", "http"].map(String::from).into(),
        from_variable: false,
    };
    vec![
        Factor::one_of("operation", "kind of requests", [DOWNLOAD, RANGED, UPLOAD]),
        Factor::integer("size", "bytes that each request transfers", URL_SIZE, 1..=1_000_000_000),
        Factor::one_of(
            "connection",
            "send requests over an open connection, or open a connection for each request",
            ["kept", "fresh"],
        ),
        Factor::one_of("object", "read an object again, or only objects that were not read before", ["warm", "cold"]),
        Factor::integer("concurrency", "number of streams, each with one request at a time", 1, 1..=1_024),
        Factor::integer("requests", "number of requests of a trial; at least one for each stream", 1, 1..=1_000_000),
        Factor::integer(
            "rate",
            "requests that are due per second; with 0, each stream waits for an answer before it sends the next \
             request",
            0,
            0..=1_000_000,
        ),
        Factor::one_of("placement", "put all keys under one prefix, or each key under its own prefix", ["one", "many"]),
        Factor::integer("part", "size of the parts of an upload in bytes; 0 sends it with one request", 0, 0..=1 << 30),
        Factor::integer("gap_ms", "idle time of a kept connection before each request, in ms", 0, 0..=600_000),
        Factor::integer("timeout_ms", "time after which a request counts as timed out, in ms", 60_000, 1..=3_600_000),
        Factor::new(
            "url",
            "store to measure: s3://BUCKET/PREFIX; s3+http://HOST/BUCKET/PREFIX names an endpoint",
            OURS,
            url,
        ),
        Factor::new("key", "the only object to read, below `url`; then nothing is written", OURS, Accepts::Anything),
        Factor::new("pair", "two stores, separated by a comma", "google,azure", Accepts::List),
        Factor::integer("smallest", "smallest size of the search, in bytes", 1, 1..=1_000_000_000),
        Factor::integer("largest", "largest size of the search, in bytes", 16_000_000, 1..=1_000_000_000),
        Factor::integer("scale", "factor by which sizes and latencies of emulated stores are reduced", 10, 1..=1_000),
        Factor::integer(
            "line_mbit_s",
            "rate of the client's line in Mbit/s, as `link-throughput` measures it; 0 if unknown",
            0,
            0..=1_000_000,
        ),
        Factor::new(
            LISTENER,
            "HOST:PORT of `ascertain listen`, to measure the client's line; its token is in ASCERTAIN_LISTEN_TOKEN",
            OURS,
            Accepts::Anything,
        ),
        Factor::integer(
            "goal_mb_s",
            "rate in MB/s that many requests together should reach; the source asks for 150 GB in 10 s",
            15_000,
            1..=1_000_000,
        ),
        Factor::one_of(
            "checksum",
            "checksum that the uploads of `faults` carry",
            ["crc64nvme", "sha256", "md5", "none"],
        ),
        Factor::integer("max_requests", "limit on the requests to each store at an address", 5_000, 1..=1_000_000_000),
        Factor::integer(
            "max_mb",
            "limit on the megabytes to and from each store at an address",
            2_000,
            1..=1_000_000_000,
        ),
        Factor::new(
            "max_cost",
            "limit on the bill of each store at an address, such as `2USD`; needs `prices`",
            OURS,
            Accepts::Anything,
        ),
        Factor::new("prices", "file with prices, their source and their date", OURS, Accepts::Anything),
    ]
}

fn metrics() -> Vec<Metric> {
    let median = |metric: Metric| Metric { reduce: Reduce::Quantile(0.5), ..metric };
    let rate = |name: &str, about: &str| Metric::new(name, about, Unit::BytePerSecond, Better::Higher);
    vec![
        median(Metric::time(
            "time",
            "time from the start of a request, or from when it was due, to its last byte; a lower bound if incomplete",
        )),
        median(Metric::time("first_byte", "time to the first byte of the answer's body; downloads only")),
        median(rate("throughput", "bytes of a request divided by its time; 0 if incomplete")),
        median(Metric::time("answered", "time of the complete answers only; read it together with `incomplete`")),
        Metric::share("incomplete", "share of requests that were refused, cut off or timed out", Better::Lower),
        median(Metric::time("wait", "wait for a free connection before a request")),
        Metric::time("gap", "idle time of the kept connection before the request"),
        rate("total_throughput", "bytes of all streams per second"),
        Metric::new("requests_per_s", "complete answers per second", Unit::PerSecond, Better::Higher),
        Metric::time("request_cpu", "CPU time of the client for each request"),
        Metric::share(
            "encoded",
            "share of answers in a compressed form; their bytes are counted as on the wire",
            Better::Lower,
        ),
        median(Metric::time("phase", "duration of each phase of a request")).by_key(),
        Metric::time("first_time", "time of the pair's first store, by size").by_key(),
        Metric::time("second_time", "time of the pair's second store, by size").by_key(),
        Metric::share("reopened", "share of requests that had to reopen a kept connection", Better::Lower),
        Metric::share(
            "noticed",
            "for each place of a flipped bit: 1 if it was noticed or had no effect",
            Better::Higher,
        )
        .by_key(),
    ]
}

/// The errors of clean-ups, which take place when sessions are dropped.
static CLEANUP_FAILURES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Deletes the objects that interrupted runs have left in stores. Returns a message for the user for each of them.
///
/// # Errors
/// Returns the reason if the folder of journals cannot be read.
pub fn clean() -> Result<Vec<Result<String, String>>, String> {
    objects::clean(&journal::folder(), &Environment::from_process())
}

/// Returns whether a level names a store at an address.
fn is_address(level: &str) -> bool {
    level.contains("://")
}

impl Experiment for Storage {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn has(&self, arm: &Arm, factor: &str) -> bool {
        let text = |factor: &str| arm.point.get(factor).map(Level::to_string).unwrap_or_default();
        let is_at_address = is_address(&text(URL)) || is_address(&text("pair"));
        let of_variant: &[&str] = if arm.variant == CROSSOVER { &OF_A_PAIR } else { &OF_ONE_STORE };
        match factor {
            "url" => arm.variant == URL || arm.variant == FAULTS || is_address(&text("pair")),
            "checksum" => arm.variant == FAULTS,
            _ if arm.variant == FAULTS => OF_AN_ADDRESS.contains(&factor) && is_at_address,
            "key" | LISTENER => arm.variant == URL,
            "scale" => arm.variant != URL && !is_at_address,
            "object" => text("operation") != UPLOAD,
            "part" => text("operation") == UPLOAD && arm.variant != CROSSOVER,
            _ if OF_AN_ADDRESS.contains(&factor) => arm.variant == URL || is_at_address,
            _ => of_variant.contains(&factor) || OF_ALL.contains(&factor),
        }
    }

    /// Returns the stores of the source at three sizes, all crossovers of two of them, and the user's stores.
    fn table_arms(&self) -> Vec<Arm> {
        let arm = |variant: &str, point: Point| Arm { variant: variant.into(), point };
        let default = SPEC.default_point();
        let emulated = [GOOGLE, S3, AZURE];
        let mut arms = Vec::new();
        for operation in [DOWNLOAD, UPLOAD] {
            let point = default.clone().with("operation", operation);
            for size in TABLE_SIZES {
                arms.extend(emulated.map(|store| arm(store, point.clone().with("size", size))));
            }
        }
        for operation in [DOWNLOAD, UPLOAD] {
            for pair in [[GOOGLE, AZURE], [GOOGLE, S3], [S3, AZURE]] {
                let [smallest, largest] = EMULATED_RANGE;
                let point = default.clone().with("operation", operation).with("pair", &*pair.join(","));
                arms.push(arm(CROSSOVER, point.with("smallest", smallest).with("largest", largest)));
            }
        }
        for checksum in ["none", "md5", "crc64nvme", "sha256"] {
            arms.push(arm(FAULTS, default.clone().with("checksum", checksum)));
        }
        arms.push(arm(URL, default));
        arms
    }

    /// Selects the arms to measure: the stores at the given addresses if there are any, else the emulated stores.
    fn chosen(&self, arms: Vec<Arm>, are_named: bool) -> Result<Vec<Arm>, String> {
        levels::chosen(arms, are_named)
    }

    fn happens_once(&self, arm: &Arm) -> bool {
        arm.variant == FAULTS
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        levels::check(arm).map_err(Unavailable::levels)
    }

    fn notices(&self, arms: &[Arm], trials: u64) -> Result<Vec<Remark>, String> {
        levels::bills(arms, trials)
    }

    fn memory_bytes(&self, arms: &[Arm]) -> u64 {
        levels::memory_bytes(arms)
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        Ok(Box::new(session::StorageSession::open(arms, setup, (&journal::folder(), &Environment::from_process()))?))
    }

    fn cleanup_failures(&self) -> Vec<String> {
        CLEANUP_FAILURES.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
#[path = "tests/mod.rs"]
mod tests;
