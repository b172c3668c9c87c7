//! The operations of Azure Blob Storage.

use std::fmt::Write;

use httpdate::fmt_http_date;
use hyper::Method;

use super::Kind;
use super::answer::{Answer, Refusal, elements, escape, refuse};
use super::checksum::{Algorithm, Digests, base64, from_base64};
use super::objects::{Block, Bucket, Object, Objects, Upload, check_conditions, read};
use super::request::{Head, StoreRequest, encoded_path};

/// Maximum length of a block's decoded identifier, in bytes.
const LONGEST_ID_BYTES: usize = 64;

/// Maximum number of blocks of which a blob may consist.
const MOST_BLOCKS: usize = 50_000;

/// Maximum number of blobs in one answer to a request that lists blobs.
const LISTED: usize = 5_000;

/// Returns the operation that an Azure request performs.
pub(super) fn kind(head: &Head) -> Kind {
    if head.has("restype") && head.key.is_empty() {
        return match (&head.method, head.parameter("comp")) {
            (&Method::PUT, None) => Kind::CreateBucket,
            (&Method::GET, Some("list")) => Kind::ListObjects,
            _ => Kind::Other,
        };
    }
    if head.key.is_empty() || head.has("snapshot") || !head.header("x-ms-copy-source").is_empty() {
        return Kind::Other;
    }
    match (&head.method, head.parameter("comp")) {
        (&Method::PUT, None) => Kind::PutObject,
        (&Method::PUT, Some("block")) => Kind::PutBlock,
        (&Method::PUT, Some("blocklist")) => Kind::Commit,
        (&Method::GET, Some("blocklist")) => Kind::ListBlocks,
        (&Method::GET, None) => Kind::GetObject,
        (&Method::HEAD, None) => Kind::HeadObject,
        (&Method::DELETE, None) => Kind::DeleteObject,
        _ => Kind::Other,
    }
}

fn not_found() -> Refusal {
    Refusal::new(404, "BlobNotFound", "The specified blob does not exist.")
}

pub(super) fn answer(objects: &mut Objects, request: StoreRequest) -> Result<Answer, Refusal> {
    let head = &request.head;
    if request.kind == Kind::CreateBucket {
        if objects.buckets.contains_key(&head.bucket) {
            return refuse(409, "ContainerAlreadyExists", "The specified container already exists.");
        }
        objects.buckets.insert(request.head.bucket, Bucket::default());
        return Ok(Answer::new(201));
    }
    let number = objects.number();
    let bucket = objects.buckets.get_mut(&head.bucket);
    let bucket =
        bucket.ok_or_else(|| Refusal::new(404, "ContainerNotFound", "The specified container does not exist."))?;
    if matches!(request.kind, Kind::PutObject | Kind::PutBlock | Kind::Commit) {
        check_sums(&request)?;
    }
    match request.kind {
        Kind::PutObject => put(bucket, request, number),
        Kind::GetObject | Kind::HeadObject => get(bucket, head),
        Kind::DeleteObject => {
            let object = bucket.objects.get(&head.key).ok_or_else(not_found)?;
            check_conditions(head, Some(object)).map_err(|_| not_met())?;
            bucket.objects.remove(&head.key);
            Ok(Answer::new(202))
        }
        Kind::PutBlock => put_block(bucket, request),
        Kind::ListBlocks => list_blocks(bucket, head),
        Kind::Commit => commit(bucket, &request, number),
        Kind::ListObjects => list(bucket, head),
        _ => refuse(501, "NotImplemented", "This store does not support the request."),
    }
}

