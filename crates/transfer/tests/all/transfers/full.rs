//! Tests of full disks: with a small file system of its own, if the kernel permits one, and with `ulimit -f`.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use ascertain_transfer::{Error, Failure, Kind, Limits, Local, Location, Settings};

use super::memory::{ANY, Call, Memory};
use super::{manager, names, noise, run, settings};

const CHILD: &str = "TRANSFER_FULL";
const SMALL_BYTES: usize = 1 << 20;

/// Runs one of the tests below in a shell, after `script`. Returns the output of the test, or `None` if the kernel does
/// not permit the script.
fn in_shell(script: &str, what: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    let script = format!("{script} && exec \"$0\" --exact transfers::full::{what} --nocapture");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    command.arg(std::env::current_exe().unwrap()).env(CHILD, folder.path());
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    if !output.status.success() && (said.contains("unshare") || said.contains("mount")) {
        ascertain_sys::testing::left_out(format!("there is no file system of our own to be had: {said}"));
        return None;
    }
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    Some(said)
}

/// Returns the folder on the small file system; `None` if this process was not started by [`in_shell`].
fn small() -> Option<PathBuf> {
    Some(PathBuf::from(std::env::var_os(CHILD)?))
}

/// Fills the file system of a folder. Returns the path of the file that does so.
fn fill(folder: &Path) -> PathBuf {
    let path = folder.join("filler");
    let mut file = File::create(&path).unwrap();
    let error = std::iter::repeat_with(|| file.write_all(&[1; 4096])).find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    path
}

#[test]
fn a_disk_that_is_full() {
    let mount = format!("mount -t tmpfs -o size={SMALL_BYTES} none \"${CHILD}\"");
    for what in ["what_can_be_known_before", "what_comes_later", "what_a_journal_needs", "what_is_put_there"] {
        in_shell(&mount, what);
    }
}

#[test]
fn a_limit_on_files() {
    in_shell("ulimit -f 100", "what_a_limit_forbids");
}

fn storage_full(error: &Error) -> bool {
    matches!(error, Error::File { source, .. } if source.kind() == ErrorKind::StorageFull)
}

#[test]
fn what_can_be_known_before() {
    let Some(folder) = small() else { return };
    let store = Memory::new(ANY);
    store.insert("a", &noise(3_000_000));
    for journals in [None, Some(folder.join("journals"))] {
        let manager = manager(Settings { journals, ..settings() });
        let error = run(manager.get_file(&store.place("a"), &folder.join("target"))).unwrap_err();
        assert!(storage_full(&error), "{error}");
        assert!(error.to_string().contains("3000000 bytes are needed, but"), "{error}");
        assert_eq!(store.count(|call| matches!(call, Call::Get(_))), 0, "a range was requested");
    }
    assert_eq!(names(&folder), ["journals"]);
    assert!(names(&folder.join("journals")).is_empty());
}

/// During the download, another process fills the disk. When there is room again, the transfer is resumed.
#[test]
fn what_comes_later() {
    let Some(folder) = small() else { return };
    let content = noise(900_000);
    for journals in [None, Some(folder.join("journals"))] {
        let store = Memory::new(ANY);
        store.insert("a", &content);
        let (filled, mut gets) = (folder.clone(), 0);
        store.script(move |call, _| {
            gets += usize::from(matches!(call, Call::Get(_)));
            (gets == 3).then(|| fill(&filled));
            None
        });
        let manager = manager(Settings { journals: journals.clone(), ..settings() });
        let (place, target) = (store.place("a"), folder.join("target"));
        let error = run(manager.get_file(&place, &target)).unwrap_err();
        assert!(storage_full(&error) || matches!(error, Error::Journal { .. }), "{error}");
        let is_left = names(&folder).iter().any(|name| name.ends_with(".part"));
        assert_eq!((target.exists(), is_left), (false, journals.is_some()));
        fs::remove_file(folder.join("filler")).unwrap();
        store.script(|_, _| None);
        run(manager.get_file(&place, &target)).unwrap();
        assert!(fs::read(&target).unwrap() == content);
        fs::remove_file(&target).unwrap();
    }
}

#[test]
fn what_a_journal_needs() {
    let Some(folder) = small() else { return };
    let elsewhere = tempfile::tempdir().unwrap();
    let (path, content) = (elsewhere.path().join("file"), noise(3_000_000));
    fs::write(&path, &content).unwrap();
    let journals = folder.join("journals");
    fs::create_dir(&journals).unwrap();
    let manager = manager(Settings { journals: Some(journals.clone()), ..settings() });
    let put = |store: &Memory| run(manager.put_file(&path, &store.place("a")));
    // First, the disk is full from the start. The upload can't be recorded, so it is aborted.
    let small_blocks = Limits { max_part_bytes: 64 << 10, ..ANY };
    let (store, filler) = (Memory::new(small_blocks), fill(&folder));
    let error = put(&store).unwrap_err();
    assert!(matches!(error, Error::Journal { .. }), "{error}");
    assert_eq!((store.count(|call| *call == Call::Begin), store.count(|call| *call == Call::Abort)), (1, 1));
    assert!(names(&journals).is_empty() && store.lock().uploads.is_empty());
    fs::remove_file(&filler).unwrap();
    // Then the disk becomes full later. The upload is recorded already, so it can be resumed.
    let filled = folder.clone();
    store.script(move |call, _| {
        (call == Call::Begin).then(|| {
            // The filler is shortened, so that the journal has room for one more page.
            fill(&filled);
            let filler = filled.join("filler");
            File::options().write(true).open(&filler).unwrap().set_len(fs::metadata(&filler).unwrap().len() - 4096)
        });
        None
    });
    let error = put(&store).unwrap_err();
    assert!(matches!(error, Error::Journal { .. }), "{error}");
    assert!(store.bytes("a").is_none() && names(&journals).len() == 1);
    fs::remove_file(&filler).unwrap();
    store.script(|_, _| None);
    let result = put(&store).unwrap();
    assert!(result.resumed_bytes > 0 && store.bytes("a").unwrap() == content);
    assert!(names(&journals).is_empty() && store.lock().uploads.is_empty());
}

#[test]
fn what_is_put_there() {
    let Some(folder) = small() else { return };
    let elsewhere = tempfile::tempdir().unwrap();
    let path = elsewhere.path().join("file");
    let place =
        Location { store: std::sync::Arc::new(Local::new(&folder)), name: "a".into(), address: "file:///a".into() };
    // In the last case, the disk has room for all parts, but not also for the complete file.
    let refused = |bytes| {
        fs::write(&path, noise(bytes)).unwrap();
        let error = run(manager(settings()).put_file(&path, &place)).unwrap_err();
        assert!(matches!(&error, Error::Store(Failure { kind: Kind::Full, .. })), "{error}");
    };
    for bytes in [500_000 + SMALL_BYTES, 3_000_000, SMALL_BYTES / 4 * 3] {
        refused(bytes);
        assert!(names(&folder).is_empty(), "{:?}", names(&folder));
    }
    fill(&folder);
    refused(1000);
    assert_eq!(names(&folder), ["filler"]);
}

/// `ulimit -f` limits the size of files. Without a check in advance, the signal SIGXFSZ would kill the process.
#[test]
fn what_a_limit_forbids() {
    let Some(folder) = small() else { return };
    let store = Memory::new(ANY);
    store.insert("a", &noise(3_000_000));
    let error = run(manager(settings()).get_file(&store.place("a"), &folder.join("target"))).unwrap_err();
    assert!(error.to_string().contains("ulimit -f"), "{error}");
    assert!(names(&folder).is_empty());
}
