//! Puts secrets into the environment, files and addresses. Then searches all output for them: errors, `Debug` texts,
//! displayed addresses and journals. The store repeats everything that it receives.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::common::web::{Web, answer, file, header};
use crate::common::{block, bytes, one_certificate, run};
use ascertain_transfer::{
    Attempt, Environment, Location, ObjectMeta, Observer, Options, Progress, PutOptions, Settings, Stop,
    TransferManager, Upload, open,
};

/// The secrets, which do not occur in any other text by chance.
const PLANTED: [&str; 9] = [
    "PLANTEDKEY0123456789abcdef0123456789abcd",
    "PLANTEDTOKEN0123456789/+abcdef==",
    "UExBTlRFREFaVVJFMDEyMzQ1Njc4OWFiY2RlZg==",
    "PLANTEDSIG0123456789",
    "PLANTEDBEARER0123456789",
    "PLANTEDPASSWORD0123456789",
    "PLANTEDQUERY0123456789",
    "PLANTEDPROXY0123456789",
    "PLANTEDFILE0123456789",
];

/// Collects all output that is searched for secrets.
#[derive(Default)]
struct Output(BTreeSet<String>);

impl Output {
    fn add(&mut self, what: &impl Debug) {
        self.0.insert(format!("{what:?}"));
    }

    /// Fails if the output contains a secret, or anything derived from one, such as the signatures in the sent `heads`.
    fn search(&self, heads: &[String]) {
        let mut secrets: BTreeSet<String> = PLANTED.iter().map(|secret| secret.to_string()).collect();
        for head in heads {
            for name in ["authorization", "x-amz-security-token", "proxy-authorization"] {
                let Some(value) = header(head, name) else { continue };
                secrets.insert(value.into());
                secrets.extend(value.split(['=', ' ', ',', ':']).filter(|part| part.len() > 12).map(String::from));
            }
        }
        // These parts of the headers are public names, so they are allowed in the output.
        secrets.retain(|secret| !secret.starts_with("AWS4-HMAC") && !secret.contains("aws4_request"));
        secrets.retain(|secret| !secret.starts_with("devaccount") && !secret.contains(';'));
        assert!(!self.0.is_empty());
        for (text, secret) in self.0.iter().flat_map(|text| secrets.iter().map(move |secret| (text, secret))) {
            assert!(!text.contains(secret.as_str()), "`{secret}` is in: {text}");
        }
    }
}

/// Sends every kind of request to a store, and collects the results.
fn provoke(found: &Location, written: &mut Output) {
    written.add(found);
    written.add(&found.store);
    let mut seen = Attempt::default();
    let upload = Upload { name: found.name.clone(), id: "id".into() };
    let options = PutOptions::default();
    let of = ObjectMeta { name: found.name.clone(), bytes: 9, ..ObjectMeta::default() };
    let store = &found.store;
    run(async {
        written.add(&store.head(&found.name, &mut seen).await);
        written.add(&store.get(&of, 0..9, &mut seen).await);
        written.add(&store.put(&found.name, block("x"), &options, &mut seen).await);
        written.add(&store.start_upload(&found.name, &options, &mut seen).await);
        written.add(&store.put_part(&upload, 0, block("x"), &mut seen).await);
        written.add(&store.commit(&upload, &["1 AAAA x".into()], 0, &options, &mut seen).await);
        written.add(&store.abort(&upload, &mut seen).await);
        written.add(&store.list("", &mut seen).await);
        written.add(&seen);
        if let Err(failure) = store.put(&found.name, block("x"), &options, &mut seen).await {
            written.0.insert(failure.to_string());
        }
    });
}

/// Starts a server whose answers repeat the request in every place that a client may read.
fn parrot(status: &'static str) -> Web {
    Web::start(move |head, _| {
        let told: String = head.split("\r\n").collect::<Vec<_>>().join(" ");
        let token = ["authorization", "x-amz-security-token"].iter().find_map(|name| header(head, name));
        // The last part of the token is used, because it looks most like an error code.
        let token =
            token.and_then(|token| token.rsplit([' ', '=', ':']).find(|part| !part.is_empty())).unwrap_or_default();
        let headers = format!(
            "x-amz-bucket-region: {token}\r\nx-ms-error-code: {token}\r\nETag: {token}\r\n\
             Location: http://{token}/?{token}\r\n"
        );
        let body = format!(
            "<Error><Code>{token}</Code><Message>{told}</Message><Region>{token}</Region><UploadId></UploadId></Error>"
        );
        answer(status, &headers, body.as_bytes())
    })
}

