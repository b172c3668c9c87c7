//! Tests of interrupted transfers of folders: the same command transfers only the files that are not complete.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ascertain_sys::testing::wait_until;
use ascertain_transfer::{
    AbortOutcome, Attributes, Error, Kind, Options, Resume, Selection, Settings, Stop, TransferManager, TransferResult,
    TransferStatus, abort_all, crc64, interrupted_transfers,
};

use super::memory::{ANY, Call, Fault, Memory};
use super::{manager, noise, run, settings, simulate};

const FILES: usize = 40;

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Put,
    Get,
}

/// A transfer of a folder that was interrupted after about half of its files.
struct Interrupted {
    way: Way,
    folder: tempfile::TempDir,
    store: Memory,
    /// Numbers of the files that the journal names.
    complete: BTreeSet<usize>,
}

impl Interrupted {
    fn new(way: Way) -> Self {
        Self::with(way, |settings| settings)
    }

    /// Interrupts a transfer with changed settings.
    fn with(way: Way, change: impl FnOnce(Settings) -> Settings) -> Self {
        Self::with_store(way, Memory::new(ANY), change)
    }

    /// Interrupts a transfer with this store, which is empty, and with changed settings.
    fn with_store(way: Way, store: Memory, change: impl FnOnce(Settings) -> Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("source")).unwrap();
        for index in 0..FILES {
            let content = noise(100 + index);
            match way {
                Way::Put => fs::write(folder.path().join(format!("source/{index}")), content).unwrap(),
                Way::Get => store.insert(&format!("p/{index}"), &content),
            }
        }
        let mut interrupted = Self { way, folder, store, complete: BTreeSet::new() };
        let stop = Stop::new().unwrap();
        let (token, settings, mut requests) = (stop.clone(), change(interrupted.settings()), 0);
        // A file that is verified is read again after all files were transferred.
        let most = if settings.verify { FILES * 3 / 2 } else { FILES / 2 };
        interrupted.store.script(move |call, _| {
            requests += usize::from(matches!(call, Call::Put | Call::Get(_)));
            if requests > most {
                token.request();
                return Some(Fault::Hangs);
            }
            None
        });
        let manager = TransferManager::new(settings, stop, Box::new(()));
        let results = interrupted.run(&manager).unwrap();
        assert!(results.iter().any(|result| matches!(result.status, TransferStatus::Failed(Error::Stopped))));
        interrupted.store.script(|_, _| None);
        let index = |result: &TransferResult| result.address.rsplit('/').next().unwrap().parse().unwrap();
        interrupted.complete = results.iter().filter(|result| result.is_transferred()).map(index).collect();
        assert!((2..FILES - 1).contains(&interrupted.complete.len()), "{:?}", interrupted.complete);
        interrupted.store.forget();
        interrupted
    }

    fn settings(&self) -> Settings {
        Settings { journals: Some(self.journals()), max_concurrency: 4, ..settings() }
    }

    fn journals(&self) -> PathBuf {
        self.folder.path().join("journals")
    }

    /// Returns the path of the journal. There is only one.
    fn journal(&self) -> PathBuf {
        let paths: Vec<_> = fs::read_dir(self.journals()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(paths.len(), 1);
        paths[0].clone()
    }

    fn has_journal(&self) -> bool {
        fs::read_dir(self.journals()).is_ok_and(|mut entries| entries.next().is_some())
    }

    /// Returns the path of a file on this machine.
    fn path(&self, index: usize) -> PathBuf {
        let folder = if self.way == Way::Put { "source" } else { "target" };
        self.folder.path().join(folder).join(index.to_string())
    }

    /// Returns the temporary path of a download, according to the journal.
    fn temporary(&self, index: usize) -> PathBuf {
        let text = fs::read_to_string(self.journal()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["done"].take());
        let line = lines.into_iter().find(|line| line["object"] == format!("p/{index}")).unwrap();
        let name =
            line["temporary"]["name"]["Unix"].as_array().unwrap().iter().map(|byte| byte.as_u64().unwrap() as u8);
        self.path(index).with_file_name(String::from_utf8(name.collect()).unwrap())
    }

    /// Returns the number of files that the store has received or sent since the interruption.
    fn transferred(&self) -> usize {
        self.store.count(|call| matches!(call, Call::Put | Call::Get(_)))
    }

    fn run(&self, manager: &TransferManager) -> Result<Vec<TransferResult>, Error> {
        let (place, selection) = (self.store.place("p/"), Selection::default());
        match self.way {
            Way::Put => run(manager.put_many(&[self.folder.path().join("source")], &place, &selection)),
            Way::Get => run(manager.get_many(&place, &self.folder.path().join("target"), &selection)),
        }
    }

    /// Runs the same command again. Checks that all files are complete afterwards, and equal on both sides.
    fn resume(&self, settings: Settings) -> Vec<TransferResult> {
        let results = self.run(&manager(settings)).unwrap();
        assert_eq!(results.len(), FILES);
        for result in &results {
            assert!(result.is_transferred(), "{result:?}");
            let name = result.address.rsplit('/').next().unwrap();
            let (here, there) = (fs::read(&result.path).unwrap(), self.store.bytes(&format!("p/{name}")).unwrap());
            assert!(here == there && result.crc64 == Some(crc64(&here)), "{name}");
            assert_eq!(result.bytes, here.len() as u64);
        }
        assert!(!self.has_journal(), "the journal remains");
        results
    }

    /// Returns the first two complete files.
    fn two(&self) -> [usize; 2] {
        let mut complete = self.complete.iter().copied();
        [complete.next().unwrap(), complete.next().unwrap()]
    }
}

