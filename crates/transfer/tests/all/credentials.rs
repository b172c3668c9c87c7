//! Tests of the sources of credentials, regions and endpoints, and of their priority.

use std::time::Duration;

use crate::common::web::{Web, answer, header};
use crate::common::{block, options_for, run, start};
use ascertain_netlab::store::Store as Served;
use ascertain_transfer::{
    Attempt, Environment, Error, Kind, Options, PutOptions, Stop, TransferRequest, open, run as transfer,
};
use object_store::ClientOptions;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService};
use object_store::signer::Signer;

pub fn environment(variables: &[(&str, &str)]) -> Environment {
    variables.iter().copied().collect()
}

/// Sends a HEAD request to a server that accepts everything. Returns the heads of all requests.
fn asked(url: &str, options: Options) -> String {
    let web = Web::start(|_, _| answer("200 OK", "ETag: \"1\"\r\n", b""));
    let options = Options { endpoint_url: Some(web.url("/")), ..options };
    run(open(url, &options).unwrap().store.head("name", &mut Attempt::default())).unwrap();
    web.heads().concat()
}

/// Returns the target of a request if no endpoint is configured. A proxy records this target.
pub fn place(url: &str, options: Options, variables: &[(&str, &str)]) -> String {
    let proxy = Web::start(|_, _| answer("502 Bad Gateway", "", b""));
    let at = format!("http://{}", proxy.address);
    let more = [("https_proxy", &*at), ("http_proxy", &*at)];
    let environment = variables.iter().chain(&more).copied().collect();
    let found = open(url, &Options { environment, anonymous: true, ..options }).unwrap();
    let failure = run(found.store.head("name", &mut Attempt::default())).unwrap_err();
    assert!(matches!(failure.kind, Kind::Transient(_)), "{failure}");
    proxy.heads()[0].split(' ').nth(1).unwrap().into()
}

/// A program that reads the result of a command needs the file and its error, even if the store can't be opened.
#[test]
fn a_single_file_that_fails_has_a_result_without_credentials() {
    let file = env!("CARGO_MANIFEST_DIR").to_string() + "/Cargo.toml";
    for (source, destination, expected) in [
        (&*file, "s3://bucket/name", "s3://bucket/name"),
        (&file, "s3://bucket/p/", "s3://bucket/p/Cargo.toml"),
        ("missing.txt", "gs://bucket", "gs://bucket/missing.txt"),
    ] {
        let (sources, destination) = (vec![source.into()], destination.into());
        let request = TransferRequest { sources, destination, ..TransferRequest::default() };
        let error = transfer(&request, Box::new(()), Stop::default()).unwrap_err();
        assert_eq!(matches!(error, Error::NoCredentials(_)), source == file, "{error}");
        let result = request.failed_file(error).unwrap();
        assert_eq!((&*result.address, result.path.to_str()), (expected, Some(source)));
    }
}

