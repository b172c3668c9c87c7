//! Tests of the temporary credentials of AWS (roles, programs, SSO), and of the endpoints in profiles.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use crate::common::run;
use crate::common::web::{Web, answer, header};
use crate::credentials::{environment, place};
use ascertain_transfer::{Attempt, Environment, Error, Failure, Kind, Location, Options, open};
use tempfile::TempDir;

/// Formats a time in seconds from now as AWS does.
fn in_seconds(seconds: i64) -> String {
    let now = chrono::DateTime::<chrono::Utc>::from(SystemTime::now());
    (now + chrono::Duration::seconds(seconds)).format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A service that records the heads and bodies of its requests. Its answer depends on their number.
struct Recorder {
    web: Web,
    requests: Arc<Mutex<Vec<(String, String)>>>,
}

impl Recorder {
    fn start(answer: impl Fn(usize, &str, &str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let web = Web::start(move |head, body| {
            let body = String::from_utf8_lossy(body).into_owned();
            let number = {
                let mut seen = seen.lock().unwrap();
                seen.push((head.to_string(), body.clone()));
                seen.len()
            };
            answer(number, head, &body)
        });
        Self { web, requests }
    }

    fn requests(&self) -> Vec<(String, String)> {
        self.requests.lock().unwrap().clone()
    }
}

/// Starts a fake STS. It issues the key `ISSUED1`, then `ISSUED2` and so on, each for this many seconds.
fn sts(lifetime_s: i64) -> Recorder {
    Recorder::start(move |number, _, body| {
        let action = if body.contains("WebIdentity") { "AssumeRoleWithWebIdentity" } else { "AssumeRole" };
        let xml = format!(
            "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result><AssumedRoleUser>\
             <Arn>arn:x</Arn></AssumedRoleUser><Credentials><AccessKeyId>ISSUED{number}</AccessKeyId>\
             <SecretAccessKey>s</SecretAccessKey><SessionToken>TOKEN{number}</SessionToken><Expiration>{}</Expiration>\
             </Credentials></{action}Result></{action}Response>",
            in_seconds(lifetime_s)
        );
        answer("200 OK", "", xml.as_bytes())
    })
}

/// Starts a store that accepts everything.
fn store() -> Web {
    Web::start(|_, _| answer("200 OK", "ETag: \"1\"\r\n", b""))
}

/// Returns the key with which a request is signed, and the region and the service in its signature.
fn signer(head: &str) -> (&str, &str, &str) {
    let scope = header(head, "authorization").unwrap().split("Credential=").nth(1).unwrap();
    let parts: Vec<_> = scope.split('/').collect();
    (parts[0], parts[2], parts[3])
}

/// Creates a home folder with these files of AWS's tools.
fn home(config: &str, credentials: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join(".aws/sso/cache")).unwrap();
    std::fs::write(folder.path().join(".aws/config"), config).unwrap();
    std::fs::write(folder.path().join(".aws/credentials"), credentials).unwrap();
    folder
}

fn options(home: &Path, profile: &str, web: &Web, more: &[(&str, &str)]) -> Options {
    let home = [("HOME", home.to_str().unwrap())];
    let environment: Environment = home.iter().chain(more).copied().collect();
    Options { environment, profile: Some(profile.into()), endpoint_url: Some(web.url("")), ..Options::default() }
}

fn head(found: &Location) -> Result<(), Failure> {
    run(found.store.head("name", &mut Attempt::default())).map(drop)
}

/// Returns the failure to open the store of a profile, or to send a request to it.
fn failure(home: &Path, profile: &str, more: &[(&str, &str)]) -> Failure {
    match open("s3://bucket/name", &options(home, profile, &store(), more)) {
        Ok(found) => head(&found).unwrap_err(),
        Err(Error::NoCredentials(failure)) => failure,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_role_is_assumed_with_the_keys_of_its_source_profile() {
    let home = home(
        "[profile dev]\nrole_arn = arn:aws:iam::1:role/dev\nsource_profile = base\nregion = eu-west-1\n\
         external_id = ext/1\nduration_seconds = 900\nrole_session_name = me\n\
         [profile self]\nrole_arn = arn:aws:iam::1:role/self\nsource_profile = self\n\
         [profile chain]\nrole_arn = arn:aws:iam::1:role/chain\nsource_profile = dev\n\
         [profile env]\nrole_arn = arn:aws:iam::1:role/env\ncredential_source = Environment\n",
        "[base]\naws_access_key_id = BASE\naws_secret_access_key = s\n\
         [self]\naws_access_key_id = SELF\naws_secret_access_key = s\n",
    );
    let keys = [("AWS_ACCESS_KEY_ID", "ENV"), ("AWS_SECRET_ACCESS_KEY", "s")];
    for (profile, signers) in [
        ("dev", &[("BASE", "eu-west-1", "sts")][..]),
        ("self", &[("SELF", "us-east-1", "sts")]),
        ("chain", &[("BASE", "eu-west-1", "sts"), ("ISSUED1", "us-east-1", "sts")]),
        ("env", &[("ENV", "us-east-1", "sts")]),
    ] {
        let (sts, store) = (sts(3600), store());
        let url = sts.web.url("");
        let more = [("AWS_ENDPOINT_URL_STS", &*url), keys[0], keys[1]];
        let found = open("s3://bucket/name", &options(home.path(), profile, &store, &more)).unwrap();
        assert!(sts.requests().is_empty(), "opening a store sends no request");
        for _ in 0..3 {
            head(&found).unwrap();
        }
        let requests = sts.requests();
        assert_eq!(requests.iter().map(|(head, _)| signer(head)).collect::<Vec<_>>(), signers);
        let (head, form) = requests.last().unwrap();
        assert!(head.starts_with("POST / HTTP/1.1\r\n"), "{head}");
        let arn = format!("RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2F{profile}");
        for part in ["Action=AssumeRole&", "Version=2011-06-15", &*arn] {
            assert!(form.contains(part), "{part}: {form}");
        }
        for part in ["ExternalId=ext%2F1", "DurationSeconds=900", "RoleSessionName=me"] {
            assert_eq!(requests[0].1.contains(part), profile == "dev" || profile == "chain", "{part}: {form}");
        }
        let issued = format!("ISSUED{}", signers.len());
        for head in store.heads() {
            assert_eq!(signer(&head).0, issued);
            assert_eq!(header(&head, "x-amz-security-token"), Some(&*format!("TOKEN{}", signers.len())));
        }
    }
}

#[test]
fn the_keys_of_a_program_pass_a_check_of_the_signature() {
    use ascertain_netlab::store::Store as Served;
    let running = crate::common::start(Served::s3());
    let Served { account, secret, .. } = running.store();
    let script =
        format!("echo '{{\"Version\": 1, \"AccessKeyId\": \"{account}\", \"SecretAccessKey\": \"{secret}\"}}'");
    let home = home(&format!("[profile p]\ncredential_process = {script}\n"), "");
    let environment = environment(&[("HOME", home.path().to_str().unwrap())]);
    let options =
        Options { environment, profile: Some("p".into()), endpoint_url: Some(running.url()), ..Options::default() };
    head(&open("s3://bucket/name", &options).unwrap()).unwrap();
}

#[test]
fn a_long_transfer_renews_the_credentials() {
    let home = home(
        "[profile dev]\nrole_arn = arn:aws:iam::1:role/dev\nsource_profile = base\n",
        "[base]\naws_access_key_id = BASE\naws_secret_access_key = s\n",
    );
    let (sts, store) = (sts(2), store());
    let url = sts.web.url("");
    let found =
        open("s3://bucket/name", &options(home.path(), "dev", &store, &[("AWS_ENDPOINT_URL_STS", &url)])).unwrap();
    ascertain_sys::testing::wait_until("a request has the second key", || {
        head(&found).unwrap();
        signer(store.heads().last().unwrap()).0 != "ISSUED1"
    });
}

/// The credentials expire by the clock of the service. This machine's clock is ten minutes slow.
#[test]
fn a_slow_clock_does_not_prolong_credentials() {
    let home = home(
        "[profile dev]\nrole_arn = arn:aws:iam::1:role/dev\nsource_profile = base\n",
        "[base]\naws_access_key_id = BASE\naws_secret_access_key = s\n",
    );
    let sts = Recorder::start(|_, _, _| {
        let date = chrono::Utc::now() + chrono::Duration::seconds(600);
        let xml = format!(
            "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>s\
             </SecretAccessKey><SessionToken>T</SessionToken><Expiration>{}</Expiration></Credentials>\
             </AssumeRoleResult></AssumeRoleResponse>",
            in_seconds(590)
        );
        answer("200 OK", &format!("Date: {}\r\n", date.format("%a, %d %b %Y %H:%M:%S GMT")), xml.as_bytes())
    });
    let (store, url) = (store(), sts.web.url(""));
    let options = options(home.path(), "dev", &store, &[("AWS_ENDPOINT_URL_STS", &url)]);
    let failure = head(&open("s3://bucket/name", &options).unwrap()).unwrap_err();
    assert!(failure.message.contains("already expired"), "{failure}");
}

#[test]
fn a_role_that_can_not_be_assumed_is_explained() {
    let role = "role_arn = arn:aws:iam::1:role/dev\n";
    let home = home(
        &format!(
            "[profile none]\n{role}[profile both]\n{role}source_profile = x\ncredential_source = Environment\n\
             [profile gone]\n{role}source_profile = nowhere\n[profile empty]\n{role}source_profile = nothing\n\
             [profile nothing]\nregion = x\n[profile a]\n{role}source_profile = b\n\
             [profile b]\n{role}source_profile = a\n[profile alone]\n{role}source_profile = alone\n\
             [profile mfa]\n{role}source_profile = base\nmfa_serial = 1\n\
             [profile odd]\n{role}credential_source = Moon\n[profile env]\n{role}credential_source = Environment\n\
             [profile ecs]\n{role}credential_source = EcsContainer\n\
             [profile token]\n{role}web_identity_token_file = /nowhere/token\n\
             [profile dev]\n{role}source_profile = base\n"
        ),
        "[base]\naws_access_key_id = BASE\naws_secret_access_key = s\n",
    );
    for (profile, words) in [
        ("none", "the profile none contains role_arn, but no source of credentials; add source_profile"),
        ("both", "both source_profile and credential_source; remove one"),
        ("gone", "source_profile of the profile gone: the profile nowhere is neither in"),
        ("empty", "the profile nothing, the source_profile of the profile empty, has no credentials"),
        ("a", "the profile b and its source_profile a refer to each other in a circle"),
        ("alone", "the source_profile of the profile alone, has no credentials"),
        ("mfa", "the profile mfa in ~/.aws contains mfa_serial, which is not supported"),
        (
            "mfa",
            "; run eval \"$(aws configure export-credentials --profile mfa --format env)\", and then leave out the profile",
        ),
        ("odd", "unknown credential_source Moon; expected Environment"),
        ("env", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ("ecs", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is not set"),
        ("token", "could not read the web identity token in /nowhere/token"),
    ] {
        let failure = failure(home.path(), profile, &[]);
        assert!(failure.message.contains(words), "{profile}: {failure}");
        assert!(failure.kind == Kind::Denied && failure.concerns_whole_store, "{profile}: {failure}");
    }
    // STS refuses, is busy, issues expired credentials, or is no STS.
    let error = |code| format!("<ErrorResponse><Error><Code>{code}</Code><Message>x</Message></Error></ErrorResponse>");
    for (status, body, is_transient, words) in [
        ("403 Forbidden", error("AccessDenied"), false, "arn:aws:iam::1:role/dev (403 AccessDenied): check whether"),
        ("403 Forbidden", error("InvalidClientTokenId"), false, "in the profile dev exists"),
        ("400 Bad Request", error("Throttling"), true, "answers 400 Throttling"),
        ("503 Service Unavailable", String::new(), true, "answers 503"),
        ("200 OK", "<html>".into(), false, "contains no credentials; check the endpoint of STS"),
    ] {
        let sts = Web::start(move |_, _| answer(status, "", body.as_bytes()));
        let failure = failure(home.path(), "dev", &[("AWS_ENDPOINT_URL_STS", &sts.url(""))]);
        assert!(failure.message.contains(words), "{failure}");
        assert!(failure.message.starts_with("s3://bucket/name: "), "{failure}");
        assert_eq!(failure.kind == Kind::Transient(None), is_transient, "{failure}");
        assert_eq!(failure.concerns_whole_store, !is_transient, "{failure}");
    }
    let old = sts(-10);
    let failure = failure(home.path(), "dev", &[("AWS_ENDPOINT_URL_STS", &old.web.url(""))]);
    assert!(failure.message.contains("already expired; check this machine's clock"), "{failure}");
}

#[test]
fn a_web_identity_comes_from_the_environment_or_a_profile() {
    let home = home("", "");
    let file = home.path().join("token");
    std::fs::write(&file, "identity/1\n").unwrap();
    let file = file.to_str().unwrap();
    let config = format!("[profile web]\nrole_arn = arn:web\nweb_identity_token_file = {file}\n");
    std::fs::write(home.path().join(".aws/config"), config).unwrap();
    let variables =
        [("AWS_WEB_IDENTITY_TOKEN_FILE", file), ("AWS_ROLE_ARN", "arn:env"), ("AWS_ROLE_SESSION_NAME", "me")];
    for (profile, more, expected) in [
        (None, &variables[..], "RoleArn=arn%3Aenv&RoleSessionName=me&WebIdentityToken=identity%2F1"),
        (Some("web"), &[], "RoleArn=arn%3Aweb&RoleSessionName=ascertain&WebIdentityToken=identity%2F1"),
        // A profile that the caller names goes before the environment.
        (Some("web"), &variables, "RoleArn=arn%3Aweb&"),
    ] {
        let (sts, store) = (sts(3600), store());
        let url = sts.web.url("");
        let more = [more, &[("AWS_ENDPOINT_URL_STS", &*url)]].concat();
        let options = Options { profile: profile.map(Into::into), ..options(home.path(), "", &store, &more) };
        let found = open("s3://bucket/name", &options).unwrap();
        head(&found).unwrap();
        head(&found).unwrap();
        let requests = sts.requests();
        assert_eq!(requests.len(), 1);
        let (head, form) = &requests[0];
        // The token is the proof, so the request is not signed. The token is not in the address, which may be logged.
        assert!(header(head, "authorization").is_none() && !head.contains("identity"), "{head}");
        assert!(form.contains("Action=AssumeRoleWithWebIdentity") && form.contains(expected), "{form}");
        assert_eq!(signer(&store.heads()[1]).0, "ISSUED1");
    }
}

#[test]
fn a_web_identity_is_read_again_for_each_renewal() {
    let home = home("", "");
    let file = home.path().join("token");
    std::fs::write(&file, "first").unwrap();
    let (sts, store) = (sts(2), store());
    let url = sts.web.url("");
    let more = [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", file.to_str().unwrap()),
        ("AWS_ROLE_ARN", "arn:env"),
        ("AWS_ENDPOINT_URL_STS", &url),
    ];
    let options = Options { profile: None, ..options(home.path(), "", &store, &more) };
    let found = open("s3://bucket/name", &options).unwrap();
    head(&found).unwrap();
    std::fs::write(&file, "second").unwrap();
    ascertain_sys::testing::wait_until("the new token is used", || {
        head(&found).unwrap();
        sts.requests().last().unwrap().1.contains("WebIdentityToken=second")
    });
    assert!(sts.requests()[0].1.contains("WebIdentityToken=first"));
}

/// Creates a script that records that it was called, and then runs `body`.
fn script(folder: &Path, body: &str) -> String {
    let path = folder.join("a script.sh");
    std::fs::write(&path, format!("#!/bin/sh\necho x >>'{}'\n{body}\n", folder.join("calls").display())).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().into()
}

#[test]
fn a_program_prints_credentials() {
    let printed = |expiration: &str| {
        format!(
            "echo \"{{\\\"Version\\\": 1, \\\"AccessKeyId\\\": \\\"$1\\\", \\\"SecretAccessKey\\\": \\\"s\\\", \
             \\\"SessionToken\\\": \\\"T\\\"{expiration}}}\""
        )
    };
    let until = |seconds| format!(", \\\"Expiration\\\": \\\"{}\\\"", in_seconds(seconds));
    let (hour, gone) = (until(3600), until(-1));
    for (body, expected) in [
        (printed(""), Ok(1)),
        (printed(&hour), Ok(1)),
        // The program must not read the data that is piped to this process.
        (format!("cat >/dev/null; {}", printed("")), Ok(1)),
        (printed(&gone), Err("already expired")),
        (printed(", \\\"Expiration\\\": \\\"soon\\\""), Err("did not print credentials as JSON of version 1")),
        ("echo PLANTEDOUTPUT".into(), Err("did not print credentials as JSON of version 1")),
        (printed("").replace(": 1", ": 2"), Err("did not print credentials as JSON of version 1")),
        ("echo PLANTEDOUTPUT; exit 3".into(), Err("the profile p failed (exit status: 3); run it")),
    ] {
        let home = home("", "");
        let script = script(home.path(), &body);
        let config = format!("[profile p]\ncredential_process = \"{script}\" \"the key\"\n");
        std::fs::write(home.path().join(".aws/config"), config.replace("the key", "KEY")).unwrap();
        let store = store();
        let found = open("s3://bucket/name", &options(home.path(), "p", &store, &[])).unwrap();
        let results: Vec<_> = (0..3).map(|_| head(&found)).collect();
        let calls = std::fs::read_to_string(home.path().join("calls")).unwrap().lines().count();
        match expected {
            Ok(expected) => {
                assert!(results.iter().all(Result::is_ok), "{body}: {results:?}");
                assert_eq!(calls, expected, "{body}");
                let head = &store.heads()[0];
                assert_eq!((signer(head).0, header(head, "x-amz-security-token")), ("KEY", Some("T")));
            }
            Err(words) => {
                for result in results {
                    let failure = result.unwrap_err();
                    assert!(failure.message.contains(words) && !failure.message.contains("PLANTED"), "{failure}");
                    assert!(failure.concerns_whole_store, "{failure}");
                }
            }
        }
    }
    let home = home("[profile p]\ncredential_process = /nowhere/program --x\n", "");
    let failure = failure(home.path(), "p", &[]);
    assert!(failure.message.contains("the profile p failed (exit status: 127)"), "{failure}");
}

/// Writes a login of SSO into the cache, under the name for a session `my-sso`.
fn log_in(home: &Path, expires_s: i64, more: &str) -> std::path::PathBuf {
    let cache = home.join(".aws/sso/cache/0ad374308c5a4e22f723adf10145eafad7c4031c.json");
    let login = format!(
        "{{\"startUrl\": \"https://x\", \"accessToken\": \"ACCESS1\", \"expiresAt\": \"{}\"{more}}}",
        in_seconds(expires_s)
    );
    std::fs::write(&cache, login).unwrap();
    cache
}

const SSO: &str = "[profile dev]\nsso_session = my-sso\nsso_account_id = 123\nsso_role_name = Reader\n\
                   [sso-session my-sso]\nsso_region = eu-west-1\nsso_start_url = https://x\n";

/// Starts the portal of SSO. It accepts logins whose token is `token`.
fn portal(token: &'static str) -> Recorder {
    Recorder::start(move |number, head, _| {
        if header(head, "x-amz-sso_bearer_token") != Some(token) {
            return answer("401 Unauthorized", "", b"{\"message\": \"Session token not found or invalid\"}");
        }
        let hour = SystemTime::now() + Duration::from_secs(3600);
        let hour = hour.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
        let body = format!(
            "{{\"roleCredentials\": {{\"accessKeyId\": \"ISSUED{number}\", \"secretAccessKey\": \"s\", \
             \"sessionToken\": \"T\", \"expiration\": {hour}}}}}"
        );
        answer("200 OK", "", body.as_bytes())
    })
}

#[test]
fn a_cached_login_of_sso_gives_the_credentials_of_a_role() {
    let legacy = "[profile dev]\nsso_region = eu-west-1\nsso_start_url = my-sso\nsso_account_id = 123\n\
                  sso_role_name = Reader\n";
    for config in [SSO, legacy] {
        let home = home(config, "");
        log_in(home.path(), 3600, "");
        let (portal, store) = (portal("ACCESS1"), store());
        let url = portal.web.url("");
        let found =
            open("s3://bucket/name", &options(home.path(), "dev", &store, &[("AWS_ENDPOINT_URL_SSO", &url)])).unwrap();
        head(&found).unwrap();
        head(&found).unwrap();
        let requests = portal.requests();
        assert_eq!(requests.len(), 1);
        let target = "GET /federation/credentials?account_id=123&role_name=Reader HTTP/1.1\r\n";
        assert!(requests[0].0.starts_with(target), "{}", requests[0].0);
        assert_eq!(signer(&store.heads()[1]).0, "ISSUED1");
        assert_eq!(header(&store.heads()[1], "x-amz-security-token"), Some("T"));
    }
}

#[test]
fn an_old_login_of_sso_is_renewed_and_kept_for_other_tools() {
    let more = format!(
        ", \"clientId\": \"CLIENT\", \"clientSecret\": \"SECRET\", \"refreshToken\": \"REFRESH1\", \
         \"registrationExpiresAt\": \"{}\", \"other\": [1]",
        in_seconds(9999)
    );
    // The first login has expired, and the second is about to.
    for expires_s in [-10, 100] {
        let home = home(SSO, "");
        let cache = log_in(home.path(), expires_s, &more);
        let oidc = Recorder::start(|_, _, _| {
            let body = b"{\"accessToken\": \"ACCESS2\", \"expiresIn\": 3600, \"refreshToken\": \"REFRESH2\"}";
            answer("200 OK", "", body)
        });
        let (portal, store) = (portal("ACCESS2"), store());
        let (at, from) = (portal.web.url(""), oidc.web.url(""));
        let more = [("AWS_ENDPOINT_URL_SSO", &*at), ("AWS_ENDPOINT_URL_SSO_OIDC", &from)];
        head(&open("s3://bucket/name", &options(home.path(), "dev", &store, &more)).unwrap()).unwrap();
        let (sent, form) = oidc.requests().remove(0);
        assert!(sent.starts_with("POST /token HTTP/1.1\r\n"), "{sent}");
        let form: serde_json::Value = serde_json::from_str(&form).unwrap();
        let expected = serde_json::json!({
            "grantType": "refresh_token", "clientId": "CLIENT", "clientSecret": "SECRET", "refreshToken": "REFRESH1",
        });
        assert_eq!(form, expected);
        let text = std::fs::read_to_string(&cache).unwrap();
        let kept: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&kept["accessToken"], &kept["refreshToken"]), (&"ACCESS2".into(), &"REFRESH2".into()));
        assert_eq!((&kept["clientSecret"], &kept["other"][0]), (&"SECRET".into(), &1.into()));
        assert!(kept["expiresAt"].as_str().unwrap() > &*in_seconds(1800), "{text}");
        assert_eq!(std::fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o600);
        // The next process uses the new login.
        head(&open("s3://bucket/name", &options(home.path(), "dev", &store, &more)).unwrap()).unwrap();
        assert_eq!(oidc.requests().len(), 1);
    }
    // The new login is used even if the cache can't be written. A folder has the name of the temporary file.
    let read_only = home(SSO, "");
    let cache = log_in(read_only.path(), -10, &more);
    std::fs::create_dir(cache.with_extension(format!("{}.tmp", std::process::id()))).unwrap();
    let oidc = Web::start(|_, _| answer("200 OK", "", b"{\"accessToken\": \"ACCESS2\", \"expiresIn\": 3600}"));
    let (at, from, to) = (portal("ACCESS2"), oidc.url(""), store());
    let at = at.web.url("");
    let addresses = [("AWS_ENDPOINT_URL_SSO", &*at), ("AWS_ENDPOINT_URL_SSO_OIDC", &from)];
    head(&open("s3://bucket/name", &options(read_only.path(), "dev", &to, &addresses)).unwrap()).unwrap();
    // A login that is still valid is used if it can't be renewed.
    let home = home(SSO, "");
    log_in(home.path(), 100, &more);
    let (portal, oidc) = (portal("ACCESS1"), Web::start(|_, _| answer("500 Internal Server Error", "", b"")));
    let (at, from) = (portal.web.url(""), oidc.url(""));
    let more = [("AWS_ENDPOINT_URL_SSO", &*at), ("AWS_ENDPOINT_URL_SSO_OIDC", &from)];
    head(&open("s3://bucket/name", &options(home.path(), "dev", &store(), &more)).unwrap()).unwrap();
    assert_eq!(oidc.heads().len(), 1);
}

#[test]
fn without_a_valid_login_of_sso_the_command_to_log_in_is_named() {
    let way = "run `aws sso login --profile dev`";
    let home = home(SSO, "");
    let (portal, busy) = (portal("OTHER"), Web::start(|_, _| answer("429 Too Many Requests", "", b"")));
    let more = [("AWS_ENDPOINT_URL_SSO", &*portal.web.url(""))];
    let missing = failure(home.path(), "dev", &more);
    assert!(missing.message.contains("there is no login in") && missing.message.contains(way), "{missing}");
    let cache = log_in(home.path(), -10, "");
    let expired = failure(home.path(), "dev", &more);
    assert!(expired.message.contains("the login has expired") && expired.message.contains(way), "{expired}");
    assert!(portal.requests().is_empty());
    log_in(home.path(), 3600, "");
    let refused = failure(home.path(), "dev", &more);
    assert!(refused.message.contains("the login has expired") && refused.concerns_whole_store, "{refused}");
    let throttled = failure(home.path(), "dev", &[("AWS_ENDPOINT_URL_SSO", &busy.url(""))]);
    assert_eq!(throttled.kind, Kind::Transient(None), "{throttled}");
    std::fs::write(&cache, "{").unwrap();
    let damaged = failure(home.path(), "dev", &more);
    assert!(damaged.message.contains("is damaged") && damaged.message.contains(way), "{damaged}");
    std::fs::write(home.path().join(".aws/config"), SSO.replace("sso_role_name", "x")).unwrap();
    let incomplete = failure(home.path(), "dev", &more);
    let words = "sso_role_name is missing in the profile dev and [sso-session my-sso]";
    assert!(incomplete.message.contains(words), "{incomplete}");
}

#[test]
fn the_endpoint_for_s3_is_chosen_as_aws_documents_it() {
    let nested = "[profile p]\nservices = local\nendpoint_url = http://all:1\n[services local]\ndynamodb =\n  \
                  endpoint_url = http://dynamodb:1\ns3 =\n  endpoint_url = http://nested:1\n";
    let other = "[profile p]\nservices = local\n[services local]\ndynamodb =\n  endpoint_url = http://dynamodb:1\n";
    let inside = "[profile p]\ndynamodb =\n  endpoint_url = http://dynamodb:1\n";
    let plain = "[profile p]\nendpoint_url = http://all:1\n";
    let ignoring = format!("{nested}[profile q]\n")
        .replace("[profile p]\n", "[profile p]\nignore_configured_endpoint_urls = true\n");
    let (aws, china) = ("box.s3.us-east-1.amazonaws.com:443", "box.s3.cn-north-1.amazonaws.com.cn:443");
    let (own, all) = (("AWS_ENDPOINT_URL_S3", "http://own:1"), ("AWS_ENDPOINT_URL", "http://every:1"));
    let ignored = ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true");
    for (config, variables, expected) in [
        (nested, &[][..], "http://nested:1/box/name"),
        (nested, &[own, all], "http://own:1/box/name"),
        (nested, &[all], "http://every:1/box/name"),
        (nested, &[("AWS_ENDPOINT_URL_DYNAMODB", "http://x:1")], "http://nested:1/box/name"),
        (nested, &[own, all, ignored], aws),
        (nested, &[("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "false")], "http://nested:1/box/name"),
        (other, &[], aws),
        (inside, &[], aws),
        (inside, &[("AWS_REGION", "cn-north-1")], china),
        (plain, &[], "http://all:1/box/name"),
        (plain, &[ignored], aws),
        (&*ignoring, &[own], aws),
    ] {
        let home = home(config, "");
        let variables = [variables, &[("HOME", home.path().to_str().unwrap()), ("AWS_PROFILE", "p")]].concat();
        assert_eq!(place("s3://box/name", Options::default(), &variables), expected, "{config} {variables:?}");
        // An endpoint of the caller is always used.
        let options = Options { endpoint_url: Some("http://given:1".into()), ..Options::default() };
        assert_eq!(place("s3://box/name", options, &variables), "http://given:1/box/name");
    }
}
