//! Tests of buckets that are in another region than the configured one, and of failures that concern a whole store.

use crate::common::web::{Web, answer, header};
use crate::common::{block, bytes, opened, run, start};
use ascertain_netlab::store::Store as Served;
use ascertain_transfer::{Attempt, Environment, Error, Failure, Kind, Location, Options, PutOptions, open};

fn put(found: &Location) -> Result<(), Failure> {
    let mut seen = Attempt::default();
    run(found.store.put("name", block(bytes(100_000)), &PutOptions::default(), &mut seen)).map(drop)
}

fn head(found: &Location) -> Result<(), Failure> {
    run(found.store.head("name", &mut Attempt::default())).map(drop)
}

/// Returns the region in the signature of a request.
fn signed_for(head: &str) -> &str {
    header(head, "authorization").unwrap().split("Credential=").nth(1).unwrap().split('/').nth(2).unwrap()
}

fn options(web: &Web) -> Options {
    let keys = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "secret")];
    Options { environment: keys.into_iter().collect(), endpoint_url: Some(web.url("")), ..Options::default() }
}

#[test]
fn a_store_in_another_region_gets_requests_for_its_region() {
    let running = start(Served { region: "eu-central-1".into(), ..Served::s3() });
    // The answer to HEAD has no body, so a GET request asks for the region.
    let found = opened(&running);
    head(&found).unwrap();
    let asked = running.seen().len();
    put(&found).unwrap();
    head(&found).unwrap();
    assert_eq!(running.seen().len(), asked + 2, "the region is kept: {:?}", running.seen());
    assert_eq!(running.object("bucket", "name").unwrap().len(), 100_000);
    // Without a HEAD request, only the first request is repeated.
    let (found, asked) = (opened(&running), running.seen().len());
    put(&found).unwrap();
    put(&found).unwrap();
    assert_eq!(running.seen().len(), asked + 3);
}

#[test]
fn each_form_of_redirect_is_followed_once() {
    let of_s3 = "<Error><Code>PermanentRedirect</Code><Message>The bucket you are attempting to access must be \
                 addressed using the specified endpoint. Please send all future requests to this endpoint.</Message>\
                 <Endpoint>box.s3.eu-west-1.amazonaws.com</Endpoint><Bucket>box</Bucket></Error>";
    let temporary = "<Error><Code>TemporaryRedirect</Code><Message>Please re-send this request to the specified \
                     temporary endpoint. Continue to use the original request endpoint for future requests.</Message>\
                     <Endpoint>box.s3-eu-west-1.amazonaws.com</Endpoint></Error>";
    let malformed = "<Error><Code>AuthorizationHeaderMalformed</Code><Message>The authorization header is malformed; \
                     the region 'us-east-1' is wrong; expecting 'eu-west-1'</Message><Region>eu-west-1</Region></Error>";
    let location = "<Error><Code>IllegalLocationConstraintException</Code></Error>";
    let region = "x-amz-bucket-region: eu-west-1\r\n";
    for (status, headers, body) in [
        ("301 Moved Permanently", "", of_s3),
        ("301 Moved Permanently", region, ""),
        ("307 Temporary Redirect", "", temporary),
        ("400 Bad Request", "", malformed),
        ("400 Bad Request", region, location),
    ] {
        let web = Web::start(move |head, _| match signed_for(head) {
            "us-east-1" => answer(status, headers, body.as_bytes()),
            _ => answer("200 OK", "ETag: \"1\"\r\n", b""),
        });
        let found = open("s3://box/name", &options(&web)).unwrap();
        put(&found).unwrap();
        put(&found).unwrap();
        let heads = web.heads();
        let regions: Vec<_> = heads.iter().map(|head| signed_for(head)).collect();
        assert_eq!(regions, ["us-east-1", "eu-west-1", "eu-west-1"], "{status} {body}");
        assert_eq!(header(&heads[1], "content-length"), Some("100000"));
    }
    // A HEAD request is answered without a body, but with the region in a header.
    let web = Web::start(move |head, _| match signed_for(head) {
        "us-east-1" => answer("301 Moved Permanently", region, b""),
        _ => answer("200 OK", "ETag: \"1\"\r\n", b""),
    });
    head(&open("s3://box/name", &options(&web)).unwrap()).unwrap();
    assert_eq!(web.heads().len(), 2);
}

