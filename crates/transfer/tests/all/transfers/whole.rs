//! Tests that the bytes that arrive are the bytes that were sent.

use ascertain_transfer::{
    Error, Limits, Local, Location, Selection, Settings, Stop, TransferManager, TransferStatus, crc64,
};

use super::memory::{ANY, Memory};
use super::{file, manager, names, noise, run, settings};

pub const S3: Limits = Limits { min_part_bytes: 5 << 20, max_parts: 10_000, ..ANY };

#[test]
fn files_of_all_sizes_go_there_and_back() {
    for limits in [ANY, S3, Limits { max_parts: 3, ..ANY }] {
        for bytes in [0, 1, 1000, (512 << 10) + 1, 5 << 20, (5 << 20) + 1, 17_000_000] {
            let (folder, path, content) = file(bytes);
            let store = Memory::new(limits);
            let manager = manager(Settings { verify: true, ..settings() });
            let put = run(manager.put_file(&path, &store.place("a/b"))).unwrap();
            assert_eq!(store.bytes("a/b").unwrap(), content);
            assert_eq!((put.bytes, put.crc64, put.verified), (bytes as u64, Some(crc64(&content)), true));
            assert_eq!(store.lock().sent_bytes, bytes as u64, "nothing is sent twice");
            assert!(store.lock().uploads.is_empty());
            let target = folder.path().join("target");
            let got = run(manager.get_file(&store.place("a/b"), &target)).unwrap();
            assert_eq!(std::fs::read(&target).unwrap(), content);
            assert_eq!((got.bytes, got.crc64), (bytes as u64, Some(crc64(&content))));
            assert_eq!(names(folder.path()), ["file", "target"]);
            let mut stream = Vec::new();
            run(manager.get_stream(&store.place("a/b"), &mut stream)).unwrap();
            assert!(stream == content);
        }
    }
}

#[test]
fn none_at_once_is_one() {
    let (folder, path, content) = file(3_000_000);
    let store = Memory::new(ANY);
    let manager = manager(Settings { max_concurrency: 0, ..settings() });
    run(manager.put_file(&path, &store.place("a"))).unwrap();
    run(manager.get_file(&store.place("a"), &folder.path().join("target"))).unwrap();
    assert!(std::fs::read(folder.path().join("target")).unwrap() == content);
}

#[test]
fn streams_of_unknown_length() {
    for bytes in [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 7_000_000] {
        let content = noise(bytes);
        let store = Memory::new(Limits { max_parts: 30, ..ANY });
        let result =
            run(manager(Settings { verify: true, ..settings() }).put_stream(&mut &content[..], &store.place("a")))
                .unwrap();
        assert_eq!(store.bytes("a").unwrap(), content, "{bytes}");
        assert_eq!((result.bytes, result.crc64, result.verified), (bytes as u64, Some(crc64(&content)), true));
    }
    // Three parts of the maximum size, the most that the store permits, are too small for this stream.
    let store = Memory::new(Limits { max_part_bytes: 1 << 20, max_parts: 3, ..ANY });
    let error = run(manager(settings()).put_stream(&mut &noise(5 << 20)[..], &store.place("a"))).unwrap_err();
    assert!(error.to_string().contains("more than 3 parts"), "{error}");
    assert!(store.lock().uploads.is_empty() && store.bytes("a").is_none());
}

/// Tests a pipe, and a file of `/proc`, which reports a size of zero although it is not empty.
#[test]
fn what_has_no_length_is_read_to_its_end() {
    let (folder, store, manager) = (tempfile::tempdir().unwrap(), Memory::new(ANY), manager(settings()));
    let (pipe, content) = (folder.path().join("pipe"), noise(3_000_000));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::thread::scope(|scope| {
        let wrote = scope.spawn(|| std::fs::write(&pipe, &content).unwrap());
        run(manager.put_file(&pipe, &store.place("a"))).unwrap();
        wrote.join().unwrap();
    });
    assert!(store.bytes("a").unwrap() == content);
    #[cfg(target_os = "linux")]
    {
        let own = std::path::Path::new("/proc/self/status");
        assert!(std::fs::metadata(own).unwrap().len() == 0 && std::fs::metadata(own).unwrap().is_file());
        run(manager.put_file(own, &store.place("a"))).unwrap();
        assert!(store.bytes("a").unwrap().starts_with(b"Name:"));
    }
}

/// A stop interrupts a transfer that waits for another process to open a pipe.
#[test]
fn a_pipe_is_not_waited_for_when_the_end_was_asked_for() {
    let (folder, store, stop) = (tempfile::tempdir().unwrap(), Memory::new(ANY), Stop::new().unwrap());
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let manager = TransferManager::new(settings(), stop.clone(), Box::new(()));
    stop.request();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let error = runtime.block_on(manager.put_file(&pipe, &store.place("a"))).unwrap_err();
    runtime.shutdown_background();
    assert!(matches!(error, Error::Stopped), "{error}");
}

#[test]
fn a_file_is_not_copied_onto_itself() {
    let (folder, path, content) = file(3_000_000);
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let store = std::sync::Arc::new(Local::new(folder.path()));
    let place = Location { store, name: "file".into(), address: "file:///file".into() };
    let manager = std::sync::Arc::new(manager(settings()));
    let whole = Location { name: String::new(), address: "file:///".into(), ..place.clone() };
    let errors = [
        run(manager.put_file(&path, &place)).unwrap_err(),
        run(manager.put_file(&link, &place)).unwrap_err(),
        run(manager.get_file(&place, &link)).unwrap_err(),
        run(manager.put_many(&[folder.path().into()], &whole, &Selection::default())).unwrap_err(),
        run(manager.get_many(&whole, folder.path(), &Selection::default())).unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("are the same file"), "{error}");
    }
    assert!(std::fs::read(&path).unwrap() == content && link.is_symlink());
}

