//! Repairs a download whose checksum is wrong.
//!
//! Parts are fetched a second time, and compared with the file on the disk. A part that differs is replaced. If the
//! store keeps checksums of the parts of the upload, only the ranges with a wrong checksum are fetched again. If not,
//! parts are fetched again until the checksum of the whole file is right.

use std::ops::Range;
use std::sync::Arc;

use tokio::task::spawn_blocking;

use crate::BoxFuture;
use crate::buffers::{RangeWriter, TargetFile, read_sums};
use crate::crc64::{crc32c, crc64_of_blocks};
use crate::download::ObjectDownload;
use crate::error::{Error, Result};
use crate::journal::{Part, PartList, PartReceipt};
use crate::part::{Fetcher, HeldPart, PartOutput, PartWork, Sink};
use crate::result::{RepairedRange, ranges_text};
use crate::scheduler::Scheduler;
use crate::store::ObjectMeta;

/// The checksums that the bytes of a whole file must have. A checksum that is `None` is unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpectedSums {
    pub crc64: Option<u64>,
    pub crc32c: Option<u32>,
}

impl ExpectedSums {
    /// Returns the checksums that the store has of an object.
    pub fn stored(meta: &ObjectMeta) -> Self {
        Self { crc64: meta.crc64, crc32c: meta.crc32c }
    }

    /// Compares these checksums with the checksums of some bytes. Returns a description of the first checksum that
    /// differs; `None` if no known checksum differs. `theirs` and `ours` are the names of the two sides in the
    /// description.
    pub fn difference(self, crc64: u64, crc32c: Option<u32>, theirs: &str, ours: &str) -> Option<String> {
        if let Some(expected) = self.crc64.filter(|expected| *expected != crc64) {
            return Some(format!("{theirs} has the CRC-64 {expected:016x}, but {ours} has {crc64:016x}"));
        }
        let (expected, crc32c) = self.crc32c.zip(crc32c).filter(|(expected, crc32c)| expected != crc32c)?;
        Some(format!("{theirs} has the CRC-32C {expected:08x}, but {ours} has {crc32c:08x}"))
    }

    fn fit(self, parts: &PartList) -> bool {
        self.difference(parts.crc64(), parts.crc32c(), "", "").is_none()
    }
}

/// The outcome of a repair.
#[derive(Debug)]
pub(crate) struct Repair {
    /// `true` if the file has the expected checksums now.
    pub is_right: bool,
    /// The ranges whose bytes were replaced, in the order of their offsets.
    pub replaced: Vec<RepairedRange>,
    /// The ranges that differ from the store's checksums of ranges. Empty if the store has no such checksums.
    wrong: Vec<Range<u64>>,
}

impl Repair {
    /// Explains why the file still does not have the expected checksums.
    pub fn finding(&self) -> String {
        if !self.replaced.is_empty() {
            let ranges = ranges_text(&self.replaced);
            return format!("{ranges} arrived with other bytes the second time, but the checksum is still wrong");
        }
        if self.wrong.is_empty() {
            return "all ranges arrived with the same bytes again, so the stored object itself does not have its checksum".into();
        }
        let wrong: Vec<_> = self.wrong.iter().cloned().map(RepairedRange::from).collect();
        format!("{} arrived twice with the same bytes, which differ from their own checksum", ranges_text(&wrong))
    }
}

/// Fetches parts again, and replaces the parts of the file that differ.
struct Repairer<'a> {
    fetcher: Fetcher<'a>,
    target: Arc<TargetFile>,
    expected: ExpectedSums,
    /// The parts, with the checksums of their bytes in the file.
    parts: PartList,
    replaced: Vec<Part>,
    is_right: bool,
}

impl PartWork for Repairer<'_> {
    fn start(&self, part: Part, is_second: bool) -> BoxFuture<'static, Result<PartOutput>> {
        self.fetcher.start(part, is_second)
    }

    fn deliver(&mut self, part: Part, held: Option<HeldPart>) -> Result<()> {
        let (Some(HeldPart { body, .. }), Some((part, there))) = (held, self.parts.get(part.index)) else {
            return Ok(());
        };
        if there.crc64 == body.crc64 {
            return Ok(());
        }
        let crc32c = there.crc32c.map(|_| crc32c(&body.bytes));
        self.target.write(&body.bytes, part.offset).map_err(|failure| self.target.error(failure))?;
        self.replaced.push(part);
        self.parts.complete(part.index, PartReceipt { token: String::new(), crc64: body.crc64, crc32c });
        self.is_right = self.expected.fit(&self.parts);
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.is_right
    }
}

