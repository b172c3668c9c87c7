//! The operations of S3, and the operations of the similar XML API of GCS.

use std::fmt::Write;
use std::time::SystemTime;

use hyper::Method;

use super::answer::{Answer, Refusal, escape, iso, refuse};
use super::checksum::{Algorithm, Digests, base64, from_base64, hex};
use super::objects::{Bucket, Object, Objects, check_conditions, read};
use super::request::{Head, StoreRequest, encoded_path};
use super::upload;
use super::{Dialect, Kind, Store};

/// Maximum number of entries in one answer to a request that lists objects, parts or uploads.
pub(super) const LISTED: usize = 1_000;

/// Returns the operation that a request to S3 or GCS performs. The result is [`Kind::Other`] if the URL has an unknown
/// parameter, because that could change the meaning of the request.
pub(super) fn kind(head: &Head) -> Kind {
    const KNOWN: [&str; 15] = [
        "uploads",
        "uploadId",
        "partNumber",
        "part-number-marker",
        "max-parts",
        "max-uploads",
        "list-type",
        "prefix",
        "delimiter",
        "continuation-token",
        "start-after",
        "max-keys",
        "encoding-type",
        "fetch-owner",
        "x-id",
    ];
    let is_known = |name: &str| KNOWN.contains(&name) || name.to_lowercase().starts_with("x-amz-");
    if !head.parameters.iter().all(|(name, _)| is_known(name)) || !head.header("x-amz-copy-source").is_empty() {
        return Kind::Other;
    }
    let (has_uploads, has_id) = (head.has("uploads"), head.has("uploadId"));
    match (&head.method, head.key.is_empty()) {
        (&Method::PUT, true) => Kind::CreateBucket,
        (&Method::GET, true) if has_uploads => Kind::ListUploads,
        (&Method::GET, true) if head.has("list-type") => Kind::ListObjects,
        (&Method::PUT, false) if has_id => Kind::PutBlock,
        (&Method::PUT, false) => Kind::PutObject,
        (&Method::POST, false) if has_uploads => Kind::CreateUpload,
        (&Method::POST, false) if has_id => Kind::Commit,
        (&Method::DELETE, false) if has_id => Kind::Abort,
        (&Method::DELETE, false) => Kind::DeleteObject,
        (&Method::GET, false) if has_id => Kind::ListBlocks,
        (&Method::GET, false) => Kind::GetObject,
        (&Method::HEAD, false) => Kind::HeadObject,
        _ => Kind::Other,
    }
}

pub(super) fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(400, "InvalidRequest", message)
}

pub(super) fn answer(store: &Store, objects: &mut Objects, request: StoreRequest) -> Result<Answer, Refusal> {
    if request.kind == Kind::CreateBucket {
        objects.buckets.entry(request.head.bucket).or_default();
        return Ok(Answer::new(200));
    }
    let number = objects.number();
    let bucket = objects.buckets.get_mut(&request.head.bucket);
    let bucket = bucket.ok_or_else(|| Refusal::new(404, "NoSuchBucket", "The specified bucket does not exist"))?;
    let head = &request.head;
    check_payload(&request)?;
    if matches!(request.kind, Kind::PutObject | Kind::PutBlock) {
        check_sums(&request)?;
    }
    match request.kind {
        Kind::PutObject => put(store, bucket, request, number),
        Kind::GetObject | Kind::HeadObject => get(store, bucket, head),
        Kind::DeleteObject => {
            bucket.objects.remove(&head.key);
            Ok(Answer::new(204))
        }
        Kind::CreateUpload => upload::create(bucket, head, number),
        Kind::PutBlock => upload::put_part(bucket, request),
        Kind::ListBlocks => upload::list_parts(bucket, head),
        Kind::Commit => upload::commit(store, bucket, &request, number),
        Kind::Abort => upload::abort(bucket, head),
        Kind::ListUploads => Ok(upload::list(bucket, head)),
        Kind::ListObjects => list_objects(bucket, head),
        Kind::Other if head.method == Method::HEAD && head.key.is_empty() => Ok(Answer::new(200)),
        Kind::Other if head.has("location") => {
            Ok(Answer::xml(&format!("<LocationConstraint>{}</LocationConstraint>", store.region)))
        }
        Kind::CreateBucket | Kind::Other => refuse(501, "NotImplemented", "This store does not support the request."),
    }
}

/// Returns the algorithm and the value of the checksum that the client sent with a body; `None` if it sent none.
pub(super) fn given(head: &Head) -> Result<Option<(Algorithm, &str)>, Refusal> {
    let mut given = Algorithm::OF_S3.into_iter().map(|algorithm| (algorithm, head.header(&algorithm.header())));
    let mut given = given.by_ref().filter(|(_, sum)| !sum.is_empty());
    match (given.next(), given.next()) {
        (first, None) => Ok(first),
        _ => Err(invalid("Multiple checksum types are not allowed.")),
    }
}

