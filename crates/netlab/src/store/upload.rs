//! Multipart uploads to S3 and GCS.

use std::fmt::Write;

use super::answer::{Answer, Refusal, elements, escape, refuse};
use super::checksum::{Algorithm, Digests, base64, hex, sum_of};
use super::objects::{Block, Bucket, Object, Upload};
use super::request::{Head, StoreRequest};
use super::s3::{LISTED, as_goog_hash, as_headers, check_writing, given, invalid, made, quoted_md5, shown_moment};
use super::{Dialect, Store};

/// Largest part number that S3 accepts.
const LARGEST_PART: u32 = 10_000;

fn no_such_upload() -> Refusal {
    Refusal::new(404, "NoSuchUpload", "There is no such upload: it was completed, aborted, or never created.")
}

fn id(head: &Head) -> &str {
    head.parameter("uploadId").unwrap_or_default()
}

/// Finds the upload whose identifier is in the request. The request must name the same object as the upload.
fn found<'a>(bucket: &'a Bucket, head: &Head) -> Result<&'a Upload, Refusal> {
    bucket.uploads.get(id(head)).filter(|upload| upload.key == head.key).ok_or_else(no_such_upload)
}

fn names(head: &Head) -> String {
    format!("<Bucket>{}</Bucket><Key>{}</Key>", escape(&*head.bucket), escape(&*head.key))
}

/// Returns the name under which the part with this number is kept. The names sort by part number.
fn block_name(number: u32) -> String {
    format!("{number:05}")
}

fn type_name(is_of_whole: bool) -> &'static str {
    if is_of_whole { "FULL_OBJECT" } else { "COMPOSITE" }
}

pub(super) fn create(bucket: &mut Bucket, head: &Head, number: u64) -> Result<Answer, Refusal> {
    let name = head.header("x-amz-checksum-algorithm");
    let algorithm = Algorithm::named(name);
    if algorithm.is_none() && !name.is_empty() {
        return Err(invalid("Checksum algorithm provided is unsupported."));
    }
    let checksum = algorithm.map(|algorithm| match head.header("x-amz-checksum-type") {
        "" => (algorithm, algorithm == Algorithm::Crc64Nvme),
        kind => (algorithm, kind.eq_ignore_ascii_case("FULL_OBJECT")),
    });
    let mut answer = Answer::new(200);
    if let Some((algorithm, is_of_whole)) = checksum {
        // A CRC64 always covers the whole object. Another checksum can cover the whole object only if it can be
        // combined from the checksums of the parts.
        let is_possible = if is_of_whole { algorithm.combines() } else { algorithm != Algorithm::Crc64Nvme };
        let (name, kind) = (algorithm.name(), type_name(is_of_whole));
        if !is_possible {
            return Err(invalid(format!("The {kind} checksum type cannot be used with the {name} algorithm.")));
        }
        answer = answer.header("x-amz-checksum-algorithm", name).header("x-amz-checksum-type", kind);
    }
    let (id, names) = (format!("upload-{number}"), names(head));
    let text =
        format!("<InitiateMultipartUploadResult>{names}<UploadId>{id}</UploadId></InitiateMultipartUploadResult>");
    bucket.uploads.insert(id, Upload::new(head, checksum));
    Ok(answer.with_xml(&text))
}

