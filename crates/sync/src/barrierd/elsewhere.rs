//! Stubs of the client and the daemon for other systems, which lack the features of Linux that the daemon needs.
#![allow(missing_docs)]

use std::path::Path;
use std::time::Instant;

use super::{Error, Status};

/// Defines methods that can never be called, because their type has no values.
macro_rules! never {
    ($(fn $name:ident(&self $(, $argument:ty)*) -> $result:ty;)*) => {
        $(pub fn $name(&self $(, _: $argument)*) -> $result {
            match *self {}
        })*
    };
}

#[derive(Debug)]
pub enum Client {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp(std::convert::Infallible);

impl Client {
    pub fn open(_path: impl AsRef<Path>) -> Result<Self, Error> {
        Err(Error::OtherMachine)
    }

    never! {
        fn timestamp(&self) -> Timestamp;
        fn has_passed(&self, Timestamp, Option<&[u32]>) -> bool;
        fn has_passed_by_clock(&self, u64) -> bool;
        fn request_heartbeat(&self) -> Result<(), Error>;
        fn wait(&self, Timestamp, Option<&[u32]>, Instant) -> Result<(), Error>;
        fn is_alive(&self) -> bool;
        fn cpus(&self) -> u32;
        fn status(&self) -> Status;
    }
}

#[cfg(feature = "daemon")]
#[derive(Debug)]
pub enum Daemon {}

#[cfg(feature = "daemon")]
impl Daemon {
    pub fn new(_period: std::time::Duration) -> Result<Self, Error> {
        Err(Error::OtherMachine)
    }

    pub fn listen(&mut self, _path: &Path) -> Result<(), Error> {
        match *self {}
    }

    pub fn connect(&mut self) -> Result<Client, Error> {
        match *self {}
    }

    pub fn serve(&mut self, _stop: std::os::fd::BorrowedFd<'_>) -> std::io::Result<()> {
        match *self {}
    }

    never! {
        fn run_in_real_time(&self) -> std::io::Result<()>;
        fn drop_privileges(&self) -> std::io::Result<()>;
    }
}
