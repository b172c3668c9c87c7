//! An HTTP body of any size that repeats the same bytes.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Random bytes, which a body of [`Filling::of_size`] repeats.
static PIECE: LazyLock<Bytes> = LazyLock::new(|| random_bytes(64 * 1024).into());

/// Returns this number of pseudo-random bytes. They are the same in each process, and they can't be compressed in
/// transit.
pub(crate) fn random_bytes(bytes: usize) -> Vec<u8> {
    let mut random = vec![0; bytes];
    Xoshiro256PlusPlus::seed_from_u64(7).fill_bytes(&mut random);
    random
}

/// An HTTP body that repeats the random bytes of [`PIECE`] until it has its full length.
pub(super) struct Filling {
    piece: Bytes,
    left_bytes: u64,
}

impl Filling {
    pub fn of_size(bytes: u64) -> Self {
        Self { piece: PIECE.clone(), left_bytes: bytes }
    }

    pub fn text(text: String) -> Self {
        Self { left_bytes: text.len() as u64, piece: text.into() }
    }
}

impl Body for Filling {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = self.left_bytes.min(self.piece.len() as u64);
        self.left_bytes -= bytes;
        Poll::Ready((bytes > 0).then(|| Ok(Frame::data(self.piece.slice(..bytes as usize)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left_bytes == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left_bytes)
    }
}

/// Reads a whole body without keeping the data, and returns its length.
pub(super) async fn length_bytes<B: Body<Data = Bytes> + Unpin>(mut body: B) -> Result<u64, B::Error> {
    let mut length_bytes = 0;
    while let Some(frame) = body.frame().await {
        length_bytes += frame?.data_ref().map_or(0, |data| data.len() as u64);
    }
    Ok(length_bytes)
}