/// Returns the reasons why files were transferred again.
fn reasons(results: &[TransferResult]) -> Vec<&str> {
    results.iter().filter_map(|result| result.restart_reason.as_deref()).collect()
}

#[test]
fn a_resumed_folder_transfers_only_the_missing_files() {
    for way in [Way::Put, Way::Get] {
        let interrupted = Interrupted::new(way);
        let results = interrupted.resume(interrupted.settings());
        assert_eq!(interrupted.transferred(), FILES - interrupted.complete.len());
        assert_eq!(interrupted.store.count(|call| *call == Call::List), 1);
        assert_eq!(interrupted.store.count(|call| *call == Call::Head), 0);
        let resumed = results.iter().filter(|result| result.resumed_bytes > 0);
        assert!(resumed.clone().all(|result| result.resumed_bytes == result.bytes));
        assert_eq!((resumed.count(), reasons(&results).len()), (interrupted.complete.len(), 0));
        // After a success, the command starts from the beginning.
        interrupted.store.forget();
        interrupted.resume(interrupted.settings());
        assert_eq!(interrupted.transferred(), FILES);
    }
}

/// All files are complete, but the process was killed before it removed the journal.
#[test]
fn a_folder_whose_files_are_all_complete_needs_no_transfer() {
    for way in [Way::Put, Way::Get] {
        let interrupted = Interrupted::new(way);
        for index in (0..FILES).filter(|index| !interrupted.complete.contains(index)) {
            match way {
                Way::Put => fs::remove_file(interrupted.path(index)).unwrap(),
                Way::Get => drop(interrupted.store.lock().objects.remove(&format!("p/{index}"))),
            }
        }
        let results = interrupted.run(&manager(interrupted.settings())).unwrap();
        assert!(results.len() == interrupted.complete.len() && results.iter().all(TransferResult::is_transferred));
        assert!(interrupted.transferred() == 0 && !interrupted.has_journal());
    }
}

#[test]
fn a_journal_is_kept_if_a_file_fails() {
    let interrupted = Interrupted::new(Way::Put);
    interrupted.store.script(|call, n| (call == Call::Put && n == 0).then_some(Fault::Fails(Kind::Denied)));
    let failed = interrupted.run(&manager(interrupted.settings())).unwrap();
    assert_eq!(failed.iter().filter(|result| !result.is_transferred()).count(), 1);
    interrupted.store.script(|_, _| None);
    interrupted.store.forget();
    interrupted.resume(interrupted.settings());
    assert_eq!(interrupted.transferred(), 1);
}

