//! Moving a file into a store: as one stream, in blocks of any size over any number of connections, and as the model
//! chooses.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[cfg(target_os = "linux")]
mod blocks;
#[cfg(target_os = "linux")]
mod moves;
#[cfg(target_os = "linux")]
mod places;
#[cfg(target_os = "linux")]
mod source;

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
    moves::open,
    places::{is_available, scaled},
};

/// Moving a file into a store.
pub struct Transfer;

const ONE_STREAM: &str = "one-stream";
const BLOCKS: &str = "blocks";
const MODEL: &str = "model";

const AZURE: &str = "azure";
const S3: &str = "s3";
const GCS: &str = "gcs";
const SCHEMES: [&str; 3] = ["s3://", "az://", "gs://"];

const TIME: usize = 0;
const MOVED: usize = 1;
const RATE: usize = 2;
const REQUESTS: usize = 3;
const BLOCK: usize = 4;
const CONNECTIONS: usize = 5;
const EXPECTED: usize = 6;
const OFF: usize = 7;
const PROBED: usize = 8;
const LATE: usize = 9;

/// What a table has where nobody asks for others: of the second and the third, the model has something to choose.
const TABLE_SIZES: [u64; 3] = [500_000, 20_000_000, 100_000_000];
const TABLE_BLOCKS: [u64; 3] = [256_000, 1_000_000, 4_000_000];

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "A file on its way to a store: one stream, blocks of any size over many connections, and the model's choice"
        .into(),
    emulates: Some(Emulates::of("a store in this process, behind an emulated link").unless(&["url"])),
    variants: vec![
        (ONE_STREAM, "one request over one connection").into(),
        (BLOCKS, "blocks of one size, `connections` of them at once, and a list that makes them one object").into(),
        (MODEL, "what `ascertain put` does: blocks whose size and number are found while they go").into(),
    ],
    factors: factors(),
    metrics: metrics(),
    plots: plots(),
    ..Spec::new("transfer", include_str!("README.md"))
});

/// The source's charts: its improvement is the distance to one stream's line.
fn plots() -> Vec<Plot> {
    let sweep = |metric: &str, factor: &str| Plot::Sweep {
        metric: metric.into(),
        factor: factor.into(),
        footprints: Vec::new(),
    };
    let choice =
        |metric: &str| Plot::Choice { metric: metric.into(), factor: "block".into(), chosen: "chosen_block".into() };
    let of_metric = |metric| [sweep(metric, "size"), sweep(metric, "block"), choice(metric)];
    ["time", "rate"].into_iter().flat_map(of_metric).collect()
}

fn factors() -> Vec<Factor> {
    let integer =
        |name, about, default: u64, min, max| Factor::new(name, about, default, Accepts::Integers { min, max });
    let schemes = SCHEMES.map(String::from).to_vec();
    vec![
        integer("size", "of the file [B]", 20_000_000, 0, 1 << 40),
        integer("block", "the blocks' size [B]", 1_000_000, 1, 1 << 40),
        integer("connections", "as many blocks are under way at once", 32, 1, 256),
        integer(
            "scale",
            "through it files, blocks and the round trip are smaller by this factor, and so are times; 1 takes its time",
            20,
            1,
            1_000,
        ),
        integer("rtt_ms", "the round trip of the link to our store", 50, 0, 10_000),
        integer(
            "rate_kb_s",
            "how fast each connection is, in 1000 bytes a second; 0 has no limit",
            2_000,
            0,
            10_000_000,
        ),
        integer("sum_mbit_s", "how fast all of them are together; 0 has no limit", 0, 0, 100_000),
        integer(
            "burst",
            "with `sum_mbit_s`: so much goes before that holds, as from a token bucket, full when a move begins [B]",
            0,
            0,
            1 << 40,
        ),
        integer("loss_percent", "of the segments, each way", 0, 0, 50),
        Factor::new(
            "speaks",
            "what our store speaks; s3 and gcs take no blocks below 5 MiB",
            AZURE,
            Accepts::OneOf([AZURE, S3, GCS].map(Into::into).to_vec()),
        ),
        Factor::new(
            "url",
            "where somebody's store takes it, instead of ours behind a link: s3://BUCKET/PREFIX; credentials are looked \
             up as `ascertain put` does",
            OURS,
            Accepts::Address { none: OURS.into(), schemes, from_variable: false },
        ),
    ]
}

fn metrics() -> Vec<Metric> {
    let own = [
        Metric::time("time", "from the first request to the last answer"),
        Metric::new("moved", "the bytes that went: `size` over `scale`", Unit::Byte, Better::Higher),
        Metric::new("rate", "these bytes over that time", Unit::BytePerSecond, Better::Higher),
        Metric::new("requests", "how many carried the file", Unit::One, Better::Lower),
        Metric::new(
            "chosen_block",
            "the size that the model chose first, as `block` counts",
            Unit::Byte,
            Better::Higher,
        ),
        Metric::new(
            "chosen_connections",
            "how many at once it chose, or as many blocks as there were",
            Unit::One,
            Better::Higher,
        ),
        Metric::time("expected", "the time that it then expected"),
        Metric::new("off", "by which share of the time that was wrong", Unit::One, Better::Lower),
        Metric::share("probed", "the share of the file that was moved before it chose", Better::Lower),
    ];
    own.into_iter().chain(links::metrics()).collect()
}

impl Experiment for Transfer {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// One stream has no blocks, and the model finds its own; somebody's store is behind no link of ours.
    fn has(&self, arm: &Arm, factor: &str) -> bool {
        match factor {
            "block" | "connections" => arm.variant == BLOCKS,
            "size" | "url" => true,
            _ => arm.point.get("url").is_none_or(|url| *url == OURS.into()),
        }
    }

    /// Each variant at each size, and blocks of several sizes; but for one stream of the largest, which would take most
    /// of the time and has the rate of the one before.
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

    /// What is sent at once, and what our store has of it and gives back to be compared.
    fn memory_bytes(&self, arms: &[Arm]) -> u64 {
        let sizes = arms.iter().filter_map(|arm| scaled(arm, "size").ok());
        sizes.max().unwrap_or(0).saturating_mul(3)
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        open(arms, setup)
    }
}