const STATUSES: [&str; 4] = ["301 Moved Permanently", "400 Bad Request", "403 Forbidden", "500 Internal Server Error"];

#[test]
fn no_secret_is_in_what_anybody_reads() {
    let [key, token, azure, sig, bearer, password, query, proxy, file] = PLANTED;
    let folder = tempfile::tempdir().unwrap();
    let credentials = folder.path().join("credentials");
    let profile =
        format!("[planted]\naws_access_key_id = id\naws_secret_access_key = {file}\naws_session_token = {token}\n");
    std::fs::write(&credentials, profile).unwrap();
    let damaged = folder.path().join("google.json");
    std::fs::write(&damaged, format!("{{\"type\": \"{file}\", \"private_key\": \"{file}\"}}")).unwrap();
    let (credentials, damaged) = (credentials.to_str().unwrap(), damaged.to_str().unwrap());
    let proxy = format!("http://ann:{proxy}@127.0.0.1:1");
    let sas = format!("sv=2023&sig={sig}");

    let aws = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", key), ("AWS_SESSION_TOKEN", token)];
    let account = ("AZURE_STORAGE_ACCOUNT", "devaccount");
    let connection = format!("AccountName=devaccount;AccountKey={azure};BlobEndpoint=http://127.0.0.1:1/");
    let environments: [&[(&str, &str)]; 10] = [
        &aws,
        &[("AWS_SHARED_CREDENTIALS_FILE", credentials), ("AWS_PROFILE", "planted")],
        &[account, ("AZURE_STORAGE_KEY", azure)],
        &[account, ("AZURE_STORAGE_SAS_TOKEN", &sas)],
        &[("AZURE_STORAGE_CONNECTION_STRING", &connection)],
        &[("GOOGLE_OAUTH_ACCESS_TOKEN", bearer)],
        &[("GOOGLE_APPLICATION_CREDENTIALS", damaged)],
        &[("GOOGLE_SERVICE_ACCOUNT_KEY", file)],
        // These secrets can't be put into a header, because they contain invalid characters.
        &[
            ("GOOGLE_OAUTH_ACCESS_TOKEN", &format!("{bearer}\u{7f}ü")),
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", &format!("{key} {key}")),
            account,
            ("AZURE_STORAGE_KEY", &format!("ü{azure}")),
        ],
        &[aws[0], aws[1], aws[2], ("http_proxy", &proxy), account, ("AZURE_STORAGE_KEY", azure)],
    ];
    let mut written = Output::default();
    let mut heads = Vec::new();
    let mut opened = 0;
    for status in STATUSES {
        let web = parrot(status);
        for environment in environments {
            let environment: Environment =
                environment.iter().copied().chain([("SSL_CERT_FILE", one_certificate())]).collect();
            let endpoint_url = Some(web.url("").replace("://", &format!("://ann:{password}@")) + "?x=" + query);
            let options = Options { environment, endpoint_url, ..Options::default() };
            written.add(&options);
            for url in ["s3://bucket/name", "az://bucket/name", "gs://bucket/name"] {
                match open(url, &options) {
                    Ok(found) => {
                        opened += 1;
                        provoke(&found, &mut written);
                    }
                    Err(failure) => written.add(&failure),
                }
            }
            let address = web.url(&format!("/path?{sas}&x={query}")).replace("://", &format!("://ann:{password}@"));
            let found = open(&address, &Options { endpoint_url: None, ..options.clone() }).unwrap();
            assert_eq!(found.address, web.url("/path"));
            provoke(&found, &mut written);
        }
        heads.extend(web.heads());
    }
    // The secrets must have been sent, or the test would show nothing.
    assert!(opened >= 7 * STATUSES.len());
    let sent = heads.concat();
    for secret in [token, sig, bearer, query] {
        assert!(sent.contains(secret), "{secret}");
    }
    for wrong in [format!("https://ann:{password}@/x?sig={sig}"), format!("wss://ann:{password}@host/?{sig}")] {
        written.add(&open(&wrong, &Options::default()).unwrap_err());
    }
    written.search(&heads);
}

