//! The content of a store, and the operations that S3, GCS and Azure share.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::SystemTime;

use httpdate::{fmt_http_date, parse_http_date};
use hyper::body::Bytes;
use hyper::header::{HeaderName, HeaderValue};

use super::answer::{Answer, Refusal, refuse};
use super::checksum::Digests;
use super::request::Head;

/// All buckets of a store, with their objects and uploads.
#[derive(Default)]
pub(super) struct Objects {
    pub buckets: BTreeMap<String, Bucket>,
    count: u64,
}

#[derive(Default)]
pub(super) struct Bucket {
    pub objects: BTreeMap<String, Object>,
    /// The uploads in progress. The key is the upload's identifier; for Azure, the name of the object.
    pub uploads: BTreeMap<String, Upload>,
}

pub(super) struct Object {
    pub content: Vec<Bytes>,
    pub bytes: u64,
    pub etag: String,
    pub modified: SystemTime,
    /// The generation number that GCS sends for the object.
    pub generation: u64,
    /// Headers that were sent with the object, and that answers return with it.
    pub kept: Vec<(HeaderName, HeaderValue)>,
    /// Checksums of the object, as names and values of headers that answers contain.
    pub sums: Vec<(String, String)>,
    /// Identifiers and lengths of the blocks that the object consists of. Only Azure's objects have blocks.
    pub blocks: Vec<(String, u64)>,
}

impl Object {
    /// Creates an object from its content, with the headers of the request `head` and the generation `number`. The new
    /// object has no checksums and no list of blocks.
    pub fn new(head: &Head, number: u64, etag: String, content: Vec<Bytes>) -> Self {
        Self {
            bytes: content.iter().map(|piece| piece.len() as u64).sum(),
            content,
            etag,
            modified: head.now,
            generation: number,
            kept: head.kept(),
            sums: Vec::new(),
            blocks: Vec::new(),
        }
    }
}

/// An upload in progress: the parts or blocks of an object that is not complete yet.
pub(super) struct Upload {
    pub key: String,
    pub started: SystemTime,
    pub kept: Vec<(HeaderName, HeaderValue)>,
    /// The checksum that a client of S3 announced for the object: its algorithm, and `true` if it is to cover the whole
    /// object. `None` if no checksum was announced.
    pub checksum: Option<(super::checksum::Algorithm, bool)>,
    /// The uploaded parts or blocks of the object, by their names. The names of parts sort by part number.
    pub blocks: BTreeMap<String, Block>,
}

impl Upload {
    pub fn new(head: &Head, checksum: Option<(super::checksum::Algorithm, bool)>) -> Self {
        Self { key: head.key.clone(), started: head.now, kept: head.kept(), checksum, blocks: BTreeMap::new() }
    }
}

#[derive(Clone)]
pub(super) struct Block {
    pub content: Vec<Bytes>,
    pub digests: Digests,
    pub modified: SystemTime,
}

/// One page of a list of the objects in a bucket.
pub(super) struct ListPage<'a> {
    pub objects: Vec<(&'a str, &'a Object)>,
    /// Common prefixes of object names, each up to and including the delimiter. Like a folder, a prefix is listed once,
    /// instead of the objects whose names begin with the prefix.
    pub prefixes: Vec<String>,
    /// The name after which the next page starts; `None` on the last page.
    pub next: Option<String>,
}

