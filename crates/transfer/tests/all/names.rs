//! Tests of lists, of patterns in addresses, and of the attributes that objects get.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ascertain_netlab::store::{Fault, Kind as RequestKind, Misdeed, RunningStore, Store as Served};
use ascertain_transfer::{
    Attempt, Attributes, Direction, Environment, Error, Options, PutOptions, Selection, Settings, Stop,
    TransferManager, TransferRequest, TransferResult, list, open, run as transfer,
};

use crate::common::web::{Web, answer, header};
use crate::common::{address, block, bytes, one_of_each, opened, options_for, run, start};

/// Starts a store that holds these objects.
fn filled(served: Served, names: &[&str]) -> RunningStore {
    let running = start(served);
    let store = opened(&running).store;
    run(async {
        for name in names {
            store.put(name, block(name.to_string()), &PutOptions::default(), &mut Attempt::default()).await.unwrap();
        }
    });
    running
}

fn listed(address: &str, options: &Options) -> Result<Vec<String>, Error> {
    let objects = list(OsStr::new(address), options, Settings::default(), Box::new(()), Stop::default())?;
    objects.iter().for_each(|object| assert!(object.meta.modified.is_some(), "{object:?}"));
    Ok(objects.into_iter().map(|object| format!("{} {}", object.address, object.meta.bytes)).collect())
}

/// Downloads `source` into a new folder. Returns the relative paths of the files, sorted, or the error.
fn fetched(source: &str, options: &Options) -> Result<Vec<String>, Error> {
    let folder = tempfile::tempdir().unwrap();
    let request = TransferRequest {
        direction: Direction::Get,
        sources: vec![source.into()],
        destination: folder.path().join("").into(),
        store: options.clone(),
        ..TransferRequest::default()
    };
    let results = transfer(&request, Box::new(()), Stop::default())?;
    let relative = |path: &Path| path.strip_prefix(folder.path()).unwrap().display().to_string();
    let mut paths: Vec<String> = results.iter().map(|result| relative(&result.path)).collect();
    paths.sort();
    for result in &results {
        assert!(result.is_transferred(), "{:?}", result.status);
        // The content of each object is its name.
        assert!(result.address.ends_with(&fs::read_to_string(&result.path).unwrap()), "{result:?}");
    }
    Ok(paths)
}

const NAMES: [&str; 7] = [
    "logs",
    "logs/2026-01/x.gz",
    "logs/2026-01/y.gz",
    "logs/2026-02/deep/x.gz",
    "logs/2026-02/x.gz",
    "logs/old",
    "logsheet",
];

#[test]
fn each_store_is_listed() {
    for served in one_of_each() {
        let running = filled(served, &NAMES);
        let options = options_for(&running);
        let with_sizes = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| format!("{} {}", address(&running, name), name.len())).collect()
        };
        let all = |name: &str| listed(&address(&running, name), &options).unwrap();
        assert_eq!(all(""), with_sizes(&NAMES));
        assert_eq!(all("logs/"), with_sizes(&NAMES[1..6]));
        assert_eq!(all("logs"), with_sizes(&NAMES[..6]), "the object, and what is in the folder");
        assert_eq!(all("logs/old"), with_sizes(&["logs/old"]));
        assert_eq!(all("logs/2026-*/x.gz"), with_sizes(&["logs/2026-01/x.gz", "logs/2026-02/x.gz"]));
        assert_eq!(all("log?"), with_sizes(&["logs"]));
        assert!(all("nothing").is_empty() && all("nothing/").is_empty() && all("*.zip").is_empty());
    }
}

