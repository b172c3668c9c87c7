//! What arrives is what was sent.

use std::time::Duration;

use ascertain_transfer::{Error, Limits, Local, Many, Moved, Mover, Place, Skipped, Stop, Terms, crc64};

use super::memory::{ANY, Call, Fault, Memory};
use super::{file, mover, names, noise, run, terms};

const S3: Limits = Limits { min_block_bytes: 5 << 20, max_blocks: 10_000, ..ANY };

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
fn blocks_under_way_fit_into_memory_and_a_plan_is_made() {
    let (_folder, path, _) = file(40_000_000);
    for memory_bytes in [1 << 20, 4 << 20] {
        let store = Memory::new(ANY);
        let moved = run(mover(Terms { memory_bytes, ..terms() }).put_file(&path, &store.place("a"))).unwrap();
        let most = store.lock().under_way.1;
        assert!(most <= memory_bytes, "{most}");
        assert!(moved.blocks > 10 && moved.plan.is_some(), "{moved:?}");
    }
}

/// The limit is the least that it can take, and not the most.
#[test]
fn a_plan_under_a_limit_leaves_time_for_what_is_not_limited() {
    let (_folder, path, content) = file(8_000_000);
    let limited = Terms { limit_bytes_per_s: Some(20_000_000), ..terms() };
    let least_s = content.len() as f64 / 20e6;
    let plan = run(mover(limited).put_file(&path, &Memory::new(ANY).place("a"))).unwrap().plan.unwrap();
    assert!(least_s <= plan.low_s && least_s < plan.expected_s && plan.expected_s < plan.high_s, "{plan:?}");
}

/// As many as there are going to be blocks at once, but for the one over which it is asked.
#[test]
fn connections_are_made_while_a_store_that_is_far_away_is_asked() {
    for (bytes, limits, memory_bytes, no_clobber, connected) in [
        (2 << 20, ANY, 256 << 20, false, 31),
        (2 << 20, ANY, 256 << 20, true, 0),
        (100_000, ANY, 256 << 20, false, 0),
        (20 << 20, S3, 256 << 20, false, 3),
        (20 << 20, S3, 14 << 20, false, 1),
    ] {
        let (_folder, path, _) = file(bytes);
        let store = Memory::new(limits);
        // No answer at first is what a far store's comes to.
        store.script(|call, times| (call == Call::Head && times == 0).then_some(Fault::Hangs));
        let terms = Terms { no_clobber, memory_bytes, timeout: Duration::from_millis(100), ..terms() };
        run(mover(terms).put_file(&path, &store.place("a"))).unwrap();
        assert_eq!(store.lock().connected, connected, "{bytes} {memory_bytes} {no_clobber}");
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

/// Whichever way blocks go; and there are several at once, or it would say nothing.
#[test]
fn memory_caps_what_is_under_way_both_ways() {
    let (folder, path, content) = file(30_000_000);
    for memory_bytes in [3 << 20, 8 << 20] {
        let store = Memory::new(ANY);
        let mover = mover(Terms { memory_bytes, ..terms() });
        let most = |moves: &dyn Fn() -> Moved| {
            store.lock().under_way = (0, 0);
            moves();
            let (left, most) = store.lock().under_way;
            assert_eq!(left, 0);
            assert!((memory_bytes / 16..=memory_bytes).contains(&most), "{most} of {memory_bytes}");
        };
        let place = store.place("a");
        most(&|| run(mover.put_stream(&content[..], &place)).unwrap());
        most(&|| run(mover.put_file(&path, &place)).unwrap());
        most(&|| run(mover.get_file(&place, &folder.path().join("target"))).unwrap());
        most(&|| run(mover.get_stream(&place, std::io::sink())).unwrap());
    }
}

#[test]
fn streams_of_unknown_length() {
    for bytes in [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 7_000_000] {
        let content = noise(bytes);
        let store = Memory::new(Limits { max_blocks: 30, ..ANY });
        let moved = run(mover(Terms { verify: true, ..terms() }).put_stream(&content[..], &store.place("a"))).unwrap();
        assert_eq!(store.bytes("a").unwrap(), content, "{bytes}");
        assert_eq!((moved.bytes, moved.crc64, moved.verified), (bytes as u64, Some(crc64(&content)), true));
    }
    // Blocks of 5 MiB double ten times; three blocks are too few.
    let store = Memory::new(Limits { max_block_bytes: 1 << 20, max_blocks: 3, ..ANY });
    let error = run(mover(terms()).put_stream(&noise(5 << 20)[..], &store.place("a"))).unwrap_err();
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
            run(mover.put_stream(&content[..], &store.place("a"))).unwrap_err(),
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
            run(mover.put_stream(&content[..], &store.place("b"))).unwrap();
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
        assert_eq!(run(kept.put_stream(&b"x"[..], &place)).unwrap().skipped, Some(Skipped::Exists));
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
fn a_limit_on_bandwidth_keeps_blocks_small_and_few() {
    let (_folder, path, _) = file(3_000_000);
    let store = Memory::new(ANY);
    let terms = Terms { limit_bytes_per_s: Some(8_000_000), ..terms() };
    let began = std::time::Instant::now();
    let moved = run(mover(terms).put_file(&path, &store.place("a"))).unwrap();
    // The store would take it at once.
    let plan = moved.plan.unwrap();
    assert!([plan.low_s, plan.expected_s, plan.high_s].iter().all(|s| *s >= 3_000_000.0 / 8_000_000.0), "{plan:?}");
    // All but the last block have been paid for; a busy machine takes longer.
    assert!(began.elapsed().as_secs_f64() >= (3_000_000.0 - 2_000_000.0) / 8_000_000.0);
    assert!(store.count(|call| matches!(call, Call::Block(_))) >= 2);
    assert!(store.lock().under_way.1 <= 4 * 2_000_000);
}

/// Both ways; and a limit is kept as well, for a store that sends blocks as fast as it can.
#[test]
fn a_gentle_move_watches_the_path() {
    let (_folder, path, content) = file(1_500_000);
    let store = Memory::new(ANY);
    let (gentle, limit_bytes_per_s) = (Some(Duration::from_millis(5)), Some(3_000_000));
    let terms = Terms { gentle, limit_bytes_per_s, verify: true, ..terms() };
    let moved = run(mover(terms).put_file(&path, &store.place("a"))).unwrap();
    assert_eq!(store.bytes("a").unwrap(), content);
    assert!(moved.elapsed_s > 1_400_000.0 / 3e6, "{moved:?}");
    let calls = &store.lock().calls;
    let read_back = calls.iter().position(|call| matches!(call, Call::Get(_))).unwrap();
    let asked = |calls: &[Call]| calls.iter().filter(|call| **call == Call::Head).count();
    assert!(asked(&calls[..read_back]) > 3 && asked(&calls[read_back..]) > 1, "{calls:?}");
}

/// A question that is answered late is how far it is.
#[test]
fn what_is_read_back_from_far_away_comes_over_many_connections() {
    let (_folder, path, _) = file(3_000_000);
    let store = Memory::new(ANY);
    store.script(|call, times| (call == Call::Head && times == 1).then_some(Fault::Hangs));
    let terms = Terms { verify: true, timeout: Duration::from_millis(100), ..terms() };
    run(mover(terms).put_file(&path, &store.place("a"))).unwrap();
    // Of what is near the first two blocks are of 256 KiB, one after the other.
    assert_eq!(store.count(|call| *call == Call::Get(65_536)), 1, "{:?}", store.lock().calls);
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
