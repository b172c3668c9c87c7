//! Tests of the emulated DNS providers with third-party clients, and with forged requests.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ascertain_netlab::dns::{SimulationSpec, ZoneServer};
use ascertain_netlab::provider::{HostedZone, Provider, RunningProvider};
use ascertain_sys::testing::left_out;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

const LOCAL: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

/// Starts a provider with one zone, `example.`, whose id is Z1.
fn start(plan: impl Fn(Vec<HostedZone>) -> Provider) -> (RunningProvider, ZoneServer) {
    let sockets = vec![UdpSocket::bind(LOCAL).unwrap()];
    let zone =
        ZoneServer::start(SimulationSpec::new(vec![vec![Duration::ZERO]]), TcpListener::bind(LOCAL).unwrap(), sockets)
            .unwrap();
    let provider = plan(vec![HostedZone::new("Z1", "example.", zone.primary())]);
    (provider.start(TcpListener::bind(LOCAL).unwrap()).unwrap(), zone)
}

/// Returns the output of a client that runs without the user's environment; `None` if it is not installed.
fn run(program: &str, install: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let output = command.envs(variables.iter().copied()).output();
    let output = output.map_err(|error| left_out(format!("{program} can't be started ({error}): {install}"))).ok()?;
    Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn awscli_changes_a_zone() {
    let (running, _zone) = start(|zones| Provider { done_after: Duration::ZERO, ..Provider::route53(zones) });
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().display().to_string();
    let aws = |secret: &str, arguments: &[&str]| {
        let arguments = [&["--endpoint-url", running.url(), "--output", "text", "route53"], arguments].concat();
        let variables = [
            ("HOME", &*home),
            ("AWS_ACCESS_KEY_ID", "ascertain"),
            ("AWS_SECRET_ACCESS_KEY", secret),
            ("AWS_DEFAULT_REGION", "us-east-1"),
            ("AWS_MAX_ATTEMPTS", "1"),
        ];
        run("aws", "`pip install awscli`", &arguments, &variables)
    };
    let secret = &*running.provider().secret;
    let Some(listed) = aws(secret, &["list-hosted-zones-by-name", "--dns-name", "example."]) else { return };
    assert!(listed.contains("/hostedzone/Z1"), "{listed}");
    let change = |action: &str| {
        let set =
            json!({ "Name": "a.example.", "Type": "TXT", "TTL": 1, "ResourceRecords": [{ "Value": "\"text\"" }] });
        let batch = json!({ "Changes": [{ "Action": action, "ResourceRecordSet": set }] }).to_string();
        let arguments = ["change-resource-record-sets", "--hosted-zone-id", "Z1", "--change-batch", &batch];
        aws(secret, &arguments).unwrap()
    };
    assert!(change("CREATE").contains("PENDING"));
    let done = aws(secret, &["get-change", "--id", "C0"]).unwrap();
    assert!(done.contains("INSYNC"), "{done}");
    let there = change("CREATE");
    assert!(there.contains("InvalidChangeBatch") && there.contains("already exists"), "{there}");
    let listed = aws(secret, &["list-resource-record-sets", "--hosted-zone-id", "Z1"]).unwrap();
    assert!(listed.contains("a.example."), "{listed}");
    let refused = aws("another", &["get-change", "--id", "C0"]).unwrap();
    assert!(refused.contains("SignatureDoesNotMatch"), "{refused}");
    assert!(change("DELETE").contains("PENDING") && running.names().is_empty());
    assert!(change("DELETE").contains("was not found"));
}

#[test]
fn gcloud_changes_a_zone() {
    let (running, _zone) = start(|zones| Provider { done_after: Duration::ZERO, ..Provider::cloud_dns(zones) });
    let folder = tempfile::tempdir().unwrap();
    let (key, wanted) = (folder.path().join("key.json"), folder.path().join("wanted.yaml"));
    std::fs::write(&key, running.service_account()).unwrap();
    let [home, key] = [folder.path(), &key].map(|path| path.display().to_string());
    let [interface, tokens] = ["dns/v1/", "token"].map(|path| format!("{}/{path}", running.url()));
    let gcloud = |arguments: &[&str]| {
        let arguments = [&["--quiet", "dns"], arguments].concat();
        let variables = [
            ("HOME", &*home),
            ("CLOUDSDK_CONFIG", &home),
            ("CLOUDSDK_API_ENDPOINT_OVERRIDES_DNS", &interface),
            ("CLOUDSDK_AUTH_TOKEN_HOST", &tokens),
            ("CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE", &key),
            ("CLOUDSDK_CORE_PROJECT", "project"),
        ];
        run("gcloud", "https://cloud.google.com/sdk", &arguments, &variables)
    };
    let Some(listed) = gcloud(&["managed-zones", "list"]) else { return };
    assert!(listed.contains("Z1") && listed.contains("example."), "{listed}");
    let execute = || {
        let set = "- kind: dns#resourceRecordSet\n  name: b.example.\n  rrdatas: ['\"text\"']\n  ttl: 1\n  type: TXT\n";
        std::fs::write(&wanted, format!("---\nadditions:\n{set}deletions: []\n")).unwrap();
        let file = format!("--transaction-file={}", wanted.display());
        gcloud(&["record-sets", "transaction", "execute", "--zone=Z1", &file]).unwrap()
    };
    let executed = execute();
    assert!(executed.contains("pending"), "{executed}");
    let done = gcloud(&["record-sets", "changes", "describe", "C0", "--zone=Z1"]).unwrap();
    assert!(done.contains("status: done") && running.names() == ["b.example."], "{done}");
    assert!(execute().contains("already exists"));
}

/// Sends a request, and returns the status and the body of the answer.
fn post(running: &RunningProvider, path: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(running.address()).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.into())
}