/// Checks the body of an upload against the checksums in the request's headers.
fn check_sums(request: &StoreRequest) -> Result<(), Refusal> {
    let (head, digests) = (&request.head, &request.digests);
    let crc64 = head.header("x-ms-content-crc64");
    // If a whole blob is uploaded, the header with the MD5 of the blob takes precedence over the header with the MD5 of
    // the body.
    let md5 = match head.header("x-ms-blob-content-md5") {
        md5 if request.kind == Kind::PutObject && !md5.is_empty() => md5,
        _ => head.header("content-md5"),
    };
    if !md5.is_empty() && !crc64.is_empty() {
        return refuse(400, "BothCrc64AndMd5HeaderPresent", "An MD5 and a CRC64 were specified; specify only one.");
    }
    if !md5.is_empty() && from_base64(md5).is_none_or(|md5| md5.len() != 16) {
        return refuse(400, "InvalidMd5", "The MD5 value specified in the request is invalid.");
    }
    if !md5.is_empty() && digests.base64(Algorithm::Md5).as_deref() != Some(md5) {
        return refuse(400, "Md5Mismatch", "The MD5 value specified does not match the received data.");
    }
    if !crc64.is_empty() && crc64 != digests.azure_crc64() {
        return refuse(400, "Crc64Mismatch", "The CRC64 specified does not match the received data.");
    }
    Ok(())
}

