//! Tests of interrupted transfers: they are resumed, and no complete part is transferred twice.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ascertain_transfer::{
    Attributes, Error, Kind, Local, Location, Observer, Progress, Resume, Settings, Stop, TransferManager,
    TransferStatus,
};

use super::memory::{ANY, Call, Fault, Memory};
use super::{file, manager, names, run, settings};

/// Returns settings with a journal, small parts, and few parts in flight. A transfer can then be stopped in many
/// different states.
fn journalled(folder: &Path) -> Settings {
    Settings { journals: Some(folder.join("journals")), max_concurrency: 4, memory_bytes: 64 << 10, ..settings() }
}

/// Runs an upload that is stopped when part `at` is sent.
fn broken_put(store: &Memory, folder: &Path, path: &Path, at: usize) {
    let stop = Stop::new().unwrap();
    let token = stop.clone();
    store.script(move |call, _| {
        if call == Call::Part(at) {
            token.request();
            return Some(Fault::Hangs);
        }
        None
    });
    let manager = TransferManager::new(journalled(folder), stop, Box::new(()));
    let error = run(manager.put_file(path, &store.place("a"))).unwrap_err();
    assert!(matches!(error, Error::Stopped), "{error}");
    store.script(|_, _| None);
}

#[test]
fn a_resumed_put_sends_only_the_missing_parts() {
    let (folder, path, content) = file(6_000_000);
    let mut resumed_bytes = 0;
    for at in [0, 1, 30, 60] {
        let store = Memory::new(ANY);
        broken_put(&store, folder.path(), &path, at);
        assert!(store.bytes("a").is_none());
        let arrived: u64 =
            store.lock().uploads.values().flat_map(|blocks| blocks.values()).map(|b| b.len() as u64).sum();
        let before = store.lock().sent_bytes;
        let result = run(manager(journalled(folder.path())).put_file(&path, &store.place("a"))).unwrap();
        assert_eq!(store.bytes("a").unwrap(), content);
        let again = store.lock().sent_bytes - before;
        assert_eq!(result.resumed_bytes + again, content.len() as u64);
        // Only parts that were in flight at the stop may be sent twice: they had arrived, but were not recorded.
        let blocks = store.lock().calls.iter().filter(|call| matches!(call, Call::Part(_))).count();
        assert!(result.resumed_bytes <= arrived && blocks > 0);
        resumed_bytes += result.resumed_bytes;
        assert_eq!(store.count(|call| *call == Call::Begin), 1, "the same upload");
        assert!(names(&folder.path().join("journals")).is_empty());
    }
    // At least one attempt must have been resumed. On a busy machine, an early stop may have come before anything was
    // recorded.
    assert!(resumed_bytes > 0);
}

/// The store keeps the attributes with which an upload was started, so an upload with other attributes starts again.
#[test]
fn a_put_with_other_attributes_is_not_resumed() {
    let (folder, path, content) = file(6_000_000);
    for (content_type, preserve, is_same) in
        [(None, false, true), (Some("text/css"), false, false), (None, true, false)]
    {
        let store = Memory::new(ANY);
        broken_put(&store, folder.path(), &path, 60);
        let attributes = Attributes { content_type: content_type.map(String::from), ..Attributes::default() };
        let settings = Settings { attributes, preserve, ..journalled(folder.path()) };
        let result = run(manager(settings).put_file(&path, &store.place("a"))).unwrap();
        assert_eq!(store.bytes("a").unwrap(), content);
        let reason = result.restart_reason.as_deref();
        assert_eq!(reason.is_none(), is_same, "{reason:?}");
        assert!(reason.is_none_or(|reason| reason.contains("other metadata")), "{reason:?}");
        assert_eq!(store.count(|call| *call == Call::Begin), if is_same { 1 } else { 2 });
    }
}

