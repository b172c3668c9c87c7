//! Tests of faults: retries repair them, or they are reported.

use std::fs::{self, OpenOptions};
use std::time::Duration;

use ascertain_transfer::{Error, Failure, Kind, Settings, TransferStatus};

use super::memory::{ANY, Call, Fault, Memory, Path};
use super::{file, manager, names, noise, run, settings, simulate};

#[test]
fn transient_failures_are_retried() {
    let (folder, path, content) = file(3_000_000);
    let kinds = [Kind::Transient(None), Kind::Transient(Some(Duration::from_millis(2))), Kind::Corrupted];
    for kind in kinds {
        let store = Memory::new(ANY);
        store.script(move |_, times| (times < 2).then_some(Fault::Fails(kind)));
        let manager = manager(settings());
        run(manager.put_file(&path, &store.place("a"))).unwrap();
        assert_eq!(store.bytes("a").unwrap(), content);
        let blocks = store.lock().calls.iter().filter(|call| matches!(call, Call::Part(_))).count();
        assert!(manager.retries() as usize >= blocks / 3 * 2);
        store.forget();
        let target = folder.path().join("target");
        run(manager.get_file(&store.place("a"), &target)).unwrap();
        assert_eq!(fs::read(target).unwrap(), content);
    }
}

#[test]
fn a_hanging_request_is_aborted_and_retried() {
    let (_folder, path, content) = file(1_000_000);
    let store = Memory::new(ANY);
    store.script(|call, times| (times == 0 && call != Call::Head).then_some(Fault::Hangs));
    simulate(manager(settings()).put_file(&path, &store.place("a"))).unwrap();
    assert_eq!(store.bytes("a").unwrap(), content);
    assert_eq!(store.count(|call| *call == Call::Commit), 2);
}

/// If each request creates a new token, a late request could still replace the token of a second one. Such a part is
/// therefore sent again only after the timeout of a minute.
#[test]
fn a_late_part_is_sent_twice_only_if_its_token_stays_the_same() {
    let (_folder, path, content) = file(3_000_000);
    let link = Path { bytes_per_s: 1e6, round_trip: Duration::from_millis(100) };
    for has_stable_tokens in [true, false] {
        let small = ascertain_transfer::Limits { max_part_bytes: 50_000, ..ANY };
        let store = Memory { has_stable_tokens, path: Some(link), ..Memory::new(small) };
        store.script(|call, times| (call == Call::Part(59) && times == 0).then_some(Fault::Hangs));
        let few = manager(Settings { max_concurrency: 4, ..settings() });
        let place = store.place("a");
        let within =
            simulate(async { tokio::time::timeout(Duration::from_secs(60), few.put_file(&path, &place)).await });
        assert_eq!(within.is_ok(), has_stable_tokens);
        if let Ok(put) = within {
            put.unwrap();
            assert_eq!(store.bytes("a").unwrap(), content);
        }
    }
}

#[test]
fn a_store_that_asks_for_time_gets_it() {
    let (folder, path, _) = file(3_000_000);
    let store = Memory::new(ANY);
    let wait = Duration::from_secs(100);
    for is_first in [true, false] {
        store.forget();
        store.script(move |call, times| {
            let is_refused = matches!(call, Call::Part(1) | Call::Get(0)) && times == 0;
            is_refused.then_some(Fault::Fails(Kind::Transient(Some(wait))))
        });
        let took = simulate(async {
            let (began, manager) = (tokio::time::Instant::now(), manager(settings()));
            match is_first {
                true => manager.put_file(&path, &store.place("a")).await.unwrap(),
                false => manager.get_file(&store.place("a"), &folder.path().join("target")).await.unwrap(),
            };
            assert_eq!(manager.retries(), 1);
            began.elapsed()
        });
        // A random wait is added, so that clients do not return at the same time.
        assert!((wait..wait + Duration::from_millis(10)).contains(&took), "{took:?}");
    }
}

