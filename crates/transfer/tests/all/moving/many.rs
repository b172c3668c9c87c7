//! Many files in one go.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ascertain_transfer::{Done, Filter, Many, Mover, Observer, Outcome, Progress, Stop, Terms};

use super::memory::{ANY, Call, Fault, Memory};
use super::{mover, noise, run, simulate, terms};

/// A folder of files with awkward names, and what is in them.
fn folder() -> (tempfile::TempDir, BTreeMap<String, Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    let sizes = [("a b.txt", 10), ("ü/ø λ.txt", 1000), ("empty", 0), ("deep/er/x.log", 700_000), ("large", 9_000_000)];
    let mut files = BTreeMap::new();
    for (name, bytes) in sizes {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, noise(bytes)).unwrap();
        files.insert(name.to_string(), noise(bytes));
    }
    (folder, files)
}

fn failed(outcomes: &[Outcome]) -> Vec<String> {
    let failed = outcomes.iter().filter_map(|outcome| match &outcome.done {
        Done::Failed(error) => Some(format!("{}: {error}", outcome.name)),
        _ => None,
    });
    failed.collect()
}

#[test]
fn folders_go_there_and_back() {
    let (folder, files) = folder();
    let store = Memory::new(ANY);
    let mover = Arc::new(mover(terms()));
    let from = [folder.path().to_path_buf()];
    let put = run(mover.put_many(&from, &store.place("to/"), &Many::default())).unwrap();
    assert_eq!(failed(&put), [""; 0]);
    for (name, content) in &files {
        assert_eq!(store.bytes(&format!("to/{name}")).unwrap(), *content, "{name}");
    }
    let back = tempfile::tempdir().unwrap();
    store.insert("to/marker/", b"");
    let got = run(mover.get_many(&store.place("to/"), back.path(), &Many::default())).unwrap();
    assert_eq!((got.len(), failed(&got)), (files.len(), vec![]));
    for (name, content) in &files {
        assert_eq!(fs::read(back.path().join(name)).unwrap(), *content, "{name}");
    }
    // A second time nothing is moved.
    let sent = store.lock().sent_bytes;
    let unchanged = Arc::new(super::mover(Terms { skip_unchanged: true, ..terms() }));
    run(unchanged.put_many(&from, &store.place("to/"), &Many::default())).unwrap();
    assert_eq!(store.lock().sent_bytes, sent);
}

type Told = (u64, Option<u64>, Option<[u64; 2]>);

#[derive(Clone, Default)]
struct Hears(Arc<Mutex<Vec<Told>>>);

impl Observer for Hears {
    fn progress(&self, progress: &Progress<'_>) {
        self.0.lock().unwrap().push((progress.done_bytes, progress.bytes, progress.files));
    }
}

/// Nobody knows how much it is before it has come.
#[test]
fn what_a_pipe_among_many_brings_is_counted() {
    let (folder, store, hears) = (tempfile::tempdir().unwrap(), Memory::new(ANY), Hears::default());
    let (pipe, other, content) = (folder.path().join("pipe"), folder.path().join("other"), noise(3_000_000));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::write(&other, "x").unwrap();
    let mover = Arc::new(Mover::new(terms(), Stop::default(), Box::new(hears.clone())));
    let outcomes = std::thread::scope(|scope| {
        scope.spawn(|| fs::write(&pipe, &content).unwrap());
        run(mover.put_many(&[other, pipe.clone()], &store.place("to/"), &Many::default())).unwrap()
    });
    assert_eq!(outcomes.iter().map(|outcome| outcome.bytes).collect::<Vec<_>>(), [1, 3_000_000]);
    assert_eq!(hears.0.lock().unwrap().last(), Some(&(3_000_001, Some(3_000_001), Some([2, 2]))));
}

/// What is told of many files is of all of them, and ends with all that was moved.
#[test]
fn many_are_told_as_one() {
    let (folder, files) = folder();
    let total: u64 = files.values().map(|content| content.len() as u64).sum();
    let (store, hears) = (Memory::new(ANY), Hears::default());
    // One is there, and left alone.
    let (there, content) = files.iter().find(|(_, content)| !content.is_empty()).unwrap();
    store.insert(&format!("to/{there}"), content);
    let rest = total - content.len() as u64;
    let terms = Terms { no_clobber: true, ..terms() };
    let mover = Arc::new(Mover::new(terms, Stop::default(), Box::new(hears.clone())));
    run(mover.put_many(&[folder.path().to_path_buf()], &store.place("to/"), &Many::default())).unwrap();
    let told = hears.0.lock().unwrap().clone();
    let count = files.len() as u64;
    assert!(told.len() >= files.len());
    assert_eq!(told.last(), Some(&(rest, Some(rest), Some([count, count]))));
    assert!(told.iter().all(|(done, of, files)| Some(*done) <= *of && files.unwrap()[1] == count), "{told:?}");
    assert!(told.is_sorted_by_key(|(done, _, files)| (*files, *done)), "{told:?}");
}