#[test]
fn files_are_listed_and_a_server_without_lists_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir(root.join("a")).unwrap();
    for name in ["a/b.txt", "a/c.log", "d"] {
        fs::write(root.join(name), name).unwrap();
    }
    let all = |name: &str| {
        let shown = format!("file://{}/", root.display());
        let found = listed(root.join(name).to_str().unwrap(), &Options::default()).unwrap();
        found.into_iter().map(|line| line.strip_prefix(&shown).unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(all(""), ["a/b.txt 7", "a/c.log 7", "d 1"]);
    assert_eq!(all("a"), ["a/b.txt 7", "a/c.log 7"]);
    assert_eq!(all("d"), ["d 1"]);
    assert_eq!(all("a/*.log"), ["a/c.log 7"]);
    assert!(all("nothing").is_empty());
    let error = listed("https://127.0.0.1:1/a/", &Options::default()).unwrap_err();
    let expected = "https://127.0.0.1:1/a/: can't list the files of an HTTP server; give the address of a store";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_pattern_in_an_address_names_several_objects() {
    for served in one_of_each() {
        let running = filled(served, &NAMES);
        let options = options_for(&running);
        let get = |name: &str| fetched(&address(&running, name), &options).unwrap();
        assert_eq!(get("logs/2026-*/x.gz"), ["2026-01/x.gz", "2026-02/x.gz"]);
        assert_eq!(get("logs/2026-0[2-9]/"), ["2026-02/deep/x.gz", "2026-02/x.gz"]);
        assert_eq!(get("logs/**/x.gz"), ["2026-01/x.gz", "2026-02/deep/x.gz", "2026-02/x.gz"]);
        assert_eq!(get("{logs,log}heet"), ["logsheet"]);
        assert!(get("logs/*.zip").is_empty());
        // Only the names that begin like the pattern are listed.
        let error = fetched(&address(&running, "logs/["), &options).unwrap_err();
        assert!(error.to_string().contains("there is no such object"), "{error}");
    }
}

#[test]
fn a_name_with_special_characters_stays_reachable() {
    let names = ["a*b", "aXb", "dir?/x", "dirY/x", "n[1]"];
    for served in one_of_each() {
        let running = filled(served, &names);
        let options = options_for(&running);
        let get = |name: &str| fetched(&address(&running, name), &options).unwrap();
        assert_eq!(get("a*b"), ["a*b"], "an object with this name comes first");
        assert_eq!(get("dir?/"), ["x"], "a prefix with this name comes first");
        assert_eq!(get("n[1]"), ["n[1]"]);
        assert_eq!(get(r"{a\*b,n\[1\]}"), ["a*b", "n[1]"], "a backslash removes the special meaning");
        assert_eq!(get("?[!*]b"), ["aXb"]);
        assert_eq!(listed(&address(&running, "a*b"), &options).unwrap(), [format!("{} 3", address(&running, "a*b"))]);
    }
}

/// Returns attributes of which each store supports some.
fn all_attributes() -> Attributes {
    let some = |value: &str| Some(value.to_string());
    Attributes {
        content_type: some("text/x-test"),
        cache_control: some("max-age=60"),
        metadata: [("Owner".into(), "Ann Example".into())].into(),
        storage_class: some("COLD"),
        sse: some("aws:kms"),
        sse_kms_key_id: some("key-1"),
        acl: some("public-read"),
        tagging: some("team=a%20b&stage=test"),
        modified: Some(UNIX_EPOCH + Duration::new(1_354_040_105, 120_000_000)),
    }
}

#[test]
fn attributes_are_sent_with_every_kind_of_upload() {
    let general = |meta: &'static str| [(meta, "Ann Example")];
    let s3: Vec<(&str, &str)> = [
        ("content-type", "text/x-test"),
        ("cache-control", "max-age=60"),
        ("x-amz-storage-class", "COLD"),
        ("x-amz-server-side-encryption", "aws:kms"),
        ("x-amz-server-side-encryption-aws-kms-key-id", "key-1"),
        ("x-amz-acl", "public-read"),
        ("x-amz-tagging", "team=a%20b&stage=test"),
        ("x-amz-meta-mtime", "1354040105.12"),
    ]
    .into_iter()
    .chain(general("x-amz-meta-owner"))
    .collect();
    let google = [
        ("content-type", "text/x-test"),
        ("cache-control", "max-age=60"),
        ("x-goog-storage-class", "COLD"),
        ("x-goog-encryption-kms-key-name", "key-1"),
        ("x-goog-acl", "public-read"),
        ("x-goog-meta-mtime", "2012-11-27T18:15:05.120Z"),
        ("x-goog-meta-goog-reserved-file-mtime", "1354040105"),
    ];
    let google = google.into_iter().chain(general("x-goog-meta-owner")).collect();
    let azure = [
        ("x-ms-blob-content-type", "text/x-test"),
        ("x-ms-blob-cache-control", "max-age=60"),
        ("x-ms-access-tier", "COLD"),
        ("x-ms-tags", "team=a%20b&stage=test"),
        ("x-ms-meta-mtime", "2012-11-27T18:15:05.120Z"),
    ];
    let azure = azure.into_iter().chain(general("x-ms-meta-owner")).collect();
    let stores = [
        ("s3://bucket/a", s3, "uploads="),
        ("gs://bucket/a", google, "uploads="),
        ("az://bucket/a", azure, "comp=blocklist"),
    ];
    for (url, expected, in_parts) in stores {
        let web = Web::start(|head, _| {
            let begun = "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>";
            let status = if head.contains("x-ms-version") { "201 Created" } else { "200 OK" };
            answer(status, "ETag: \"1\"\r\n", begun.as_bytes())
        });
        let variables = [
            ("AWS_ACCESS_KEY_ID", "a"),
            ("AWS_SECRET_ACCESS_KEY", "b"),
            ("AZURE_STORAGE_ACCOUNT", "account"),
            ("AZURE_STORAGE_KEY", "YQ=="),
            ("GOOGLE_OAUTH_ACCESS_TOKEN", "t"),
        ];
        let environment: Environment = variables.into_iter().collect();
        let options = Options { environment, endpoint_url: Some(web.url("")), ..Options::default() };
        let found = open(url, &options).unwrap();
        let put = PutOptions { attributes: all_attributes(), no_clobber: false };
        run(async {
            let mut seen = Attempt::default();
            found.store.put("a", block("x"), &put, &mut seen).await.unwrap();
            let upload = found.store.start_upload("a", &put, &mut seen).await.unwrap();
            let token = found.store.put_part(&upload, 0, block("x"), &mut seen).await.unwrap();
            // The answer is not that of S3 and GCS, which does not matter here.
            let _ = found.store.commit(&upload, &[token], 0, &put, &mut seen).await;
        });
        let heads = web.heads();
        for head in [&heads[0], heads.iter().find(|head| head.contains(in_parts)).unwrap()] {
            for (name, value) in &expected {
                assert_eq!(header(head, name), Some(*value), "{url}: {name} in {head}");
            }
        }
    }
    // A key of KMS implies the method.
    let web = Web::start(|_, _| answer("200 OK", "ETag: \"1\"\r\n", b""));
    let options = Options { endpoint_url: Some(web.url("")), anonymous: true, ..Options::default() };
    let attributes = Attributes { sse_kms_key_id: Some("key-1".into()), ..Attributes::default() };
    let put = PutOptions { attributes, no_clobber: false };
    let store = open("s3://bucket/a", &options).unwrap().store;
    run(store.put("a", block("x"), &put, &mut Attempt::default())).unwrap();
    assert_eq!(header(&web.heads()[0], "x-amz-server-side-encryption"), Some("aws:kms"));
}

#[test]
fn an_attribute_that_a_store_does_not_keep_is_refused_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    let some = || Some("x".to_string());
    let none = Attributes::default;
    let attributes = |option: &str| match option {
        "content_type" => Attributes { content_type: some(), ..none() },
        "cache_control" => Attributes { cache_control: some(), ..none() },
        "metadata" => Attributes { metadata: [("a".into(), "x".into())].into(), ..none() },
        "storage_class" => Attributes { storage_class: some(), ..none() },
        "sse" => Attributes { sse: some(), ..none() },
        "sse_kms_key_id" => Attributes { sse_kms_key_id: some(), ..none() },
        "acl" => Attributes { acl: some(), ..none() },
        _ => Attributes { tagging: some(), ..none() },
    };
    let put = |to: &str, options: &Options, attributes: Attributes| {
        let request = TransferRequest {
            sources: vec![file.clone().into()],
            destination: to.into(),
            settings: Settings { attributes, ..Settings::default() },
            store: options.clone(),
            ..TransferRequest::default()
        };
        transfer(&request, Box::new(()), Stop::default()).unwrap_err()
    };
    for (served, refused) in
        one_of_each().into_iter().zip([&[][..], &["sse", "sse_kms_key_id", "acl"], &["sse", "tagging"]])
    {
        let running = start(served);
        let (to, options) = (address(&running, "a"), options_for(&running));
        for name in refused {
            let error = put(&to, &options, attributes(name));
            assert!(
                matches!(&error, Error::UnsupportedOption { option, .. } if option == name),
                "{to} {name}: {error}"
            );
        }
        let strange = Attributes { metadata: [("a b".into(), "x".into())].into(), ..none() };
        assert!(put(&to, &options, strange).to_string().contains("`a b` can't be a name of metadata"));
        assert!(running.seen().is_empty(), "a request was sent");
    }
    let azure = start(Served::azure());
    let dashed = Attributes { metadata: [("a-b".into(), "x".into())].into(), ..none() };
    assert!(put(&address(&azure, "a"), &options_for(&azure), dashed).to_string().contains("Azure accepts no metadata"));
    let s3 = start(Served::s3());
    let keyed = Attributes { sse: Some("AES256".into()), sse_kms_key_id: some(), ..none() };
    assert!(put(&address(&s3, "a"), &options_for(&s3), keyed).to_string().contains("does not use a key of KMS"));
    assert!(azure.seen().is_empty() && s3.seen().is_empty());
    for name in
        ["content_type", "cache_control", "metadata", "storage_class", "sse", "sse_kms_key_id", "acl", "tagging"]
    {
        let to = folder.path().join("to");
        let error = put(to.to_str().unwrap(), &Options::default(), attributes(name));
        assert!(matches!(&error, Error::UnsupportedOption { store: "a file", .. }), "{name}: {error}");
        assert!(!to.exists());
    }
}

/// Uploads a file and downloads it again. Returns the results of both, and the modification time of the new file.
fn there_and_back(
    file: &Path,
    name: &str,
    running: &RunningStore,
    settings: &Settings,
) -> ([TransferResult; 2], SystemTime) {
    let place = open(&address(running, name), &options_for(running)).unwrap();
    let manager = TransferManager::new(settings.clone(), Stop::default(), Box::new(()));
    let back = file.with_file_name("back");
    let _ = fs::remove_file(&back);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let results = runtime.block_on(async {
        [manager.put_file(file, &place).await.unwrap(), manager.get_file(&place, &back).await.unwrap()]
    });
    (results, fs::metadata(&back).unwrap().modified().unwrap())
}

#[test]
fn modification_times_and_metadata_go_there_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let time = UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    for served in one_of_each() {
        let running = start(served);
        for (name, size) in [("small", 10), ("large", 6_000_000)] {
            fs::write(&file, bytes(size)).unwrap();
            fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
            let preserve = Settings { preserve: true, ..Settings::default() };
            let ([put, _], modified) = there_and_back(&file, name, &running, &preserve);
            assert_eq!((modified, put.parts > 1), (time, size > 10), "{name}");
            // The file counts as unchanged, because it has the time that the download gave to it.
            let again = Settings { skip_unchanged: true, ..preserve.clone() };
            let manager = TransferManager::new(again, Stop::default(), Box::new(()));
            let place = open(&address(&running, name), &options_for(&running)).unwrap();
            let skipped = run(manager.get_file(&place, &file.with_file_name("back"))).unwrap();
            assert!(!skipped.is_transferred());
            // Without the setting, the file gets the time at which the object was stored.
            let (_, modified) = there_and_back(&file, name, &running, &Settings::default());
            assert!(modified > time + Duration::from_secs(1_000_000));
        }
        // The caller's own time takes precedence.
        let attributes = Attributes { metadata: [("mtime".into(), "5.5".into())].into(), ..Attributes::default() };
        let own = Settings { preserve: true, attributes, ..Settings::default() };
        let (_, modified) = there_and_back(&file, "own", &running, &own);
        assert_eq!(modified, UNIX_EPOCH + Duration::from_millis(5500));
    }
    // A local folder is a store whose files have times of their own.
    let place =
        ascertain_transfer::Location::open(folder.path().join("copy").as_os_str(), &Options::default()).unwrap();
    let manager =
        |preserve| TransferManager::new(Settings { preserve, ..Settings::default() }, Stop::default(), Box::new(()));
    for (preserve, is_kept) in [(true, true), (false, false)] {
        run(manager(preserve).put_file(&file, &place)).unwrap();
        let modified = fs::metadata(folder.path().join("copy")).unwrap().modified().unwrap();
        assert_eq!(modified == time, is_kept);
    }
}

