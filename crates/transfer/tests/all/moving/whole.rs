//! What arrives is what was sent.

use ascertain_transfer::{Error, Limits, Local, Many, Mover, Place, Skipped, Stop, Terms, crc64};

use super::memory::{ANY, Memory};
use super::{file, mover, names, noise, run, terms};

pub const S3: Limits = Limits { min_block_bytes: 5 << 20, max_blocks: 10_000, ..ANY };

#[test]
fn files_of_all_sizes_go_there_and_back() {
    for limits in [ANY, S3, Limits { max_blocks: 3, ..ANY }] {
        for bytes in [0, 1, 1000, (512 << 10) + 1, 5 << 20, (5 << 20) + 1, 17_000_000] {
            let (folder, path, content) = file(bytes);
            let store = Memory::new(limits);
            let mover = mover(Terms { verify: true, ..terms() });
            let put = run(mover.put_file(&path, &store.place("a/b"))).unwrap();
            assert_eq!(store.bytes("a/b").unwrap(), content);
            assert_eq!((put.bytes, put.crc64, put.verified), (bytes as u64, Some(crc64(&content)), true));
            assert_eq!(store.lock().sent_bytes, bytes as u64, "nothing is sent twice");
            assert!(store.lock().uploads.is_empty());
            let target = folder.path().join("target");
            let got = run(mover.get_file(&store.place("a/b"), &target)).unwrap();
            assert_eq!(std::fs::read(&target).unwrap(), content);
            assert_eq!((got.bytes, got.crc64), (bytes as u64, Some(crc64(&content))));
            assert_eq!(names(folder.path()), ["file", "target"]);
            let mut stream = Vec::new();
            run(mover.get_stream(&store.place("a/b"), &mut stream)).unwrap();
            assert!(stream == content);
        }
    }
}

#[test]
fn none_at_once_is_one() {
    let (folder, path, content) = file(3_000_000);
    let store = Memory::new(ANY);
    let mover = mover(Terms { max_concurrency: 0, ..terms() });
    run(mover.put_file(&path, &store.place("a"))).unwrap();
    run(mover.get_file(&store.place("a"), &folder.path().join("target"))).unwrap();
    assert!(std::fs::read(folder.path().join("target")).unwrap() == content);
}

#[test]
fn streams_of_unknown_length() {
    for bytes in [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 7_000_000] {
        let content = noise(bytes);
        let store = Memory::new(Limits { max_blocks: 30, ..ANY });
        let moved =
            run(mover(Terms { verify: true, ..terms() }).put_stream(&mut &content[..], &store.place("a"))).unwrap();
        assert_eq!(store.bytes("a").unwrap(), content, "{bytes}");
        assert_eq!((moved.bytes, moved.crc64, moved.verified), (bytes as u64, Some(crc64(&content)), true));
    }
    // Blocks of 5 MiB double ten times; three blocks are too few.
    let store = Memory::new(Limits { max_block_bytes: 1 << 20, max_blocks: 3, ..ANY });
    let error = run(mover(terms()).put_stream(&mut &noise(5 << 20)[..], &store.place("a"))).unwrap_err();
    assert!(error.to_string().contains("3 blocks at most"), "{error}");
    assert!(store.lock().uploads.is_empty() && store.bytes("a").is_none());
}

/// A pipe, and a file that says that it is empty and is not.
#[test]
fn what_has_no_length_is_read_to_its_end() {
    let (folder, store, mover) = (tempfile::tempdir().unwrap(), Memory::new(ANY), mover(terms()));
    let (pipe, content) = (folder.path().join("pipe"), noise(3_000_000));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::thread::scope(|scope| {
        let wrote = scope.spawn(|| std::fs::write(&pipe, &content).unwrap());
        run(mover.put_file(&pipe, &store.place("a"))).unwrap();
        wrote.join().unwrap();
    });
    assert!(store.bytes("a").unwrap() == content);
    #[cfg(target_os = "linux")]
    {
        let own = std::path::Path::new("/proc/self/status");
        assert!(std::fs::metadata(own).unwrap().len() == 0 && std::fs::metadata(own).unwrap().is_file());
        run(mover.put_file(own, &store.place("a"))).unwrap();
        assert!(store.bytes("a").unwrap().starts_with(b"Name:"));
    }
}

/// Whoever waits for the other end of a pipe can be called back.
#[test]
fn a_pipe_is_not_waited_for_when_the_end_was_asked_for() {
    let (folder, store, stop) = (tempfile::tempdir().unwrap(), Memory::new(ANY), Stop::default());
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mover = Mover::new(terms(), stop.clone(), Box::new(()));
    stop.ask();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let error = runtime.block_on(mover.put_file(&pipe, &store.place("a"))).unwrap_err();
    runtime.shutdown_background();
    assert!(matches!(error, Error::Stopped), "{error}");
}

#[test]
fn a_file_is_not_moved_onto_itself() {
    let (folder, path, content) = file(3_000_000);
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let store = std::sync::Arc::new(Local::new(folder.path()));
    let place = Place { store, name: "file".into(), shown: "file:///file".into() };
    let mover = std::sync::Arc::new(mover(terms()));
    let whole = Place { name: String::new(), shown: "file:///".into(), ..place.clone() };
    let errors = [
        run(mover.put_file(&path, &place)).unwrap_err(),
        run(mover.put_file(&link, &place)).unwrap_err(),
        run(mover.get_file(&place, &link)).unwrap_err(),
        run(mover.put_many(&[folder.path().into()], &whole, &Many::default())).unwrap_err(),
        run(mover.get_many(&whole, folder.path(), &Many::default())).unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("are the same file"), "{error}");
    }
    assert!(std::fs::read(&path).unwrap() == content && link.is_symlink());
}