#[test]
fn a_file_that_has_changed_since_is_transferred_again() {
    for way in [Way::Put, Way::Get] {
        let interrupted = Interrupted::new(way);
        let [one, other] = interrupted.two();
        // One file has changed here, with the same size. The other object has changed in the store.
        fs::write(interrupted.path(one), vec![b'x'; 100 + one]).unwrap();
        interrupted.store.insert(&format!("p/{other}"), &vec![b'y'; 100 + other]);
        let only = Settings { resume: Resume::Only, ..interrupted.settings() };
        let failed = interrupted.run(&manager(only)).unwrap();
        let failed: Vec<_> = failed
            .iter()
            .filter_map(|result| match &result.status {
                TransferStatus::Failed(Error::CantResume(reason)) => Some(reason.clone()),
                status => {
                    assert!(matches!(status, TransferStatus::Transferred), "{status:?}");
                    None
                }
            })
            .collect();
        let results = interrupted.resume(interrupted.settings());
        let reasons: BTreeSet<_> = reasons(&results).into_iter().collect();
        assert_eq!(reasons, failed.iter().map(|reason| &**reason).collect());
        let changed = |side: &str| format!("{side} has changed since an earlier attempt was interrupted");
        let there = changed(&format!("memory://p/{other}"));
        let here = changed(interrupted.path(one).to_str().unwrap());
        assert_eq!(reasons, BTreeSet::from([&*there, &*here]));
        assert_eq!(interrupted.transferred(), FILES - interrupted.complete.len() + 2);
    }
}

/// After a loss of power, the journal may name files that have no name in the folder. A user may also have removed the
/// files or the objects.
#[test]
fn a_target_that_is_gone_is_transferred_again() {
    for way in [Way::Put, Way::Get] {
        for resume in [Resume::IfSame, Resume::Only] {
            let interrupted = Interrupted::new(way);
            for index in interrupted.two() {
                match way {
                    Way::Put => drop(interrupted.store.lock().objects.remove(&format!("p/{index}"))),
                    Way::Get => fs::remove_file(interrupted.path(index)).unwrap(),
                }
            }
            let results = interrupted.resume(Settings { resume, ..interrupted.settings() });
            assert_eq!(reasons(&results), [""; 0]);
            assert_eq!(interrupted.transferred(), FILES - interrupted.complete.len() + 2);
        }
    }
}

/// A file may have another time than its object: the file system rounds the time, or the store does not report it.
#[test]
fn a_file_whose_time_is_not_that_of_its_object_is_not_fetched_again() {
    let store = Memory { has_dates: false, ..Memory::new(ANY) };
    let interrupted = Interrupted::with_store(Way::Get, store, |settings| settings);
    let results = interrupted.resume(interrupted.settings());
    assert_eq!(reasons(&results), [""; 0]);
    assert_eq!(interrupted.transferred(), FILES - interrupted.complete.len());
}

/// The process was killed while two downloads were waiting to be written to the disk. All of their bytes have arrived,
/// but the files still have their temporary names.
#[test]
fn a_file_that_waited_for_the_disk_is_not_fetched_again() {
    let interrupted = Interrupted::new(Way::Get);
    let [one, other] = interrupted.two();
    let temporary = |index| interrupted.temporary(index);
    for index in [one, other] {
        fs::rename(interrupted.path(index), temporary(index)).unwrap();
        // An earlier file, which the download replaces, has the name.
        fs::write(interrupted.path(index), "earlier").unwrap();
    }
    // A loss of power has destroyed the contents of one file.
    fs::write(temporary(other), vec![0; 100 + other]).unwrap();
    let results = interrupted.resume(interrupted.settings());
    assert_eq!(interrupted.transferred(), FILES - interrupted.complete.len() + 1);
    assert_eq!(reasons(&results), [""; 0]);
    assert_eq!(super::names(&interrupted.folder.path().join("target")).len(), FILES, "no temporary file remains");
}