/// Each downloaded file of a folder gets the time of its original, even if the file is empty. The next command expects
/// this time when it checks whether a complete file has changed.
#[test]
fn modification_times_of_a_folder_are_kept_when_a_download_is_resumed() {
    let time = |index: u64| UNIX_EPOCH + Duration::new(1_000_000_000 + index, 123_456_789);
    for served in one_of_each() {
        let (running, folder) = (start(served), tempfile::tempdir().unwrap());
        let (source, target) = (folder.path().join("source"), folder.path().join("target"));
        fs::create_dir(&source).unwrap();
        let files = [("a", 10), ("b", 20), ("c", 30), ("empty", 0)];
        for (index, (name, size)) in files.iter().enumerate() {
            fs::write(source.join(name), bytes(*size)).unwrap();
            let file = fs::File::options().write(true).open(source.join(name)).unwrap();
            file.set_modified(time(index as u64)).unwrap();
        }
        let place = open(&address(&running, "p/"), &options_for(&running)).unwrap();
        let journals = Some(folder.path().join("journals"));
        let settings = Settings { preserve: true, journals, max_concurrency: 1, ..Settings::default() };
        let manager = || TransferManager::new(settings.clone(), Stop::default(), Box::new(()));
        let all = Selection::default();
        run(manager().put_many(&[source], &place, &all)).unwrap();
        let what = Misdeed::Refused { status: 404, retry_after_s: None };
        running.add_fault(Fault { on: Some(RequestKind::GetObject), after: 1, times: 1, what });
        let first = run(manager().get_many(&place, &target, &all)).unwrap();
        assert_eq!(first.iter().filter(|result| result.is_transferred()).count(), 3, "{first:?}");
        let mark = running.seen().len();
        let second = run(manager().get_many(&place, &target, &all)).unwrap();
        assert!(second.iter().all(|result| result.restart_reason.is_none()), "{second:?}");
        let gets = running.seen().into_iter().skip(mark).filter(|seen| seen.kind == RequestKind::GetObject);
        assert_eq!(gets.count(), 1, "only the file that is missing is fetched");
        for (index, (name, _)) in files.iter().enumerate() {
            let modified = fs::metadata(target.join(name)).unwrap().modified().unwrap();
            assert_eq!(modified, time(index as u64), "{name} {:?}", running.store().dialect);
        }
    }
}
