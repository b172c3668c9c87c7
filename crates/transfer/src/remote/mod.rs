//! Stores at the other end of a network.

mod address;
mod azure;
mod client;
mod connect;
mod credentials;
mod dialect;
mod google;
mod http;
mod ini;
mod keys;
mod open;
mod refusal;
mod s3;
mod service;
mod site;

pub use open::{Environment, Options, Sockets, open};
pub use service::{Reply, Service};
