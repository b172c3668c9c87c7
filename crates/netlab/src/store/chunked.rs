//! Chunked bodies of AWS (`aws-chunked`). Each chunk is preceded by its size and an optional signature. Headers may
//! follow the last chunk.

use std::collections::VecDeque;

use hyper::body::Bytes;

use super::answer::Refusal;

/// Maximum length of a line between chunks, in bytes. Valid lines contain only chunk sizes, signatures and checksums,
/// and are shorter.
const LONGEST_LINE_BYTES: usize = 4096;

/// The content of a chunked body, without the lines between its chunks.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// Each chunk, in pieces, with its signature. The signature may be empty. The last chunk is always empty.
    pub chunks: Vec<(Vec<Bytes>, String)>,
    /// The headers after the chunks, with their names in lower case.
    pub trailers: Vec<(String, String)>,
}

impl Chunks {
    /// Removes the lines between the chunks of a body, without copying the chunks.
    pub fn parse(body: Vec<Bytes>) -> Result<Self, Refusal> {
        let mut rest = Rest(body.into());
        let mut parsed = Self::default();
        loop {
            let line = rest.line()?;
            let (size, extension) = line.split_once(';').unwrap_or((&line, ""));
            let size = u64::from_str_radix(size, 16).map_err(|_| malformed())?;
            let signature = extension.strip_prefix("chunk-signature=").unwrap_or_default().into();
            parsed.chunks.push((rest.take(size)?, signature));
            if size == 0 {
                break;
            }
            if !rest.line()?.is_empty() {
                return Err(malformed());
            }
        }
        while !rest.0.is_empty() {
            let line = rest.line()?;
            if let Some((name, value)) = line.split_once(':') {
                parsed.trailers.push((name.to_lowercase(), value.trim().into()));
            } else if !line.is_empty() {
                return Err(malformed());
            }
        }
        Ok(parsed)
    }
}

/// The bytes of a chunked body that have not been parsed yet.
struct Rest(VecDeque<Bytes>);

impl Rest {
    /// Removes the bytes up to the next line end, and returns them without the line end.
    fn line(&mut self) -> Result<String, Refusal> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            if line.len() == LONGEST_LINE_BYTES {
                return Err(malformed());
            }
            line.extend(self.take(1)?.concat());
        }
        line.truncate(line.len() - 2);
        String::from_utf8(line).map_err(|_| malformed())
    }

    fn take(&mut self, bytes: u64) -> Result<Vec<Bytes>, Refusal> {
        let (mut taken, mut left) = (Vec::new(), bytes);
        while left > 0 {
            let mut front = self.0.pop_front().ok_or_else(malformed)?;
            if front.len() as u64 > left {
                let rest = front.split_off(left as usize);
                self.0.push_front(rest);
            }
            left -= front.len() as u64;
            taken.push(front);
        }
        Ok(taken)
    }
}

fn malformed() -> Refusal {
    Refusal::new(400, "IncompleteBody", "The body is not valid aws-chunked.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_the_same_however_they_arrive() {
        let body = b"4;chunk-signature=ab\r\nwiki\r\n5\r\npedia\r\n0\r\nX-Amz-Sum: 1:2\r\n\r\n";
        for piece in 1..=body.len() {
            let pieces = body.chunks(piece).map(Bytes::copy_from_slice).collect();
            let Chunks { chunks, trailers } = Chunks::parse(pieces).unwrap();
            let chunks: Vec<_> = chunks.into_iter().map(|(chunk, signature)| (chunk.concat(), signature)).collect();
            assert_eq!(chunks, [(b"wiki".into(), "ab".into()), (b"pedia".into(), "".into()), (vec![], "".into())]);
            assert_eq!(trailers, [("x-amz-sum".into(), "1:2".into())]);
        }
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        for body in
            ["", "4\r\nwik", "4\r\nwikix\r\n0\r\n", "x\r\n", "4", "-1\r\n", "ffffffffffffffffff\r\n", "0\r\nx\r\n"]
        {
            assert!(Chunks::parse(vec![Bytes::from_static(body.as_bytes())]).is_err(), "{body}");
        }
        assert!(Chunks::parse(vec![Bytes::from(vec![b'1'; 10_000])]).is_err());
    }
}
