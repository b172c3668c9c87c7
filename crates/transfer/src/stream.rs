//! Transfers of unknown length, which can't be resumed. Uploads are standard input, pipes and devices. Downloads are
//! objects whose store reports the length only at the end, such as archives that are created on the fly.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::sync::Arc;

use ascertain_sys::files::Draft;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use crate::BoxFuture;
use crate::buffers::{RangeWriter, STEP_BYTES};
use crate::crc64::digest;
use crate::download::{ObjectDownload, TargetPath, publish};
use crate::error::{Error, Result, file_failure};
use crate::journal::{Journal, Part, PartList, Side};
use crate::location::Location;
use crate::manager::TransferManager;
use crate::part::{PartOutput, send};
use crate::result::{Progress, RequestStats, RequestSummary, TransferResult, TransferStatus};
use crate::retry::request;
use crate::store::{Attempt, Failure, Kind, Limits, ObjectMeta, PartBody, Upload};
use crate::upload::{ObjectUpload, described};

/// Preferred size in bytes of the first part of a stream. The limits of the store, or the memory limit, may require
/// another size.
const FIRST_BYTES: u64 = 1 << 20;
/// Number of different part sizes in the longest stream, which has the maximum number of parts. Each size is twice the
/// previous one.
const DOUBLINGS: usize = 10;
/// Number of bytes from which the timeout of a whole stream is computed. The timeout is then very long. This does no
/// harm, because the client fails anyway if no bytes move for some time.
const UNLIMITED_BYTES: u64 = 1 << 50;

/// Returns the size in bytes of the part `index` of a stream. For S3, the first 1000 parts have 5 MiB each, and the
/// size doubles after every 1000 parts. The permitted 10,000 parts then hold 5 TB, the largest size of an object.
fn part_bytes(index: usize, limits: &Limits, memory_bytes: u64) -> u64 {
    let first = FIRST_BYTES.min(memory_bytes).max(limits.min_part_bytes).min(limits.max_part_bytes);
    let doublings = index * DOUBLINGS / limits.max_parts.max(1);
    first.saturating_mul(1 << doublings.min(40)).min(limits.max_part_bytes)
}

type Input<'a> = dyn AsyncRead + Unpin + Send + 'a;

impl TransferManager {
    /// Returns the size of a stream's first part. Fails if the memory limit has no room for such a part.
    pub(crate) fn first_part_bytes(&self, to: &Location) -> Result<u64> {
        let first_bytes = part_bytes(0, &to.store.limits(), self.settings.memory_bytes);
        self.check_memory(first_bytes, to).map(|()| first_bytes)
    }

    /// Stores the bytes of a stream, such as standard input. The transfer can't be resumed.
    ///
    /// # Errors
    /// Fails if the memory limit has no room for a part, or if the stream can't be read or is too long. Also fails if
    /// the store refuses the bytes. After an error, the parts that were sent are removed.
    pub fn put_stream<'a>(
        &'a self,
        stream: &'a mut Input<'a>,
        to: &'a Location,
    ) -> BoxFuture<'a, Result<TransferResult>> {
        Box::pin(async move {
            let began = Instant::now();
            self.check_attributes(to)?;
            let first_bytes = self.first_part_bytes(to)?;
            let head = described(self.head(to).await?);
            let mut upload = ObjectUpload::new(self, Path::new("-"), to, head, began);
            if self.settings.no_clobber && upload.before.meta().is_some() {
                return Ok(upload.skip(TransferStatus::Exists));
            }
            let permit = self.or_stopped(upload.gate.admit(first_bytes)).await??;
            let first = self.read(stream, first_bytes).await?;
            let bytes = first.bytes.len() as u64;
            let meta = if bytes < first_bytes && bytes <= to.store.limits().max_put_bytes {
                upload.put_single(first).await?.0
            } else {
                upload.put_stream((first, permit), stream).await?
            };
            upload.finish(&meta, Journal::default()).await
        })
    }

    /// Reads up to `most` bytes from a stream. Reads fewer only if the stream ends.
    async fn read(&self, stream: &mut Input<'_>, most: u64) -> Result<PartBody> {
        let mut body = RangeWriter::in_memory(&self.gate.buffers, 0..most);
        while !body.room(STEP_BYTES).is_empty() {
            let read = self.or_stopped(stream.read(body.room(STEP_BYTES))).await?;
            match read.map_err(Error::file("can't read", Path::new("the input")))? {
                0 => break,
                bytes => body.filled(bytes),
            }
        }
        Ok(body.finish())
    }
}

