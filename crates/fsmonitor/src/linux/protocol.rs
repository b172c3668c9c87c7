//! Messages between the hook and the daemon: a length, then fields separated by NUL bytes.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Version of the messages. A daemon that gets a message of another version ends, so that a daemon of that version can
/// start.
pub const VERSION: &str = "1";
/// Longest request, in bytes. It contains a token and a path.
pub const REQUEST_MAX: usize = 64 << 10;
/// Size in bytes of the length prefix of a message.
pub const LENGTH_BYTES: usize = 8;

/// A request to the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Asks which files changed since a token.
    Query(Query),
    /// Asks for the state of the daemon.
    Status,
    /// Asks the daemon to end.
    Stop,
}

/// A question about the changes since a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The token; see [`crate::linux::token`].
    pub token: Vec<u8>,
    /// Device and inode of the folder in which git runs.
    pub folder: (u64, u64),
    /// The mount namespace of the hook; empty if it is unknown.
    pub namespace: Vec<u8>,
    /// The process that asked: git, the parent of the hook.
    pub asker: u32,
}

/// Writes a message: its length and its content.
pub fn framed(content: &[u8]) -> Vec<u8> {
    let mut message = (content.len() as u64).to_le_bytes().to_vec();
    message.extend_from_slice(content);
    message
}

/// Returns the content of a message; `None` while it is not complete.
pub fn content(message: &[u8]) -> Option<&[u8]> {
    let (length, content) = message.split_first_chunk::<LENGTH_BYTES>()?;
    let length = u64::from_le_bytes(*length);
    (content.len() as u64 >= length).then(|| &content[..length as usize])
}

impl Request {
    /// Writes the request as a message.
    pub fn message(&self) -> Vec<u8> {
        let mut fields: Vec<Vec<u8>> = vec![VERSION.into()];
        match self {
            Request::Status => fields.push(b"status".to_vec()),
            Request::Stop => fields.push(b"stop".to_vec()),
            Request::Query(query) => {
                let (device, inode) = query.folder;
                fields.push(b"query".to_vec());
                fields.push(query.token.clone());
                fields.push(device.to_string().into());
                fields.push(inode.to_string().into());
                fields.push(query.namespace.clone());
                fields.push(query.asker.to_string().into());
            }
        }
        framed(&fields.join(&0))
    }

    /// Reads the content of a request. Returns `None` if it has another version or form.
    pub fn read(content: &[u8]) -> Option<Request> {
        let fields: Vec<&[u8]> = content.split(|byte| *byte == 0).collect();
        let number = |field: &[u8]| std::str::from_utf8(field).ok()?.parse::<u64>().ok();
        match *fields.strip_prefix(&[VERSION.as_bytes()])? {
            [b"status"] => Some(Request::Status),
            [b"stop"] => Some(Request::Stop),
            [b"query", token, device, inode, namespace, asker] => Some(Request::Query(Query {
                token: token.to_vec(),
                folder: (number(device)?, number(inode)?),
                namespace: namespace.to_vec(),
                asker: u32::try_from(number(asker)?).ok()?,
            })),
            _ => None,
        }
    }
}

/// Returns the mount namespace of this process; empty if /proc does not show it.
pub fn namespace() -> Vec<u8> {
    std::fs::read_link("/proc/self/ns/mnt").map(|link| OsString::from(link).into_vec()).unwrap_or_default()
}

/// Splits an answer into its token and its paths. The path `/` alone means everything.
pub fn token_and_paths(answer: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut parts = answer.split(|byte| *byte == 0);
    let token = parts.next().unwrap_or_default().to_vec();
    (token, parts.filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let query = Query { token: b"a:b".to_vec(), folder: (u64::MAX, 7), namespace: b"mnt:[1]".to_vec(), asker: 12 };
        for request in [Request::Status, Request::Stop, Request::Query(query)] {
            let message = request.message();
            assert_eq!(Request::read(content(&message).unwrap()), Some(request));
            assert_eq!(content(&message[..message.len() - 1]), None);
        }
        for wrong in [&b""[..], b"0\0status", b"1", b"1\0status\0", b"1\0query\0t\0a\0b\0c\0d", b"\xff"] {
            assert_eq!(Request::read(wrong), None, "{wrong:?}");
        }
    }
}