#[test]
fn the_host_of_aws_changes_with_the_region() {
    let proxy = Web::start(|head, _| match header(head, "host").unwrap() {
        "box.s3.us-east-1.amazonaws.com" => answer("301 Moved Permanently", "x-amz-bucket-region: eu-west-1\r\n", b""),
        _ => answer("200 OK", "ETag: \"1\"\r\n", b""),
    });
    for anonymous in [false, true] {
        let at = format!("http://{}", proxy.address);
        let keys = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "secret"), ("http_proxy", &*at)];
        let options = Options {
            environment: keys.into_iter().collect(),
            endpoint_url: Some("http://s3.us-east-1.amazonaws.com".into()),
            virtual_hosted: true,
            anonymous,
            ..Options::default()
        };
        put(&open("s3://box/name", &options).unwrap()).unwrap();
        let heads = proxy.heads();
        let last = heads.last().unwrap();
        assert_eq!(header(last, "host"), Some("box.s3.eu-west-1.amazonaws.com"));
        assert_eq!(header(last, "authorization").is_some(), !anonymous);
    }
}

#[test]
fn a_redirect_that_does_not_help_is_a_failure() {
    // The store names yet another region, the same region, or text that can't be a region.
    for (first, second, requests) in
        [("eu-west-1", "eu-west-2", 2), ("us-east-1", "us-east-1", 1), ("evil.example.com/", "x", 1)]
    {
        let web = Web::start(move |head, _| {
            let region = if signed_for(head) == "us-east-1" { first } else { second };
            answer("301 Moved Permanently", &format!("x-amz-bucket-region: {region}\r\n"), b"")
        });
        let failure = put(&open("s3://bucket/name", &options(&web)).unwrap()).unwrap_err();
        assert_eq!(failure.kind, Kind::Fatal, "{failure}");
        assert!(failure.concerns_whole_store, "{failure}");
        assert!(failure.message.contains("region"), "{failure}");
        assert_eq!(web.heads().len(), requests, "{first}");
    }
    // Other errors are no redirects, although S3 names the region in each answer.
    for status in ["400 Bad Request", "403 Forbidden", "200 OK"] {
        let body = b"<Error><Code>InvalidArgument</Code></Error>";
        let web = Web::start(move |_, _| answer(status, "x-amz-bucket-region: eu-west-1\r\n", body));
        put(&open("s3://bucket/name", &options(&web)).unwrap()).unwrap_err();
        assert_eq!(web.heads().len(), 1, "{status}");
    }
    // Without a signature and at a custom endpoint, nothing would change.
    let body = b"<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-central-1</Region></Error>";
    let web = Web::start(move |_, _| answer("400 Bad Request", "", body));
    let failure = put(&open("s3://bucket/name", &Options { anonymous: true, ..options(&web) }).unwrap()).unwrap_err();
    assert!(failure.kind == Kind::Fatal && failure.message.contains("region eu-central-1"), "{failure}");
    assert_eq!(web.heads().len(), 1);
}

/// Returns the failure of a `put` to a store that gives this answer to each request.
fn refused(url: &str, status: &'static str, headers: &'static str, body: &'static str) -> Failure {
    let web = Web::start(move |_, _| answer(status, headers, body.as_bytes()));
    let environment: Environment = [
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AZURE_STORAGE_ACCOUNT", "account"),
        ("AZURE_STORAGE_KEY", "a2V5"),
        ("GOOGLE_OAUTH_ACCESS_TOKEN", "token"),
    ]
    .into_iter()
    .collect();
    let options = Options { environment, endpoint_url: Some(web.url("")), ..Options::default() };
    put(&open(url, &options).unwrap()).unwrap_err()
}

