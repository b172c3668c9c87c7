//! A stream of unknown length into a store: blocks that grow, so that there is no length at which they run out.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::patience::Went;
use super::put::{PUT, Sum, crc64_of};
use super::requests::Log;
use super::{Moved, Mover, Place, Progress, Skipped, forget};
use crate::BoxFuture;
use crate::buffers::{Filling, STEP_BYTES};
use crate::error::Error;
use crate::journal::{Part, Piece, Side};
use crate::store::{Block, Failure, Kind, Limits, Meta, Upload};

/// Where a store takes any size, and there is memory for it.
const FIRST_BYTES: u64 = 1 << 20;
/// Blocks double in size so many times until there may be no more of them.
const DOUBLINGS: usize = 10;

/// How large the block of this index is: 5 MiB × 10,000 blocks that double ten times make 5 TB, the most that S3 has.
fn block_bytes(index: usize, limits: &Limits, memory_bytes: u64) -> u64 {
    let first = FIRST_BYTES.min(memory_bytes).max(limits.min_block_bytes).min(limits.max_block_bytes);
    let doublings = index * DOUBLINGS / limits.max_blocks.max(1);
    first.saturating_mul(1 << doublings.min(40)).min(limits.max_block_bytes)
}

/// A stream to read.
type Input<'a> = dyn AsyncRead + Unpin + Send + 'a;

impl Mover {
    /// How large the first block of a stream is, if memory has room for it.
    pub(super) fn first_bytes(&self, to: &Place) -> Result<u64, Error> {
        let first_bytes = block_bytes(0, &to.store.limits(), self.terms.memory_bytes);
        self.has_memory(first_bytes, to).map(|()| first_bytes)
    }

    /// Puts what comes from a stream, as standard input, into a store. It can't be gone on with when it breaks off.
    ///
    /// # Errors
    /// When the stream can't be read, or the store refuses what comes; then what was sent is given up.
    pub fn put_stream<'a>(&'a self, stream: &'a mut Input<'a>, to: &'a Place) -> BoxFuture<'a, Result<Moved, Error>> {
        Box::pin(async move {
            let began = Instant::now();
            let limits = to.store.limits();
            let first_bytes = self.first_bytes(to)?;
            let (before, _) = self.head(to).await?;
            if self.terms.no_clobber && before.is_some() {
                let elapsed_s = began.elapsed().as_secs_f64();
                return Ok(Moved { elapsed_s, skipped: Some(Skipped::Exists), ..Moved::default() });
            }
            let permit = self.gate_to(&*to.store).pass(first_bytes).await?;
            let first = self.read(stream, first_bytes).await?;
            let is_all = (first.bytes.len() as u64) < first_bytes;
            let (mut moved, meta) = if is_all && first.bytes.len() as u64 <= limits.max_put_bytes {
                let (bytes, crc64) = (first.bytes.len() as u64, Some(first.crc64));
                let (meta, requests) = self.gently(to, self.put_block(to, first, before.as_ref())).await?;
                drop(permit);
                (Moved { bytes, blocks: 1, crc64, requests, ..Moved::default() }, meta)
            } else {
                let options = self.put_options(&to.name);
                let upload = self.begin(to, &options).await?;
                let source = Side { place: "-".into(), version: None, bytes: 0 };
                let note = self.note(source, to, before.as_ref(), &upload);
                let sent = self.gently(to, self.send(first, permit, stream, to, &upload, began)).await;
                let committed = match sent {
                    Ok((parts, log)) => self.commit_stream(to, &upload, (parts, log), before.as_ref()).await,
                    Err(error) => Err(error),
                };
                match committed {
                    Ok(done) => {
                        forget(note);
                        done
                    }
                    Err(error) => {
                        self.give_up(to, &upload, note).await;
                        return Err(error);
                    }
                }
            };
            moved.elapsed_s = began.elapsed().as_secs_f64();
            self.verify(to, &meta, &mut moved, PUT).await?;
            Ok(moved)
        })
    }

