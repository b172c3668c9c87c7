//! Downloads of objects whose length is known only at the end, such as archives made on the fly: one answer, from front
//! to back. They have no ranges, so they can't be resumed.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;

use ascertain_sys::files::Draft;
use tokio::time::Instant;

use super::get::{Spot, publish};
use super::patience::Went;
use super::requests::Log;
use super::{Moved, Mover, Place};
use crate::crc64::digest;
use crate::error::{Error, failure};
use crate::store::{Attempt, Failure, Kind, Meta};

/// Large enough that the total time is never limited; the client notices when nothing moves any more.
const ANY_BYTES: u64 = 1 << 50;

impl Mover {
    /// Gets such an object into a file.
    pub(super) async fn get_unsized(&self, from: &Place, spot: &Spot) -> Result<Moved, Error> {
        let began = Instant::now();
        if let Some(skipped) = self.is_there(&Meta::unsized_of(&from.name), &spot.path).await? {
            return Ok(Moved { skipped: Some(skipped), ..Moved::default() });
        }
        let draft = Draft::create_in(&spot.folder, &spot.name).map_err(Error::file("can't write", &spot.path))?;
        let ((meta, crc64), went) = self.fill_file(from, draft.file(), &spot.path).await?;
        let mut moved = moved(&meta, crc64, Some(&went), began);
        self.read_again(from, &mut moved).await?;
        publish(draft, &spot.path, &meta, self.terms.no_clobber)?;
        Ok(moved)
    }

    /// Streams such an object. Output can't be taken back, so nothing is tried again.
    pub(super) async fn stream_unsized(&self, from: &Place, out: &mut (dyn Write + Send)) -> Result<Moved, Error> {
        let (began, mut seen) = (Instant::now(), Attempt::default());
        let (meta, crc64) = tokio::select! {
            streamed = self.gently(from, self.stream_once(from, out, Path::new("the output"), &mut seen)) => streamed?,
            () = self.stop.asked() => return Err(Error::Stopped),
        };
        let mut moved = moved(&meta, crc64, None, began);
        self.read_again(from, &mut moved).await?;
        Ok(moved)
    }

    /// Gets it into a file, from the beginning each time that it breaks off.
    async fn fill_file(&self, from: &Place, file: &File, path: &Path) -> Result<((Meta, u64), Went), Error> {
        let request = || async {
            let (mut seen, mut out) = (Attempt::default(), file);
            let empty =
                file.set_len(0).and_then(|()| out.rewind()).map_err(|error| failure("can't write", path, &error));
            let streamed = match empty {
                Ok(()) => self.stream_once(from, &mut out, path, &mut seen).await,
                Err(failure) => Err(failure),
            };
            (streamed, seen)
        };
        let asked = self.patience.ask(ANY_BYTES, Kind::Transient(None), request);
        tokio::select! {
            asked = self.gently(from, asked) => Ok(asked?),
            () = self.stop.asked() => Err(Error::Stopped),
        }
    }

    /// Returns what it is, with its length, and its CRC-64.
    async fn stream_once(
        &self,
        from: &Place,
        out: &mut (dyn Write + Send),
        path: &Path,
        seen: &mut Attempt,
    ) -> Result<(Meta, u64), Failure> {
        let (mut meta, mut pieces) = from.store.get_pieces(&from.name, seen).await?;
        let mut sum = digest();
        meta.bytes = 0;
        while let Some(bytes) = pieces.next(seen).await? {
            self.pace.wait(bytes.len() as u64).await;
            out.write_all(&bytes).map_err(|error| failure("can't write", path, &error))?;
            sum.update(&bytes);
            meta.bytes += bytes.len() as u64;
        }
        out.flush().map_err(|error| failure("can't write", path, &error))?;
        Ok((meta, sum.finalize()))
    }

    /// Reads it a second time, if that was asked for, and compares.
    async fn read_again(&self, from: &Place, moved: &mut Moved) -> Result<(), Error> {
        if !self.terms.verify {
            return Ok(());
        }
        let request = || async {
            let mut seen = Attempt::default();
            (self.stream_once(from, &mut io::sink(), Path::new("nothing"), &mut seen).await, seen)
        };
        let asked = self.patience.ask(ANY_BYTES, Kind::Transient(None), request);
        let ((again, crc64), _) = tokio::select! {
            asked = self.gently(from, asked) => asked?,
            () = self.stop.asked() => return Err(Error::Stopped),
        };
        if (again.bytes, Some(crc64)) != (moved.bytes, moved.crc64) {
            let (first, second) = (moved.bytes, again.bytes);
            let what = format!(
                "{}: two downloads differ: {first} bytes came first, and {second} when it was read again",
                from.shown
            );
            return Err(Error::Corrupted { what });
        }
        moved.verified = true;
        Ok(())
    }
}

fn moved(meta: &Meta, crc64: u64, went: Option<&Went>, began: Instant) -> Moved {
    let mut log = Log::default();
    if let Some(Went { phases, retried, .. }) = went {
        log.add(*phases, *retried);
    }
    let (bytes, elapsed_s, requests) = (meta.bytes, began.elapsed().as_secs_f64(), log.requests());
    Moved { bytes, blocks: 1, crc64: Some(crc64), elapsed_s, requests, ..Moved::default() }
}