#[test]
fn a_resumed_get_requests_only_the_missing_parts() {
    let (folder, _, content) = file(6_000_000);
    let target = folder.path().join("target");
    let mut resumed_bytes = 0;
    for at in [0, 1, 30, 60] {
        let store = Memory::new(ANY);
        store.insert("a", &content);
        let (stop, mut gets) = (Stop::new().unwrap(), 0);
        let token = stop.clone();
        store.script(move |call, _| {
            gets += usize::from(matches!(call, Call::Get(_)));
            (gets > at).then(|| token.request()).map(|()| Fault::Hangs)
        });
        let mover_1 = TransferManager::new(journalled(folder.path()), stop, Box::new(()));
        let error = run(mover_1.get_file(&store.place("a"), &target)).unwrap_err();
        assert!(matches!(error, Error::Stopped), "{error}");
        assert!(!target.exists());
        store.script(|_, _| None);
        // Simulates a power failure that destroyed some bytes of the file. These bytes must be fetched again.
        if at == 60 {
            let part = names(folder.path()).into_iter().find(|name| name.ends_with(".part")).unwrap();
            let part = fs::OpenOptions::new().write(true).open(folder.path().join(part)).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&part, &[0; 10], 100).unwrap();
        }
        let result = run(manager(journalled(folder.path())).get_file(&store.place("a"), &target)).unwrap();
        assert_eq!(fs::read(&target).unwrap(), content);
        resumed_bytes += result.resumed_bytes;
        assert_eq!(names(folder.path()), ["file", "journals", "target"]);
        assert!(names(&folder.path().join("journals")).is_empty());
        fs::remove_file(&target).unwrap();
    }
    // At least one attempt must have been resumed. On a busy machine, an early stop may have come before anything was
    // recorded.
    assert!(resumed_bytes > 0);
}

/// Without a tag, nothing shows whether the object is still the same, so the download is not resumed.
#[test]
fn an_object_without_a_tag_is_fetched_from_the_beginning() {
    let (folder, _, content) = file(6_000_000);
    let target = folder.path().join("target");
    let store = Memory { knows_crc64: false, identifies: false, ..Memory::new(ANY) };
    store.insert("a", &vec![7; content.len()]);
    let (stop, mut gets) = (Stop::new().unwrap(), 0);
    let token = stop.clone();
    store.script(move |call, _| {
        gets += usize::from(matches!(call, Call::Get(_)));
        (gets > 30).then(|| token.request()).map(|()| Fault::Hangs)
    });
    let broken = TransferManager::new(journalled(folder.path()), stop, Box::new(()));
    run(broken.get_file(&store.place("a"), &target)).unwrap_err();
    store.script(|_, _| None);
    store.insert("a", &content);
    let result = run(manager(journalled(folder.path())).get_file(&store.place("a"), &target)).unwrap();
    assert!(result.resumed_bytes == 0 && fs::read(&target).unwrap() == content);
}

#[test]
fn a_changed_side_is_a_reason_to_restart_or_refuse() {
    let (folder, path, _) = file(3_000_000);
    let again = |store: &Memory, resume| {
        run(manager(Settings { resume, ..journalled(folder.path()) }).put_file(&path, &store.place("a")))
    };
    let refused = |store: &Memory| {
        let said = again(store, Resume::Only).unwrap_err().to_string();
        assert!(said.contains("has changed since"), "{said}");
        let anew = again(store, Resume::IfSame).unwrap();
        assert!(anew.restart_reason.is_some_and(|why| why.contains("has changed since")) && anew.resumed_bytes == 0);
        assert!(store.lock().uploads.is_empty(), "the old upload is aborted");
        assert_eq!(store.bytes("a").unwrap(), fs::read(&path).unwrap());
    };
    let store = Memory::new(ANY);
    broken_put(&store, folder.path(), &path, 20);
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    refused(&store);
    let store = Memory::new(ANY);
    broken_put(&store, folder.path(), &path, 20);
    store.insert("a", b"somebody else's");
    refused(&store);
}

#[test]
fn a_commit_of_a_killed_process_is_recognized() {
    for knows_crc64 in [true, false] {
        let (folder, path, content) = file(3_000_000);
        let store = Memory { knows_crc64, ..Memory::new(ANY) };
        let stop = Stop::new().unwrap();
        let token = stop.clone();
        store.script(move |call, _| {
            (call == Call::Commit).then(|| token.request());
            None
        });
        let broken = TransferManager::new(journalled(folder.path()), stop, Box::new(()));
        // By chance, the stop comes before or after the answer. The result must be correct in both cases.
        let first = run(broken.put_file(&path, &store.place("a")));
        let sent = store.lock().sent_bytes;
        if first.is_err() && store.bytes("a").is_none() {
            // The stop came before the commit was carried out. To simulate a stop just after the commit, the test
            // carries out the commit now.
            let mut state = store.lock();
            let (id, blocks) = state.uploads.pop_first().unwrap();
            assert!(!id.is_empty());
            drop(state);
            store.insert("a", &blocks.into_values().flatten().collect::<Vec<u8>>());
        }
        store.script(|_, _| None);
        let result = run(manager(journalled(folder.path())).put_file(&path, &store.place("a"))).unwrap();
        assert_eq!(store.bytes("a").unwrap(), content);
        if first.is_err() {
            assert_eq!((result.resumed_bytes, store.lock().sent_bytes), (3_000_000, sent));
        }
        assert!(names(&folder.path().join("journals")).is_empty());
    }
}