/// The list of a store does not contain the time of the original file. So the object is fetched again if the file must
/// get this time, or if the interrupted command has set it.
#[test]
fn a_file_that_waited_for_the_disk_is_fetched_again_for_its_time() {
    for preserve in [true, false] {
        let interrupted = Interrupted::with(Way::Get, |settings| Settings { preserve: true, ..settings });
        let [one, _] = interrupted.two();
        fs::rename(interrupted.path(one), interrupted.temporary(one)).unwrap();
        interrupted.resume(Settings { preserve, ..interrupted.settings() });
        // Without `preserve`, the other complete files are fetched again too.
        let expected = if preserve { FILES - interrupted.complete.len() + 1 } else { FILES };
        assert_eq!(interrupted.transferred(), expected);
        assert_eq!(super::names(&interrupted.folder.path().join("target")).len(), FILES, "no temporary file remains");
    }
}

/// The process was killed before downloads got their names, and their temporary files are gone. Earlier files, which
/// the downloads replace, still have the names.
#[test]
fn an_earlier_file_does_not_count_as_a_change() {
    let earlier = tempfile::tempdir().unwrap();
    let interrupted = Interrupted::with(Way::Get, |settings| {
        let target = settings.journals.as_ref().unwrap().with_file_name("target");
        fs::create_dir(&target).unwrap();
        for index in 0..FILES {
            fs::write(target.join(index.to_string()), "earlier").unwrap();
            fs::hard_link(target.join(index.to_string()), earlier.path().join(index.to_string())).unwrap();
        }
        settings
    });
    for index in interrupted.two() {
        fs::rename(earlier.path().join(index.to_string()), interrupted.path(index)).unwrap();
    }
    let results = interrupted.resume(Settings { resume: Resume::Only, ..interrupted.settings() });
    assert_eq!(reasons(&results), [""; 0]);
    assert_eq!(interrupted.transferred(), FILES - interrupted.complete.len() + 2);
}

/// The limit is for bytes that are transferred. A file that is only read on this machine does not wait for it.
#[test]
fn the_rate_limit_does_not_delay_a_file_that_waited_for_the_disk() {
    let interrupted = Interrupted::new(Way::Get);
    for index in 0..FILES {
        match interrupted.complete.contains(&index) {
            true => fs::rename(interrupted.path(index), interrupted.temporary(index)).unwrap(),
            false => drop(interrupted.store.lock().objects.remove(&format!("p/{index}"))),
        }
    }
    let limited = Settings { limit_bytes_per_s: Some(1000), ..interrupted.settings() };
    let (place, target) = (interrupted.store.place("p/"), interrupted.folder.path().join("target"));
    // The clock is simulated. Each file has at least 100 bytes, so each but the first would wait for 0.1 s.
    let results = simulate(async {
        let (manager, all) = (manager(limited), Selection::default());
        tokio::time::timeout(Duration::from_millis(100), manager.get_many(&place, &target, &all)).await
    });
    let results = results.unwrap().unwrap();
    assert!(results.iter().all(|result| result.is_transferred() && result.resumed_bytes == result.bytes));
    assert_eq!(interrupted.transferred(), 0);
}

#[test]
fn a_truncated_line_is_ignored() {
    for way in [Way::Put, Way::Get] {
        let interrupted = Interrupted::new(way);
        let text = fs::read(interrupted.journal()).unwrap();
        fs::write(interrupted.journal(), &text[..text.len() - 10]).unwrap();
        let results = interrupted.resume(interrupted.settings());
        assert_eq!(interrupted.transferred(), FILES - interrupted.complete.len() + 1);
        assert_eq!(reasons(&results), [""; 0]);
    }
}