#[test]
fn without_credentials_the_way_out_is_said_and_nobody_is_asked() {
    for (url, words) in [
        ("s3://bucket/name", "AWS_ACCESS_KEY_ID"),
        ("az://bucket/name", "AZURE_STORAGE_ACCOUNT"),
        ("https://account.blob.core.windows.net/bucket/name", "AZURE_STORAGE_SAS_TOKEN"),
        ("gs://bucket/name", "GOOGLE_APPLICATION_CREDENTIALS"),
    ] {
        let failure = open(url, &Options::default()).unwrap_err();
        assert!(matches!(failure, Error::NoCredentials(_)) && failure.to_string().contains(words), "{failure}");
        // If the option `metadata` is set, the metadata address is tried only at the first request.
        if !url.starts_with("az://") {
            open(url, &Options { machine_credentials: true, ..Options::default() }).unwrap();
        }
    }
    for (variables, words) in [
        (&[("AWS_ACCESS_KEY_ID", "id")][..], "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set"),
        (&[("AWS_WEB_IDENTITY_TOKEN_FILE", "/x")], "AWS_ROLE_ARN is not"),
        (&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://x")], "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE is not"),
        (&[("AWS_PROFILE", "work")], "the profile work"),
    ] {
        let options = Options { environment: environment(variables), ..Options::default() };
        let failure = open("s3://bucket/name", &options).unwrap_err();
        assert!(matches!(failure, Error::NoCredentials(_)) && failure.to_string().contains(words), "{failure}");
    }
    let options = Options {
        environment: environment(&[("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json")]),
        machine_credentials: true,
        ..Options::default()
    };
    let failure = open("gs://bucket/name", &options).unwrap_err();
    assert!(matches!(failure, Error::NoCredentials(_)) && failure.to_string().contains("/nowhere.json"), "{failure}");
}

#[test]
fn a_profile_that_is_asked_for_goes_before_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".aws")).unwrap();
    let credentials = "[work]\naws_access_key_id = WORK\naws_secret_access_key = s\n[sso]\nsso_session = x\n";
    std::fs::write(folder.path().join(".aws/credentials"), credentials).unwrap();
    std::fs::write(folder.path().join(".aws/config"), "[profile work]\nregion = eu-north-1\n").unwrap();
    let home = ("HOME", folder.path().to_str().unwrap());
    let keys = [("AWS_ACCESS_KEY_ID", "ENVIRONMENT"), ("AWS_SECRET_ACCESS_KEY", "s")];

    let with = |variables: &[(&str, &str)], profile: Option<&str>| {
        let options =
            Options { environment: environment(variables), profile: profile.map(Into::into), ..Options::default() };
        let head = asked("s3://bucket/name", options);
        let signed = header(&head, "authorization").unwrap().to_string();
        let mut scope = signed.split("Credential=").nth(1).unwrap().split('/');
        (scope.next().unwrap().to_string(), scope.nth(1).unwrap().to_string())
    };
    let named = [home, ("AWS_PROFILE", "work")];
    assert_eq!(with(&[home, keys[0], keys[1]], None), ("ENVIRONMENT".into(), "us-east-1".into()));
    assert_eq!(with(&[home, keys[0], keys[1]], Some("work")), ("WORK".into(), "eu-north-1".into()));
    assert_eq!(with(&named, None), ("WORK".into(), "eu-north-1".into()));
    assert_eq!(with(&[named[0], named[1], keys[0], keys[1]], None), ("ENVIRONMENT".into(), "eu-north-1".into()));
    assert_eq!(with(&[named[0], named[1], ("AWS_REGION", "ap-east-1")], None), ("WORK".into(), "ap-east-1".into()));

    let options = Options { environment: environment(&[home]), profile: Some("sso".into()), ..Options::default() };
    let failure = open("s3://bucket/name", &options).unwrap_err();
    assert!(failure.to_string().contains("sso_region is missing in the profile sso and [sso-session x]"), "{failure}");
}

#[test]
fn a_store_is_where_its_cloud_has_it_or_where_it_is_said_to_be() {
    let options = Options::default;
    for (url, variables, expected) in [
        ("s3://box/name", &[][..], "box.s3.us-east-1.amazonaws.com:443"),
        ("s3://box/name", &[("AWS_DEFAULT_REGION", "eu-west-3")], "box.s3.eu-west-3.amazonaws.com:443"),
        ("s3://my.box/name", &[], "s3.us-east-1.amazonaws.com:443"),
        ("s3://box/name", &[("AWS_ENDPOINT_URL", "http://minio:9000")], "http://minio:9000/box/name"),
        ("gs://box/name", &[], "storage.googleapis.com:443"),
        ("az://box/name", &[("AZURE_STORAGE_ACCOUNT", "acc")], "acc.blob.core.windows.net:443"),
        ("https://acc.blob.core.windows.net/box/name", &[], "acc.blob.core.windows.net:443"),
        (
            "az://box/name",
            &[("AZURE_STORAGE_CONNECTION_STRING", "AccountName=a;DefaultEndpointsProtocol=http;EndpointSuffix=x.cn")],
            "http://a.blob.x.cn/box/name",
        ),
        (
            "az://box/name",
            &[("AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true")],
            "http://127.0.0.1:10000/devstoreaccount1/box/name",
        ),
    ] {
        assert_eq!(place(url, options(), variables), expected, "{url} {variables:?}");
    }
    let in_front = Options { virtual_hosted: true, endpoint_url: Some("http://store:90/".into()), ..options() };
    assert_eq!(place("s3://box/name", in_front, &[]), "http://box.store:90/name");
}

