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

/// The answer of a write was lost, so the object may exist in any form. It is deleted by its key, its versions are listed
/// and deleted, and its unfinished uploads are aborted. Entries with other keys stay.
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

/// A write that was not answered may still be carried out after its object was purged. So its key is purged once more at
/// the end of the run.
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