/// The store completes the commit of a killed process just before the next process sends its own. If the object had the
/// same bytes before, even its ETag is the same.
#[test]
fn a_late_commit_is_recognized() {
    for (knows_crc64, is_there) in [(true, false), (false, false), (true, true), (false, true)] {
        let (folder, path, content) = file(3_000_000);
        let store = Memory { knows_crc64, ..Memory::new(ANY) };
        if is_there {
            store.insert("a", &content);
        }
        broken_put(&store, folder.path(), &path, 20);
        let late = store.clone();
        let whole = content.clone();
        store.script(move |call, times| {
            if call == Call::Commit && times == 0 {
                late.lock().uploads.clear();
                if !is_there {
                    late.insert("a", &whole);
                }
            }
            None
        });
        let result = run(manager(journalled(folder.path())).put_file(&path, &store.place("a"))).unwrap();
        assert_eq!((result.bytes, store.bytes("a").unwrap()), (3_000_000, content.into()));
        assert_eq!(store.count(|call| *call == Call::Commit), 1);
        assert!(names(&folder.path().join("journals")).is_empty());
    }
}

#[test]
fn a_failed_transfer_is_resumed_like_a_stopped_one() {
    let (folder, path, content) = file(3_000_000);
    let store = Memory::new(ANY);
    store.script(|call, _| (call == Call::Part(30)).then_some(Fault::Fails(Kind::Full)));
    run(manager(journalled(folder.path())).put_file(&path, &store.place("a"))).unwrap_err();
    store.script(|_, _| None);
    let result = run(manager(journalled(folder.path())).put_file(&path, &store.place("a"))).unwrap();
    assert!(result.resumed_bytes > 0);
    assert_eq!(store.bytes("a").unwrap(), content);
}

/// No part was transferred, and the store has removed the upload. The transfer starts again, or is refused.
#[test]
fn a_missing_upload_is_a_reason_to_restart_or_refuse() {
    let (folder, path, content) = file(3_000_000);
    let store = Memory::new(ANY);
    store.script(|call, _| matches!(call, Call::Part(_)).then_some(Fault::Fails(Kind::Full)));
    run(manager(journalled(folder.path())).put_file(&path, &store.place("a"))).unwrap_err();
    store.script(|_, _| None);
    store.lock().uploads.clear();
    let again =
        |resume| run(manager(Settings { resume, ..journalled(folder.path()) }).put_file(&path, &store.place("a")));
    let error = again(Resume::Only).unwrap_err();
    assert!(matches!(error, Error::CantResume(..)), "{error}");
    assert!(again(Resume::IfSame).unwrap().restart_reason.is_some());
    assert_eq!(store.bytes("a").unwrap(), content);
}

/// If the parts can't be assembled and there is a journal, the parts are kept, but not the incomplete file.
#[test]
fn parts_that_could_not_be_assembled_are_kept() {
    /// An observer that creates a folder with the object's name as soon as there is progress. The object can then not
    /// be created.
    struct TakesName(PathBuf);

    impl Observer for TakesName {
        fn progress(&self, _: &Progress<'_>) {
            fs::create_dir_all(&self.0).unwrap();
        }
    }

    let (folder, path, content) = file(3_000_000);
    let there = folder.path().join("store/a");
    let store = Arc::new(Local::new(folder.path().join("store")));
    let place = Location { store, name: "a".into(), address: "file:///a".into() };
    let takes = TransferManager::new(journalled(folder.path()), Stop::default(), Box::new(TakesName(there.clone())));
    run(takes.put_file(&path, &place)).unwrap_err();
    fs::remove_dir(&there).unwrap();
    let upload = names(&folder.path().join("store")).into_iter().next().unwrap();
    let left = names(&folder.path().join("store").join(upload));
    assert!(!left.is_empty() && left.iter().all(|name| name.parse::<usize>().is_ok()), "{left:?}");
    let result = run(manager(journalled(folder.path())).put_file(&path, &place)).unwrap();
    assert_eq!((result.resumed_bytes, fs::read(&there).unwrap()), (3_000_000, content));
    assert_eq!(names(&folder.path().join("store")), ["a"]);
}