#[test]
fn the_number_of_retries_is_limited() {
    let (_folder, path, _) = file(3_000_000);
    let store = Memory::new(ANY);
    store.script(|call, _| (call == Call::Part(3)).then_some(Fault::Fails(Kind::Transient(None))));
    let manager = manager(Settings { retries: 3, ..settings() });
    let error = run(manager.put_file(&path, &store.place("a"))).unwrap_err();
    assert!(error.to_string().contains("(tried 4 times)"), "{error}");
    assert_eq!(manager.retries(), 3);
    assert!(store.bytes("a").is_none() && store.lock().uploads.is_empty(), "the upload is aborted");
    store.forget();
    let error = run(super::manager(Settings { retries: 0, ..settings() }).put_file(&path, &store.place("a")));
    assert!(error.unwrap_err().to_string().contains("(tried once)"));
}

#[test]
fn permanent_failures_are_reported_at_once() {
    let (folder, path, _) = file(3_000_000);
    for kind in [Kind::Denied, Kind::Missing, Kind::Full, Kind::Fatal, Kind::Changed] {
        let store = Memory::new(ANY);
        store.script(move |call, _| matches!(call, Call::Part(1)).then_some(Fault::Fails(kind)));
        let error = run(manager(settings()).put_file(&path, &store.place("a"))).unwrap_err();
        assert!(matches!(&error, Error::Store(Failure { kind: said, .. }) if *said == kind), "{error:?}");
        assert_eq!(store.count(|call| *call == Call::Part(1)), 1);
        assert!(store.bytes("a").is_none());
        store.insert("a", &[7; 2_000_000]);
        store.script(move |call, _| matches!(call, Call::Get(1..)).then_some(Fault::Fails(kind)));
        run(manager(settings()).get_file(&store.place("a"), &folder.path().join("target"))).unwrap_err();
        assert_eq!(names(folder.path()), ["file"]);
    }
}

/// The credentials permit writing objects but not reading them. This must be sufficient for an upload.
#[test]
fn a_denied_head_request_does_not_prevent_an_upload() {
    let (_folder, path, content) = file(1000);
    let store = Memory::new(ANY);
    store.script(|call, _| (call == Call::Head).then_some(Fault::Fails(Kind::Denied)));
    run(manager(settings()).put_file(&path, &store.place("a"))).unwrap();
    assert_eq!(store.bytes("a").unwrap(), content);
    // The condition is part of the request that writes, so it needs no permission to read.
    let again = run(manager(Settings { no_clobber: true, ..settings() }).put_file(&path, &store.place("a"))).unwrap();
    assert!(matches!(again.status, TransferStatus::Exists), "{again:?}");
}

#[test]
fn an_answer_that_was_lost_is_looked_up_and_never_blindly_repeated() {
    for bytes in [1000, 3_000_000] {
        for knows_crc64 in [true, false] {
            let (_folder, path, content) = file(bytes);
            let store = Memory { knows_crc64, ..Memory::new(ANY) };
            store.insert("a", b"what was there before");
            let is_final = |call| matches!(call, Call::Put | Call::Commit);
            store.script(move |call, _| is_final(call).then_some(Fault::Loses(Kind::Unanswered)));
            run(manager(settings()).put_file(&path, &store.place("a"))).unwrap();
            assert_eq!(store.bytes("a").unwrap(), content);
            // Before an upload in parts, the earlier object is looked up. Before a single request it is not, so the
            // request is repeated once.
            let requests = if bytes == 1000 { 2 } else { 1 };
            assert_eq!(store.count(|call| is_final(*call)), requests, "looked up, not repeated");
            // Second case: the first request fails without being carried out, so it must be repeated.
            let store = Memory { knows_crc64, ..Memory::new(ANY) };
            store.insert("a", &vec![1; bytes]);
            store.script(move |call, n| (is_final(call) && n == 0).then_some(Fault::Fails(Kind::Unanswered)));
            let result = run(manager(settings()).put_file(&path, &store.place("a"))).unwrap();
            assert_eq!(store.bytes("a").unwrap(), content);
            // The retry of a commit is not counted, because a commit carries no bytes of the file.
            assert_eq!(result.requests.retries.broken, u64::from(result.parts == 1));
            assert_eq!(store.count(|call| is_final(*call)), 2);
            // Third case: no request is ever carried out or answered.
            let store = Memory { knows_crc64, ..Memory::new(ANY) };
            store.script(move |call, _| is_final(call).then_some(Fault::Fails(Kind::Unanswered)));
            let limited = Settings { retries: 7, ..settings() };
            let error = run(manager(limited).put_file(&path, &store.place("a"))).unwrap_err();
            assert!(error.to_string().contains("failed as the script says (8 answers in a row were lost"), "{error}");
            assert!(store.bytes("a").is_none());
        }
    }
}