    async fn send(
        &self,
        first: Block,
        room: tokio::sync::OwnedSemaphorePermit,
        stream: &mut Input<'_>,
        to: &Place,
        upload: &Upload,
        began: Instant,
    ) -> Result<(BTreeMap<usize, (Piece, Part)>, Log), Error> {
        let limits = to.store.limits();
        let block_bytes = |index| block_bytes(index, &limits, self.terms.memory_bytes);
        let gate = self.gate_to(&*to.store);
        // What waits for its turn in slices has its place in the row already.
        let most_at_once = if gate.in_slices { self.room(limits).max_concurrency } else { self.terms.max_concurrency };
        let (mut parts, mut log, mut tasks) = (BTreeMap::new(), Log::default(), JoinSet::new());
        let (mut block, mut room, mut offset) = (first, room, 0);
        let mut done_bytes = 0;
        for index in 0.. {
            if index >= limits.max_blocks {
                let said = format!("{}: it takes {} blocks at most, and this is longer", to.shown, limits.max_blocks);
                return Err(Failure { kind: Kind::Full, said }.into());
            }
            let piece = Piece { index, offset, bytes: block.bytes.len() as u64 };
            offset += piece.bytes;
            let is_last = piece.bytes < block_bytes(index);
            if piece.bytes > 0 || index == 0 {
                let (store, gate, upload) = (Arc::clone(&to.store), gate.clone(), upload.clone());
                tasks.spawn(async move {
                    let _room = room;
                    let request = || async {
                        let mut seen = gate.attempt();
                        (store.put_block(&upload, index, block.clone(), &mut seen).await, seen)
                    };
                    let (token, went) = gate.ask(piece.bytes, Kind::Transient(None), request).await?;
                    Ok::<_, Error>((piece, Part { token, crc64: block.crc64, crc32c: None }, went))
                });
            }
            while let Some(joined) = tasks.try_join_next() {
                done_bytes += keep((&mut parts, &mut log), joined)?;
            }
            if is_last {
                break;
            }
            while tasks.len() >= most_at_once
                && let Some(joined) = self.or_stopped(tasks.join_next()).await?
            {
                done_bytes += keep((&mut parts, &mut log), joined)?;
            }
            let elapsed_s = began.elapsed().as_secs_f64();
            let progress = Progress { name: &to.name, done_bytes, bytes: None, elapsed_s, plan: None, files: None };
            self.observer.progress(&progress);
            let next_bytes = block_bytes(index + 1);
            room = self.or_stopped(gate.pass(next_bytes)).await??;
            block = self.read(stream, next_bytes).await?;
        }
        while let Some(joined) = self.or_stopped(tasks.join_next()).await? {
            keep((&mut parts, &mut log), joined)?;
        }
        Ok((parts, log))
    }

    async fn commit_stream(
        &self,
        to: &Place,
        upload: &Upload,
        (parts, log): (BTreeMap<usize, (Piece, Part)>, Log),
        before: Option<&Meta>,
    ) -> Result<(Moved, Meta), Error> {
        let sum = Sum { bytes: parts.values().map(|(piece, _)| piece.bytes).sum(), crc64: crc64_of(&parts) };
        let meta = self.commit(to, upload, &parts, sum, (before, false)).await?;
        let (blocks, requests) = (parts.len() as u64, log.requests());
        Ok((Moved { bytes: sum.bytes, blocks, crc64: Some(sum.crc64), requests, ..Moved::default() }, meta))
    }

    /// As much as there is, up to so many bytes.
    async fn read(&self, stream: &mut Input<'_>, most: u64) -> Result<Block, Error> {
        let mut block = Filling::in_memory(&self.buffers, 0..most);
        while !block.room(STEP_BYTES).is_empty() {
            let read = self.or_stopped(stream.read(block.room(STEP_BYTES))).await?;
            match read.map_err(Error::file("can't read", Path::new("the input")))? {
                0 => break,
                bytes => block.filled(bytes),
            }
        }
        Ok(block.done())
    }

    pub(super) async fn or_stopped<T>(&self, what: impl Future<Output = T>) -> Result<T, Error> {
        tokio::select! {
            done = what => Ok(done),
            () = self.stop.asked() => Err(Error::Stopped),
        }
    }
}

type Joined = Result<Result<(Piece, Part, Went), Error>, tokio::task::JoinError>;

/// Keeps what came of a block; returns its size.
fn keep((parts, log): (&mut BTreeMap<usize, (Piece, Part)>, &mut Log), joined: Joined) -> Result<u64, Error> {
    let joined = joined.map_err(|error| Error::file("can't send", Path::new("the input"))(io::Error::other(error)))?;
    let (piece, part, went) = joined?;
    log.add(went.phases, went.retried);
    parts.insert(piece.index, (piece, part));
    Ok(piece.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Integrity;

    #[test]
    fn blocks_grow_so_that_ten_thousand_hold_five_terabytes() {
        let s3 = Limits {
            min_block_bytes: 5 << 20,
            max_block_bytes: 5 << 30,
            max_blocks: 10_000,
            max_put_bytes: 5 << 30,
            integrity: Integrity::Whole,
        };
        let sizes: Vec<u64> = (0..10_000).map(|index| block_bytes(index, &s3, 256 << 20)).collect();
        assert_eq!(sizes[0], 5 << 20);
        assert!(sizes.windows(2).all(|two| two[0] <= two[1]) && sizes[9_999] <= s3.max_block_bytes);
        assert!(sizes.iter().sum::<u64>() > 5_000_000_000_000);
        assert!(sizes[999] == 5 << 20, "5 GB go in the smallest");
    }
}