#[test]
fn a_damaged_journal_is_reported_and_discarded() {
    for way in [Way::Put, Way::Get] {
        let interrupted = Interrupted::new(way);
        let (path, text) = (interrupted.journal(), fs::read_to_string(interrupted.journal()).unwrap());
        for (damaged, why) in [
            (text.replacen("done", "gone", 1), "line 2 is invalid"),
            (text.replacen("\"version\":1", "\"version\":9", 1), "its format version is 9"),
            (text.lines().skip(1).map(|line| format!("{line}\n")).collect(), "line 1 is invalid"),
        ] {
            fs::write(&path, &damaged).unwrap();
            interrupted.store.forget();
            let why = format!("{}: {why}", path.display());
            let only = Settings { resume: Resume::Only, ..interrupted.settings() };
            let error = interrupted.run(&manager(only)).unwrap_err();
            assert!(matches!(&error, Error::CantResume(reason) if reason.starts_with(&why)), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), damaged, "a damaged journal is not changed");
            assert!(interrupted_transfers(&interrupted.journals()).1[0].1.to_string().contains("journal"));
            let results = interrupted.resume(interrupted.settings());
            assert_eq!(interrupted.transferred(), FILES);
            assert!(reasons(&results).len() == 1 && reasons(&results)[0].starts_with(&why), "{:?}", reasons(&results));
        }
    }
}

#[test]
fn a_journal_is_not_used_if_the_settings_do_not_permit_it() {
    for way in [Way::Put, Way::Get] {
        let interrupted = Interrupted::new(way);
        let results = interrupted.resume(Settings { resume: Resume::Never, ..interrupted.settings() });
        assert_eq!((interrupted.transferred(), reasons(&results)), (FILES, vec![]));
        // Without a folder of journals, nothing is recorded.
        let interrupted = Interrupted::with(way, |settings| Settings { journals: None, ..settings });
        assert!(!interrupted.has_journal());
        interrupted.resume(interrupted.settings());
        assert_eq!(interrupted.transferred(), FILES);
        // A file that was not read back is not complete for a command that reads files back.
        let interrupted = Interrupted::new(way);
        let results = interrupted.resume(Settings { verify: true, ..interrupted.settings() });
        assert!(results.iter().all(|result| result.verified && result.resumed_bytes == 0));
        let interrupted = Interrupted::with(way, |settings| Settings { verify: true, ..settings });
        let results = interrupted.resume(Settings { verify: true, ..interrupted.settings() });
        let resumed = results.iter().filter(|result| result.verified && result.resumed_bytes > 0).count();
        assert_eq!(resumed, interrupted.complete.len());
    }
}

/// A file that was stored with other attributes, or fetched without the time of the original file, does not count as
/// complete.
#[test]
fn a_file_with_other_attributes_is_transferred_again() {
    for (way, content_type, preserve) in
        [(Way::Put, Some("text/css"), false), (Way::Put, None, true), (Way::Get, None, true)]
    {
        let interrupted = Interrupted::new(way);
        let attributes = Attributes { content_type: content_type.map(String::from), ..Attributes::default() };
        let settings = Settings { attributes, preserve, ..interrupted.settings() };
        let only = Settings { resume: Resume::Only, ..settings.clone() };
        let failed = interrupted.run(&manager(only)).unwrap();
        let failed =
            failed.iter().filter(|result| matches!(result.status, TransferStatus::Failed(Error::CantResume(_))));
        assert_eq!(failed.count(), interrupted.complete.len());
        let results = interrupted.resume(settings);
        assert_eq!(interrupted.transferred(), FILES);
        assert_eq!(reasons(&results).len(), interrupted.complete.len());
        assert!(reasons(&results)[0].contains("an earlier attempt had other metadata for"), "{results:?}");
        let store = interrupted.store.lock();
        let types = store.objects.values().filter(|object| object.content_type.as_deref() == content_type).count();
        assert_eq!(types, FILES);
    }
}

/// The process was killed while downloads waited for their names. The command is not resumed, or its journal is
/// damaged, or an object has changed.
#[test]
fn a_useless_temporary_file_is_removed() {
    for case in ["fresh", "damaged", "changed"] {
        let interrupted = Interrupted::new(Way::Get);
        let [one, _] = interrupted.two();
        let temporary = interrupted.temporary(one);
        fs::rename(interrupted.path(one), &temporary).unwrap();
        let mut settings = interrupted.settings();
        match case {
            "fresh" => settings.resume = Resume::Never,
            "damaged" => {
                let text = fs::read_to_string(interrupted.journal()).unwrap();
                fs::write(interrupted.journal(), text + "damage\n").unwrap();
            }
            _ => interrupted.store.insert(&format!("p/{one}"), &noise(50)),
        }
        interrupted.resume(settings);
        assert!(!temporary.exists(), "{case}");
        assert_eq!(super::names(&interrupted.folder.path().join("target")).len(), FILES, "{case}");
    }
}