#[test]
fn what_would_be_left_alone_is_asked_and_nothing_moved() {
    let (folder, files) = folder();
    let store = Memory::new(ANY);
    let (there, content) = files.iter().next().unwrap();
    store.insert(&format!("to/{there}"), content);
    let dry = Many { dry_run: true, ..Many::default() };
    let sent_bytes = store.lock().sent_bytes;
    for terms in [Terms { no_clobber: true, ..terms() }, Terms { skip_unchanged: true, ..terms() }] {
        let mover = Arc::new(super::mover(terms));
        let put = run(mover.put_many(&[folder.path().to_path_buf()], &store.place("to/"), &dry)).unwrap();
        let skipped = put.iter().filter(|one| matches!(&one.done, Done::Moved(moved) if moved.skipped.is_some()));
        assert_eq!(skipped.map(|one| one.name.clone()).collect::<Vec<_>>(), [format!("to/{there}")]);
        assert_eq!(put.iter().filter(|one| matches!(one.done, Done::Said)).count(), files.len() - 1);
    }
    assert_eq!(store.lock().sent_bytes, sent_bytes);
}

#[test]
fn only_what_is_meant_is_moved() {
    let (folder, _) = folder();
    let store = Memory::new(ANY);
    let mover = Arc::new(mover(terms()));
    let filter = Filter { include: vec!["*.txt".into(), "*.log".into()], exclude: vec!["deep/**".into()] };
    let many = Many { filter, dry_run: true, ..Many::default() };
    let from = [folder.path().to_path_buf(), folder.path().join("empty")];
    let said = run(mover.put_many(&from, &store.place(""), &many)).unwrap();
    let names: Vec<&str> = said.iter().map(|outcome| &*outcome.name).collect();
    assert_eq!(names, ["a b.txt", "empty", "ü/ø λ.txt"], "what is named is meant");
    assert!(said.iter().all(|outcome| matches!(outcome.done, Done::Said)));
    assert!(store.lock().calls.is_empty(), "nothing was asked for");
    run(mover.put_many(&from, &store.place(""), &Many { dry_run: false, ..many })).unwrap();
    assert_eq!(store.lock().objects.keys().collect::<Vec<_>>(), ["a b.txt", "empty", "ü/ø λ.txt"]);
}

#[test]
fn one_that_fails_leaves_the_others_alone() {
    let (folder, files) = folder();
    let store = Memory::new(ANY);
    store.script(|call, _| matches!(call, Call::Commit).then_some(Fault::Fails(ascertain_transfer::Kind::Denied)));
    let mover = Arc::new(mover(terms()));
    let outcomes = run(mover.put_many(&[folder.path().into()], &store.place(""), &Many::default())).unwrap();
    assert_eq!((outcomes.len(), failed(&outcomes).len()), (files.len(), 2));
    assert_eq!(store.lock().objects.len(), files.len() - 2);
    let twice = [folder.path().join("empty"), folder.path().join("deep/../empty")];
    let error = run(mover.put_many(&twice, &store.place("x/"), &Many::default())).unwrap_err();
    assert!(error.to_string().contains("both be memory://x/empty"), "{error}");
    let missing = [folder.path().join("missing"), folder.path().join("empty")];
    let outcomes = run(mover.put_many(&missing, &store.place("x/"), &Many::default())).unwrap();
    assert!(failed(&outcomes).len() == 1 && failed(&outcomes)[0].starts_with("x/missing: can't read"), "{outcomes:?}");
    assert!(store.bytes("x/empty").is_some(), "the other one is put");
}

#[test]
fn names_from_a_store_do_not_leave_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    for evil in ["../evil", "a/../../evil", "//../evil", "a/./b", "x//y"] {
        let store = Memory::new(ANY);
        store.insert(&format!("p/{evil}"), b"evil");
        store.insert("p/good", b"good");
        store.insert("p/folder/", b"with contents");
        let got = run(Arc::new(mover(terms())).get_many(&store.place("p/"), &target, &Many::default())).unwrap();
        assert_eq!((got.len(), failed(&got).len()), (3, 2), "{evil}: {got:?}");
        assert_eq!(super::names(&target), ["good"], "{evil}");
        assert!(!folder.path().join("evil").exists());
        fs::remove_dir_all(&target).unwrap();
    }
}

#[test]
fn ten_thousand_files() {
    let folder = tempfile::tempdir().unwrap();
    for index in 0..10_000 {
        fs::write(folder.path().join(format!("file {index}")), index.to_string()).unwrap();
    }
    let store = Memory::new(ANY);
    let mover = Arc::new(mover(terms()));
    let put = run(mover.put_many(&[folder.path().into()], &store.place("n/"), &Many::default())).unwrap();
    assert_eq!((put.len(), failed(&put)), (10_000, vec![]));
    assert!((0..10_000).all(|index| store.bytes(&format!("n/file {index}")).unwrap() == index.to_string()));
}

#[test]
fn two_objects_do_not_become_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = Memory::new(ANY);
    store.insert("dir/x", b"one");
    store.insert("dir//x", b"other");
    let got = run(Arc::new(mover(terms())).get_many(&store.place("dir"), folder.path(), &Many::default())).unwrap();
    assert!(failed(&got).len() == 1 && failed(&got)[0].contains("another object is"), "{got:?}");
    assert_eq!(super::names(folder.path()), ["x"]);
}

/// It is many requests, each of which is given up by itself where nothing moves.
#[test]
fn a_listing_may_take_longer_than_a_request() {
    let folder = tempfile::tempdir().unwrap();
    let store = Memory::new(ANY);
    store.script(|call, _| (call == Call::List).then_some(Fault::Hangs));
    let mover = Arc::new(super::mover(Terms { timeout: Duration::from_millis(1), ..terms() }));
    let (place, many) = (store.place("p/"), Many::default());
    let listed =
        async { tokio::time::timeout(Duration::from_secs(1), mover.get_many(&place, folder.path(), &many)).await };
    assert!(simulate(listed).is_err() && store.count(|call| *call == Call::List) == 1);
}