/// The answers are those of the real services; host names and identifiers are shortened.
#[test]
fn failures_of_the_whole_store_are_told_from_those_of_an_object() {
    let (s3, azure, google) = ("s3://bucket/name", "az://bucket/name", "gs://bucket/name");
    for (url, status, headers, body) in [
        // S3.
        (
            s3,
            "403 Forbidden",
            "",
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>InvalidAccessKeyId</Code><Message>The AWS Access Key Id you provided does not exist in our records.</Message><AWSAccessKeyId>id</AWSAccessKeyId><RequestId>1</RequestId><HostId>2</HostId></Error>",
        ),
        (
            s3,
            "403 Forbidden",
            "",
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>SignatureDoesNotMatch</Code><Message>The request signature we calculated does not match the signature you provided. Check your key and signing method.</Message></Error>",
        ),
        (
            s3,
            "400 Bad Request",
            "",
            "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message><Token-0>x</Token-0></Error>",
        ),
        (
            s3,
            "404 Not Found",
            "",
            "<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message><BucketName>bucket</BucketName></Error>",
        ),
        (
            s3,
            "403 Forbidden",
            "",
            "<Error><Code>AllAccessDisabled</Code><Message>All access to this object has been disabled</Message></Error>",
        ),
        (
            s3,
            "403 Forbidden",
            "",
            "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference between the request time and the current time is too large.</Message></Error>",
        ),
        // MinIO.
        (
            s3,
            "403 Forbidden",
            "Server: MinIO\r\n",
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>InvalidAccessKeyId</Code><Message>Your account is disabled; please contact your administrator.</Message><Key>name</Key><BucketName>bucket</BucketName><Resource>/bucket/name</Resource></Error>",
        ),
        (
            s3,
            "404 Not Found",
            "Server: MinIO\r\n",
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message><Key>name</Key><BucketName>bucket</BucketName></Error>",
        ),
        (s3, "403 Forbidden", "X-Minio-Error-Code: SignatureDoesNotMatch\r\n", ""),
        // Azure.
        (
            azure,
            "403 Server failed to authenticate the request.",
            "x-ms-error-code: AuthenticationFailed\r\n",
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>AuthenticationFailed</Code><Message>Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.</Message></Error>",
        ),
        (
            azure,
            "404 The specified container does not exist.",
            "x-ms-error-code: ContainerNotFound\r\n",
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>ContainerNotFound</Code></Error>",
        ),
        (azure, "403 The specified account is disabled.", "x-ms-error-code: AccountIsDisabled\r\n", ""),
        (azure, "401 Unauthorized", "x-ms-error-code: NoAuthenticationInformation\r\n", ""),
        (azure, "403 Forbidden", "x-ms-error-code: AuthorizationFailure\r\n", ""),
        // GCS.
        (
            google,
            "401 Unauthorized",
            "",
            "<?xml version='1.0' encoding='UTF-8'?><Error><Code>AuthenticationRequired</Code><Message>Authentication required.</Message></Error>",
        ),
        (google, "401 Unauthorized", "", ""),
        (
            google,
            "404 Not Found",
            "",
            "<?xml version='1.0' encoding='UTF-8'?><Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist.</Message></Error>",
        ),
        (
            google,
            "403 Forbidden",
            "",
            "<?xml version='1.0' encoding='UTF-8'?><Error><Code>UserProjectAccountProblem</Code><Message>The project to be billed is associated with an absent billing account.</Message></Error>",
        ),
        (
            google,
            "403 Forbidden",
            "",
            "<?xml version='1.0' encoding='UTF-8'?><Error><Code>AccountProblem</Code></Error>",
        ),
    ] {
        let error = Error::from(refused(url, status, headers, body));
        assert!(error.concerns_whole_store(), "{url} {status} {headers} {body}: {error}");
    }
    for (url, status, headers, body) in [
        (s3, "403 Forbidden", "", "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"),
        (
            s3,
            "404 Not Found",
            "",
            "<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>",
        ),
        (
            s3,
            "400 Bad Request",
            "",
            "<Error><Code>KeyTooLongError</Code><Message>Your key is too long</Message></Error>",
        ),
        (s3, "400 Bad Request", "", "<Error><Code>BadDigest</Code></Error>"),
        (s3, "412 Precondition Failed", "", "<Error><Code>PreconditionFailed</Code></Error>"),
        (
            s3,
            "503 Slow Down",
            "",
            "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>",
        ),
        (s3, "500 Internal Server Error", "", "<Error><Code>InternalError</Code></Error>"),
        (
            azure,
            "403 This request is not authorized to perform this operation using this permission.",
            "x-ms-error-code: AuthorizationPermissionMismatch\r\n",
            "",
        ),
        (azure, "404 The specified blob does not exist.", "x-ms-error-code: BlobNotFound\r\n", ""),
        (azure, "503 Server Busy", "x-ms-error-code: ServerBusy\r\n", ""),
        (
            google,
            "403 Forbidden",
            "",
            "<?xml version='1.0' encoding='UTF-8'?><Error><Code>AccessDenied</Code><Message>Access denied.</Message></Error>",
        ),
        (google, "429 Too Many Requests", "", ""),
    ] {
        let error = Error::from(refused(url, status, headers, body));
        assert!(!error.concerns_whole_store(), "{url} {status} {headers} {body}: {error}");
    }
    let none = open("s3://bucket/name", &Options::default()).unwrap_err();
    assert!(none.concerns_whole_store(), "{none}");
    assert!(!Error::Stopped.concerns_whole_store());
    let options = Options { endpoint_url: Some("http://127.0.0.1:1".into()), anonymous: true, ..Options::default() };
    assert!(!put(&open("s3://bucket/name", &options).unwrap()).unwrap_err().concerns_whole_store);
}