#[test]
fn a_journal_contains_no_secrets() {
    let (folder, path, _) = file(3_000_000);
    let store = Memory::new(ANY);
    broken_put(&store, folder.path(), &path, 20);
    let journals = folder.path().join("journals");
    let text = fs::read_to_string(journals.join(&names(&journals)[0])).unwrap();
    let words: Vec<&str> = text.split(['"', ':', ',', '{', '}']).filter(|word| !word.is_empty()).collect();
    // The journal must identify the object only by its displayed address.
    assert!(words.contains(&"token-0") || words.contains(&"cut"), "{text}");
    assert!(text.contains("memory://a"), "{text}");
}

#[test]
fn two_processes_do_not_transfer_the_same_file_at_once() {
    let (folder, path, _) = file(3_000_000);
    let store = Memory::new(ANY);
    store.script(|call, _| (call == Call::Part(3)).then_some(Fault::Hangs));
    run(async {
        let [one, other] = [(); 2].map(|()| manager(journalled(folder.path())));
        let place = store.place("a");
        let first = one.put_file(&path, &place);
        tokio::pin!(first);
        tokio::select! {
            _ = &mut first => panic!("a block hangs"),
            () = async {
                while store.count(|call| *call == Call::Part(3)) == 0 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            } => {}
        }
        let error = other.put_file(&path, &place).await.unwrap_err();
        assert!(matches!(error, Error::InUse { .. }), "{error}");
    });
}

/// Another process may create the object or the file during the transfer. The transferred bytes are then useless.
#[test]
fn if_another_process_was_first_nothing_is_kept() {
    let (folder, path, content) = file(3_000_000);
    let once = || manager(Settings { no_clobber: true, ..journalled(folder.path()) });
    let store = Memory::new(ANY);
    let other = store.clone();
    store.script(move |call, _| {
        if call == Call::Commit {
            other.insert("a", b"the other one");
        }
        None
    });
    let result = run(once().put_file(&path, &store.place("a"))).unwrap();
    assert!(matches!(result.status, TransferStatus::Exists), "{result:?}");
    assert!(store.lock().uploads.is_empty(), "the upload is aborted");
    store.insert("b", &content);
    let target = folder.path().join("target");
    let created = target.clone();
    store.script(move |call, _| {
        if matches!(call, Call::Get(1..)) {
            fs::write(&created, "the other one").unwrap();
        }
        None
    });
    let result = run(once().get_file(&store.place("b"), &target)).unwrap();
    assert!(matches!(result.status, TransferStatus::Exists), "{result:?}");
    assert_eq!(fs::read(&target).unwrap(), b"the other one");
    assert_eq!(names(folder.path()), ["file", "journals", "target"]);
    assert!(names(&folder.path().join("journals")).is_empty());
}

/// The file is complete in the store, but the process is killed before the file was read back.
#[test]
fn a_file_that_was_not_read_back_is_not_sent_again() {
    for knows_crc64 in [true, false] {
        let (folder, path, content) = file(3_000_000);
        let verified = Settings { verify: true, ..journalled(folder.path()) };
        let store = Memory { knows_crc64, ..Memory::new(ANY) };
        let stop = Stop::new().unwrap();
        let token = stop.clone();
        store.script(move |call, _| matches!(call, Call::Get(_)).then(|| token.request()).map(|()| Fault::Hangs));
        let broken = TransferManager::new(verified.clone(), stop, Box::new(()));
        let error = run(broken.put_file(&path, &store.place("a"))).unwrap_err();
        assert!(matches!(error, Error::Stopped), "{error}");
        store.script(|_, _| None);
        let sent = store.lock().sent_bytes;
        let result = run(manager(verified).put_file(&path, &store.place("a"))).unwrap();
        assert!(result.verified && store.bytes("a").unwrap() == content);
        assert_eq!((result.resumed_bytes, store.lock().sent_bytes), (3_000_000, sent));
        assert!(names(&folder.path().join("journals")).is_empty());
    }
}