/// Starts a service whose answers repeat the head and the body of the request.
fn repeating(status: &'static str) -> Web {
    Web::start(move |head, body| {
        let told = format!("{head}{}", String::from_utf8_lossy(body));
        let body = format!("<Error><Code>{told}</Code><Message>{told}</Message></Error>");
        answer(status, "", body.as_bytes())
    })
}

#[test]
fn no_secret_of_a_role_a_program_or_a_login_is_in_what_anybody_reads() {
    let [key, token, identity, sig, access, refresh, client, issued, printed] = PLANTED;
    let folder = tempfile::tempdir().unwrap();
    let aws = folder.path().join(".aws");
    std::fs::create_dir_all(aws.join("sso/cache")).unwrap();
    let identity_file = folder.path().join("identity");
    std::fs::write(&identity_file, identity).unwrap();
    let program = |exit: u8| format!("echo {printed} \"\\\"SecretAccessKey\\\": {printed}\"; exit {exit}");
    let config = format!(
        "[profile role]\nrole_arn = arn:role\nsource_profile = base\n[profile web]\nrole_arn = arn:web\n\
         web_identity_token_file = {}\n[profile program]\ncredential_process = {}\n\
         [profile failing]\ncredential_process = {}\n\
         [profile sso]\nsso_session = my-sso\nsso_account_id = 1\nsso_role_name = r\n\
         [sso-session my-sso]\nsso_region = eu-west-1\nsso_start_url = https://x\n",
        identity_file.display(),
        program(0),
        program(1),
    );
    std::fs::write(aws.join("config"), config).unwrap();
    let base = format!("[base]\naws_access_key_id = id\naws_secret_access_key = {key}\naws_session_token = {token}\n");
    std::fs::write(aws.join("credentials"), base).unwrap();
    let log_in = |until: &str| {
        let login = format!(
            "{{\"accessToken\": \"{access}\", \"expiresAt\": \"{until}\", \"refreshToken\": \"{refresh}\", \
             \"clientId\": \"c\", \"clientSecret\": \"{client}\", \"registrationExpiresAt\": \"2999-01-01T00:00:00Z\"}}"
        );
        std::fs::write(aws.join("sso/cache/0ad374308c5a4e22f723adf10145eafad7c4031c.json"), login).unwrap();
    };
    let credentials = format!(
        "<R><AssumeRoleResult><Credentials><AccessKeyId>id</AccessKeyId><SecretAccessKey>{sig}</SecretAccessKey>\
         <SessionToken>{issued}</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration></Credentials>\
         </AssumeRoleResult></R>"
    );
    let issuing = Web::start(move |_, _| answer("200 OK", "", credentials.as_bytes()));
    let (mut written, mut heads) = (Output::default(), Vec::new());
    for (status, of_service) in STATUSES.into_iter().zip(STATUSES).chain([("403 Forbidden", "200 OK")]) {
        let (store, service) = (parrot(status), repeating(of_service));
        for (profile, at, until) in [
            ("role", &service, ""),
            ("role", &issuing, ""),
            ("web", &service, ""),
            ("program", &service, ""),
            ("failing", &service, ""),
            ("sso", &service, "2999-01-01T00:00:00Z"),
            ("sso", &service, "2000-01-01T00:00:00Z"),
        ] {
            log_in(until);
            let at = at.url("");
            let environment = [
                ("HOME", folder.path().to_str().unwrap()),
                ("AWS_PROFILE", profile),
                ("AWS_ENDPOINT_URL", &at),
                ("SSL_CERT_FILE", one_certificate()),
            ];
            let environment: Environment = environment.into_iter().collect();
            let options = Options { environment, endpoint_url: Some(store.url("")), ..Options::default() };
            let found = open("s3://bucket/name", &options).unwrap();
            provoke(&found, &mut written);
        }
        heads.extend(store.heads());
        heads.extend(service.heads());
    }
    let sent = heads.concat();
    for secret in [token, access, issued] {
        assert!(sent.contains(secret), "{secret}");
    }
    written.search(&heads);
}

/// The `Debug` texts of all reported progress.
type Log = Arc<Mutex<Vec<String>>>;

struct LogObserver(Log);

impl Observer for LogObserver {
    fn progress(&self, progress: &Progress<'_>) {
        self.0.lock().unwrap().push(format!("{progress:?}"));
    }
}