/// Checks the body of a request against the checksums in its headers.
fn check_sums(request: &StoreRequest) -> Result<(), Refusal> {
    let (head, digests) = (&request.head, &request.digests);
    let wrong = |name: &str| {
        Refusal::new(400, "BadDigest", format!("The {name} you specified did not match the calculated checksum."))
    };
    let md5 = head.header("content-md5");
    if !md5.is_empty() {
        if from_base64(md5).is_none_or(|md5| md5.len() != 16) {
            return refuse(400, "InvalidDigest", "The Content-MD5 you specified is not valid.");
        }
        if digests.base64(Algorithm::Md5).as_deref() != Some(md5) {
            return Err(wrong("Content-MD5"));
        }
    }
    if let Some((algorithm, sum)) = given(head)? {
        let expected = digests.sum(algorithm).unwrap_or_default();
        if from_base64(sum).is_none_or(|sum| sum.len() != expected.len()) {
            return Err(invalid(format!("Value for {} header is invalid.", algorithm.header())));
        }
        if sum != base64(expected) {
            return Err(wrong(algorithm.name()));
        }
    }
    for value in head.headers.get_all("x-goog-hash") {
        for sum in value.to_str().unwrap_or_default().split(',') {
            let (name, sum) = sum.trim().split_once('=').unwrap_or_default();
            let algorithm = if name == "md5" { Algorithm::Md5 } else { Algorithm::Crc32c };
            if digests.base64(algorithm).as_deref() != Some(sum) {
                return Err(wrong(name));
            }
        }
    }
    Ok(())
}

/// Checks the body of a request against the SHA-256 that its signature covers.
fn check_payload(request: &StoreRequest) -> Result<(), Refusal> {
    let sha256 = request.head.header("x-amz-content-sha256");
    match sha256 {
        // The signature of a presigned URL covers only the URL, so there is no SHA-256 to check.
        "" | "UNSIGNED-PAYLOAD" => Ok(()),
        _ if sha256.starts_with("STREAMING-") => Ok(()),
        _ if request.digests.sum(Algorithm::Sha256).map(hex).as_deref() == Some(sha256) => Ok(()),
        _ => {
            let message = "The provided 'x-amz-content-sha256' header does not match what was computed.";
            refuse(400, "XAmzContentSHA256Mismatch", message)
        }
    }
}

