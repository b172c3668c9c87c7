#![doc = include_str!("../README.md")]

pub mod race;

#[cfg(feature = "stores")]
mod buffers;
#[cfg(feature = "stores")]
mod crc64;
#[cfg(feature = "stores")]
mod error;
#[cfg(feature = "stores")]
mod journal;
#[cfg(feature = "stores")]
mod local;
#[cfg(feature = "stores")]
pub mod model;
#[cfg(feature = "stores")]
mod moving;
#[cfg(feature = "stores")]
mod names;
#[cfg(feature = "stores")]
mod remote;
#[cfg(feature = "stores")]
mod store;
#[cfg(feature = "stores")]
mod unfinished;

/// A boxed future that may borrow for `'a`. Public methods return it so that their code is compiled once, in this crate,
/// and not again in each crate that awaits them.
#[cfg(feature = "stores")]
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

#[cfg(feature = "stores")]
pub use {
    buffers::Filling,
    crc64::{crc64, crc64_of_blocks},
    error::{Error, LeftOut},
    local::{Links, Local},
    moving::{
        Done, Many, Moved, Mover, Observer, Outcome, Place, Progress, Requests, Resume, Retried, Skipped, Spread, Stop,
        Terms, Way,
    },
    names::{Filter, content_type, matches, shown},
    remote::{Environment, Options, Reply, Service, Sockets, open},
    store::{
        Attempt, Block, Failure, Found, Integrity, Kind, Limits, Meta, Pieces, PutOptions, Reached, Store, Upload,
    },
    unfinished::{BrokenOff, GivenUp, broken_off, unfinished},
};
