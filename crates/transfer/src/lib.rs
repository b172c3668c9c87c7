#![doc = include_str!("../README.md")]

mod buffers;
mod crc64;
mod error;
mod journal;
mod local;
pub mod model;
mod moving;
mod names;
pub mod race;
mod remote;
mod store;
mod unfinished;

pub use crc64::{crc64, crc64_of_blocks};
pub use error::Error;
pub use local::Local;
pub use moving::{Done, Many, Moved, Mover, Observer, Outcome, Place, Progress, Skipped, Stop, Terms};
pub use names::{Filter, content_type, matches};
pub use remote::{Environment, Options, Reply, Service, Sockets, open};
pub use store::{Attempt, Block, Failure, Found, Integrity, Kind, Limits, Meta, PutOptions, Store, Upload};
pub use unfinished::unfinished;