/// Returns an assertion with current claims, changed by `change`, and signed with a service account's key.
fn assertion(key: &Value, change: impl Fn(&mut Value)) -> String {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut claims = json!({
        "iss": key["client_email"], "aud": key["token_uri"], "iat": now_s, "exp": now_s + 3_600,
        "scope": "https://www.googleapis.com/auth/cloud-platform",
    });
    change(&mut claims);
    let encoded = |json: &Value| BASE64_URL_SAFE_NO_PAD.encode(json.to_string());
    let text = format!("{}.{}", encoded(&json!({ "alg": "RS256", "typ": "JWT" })), encoded(&claims));
    let der = PrivatePkcs8KeyDer::from_pem_slice(key["private_key"].as_str().unwrap().as_bytes()).unwrap();
    let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).unwrap();
    format!("{text}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}

#[test]
fn a_token_is_for_who_signs_all_that_is_claimed() {
    let (running, _zone) = start(Provider::cloud_dns);
    let key: Value = serde_json::from_str(&running.service_account()).unwrap();
    let token = |assertion: &str| {
        let body = format!("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion={assertion}");
        post(&running, "/token", "", &body)
    };
    let (status, given) = token(&assertion(&key, |_| ()));
    let given: Value = serde_json::from_str(&given).unwrap();
    assert_eq!((status, &given["token_type"]), (200, &json!("Bearer")));
    // The signature belongs to other claims.
    let [mine, theirs] = [assertion(&key, |_| ()), assertion(&key, |claims| claims["more"] = true.into())];
    let (text, signature) = (theirs.rsplit_once('.').unwrap().0, mine.rsplit_once('.').unwrap().1);
    for (assertion, says) in [
        (format!("{text}.{signature}"), "Invalid JWT Signature"),
        (format!("{text}."), "Invalid JWT Signature"),
        ("nothing".into(), "Invalid JWT"),
        (assertion(&key, |claims| claims["iss"] = "other".into()), "no such account"),
        (assertion(&key, |claims| claims["aud"] = "https://elsewhere/token".into()), "audience"),
        (assertion(&key, |claims| claims["iat"] = 0.into()), "iat and exp"),
        (assertion(&key, |claims| claims["exp"] = 1.into()), "iat and exp"),
        (assertion(&key, |claims| claims["scope"] = "email".into()), "invalid_scope"),
    ] {
        let (status, why) = token(&assertion);
        assert!(status == 400 && why.contains(says), "{says}: {status} {why}");
    }
    // A token is valid for the zone until it is revoked.
    let path = "/dns/v1/projects/project/managedZones/Z1/changes";
    let bearer = format!("Authorization: Bearer {}\r\n", given["access_token"].as_str().unwrap());
    let set = json!({ "name": "a.example.", "type": "TXT", "ttl": 1, "rrdatas": ["\"text\""] });
    let body = json!({ "additions": [set] }).to_string();
    assert_eq!(post(&running, path, "", &body).0, 401);
    assert_eq!(post(&running, path, &bearer, "{}").0, 400);
    assert_eq!(post(&running, path, &bearer, &body).0, 200);
    assert_eq!(post(&running, path, &bearer, &body).0, 409);
    running.revoke_tokens();
    assert_eq!(post(&running, path, &bearer, &body).0, 401);
    assert_eq!(running.names(), ["a.example."]);
}

#[test]
fn what_is_not_signed_changes_nothing() {
    let (running, _zone) = start(Provider::route53);
    let (status, why) = post(&running, "/2013-04-01/hostedzone/Z1/rrset", "", "<a/>");
    assert!(status == 403 && why.contains("MissingAuthenticationToken"), "{status} {why}");
    let headers = "Authorization: AWS4-HMAC-SHA256 nothing\r\n";
    let (status, why) = post(&running, "/2013-04-01/hostedzone/Z1/rrset", headers, "<a/>");
    assert!(status == 403 && why.contains("IncompleteSignature"), "{status} {why}");
    assert_eq!(running.seen().len(), 2);
}