pub(super) fn put_part(bucket: &mut Bucket, request: StoreRequest) -> Result<Answer, Refusal> {
    let StoreRequest { head, content, digests, .. } = request;
    let checksum = found(bucket, &head)?.checksum;
    let number = head.parameter("partNumber").and_then(|number| number.parse().ok());
    let number = number.filter(|number| (1..=LARGEST_PART).contains(number)).ok_or_else(|| {
        Refusal::new(400, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive")
    })?;
    let given = given(&head)?.map(|(algorithm, _)| algorithm);
    let expected = checksum.map(|(algorithm, _)| algorithm);
    if let (Some(given), Some(expected)) = (given, expected)
        && given != expected
    {
        let (given, expected) = (given.name().to_lowercase(), expected.name().to_lowercase());
        let message = "Checksum Type mismatch occurred, expected checksum Type";
        return Err(invalid(format!("{message}: {expected}, actual checksum Type: {given}")));
    }
    let mut answer = Answer::new(200).header("etag", quoted_md5(&digests));
    if let Some(algorithm) = given.or(expected)
        && let Some(sum) = digests.base64(algorithm)
    {
        answer = answer.header(&algorithm.header(), sum);
    }
    let block = Block { content, digests, modified: head.now };
    let upload = bucket.uploads.get_mut(id(&head)).ok_or_else(no_such_upload)?;
    upload.blocks.insert(block_name(number), block);
    Ok(answer)
}

pub(super) fn abort(bucket: &mut Bucket, head: &Head) -> Result<Answer, Refusal> {
    found(bucket, head)?;
    bucket.uploads.remove(id(head));
    Ok(Answer::new(204))
}

/// An entry in the list of parts with which a client completes an upload.
#[derive(Default)]
struct ListedPart {
    number: u32,
    etag: String,
    sum: Option<(Algorithm, String)>,
}

/// Parses the list of parts in the body of a request, in the order of the body. `None` if the list is invalid or empty.
fn parse_parts(body: &[u8]) -> Option<Vec<ListedPart>> {
    let (mut parts, mut part) = (Vec::new(), ListedPart::default());
    for (name, text) in elements(body)? {
        match &*name {
            "PartNumber" => part.number = text.trim().parse().ok()?,
            "ETag" => part.etag = text.trim().trim_matches('"').into(),
            "Part" => parts.push(std::mem::take(&mut part)),
            _ => {
                if let Some(algorithm) = name.strip_prefix("Checksum").and_then(Algorithm::named) {
                    part.sum = Some((algorithm, text.trim().into()));
                }
            }
        }
    }
    Some(parts).filter(|parts| !parts.is_empty())
}

/// Creates an object from the listed parts of an upload, without copying the parts.
pub(super) fn commit(
    store: &Store,
    bucket: &mut Bucket,
    request: &StoreRequest,
    number: u64,
) -> Result<Answer, Refusal> {
    let head = &request.head;
    let upload = found(bucket, head)?;
    let parts = parse_parts(&request.content.concat()).ok_or_else(|| {
        Refusal::new(400, "MalformedXML", "The XML you provided was not well-formed, or lists no parts")
    })?;
    if !parts.is_sorted_by(|one, next| one.number < next.number) {
        return refuse(400, "InvalidPartOrder", "The list of parts was not in ascending order.");
    }
    let mut blocks = Vec::new();
    for part in &parts {
        blocks.push(found_part(upload, part)?);
    }
    let is_small = |block: &&Block| block.digests.bytes < store.smallest_part_bytes;
    if blocks[..blocks.len() - 1].iter().any(is_small) {
        return refuse(400, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size");
    }
    let mut whole = Digests::new(&[]);
    let (mut md5s, mut sums) = (Vec::new(), Vec::new());
    for block in &blocks {
        whole.append(&block.digests);
        md5s.extend(block.digests.sum(Algorithm::Md5).unwrap_or_default());
        sums.extend(upload.checksum.and_then(|(algorithm, _)| block.digests.sum(algorithm)).unwrap_or_default());
    }
    let size = head.header("x-amz-mp-object-size");
    if !size.is_empty() && size != whole.bytes.to_string() {
        return Err(invalid("The provided 'x-amz-mp-object-size' header does not match what was computed."));
    }
    let (algorithm, is_of_whole) = upload.checksum.unwrap_or((Algorithm::Crc64Nvme, true));
    let count = blocks.len();
    let sum = if is_of_whole {
        whole.base64(algorithm).unwrap_or_default()
    } else {
        format!("{}-{count}", base64(sum_of(algorithm, &sums)))
    };
    if let Some((given, given_sum)) = given(head)?
        && (given != algorithm || given_sum.split('-').next() != sum.split('-').next())
    {
        let message = format!("The {} you specified did not match the calculated checksum.", given.name());
        return refuse(400, "BadDigest", message);
    }
    check_writing(head, bucket)?;
    let content = blocks.iter().flat_map(|block| block.content.iter().cloned()).collect();
    let etag = format!("\"{}-{count}\"", hex(sum_of(Algorithm::Md5, &md5s)));
    let sums = match store.dialect {
        Dialect::Gcs => as_goog_hash(&whole),
        _ => as_headers(algorithm, sum.clone(), is_of_whole),
    };
    let object = Object { kept: upload.kept.clone(), sums, ..Object::new(head, number, etag, content) };
    let (names, etag, name, kind) = (names(head), escape(&*object.etag), algorithm.name(), type_name(is_of_whole));
    let text = format!(
        "<CompleteMultipartUploadResult>{names}<ETag>{etag}</ETag><Checksum{name}>{sum}</Checksum{name}>\
         <ChecksumType>{kind}</ChecksumType></CompleteMultipartUploadResult>"
    );
    let answer = made(Answer::new(200), store, &object).with_xml(&text);
    bucket.objects.insert(head.key.clone(), object);
    bucket.uploads.remove(id(head));
    Ok(answer)
}

/// Finds the part that an entry of the list names. Checks that its ETag and checksum match those in the entry.
fn found_part<'a>(upload: &'a Upload, part: &ListedPart) -> Result<&'a Block, Refusal> {
    let invalid_part = || {
        let message = format!("Part {} could not be found, or has another checksum.", part.number);
        Refusal::new(400, "InvalidPart", message)
    };
    let block = upload.blocks.get(&block_name(part.number)).ok_or_else(invalid_part)?;
    if quoted_md5(&block.digests).trim_matches('"') != part.etag {
        return Err(invalid_part());
    }
    match (&part.sum, upload.checksum) {
        (Some((algorithm, sum)), _) if block.digests.base64(*algorithm).as_ref() != Some(sum) => Err(invalid_part()),
        (None, Some((algorithm, false))) => Err(invalid(format!(
            "The upload was created using a {} checksum. It was missing for part {} in the request.",
            algorithm.name().to_lowercase(),
            part.number
        ))),
        _ => Ok(block),
    }
}

