//! Tests of other cloud services: of endpoints, credentials, and answers that repeat secrets.

use std::time::Duration;

use crate::common::run;
use crate::common::web::{Web, answer, header};
use ascertain_transfer::{Environment, Failure, Kind, Options, Reply, Service};

const SCOPE: &str = "https://example.org/scope";

fn options(variables: &[(&str, &str)]) -> Options {
    Options { environment: variables.iter().copied().collect::<Environment>(), ..Options::default() }
}

fn aws(options: &Options) -> Result<Service, Failure> {
    Service::aws_global("route53", "route_53", options)
}

fn get(service: &Service) -> Result<Reply, Failure> {
    run(service.get("/there", &[("name", "a/b c")]))
}

/// Starts a server whose answers repeat the request.
fn echo(status: &'static str) -> Web {
    Web::start(move |head, _| {
        answer(status, "Retry-After: 7\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\n", head.as_bytes())
    })
}

#[test]
fn what_a_server_repeats_of_the_credentials_is_not_passed_on() {
    let web = echo("403 Forbidden");
    let url = web.url("");
    let with = |variables: &[(&str, &str)]| Options { endpoint_url: Some(url.clone()), ..options(variables) };
    let keys = [
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "PLANTEDKEY0123456789"),
        ("AWS_SESSION_TOKEN", "PLANTEDTOKEN0123456789/+=="),
    ];
    let token = [("GOOGLE_OAUTH_ACCESS_TOKEN", "PLANTEDBEARER0123456789")];
    let services = [aws(&with(&keys)).unwrap(), Service::google("https://nowhere", SCOPE, &with(&token)).unwrap()];
    for service in &services {
        let reply = get(service).unwrap();
        assert_eq!((reply.status, reply.retry_after), (403, Some(Duration::from_secs(7))));
        assert!(reply.clock.as_ref().unwrap().contains("minutes ahead of the server's"), "{reply:?}");
        assert!(reply.text.contains('…') && reply.text.contains("GET /there?name=a%2Fb%20c"), "{reply:?}");
        assert!(!format!("{reply:?}{service:?}").contains("PLANTED"), "{reply:?}{service:?}");
    }
    // The secrets must have been sent, or the test would show nothing.
    let heads = web.heads();
    assert_eq!(header(&heads[0], "x-amz-security-token"), Some(keys[2].1));
    assert!(header(&heads[0], "authorization").unwrap().contains("/us-east-1/route53/aws4_request"));
    assert_eq!(header(&heads[1], "authorization"), Some("Bearer PLANTEDBEARER0123456789"));
}

/// Returns the target of a request if no endpoint is configured. A proxy records this target.
fn place(service: impl Fn(&Options) -> Service, variables: &[(&str, &str)]) -> String {
    let proxy = Web::start(|_, _| answer("502 Bad Gateway", "", b""));
    let at = format!("http://{}", proxy.address);
    let own =
        [("https_proxy", &*at), ("http_proxy", &at), ("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "key")];
    let failure = get(&service(&options(&[&own, variables].concat()))).unwrap_err();
    assert!(matches!(failure.kind, Kind::Transient(_)), "{failure}");
    proxy.heads()[0].split(' ').nth(1).unwrap().into()
}

#[test]
fn a_service_is_where_the_environment_says_or_where_its_cloud_has_it() {
    let aws = |options: &Options| aws(options).unwrap();
    for (variables, expected) in [
        (&[][..], "route53.amazonaws.com:443"),
        (&[("AWS_REGION", "eu-west-1")], "route53.amazonaws.com:443"),
        (&[("AWS_REGION", "cn-north-1")], "route53.amazonaws.com.cn:443"),
        (&[("AWS_REGION", "us-gov-east-1")], "route53.us-gov.amazonaws.com:443"),
        (&[("AWS_ENDPOINT_URL", "https://a")], "a:443"),
        (&[("AWS_ENDPOINT_URL", "https://a"), ("AWS_ENDPOINT_URL_ROUTE_53", "https://b")], "b:443"),
    ] {
        assert_eq!(place(aws, variables), expected, "{variables:?}");
    }
    let google = |options: &Options| Service::google("https://dns.googleapis.com", SCOPE, options).unwrap();
    assert_eq!(place(google, &[("GOOGLE_OAUTH_ACCESS_TOKEN", "t")]), "dns.googleapis.com:443");
    let login = r#"{"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "r"}"#;
    assert_eq!(place(google, &[("GOOGLE_SERVICE_ACCOUNT_KEY", login)]), "oauth2.googleapis.com:443");
}

#[test]
fn what_is_sent_for_a_token_is_not_passed_on_and_a_token_is_kept() {
    let web = Web::start(|_, body| {
        let said = String::from_utf8_lossy(body).replace('&', " ");
        answer(
            "400 Bad Request",
            "",
            format!("{{\"error\": \"invalid_grant\", \"error_description\": \"{said}\"}}").as_bytes(),
        )
    });
    let login = |uri: &str| {
        format!(
            "{{\"type\": \"authorized_user\", \"client_id\": \"id\", \"client_secret\": \"PLANTEDSECRET0123456789\", \
             \"refresh_token\": \"1//PLANTEDREFRESH0123456789\", \"quota_project_id\": \"mine\", \
             \"token_uri\": \"{uri}\"}}"
        )
    };
    let found = |login: &str, endpoint: Option<String>| {
        let options = options(&[("GOOGLE_SERVICE_ACCOUNT_KEY", login)]);
        Service::google("https://nowhere", SCOPE, &Options { endpoint_url: endpoint, ..options }).unwrap()
    };
    let service = found(&login(&web.url("/token")), None);
    assert_eq!(service.project(), Some("mine"));
    let failure = get(&service).unwrap_err();
    assert!(failure.kind == Kind::Denied && failure.message.contains("invalid_grant"), "{failure}");
    assert!(failure.message.contains("gcloud auth application-default login"), "{failure}");
    assert!(!format!("{failure:?}{service:?}").contains("PLANTED"), "{failure:?}");
    let web = Web::start(|head, _| match head.starts_with("POST /token ") {
        true => answer("200 OK", "", b"{\"access_token\": \"given\", \"expires_in\": 3600}"),
        false => answer("200 OK", "", b"there"),
    });
    let service = found(&login(&web.url("/token")), Some(web.url("")));
    for _ in 0..2 {
        assert_eq!(get(&service).unwrap().text, "there");
    }
    let heads = web.heads();
    assert_eq!(heads.iter().filter(|head| head.starts_with("POST /token ")).count(), 1);
    assert_eq!(header(&heads[2], "authorization"), Some("Bearer given"));
    assert_eq!(header(&heads[2], "x-goog-user-project"), Some("mine"));
}