impl Objects {
    /// Returns a new number, for example for an object's generation. Each number is returned only once.
    pub fn number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Checks that the store has room for further `bytes`, in addition to its objects and the uploads in progress. The
    /// bodies of requests that are still being received do not count.
    pub fn check_room(&self, bytes: u64, capacity_bytes: u64) -> Result<(), Refusal> {
        // Without a limit there is no need to count.
        if capacity_bytes < u64::MAX && self.bytes().saturating_add(bytes) > capacity_bytes {
            return refuse(507, "InsufficientStorage", "There is no room left in the store.");
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        let of_bucket = |bucket: &Bucket| {
            let blocks = bucket.uploads.values().flat_map(|upload| upload.blocks.values());
            let blocks: u64 = blocks.map(|block| block.digests.bytes).sum();
            blocks + bucket.objects.values().map(|object| object.bytes).sum::<u64>()
        };
        self.buckets.values().map(of_bucket).sum()
    }
}

impl Bucket {
    /// Lists the objects whose names begin with `prefix` and come after `after`. Names that share a beginning up to
    /// `delimiter` become one prefix. A page has at most `most` objects and prefixes.
    pub fn list(&self, prefix: &str, delimiter: &str, after: &str, most: usize) -> ListPage<'_> {
        let mut listed = ListPage { objects: Vec::new(), prefixes: Vec::new(), next: None };
        let mut last = after.to_string();
        let start = if after < prefix { Bound::Included(prefix) } else { Bound::Excluded(after) };
        for (key, object) in self.objects.range::<str, _>((start, Bound::Unbounded)) {
            let Some(rest) = key.strip_prefix(prefix) else { break };
            let end = if delimiter.is_empty() { None } else { rest.find(delimiter) };
            let folder = end.map(|end| &key[..prefix.len() + end + delimiter.len()]);
            // The common prefix of this name is listed already.
            if folder.is_some_and(|folder| folder == last) {
                continue;
            }
            if listed.objects.len() + listed.prefixes.len() == most {
                listed.next = Some(last);
                break;
            }
            match folder {
                Some(folder) => listed.prefixes.push(folder.into()),
                None => listed.objects.push((key, object)),
            }
            last = folder.unwrap_or(key).into();
        }
        listed
    }
}

/// Checks an object against the conditions in a request's headers, such as If-Match. `object` is `None` if the object
/// does not exist. The error is the HTTP status of the answer.
pub(super) fn check_conditions(head: &Head, object: Option<&Object>) -> Result<(), u16> {
    let is_among = |names: &str, object: &Object| {
        let bare = |name: &str| name.trim().trim_start_matches("W/").trim_matches('"').to_string();
        names.split(',').any(|name| name.trim() == "*" || bare(name) == bare(&object.etag))
    };
    let moment = |name| parse_http_date(head.header(name)).ok();
    let is_newer = |object: &Object, moment| {
        // Dates in headers are in whole seconds.
        parse_http_date(&fmt_http_date(object.modified)).is_ok_and(|modified| modified > moment)
    };
    let (matches, differs) = (head.header("if-match"), head.header("if-none-match"));
    let is_reading = head.method == "GET" || head.method == "HEAD";
    let Some(object) = object else {
        return if matches.is_empty() { Ok(()) } else { Err(412) };
    };
    let is_missed = match (matches, moment("if-unmodified-since")) {
        ("", Some(moment)) => is_newer(object, moment),
        ("", None) => false,
        (names, _) => !is_among(names, object),
    };
    if is_missed {
        return Err(412);
    }
    let is_known = match (differs, moment("if-modified-since")) {
        ("", Some(moment)) => is_reading && !is_newer(object, moment),
        ("", None) => false,
        (names, _) => is_among(names, object),
    };
    if is_known { Err(if is_reading { 304 } else { 412 }) } else { Ok(()) }
}

/// Returns an answer with the whole object or, if the request asks for a range, with this part of the object.
pub(super) fn read(head: &Head, object: &Object) -> Result<Answer, Refusal> {
    let range = asked(head.range(), object.bytes)?;
    let mut answer = Answer::new(if range.is_some() { 206 } else { 200 });
    answer.headers.clone_from(&object.kept);
    let (start, end) = range.unwrap_or((0, object.bytes));
    answer.content = slice(&object.content, start, end);
    let answer = answer
        .header("etag", &object.etag)
        .header("last-modified", fmt_http_date(object.modified))
        .header("accept-ranges", "bytes");
    Ok(match range {
        Some(_) => answer.header("content-range", format!("bytes {start}-{}/{}", end - 1, object.bytes)),
        None => answer,
    })
}