/// Checks the conditions under which the request's headers allow an object to be written.
pub(super) fn check_writing(head: &Head, bucket: &Bucket) -> Result<(), Refusal> {
    let object = bucket.objects.get(&head.key);
    let failed =
        || Refusal::new(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold");
    if object.is_none() && !head.header("if-match").is_empty() {
        return Err(no_such_key());
    }
    check_conditions(head, object).map_err(|_| failed())?;
    let generation = head.header("x-goog-if-generation-match");
    if !generation.is_empty() && generation != object.map_or(0, |object| object.generation).to_string() {
        return Err(failed());
    }
    Ok(())
}

fn no_such_key() -> Refusal {
    Refusal::new(404, "NoSuchKey", "The specified key does not exist.")
}

/// Returns the headers for a checksum of an object. They contain the checksum, and whether it covers the whole object
/// or only the checksums of the parts.
pub(super) fn as_headers(algorithm: Algorithm, sum: String, is_of_whole: bool) -> Vec<(String, String)> {
    let kind = if is_of_whole { "FULL_OBJECT" } else { "COMPOSITE" };
    vec![(algorithm.header(), sum), ("x-amz-checksum-type".into(), kind.into())]
}

/// Returns the CRC32C and the MD5 of an object as headers of GCS. An object that was made of parts has no MD5.
pub(super) fn as_goog_hash(digests: &Digests) -> Vec<(String, String)> {
    let crc32c = digests.base64(Algorithm::Crc32c).map(|sum| format!("crc32c={sum}"));
    let md5 = digests.base64(Algorithm::Md5).map(|sum| format!("md5={sum}"));
    [crc32c, md5].into_iter().flatten().map(|sum| ("x-goog-hash".into(), sum)).collect()
}

pub(super) fn quoted_md5(digests: &Digests) -> String {
    format!("\"{}\"", hex(digests.sum(Algorithm::Md5).unwrap_or_default()))
}

/// Adds the headers that a client receives when it has created `object`.
pub(super) fn made(answer: Answer, store: &Store, object: &Object) -> Answer {
    let mut answer = answer.header("etag", &object.etag);
    if store.dialect == Dialect::Gcs {
        answer = answer.header("x-goog-generation", object.generation.to_string());
    }
    object.sums.iter().fold(answer, |answer, (name, sum)| answer.header(name, sum))
}

fn put(store: &Store, bucket: &mut Bucket, request: StoreRequest, number: u64) -> Result<Answer, Refusal> {
    let StoreRequest { head, content, digests, .. } = request;
    check_writing(&head, bucket)?;
    // If the client names no algorithm, S3 uses CRC64-NVME.
    let algorithm = given(&head)?.map_or(Algorithm::Crc64Nvme, |(algorithm, _)| algorithm);
    let sums = match store.dialect {
        Dialect::Gcs => as_goog_hash(&digests),
        _ => as_headers(algorithm, digests.base64(algorithm).unwrap_or_default(), true),
    };
    let object = Object { sums, ..Object::new(&head, number, quoted_md5(&digests), content) };
    let answer = made(Answer::new(200), store, &object);
    bucket.objects.insert(head.key, object);
    Ok(answer)
}

fn get(store: &Store, bucket: &Bucket, head: &Head) -> Result<Answer, Refusal> {
    let object = bucket.objects.get(&head.key).ok_or_else(no_such_key)?;
    let failed = |status| Refusal::new(status, "PreconditionFailed", "A pre-condition you specified did not hold");
    check_conditions(head, Some(object)).map_err(failed)?;
    let mut answer = read(head, object)?;
    if store.dialect == Dialect::Gcs {
        answer = answer.header("x-goog-generation", object.generation.to_string());
    }
    // The checksum covers the whole object, so the answer for a range does not have it.
    let is_asked = store.dialect == Dialect::Gcs || head.header("x-amz-checksum-mode").eq_ignore_ascii_case("enabled");
    if is_asked && answer.status == 200 {
        answer = object.sums.iter().fold(answer, |answer, (name, sum)| answer.header(name, sum));
    }
    Ok(answer)
}

fn list_objects(bucket: &Bucket, head: &Head) -> Result<Answer, Refusal> {
    let parameter = |name| head.parameter(name).unwrap_or_default();
    let (prefix, delimiter) = (parameter("prefix"), parameter("delimiter"));
    let after = match head.parameter("continuation-token") {
        Some(token) => from_base64(token)
            .and_then(|token| String::from_utf8(token).ok())
            .ok_or_else(|| Refusal::new(400, "InvalidArgument", "The continuation token provided is incorrect"))?,
        None => parameter("start-after").into(),
    };
    let most = match head.parameter("max-keys") {
        Some(most) => most.parse().map_err(|_| Refusal::new(400, "InvalidArgument", "max-keys is not a number"))?,
        None => LISTED,
    };
    let listed = bucket.list(prefix, delimiter, &after, LISTED.min(most));
    let is_encoded = parameter("encoding-type") == "url";
    // A space is encoded as `+`, as in the body of a form.
    let shown =
        |name: &str| if is_encoded { encoded_path(name).replace("%20", "+") } else { escape(name).into_owned() };
    let (count, is_truncated) = (listed.objects.len() + listed.prefixes.len(), listed.next.is_some());
    let mut text = format!(
        "<ListBucketResult><Name>{}</Name><Prefix>{}</Prefix><KeyCount>{count}</KeyCount><MaxKeys>{most}</MaxKeys>\
         <IsTruncated>{is_truncated}</IsTruncated>",
        escape(&*head.bucket),
        shown(prefix)
    );
    if is_encoded {
        text.push_str("<EncodingType>url</EncodingType>");
    }
    if !delimiter.is_empty() {
        let _ = write!(text, "<Delimiter>{}</Delimiter>", shown(delimiter));
    }
    if let Some(next) = &listed.next {
        let _ = write!(text, "<NextContinuationToken>{}</NextContinuationToken>", base64(next));
    }
    for (key, object) in &listed.objects {
        let (key, modified, etag, bytes) =
            (shown(key), shown_moment(object.modified), escape(&*object.etag), object.bytes);
        let _ = write!(
            text,
            "<Contents><Key>{key}</Key><LastModified>{modified}</LastModified><ETag>{etag}</ETag><Size>{bytes}</Size>\
             <StorageClass>STANDARD</StorageClass></Contents>"
        );
    }
    for prefix in &listed.prefixes {
        let _ = write!(text, "<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", shown(prefix));
    }
    Ok(Answer::xml(&format!("{text}</ListBucketResult>")))
}

/// Formats a time with milliseconds, as S3 does. The milliseconds in the text are always zero.
pub(super) fn shown_moment(moment: SystemTime) -> String {
    iso(moment).replace('Z', ".000Z")
}
