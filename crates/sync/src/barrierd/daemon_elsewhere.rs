//! Where there is no daemon.
#![allow(missing_docs)]

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use super::{Client, Error};

#[derive(Debug)]
pub enum Daemon {}

impl Daemon {
    pub fn new(_period: Duration) -> Result<Self, Error> {
        Err(Error::OtherMachine)
    }

    pub fn listen(&mut self, _path: &Path) -> Result<(), Error> {
        match *self {}
    }

    pub fn connect(&mut self) -> Result<Client, Error> {
        match *self {}
    }

    pub fn run_in_real_time(&self) -> io::Result<()> {
        match *self {}
    }

    pub fn drop_privileges(&self) -> io::Result<()> {
        match *self {}
    }

    pub fn serve(&mut self, _stop: BorrowedFd<'_>) -> io::Result<()> {
        match *self {}
    }
}