/// If the memory limit is too low, the error contains the lowest possible limit, and no request is sent.
#[test]
fn memory_for_no_block_is_refused() {
    let (folder, path, content) = file(6_000_000);
    for (limits, memory_bytes, least) in [(ANY, 65_535, 64 << 10), (S3, (5 << 20) - 1, 5 << 20)] {
        let store = Memory::new(limits);
        let dry = manager(Settings { memory_bytes, dry_run: true, ..settings() });
        let manager = manager(Settings { memory_bytes, ..settings() });
        for error in [
            run(manager.put_file(&path, &store.place("a"))).unwrap_err(),
            run(manager.put_many(&[folder.path().into()], &store.place("a/"), &Selection::default())).unwrap_err(),
            run(manager.put_stream(&mut &content[..], &store.place("a"))).unwrap_err(),
            run(dry.put_many(&["/dev/null".into()], &store.place("a/"), &Selection::default())).unwrap_err(),
        ] {
            assert!(matches!(error, Error::TooLittleMemory { least_bytes, .. } if least_bytes == least), "{error}");
        }
        if memory_bytes < 65_536 {
            assert!(run(manager.get_file(&store.place("a"), &folder.path().join("b"))).is_err());
        }
        assert!(store.lock().calls.is_empty());
    }
    // The lowest possible limit is sufficient. A small file needs less memory than a whole part.
    for (limits, memory_bytes, bytes) in [(ANY, 1 << 16, 300_000), (S3, 5 << 20, 6_000_000), (S3, 1 << 20, 1_000_000)] {
        let (_folder, path, content) = file(bytes);
        let store = Memory::new(limits);
        let manager = manager(Settings { memory_bytes, ..settings() });
        run(manager.put_file(&path, &store.place("a"))).unwrap();
        assert!(store.bytes("a").unwrap() == content && store.lock().under_way.1 <= memory_bytes);
        if memory_bytes >= limits.min_part_bytes {
            run(manager.put_stream(&mut &content[..], &store.place("b"))).unwrap();
            assert!(store.bytes("b").unwrap() == content && store.lock().under_way.1 <= memory_bytes);
        }
    }
}

#[test]
fn what_is_there_is_left_alone_if_asked() {
    let (folder, path, content) = file(1_000_000);
    for knows_crc64 in [true, false] {
        let store = Memory { knows_crc64, ..Memory::new(ANY) };
        let place = store.place("a.html");
        run(manager(settings()).put_file(&path, &place)).unwrap();
        assert_eq!(store.lock().objects["a.html"].content_type.as_deref(), Some("text/html"));
        let sent = store.lock().sent_bytes;
        let unchanged = manager(Settings { skip_unchanged: true, ..settings() });
        let result = run(unchanged.put_file(&path, &place)).unwrap();
        assert!(matches!(result.status, TransferStatus::Unchanged));
        let target = folder.path().join("target");
        assert!(run(unchanged.get_file(&place, &target)).unwrap().is_transferred());
        assert!(matches!(run(unchanged.get_file(&place, &target)).unwrap().status, TransferStatus::Unchanged));
        let kept = manager(Settings { no_clobber: true, ..settings() });
        assert!(matches!(run(kept.put_file(&path, &place)).unwrap().status, TransferStatus::Exists));
        assert!(matches!(run(kept.put_stream(&mut &b"x"[..], &place)).unwrap().status, TransferStatus::Exists));
        assert!(matches!(run(kept.get_file(&place, &target)).unwrap().status, TransferStatus::Exists));
        assert_eq!(store.lock().sent_bytes, sent);
        // The stored object differs from the file in one byte.
        store.insert("a.html", &[&content[1..], b"?"].concat());
        let differs = run(unchanged.get_file(&place, &target)).unwrap();
        assert!(differs.is_transferred());
        std::fs::remove_file(&target).unwrap();
    }
}

#[test]
fn files_of_this_machine_are_a_store() {
    let (folder, path, content) = file(3_000_000);
    let store = std::sync::Arc::new(Local::new(folder.path().join("store")));
    let place = Location { store, name: "deep/er/ü b".into(), address: "file:///deep/er/ü b".into() };
    let manager = manager(Settings { verify: true, ..settings() });
    run(manager.put_file(&path, &place)).unwrap();
    assert_eq!(std::fs::read(folder.path().join("store/deep/er/ü b")).unwrap(), content);
    assert_eq!(names(&folder.path().join("store/deep/er")), ["ü b"]);
    let target = folder.path().join("target");
    run(manager.get_file(&place, &target)).unwrap();
    assert_eq!(std::fs::read(target).unwrap(), content);
    // A file name of 255 bytes, the longest possible one.
    let long = Location { name: format!("x{}", "é".repeat(127)), address: "file:///long".into(), ..place.clone() };
    run(manager.put_file(&path, &long)).unwrap();
    let target = folder.path().join(&long.name);
    run(manager.get_file(&long, &target)).unwrap();
    assert_eq!(std::fs::read(target).unwrap(), content);
    let longer = Location { name: "x".repeat(256), address: "file:///longer".into(), ..place.clone() };
    let error = run(manager.put_file(&path, &longer)).unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
    let missing = Location { name: "nothing".into(), address: "file:///nothing".into(), ..place.clone() };
    let error = run(manager.get_file(&missing, &folder.path().join("x"))).unwrap_err();
    assert!(error.to_string().contains("file:///nothing: there is no such file"), "{error}");
    let out = Location { name: "../escaped".into(), ..place };
    assert!(run(manager.put_file(&path, &out)).unwrap_err().to_string().contains("leads out"));
    assert!(!folder.path().join("escaped").exists());
}
