//! Tests of objects, parts and names in S3, Azure and GCS. The servers verify signatures and checksums.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{address, block, bytes, media, one_of_each, opened, options_for, run, start};
use ascertain_netlab::store::{Dialect, Kind as RequestKind, RunningStore, Store as Served};
use ascertain_transfer::{Attempt, Kind, Local, Options, PutOptions, Sockets, Store, Upload, open};

/// Starts one store of each kind, and opens it.
fn opened_of_each() -> impl Iterator<Item = (Dialect, RunningStore, Arc<dyn Store>)> {
    one_of_each().into_iter().map(|served| {
        let (dialect, running) = (served.dialect, start(served));
        let store = opened(&running).store;
        (dialect, running, store)
    })
}

#[test]
fn an_object_goes_up_and_comes_back_under_any_name() {
    for (dialect, running, store) in opened_of_each() {
        let mut seen = Attempt::default();
        run(async {
            for name in ["plain", "a folder/with spaces & + signs/ümläut 文.txt", "q?x=1#2%41", "//twice//"] {
                let content = bytes(70_001);
                let options = PutOptions { attributes: media("text/plain"), no_clobber: false };
                let put = store.put(name, block(content.clone()), &options, &mut seen).await.unwrap();
                assert_eq!(put.bytes, 70_001);
                assert_eq!(running.object("bucket", name).as_deref(), Some(&*content), "{dialect:?} {name}");
                let head = store.head(name, &mut seen).await.unwrap().unwrap();
                assert_eq!((head.bytes, &head.etag, &*head.name), (70_001, &put.etag, name));
                assert!(head.modified.is_some() && head.etag.is_some());
                let middle = store.get(&head, 10..60_000, &mut seen).await.unwrap();
                assert_eq!(middle.bytes, content[10..60_000]);
                assert_eq!(store.get(&head, 0..0, &mut seen).await.unwrap_err().kind, Kind::Fatal);
                let whole = store.get(&head, 0..70_001, &mut seen).await.unwrap();
                assert_eq!((whole.crc64, &*whole.bytes), (ascertain_transfer::crc64(&content), &*content));
            }
            assert_eq!(store.head("nothing", &mut seen).await.unwrap(), None);
            let empty = store.put("empty", block(""), &PutOptions::default(), &mut seen).await.unwrap();
            assert_eq!((empty.bytes, running.object("bucket", "empty")), (0, Some(Vec::new())));
            assert_eq!(store.head("empty", &mut seen).await.unwrap().unwrap().bytes, 0);
        });
        assert!(running.seen().iter().all(|seen| matches!(seen.status, Some(200 | 201 | 206 | 404))));
    }
}

