//! Tests that objects are deleted by key alone, also in buckets that keep versions and after a kill.

use std::fs;
use std::path::Path;

use super::super::*;
use super::stub::{Answer, Stub};
use super::*;

fn upload(stub: &Stub) -> Arm {
    arm(URL, &[("url", (&*stub.url()).into()), ("operation", UPLOAD.into()), ("size", 1_000.into())])
}

fn download(stub: &Stub) -> Arm {
    arm(URL, &[("url", (&*stub.url()).into()), ("size", 1_000.into())])
}

fn of(stub: &Stub, method: &str) -> Vec<String> {
    stub.seen().into_iter().filter(|request| request.method == method).map(|request| request.path).collect()
}

#[test]
fn only_written_objects_are_deleted() {
    let stub = Stub::store(|_, answer| answer);
    for arm in [upload(&stub), download(&stub)] {
        let mut opened = open(&arm).unwrap();
        opened.measure(3).unwrap();
        let folder = opened.folder.path().to_path_buf();
        assert_eq!(opened.journals(), 1);
        drop(opened.session);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "the journal is removed");
    }
    let (mut put, mut deleted) = (of(&stub, "PUT"), of(&stub, "DELETE"));
    assert!(put.iter().all(|path| path.starts_with("/bucket/mine/ascertain-")), "{put:?}");
    put.sort();
    deleted.sort();
    deleted.dedup();
    assert_eq!(put, deleted);
}

/// In a bucket that keeps versions, an object is deleted by the version that its write returned, so that no delete
/// marker appears.
#[test]
fn a_version_is_deleted_by_its_id() {
    let stub = Stub::store(|request, answer| match &*request.method {
        "PUT" => answer.header("x-amz-version-id", "v7"),
        _ => answer,
    });
    open(&upload(&stub)).unwrap().measure(1).unwrap();
    let deleted = of(&stub, "DELETE");
    assert!(deleted.len() == 2 && deleted.iter().all(|path| path.ends_with("?versionId=v7")), "{deleted:?}");
}

/// The answer of a write was lost, so the object may exist in any form. It is deleted by its key, its versions are
/// listed and deleted, and its unfinished uploads are aborted. Entries with other keys stay.
#[test]
fn an_unanswered_write_is_purged_by_its_key() {
    let puts = std::sync::atomic::AtomicU64::new(0);
    let stub = Stub::store(move |request, mut answer| {
        let key = |path: &str| path.split("prefix=").nth(1).unwrap_or_default().replace("%2F", "/");
        let (path, key) = (&request.path, key(&request.path));
        if request.method == "PUT" && puts.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 1 {
            answer.status = 500;
        } else if path.contains("?versions") {
            return Answer::new(
                200,
                format!(
                    "<ListVersionsResult><Name>bucket</Name><Version><Key>{key}</Key><VersionId>v1</VersionId></Version>\
                     <DeleteMarker><Key>{key}</Key><VersionId>m1</VersionId></DeleteMarker>\
                     <Version><Key>{key}9</Key><VersionId>theirs</VersionId></Version></ListVersionsResult>"
                ),
            );
        } else if path.contains("?uploads") {
            return Answer::new(
                200,
                format!(
                    "<R><Upload><Key>{key}</Key><UploadId>u1</UploadId></Upload>\
                     <Upload><Key>{key}9</Key><UploadId>theirs</UploadId></Upload></R>"
                ),
            );
        }
        answer
    });
    open(&upload(&stub)).unwrap().measure(1).unwrap();
    let deleted = of(&stub, "DELETE");
    for end in ["?uploadId=u1", "?versionId=v1", "?versionId=m1"] {
        // Once after the write, and once at the end of the run.
        assert_eq!(deleted.iter().filter(|path| path.ends_with(end)).count(), 2, "{end} {deleted:?}");
    }
    assert!(deleted.iter().all(|path| !path.contains("theirs")), "{deleted:?}");
}

/// Returns the text of a journal for objects in a stub.
fn journal(stub: &Stub, lines: &str) -> String {
    format!("ascertain-storage-2 {}\thttp://{}/bucket\n{lines}", stub.url(), stub.address)
}

