//! Where there is no daemon: nothing but Linux has what it is made of.
#![allow(missing_docs)]

use std::path::Path;
use std::time::Instant;

use super::{Error, Status};

#[derive(Debug)]
pub enum Client {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp(std::convert::Infallible);

impl Client {
    pub fn open(_path: impl AsRef<Path>) -> Result<Self, Error> {
        Err(Error::OtherMachine)
    }

    pub fn timestamp(&self) -> Timestamp {
        match *self {}
    }

    pub fn has_passed(&self, _timestamp: Timestamp, _cpus: Option<&[u32]>) -> bool {
        match *self {}
    }

    pub fn has_passed_by_clock(&self, _clock_ns: u64) -> bool {
        match *self {}
    }

    pub fn ask(&self) -> Result<(), Error> {
        match *self {}
    }

    pub fn wait(&self, _timestamp: Timestamp, _cpus: Option<&[u32]>, _deadline: Instant) -> Result<(), Error> {
        match *self {}
    }

    pub fn is_alive(&self) -> bool {
        match *self {}
    }

    pub fn cpus(&self) -> u32 {
        match *self {}
    }

    pub fn status(&self) -> Status {
        match *self {}
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

    pub fn run_in_real_time(&self) -> std::io::Result<()> {
        match *self {}
    }

    pub fn drop_privileges(&self) -> std::io::Result<()> {
        match *self {}
    }

    pub fn serve(&mut self, _stop: std::os::fd::BorrowedFd<'_>) -> std::io::Result<()> {
        match *self {}
    }
}
