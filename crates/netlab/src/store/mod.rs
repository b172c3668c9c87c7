//! Object stores within the process. They implement S3, Azure Blob Storage, and as much of GCS as clients need.
//!
//! Objects are kept in memory, and multipart uploads become objects without copying. Signatures and checksums are
//! verified as the providers verify them. Every request is recorded. A list of [`Fault`] values configures the faults
//! that a store injects.
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
mod service;
mod shared_key;
pub(crate) mod sigv4;
mod upload;

use std::time::Duration;

pub use fault::{Fault, Kind, Misdeed, RequestRecord};
pub use running::RunningStore;
pub use service::ServiceTimes;
#[cfg(feature = "providers")]
pub(crate) use {
    answer::{Answer, Content, Refusal, elements, escape},
    request::{Head, form},
    running::time_ahead,
};

/// The protocol that a store implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The protocol of Amazon S3, with the bucket in the path.
    S3,
    /// The protocol of Azure Blob Storage, with the account in the path.
    Azure,
    /// The XML API of Google Cloud Storage.
    Gcs,
}

/// The settings of an emulated store. [`start`](Self::start) starts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// The protocol that the store implements.
    pub dialect: Dialect,
    /// Access key id for S3, or account for Azure. It is empty for GCS.
    pub account: String,
    /// Secret access key for S3, account key for Azure (Base64), or token for GCS.
    pub secret: String,
    /// Region that the signatures of S3 must name.
    pub region: String,
    /// Names of the buckets or containers that exist at the start.
    pub buckets: Vec<String>,
    /// Capacity of the store, in bytes. A full store refuses uploads with status 507.
    pub capacity_bytes: u64,
    /// Minimum size of each part of an upload except the last, in bytes. It applies to S3 and GCS.
    pub smallest_part_bytes: u64,
    /// Number of seconds by which the store's clock is ahead of this machine's clock.
    pub ahead_s: i32,
    /// Rate limit of each connection in each direction; `None` for no limit.
    pub bytes_per_s: Option<u64>,
    /// Delay of each new connection and of each answer. It imitates a distant store without an emulated link.
    pub latency: Duration,
    /// The times that the store takes to read and write objects, in imitation of a real store. With `None`, the store
    /// answers at once.
    pub service: Option<ServiceTimes>,
    /// Seed of the random draws from [`Self::service`]. Give two stores different seeds, so that their times are
    /// unrelated.
    pub seed: u64,
    /// The faults that the store injects from the start on.
    pub faults: Vec<Fault>,
}

impl Store {
    /// Creates the settings of an S3 store in `us-east-1`, with the bucket `bucket`.
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
            service: None,
            seed: 0,
            faults: Vec::new(),
        }
    }

    /// Creates the settings of an Azure store, with the container `bucket`.
    pub fn azure() -> Self {
        // This is Base64 of "not a secret at all, it is for tests".
        let secret = "bm90IGEgc2VjcmV0IGF0IGFsbCwgaXQgaXMgZm9yIHRlc3Rz".into();
        Self { dialect: Dialect::Azure, secret, ..Self::s3() }
    }

    /// Creates the settings of a GCS store, with the bucket `bucket`.
    pub fn gcs() -> Self {
        Self { dialect: Dialect::Gcs, account: String::new(), ..Self::s3() }
    }
}