/// The object already has the same bytes, but other attributes. So its checksum does not show whether the request was
/// carried out.
#[test]
fn an_object_that_was_there_before_is_not_taken_for_the_new_one() {
    for bytes in [1000, 3_000_000] {
        for is_listed in [true, false] {
            let (folder, path, content) = file(bytes);
            let store = Memory::new(ANY);
            store.insert("p/file", &content);
            let is_final = |call| matches!(call, Call::Put | Call::Commit);
            store.script(move |call, n| (is_final(call) && n == 0).then_some(Fault::Fails(Kind::Unanswered)));
            let mut settings = settings();
            settings.attributes.content_type = Some("text/new".into());
            let manager = manager(settings);
            match is_listed {
                true => _ = run(manager.put_many(&[folder.path().into()], &store.place("p/"), &Default::default())),
                false => _ = run(manager.put_file(&path, &store.place("p/file"))),
            }
            assert_eq!(store.lock().objects["p/file"].content_type.as_deref(), Some("text/new"), "{bytes}");
            assert_eq!((store.count(|call| is_final(*call)), store.lock().uploads.len()), (2, 0));
        }
    }
}

/// If the credentials do not permit checking whether the request was carried out, the request must not be repeated.
#[test]
fn a_lost_answer_that_can_not_be_looked_up_is_an_error() {
    for bytes in [1000, 3_000_000] {
        let (_folder, path, _) = file(bytes);
        let store = Memory::new(ANY);
        let is_final = |call| matches!(call, Call::Put | Call::Commit);
        store.script(move |call, _| match call {
            Call::Head => Some(Fault::Fails(Kind::Denied)),
            call => is_final(call).then_some(Fault::Loses(Kind::Unanswered)),
        });
        let error = run(manager(settings()).put_file(&path, &store.place("a"))).unwrap_err();
        assert!(error.to_string().contains("do not permit checking"), "{error}");
        assert_eq!(store.count(|call| is_final(*call)), 1);
    }
}

/// The store no longer answers. After a stop was requested, the transfer must not wait for the abort of its upload.
#[test]
fn a_stop_does_not_wait_for_an_upload_that_can_not_be_aborted() {
    let (_folder, path, _) = file(3_000_000);
    let (store, stop) = (Memory::new(ANY), ascertain_transfer::Stop::new().unwrap());
    let token = stop.clone();
    store.script(move |call, _| {
        (call == Call::Part(3)).then(|| token.request());
        matches!(call, Call::Part(3) | Call::Abort).then_some(Fault::Hangs)
    });
    let manager = ascertain_transfer::TransferManager::new(settings(), stop, Box::new(()));
    let place = store.place("a");
    let result =
        simulate(async { tokio::time::timeout(Duration::from_secs(50), manager.put_file(&path, &place)).await });
    assert!(matches!(result, Ok(Err(Error::Stopped))), "{result:?}");
    assert_eq!(store.count(|call| *call == Call::Abort), 1);
}