/// `clean` deletes the keys in the journal of a killed run. Keys that the store refuses to delete stay in the journal
/// for the next time.
#[test]
fn clean_deletes_the_keys_of_a_journal() {
    let stub = Stub::store(|request, answer| match (&*request.method, request.path.ends_with("/b")) {
        ("DELETE", true) => Answer::new(403, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>"),
        _ => answer,
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ascertain-1-1");
    fs::write(&path, journal(&stub, "put mine/a\nput mine/b\nput mine/c\ngone mine/c\nput mine/d cut")).unwrap();
    let clean = |folder: &Path| objects::clean(folder, &credentials()).unwrap();
    let messages = clean(folder.path());
    let failed: Vec<&String> = messages.iter().filter_map(|message| message.as_ref().err()).collect();
    assert!(failed.len() == 1 && failed[0].contains("mine/b") && failed[0].contains("AccessDenied"), "{messages:?}");
    assert_eq!(of(&stub, "DELETE"), ["/bucket/mine/a", "/bucket/mine/b"]);
    clean(folder.path());
    assert_eq!(of(&stub, "DELETE")[2..], ["/bucket/mine/b"], "only the remaining key is tried again");
    assert!(path.exists());
    assert!(clean(&folder.path().join("none")).is_empty());
}

#[test]
fn a_bucket_with_retention_is_refused_before_the_first_write() {
    let stub = Stub::store(|request, answer| match request.path.contains("?object-lock") {
        true => Answer::new(
            200,
            "<ObjectLockConfiguration><Rule><DefaultRetention><Days>1</Days></DefaultRetention></Rule>\
             </ObjectLockConfiguration>",
        ),
        false => answer,
    });
    let error = refusal(&upload(&stub));
    assert!(error.contains("default retention") && error.contains("another bucket"), "{error}");
    assert!(of(&stub, "PUT").is_empty());
}

/// A write that was not answered may still be carried out after its object was purged. So its key is purged once more
/// at the end of the run.
#[test]
fn a_late_write_is_deleted_at_the_end_of_the_run() {
    let puts = std::sync::atomic::AtomicU64::new(0);
    let stub = Stub::store(move |request, mut answer| {
        if request.method == "PUT" && puts.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 1 {
            answer.status = 500;
        }
        answer
    });
    let mut opened = open(&upload(&stub)).unwrap();
    opened.measure(2).unwrap();
    let unanswered = of(&stub, "PUT")[1].clone();
    let deleted = |path: &str| of(&stub, "DELETE").iter().filter(|deleted| *deleted == path).count();
    assert_eq!(deleted(&unanswered), 1);
    let journal = fs::read_dir(opened.folder.path()).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(journal).unwrap();
    let key = unanswered.strip_prefix("/bucket/").unwrap();
    assert!(text.contains(&format!("put {key}\n")) && !text.contains(&format!("gone {key}\n")), "{text}");
    drop(opened.session);
    assert_eq!(deleted(&unanswered), 2);
    assert!(of(&stub, "PUT").iter().filter(|put| **put != unanswered).all(|put| deleted(put) == 1));
}

/// An upload in parts that was started exists in the store, even if the store then refuses a part.
#[test]
fn a_refused_part_leaves_no_upload() {
    let stub = Stub::store(|request, answer| match &*request.method {
        "POST" => Answer::new(200, "<R><UploadId>u</UploadId></R>"),
        "PUT" => Answer::new(403, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>"),
        "GET" if request.path.contains("?uploads") => {
            let key = request.path.split("prefix=").nth(1).unwrap_or_default().replace("%2F", "/");
            Answer::new(200, format!("<R><Upload><Key>{key}</Key><UploadId>u</UploadId></Upload></R>"))
        }
        _ => answer,
    });
    let levels = [
        ("url", (&*stub.url()).into()),
        ("operation", UPLOAD.into()),
        ("size", Level::from(10 << 20)),
        ("part", (5 << 20).into()),
    ];
    let error = refusal(&arm(URL, &levels));
    assert!(error.contains("AccessDenied"), "{error}");
    let aborted = of(&stub, "DELETE").into_iter().filter(|path| path.ends_with("?uploadId=u")).count();
    assert!(aborted >= 1, "{:?}", stub.seen().iter().map(|seen| &seen.path).collect::<Vec<_>>());
}

/// The keys of a fault check differ by one bit, also after an odd number of other keys.
#[test]
fn the_flipped_key_of_a_fault_check_is_in_the_journal() {
    assert_eq!(objects::flipped("p/00000012"), "p/00000013");
    let stub = Stub::store(|_, answer| answer);
    let folder = tempfile::tempdir().unwrap();
    let store = stores::TargetStore::at_address(&stub.url(), &credentials()).unwrap();
    let objects = objects::Objects::new(std::sync::Arc::new(store), folder.path()).unwrap();
    let first = objects.keys(1, false).unwrap();
    for _ in 0..2 {
        let [key, flipped] = objects.flippable().unwrap();
        assert_eq!(flipped, objects::flipped(&key));
        assert!(!first.contains(&key) && !first.contains(&flipped));
        let path = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let text = fs::read_to_string(path).unwrap();
        assert!(text.contains(&format!("put {key}\nput {flipped}\n")), "{text}");
        objects.keys(1, false).unwrap();
    }
}

/// The endpoint may come from the environment. `clean` in another environment must not look for the objects in another
/// store, and then discard the journal.
#[test]
fn clean_uses_only_the_store_of_the_run() {
    let stubs = [Stub::store(|_, answer| answer), Stub::store(|_, answer| answer)];
    let environment = |stub: &Stub| -> Environment {
        let endpoint = format!("http://{}", stub.address);
        let keys = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "hidden"), ("AWS_ENDPOINT_URL", &*endpoint)];
        keys.into_iter().collect()
    };
    let folder = tempfile::tempdir().unwrap();
    let open = |stub: &Stub| {
        std::sync::Arc::new(stores::TargetStore::at_address("s3://bucket/mine", &environment(stub)).unwrap())
    };
    let objects = objects::Objects::new(open(&stubs[0]), folder.path()).unwrap();
    let key = objects.keys(1, false).unwrap().remove(0);
    drop(objects);
    let messages = objects::clean(folder.path(), &environment(&stubs[1])).unwrap();
    let [Err(why)] = &messages[..] else { panic!("{messages:?}") };
    assert!(why.contains(&stubs[0].address.to_string()) && why.contains("endpoint"), "{why}");
    assert!(stubs[1].seen().is_empty() && !why.contains("hidden"), "{why}");
    let messages = objects::clean(folder.path(), &environment(&stubs[0])).unwrap();
    assert!(messages.iter().all(Result::is_ok), "{messages:?}");
    assert_eq!(of(&stubs[0], "DELETE"), [format!("/bucket/{key}")]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// If the bucket is missing, or a list is denied, `clean` reports it and keeps the journal.
#[test]
fn clean_keeps_what_it_could_not_check() {
    for (status, code, words) in
        [(404, "NoSuchBucket", "no such bucket"), (403, "AccessDenied", "s3:ListBucketMultipartUploads")]
    {
        let stub = Stub::store(move |request, answer| match &*request.method {
            "DELETE" if status == 403 => answer,
            _ => Answer::new(status, format!("<Error><Code>{code}</Code></Error>")),
        });
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ascertain-1-1");
        fs::write(&path, journal(&stub, "put mine/a\n")).unwrap();
        for _ in 0..2 {
            let messages = objects::clean(folder.path(), &credentials()).unwrap();
            assert!(matches!(&messages[..], [Err(why)] if why.contains(words)), "{messages:?}");
            assert!(path.exists());
        }
    }
}

/// A bucket that no longer keeps versions answers with the version `null`, or with no version at all. A deletion
/// without a version then leaves a delete marker, which is removed, too.
#[test]
fn a_suspended_bucket_keeps_no_marker() {
    for names_version in [true, false] {
        let stub = Stub::store(move |request, answer| {
            let path = &request.path;
            match &*request.method {
                "PUT" if names_version => answer.header("x-amz-version-id", "null"),
                "DELETE" if !path.contains('?') => {
                    answer.header("x-amz-delete-marker", "true").header("x-amz-version-id", "null")
                }
                "GET" if path.contains("?versions") => {
                    let key = path.split("prefix=").nth(1).unwrap_or_default().replace("%2F", "/");
                    let marker = format!("<DeleteMarker><Key>{key}</Key><VersionId>null</VersionId></DeleteMarker>");
                    Answer::new(200, format!("<ListVersionsResult>{marker}</ListVersionsResult>"))
                }
                _ => answer,
            }
        });
        open(&upload(&stub)).unwrap().measure(1).unwrap();
        let deleted = of(&stub, "DELETE");
        for path in of(&stub, "PUT") {
            assert!(deleted.contains(&format!("{path}?versionId=null")), "{names_version} {deleted:?}");
        }
    }
}

/// Nothing is written if the store does not show whether objects can be deleted again.
#[test]
fn an_unknown_retention_is_refused() {
    let stub = Stub::store(|request, answer| match request.path.contains("?object-lock") {
        true => Answer::new(403, "<Error><Code>AccessDenied</Code></Error>"),
        false => answer,
    });
    let error = refusal(&upload(&stub));
    assert!(error.contains("s3:GetBucketObjectLockConfiguration"), "{error}");
    assert!(of(&stub, "PUT").is_empty());
}

/// GCS shows its retention policy only in its JSON interface.
#[test]
fn a_retention_policy_of_gcs_is_refused() {
    for (status, body, words) in [
        (200, "{\"retentionPolicy\": {\"retentionPeriod\": \"60\"}}", "a retention policy"),
        (200, "{\"defaultEventBasedHold\": true}", "event-based hold"),
        (403, "{}", "storage.buckets.get"),
    ] {
        let stub = Stub::store(move |request, answer| match request.path.starts_with("/storage/v1/b/bucket?") {
            true => Answer::new(status, body),
            false => answer,
        });
        let url = format!("gs+http://{}/bucket/mine", stub.address);
        let levels = [("url", (&*url).into()), ("operation", UPLOAD.into()), ("size", Level::from(1_000))];
        let environment = [("GOOGLE_OAUTH_ACCESS_TOKEN", "token")].into_iter().collect();
        let opened = open_with(&arm(URL, &levels), &environment);
        let error = opened.and_then(|mut opened| opened.measure(1).map(drop)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert!(of(&stub, "PUT").is_empty());
    }
}

/// A clean-up ends if the store does not answer, and reports how many objects may be left.
#[test]
fn an_unreachable_store_does_not_hold_up_the_end() {
    let stub = Stub::new(|request| match request.path.ends_with("/a") {
        true => Answer::new(403, "<Error><Code>AccessDenied</Code></Error>"),
        false => Answer::new(204, "").after(std::time::Duration::from_secs(600)),
    });
    let store = stores::TargetStore::at_address(&stub.url(), &credentials()).unwrap();
    let remaining: journal::Remaining = ["a", "b", "c"].map(|key| (format!("mine/{key}"), None)).into_iter().collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limit = std::time::Duration::from_millis(200);
    let removing = objects::remove_each(&*store.store, &remaining, limit, |key| panic!("{key}"));
    let messages = runtime.block_on(removing);
    let [refused, unreachable] = &messages[..] else { panic!("{messages:?}") };
    assert!(refused.contains("mine/a") && unreachable.contains("2 objects were not deleted"), "{messages:?}");
}

/// Dropping the proxy of a fault check closes its port.
#[test]
fn the_proxy_of_a_fault_check_ends() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let entered = runtime.enter();
    let proxy = faults::FaultProxy::start("127.0.0.1:9".parse().unwrap()).unwrap();
    let address = proxy.address;
    assert!(std::net::TcpStream::connect(address).is_ok());
    drop((proxy, entered));
    // The runtime closes the socket when it next runs.
    runtime.block_on(tokio::task::yield_now());
    assert!(std::net::TcpStream::connect(address).is_err());
}

/// Azure keeps versions, snapshots and uncommitted blocks. Those of the key are removed, and those of other keys stay.
#[test]
fn everything_that_azure_keeps_is_purged() {
    let list = |entries: &str| {
        let entry = |name: &str, entries: &str| {
            let properties = "<Properties><Content-Length>0</Content-Length></Properties>";
            format!("<Blob><Name>{name}</Name>{entries}{properties}</Blob>")
        };
        let (ours, theirs) = (entry("mine/k", entries), entry("mine/k9", "<Snapshot>theirs</Snapshot>"));
        Answer::new(200, format!("<EnumerationResults><Blobs>{ours}{theirs}</Blobs></EnumerationResults>"))
    };
    let stub = Stub::new(move |request| match &*request.method {
        "GET" if request.path.contains("uncommittedblobs") => list(""),
        "GET" if request.path.contains("versions") => list("<VersionId>v1</VersionId><Snapshot>s1</Snapshot>"),
        "PUT" => Answer::new(201, ""),
        _ => Answer::new(202, ""),
    });
    let environment = [("AZURE_STORAGE_ACCOUNT", "account"), ("AZURE_STORAGE_KEY", "a2V5")].into_iter().collect();
    let url = format!("az+http://{}/account/bucket/mine", stub.address);
    let store = stores::TargetStore::at_address(&url, &environment).unwrap().store;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(store.purge("mine/k", &mut ascertain_transfer::Attempt::default())).unwrap();
    // The empty object replaces uncommitted blocks.
    assert_eq!(of(&stub, "PUT"), ["/account/bucket/mine/k"]);
    let path = "/account/bucket/mine/k";
    assert_eq!(of(&stub, "DELETE"), [path.into(), format!("{path}?versionid=v1"), format!("{path}?snapshot=s1")]);
}
