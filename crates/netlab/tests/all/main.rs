//! Tests of links, servers, measurements and stores: against references, with other programs, and with misbehaving
//! peers.
#![allow(missing_docs)]

#[cfg(feature = "dns")]
mod dns;
#[cfg(feature = "servers")]
mod http;
#[cfg(all(feature = "servers", target_os = "linux"))]
mod installed;
#[cfg(target_os = "linux")]
mod link;
#[cfg(feature = "servers")]
mod messages;
mod model;
#[cfg(feature = "providers")]
mod provider;
#[cfg(all(feature = "stores", target_os = "linux"))]
mod store;
#[cfg(feature = "servers")]
mod throughput;
