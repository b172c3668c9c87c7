//! Faults that a store injects into requests, and records of the requests.

use hyper::body::Bytes;

/// An operation of a store, as requested by a client of S3, GCS or Azure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The request uploads an object in one piece.
    PutObject,
    /// The request reads an object, or a range of it.
    GetObject,
    /// The request reads the metadata of an object.
    HeadObject,
    /// The request deletes an object.
    DeleteObject,
    /// The request starts a multipart upload. Azure has no such request.
    CreateUpload,
    /// The request uploads a part (S3, GCS) or a block (Azure).
    PutBlock,
    /// The request lists the parts or blocks of an upload.
    ListBlocks,
    /// The request creates an object from uploaded parts or blocks.
    Commit,
    /// The request aborts a multipart upload. Azure has no such request.
    Abort,
    /// The request lists the multipart uploads that are in progress. Azure has no such request.
    ListUploads,
    /// The request lists the objects in a bucket or container.
    ListObjects,
    /// The request creates a bucket (S3, GCS) or container (Azure).
    CreateBucket,
    /// The request is for any other operation.
    Other,
}

/// A fault that a store injects into some requests. If several faults are due for one request, only the one that was
/// added first is injected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The operation of the requests that count for this fault; `None` for all operations.
    pub on: Option<Kind>,
    /// Number of requests for this operation that are served normally before the fault. The count starts when the fault
    /// is added.
    pub after: u64,
    /// Number of requests into which the fault is injected. They follow the requests that are served normally.
    pub times: u64,
    /// The effect of the fault on a request.
    pub what: Misdeed,
}

/// The effect of a fault on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misdeed {
    /// The request is read and refused with this status, such as 503 or 429.
    Refused {
        /// HTTP status of the answer.
        status: u16,
        /// Value of the header Retry-After in seconds; `None` to leave the header out.
        retry_after_s: Option<u64>,
    },
    /// The connection breaks while the request's body is received. The request has no effect.
    CutUpload {
        /// Number of bytes of the request's body before the connection breaks.
        after_bytes: u64,
    },
    /// The connection breaks while the answer's body is sent.
    CutDownload {
        /// Number of bytes of the answer's body before the connection breaks.
        after_bytes: u64,
    },
    /// The request takes effect, and then the connection breaks before the answer is sent.
    AnswerLost,
    /// A bit of the request's body flips before the store checks it.
    FlippedUpload {
        /// Index of the byte whose lowest bit flips.
        byte: u64,
    },
    /// A bit of the request's body flips after the store has checked it. So the store keeps other data than the client
    /// sent.
    FlippedInStore {
        /// Index of the byte whose lowest bit flips.
        byte: u64,
    },
    /// A bit of the answer's body flips.
    FlippedDownload {
        /// Index of the byte whose lowest bit flips.
        byte: u64,
    },
}

/// A request that arrived at a store, and the status of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    /// The requested operation.
    pub kind: Kind,
    /// Name of the bucket or container.
    pub bucket: String,
    /// Name of the object; empty if the request is for a bucket or container.
    pub key: String,
    /// Number of the part or identifier of the block, as in the request; `None` if the request names none.
    pub block: Option<String>,
    /// Range of the object as in the request, such as `bytes=0-99`; `None` if the request names no range.
    pub range: Option<String>,
    /// Number of bytes of the body that were received, including the framing of chunks.
    pub body_bytes: u64,
    /// HTTP status of the answer; `None` if the connection broke before the answer.
    pub status: Option<u16>,
}

/// The faults of a store, each with the number of requests for its operation since the fault was added.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<(Fault, u64)>);

impl Faults {
    pub fn add(&mut self, fault: Fault) {
        self.0.push((fault, 0));
    }

    /// Counts a request for the operation `kind`, and returns the fault to inject into it; `None` if no fault is due.
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

/// Flips the lowest bit of the byte with this index in a body that consists of `pieces`. Nothing changes if the body is
/// too short.
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