#[test]
fn who_pays_is_said_in_the_store_s_own_words() {
    let pays = |variables| Options {
        environment: environment(variables),
        anonymous: true,
        requester_pays: true,
        ..Options::default()
    };
    let head = asked("s3://bucket/name", pays(&[]));
    assert_eq!(header(&head, "x-amz-request-payer"), Some("requester"));
    let head = asked("gs://bucket/name", pays(&[("GOOGLE_CLOUD_PROJECT", "mine")]));
    assert_eq!(header(&head, "x-goog-user-project"), Some("mine"));
    let failure = open("gs://bucket/name", &pays(&[])).unwrap_err();
    assert!(failure.to_string().contains("GOOGLE_CLOUD_PROJECT"), "{failure}");
}

#[test]
fn a_service_account_without_oauth_signs_nothing() {
    let key = r#"{"private_key": "x", "private_key_id": "x", "client_email": "x", "disable_oauth": true}"#;
    let options = Options { environment: environment(&[("GOOGLE_SERVICE_ACCOUNT_KEY", key)]), ..Options::default() };
    let head = asked("gs://bucket/name", options);
    assert_eq!(header(&head, "authorization"), None);
}

/// A connector that is never used, because `object_store` creates the SAS without a request.
#[derive(Debug)]
struct NoConnector;

#[async_trait::async_trait]
impl HttpService for NoConnector {
    async fn call(&self, _: HttpRequest) -> Result<HttpResponse, HttpError> {
        unreachable!("a SAS is made without a request")
    }
}

impl HttpConnector for NoConnector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(NoConnector))
    }
}

#[test]
fn a_shared_access_signature_is_enough() {
    let running = start(Served::azure());
    let account = MicrosoftAzureBuilder::new()
        .with_account(&running.store().account)
        .with_access_key(&running.store().secret)
        .with_container_name("bucket")
        .with_endpoint(running.url())
        .with_http_connector(NoConnector)
        .build()
        .unwrap();
    let name = "name".into();
    let signing = account.signed_url("PUT".parse().unwrap(), &name, Duration::from_secs(600));
    let signed = run(signing).unwrap();
    let sas = signed.query().unwrap();
    for sas in [sas.to_string(), format!("?{sas}")] {
        let environment = environment(&[("AZURE_STORAGE_ACCOUNT", "ascertain"), ("AZURE_STORAGE_SAS_TOKEN", &sas)]);
        let options = Options { environment, ..options_for(&running) };
        let found = open("az://bucket/name", &options).unwrap();
        run(found.store.put("name", block("x"), &PutOptions::default(), &mut Attempt::default())).unwrap();
        assert_eq!(running.object("bucket", "name").unwrap(), b"x");
    }
}

#[test]
fn keys_of_one_account_are_not_sent_to_another() {
    let open_as = |named: &str| {
        let environment =
            environment(&[("AZURE_STORAGE_ACCOUNT", named), ("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=secret")]);
        open("https://theirs.blob.core.windows.net/box/name", &Options { environment, ..Options::default() })
    };
    open_as("theirs").unwrap();
    let failure = open_as("ours").unwrap_err();
    assert!(matches!(failure, Error::NoCredentials(_)), "{failure}");
}

#[test]
fn a_connection_string_goes_before_the_rest_of_the_environment() {
    let string = "AccountName=acc;AccountKey=a2V5";
    let variables = [("AZURE_STORAGE_CONNECTION_STRING", string), ("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=secret")];
    let head = asked("az://box/name", Options { environment: environment(&variables), ..Options::default() });
    assert!(header(&head, "authorization").is_some() && !head.contains("sig="), "{head}");
}