/// If neither side knows a checksum, for example of a plain HTTP server, only a second download shows damaged bytes.
#[test]
fn a_second_download_verifies_an_object_without_a_checksum() {
    let store = Memory { knows_crc64: false, ..Memory::new(ANY) };
    let content = noise(100_000);
    store.insert("a", &content);
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a");
    for verify in [true, false] {
        store.forget();
        store.script(|call, times| (call == Call::Get(0) && times == 0).then_some(Fault::Changes));
        let got = run(manager(Settings { verify, ..settings() }).get_file(&store.place("a"), &target)).unwrap();
        assert_eq!((got.repaired.len(), fs::read(&target).unwrap() == content), (usize::from(verify), verify));
    }
}

/// Reading back has memory of its own, because the transfer may hold all of the shared memory.
#[test]
fn reading_back_has_its_own_memory() {
    async fn in_time<T>(work: impl Future<Output = Result<T, Error>>) -> T {
        tokio::time::timeout(Duration::from_secs(60), work).await.unwrap().unwrap()
    }
    let (_folder, path, content) = file(90_000);
    for verify in [true, false] {
        let settings = Settings { verify, memory_bytes: 100_000, ..settings() };
        let store = Memory { knows_crc64: false, ..Memory::new(ANY) };
        run(in_time(manager(settings.clone()).put_stream(&mut &content[..], &store.place("a"))));
        assert_eq!(store.bytes("a").unwrap(), content);
        store.script(|call, _| (call == Call::Put).then_some(Fault::Loses(Kind::Unanswered)));
        run(in_time(manager(settings.clone()).put_file(&path, &store.place("b"))));
        assert_eq!(store.bytes("b").unwrap(), content);
    }
}

/// The error must be the missing permission, and not a missing object.
#[test]
fn a_get_that_is_denied_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let store = Memory::new(ANY);
    store.insert("a", b"a");
    store.script(|call, _| (call == Call::Head).then_some(Fault::Fails(Kind::Denied)));
    let error = run(manager(settings()).get_file(&store.place("a"), &folder.path().join("a"))).unwrap_err();
    assert!(matches!(&error, Error::Store(Failure { kind: Kind::Denied, .. })), "{error}");
}

#[test]
fn wrong_bytes_of_a_store_are_detected() {
    for bytes in [1000, 3_000_000] {
        let (folder, path, _) = file(bytes);
        let (verified, target) = (Settings { verify: true, ..settings() }, folder.path().join("target"));
        // The store keeps other bytes than it received. If it knows their checksum, this is detected.
        let changes = |call, _| matches!(call, Call::Put | Call::Part(1)).then_some(Fault::Changes);
        let store = Memory::new(ANY);
        store.script(changes);
        let error = run(manager(settings()).put_file(&path, &store.place("a"))).unwrap_err();
        assert!(matches!(error, Error::Corrupted(..)), "{error}");
        // If the store knows no checksums, the difference is detected by reading back.
        let store = Memory { knows_crc64: false, ..Memory::new(ANY) };
        store.script(changes);
        let error = run(manager(verified.clone()).put_file(&path, &store.place("a"))).unwrap_err();
        assert!(matches!(error, Error::Corrupted(..)), "{error}");
        // Downloads are also compared with the store's checksum.
        let store = Memory::new(ANY);
        run(manager(settings()).put_file(&path, &store.place("a"))).unwrap();
        store.script(|call, _| (call == Call::Get(0)).then_some(Fault::Changes));
        let error = run(manager(settings()).get_file(&store.place("a"), &target)).unwrap_err();
        assert!(matches!(error, Error::Corrupted(..)), "{error}");
        assert_eq!(names(folder.path()), ["file"], "no wrong file remains");
    }
}

