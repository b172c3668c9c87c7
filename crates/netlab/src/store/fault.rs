//! What goes wrong on purpose, and what was asked for.

use hyper::body::Bytes;

/// What a request is for, whatever the store speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An object in one piece.
    PutObject,
    /// An object, or a range of it.
    GetObject,
    /// What is known of an object.
    HeadObject,
    /// An object's removal.
    DeleteObject,
    /// The beginning of an upload in parts; Azure has none.
    CreateUpload,
    /// A part (S3, GCS) or a block (Azure).
    PutBlock,
    /// The parts or blocks that are there.
    ListBlocks,
    /// The parts or blocks that make the object.
    Commit,
    /// The end of an upload that comes to nothing; Azure has none.
    Abort,
    /// The uploads that are under way; Azure has none.
    ListUploads,
    /// The objects.
    ListObjects,
    /// A bucket (S3, GCS) or container (Azure) that is to be made.
    CreateBucket,
    /// Anything else.
    Other,
}

/// Something that goes wrong with some requests. Of several that are due the first one does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Requests for what; without, all.
    pub on: Option<Kind>,
    /// How many such requests go well before, counted from when the store learns of the fault.
    pub after: u64,
    /// With how many it then goes wrong.
    pub times: u64,
    /// What.
    pub what: Misdeed,
}

/// What goes wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misdeed {
    /// It is read and refused with this status, as 503 or 429.
    Refused {
        /// The status.
        status: u16,
        /// How long the client is asked to wait (`Retry-After`).
        retry_after_s: Option<u64>,
    },
    /// The connection breaks after so many bytes of the request's body. Nothing is done.
    CutUpload {
        /// How many.
        after_bytes: u64,
    },
    /// The connection breaks after so many bytes of the answer's body.
    CutDownload {
        /// How many.
        after_bytes: u64,
    },
    /// What was asked for is done, and then the connection breaks.
    AnswerLost,
    /// A bit of the request's body flips on its way.
    FlippedUpload {
        /// The lowest bit of which byte.
        byte: u64,
    },
    /// A bit flips after all checks have passed: what is kept is not what was sent.
    FlippedInStore {
        /// The lowest bit of which byte.
        byte: u64,
    },
    /// A bit of the answer's body flips on its way.
    FlippedDownload {
        /// The lowest bit of which byte.
        byte: u64,
    },
}

/// A request that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What it was for.
    pub kind: Kind,
    /// The bucket or container.
    pub bucket: String,
    /// The object's name.
    pub key: String,
    /// The part's number, or the block's identifier as it was sent.
    pub block: Option<String>,
    /// What of an object is asked for, as it was sent: `bytes=0-99`; nothing for all of it.
    pub range: Option<String>,
    /// How much of its body arrived, with the frame of chunks that may be around it.
    pub body_bytes: u64,
    /// What it was answered; nothing, if the connection broke before.
    pub status: Option<u16>,
}

/// Faults, with how many requests each has met.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<(Fault, u64)>);

impl Faults {
    pub fn add(&mut self, fault: Fault) {
        self.0.push((fault, 0));
    }

    /// What goes wrong with the next request.
    pub fn next(&mut self, kind: Kind) -> Option<Misdeed> {
        let mut due = None;
        for (fault, met) in self.0.iter_mut().filter(|(fault, _)| fault.on.is_none_or(|on| on == kind)) {
            let is_due = (fault.after..fault.after.saturating_add(fault.times)).contains(met);
            *met += 1;
            if is_due && due.is_none() {
                due = Some(fault.what.clone());
            }
        }
        due
    }
}

/// Flips the lowest bit of a byte, if there is one so far.
pub(super) fn flip(pieces: &mut [Bytes], mut byte: u64) {
    for piece in pieces {
        if byte < piece.len() as u64 {
            let mut flipped = piece.to_vec();
            flipped[byte as usize] ^= 1;
            *piece = flipped.into();
            return;
        }
        byte -= piece.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_by_their_schedule() {
        let fault = |on, after, times, status| Fault {
            on,
            after,
            times,
            what: Misdeed::Refused { status, retry_after_s: None },
        };
        let mut faults = Faults::default();
        faults.add(fault(Some(Kind::PutBlock), 1, 2, 503));
        faults.add(fault(None, 3, u64::MAX, 429));
        let kinds = [Kind::PutBlock, Kind::Commit, Kind::PutBlock, Kind::PutBlock, Kind::PutBlock, Kind::Commit];
        let due = kinds.map(|kind| match faults.next(kind) {
            Some(Misdeed::Refused { status, .. }) => status,
            _ => 0,
        });
        assert_eq!(due, [0, 0, 503, 503, 429, 429]);
    }

    #[test]
    fn one_bit_flips_and_no_other() {
        for byte in 0..7 {
            let mut pieces = [b"abc", b"def"].map(|piece| Bytes::from_static(piece));
            flip(&mut pieces, byte);
            let mut expected = b"abcdef".to_vec();
            if let Some(flipped) = expected.get_mut(byte as usize) {
                *flipped ^= 1;
            }
            assert_eq!(pieces.concat(), expected);
        }
    }
}