/// What would take more is refused, with the least that does, and nobody is asked for anything.
#[test]
fn memory_for_no_block_is_refused() {
    let (folder, path, content) = file(6_000_000);
    let said = Many { dry_run: true, ..Many::default() };
    for (limits, memory_bytes, least) in [(ANY, 65_535, "64KiB"), (S3, (5 << 20) - 1, "5MiB")] {
        let store = Memory::new(limits);
        let mover = std::sync::Arc::new(mover(Terms { memory_bytes, ..terms() }));
        for error in [
            run(mover.put_file(&path, &store.place("a"))).unwrap_err(),
            run(mover.put_many(&[folder.path().into()], &store.place("a/"), &Many::default())).unwrap_err(),
            run(mover.put_stream(&mut &content[..], &store.place("a"))).unwrap_err(),
            run(mover.put_many(&["/dev/null".into()], &store.place("a/"), &said)).unwrap_err(),
        ] {
            assert!(error.to_string().contains(&format!("--memory {least} ")), "{error}");
        }
        if memory_bytes < 65_536 {
            assert!(run(mover.get_file(&store.place("a"), &folder.path().join("b"))).is_err());
        }
        assert!(store.lock().calls.is_empty());
    }
    // The least is enough, and a small file needs no whole block.
    for (limits, memory_bytes, bytes) in [(ANY, 1 << 16, 300_000), (S3, 5 << 20, 6_000_000), (S3, 1 << 20, 1_000_000)] {
        let (_folder, path, content) = file(bytes);
        let store = Memory::new(limits);
        let mover = mover(Terms { memory_bytes, ..terms() });
        run(mover.put_file(&path, &store.place("a"))).unwrap();
        assert!(store.bytes("a").unwrap() == content && store.lock().under_way.1 <= memory_bytes);
        if memory_bytes >= limits.min_block_bytes {
            run(mover.put_stream(&mut &content[..], &store.place("b"))).unwrap();
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
        run(mover(terms()).put_file(&path, &place)).unwrap();
        assert_eq!(store.lock().objects["a.html"].content_type.as_deref(), Some("text/html"));
        let sent = store.lock().sent_bytes;
        let unchanged = mover(Terms { skip_unchanged: true, ..terms() });
        let moved = run(unchanged.put_file(&path, &place)).unwrap();
        assert_eq!(moved.skipped, Some(Skipped::Unchanged));
        let target = folder.path().join("target");
        assert_eq!(run(unchanged.get_file(&place, &target)).unwrap().skipped, None);
        assert_eq!(run(unchanged.get_file(&place, &target)).unwrap().skipped, Some(Skipped::Unchanged));
        let kept = mover(Terms { no_clobber: true, ..terms() });
        assert_eq!(run(kept.put_file(&path, &place)).unwrap().skipped, Some(Skipped::Exists));
        assert_eq!(run(kept.put_stream(&mut &b"x"[..], &place)).unwrap().skipped, Some(Skipped::Exists));
        assert_eq!(run(kept.get_file(&place, &target)).unwrap().skipped, Some(Skipped::Exists));
        assert_eq!(store.lock().sent_bytes, sent);
        // One byte differs.
        store.insert("a.html", &[&content[1..], b"?"].concat());
        let differs = run(unchanged.get_file(&place, &target)).unwrap();
        assert_eq!(differs.skipped, None);
        std::fs::remove_file(&target).unwrap();
    }
}

#[test]
fn files_of_this_machine_are_a_store() {
    let (folder, path, content) = file(3_000_000);
    let store = std::sync::Arc::new(Local::new(folder.path().join("store")));
    let place = Place { store, name: "deep/er/ü b".into(), shown: "file:///deep/er/ü b".into() };
    let mover = mover(Terms { verify: true, ..terms() });
    run(mover.put_file(&path, &place)).unwrap();
    assert_eq!(std::fs::read(folder.path().join("store/deep/er/ü b")).unwrap(), content);
    assert_eq!(names(&folder.path().join("store/deep/er")), ["ü b"]);
    let target = folder.path().join("target");
    run(mover.get_file(&place, &target)).unwrap();
    assert_eq!(std::fs::read(target).unwrap(), content);
    // The longest name that a file can have.
    let long = Place { name: format!("x{}", "é".repeat(127)), shown: "file:///long".into(), ..place.clone() };
    run(mover.put_file(&path, &long)).unwrap();
    let target = folder.path().join(&long.name);
    run(mover.get_file(&long, &target)).unwrap();
    assert_eq!(std::fs::read(target).unwrap(), content);
    let longer = Place { name: "x".repeat(256), shown: "file:///longer".into(), ..place.clone() };
    let error = run(mover.put_file(&path, &longer)).unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
    let missing = Place { name: "nothing".into(), shown: "file:///nothing".into(), ..place.clone() };
    let error = run(mover.get_file(&missing, &folder.path().join("x"))).unwrap_err();
    assert!(error.to_string().contains("file:///nothing: there is no such file"), "{error}");
    let out = Place { name: "../escaped".into(), ..place };
    assert!(run(mover.put_file(&path, &out)).unwrap_err().to_string().contains("leads out"));
    assert!(!folder.path().join("escaped").exists());
}