/// The next command skips the object that was not read back, so it has no use for a journal.
#[test]
fn a_file_that_the_next_command_skips_has_no_journal() {
    for no_clobber in [true, false] {
        let (folder, path, content) = file(3_000_000);
        let settings = Settings { verify: true, no_clobber, skip_unchanged: !no_clobber, ..journalled(folder.path()) };
        let (store, stop) = (Memory::new(ANY), Stop::new().unwrap());
        let token = stop.clone();
        store.script(move |call, _| matches!(call, Call::Get(_)).then(|| token.request()).map(|()| Fault::Hangs));
        let broken = TransferManager::new(settings.clone(), stop, Box::new(()));
        let error = run(broken.put_file(&path, &store.place("a"))).unwrap_err();
        assert!(matches!(error, Error::Stopped) && store.bytes("a").unwrap() == content, "{error}");
        assert!(names(&folder.path().join("journals")).is_empty());
        let result = run(manager(settings).put_file(&path, &store.place("a"))).unwrap();
        assert!(matches!(result.status, TransferStatus::Exists | TransferStatus::Unchanged), "{result:?}");
    }
}

/// A file that was damaged in the store must be sent again by the next command.
#[test]
fn a_file_that_was_stored_wrongly_has_no_journal() {
    let (folder, path, content) = file(3_000_000);
    let verified = Settings { verify: true, ..journalled(folder.path()) };
    let store = Memory { knows_crc64: false, ..Memory::new(ANY) };
    store.script(|call, _| (call == Call::Part(3)).then_some(Fault::Changes));
    let error = run(manager(verified.clone()).put_file(&path, &store.place("a"))).unwrap_err();
    assert!(matches!(error, Error::Corrupted(_)), "{error}");
    assert!(names(&folder.path().join("journals")).is_empty());
    store.script(|_, _| None);
    run(manager(verified).put_file(&path, &store.place("a"))).unwrap();
    assert_eq!(store.bytes("a").unwrap(), content);
}

/// Comparing large files takes long, and must end when a stop is requested.
#[test]
fn a_stop_ends_a_comparison_with_a_local_file() {
    let (folder, path, content) = file(3_000_000);
    for is_put in [true, false] {
        let (store, stop) = (Memory::new(ANY), Stop::new().unwrap());
        store.insert("a", &content);
        let token = stop.clone();
        store.script(move |call, _| {
            if call == Call::Head {
                token.request();
            }
            None
        });
        let unchanged = TransferManager::new(Settings { skip_unchanged: true, ..settings() }, stop, Box::new(()));
        let place = store.place("a");
        let compared = run(async {
            match is_put {
                true => unchanged.put_file(&path, &place).await,
                false => unchanged.get_file(&place, &path).await,
            }
        });
        assert!(matches!(compared, Err(Error::Stopped)), "{compared:?}");
    }
    drop(folder);
}

/// If the store does not abort an upload that is not resumed, a record of the upload stays.
#[test]
fn an_upload_that_was_not_aborted_stays_recorded() {
    for is_fresh in [true, false] {
        let (folder, path, _) = file(3_000_000);
        let (store, journals) = (Memory::new(ANY), folder.path().join("journals"));
        let settings = Settings { journals: Some(journals.clone()), retries: 0, ..settings() };
        let kind = Kind::Denied;
        store.script(move |call, _| (call == Call::Part(2)).then_some(Fault::Fails(kind)));
        run(manager(settings.clone()).put_file(&path, &store.place("a"))).unwrap_err();
        let changed = path.clone();
        store.script(move |call, n| {
            if !is_fresh && call == Call::Part(2) && n == 1 {
                std::fs::write(&changed, "x").unwrap();
            }
            (call == Call::Abort).then_some(Fault::Fails(kind))
        });
        let resume = if is_fresh { Resume::Never } else { Resume::IfSame };
        let put = run(manager(Settings { resume, ..settings }).put_file(&path, &store.place("a")));
        assert_eq!(put.is_ok(), is_fresh, "{put:?}");
        assert_eq!((store.lock().uploads.len(), names(&journals).len()), (1, 1), "{is_fresh}");
    }
}