/// Runs a transfer that fails and keeps its journal. Collects the error, the journal, the names of the files, and the
/// reported progress.
fn broken(folder: &Path, address: &str, options: &Options, told: &Log, written: &mut Output) {
    let place: Location = open(address, options).unwrap();
    let settings = Settings { journals: Some(folder.join("journals")), ..Settings::default() };
    let manager = TransferManager::new(settings, Stop::default(), Box::new(LogObserver(told.clone())));
    let result = run(async {
        match address.starts_with("http") {
            true => manager.get_file(&place, &folder.join("target")).await,
            false => manager.put_file(&folder.join("source"), &place).await,
        }
    });
    let error = result.unwrap_err();
    written.add(&(&manager, &place, &error, error.to_string()));
    let told = std::mem::take(&mut *told.lock().unwrap());
    assert!(!told.is_empty(), "nothing was transferred: {error}");
    written.add(&told);
    let journals: Vec<_> = std::fs::read_dir(folder.join("journals")).unwrap().map(Result::unwrap).collect();
    assert_eq!(journals.len(), 1);
    written.add(&std::fs::read_to_string(journals[0].path()).unwrap());
    written.add(&std::fs::read_dir(folder).unwrap().map(Result::unwrap).collect::<Vec<_>>());
    std::fs::remove_dir_all(folder.join("journals")).unwrap();
}

#[test]
fn no_secret_is_in_what_a_transfer_leaves_behind() {
    let [key, token, azure, sig, bearer, password, query, ..] = PLANTED;
    let folder = tempfile::tempdir().unwrap();
    let content = bytes(800_000);
    std::fs::write(folder.path().join("source"), bytes(6_000_000)).unwrap();
    let told = Log::default();
    // Parts can be uploaded, but the commit fails. Ranges can be read until progress was reported.
    let web = || {
        let (told, content) = (told.clone(), content.clone());
        Web::start(move |head, _| {
            let target = head.split(' ').nth(1).unwrap();
            let from = header(head, "range").map_or(0, |range| range[6..].split('-').next().unwrap().parse().unwrap());
            match head.split(' ').next().unwrap() {
                "HEAD" => answer("404 Not Found", "", b""),
                "POST" if target.contains("uploads") => answer("200 OK", "", b"<R><UploadId>1</UploadId></R>"),
                "PUT" if !target.contains("blocklist") => answer("201 Created", "ETag: \"1\"\r\n", b""),
                "GET" if from < 400_000 => file(head, "ETag: \"1\"\r\n", &content),
                _ => {
                    ascertain_sys::testing::wait_until("progress was told", || !told.lock().unwrap().is_empty());
                    let body = format!("<Error><Code>x</Code><Message>{head}</Message></Error>");
                    answer("403 Forbidden", "", body.as_bytes())
                }
            }
        })
    };
    let sas = format!("sv=2023&sig={sig}");
    let account = ("AZURE_STORAGE_ACCOUNT", "devaccount");
    let environments: [(&str, &[(&str, &str)]); 4] = [
        (
            "s3://bucket/name",
            &[("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", key), ("AWS_SESSION_TOKEN", token)],
        ),
        ("az://bucket/name", &[account, ("AZURE_STORAGE_KEY", azure)]),
        ("az://bucket/name", &[account, ("AZURE_STORAGE_SAS_TOKEN", &sas)]),
        ("gs://bucket/name", &[("GOOGLE_OAUTH_ACCESS_TOKEN", bearer)]),
    ];
    let (mut written, mut heads) = (Output::default(), Vec::new());
    for (address, environment) in environments {
        let web = web();
        let environment: Environment = environment.iter().copied().collect();
        let endpoint_url = Some(web.url("").replace("://", &format!("://ann:{password}@")));
        broken(
            folder.path(),
            address,
            &Options { environment, endpoint_url, ..Options::default() },
            &told,
            &mut written,
        );
        heads.extend(web.heads());
    }
    let web = web();
    let address = web.url(&format!("/path?{sas}&x={query}")).replace("://", &format!("://ann:{password}@"));
    std::fs::remove_file(folder.path().join("source")).unwrap();
    broken(folder.path(), &address, &Options::default(), &told, &mut written);
    heads.extend(web.heads());
    let sent = heads.concat();
    for secret in [token, sig, bearer, query] {
        assert!(sent.contains(secret), "{secret}");
    }
    written.search(&heads);
}
