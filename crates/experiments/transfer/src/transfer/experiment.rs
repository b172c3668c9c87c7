//! The experiment `transfer`: uploads a file in three ways. It is sent as one stream, in blocks of a given size over
//! several connections, or in the parts that the model of `ascertain_transfer` chooses.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[cfg(target_os = "linux")]
mod blocks;
#[cfg(target_os = "linux")]
mod session;
#[cfg(target_os = "linux")]
mod source;
#[cfg(target_os = "linux")]
mod stores;

use std::sync::LazyLock;

use ascertain_engine::experiment::{
    Accepts, Arm, Better, Emulates, Experiment, Factor, Metric, Plot, Session, Setup, Spec, TargetError, Unavailable,
};
use ascertain_engine::unit::Unit;
#[cfg(not(target_os = "linux"))]
use ascertain_experiments_networks::links::elsewhere::{is_available, open};
use ascertain_experiments_networks::links::{self, OURS};
use ascertain_sys::machine::Machine;

#[cfg(target_os = "linux")]
use {
    session::open,
    stores::{is_available, scaled},
};

/// The experiment `transfer`, which uploads a file to a store.
pub struct Transfer;

const ONE_STREAM: &str = "one-stream";
const BLOCKS: &str = "blocks";
const MODEL: &str = "model";

const AZURE: &str = "azure";
const S3: &str = "s3";
const GCS: &str = "gcs";
const SCHEMES: [&str; 3] = ["s3://", "az://", "gs://"];

const TIME: usize = 0;
const BYTES: usize = 1;
const RATE: usize = 2;
const REQUESTS: usize = 3;
const BLOCK: usize = 4;
const CONNECTIONS: usize = 5;
const EXPECTED: usize = 6;
const OFF: usize = 7;
const PROBED: usize = 8;
const LATE: usize = 9;

/// The sizes in bytes of the files in the default table. The second and third file are larger than every block size in
/// [`TABLE_BLOCKS`].
const TABLE_SIZES: [u64; 3] = [500_000, 20_000_000, 100_000_000];
const TABLE_BLOCKS: [u64; 3] = [256_000, 1_000_000, 4_000_000];

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "The upload of a file to a store: as one stream, in blocks over many connections, and as `ascertain put` \
            does it"
        .into(),
    emulates: Some(Emulates::new("a store in this process, behind an emulated link").unless(&["url"])),
    variants: vec![
        (ONE_STREAM, "one request over one connection").into(),
        (BLOCKS, "blocks of equal size, of which `connections` are in flight, and then the list of blocks").into(),
        (MODEL, "the same as `ascertain put`: size and number of blocks are chosen during the transfer").into(),
    ],
    factors: factors(),
    metrics: metrics(),
    plots: plots(),
    ..Spec::new("transfer", include_str!("README.md"))
});

/// Returns the same plots as the published source. In each plot, one line shows the variant with a single stream. Its
/// distance to the other lines is the gain from blocks.
fn plots() -> Vec<Plot> {
    let choice =
        |metric: &str| Plot::Choice { metric: metric.into(), factor: "block".into(), chosen: "chosen_block".into() };
    let of_metric = |metric| [Plot::sweep(metric, "size"), Plot::sweep(metric, "block"), choice(metric)];
    ["time", "rate"].into_iter().flat_map(of_metric).collect()
}

