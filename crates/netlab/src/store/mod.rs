//! Object stores within the process, which speak S3, Azure's blobs, and as much of GCS as clients need.
//!
//! What is in them is in memory. Signatures and checksums are verified as the providers do it, blocks become an object
//! without being copied, and all that was asked for is written down. What goes wrong on purpose is plain data.
//!
//! ```
//! use std::net::TcpListener;
//! use ascertain_netlab::store::{Fault, Kind, Misdeed, Store};
//!
//! let slow_down = Misdeed::Refused { status: 503, retry_after_s: Some(1) };
//! let faults = vec![Fault { on: Some(Kind::PutBlock), after: 2, times: 1, what: slow_down }];
//! let store = Store { faults, ..Store::s3() }.start(TcpListener::bind("127.0.0.1:0")?, None)?;
//! println!("{} with {} and {}", store.url(), store.store().account, store.store().secret);
//! // … a client puts the object `key` into the bucket `bucket` …
//! assert!(store.seen().iter().all(|request| request.status == Some(200)));
//! assert_eq!(store.object("bucket", "key"), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod azure;
mod checksum;
mod chunked;
mod fault;
mod objects;
mod pace;
mod request;
mod running;
mod s3;
mod shared_key;
pub(crate) mod sigv4;
mod upload;

use std::time::Duration;

#[cfg(feature = "providers")]
pub(crate) use answer::{Answer, Content, Refusal, elements, escape};
pub use fault::{Fault, Kind, Misdeed, Seen};
#[cfg(feature = "providers")]
pub(crate) use request::Head;
pub use running::RunningStore;

/// What a store speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// S3, with the bucket in the path.
    S3,
    /// Azure's blobs, with the account in the path.
    Azure,
    /// The XML interface of Google's Cloud Storage.
    Gcs,
}

/// What a store should be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// What it speaks.
    pub dialect: Dialect,
    /// S3's access key, Azure's account. GCS has none.
    pub account: String,
    /// S3's secret access key, Azure's key of the account (Base64), GCS' token.
    pub secret: String,
    /// S3's region.
    pub region: String,
    /// The buckets, or containers, that there are.
    pub buckets: Vec<String>,
    /// How much it holds: when that is full it refuses what comes with the status 507.
    pub capacity_bytes: u64,
    /// All parts but the last must be as large, with S3 and GCS.
    pub smallest_part_bytes: u64,
    /// How many seconds its clock is ahead.
    pub ahead_s: i32,
    /// How fast each connection is, each way; without, as fast as it can.
    pub bytes_per_s: Option<u64>,
    /// How long it takes to connect, and how long an answer is held back: what a far store is like, without a link.
    pub latency: Duration,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

impl Store {
    /// S3 in `us-east-1`, with the bucket `bucket`.
    #[must_use]
    pub fn s3() -> Self {
        Self {
            dialect: Dialect::S3,
            account: "ascertain".into(),
            secret: "not-a-secret-at-all".into(),
            region: "us-east-1".into(),
            buckets: vec!["bucket".into()],
            capacity_bytes: u64::MAX,
            smallest_part_bytes: 5 << 20,
            ahead_s: 0,
            bytes_per_s: None,
            latency: Duration::ZERO,
            faults: Vec::new(),
        }
    }

    /// Azure, with the container `bucket`.
    #[must_use]
    pub fn azure() -> Self {
        // "not a secret at all, it is for tests"
        let secret = "bm90IGEgc2VjcmV0IGF0IGFsbCwgaXQgaXMgZm9yIHRlc3Rz".into();
        Self { dialect: Dialect::Azure, secret, ..Self::s3() }
    }

    /// GCS, with the bucket `bucket`.
    #[must_use]
    pub fn gcs() -> Self {
        Self { dialect: Dialect::Gcs, account: String::new(), ..Self::s3() }
    }
}