fn not_met() -> Refusal {
    Refusal::new(412, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.")
}

fn check_writing(head: &Head, bucket: &Bucket) -> Result<(), Refusal> {
    let object = bucket.objects.get(&head.key);
    check_conditions(head, object).map_err(|_| match head.header("if-none-match") {
        "*" => Refusal::new(409, "BlobAlreadyExists", "The specified blob already exists."),
        _ => not_met(),
    })
}

fn etag(number: u64) -> String {
    format!("\"0x8D{number:013X}\"")
}

/// Adds a checksum of the body to an answer. The checksum is a CRC64 if the client sent a CRC64, or if the MD5 is not
/// known. Otherwise it is the MD5.
fn with_sum(answer: Answer, head: &Head, digests: &Digests) -> Answer {
    match digests.base64(Algorithm::Md5) {
        Some(md5) if head.header("x-ms-content-crc64").is_empty() => answer.header("content-md5", md5),
        _ => answer.header("x-ms-content-crc64", digests.azure_crc64()),
    }
}

fn made(object: &Object) -> Answer {
    Answer::new(201).header("etag", &object.etag).header("last-modified", fmt_http_date(object.modified))
}

fn put(bucket: &mut Bucket, request: StoreRequest, number: u64) -> Result<Answer, Refusal> {
    let StoreRequest { head, content, digests, .. } = request;
    match head.header("x-ms-blob-type") {
        "BlockBlob" => {}
        "" => return refuse(400, "MissingRequiredHeader", "x-ms-blob-type is missing."),
        _ => return refuse(501, "NotImplemented", "Only block blobs are supported."),
    }
    check_writing(&head, bucket)?;
    let md5 = digests.base64(Algorithm::Md5).map(|md5| ("content-md5".to_string(), md5));
    let object = Object { sums: md5.into_iter().collect(), ..Object::new(&head, number, etag(number), content) };
    let answer = with_sum(made(&object), &head, &digests);
    bucket.uploads.remove(&head.key);
    bucket.objects.insert(head.key, object);
    Ok(answer)
}

fn get(bucket: &Bucket, head: &Head) -> Result<Answer, Refusal> {
    let object = bucket.objects.get(&head.key).ok_or_else(not_found)?;
    check_conditions(head, Some(object))
        .map_err(|status| if status == 304 { Refusal { status, ..not_met() } } else { not_met() })?;
    let mut answer = read(head, object)?.header("x-ms-blob-type", "BlockBlob");
    if answer.status == 200 {
        return Ok(object.sums.iter().fold(answer, |answer, (name, sum)| answer.header(name, sum)));
    }
    // The checksum of a range is only computed if the client asks for it.
    let mut digests = Digests::new(&[Algorithm::Md5]);
    let (is_md5, is_crc64) =
        (head.header("x-ms-range-get-content-md5") == "true", head.header("x-ms-range-get-content-crc64") == "true");
    if is_md5 || is_crc64 {
        answer.content.iter().for_each(|piece| digests.update(piece));
    }
    if is_md5 {
        answer = answer.header("content-md5", digests.base64(Algorithm::Md5).unwrap_or_default());
    }
    if is_crc64 {
        answer = answer.header("x-ms-content-crc64", digests.azure_crc64());
    }
    let whole = object.sums.iter().find(|(name, _)| name == "content-md5");
    Ok(whole.into_iter().fold(answer, |answer, (_, md5)| answer.header("x-ms-blob-content-md5", md5)))
}

fn put_block(bucket: &mut Bucket, request: StoreRequest) -> Result<Answer, Refusal> {
    let StoreRequest { head, content, digests, .. } = request;
    let id = head.parameter("blockid").unwrap_or_default();
    let length = from_base64(id).map_or(0, |id| id.len());
    if !(1..=LONGEST_ID_BYTES).contains(&length) {
        let message = "The block's identifier must be Base64 of 1 to 64 bytes.";
        return refuse(400, "InvalidQueryParameterValue", message);
    }
    let upload = bucket.uploads.entry(head.key.clone()).or_insert_with(|| Upload::new(&head, None));
    if upload.blocks.keys().next().is_some_and(|other| other.len() != id.len()) {
        return refuse(400, "InvalidBlobOrBlock", "The identifiers of all blocks of a blob must have the same length.");
    }
    let answer = with_sum(Answer::new(201), &head, &digests);
    upload.blocks.insert(id.into(), Block { content, digests, modified: head.now });
    Ok(answer)
}

/// Returns the block with the identifier `id` of a committed blob, or `None` if the blob has no such block. The block's
/// checksums contain only the CRCs, because the other checksums are not needed.
fn committed(object: &Object, id: &str) -> Option<Block> {
    let at = object.blocks.iter().position(|(block, _)| block == id)?;
    let start: u64 = object.blocks[..at].iter().map(|(_, bytes)| bytes).sum();
    let content = super::objects::slice(&object.content, start, start + object.blocks[at].1);
    let mut digests = Digests::new(&[]);
    content.iter().for_each(|piece| digests.update(piece));
    Some(Block { content, digests, modified: object.modified })
}

/// Creates a blob from the blocks that the request lists, without copying the blocks. `number` is the unique number for
/// the new blob.
fn commit(bucket: &mut Bucket, request: &StoreRequest, number: u64) -> Result<Answer, Refusal> {
    let head = &request.head;
    let malformed = || Refusal::new(400, "InvalidXmlDocument", "XML specified is not syntactically valid.");
    let mut list = elements(&request.content.concat()).ok_or_else(malformed)?;
    if list.pop().is_none_or(|(name, _)| name != "BlockList") {
        return Err(malformed());
    }
    if list.len() > MOST_BLOCKS {
        return refuse(400, "BlockListTooLong", "The block list may not contain more than 50,000 blocks.");
    }
    check_writing(head, bucket)?;
    let (object, upload) = (bucket.objects.get(&head.key), bucket.uploads.get(&head.key));
    let (mut content, mut blocks) = (Vec::new(), Vec::new());
    for (place, id) in list {
        let new = || upload.and_then(|upload| upload.blocks.get(&id)).cloned();
        let old = || object.and_then(|object| committed(object, &id));
        let block = match &*place {
            "Latest" => new().or_else(old),
            "Uncommitted" => new(),
            "Committed" => old(),
            _ => return Err(malformed()),
        };
        let block =
            block.ok_or_else(|| Refusal::new(400, "InvalidBlockList", "The specified block list is invalid."))?;
        blocks.push((id, block.digests.bytes));
        content.extend(block.content);
    }
    let md5 = head.header("x-ms-blob-content-md5");
    // The MD5 of the blob is kept as the client sent it, without a check.
    let sums = if md5.is_empty() { Vec::new() } else { vec![("content-md5".into(), md5.into())] };
    let object = Object { sums, blocks, ..Object::new(head, number, etag(number), content) };
    let answer = with_sum(made(&object), head, &request.digests);
    bucket.uploads.remove(&head.key);
    bucket.objects.insert(head.key.clone(), object);
    Ok(answer)
}

fn list_blocks(bucket: &Bucket, head: &Head) -> Result<Answer, Refusal> {
    let (object, upload) = (bucket.objects.get(&head.key), bucket.uploads.get(&head.key));
    if object.is_none() && upload.is_none() {
        return Err(not_found());
    }
    let which = head.parameter("blocklisttype").unwrap_or("committed");
    let shown = |(id, bytes): (&str, u64)| format!("<Block><Name>{}</Name><Size>{bytes}</Size></Block>", escape(id));
    let mut text = String::new();
    if which != "uncommitted" {
        let blocks = object.into_iter().flat_map(|object| &object.blocks).map(|(id, bytes)| shown((id, *bytes)));
        let _ = write!(text, "<CommittedBlocks>{}</CommittedBlocks>", blocks.collect::<String>());
    }
    if which != "committed" {
        let blocks = upload.into_iter().flat_map(|upload| &upload.blocks);
        let blocks = blocks.map(|(id, block)| shown((id, block.digests.bytes)));
        let _ = write!(text, "<UncommittedBlocks>{}</UncommittedBlocks>", blocks.collect::<String>());
    }
    let answer = Answer::xml(&format!("<BlockList>{text}</BlockList>"));
    Ok(object.into_iter().fold(answer, |answer, object| {
        let length = object.bytes.to_string();
        answer.header("etag", &object.etag).header("x-ms-blob-content-length", length)
    }))
}

fn list(bucket: &Bucket, head: &Head) -> Result<Answer, Refusal> {
    let parameter = |name| head.parameter(name).unwrap_or_default();
    let (prefix, delimiter) = (parameter("prefix"), parameter("delimiter"));
    let invalid = || Refusal::new(400, "InvalidQueryParameterValue", "A parameter of the list has no valid value.");
    let after = from_base64(parameter("marker")).and_then(|marker| String::from_utf8(marker).ok());
    let after = after.ok_or_else(invalid)?;
    let most = match parameter("maxresults") {
        "" => LISTED,
        most => most.parse().ok().filter(|most| *most > 0).ok_or_else(invalid)?,
    };
    let listed = bucket.list(prefix, delimiter, &after, LISTED.min(most));
    let mut blobs = String::new();
    for (name, object) in &listed.objects {
        // XML cannot express some characters. A name that contains one of them is percent-encoded.
        let is_encoded =
            name.contains(|c: char| c < ' ' && !"\t\n\r".contains(c) || ('\u{fffe}'..='\u{ffff}').contains(&c));
        let attribute = if is_encoded { " Encoded=\"true\"" } else { "" };
        let name = if is_encoded { encoded_path(name).into() } else { escape(*name) };
        let (modified, etag, bytes) = (fmt_http_date(object.modified), object.etag.trim_matches('"'), object.bytes);
        let kind = object.kept.iter().find(|(name, _)| name == "content-type").and_then(|(_, kind)| kind.to_str().ok());
        let kind = escape(kind.unwrap_or("application/octet-stream"));
        let _ = write!(
            blobs,
            "<Blob><Name{attribute}>{name}</Name><Properties><Last-Modified>{modified}</Last-Modified><Etag>{etag}</Etag>\
             <Content-Length>{bytes}</Content-Length><Content-Type>{kind}</Content-Type>\
             <BlobType>BlockBlob</BlobType></Properties></Blob>"
        );
    }
    for prefix in &listed.prefixes {
        let _ = write!(blobs, "<BlobPrefix><Name>{}</Name></BlobPrefix>", escape(&**prefix));
    }
    let next = listed.next.map(base64).unwrap_or_default();
    Ok(Answer::xml(&format!(
        "<EnumerationResults ContainerName=\"{}\"><Prefix>{}</Prefix><Blobs>{blobs}</Blobs>\
         <NextMarker>{next}</NextMarker></EnumerationResults>",
        escape(&*head.bucket),
        escape(prefix)
    )))
}
