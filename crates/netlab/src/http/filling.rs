//! A body of any size, of which only a piece is in memory.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

/// What bodies are filled with. It is not all alike, so that nothing on the way could make it smaller unnoticed.
static PIECE: [u8; 64 * 1024] = piece();

const fn piece() -> [u8; 64 * 1024] {
    let mut bytes = [0; 64 * 1024];
    let mut state = 1_u32;
    let mut index = 0;
    while index < bytes.len() {
        // A linear congruential generator, of which the upper bits are good.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bytes[index] = (state >> 24) as u8;
        index += 1;
    }
    bytes
}

/// The same piece again and again.
pub(super) struct Filling {
    piece: Bytes,
    left_bytes: u64,
}

impl Filling {
    pub fn of_size(bytes: u64) -> Self {
        Self { piece: Bytes::from_static(&PIECE), left_bytes: bytes }
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

/// How long a body is that arrives; it is not kept.
pub(super) async fn length_bytes<B: Body<Data = Bytes> + Unpin>(mut body: B) -> Result<u64, B::Error> {
    let mut length_bytes = 0;
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        length_bytes += frame?.data_ref().map_or(0, |data| data.len() as u64);
    }
    Ok(length_bytes)
}