fn factors() -> Vec<Factor> {
    let schemes = SCHEMES.map(String::from).to_vec();
    vec![
        Factor::integer("size", "size of the file in bytes", 20_000_000, 0..=1 << 40),
        Factor::integer("block", "size of the blocks in bytes", 1_000_000, 1..=1 << 40),
        Factor::integer("connections", "number of blocks in flight", 32, 1..=256),
        Factor::integer(
            "scale",
            "factor by which files, blocks, the round trip and all times are reduced; 1 means full size",
            20,
            1..=1_000,
        ),
        Factor::integer("rtt_ms", "round-trip time of the link to our store in ms", 50, 0..=10_000),
        Factor::integer("rate_kb_s", "speed of each connection in kB/s; 0 means no limit", 2_000, 0..=10_000_000),
        Factor::integer("sum_mbit_s", "speed of all connections together in Mbit/s; 0 means no limit", 0, 0..=100_000),
        Factor::integer(
            "burst",
            "with `sum_mbit_s`: bytes that pass before the limit applies (a token bucket that is full at the start)",
            0,
            0..=1 << 40,
        ),
        Factor::integer("loss_percent", "percentage of segments that are lost, in each direction", 0, 0..=50),
        Factor::one_of("speaks", "protocol of our store; s3 and gcs accept no blocks below 5 MiB", [AZURE, S3, GCS]),
        Factor::new(
            "url",
            "store to use instead of the emulated store behind an emulated link, such as s3://BUCKET/PREFIX; \
             credentials are found as by `ascertain put`",
            OURS,
            Accepts::Address { none: OURS.into(), schemes, from_variable: false },
        ),
    ]
}

fn metrics() -> Vec<Metric> {
    let own = [
        Metric::time("time", "time from the first request to the last answer"),
        Metric::new("moved", "bytes that were sent: `size` divided by `scale`", Unit::Byte, Better::Higher),
        Metric::new("rate", "bytes sent per second: `moved` divided by `time`", Unit::BytePerSecond, Better::Higher),
        Metric::new("requests", "number of requests that carried the file", Unit::One, Better::Lower),
        Metric::new(
            "chosen_block",
            "block size that the model chose first, multiplied by `scale` for comparison with `block`",
            Unit::Byte,
            Better::Higher,
        ),
        Metric::new(
            "chosen_connections",
            "number of blocks in flight that the model chose first, at most the number of blocks",
            Unit::One,
            Better::Higher,
        ),
        Metric::time("expected", "first prediction of `time` by the model, after its choice"),
        Metric::new("off", "error of `expected`, as a share of `time`", Unit::One, Better::Lower),
        Metric::share("probed", "share of the file that was sent before the model first chose", Better::Lower),
    ];
    own.into_iter().chain(links::metrics()).collect()
}

impl Experiment for Transfer {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// Returns whether the factor applies to the arm. A single stream has no blocks, the model chooses its own blocks,
    /// and a store at an address has no emulated link.
    fn has(&self, arm: &Arm, factor: &str) -> bool {
        match factor {
            "block" | "connections" => arm.variant == BLOCKS,
            "size" | "url" => true,
            _ => arm.point.get("url").is_none_or(|url| *url == OURS.into()),
        }
    }

    /// Returns the arms of the default table: each variant for each file size, with several block sizes. The largest
    /// file is not sent as a single stream. That would take most of the time, and would only show the same rate as the
    /// second file.
    fn table_arms(&self) -> Vec<Arm> {
        let arm = |variant: &str, size, block| {
            let point = SPEC.default_point().with("size", size);
            let point = if let Some(block) = block { point.with("block", block) } else { point };
            Arm { variant: variant.into(), point }
        };
        let of_size = |size| {
            let blocks = TABLE_BLOCKS.into_iter().map(move |block| arm(BLOCKS, size, Some(block)));
            let one_stream = TABLE_SIZES[..2].contains(&size).then(|| arm(ONE_STREAM, size, None));
            one_stream.into_iter().chain(blocks).chain([arm(MODEL, size, None)])
        };
        TABLE_SIZES.into_iter().flat_map(of_size).collect()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        is_available(arm)
    }

    /// Returns the memory in bytes for three copies of the largest file. One is sent, one is in our store, and one is
    /// compared with the stored one.
    fn memory_bytes(&self, arms: &[Arm]) -> u64 {
        let sizes = arms.iter().filter_map(|arm| scaled(arm, "size").ok());
        sizes.max().unwrap_or(0).saturating_mul(3)
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        open(arms, setup)
    }
}
