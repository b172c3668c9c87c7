//! Tests of links, access rights and special files in local folders.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ascertain_transfer::{Error, Filter, Links, Local, Location, Selection, TransferResult, TransferStatus};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::memory::{ANY, Call, Memory};
use super::{manager, names, run, settings};

/// Creates a folder with a file of each kind, and another folder to which links can point.
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

/// Returns the names of the transferred files, and the reasons for the omitted ones.
fn summarise(results: &[TransferResult]) -> (Vec<&str>, Vec<String>) {
    fn name(result: &TransferResult) -> &str {
        result.address.strip_prefix("memory://").unwrap_or(&result.address)
    }
    let transferred = results.iter().filter(|result| result.is_transferred()).map(name).collect();
    let left_out = results.iter().filter_map(|result| match &result.status {
        TransferStatus::Failed(Error::Omitted { reason, .. }) => Some(format!("{}: {reason}", name(result))),
        TransferStatus::Failed(error) => panic!("{error}"),
        _ => None,
    });
    (transferred, left_out.collect())
}

#[test]
fn everything_in_a_folder_is_put_or_named() {
    let (_folder, from) = folder();
    let put = |links, exclude: &[&str]| {
        let exclude = exclude.iter().map(|pattern| pattern.parse().unwrap()).collect();
        let many = Selection { links, filter: Filter { exclude, ..Filter::default() } };
        let store = Memory::new(ANY);
        run(Arc::new(manager(settings())).put_many(std::slice::from_ref(&from), &store.place("to/"), &many)).unwrap()
    };
    let special = "to/pipe: it is a pipe, a socket or a device";
    let odd = "to/\u{fffd}.txt: its name is not UTF-8, but object names must be";
    let broken = "to/broken: it is a broken link";
    let [to_folder, up] = ["to/to-folder", "to/real/up"].map(|name| format!("{name}: it is a link to a folder"));
    let outcomes = put(Links::FilesOnly, &[]);
    let (result, left_out) = summarise(&outcomes);
    assert_eq!(result, ["to/real/a", "to/to-file"]);
    assert_eq!(left_out, [broken, special, &up, &to_folder, odd]);
    let outcomes = put(Links::Follow, &[]);
    let (result, left_out) = summarise(&outcomes);
    assert_eq!(result, ["to/real/a", "to/to-file", "to/to-folder/b"]);
    assert_eq!(left_out, [broken, special, &format!("{up} that contains it"), odd]);
    let outcomes = put(Links::Skip, &[]);
    assert_eq!(summarise(&outcomes), (vec!["to/real/a"], vec![special.into(), odd.into()]));
    let outcomes = put(Links::FilesOnly, &["pipe", "*.txt", "broken", "to-*", "real/**"]);
    assert_eq!(summarise(&outcomes), (vec![], vec![]), "patterns exclude files and folders");
}

/// A download from a local folder must report the same files and omissions as an upload.
#[test]
fn everything_in_a_folder_is_got_or_named() {
    let (folder, from) = folder();
    let store = Arc::new(Local::new("/"));
    let name = format!("{}/", from.to_str().unwrap().trim_start_matches('/'));
    let place = Location { store, address: format!("file:///{name}"), name };
    let to = folder.path().join("to");
    let outcomes = run(Arc::new(manager(settings())).get_many(&place, &to, &Selection::default())).unwrap();
    let (result, left_out) = summarise(&outcomes);
    assert_eq!((result.len(), left_out.len()), (2, 5), "{left_out:?}");
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
        Location { store: Arc::new(Local::new("/")), address: format!("file:///{name}"), name }
    };
    fs::write(path("source"), "newer").unwrap();
    for bits in [0o600, 0o640] {
        fs::write(path("real"), "old").unwrap();
        fs::set_permissions(path("real"), fs::Permissions::from_mode(bits)).unwrap();
        let is_kept = |text: &str| {
            assert!(path("link").is_symlink() && fs::read_to_string(path("real")).unwrap() == text);
            assert_eq!(fs::metadata(path("real")).unwrap().permissions().mode() & 0o777, bits);
        };
        run(manager(settings()).get_file(&store.place("a"), &path("link"))).unwrap();
        is_kept("new");
        run(manager(settings()).put_file(&path("source"), &local("link"))).unwrap();
        is_kept("newer");
    }
    fs::remove_file(path("real")).unwrap();
    run(manager(settings()).get_file(&store.place("a"), &path("link"))).unwrap();
    assert!(path("link").is_symlink() && fs::read_to_string(path("real")).unwrap() == "new");
    assert_eq!(names(folder.path()), ["link", "real", "source"]);
}

/// Another user who can write to the folder could create links with the names of objects.
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
    let got =
        run(Arc::new(manager(settings())).get_many(&store.place("p/"), &path("to"), &Selection::default())).unwrap();
    let failed = got.iter().filter(|result| matches!(result.status, TransferStatus::Failed(_)));
    assert_eq!(failed.map(|result| &*result.address).collect::<Vec<_>>(), ["memory://p/sub/evil"], "{got:?}");
    assert_eq!(fs::read_to_string(path("precious")).unwrap(), "mine");
    assert!(names(&path("elsewhere")).is_empty() && !path("to/out").is_symlink());
    assert_eq!(fs::read_to_string(path("to/out")).unwrap(), "theirs");
}

/// Some programs restore the modification time of a file after they have written to it.
#[test]
fn a_file_that_is_written_to_with_its_time_kept_is_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, super::noise(3_000_000)).unwrap();
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let store = Memory::new(ANY);
    let written = path.clone();
    store.script(move |call, times| {
        if matches!(call, Call::Part(_)) && times == 0 {
            let file = fs::File::options().write(true).open(&written).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, b"changed", 2_999_990).unwrap();
            file.set_modified(modified).unwrap();
        }
        None
    });
    let error = run(manager(settings()).put_file(&path, &store.place("a"))).unwrap_err();
    assert!(matches!(error, Error::SourceChanged { .. }), "{error}");
    assert!(store.bytes("a").is_none());
}