#[test]
fn a_file_that_changes_meanwhile_is_refused() {
    type Change = fn(&std::path::Path);
    let changes: [(&str, Change); 5] = [
        ("longer", |path| {
            let file = OpenOptions::new().append(true).open(path).unwrap();
            file.set_len(file.metadata().unwrap().len() + 1).unwrap();
        }),
        ("shorter", |path| OpenOptions::new().write(true).open(path).unwrap().set_len(100).unwrap()),
        ("written to", |path| {
            let file = OpenOptions::new().write(true).open(path).unwrap();
            file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        }),
        ("removed", |path| fs::remove_file(path).unwrap()),
        ("replaced", |path| {
            fs::write(path.with_extension("new"), b"other").unwrap();
            fs::rename(path.with_extension("new"), path).unwrap();
        }),
    ];
    for (said, change) in changes {
        for journals in [false, true] {
            let (folder, path, _) = file(3_000_000);
            let journals = journals.then(|| folder.path().join("journals"));
            let (store, changing) = (Memory::new(ANY), path.clone());
            store.script(move |call, times| {
                if call == Call::Part(2) && times == 0 {
                    change(&changing);
                }
                None
            });
            let manager = manager(Settings { journals: journals.clone(), ..settings() });
            let error = run(manager.put_file(&path, &store.place("a"))).unwrap_err();
            assert!(matches!(error, Error::SourceChanged { .. }) && error.to_string().contains(said), "{error}");
            assert!(store.bytes("a").is_none() && store.lock().uploads.is_empty());
            assert!(journals.is_none_or(|journals| names(&journals).is_empty()));
        }
    }
}

#[test]
fn an_object_that_changes_meanwhile_is_refused() {
    let (folder, _, content) = file(3_000_000);
    let store = Memory::new(ANY);
    store.insert("a", &content);
    let changed = store.clone();
    store.script(move |call, times| {
        if matches!(call, Call::Get(500_000..)) && times == 0 {
            changed.insert("a", &[0; 3_000_000]);
        }
        None
    });
    let error = run(manager(settings()).get_file(&store.place("a"), &folder.path().join("target"))).unwrap_err();
    assert!(matches!(&error, Error::Store(Failure { kind: Kind::Changed, .. })), "{error}");
    assert_eq!(names(folder.path()), ["file"]);
}

/// A device must not be replaced by a regular file.
#[test]
fn a_device_is_not_replaced_by_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, store) = (folder.path().join("pipe"), Memory::new(ANY));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let error = run(manager(settings()).put_file(folder.path(), &store.place("a"))).unwrap_err();
    assert!(error.to_string().contains("it is not a regular file"), "{error}");
    store.insert("a", b"");
    let error = run(manager(settings()).get_file(&store.place("a"), folder.path())).unwrap_err();
    assert!(error.to_string().contains("directory"), "{error}");
    store.insert("a", b"through the pipe");
    let read = std::thread::scope(|scope| {
        let reader = scope.spawn(|| fs::read(&pipe).unwrap());
        run(manager(settings()).get_file(&store.place("a"), &pipe)).unwrap();
        reader.join().unwrap()
    });
    assert_eq!((&*read, names(folder.path())), (&b"through the pipe"[..], vec!["pipe".to_string()]));
}

#[test]
fn a_target_that_can_not_be_written_is_reported() {
    // No file can be created below `file`, because `file` is not a folder.
    let store = Memory::new(ANY);
    store.insert("a", &[1; 1000]);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), b"").unwrap();
    let error = run(manager(settings()).get_file(&store.place("a"), &folder.path().join("file/b"))).unwrap_err();
    assert!(error.to_string().contains("Not a directory"), "{error}");
    let full = std::path::Path::new("/dev/full");
    let mut out = OpenOptions::new().write(true).open(full).unwrap();
    let error = run(manager(settings()).get_stream(&store.place("a"), &mut out)).unwrap_err();
    assert!(error.to_string().contains("No space left"), "{error}");
}
