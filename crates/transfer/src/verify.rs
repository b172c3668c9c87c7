//! The last step of a transfer: compares the checksums of both sides.

use std::sync::Arc;

use tokio::time::Instant;

use crate::download::RANGES;
use crate::error::{Error, Result};
use crate::journal::{Journal, PartList};
use crate::location::Location;
use crate::manager::TransferManager;
use crate::part::{Fetcher, Sink};
use crate::pool::FileRequests;
use crate::repair::ExpectedSums;
use crate::result::TransferResult;
use crate::scheduler::Scheduler;
use crate::store::ObjectMeta;

/// The terms that messages use for the store's object, for our bytes, and for the bytes that were read back.
pub(crate) type Words = [&'static str; 3];
pub(crate) const UPLOAD_WORDS: Words = ["the stored object", "the source", "the object that was read back"];
pub(crate) const DOWNLOAD_WORDS: Words = ["the stored object", "the download", "the second download"];

impl TransferManager {
    /// Compares the store's checksum of the object, if it has one, with our checksum in `result`. If the settings
    /// require it, also reads the object back. Messages use the given terms.
    pub(crate) async fn verify(
        &self,
        object: &Location,
        meta: &ObjectMeta,
        result: &mut TransferResult,
        [stored, ours, again]: Words,
    ) -> Result<()> {
        let Some(crc64) = result.crc64 else { return Ok(()) };
        let check = |expected: ExpectedSums, what| {
            let difference = expected.difference(crc64, None, what, ours);
            difference.map_or(Ok(()), |difference| Err(Error::Corrupted(format!("{}: {difference}", object.address))))
        };
        check(ExpectedSums::stored(meta), stored)?;
        if self.settings.verify {
            let read = || self.read_again(object, meta, result.bytes, [stored, ours, again]);
            let mut expected = read().await?;
            if check(expected, again).is_err() {
                // The bytes may have been damaged on the way back.
                expected = read().await?;
            }
            check(expected, again)?;
            result.verified = true;
        }
        Ok(())
    }

    /// Reads an object of `bytes` bytes a second time, and returns the checksum of its bytes. Fails if the object has
    /// another size now.
    pub(crate) async fn read_again(
        &self,
        object: &Location,
        meta: &ObjectMeta,
        bytes: u64,
        [_, ours, again]: Words,
    ) -> Result<ExpectedSums> {
        let (there, latency_s) = self.head(object).await?;
        let there = there.unwrap_or_else(|| meta.clone());
        if there.bytes != bytes {
            let (address, there_bytes) = (&object.address, there.bytes);
            let message = format!("{address}: {again} has {there_bytes} bytes, but {ours} has {bytes}");
            return Err(Error::Corrupted(message));
        }
        let crc64 = self.read_back(object, &there, latency_s).await?;
        Ok(ExpectedSums { crc64: Some(crc64), crc32c: None })
    }

    /// Reads an object from the store, and returns the CRC-64 of its bytes.
    pub(crate) async fn read_back(&self, from: &Location, meta: &ObjectMeta, latency_s: f64) -> Result<u64> {
        // The caller may occupy all of the shared memory, so reading the object back gets separate memory.
        let mut fetcher = Fetcher::new(from, meta, Sink::Nowhere, self.gate.with_own_memory());
        let permits = match &self.permits {
            Some(permits) => permits.pool().added_file(meta.bytes),
            None => FileRequests::alone(self.download_planner(from, meta, meta.bytes, latency_s), Instant::now(), None),
        };
        let (parts, journal) = (PartList::default(), Journal::default());
        let mut scheduler = Scheduler::new(self, Arc::new(permits), RANGES, meta.bytes, parts, journal);
        // Progress is not reported, because the same bytes would be counted twice.
        self.gently(from, scheduler.run(&mut fetcher, &(), &from.name)).await?;
        Ok(scheduler.parts.crc64())
    }
}