impl ObjectDownload<'_> {
    /// Repairs a complete file that does not have the expected checksums. Each part is fetched again at most once.
    /// Afterwards, the receipts in `scheduler` and in its journal describe the bytes in the file.
    pub(crate) async fn repair(
        &mut self,
        target: &Arc<TargetFile>,
        scheduler: &mut Scheduler<'_>,
        expected: ExpectedSums,
    ) -> Result<Repair> {
        let (manager, from) = (self.manager, self.from);
        let parts = self.parts_on_disk(target, &scheduler.parts).await?;
        let wrong = self.wrong_ranges(target).await?;
        let is_suspect = |part: Part| {
            wrong.is_empty() || wrong.iter().any(|range| part.offset < range.end && range.start < part.end())
        };
        let mut again = parts.clone();
        again.recheck(|part, _| !is_suspect(part));
        let is_right = expected.fit(&parts);
        let fetcher = Fetcher::new(from, &self.meta, Sink::Memory, manager.gate.clone());
        let (target, replaced) = (Arc::clone(target), Vec::new());
        let mut repairer = Repairer { fetcher, target, expected, parts, replaced, is_right };
        if !is_right {
            // Progress is not reported, because the same bytes would be counted twice.
            let mut again = scheduler.again(again);
            manager.gently(from, again.run(&mut repairer, &(), &from.name)).await?;
            scheduler.add_requests(again);
        }
        let Repairer { parts, mut replaced, is_right, .. } = repairer;
        replaced.sort_by_key(|part| part.offset);
        scheduler.parts = parts;
        for (part, receipt) in replaced.iter().filter_map(|part| scheduler.parts.get(part.index)) {
            scheduler.journal.complete_part(part.index, receipt)?;
        }
        scheduler.report(&mut self.result);
        let replaced = replaced.iter().map(|&Part { offset, bytes, .. }| RepairedRange { offset, bytes }).collect();
        Ok(Repair { is_right, replaced, wrong })
    }

    /// Returns the parts of the file with the checksums of the bytes that are on the disk.
    async fn parts_on_disk(&self, target: &Arc<TargetFile>, parts: &PartList) -> Result<PartList> {
        let mut on_disk = PartList::default();
        for part in parts.iter() {
            let sums = self.sums_on_disk(target, part.offset..part.end()).await?;
            on_disk.start(part);
            let (crc64, crc32c) = (sums.crc64(), sums.crc32c());
            on_disk.complete(part.index, PartReceipt { token: String::new(), crc64, crc32c });
        }
        Ok(on_disk)
    }

    /// Returns the ranges of the file that differ from the store's checksums of these ranges. Returns no ranges if the
    /// store has no such checksums, or if these contradict the checksum of the whole object.
    async fn wrong_ranges(&self, target: &Arc<TargetFile>) -> Result<Vec<Range<u64>>> {
        let (manager, meta) = (self.manager, &self.meta);
        let mut attempt = manager.gate.with_rate_limit(manager.gate.retry.attempt());
        // If this request fails, all parts count as suspect.
        let sums = manager.or_stopped(self.from.store.part_sums(meta, &mut attempt)).await?.unwrap_or_default();
        let bytes = sums.iter().fold(0, |sum: u64, (bytes, _)| sum.saturating_add(*bytes));
        if sums.len() < 2 || bytes != meta.bytes || meta.crc64 != Some(crc64_of_blocks(sums.iter().copied())) {
            return Ok(Vec::new());
        }
        let (mut start, mut wrong) = (0, Vec::new());
        for (bytes, crc64) in sums {
            let range = start..start + bytes;
            start = range.end;
            if self.sums_on_disk(target, range.clone()).await?.crc64() != crc64 {
                wrong.push(range);
            }
        }
        Ok(wrong)
    }

    /// Reads a range of the file, and returns its checksums.
    async fn sums_on_disk(&self, target: &Arc<TargetFile>, range: Range<u64>) -> Result<RangeWriter> {
        let (target, needs_crc32c) = (Arc::clone(target), self.meta.crc32c.is_some());
        let path = target.path.clone();
        let read = spawn_blocking(move || read_sums(&target.file, range, needs_crc32c));
        let read = self.manager.or_stopped(read).await?;
        read.unwrap_or_else(|error| Err(std::io::Error::other(error))).map_err(Error::file("can't read", &path))
    }
}
