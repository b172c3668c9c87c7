//! Links, modes, and what is no file: on this machine's side of a move.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ascertain_transfer::{Done, Error, Filter, Links, Local, Many, Outcome, Place};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::memory::{ANY, Call, Memory};
use super::{mover, names, run, terms};

/// A folder with something of each kind, and a folder beside it.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir_all(path("from/real")).unwrap();
    fs::create_dir(path("beside")).unwrap();
    fs::write(path("from/real/a"), "1").unwrap();
    fs::write(path("beside/b"), "2").unwrap();
    symlink("real/a", path("from/to-file")).unwrap();
    symlink("../beside", path("from/to-folder")).unwrap();
    symlink("nothing", path("from/broken")).unwrap();
    symlink("..", path("from/real/up")).unwrap();
    mknodat(CWD, path("from/pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let bytes = std::os::unix::ffi::OsStrExt::from_bytes(b"from/\xff.txt");
    fs::write(folder.path().join(<std::ffi::OsStr as AsRef<Path>>::as_ref(bytes)), "3").unwrap();
    let from = path("from");
    (folder, from)
}

/// The names of what was moved, and what was left out with the reason.
fn told(outcomes: &[Outcome]) -> (Vec<&str>, Vec<String>) {
    let is_moved = |outcome: &&Outcome| matches!(outcome.done, Done::Moved(_));
    let moved = outcomes.iter().filter(is_moved).map(|outcome| &*outcome.name).collect();
    let left_out = outcomes.iter().filter_map(|outcome| match &outcome.done {
        Done::Failed(Error::LeftOut { why, .. }) => Some(format!("{}: {why}", outcome.name)),
        Done::Failed(error) => panic!("{error}"),
        _ => None,
    });
    (moved, left_out.collect())
}

#[test]
fn everything_in_a_folder_is_put_or_named() {
    let (_folder, from) = folder();
    let put = |links, exclude: &[&str]| {
        let exclude = exclude.iter().map(|pattern| (*pattern).into()).collect();
        let many = Many { links, filter: Filter { exclude, ..Filter::default() }, ..Many::default() };
        let store = Memory::new(ANY);
        run(Arc::new(mover(terms())).put_many(std::slice::from_ref(&from), &store.place("to/"), &many)).unwrap()
    };
    let special = "to/pipe: it is a pipe, a socket or a device";
    let odd = "to/\u{fffd}.txt: its name is not UTF-8, as names of objects are";
    let broken = "to/broken: it is a link to nothing";
    let [to_folder, up] = ["to/to-folder", "to/real/up"].map(|name| format!("{name}: it is a link to a folder"));
    let outcomes = put(Links::FilesOnly, &[]);
    let (moved, left_out) = told(&outcomes);
    assert_eq!(moved, ["to/real/a", "to/to-file"]);
    assert_eq!(left_out, [broken, special, &up, &to_folder, odd]);
    let outcomes = put(Links::Follow, &[]);
    let (moved, left_out) = told(&outcomes);
    assert_eq!(moved, ["to/real/a", "to/to-file", "to/to-folder/b"]);
    assert_eq!(left_out, [broken, special, &format!("{up} that it is in"), odd]);
    let outcomes = put(Links::Skip, &[]);
    assert_eq!(told(&outcomes), (vec!["to/real/a"], vec![special.into(), odd.into()]));
    let outcomes = put(Links::FilesOnly, &["pipe", "*.txt", "broken", "to-*", "real/**"]);
    assert_eq!(told(&outcomes), (vec![], vec![to_folder]), "patterns name files, and `/**` all of a folder");
}

/// What is got from a folder of this machine is told in the same way.
#[test]
fn everything_in_a_folder_is_got_or_named() {
    let (folder, from) = folder();
    let store = Arc::new(Local::new("/"));
    let name = format!("{}/", from.to_str().unwrap().trim_start_matches('/'));
    let place = Place { store, shown: format!("file:///{name}"), name };
    let to = folder.path().join("to");
    let outcomes = run(Arc::new(mover(terms())).get_many(&place, &to, &Many::default())).unwrap();
    let (moved, left_out) = told(&outcomes);
    assert_eq!((moved.len(), left_out.len()), (2, 5), "{left_out:?}");
    assert_eq!(names(&to), ["real", "to-file"]);
}

#[test]
fn a_link_that_is_named_is_followed_and_a_mode_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let store = Memory::new(ANY);
    store.insert("a", b"new");
    symlink("real", path("link")).unwrap();
    let local = |name: &str| {
        let name = path(name).to_str().unwrap().trim_start_matches('/').to_string();
        Place { store: Arc::new(Local::new("/")), shown: format!("file:///{name}"), name }
    };
    fs::write(path("source"), "newer").unwrap();
    for bits in [0o600, 0o640] {
        fs::write(path("real"), "old").unwrap();
        fs::set_permissions(path("real"), fs::Permissions::from_mode(bits)).unwrap();
        let is_kept = |text: &str| {
            assert!(path("link").is_symlink() && fs::read_to_string(path("real")).unwrap() == text);
            assert_eq!(fs::metadata(path("real")).unwrap().permissions().mode() & 0o777, bits);
        };
        run(mover(terms()).get_file(&store.place("a"), &path("link"))).unwrap();
        is_kept("new");
        run(mover(terms()).put_file(&path("source"), &local("link"))).unwrap();
        is_kept("newer");
    }
    fs::remove_file(path("real")).unwrap();
    run(mover(terms()).get_file(&store.place("a"), &path("link"))).unwrap();
    assert!(path("link").is_symlink() && fs::read_to_string(path("real")).unwrap() == "new");
    assert_eq!(names(folder.path()), ["link", "real", "source"]);
}

/// Whoever may write into the folder can make links of names that the store is known to have.
#[test]
fn a_link_below_the_target_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let store = Memory::new(ANY);
    for name in ["p/out", "p/sub/evil", "p/good"] {
        store.insert(name, b"theirs");
    }
    fs::create_dir_all(path("elsewhere")).unwrap();
    fs::create_dir(path("to")).unwrap();
    fs::write(path("precious"), "mine").unwrap();
    symlink("../precious", path("to/out")).unwrap();
    symlink("../elsewhere", path("to/sub")).unwrap();
    let got = run(Arc::new(mover(terms())).get_many(&store.place("p/"), &path("to"), &Many::default())).unwrap();
    let failed: Vec<&str> = got.iter().filter(|of| matches!(of.done, Done::Failed(_))).map(|of| &*of.name).collect();
    assert_eq!(failed, ["p/sub/evil"], "{got:?}");
    assert_eq!(fs::read_to_string(path("precious")).unwrap(), "mine");
    assert!(names(&path("elsewhere")).is_empty() && !path("to/out").is_symlink());
    assert_eq!(fs::read_to_string(path("to/out")).unwrap(), "theirs");
}

/// Some programs set the time of a file back after they have written to it.
#[test]
fn a_file_that_is_written_to_with_its_time_kept_is_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, super::noise(3_000_000)).unwrap();
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let store = Memory::new(ANY);
    let written = path.clone();
    store.script(move |call, times| {
        if matches!(call, Call::Block(_)) && times == 0 {
            let file = fs::File::options().write(true).open(&written).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, b"changed", 2_999_990).unwrap();
            file.set_modified(modified).unwrap();
        }
        None
    });
    let error = run(mover(terms()).put_file(&path, &store.place("a"))).unwrap_err();
    assert!(matches!(error, Error::SourceChanged { .. }), "{error}");
    assert!(store.bytes("a").is_none());
}
