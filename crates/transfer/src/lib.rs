#![doc = include_str!("../README.md")]

pub mod race;

#[cfg(feature = "stores")]
mod buffers;
#[cfg(feature = "stores")]
mod contact;
#[cfg(feature = "stores")]
mod crc64;
#[cfg(feature = "stores")]
mod download;
#[cfg(feature = "stores")]
mod error;
#[cfg(feature = "stores")]
mod folder;
#[cfg(feature = "stores")]
mod folder_journal;
#[cfg(feature = "stores")]
mod gentle;
#[cfg(feature = "stores")]
mod history;
#[cfg(feature = "stores")]
mod journal;
#[cfg(feature = "stores")]
mod leftovers;
#[cfg(feature = "stores")]
mod list;
#[cfg(feature = "stores")]
mod location;
#[cfg(feature = "stores")]
mod manager;
#[cfg(feature = "stores")]
pub mod model;
#[cfg(feature = "stores")]
mod names;
#[cfg(feature = "stores")]
mod pages;
#[cfg(feature = "stores")]
mod part;
#[cfg(feature = "stores")]
mod pattern;
#[cfg(feature = "stores")]
mod plan;
#[cfg(feature = "stores")]
mod pool;
#[cfg(feature = "stores")]
mod publisher;
#[cfg(feature = "stores")]
mod rate_limit;
#[cfg(feature = "stores")]
mod repair;
#[cfg(feature = "stores")]
mod result;
#[cfg(feature = "stores")]
mod retry;
#[cfg(feature = "stores")]
mod run;
#[cfg(feature = "stores")]
mod scheduler;
#[cfg(feature = "stores")]
mod source;
#[cfg(feature = "stores")]
mod store;
#[cfg(feature = "stores")]
mod stream;
#[cfg(feature = "stores")]
mod total;
#[cfg(feature = "stores")]
mod upload;
#[cfg(feature = "stores")]
mod verify;
#[cfg(feature = "stores")]
mod walk;

/// A boxed future that may borrow for `'a`. Public methods return it so that their code is compiled once, in this
/// crate, and not again in each crate that awaits them.
#[cfg(feature = "stores")]
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

#[cfg(feature = "stores")]
pub use {
    ascertain_sys::interrupt::Stop,
    buffers::RangeWriter,
    crc64::{crc64, crc64_of_blocks},
    error::{Error, Omission},
    leftovers::{AbortOutcome, Aborted, InterruptedTransfer, abort_all, interrupted_transfers, leftovers},
    list::{ListedObject, list},
    location::Location,
    manager::{Resume, Settings, TransferManager},
    model::{Forecast, TransferPlan},
    names::{Filter, content_type, shown},
    pattern::Pattern,
    plan::Selection,
    result::{
        Observer, Outage, Progress, RepairedRange, RequestSummary, RetryCounts, Spread, TransferResult, TransferStatus,
    },
    run::{Direction, STANDARD, TransferRequest, run},
    store::{
        Attempt, Attributes, ByteStream, Checksum, Environment, Failure, Kind, Limits, Local, ObjectMeta, Options,
        PartBody, PutOptions, Reply, Service, Sockets, Store, StoreLocation, Upload, open,
    },
    walk::Links,
};
