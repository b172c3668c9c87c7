//! Tests of stores, transfers to and from them, the model of links, and races between a cache and its origin.
#![allow(missing_docs)]

#[cfg(feature = "stores")]
mod aws;
#[cfg(feature = "stores")]
mod broken;
#[cfg(feature = "stores")]
mod common;
#[cfg(feature = "stores")]
mod counts;
#[cfg(feature = "stores")]
mod credentials;
#[cfg(feature = "stores")]
mod history;
#[cfg(feature = "stores")]
mod http;
#[cfg(feature = "stores")]
mod killed;
#[cfg(feature = "stores")]
mod killed_folder;
#[cfg(all(feature = "stores", target_os = "linux"))]
mod minio_azurite;
#[cfg(feature = "stores")]
mod model;
#[cfg(feature = "stores")]
mod names;
#[cfg(feature = "stores")]
mod nonsense;
#[cfg(feature = "stores")]
mod parsers;
mod race;
#[cfg(feature = "stores")]
mod refusals;
#[cfg(feature = "stores")]
mod regions;
#[cfg(feature = "stores")]
mod round_trips;
#[cfg(feature = "stores")]
mod secrets;
#[cfg(feature = "stores")]
mod service;
#[cfg(feature = "stores")]
mod stores;
#[cfg(feature = "stores")]
mod transfers;