impl ObjectUpload<'_> {
    /// Sends a stream in parts, the first of which is already in memory.
    async fn put_stream(
        &mut self,
        first: (PartBody, OwnedSemaphorePermit),
        stream: &mut Input<'_>,
    ) -> Result<ObjectMeta> {
        let source = Side { address: "-".into(), version: None, bytes: 0 };
        let (destination, mut note) = (Side::of_object(self.to, self.before.meta()), Journal::default());
        let upload = self.start(&mut note, source, destination).await?;
        let committed = match self.manager.gently(self.to, self.send_parts(first, stream, &upload)).await {
            Ok(parts) => self.commit(&upload, &parts, false).await,
            Err(error) => Err(error),
        };
        match committed {
            Ok(meta) => note.remove().map(|()| meta),
            Err(error) => self.discard(&upload, note).await.and(Err(error)),
        }
    }

    async fn send_parts(
        &mut self,
        (mut body, mut permit): (PartBody, OwnedSemaphorePermit),
        stream: &mut Input<'_>,
        upload: &Upload,
    ) -> Result<PartList> {
        let (manager, to, gate, limits) = (self.manager, self.to, &self.gate, self.to.store.limits());
        let part_bytes = |index| part_bytes(index, &limits, manager.settings.memory_bytes);
        // If the rate limit delays each slice of a part, it does not delay the start of the part. So the number of
        // parts in flight must be limited here.
        let max_in_flight =
            if gate.in_slices { manager.constraints(limits).max_concurrency } else { manager.settings.max_concurrency };
        let (mut parts, mut requests, mut tasks) = (PartList::default(), Vec::new(), JoinSet::new());
        let mut done_bytes = 0;
        let mut keep = |parts: &mut PartList, joined: Result<Result<(Part, PartOutput)>, JoinError>| {
            let cant_send = |error| Error::file("can't send", Path::new("the input"))(io::Error::other(error));
            let (part, (receipt, stats, _)) = joined.map_err(cant_send)??;
            requests.push(stats);
            parts.complete(part.index, receipt);
            Ok::<_, Error>(part.bytes)
        };
        for index in 0.. {
            if index >= limits.max_parts {
                let message = format!(
                    "{}: the stream needs more than {} parts, the limit of the store",
                    to.address, limits.max_parts
                );
                return Err(Failure::new(Kind::Full, message).into());
            }
            let part = Part { bytes: body.bytes.len() as u64, ..parts.next() };
            let is_last = part.bytes < part_bytes(index);
            if part.bytes > 0 || index == 0 {
                parts.start(part);
                let (store, gate, upload) = (Arc::clone(&to.store), gate.clone(), upload.clone());
                tasks.spawn(async move {
                    let _permit = permit;
                    Ok((part, send(&gate, &*store, &upload, part, body).await?))
                });
            }
            while let Some(joined) = tasks.try_join_next() {
                done_bytes += keep(&mut parts, joined)?;
            }
            if is_last {
                break;
            }
            while tasks.len() >= max_in_flight
                && let Some(joined) = manager.or_stopped(tasks.join_next()).await?
            {
                done_bytes += keep(&mut parts, joined)?;
            }
            let elapsed_s = self.began.elapsed().as_secs_f64();
            let progress = Progress {
                name: &to.name,
                done_bytes,
                bytes: None,
                elapsed_s,
                shape: None,
                forecast: None,
                files: None,
            };
            manager.observer.progress(&progress);
            let next_bytes = part_bytes(index + 1);
            permit = manager.or_stopped(gate.admit(next_bytes)).await??;
            body = manager.read(stream, next_bytes).await?;
        }
        while let Some(joined) = manager.or_stopped(tasks.join_next()).await? {
            keep(&mut parts, joined)?;
        }
        (self.result.bytes, self.result.crc64) = (parts.done_bytes(), Some(parts.crc64()));
        (self.result.parts, self.result.requests) = (parts.next().index as u64, RequestSummary::new(&requests));
        Ok(parts)
    }
}

