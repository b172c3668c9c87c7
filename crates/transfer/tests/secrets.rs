//! Secrets are planted in the environment, in files and in addresses, and looked for in all that can be read: errors,
//! `Debug`, what is shown, and what a journal would keep. The store is one that says back all that it is told.

mod common;

use std::collections::BTreeSet;
use std::fmt::Debug;

use ascertain_transfer::{Attempt, Environment, Found, Meta, Options, PutOptions, Upload, open};
use common::web::{Web, answer, header};
use common::{block, run};

/// They look like nothing that anybody would say by chance.
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

/// What was written by anybody, to be searched.
#[derive(Default)]
struct Written(BTreeSet<String>);

impl Written {
    fn add(&mut self, what: &impl Debug) {
        self.0.insert(format!("{what:?}"));
    }

    /// Looks for what was planted, and for what was made of it: headers and signatures that went over the wire.
    fn search(&self, heads: &[String]) {
        let mut secrets: BTreeSet<String> = PLANTED.iter().map(|secret| secret.to_string()).collect();
        for head in heads {
            for name in ["authorization", "x-amz-security-token", "proxy-authorization"] {
                let Some(value) = header(head, name) else { continue };
                secrets.insert(value.into());
                secrets.extend(value.split(['=', ' ', ',', ':']).filter(|part| part.len() > 12).map(String::from));
            }
        }
        // These are names, in the header and everywhere.
        secrets.retain(|secret| !secret.starts_with("AWS4-HMAC") && !secret.contains("aws4_request"));
        secrets.retain(|secret| !secret.starts_with("devaccount") && !secret.contains(';'));
        assert!(!self.0.is_empty());
        for (text, secret) in self.0.iter().flat_map(|text| secrets.iter().map(move |secret| (text, secret))) {
            assert!(!text.contains(secret.as_str()), "`{secret}` is in: {text}");
        }
    }
}

/// Does everything with a store, and writes down what comes of it.
fn provoke(found: &Found, written: &mut Written) {
    written.add(found);
    written.add(&found.store);
    let mut seen = Attempt::default();
    let upload = Upload { name: found.name.clone(), id: "id".into() };
    let options = PutOptions::default();
    let of = Meta { name: found.name.clone(), bytes: 9, etag: None, modified: None, crc64: None };
    let store = &found.store;
    run(async {
        written.add(&store.head(&found.name, &mut seen).await);
        written.add(&store.get(&of, 0..9, &mut seen).await);
        written.add(&store.put(&found.name, block("x"), &options, &mut seen).await);
        written.add(&store.begin(&found.name, &options, &mut seen).await);
        written.add(&store.put_block(&upload, 0, block("x"), &mut seen).await);
        written.add(&store.commit(&upload, &["1 AAAA x".into()], 0, &options, &mut seen).await);
        written.add(&store.abort(&upload, &mut seen).await);
        written.add(&store.list("", &mut seen).await);
        written.add(&seen);
        if let Err(failure) = store.put(&found.name, block("x"), &options, &mut seen).await {
            written.0.insert(failure.to_string());
        }
    });
}

/// A server that repeats what it is told, in every place where a client may look.
fn parrot(status: &'static str) -> Web {
    Web::start(move |head, _| {
        let told: String = head.split("\r\n").collect::<Vec<_>>().join(" ");
        let token = ["authorization", "x-amz-security-token"].iter().find_map(|name| header(head, name));
        // The last of it is what looks most like a code.
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
        // What can't be put into a header.
        &[
            ("GOOGLE_OAUTH_ACCESS_TOKEN", &format!("{bearer}\u{7f}ü")),
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", &format!("{key} {key}")),
            account,
            ("AZURE_STORAGE_KEY", &format!("ü{azure}")),
        ],
        &[aws[0], aws[1], aws[2], ("http_proxy", &proxy), account, ("AZURE_STORAGE_KEY", azure)],
    ];
    let mut written = Written::default();
    let mut heads = Vec::new();
    let mut opened = 0;
    for status in STATUSES {
        let web = parrot(status);
        for environment in environments {
            let environment: Environment = environment.iter().copied().collect();
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
            let found = open(&address, &options).unwrap();
            assert_eq!(found.shown, web.url("/path"));
            provoke(&found, &mut written);
        }
        heads.extend(web.heads());
    }
    // They were really sent.
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