#[test]
fn blocks_in_any_order_become_one_object_whose_sum_the_store_has_checked() {
    for served in one_of_each() {
        let dialect = served.dialect;
        let running = start(Served { smallest_part_bytes: 1000, ..served });
        let store = opened(&running).store;
        let content = bytes(25_500);
        let crc64 = ascertain_transfer::crc64(&content);
        let options = PutOptions { attributes: media("video/mp4"), no_clobber: true };
        run(async {
            let mut seen = Attempt::default();
            let upload = store.start_upload("whole", &options, &mut seen).await.unwrap();
            // A copy with only the fields that a journal records must be sufficient to continue the upload.
            let upload = Upload { name: upload.name.clone(), id: upload.id.clone() };
            let mut tokens = BTreeMap::new();
            for index in [11, 3, 7, 0, 12, 5, 1, 9, 2, 10, 4, 6, 8] {
                let part = content[index * 2000..content.len().min(index * 2000 + 2000)].to_vec();
                let token = store.put_part(&upload, index, block(part), &mut seen).await.unwrap();
                assert!(token.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
                tokens.insert(index, token);
            }
            assert_eq!(running.object("bucket", "whole"), None);
            let tokens: Vec<_> = tokens.into_values().collect();
            let made = store.commit(&upload, &tokens, crc64, &options, &mut seen).await.unwrap();
            assert_eq!(made.bytes, 25_500);
            assert_eq!(running.object("bucket", "whole").as_deref(), Some(&*content), "{dialect:?}");
            let head = store.head("whole", &mut seen).await.unwrap().unwrap();
            assert_eq!(head.etag, made.etag);
            if dialect != Dialect::Azure {
                assert_eq!(made.crc64, Some(crc64), "{dialect:?}");
            }
            if dialect == Dialect::S3 {
                assert_eq!(head.crc64, Some(crc64));
            }
            // No part was sent twice.
            let blocks = running.seen().iter().filter(|seen| seen.kind == RequestKind::PutBlock).count();
            assert_eq!(blocks, 13);
        });
    }
}

#[test]
fn what_is_given_up_is_gone_and_may_be_given_up_again() {
    for served in [Served::s3(), Served::gcs()] {
        let running = start(served);
        let store = opened(&running).store;
        run(async {
            let mut seen = Attempt::default();
            let upload = store.start_upload("half", &PutOptions::default(), &mut seen).await.unwrap();
            let token = store.put_part(&upload, 0, block(bytes(100)), &mut seen).await.unwrap();
            assert_eq!(running.uploads("bucket"), 1);
            store.abort(&upload, &mut seen).await.unwrap();
            store.abort(&upload, &mut seen).await.unwrap();
            assert_eq!(running.uploads("bucket"), 0);
            let failure = store.put_part(&upload, 1, block(bytes(100)), &mut seen).await.unwrap_err();
            assert_eq!(failure.kind, Kind::Missing, "{failure}");
            assert!(failure.message.contains("start it again"), "{failure}");
            let lost = store.commit(&upload, &[token], 0, &PutOptions::default(), &mut seen).await.unwrap_err();
            assert_eq!(lost.kind, Kind::Missing, "{lost}");
        });
    }
}

#[test]
fn what_is_there_is_left_alone_if_asked() {
    for (dialect, running, store) in opened_of_each() {
        let once = PutOptions { no_clobber: true, ..PutOptions::default() };
        run(async {
            let mut seen = Attempt::default();
            store.put("name", block("first"), &once, &mut seen).await.unwrap();
            let refused = store.put("name", block("second"), &once, &mut seen).await.unwrap_err();
            assert_eq!(refused.kind, Kind::Changed, "{dialect:?}: {refused}");
            // The commit of an upload also fails if another object has got this name in the meantime.
            let upload = store.start_upload("later", &once, &mut seen).await.unwrap();
            let token = store.put_part(&upload, 0, block("blocks"), &mut seen).await.unwrap();
            store.put("later", block("sooner"), &once, &mut seen).await.unwrap();
            let crc64 = block("blocks").crc64;
            let refused = store.commit(&upload, &[token], crc64, &once, &mut seen).await.unwrap_err();
            assert_eq!(refused.kind, Kind::Changed, "{dialect:?}: {refused}");
            assert_eq!(running.object("bucket", "later").unwrap(), b"sooner");
            store.put("name", block("second"), &PutOptions::default(), &mut seen).await.unwrap();
            assert_eq!(running.object("bucket", "name").unwrap(), b"second");
        });
    }
}

#[test]
fn an_object_that_has_changed_is_not_read_on() {
    for (_, _running, store) in opened_of_each() {
        run(async {
            let mut seen = Attempt::default();
            let options = PutOptions::default();
            let before = store.put("name", block(bytes(1000)), &options, &mut seen).await.unwrap();
            store.put("name", block("shorter"), &options, &mut seen).await.unwrap();
            for range in [0..1, 900..1000] {
                let changed = store.get(&before, range, &mut seen).await.unwrap_err();
                assert_eq!(changed.kind, Kind::Changed, "{changed}");
            }
        });
    }
}

#[test]
fn a_list_has_every_page_in_order() {
    for (dialect, _running, store) in opened_of_each() {
        run(async {
            let mut seen = Attempt::default();
            let mut names: Vec<_> = (0..1005).map(|number| format!("many/ü & <{number:04}>")).collect();
            names.extend(["many/ ", "many/\u{a0}.", "many/a\tb\nc"].map(String::from));
            names.extend(["many/100%25+1", "many/\u{7f}~"].map(String::from));
            // GCS does not accept line breaks in names, and warns that other control characters break lists.
            names.extend((dialect != Dialect::Gcs).then(|| "many/\u{1}\u{1b}[31m+ %".into()));
            names.extend((dialect == Dialect::S3).then(|| "many/carriage\rreturn".into()));
            for name in names.iter().chain([&"other".to_string()]) {
                store.put(name, block("x"), &PutOptions::default(), &mut seen).await.unwrap();
            }
            let listed = store.list("many/", &mut seen).await.unwrap();
            names.sort();
            assert_eq!(listed.iter().map(|meta| meta.name.clone()).collect::<Vec<_>>(), names);
            let head = store.head(&names[0], &mut seen).await.unwrap().unwrap();
            assert_eq!((&listed[0].etag, listed[0].bytes, listed[0].modified), (&head.etag, 1, head.modified));
            assert_eq!(store.list("none", &mut seen).await.unwrap(), []);
        });
    }
}

#[test]
fn an_attempt_says_when_what_happened_and_connections_are_kept() {
    let running = start(Served::s3());
    let store = opened(&running).store;
    run(async {
        let mut first = Attempt::default();
        let put = store.put("name", block(bytes(5000)), &PutOptions::default(), &mut first).await.unwrap();
        assert!(first.began <= first.connected && first.connected <= first.header && first.header <= first.last_byte);
        assert!(first.began.is_some());
        assert_eq!((first.secured, first.status), (None, Some(200)));
        let mut second = Attempt::default();
        store.get(&put, 0..5000, &mut second).await.unwrap();
        assert_eq!((second.connected, second.status), (None, Some(206)));
        assert!(second.header <= second.first_byte && second.first_byte <= second.last_byte);
        assert!(second.first_byte.is_some());
    });
}

#[test]
fn addresses_that_name_no_store_are_refused_with_the_way_out() {
    let options = Options { anonymous: true, ..Options::default() };
    for (url, words) in [
        ("", "s3://"),
        ("bucket/name", "s3://"),
        ("ftp://host/name", "s3://"),
        ("s3://", "s3://BUCKET/NAME"),
        ("s3:///name", "s3://BUCKET/NAME"),
        ("s3://../name", "s3://BUCKET/NAME"),
        ("s3://buck?et/name", "s3://BUCKET/NAME"),
        ("http:///name", "HOST"),
        ("https://account.blob.core.windows.net/", "CONTAINER"),
        ("az://container/name", "AZURE_STORAGE_ACCOUNT"),
    ] {
        let failure = open(url, &options).unwrap_err();
        assert!(failure.to_string().contains(words), "{url}: {failure}");
    }
    let found = open("https://account.blob.core.windows.net/box/a%20b/c?sig=x", &options).unwrap();
    assert_eq!((&*found.name, &*found.address), ("a b/c", "https://account.blob.core.windows.net/box/a%20b/c"));
    let running = start(Served::s3());
    let found = open(&address(&running, "a/../b"), &options_for(&running)).unwrap();
    let mut seen = Attempt::default();
    let failure = run(found.store.head(&found.name, &mut seen)).unwrap_err();
    assert_eq!(failure.kind, Kind::Fatal);
    assert!(running.seen().is_empty());
}

#[test]
fn what_is_removed_is_gone_and_may_be_removed_again() {
    for (dialect, running, store) in opened_of_each() {
        let mut seen = Attempt::default();
        run(async {
            for name in ["mine", "others"] {
                store.put(name, block("x"), &PutOptions::default(), &mut seen).await.unwrap();
            }
            for _ in 0..2 {
                store.remove("mine", &mut seen).await.unwrap();
            }
        });
        let left = ["mine", "others"].map(|name| running.object("bucket", name).is_some());
        assert_eq!(left, [false, true], "{dialect:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let store = Local::new(folder.path());
    std::fs::write(folder.path().join("mine"), "x").unwrap();
    run(async {
        for _ in 0..2 {
            store.remove("mine", &mut Attempt::default()).await.unwrap();
        }
        let web = open("http://127.0.0.1:9/mine", &Options::default()).unwrap();
        let error = web.store.remove("mine", &mut Attempt::default()).await.unwrap_err();
        assert_eq!((error.kind, &*error.message), (Kind::Fatal, "mine: this store does not support removing objects"));
    });
    assert!(!folder.path().join("mine").exists());
}

#[test]
fn sockets_come_from_where_they_are_to_be_made() {
    let running = start(Served::s3());
    let made = Arc::new(AtomicUsize::new(0));
    let counted = made.clone();
    let sockets: Sockets = Arc::new(move |like| {
        counted.fetch_add(1, Ordering::Relaxed);
        assert!(like.is_ipv4());
        Ok(rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None)?)
    });
    let options = Options { sockets: Some(sockets), ..options_for(&running) };
    let store = open(&address(&running, ""), &options).unwrap().store;
    assert_eq!(run(store.head("nothing", &mut Attempt::default())).unwrap(), None);
    assert_eq!(made.load(Ordering::Relaxed), 1);
    // Connections that were opened in advance are used. The first request on each counts as one that opened its
    // connection.
    let store = open(&address(&running, ""), &options).unwrap().store;
    let heads = run(async {
        store.connect(2).await;
        store.connect(2).await;
        let mut heads = Vec::new();
        for _ in 0..2 {
            let (mut one, mut other) = (Attempt::default(), Attempt::default());
            let asked = tokio::join!(store.head("nothing", &mut one), store.head("nothing", &mut other));
            assert!(matches!(asked, (Ok(None), Ok(None))), "{asked:?}");
            heads.extend([one, other]);
        }
        heads
    });
    let is_new = heads.iter().map(|head| head.connected.is_some() && head.connected == head.began);
    assert_eq!(is_new.collect::<Vec<_>>(), [true, true, false, false]);
    assert_eq!(made.load(Ordering::Relaxed), 1 + 2);
    let none: Sockets = Arc::new(|_| Err(std::io::Error::other("there are none")));
    let store = open(&address(&running, ""), &Options { sockets: Some(none), ..options }).unwrap().store;
    let error = run(store.head("nothing", &mut Attempt::default())).unwrap_err();
    assert!(error.message.contains("there are none"), "{error}");
}