impl ObjectDownload<'_> {
    /// Writes an object of unknown length to a file. Each retry starts again at the beginning of the object.
    pub async fn write_unsized_file(mut self, target: &TargetPath) -> Result<TransferResult> {
        let (manager, path) = (self.manager, &target.path);
        let draft =
            Draft::create_in(Arc::clone(&target.folder), &target.name).map_err(Error::file("can't write", path))?;
        let file: &File = draft.file();
        let request = |mut attempt| async {
            let mut out = file;
            let emptied = out.set_len(0).and_then(|()| out.rewind());
            let copied = match emptied.map_err(|error| file_failure("can't write", path, &error)) {
                Ok(()) => self.copy(&mut out, path, &mut attempt).await,
                Err(failure) => Err(failure),
            };
            (copied, attempt)
        };
        let copying = manager.gate.retry.run(UNLIMITED_BYTES, Kind::Transient(None), request);
        let ((meta, crc64), stats) = manager.or_stopped(manager.gently(self.from, copying)).await??;
        self.finish(&meta, crc64, &[stats]).await?;
        self.check_published(publish(draft, path, &meta, &manager.settings))?;
        Ok(self.result)
    }

    /// Writes an object of unknown length to a stream. Never retries, because bytes that are in the stream can't be
    /// taken back.
    pub async fn write_unsized_to(mut self, out: &mut (dyn Write + Send)) -> Result<TransferResult> {
        let mut attempt = self.manager.gate.retry.attempt();
        let copying = self.copy(out, Path::new("the output"), &mut attempt);
        let (meta, crc64) = self.manager.or_stopped(self.manager.gently(self.from, copying)).await??;
        self.finish(&meta, crc64, &[]).await?;
        Ok(self.result)
    }

    /// Copies the object to a writer. Returns the CRC-64 of its bytes, and its metadata, which now include its length.
    async fn copy(
        &self,
        out: &mut (dyn Write + Send),
        path: &Path,
        attempt: &mut Attempt,
    ) -> Result<(ObjectMeta, u64), Failure> {
        let cant_write = |error| file_failure("can't write", path, &error);
        let (mut meta, mut stream) = self.from.store.open_stream(&self.from.name, attempt).await?;
        let mut sum = digest();
        meta.bytes = 0;
        while let Some(bytes) = stream.next(attempt).await? {
            self.manager.gate.rate_limit.wait(bytes.len() as u64).await;
            out.write_all(&bytes).map_err(cant_write)?;
            sum.update(&bytes);
            meta.bytes += bytes.len() as u64;
        }
        out.flush().map_err(cant_write)?;
        Ok((meta, sum.finalize()))
    }

    /// Completes the result of a stream's download. If the settings require it, reads the object a second time and
    /// compares the checksums.
    async fn finish(&mut self, meta: &ObjectMeta, crc64: u64, stats: &[RequestStats]) -> Result<()> {
        let manager = self.manager;
        (self.result.bytes, self.result.parts, self.result.crc64) = (meta.bytes, 1, Some(crc64));
        (self.result.elapsed_s, self.result.requests) =
            (self.began.elapsed().as_secs_f64(), RequestSummary::new(stats));
        if manager.settings.verify {
            let request =
                request!(attempt = manager.gate, self.copy(&mut io::sink(), Path::new("nothing"), &mut attempt));
            let copying = manager.gate.retry.run(UNLIMITED_BYTES, Kind::Transient(None), request);
            let ((again, crc64_again), _) = manager.or_stopped(manager.gently(self.from, copying)).await??;
            if (again.bytes, crc64_again) != (meta.bytes, crc64) {
                let (address, first, second) = (&self.from.address, meta.bytes, again.bytes);
                let sizes = format!("the first has {first} bytes, and the second has {second}");
                return Err(Error::Corrupted(format!("{address}: the contents of two downloads differ: {sizes}")));
            }
            self.result.verified = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_grow_so_that_ten_thousand_hold_five_terabytes() {
        let s3 = Limits { min_part_bytes: 5 << 20, max_part_bytes: 5 << 30, max_parts: 10_000, max_put_bytes: 5 << 30 };
        let sizes: Vec<u64> = (0..10_000).map(|index| part_bytes(index, &s3, 256 << 20)).collect();
        assert_eq!(sizes[0], 5 << 20);
        assert!(sizes.windows(2).all(|two| two[0] <= two[1]) && sizes[9_999] <= s3.max_part_bytes);
        assert!(sizes.iter().sum::<u64>() > 5_000_000_000_000);
        assert!(sizes[999] == 5 << 20, "5 GB go in the smallest");
    }
}
