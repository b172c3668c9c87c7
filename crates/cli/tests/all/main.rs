//! End-to-end tests of the `ascertain` binary, in one test program.
#![allow(missing_docs)]

mod action;
mod against;
mod architecture;
mod bad_input;
#[cfg(target_os = "linux")]
mod barrierd;
mod book;
mod calibrate_here;
mod clean;
mod commands;
mod common;
mod compare;
mod continuing;
mod cost;
#[cfg(target_os = "linux")]
mod dns;
mod documents;
mod every_option;
mod exports;
#[cfg(target_os = "linux")]
mod git_status;
mod history;
mod hyperfine;
mod limits;
mod listen;
#[cfg(target_os = "linux")]
mod minio_azurite;
mod outages;
mod permute;
mod power;
mod progress;
mod put_get;
mod pyperf;
mod recorded;
mod report;
mod runtimes;
mod series;
#[cfg(target_os = "linux")]
mod storage;
mod tails;
#[cfg(target_os = "linux")]
mod transfer;
mod typed;
mod unavailable;
mod untrusted;
mod windows;
mod zones;