pub(super) fn list_parts(bucket: &Bucket, head: &Head) -> Result<Answer, Refusal> {
    let upload = found(bucket, head)?;
    let number = |name| head.parameter(name).and_then(|number| number.parse::<u32>().ok());
    let most = number("max-parts").unwrap_or(u32::MAX).min(LISTED as u32);
    let after = block_name(number("part-number-marker").unwrap_or(0));
    let mut behind = upload.blocks.iter().filter(|(name, _)| **name > after);
    let (mut parts, mut last) = (String::new(), after.trim_start_matches('0'));
    for (name, block) in behind.by_ref().take(most as usize) {
        last = name.trim_start_matches('0');
        let (modified, etag) = (shown_moment(block.modified), quoted_md5(&block.digests));
        let (etag, bytes) = (escape(&*etag), block.digests.bytes);
        let sum = upload.checksum.and_then(|(algorithm, _)| {
            let (name, sum) = (algorithm.name(), block.digests.base64(algorithm)?);
            Some(format!("<Checksum{name}>{sum}</Checksum{name}>"))
        });
        let sum = sum.unwrap_or_default();
        let _ = write!(
            parts,
            "<Part><PartNumber>{last}</PartNumber><LastModified>{modified}</LastModified><ETag>{etag}</ETag>\
             <Size>{bytes}</Size>{sum}</Part>"
        );
    }
    let last = if last.is_empty() { "0" } else { last };
    let (names, id, is_truncated) = (names(head), escape(id(head)), behind.next().is_some());
    Ok(Answer::xml(&format!(
        "<ListPartsResult>{names}<UploadId>{id}</UploadId><NextPartNumberMarker>{last}</NextPartNumberMarker>\
         <MaxParts>{most}</MaxParts><IsTruncated>{is_truncated}</IsTruncated>{parts}</ListPartsResult>"
    )))
}

/// Lists the uploads in progress in a bucket.
pub(super) fn list(bucket: &Bucket, head: &Head) -> Answer {
    let prefix = head.parameter("prefix").unwrap_or_default();
    let mut uploads = String::new();
    for (id, upload) in bucket.uploads.iter().filter(|(_, upload)| upload.key.starts_with(prefix)) {
        let (key, started) = (escape(&*upload.key), shown_moment(upload.started));
        let _ = write!(
            uploads,
            "<Upload><Key>{key}</Key><UploadId>{id}</UploadId><Initiated>{started}</Initiated></Upload>"
        );
    }
    let (bucket, prefix) = (escape(&*head.bucket), escape(prefix));
    Answer::xml(&format!(
        "<ListMultipartUploadsResult><Bucket>{bucket}</Bucket><Prefix>{prefix}</Prefix>\
         <IsTruncated>false</IsTruncated>{uploads}</ListMultipartUploadsResult>"
    ))
}