/// Parses the header that requests a range of an object of `bytes` bytes. Returns the start and the end of the range;
/// the end is exclusive. `None` if the header is invalid or requests several ranges.
fn asked(range: &str, bytes: u64) -> Result<Option<(u64, u64)>, Refusal> {
    let Some((first, last)) = range.strip_prefix("bytes=").and_then(|range| range.split_once('-')) else {
        return Ok(None);
    };
    let range = match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => (first, bytes.min(last.saturating_add(1))),
        (Ok(first), Err(_)) if last.is_empty() => (first, bytes),
        (Err(_), Ok(last)) if first.is_empty() => (bytes.saturating_sub(last), bytes),
        _ => return Ok(None),
    };
    if range.0 >= range.1 {
        return refuse(416, "InvalidRange", "The requested range is not satisfiable");
    }
    Ok(Some(range))
}

pub(super) fn slice(pieces: &[Bytes], start: u64, end: u64) -> Vec<Bytes> {
    let mut slices = Vec::new();
    let mut at = 0;
    for piece in pieces {
        let length = piece.len() as u64;
        let (from, to) = (start.saturating_sub(at).min(length), end.saturating_sub(at).min(length));
        if from < to {
            slices.push(piece.slice(from as usize..to as usize));
        }
        at += length;
    }
    slices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::checksum::Algorithm;

    #[test]
    fn ranges_are_those_of_http() {
        let asked = |range| asked(range, 10).map_err(|refusal| refusal.status);
        assert_eq!(asked("bytes=2-4"), Ok(Some((2, 5))));
        assert_eq!(asked("bytes=2-"), Ok(Some((2, 10))));
        assert_eq!(asked("bytes=-3"), Ok(Some((7, 10))));
        assert_eq!(asked("bytes=-30"), Ok(Some((0, 10))));
        assert_eq!(asked("bytes=9-18446744073709551615"), Ok(Some((9, 10))));
        for unsatisfiable in ["bytes=10-", "bytes=10-12", "bytes=-0"] {
            assert_eq!(asked(unsatisfiable), Err(416), "{unsatisfiable}");
        }
        for ignored in ["", "bytes=", "bytes=-", "bytes=4-2", "bytes=0-1,3-4", "lines=1-2", "bytes=a-b"] {
            assert_eq!(asked(ignored), Ok(None), "{ignored}");
        }
    }

    #[test]
    fn lists_go_on_where_they_ended() {
        let object = || Object {
            content: Vec::new(),
            bytes: 0,
            etag: String::new(),
            modified: SystemTime::UNIX_EPOCH,
            generation: 0,
            kept: Vec::new(),
            sums: Vec::new(),
            blocks: Vec::new(),
        };
        let names = ["a", "b/1", "b/2", "b/c/3", "b0", "c/1", "d"];
        let bucket =
            Bucket { objects: names.map(|name| (name.to_string(), object())).into(), uploads: BTreeMap::new() };
        for (prefix, delimiter, expected) in [
            ("", "", &names[..]),
            ("", "/", &["a", "b/", "b0", "c/", "d"]),
            ("b", "", &["b/1", "b/2", "b/c/3", "b0"]),
            ("b/", "/", &["b/1", "b/2", "b/c/"]),
            ("x", "/", &[]),
        ] {
            for most in 1..=names.len() {
                let (mut found, mut after) = (Vec::new(), String::new());
                loop {
                    let listed = bucket.list(prefix, delimiter, &after, most);
                    assert!(listed.objects.len() + listed.prefixes.len() <= most);
                    found.extend(listed.objects.iter().map(|(name, _)| name.to_string()));
                    found.extend(listed.prefixes);
                    let Some(next) = listed.next else { break };
                    after = next;
                }
                found.sort();
                assert_eq!(found, expected, "{prefix} {delimiter} {most}");
            }
        }
    }

    #[test]
    fn bytes_are_counted_with_those_of_uploads() {
        let mut digests = Digests::new(&[Algorithm::Md5]);
        digests.update(b"12345");
        let block = Block { content: Vec::new(), digests, modified: SystemTime::UNIX_EPOCH };
        let upload = Upload {
            key: String::new(),
            started: SystemTime::UNIX_EPOCH,
            kept: Vec::new(),
            checksum: None,
            blocks: [("1".to_string(), block)].into(),
        };
        let bucket = Bucket { objects: BTreeMap::new(), uploads: [("1".to_string(), upload)].into() };
        let objects = Objects { buckets: [("b".to_string(), bucket)].into(), count: 0 };
        assert_eq!(objects.bytes(), 5);
    }
}