/// A file that the interrupted command has stored does not count as one that existed before.
#[test]
fn files_of_the_interrupted_command_do_not_count_as_existing() {
    for way in [Way::Put, Way::Get] {
        let interrupted = Interrupted::new(way);
        interrupted.resume(Settings { no_clobber: true, ..interrupted.settings() });
        assert_eq!(interrupted.transferred(), FILES - interrupted.complete.len());
    }
}

#[test]
fn a_folder_is_listed_until_it_is_aborted() {
    for way in [Way::Put, Way::Get] {
        let interrupted = Interrupted::new(way);
        let (found, unread) = interrupted_transfers(&interrupted.journals());
        assert!(unread.is_empty() && found.len() == 1, "{found:?} {unread:?}");
        let bytes = |files: &mut dyn Iterator<Item = usize>| files.map(|index| 100 + index as u64).sum::<u64>();
        assert_eq!(found[0].files, Some([interrupted.complete.len() as u64, FILES as u64]));
        assert_eq!(found[0].done_bytes, bytes(&mut interrupted.complete.iter().copied()));
        assert_eq!(found[0].bytes, Some(bytes(&mut (0..FILES))));
        let folder = |name: &str| interrupted.folder.path().canonicalize().unwrap().join(name).display().to_string();
        let (from, to) = match way {
            Way::Put => (folder("source"), String::from("memory://p/")),
            Way::Get => (String::from("memory://p/"), folder("target")),
        };
        assert_eq!((&found[0].from, &found[0].to, found[0].is_resumable), (&from, &to, true));
        let aborted = abort_all(found, &Options::default()).unwrap();
        assert!(matches!(aborted[..], [(_, Ok(Some(AbortOutcome::Removed)))]), "{aborted:?}");
        assert!(!interrupted.has_journal());
        interrupted.resume(interrupted.settings());
        assert_eq!(interrupted.transferred(), FILES);
    }
}

#[test]
fn the_same_command_does_not_run_twice() {
    let interrupted = Interrupted::new(Way::Put);
    let stop = Stop::new().unwrap();
    interrupted.store.script(|call, _| (call == Call::Put).then_some(Fault::Hangs));
    let waits = TransferManager::new(interrupted.settings(), stop.clone(), Box::new(()));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| interrupted.run(&waits));
        wait_until("the first command sends a file", || interrupted.transferred() > 0);
        let error = interrupted.run(&manager(interrupted.settings())).unwrap_err();
        assert!(matches!(error, Error::InUse { .. }), "{error}");
        assert!(interrupted_transfers(&interrupted.journals()).0.is_empty(), "the command still runs");
        stop.request();
        first.join().unwrap().unwrap();
    });
    assert!(interrupted.has_journal());
}

/// A store without ETags can't tell whether an object has changed, so nothing is recorded.
#[test]
fn without_versions_nothing_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let store = Memory { identifies: false, ..Memory::new(ANY) };
    (0..4).for_each(|index| fs::write(folder.path().join(index.to_string()), "x").unwrap());
    let journals = folder.path().join("journals");
    fs::create_dir(&journals).unwrap();
    store.script(|call, n| (call == Call::Put && n == 3).then_some(Fault::Fails(Kind::Denied)));
    let settings = Settings { journals: Some(journals.clone()), ..settings() };
    let from: Vec<_> = (0..4).map(|index| folder.path().join(index.to_string())).collect();
    run(manager(settings).put_many(&from, &store.place("p/"), &Selection::default())).unwrap();
    assert_eq!(fs::read_dir(&journals).unwrap().count(), 0);
}
