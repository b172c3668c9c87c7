//! A model test: random operations on files, with faults in between. After each few operations, git must print the same
//! with the monitor as without.
//!
//! `cargo test` runs a few cases. The whole test has 100,000 operations:
//! `cargo test -p ascertain-fsmonitor --test all -- --ignored model --nocapture`.
//!
//! These environment variables change the test:
//!
//! - `ASCERTAIN_MODEL_OPERATIONS`: the number of operations of the whole test.
//! - `ASCERTAIN_MODEL_SHRINK`: the time in seconds for making a failed case smaller.
//! - `ASCERTAIN_MODEL_HOOK`: a hook to compare instead of ours.
//! - `ASCERTAIN_TEST_GIT`: the git program.
//! - `PROPTEST_RNG_SEED`: the seed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use crate::common::{Repo, append, os, signal};

/// One operation. Paths are numbers, so that they shrink.
#[derive(Clone, Debug)]
enum Operation {
    Write(Place, u8),
    Append(Place),
    Rewrite(Place),
    Replace(Place, u8),
    Remove(Place),
    RemoveFolder(Folder),
    MakeFolder(Folder),
    Rename(Place, Place),
    RenameFolder(Folder, Folder),
    MoveOut(Folder, u8),
    MoveIn(u8, Folder),
    CopyIn(u8, Folder),
    Executable(Place, bool),
    FolderMode(Folder),
    Link(Place, Place),
    LinkOut(Place, u8),
    AppendOut(u8),
    RemoveOut(u8),
    Symlink(Place),
    SymlinkFolder(Folder),
    Ignore(u8, bool),
    Nest(Folder),
    CommitNested(Folder),
    Git(Git),
    Fault(Fault),
}

/// A git command that changes the index or files. It may fail.
#[derive(Clone, Debug)]
enum Git {
    Add(Place),
    AddAll,
    Commit,
    CommitAll,
    CheckoutForced(u8),
    Checkout(u8),
    Branch(u8),
    ResetHard,
    ResetMixed,
    Restore(Place),
    Remove(Place),
    Stash,
    StashPop,
    Sparse(Folder),
    SparseOff,
    Clean,
    WithoutMonitor,
    WithoutLocks,
    OtherIndex,
}

/// A fault of the monitor.
#[derive(Clone, Debug)]
enum Fault {
    Kill,
    RemoveSocket,
    Overflow,
    MoveRepository,
}

/// A folder: up to two names.
#[derive(Clone, Debug)]
struct Folder(u8, u8);
/// A file in a folder.
#[derive(Clone, Debug)]
struct Place(Folder, u8);

const FOLDERS: [&[u8]; 5] = [b"", b"a", b"b b", b"ign", b"\xff\xc3"];
const FILES: [&[u8]; 7] = [b"f", b"g.o", b"x y", b"b b", b"a", b"\xfe'\"", b"x\\2d"];

impl Folder {
    fn path(&self) -> PathBuf {
        PathBuf::from(os(FOLDERS[usize::from(self.0) % 5])).join(os(FOLDERS[usize::from(self.1) % 5]))
    }
}

impl Place {
    fn path(&self) -> PathBuf {
        self.0.path().join(os(FILES[usize::from(self.1) % 7]))
    }
}

/// The reason why a case ends early.
enum End {
    /// Git prints something wrong even if the monitor answers `/`.
    FaultOfGit,
    /// The monitor caused a difference, which the text describes.
    Failed(String),
}

/// The command whose output is compared.
#[derive(Clone, Copy, Debug)]
enum Check {
    Normal,
    All,
    No,
    DiffFiles,
    DiffIndex,
    LsFiles,
    AddAll,
    Stash,
    Clean,
}

fn folder() -> impl Strategy<Value = Folder> {
    (0..5_u8, prop_oneof![3 => Just(0_u8), 2 => 0..5_u8]).prop_map(|(first, second)| Folder(first, second))
}

fn place() -> impl Strategy<Value = Place> {
    (folder(), 0..7_u8).prop_map(|(folder, file)| Place(folder, file))
}

fn git() -> impl Strategy<Value = Git> {
    prop_oneof![
        4 => place().prop_map(Git::Add),
        2 => Just(Git::AddAll),
        3 => Just(Git::Commit),
        2 => Just(Git::CommitAll),
        1 => (0..3_u8).prop_map(Git::CheckoutForced),
        1 => (0..3_u8).prop_map(Git::Checkout),
        1 => (0..3_u8).prop_map(Git::Branch),
        1 => Just(Git::ResetHard),
        1 => Just(Git::ResetMixed),
        1 => place().prop_map(Git::Restore),
        1 => place().prop_map(Git::Remove),
        1 => Just(Git::Stash),
        1 => Just(Git::StashPop),
        1 => folder().prop_map(Git::Sparse),
        1 => Just(Git::SparseOff),
        1 => Just(Git::Clean),
        1 => Just(Git::WithoutMonitor),
        1 => Just(Git::WithoutLocks),
        1 => Just(Git::OtherIndex),
    ]
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        3 => Just(Fault::Kill),
        1 => Just(Fault::RemoveSocket),
        1 => Just(Fault::Overflow),
        2 => Just(Fault::MoveRepository),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation as O;
    let files = prop_oneof![
        6 => (place(), any::<u8>()).prop_map(|(place, text)| O::Write(place, text)),
        6 => place().prop_map(O::Append),
        2 => place().prop_map(O::Rewrite),
        3 => (place(), any::<u8>()).prop_map(|(place, text)| O::Replace(place, text)),
        4 => place().prop_map(O::Remove),
        3 => (place(), place()).prop_map(|(from, to)| O::Rename(from, to)),
        2 => (place(), any::<bool>()).prop_map(|(place, is)| O::Executable(place, is)),
        1 => place().prop_map(O::Symlink),
        2 => (place(), place()).prop_map(|(from, to)| O::Link(from, to)),
        2 => (place(), 0..3_u8).prop_map(|(from, to)| O::LinkOut(from, to)),
        3 => (0..3_u8).prop_map(O::AppendOut),
        1 => (0..3_u8).prop_map(O::RemoveOut),
    ];
    let folders = prop_oneof![
        2 => folder().prop_map(O::RemoveFolder),
        2 => folder().prop_map(O::MakeFolder),
        3 => (folder(), folder()).prop_map(|(from, to)| O::RenameFolder(from, to)),
        1 => (folder(), 0..2_u8).prop_map(|(from, to)| O::MoveOut(from, to)),
        2 => (0..2_u8, folder()).prop_map(|(from, to)| O::MoveIn(from, to)),
        1 => (0..2_u8, folder()).prop_map(|(from, to)| O::CopyIn(from, to)),
        1 => folder().prop_map(O::FolderMode),
        1 => folder().prop_map(O::SymlinkFolder),
        1 => folder().prop_map(O::Nest),
        1 => folder().prop_map(O::CommitNested),
    ];
    prop_oneof![
        24 => files,
        8 => folders,
        2 => (0..4_u8, any::<bool>()).prop_map(|(rule, is_tracked)| O::Ignore(rule, is_tracked)),
        6 => git().prop_map(O::Git),
        1 => fault().prop_map(O::Fault),
    ]
}

fn check() -> impl Strategy<Value = Check> {
    prop_oneof![
        8 => Just(Check::Normal),
        2 => Just(Check::All),
        2 => Just(Check::No),
        1 => Just(Check::DiffFiles),
        1 => Just(Check::DiffIndex),
        1 => Just(Check::LsFiles),
        1 => Just(Check::AddAll),
        1 => Just(Check::Stash),
        1 => Just(Check::Clean),
    ]
}

/// A step of a case.
#[derive(Clone, Debug)]
enum Step {
    Do(Operation),
    Check(Check),
}

/// Steps with one repository, and the number of the daemon's limits.
#[derive(Clone, Debug)]
struct Case {
    limits: u8,
    steps: Vec<Step>,
}

fn case() -> impl Strategy<Value = Case> {
    let part = (prop::collection::vec(operation(), 1..8), check());
    (0..6_u8, prop::collection::vec(part, 1..60)).prop_map(|(limits, parts)| {
        let steps = |(operations, check): (Vec<Operation>, Check)| {
            operations.into_iter().map(Step::Do).chain([Step::Check(check)]).collect::<Vec<_>>()
        };
        let mut steps: Vec<Step> = parts.into_iter().flat_map(steps).collect();
        if limits == CALM {
            steps.retain(|step| !step.is_fault());
        }
        Case { limits, steps }
    })
}

/// Limits of the daemon in a case. Half of the cases have the usual ones.
const LIMITS: [&str; 6] = ["", "", "", "journal=20", "events=30,folders=2", "files=0"];
/// Cases with these limits have no faults. In these cases, at least 95 % of the answers to queries with a token should
/// be short.
const CALM: u8 = 0;

impl Step {
    /// Returns whether the step makes the token of the index invalid, so that the next answer must be `/`.
    fn is_fault(&self) -> bool {
        match self {
            Step::Do(Operation::Fault(_) | Operation::Git(Git::WithoutMonitor | Git::OtherIndex)) => true,
            // A change of the root's permissions, after which the daemon reads all folders again.
            Step::Do(Operation::FolderMode(folder)) => folder.path().as_os_str().is_empty(),
            _ => false,
        }
    }
}

/// A repository and the folders outside of it.
struct Model {
    repo: Repo,
    is_moved: bool,
    /// The case has no faults.
    is_calm: bool,
}

impl Model {
    fn new(limits: u8) -> Model {
        let repo = Repo::empty().with_limits(LIMITS[usize::from(limits)]);
        for (folder, file) in [(0, 0), (1, 0), (1, 1), (2, 2), (4, 5)] {
            let path = repo.root.join(Place(Folder(folder, 0), file).path());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{folder}{file}")).unwrap();
        }
        repo.git(["add", "."]);
        repo.git(["commit", "-qm", "a"]);
        for name in ["links", "moved"] {
            fs::create_dir(repo.outside().join(name)).unwrap();
        }
        repo.git(["branch", "b0"]);
        repo.enable();
        // Another hook shows which differences are git's own.
        if let Some(hook) = std::env::var_os("ASCERTAIN_MODEL_HOOK") {
            repo.git(["config".as_ref(), "core.fsmonitor".as_ref(), hook.as_os_str()]);
        }
        Model { repo, is_moved: false, is_calm: limits == CALM }
    }

    fn at(&self, path: &Path) -> PathBuf {
        self.repo.root.join(path)
    }

    /// Path of a file outside of the repository that has another name inside.
    fn link(&self, number: u8) -> PathBuf {
        self.repo.outside().join("links").join(number.to_string())
    }

    fn moved(&self, number: u8) -> PathBuf {
        self.repo.outside().join("moved").join(number.to_string())
    }

    /// Carries out an operation, if it is possible.
    fn apply(&mut self, operation: &Operation, counts: &Counts) -> Result<(), End> {
        use Operation as O;
        let at = |place: &Place| self.at(&place.path());
        let folder = |folder: &Folder| self.at(&folder.path());
        let is_root = |folder: &Folder| folder.path().as_os_str().is_empty();
        let _ = match operation {
            O::Write(place, text) => {
                let path = at(place);
                let _ = fs::create_dir_all(path.parent().unwrap());
                fs::write(path, text.to_string())
            }
            O::Append(place) if at(place).is_file() => {
                append(&at(place), "more");
                Ok(())
            }
            O::Rewrite(place) if at(place).is_file() => fs::read(at(place)).and_then(|text| fs::write(at(place), text)),
            O::Replace(place, text) if at(place).parent().is_some_and(Path::is_dir) => {
                let draft = at(place).with_file_name("draft~");
                fs::write(&draft, format!("r{text}")).and_then(|()| fs::rename(&draft, at(place)))
            }
            O::Remove(place) => fs::remove_file(at(place)),
            O::RemoveFolder(of) if !is_root(of) => fs::remove_dir_all(folder(of)),
            O::MakeFolder(of) => fs::create_dir_all(folder(of)),
            O::Rename(from, to) => fs::rename(at(from), at(to)),
            O::RenameFolder(from, to) if !is_root(from) && !is_root(to) => fs::rename(folder(from), folder(to)),
            O::MoveOut(from, to) if !is_root(from) => fs::rename(folder(from), self.moved(*to)),
            O::MoveIn(from, to) if !is_root(to) => fs::rename(self.moved(*from), folder(to)),
            O::CopyIn(from, to) if !is_root(to) => copy(&self.moved(*from), &folder(to)),
            O::Executable(place, is) if at(place).is_file() => {
                fs::set_permissions(at(place), fs::Permissions::from_mode(if *is { 0o755 } else { 0o644 }))
            }
            O::FolderMode(of) if folder(of).is_dir() => {
                fs::set_permissions(folder(of), fs::Permissions::from_mode(0o711))
            }
            O::Link(from, to) if self.are_all_watched() => fs::hard_link(at(from), at(to)),
            O::LinkOut(from, to) if self.are_all_watched() => fs::hard_link(at(from), self.link(*to)),
            O::AppendOut(of) if self.link(*of).is_file() && self.are_all_watched() => {
                append(&self.link(*of), "out");
                Ok(())
            }
            O::RemoveOut(of) => fs::remove_file(self.link(*of)),
            O::Symlink(place) => symlink("f", at(place)),
            O::SymlinkFolder(of) if !is_root(of) => symlink("a", folder(of)),
            O::Ignore(rule, is_tracked) => {
                let path = if *is_tracked { ".gitignore" } else { ".git/info/exclude" };
                fs::write(self.at(Path::new(path)), ["", "ign/\n", "*.o\n", "a\n!f\n"][usize::from(*rule)])
            }
            O::Nest(of) if !is_root(of) && folder(of).is_dir() => {
                self.repo.command_in(&folder(of)).args(["init", "-q"]).output().map(drop)
            }
            O::CommitNested(of) if !is_root(of) && folder(of).join(".git").is_dir() => {
                let commit = ["-c", "user.name=t", "-c", "user.email=e", "commit", "-qm", "n", "--allow-empty"];
                self.repo.command_in(&folder(of)).args(commit).output().map(drop)
            }
            O::Git(git) => return self.git(git),
            O::Fault(fault) => {
                self.fault(fault, counts);
                Ok(())
            }
            _ => Ok(()),
        };
        Ok(())
    }

    /// Returns whether every tracked file has a watch, so that the monitor notices a second name at once. Otherwise
    /// second names are a blind spot, which the documentation names: the daemon looks for them only from time to time.
    fn are_all_watched(&self) -> bool {
        self.repo.git(["status"]);
        let status = self.repo.status();
        status.pid.is_some() && status.links.are_all_watched
    }

    fn git(&mut self, git: &Git) -> Result<(), End> {
        let path = |place: &Place| place.path().into_os_string();
        let words = |words: &[&str]| words.iter().map(Into::into).collect::<Vec<std::ffi::OsString>>();
        let with = |list: &[&str], last: std::ffi::OsString| [words(list), vec![last]].concat();
        let commit = ["commit", "-q", "--allow-empty", "-m", "c"];
        let branch = |number: &u8| ["b0", "b1", "b2"][usize::from(*number)];
        let arguments = match git {
            Git::Add(place) => with(&["add", "-f", "--"], path(place)),
            Git::AddAll => words(&["add", "-A"]),
            Git::Commit => words(&commit),
            Git::CommitAll => [words(&commit), words(&["-a"])].concat(),
            Git::CheckoutForced(number) => words(&["checkout", "-q", "-f", branch(number)]),
            Git::Checkout(number) => words(&["checkout", "-q", branch(number)]),
            Git::Branch(number) => words(&["branch", "-f", branch(number)]),
            Git::ResetHard => words(&["reset", "-q", "--hard"]),
            Git::ResetMixed => words(&["reset", "-q"]),
            Git::Restore(place) => with(&["checkout", "-q", "--"], path(place)),
            Git::Remove(place) => with(&["rm", "-q", "-f", "--"], path(place)),
            Git::Stash => words(&["stash", "-q", "-u"]),
            Git::StashPop => words(&["stash", "pop", "-q"]),
            Git::Sparse(folder) => with(&["sparse-checkout", "set", "--"], folder.path().into_os_string()),
            Git::SparseOff => words(&["sparse-checkout", "disable"]),
            Git::Clean => words(&["clean", "-fdq"]),
            Git::WithoutMonitor => words(&["-c", "core.fsmonitor=false", "status"]),
            Git::WithoutLocks => words(&["--no-optional-locks", "status"]),
            Git::OtherIndex => {
                let mut command = self.repo.command();
                command.env("GIT_INDEX_FILE", self.at(Path::new(".git/other"))).args(["add", "-A"]);
                command.output().unwrap();
                return Ok(());
            }
        };
        let output = self.repo.command().args(&arguments).output().unwrap();
        let is_forced = output.status.success() && matches!(git, Git::CheckoutForced(_) | Git::ResetHard);
        // In a sparse checkout, plain git also leaves differences: files at paths that it has excluded.
        if is_forced && self.plain(&["config", "core.sparseCheckout"]).stdout != b"true\n" {
            let plain = self.plain(&["diff", "--name-only", "--ignore-submodules=all", "HEAD"]);
            if !plain.stdout.is_empty() {
                return Err(self.failed(&format!("{git:?} left differences: {}", shown(&plain))));
            }
        }
        Ok(())
    }

    fn fault(&mut self, fault: &Fault, counts: &Counts) {
        match fault {
            Fault::Kill => {
                counts.add(self);
                self.repo.kill();
            }
            Fault::RemoveSocket => {
                counts.add(self);
                let _ = self.repo.daemon_file("sock").map(fs::remove_file);
            }
            Fault::Overflow => {
                let Some(pid) = self.repo.pid() else { return };
                self.repo.overflow(pid);
                signal(pid, "CONT");
            }
            Fault::MoveRepository => {
                self.is_moved = !self.is_moved;
                let to = self.repo.beside(if self.is_moved { "renamed" } else { "r" });
                fs::rename(&self.repo.root, &to).unwrap();
                self.repo.root = to;
            }
        }
    }

    fn plain(&self, arguments: &[&str]) -> Output {
        self.repo.plain().args(arguments).output().unwrap()
    }

    /// Compares the output of a command with and without the monitor.
    fn check(&self, check: Check) -> Result<(), End> {
        let with_copy = |arguments: &[&str], then: &[&str]| {
            let index = self.at(Path::new(".git/index"));
            let copy = self.at(Path::new(".git/copy"));
            fs::copy(index, &copy).unwrap();
            let run = |arguments: &[&str]| self.repo.plain().env("GIT_INDEX_FILE", &copy).args(arguments).output();
            let first = run(arguments).unwrap();
            if then.is_empty() { first } else { run(then).unwrap() }
        };
        let arguments: &[&str] = match check {
            Check::Normal => &["status", "--porcelain"],
            Check::All => &["status", "--porcelain", "-uall"],
            Check::No => &["status", "--porcelain", "-uno"],
            Check::DiffFiles => &["diff-files", "--raw"],
            Check::DiffIndex => &["diff-index", "--raw", "HEAD"],
            Check::LsFiles => &["ls-files", "-m", "-o", "-d", "--exclude-standard"],
            Check::Clean => &["clean", "-n", "-d"],
            Check::AddAll => {
                let plain = with_copy(&["add", "-A"], &["write-tree"]);
                let added = self.repo.command().args(["add", "-A"]).output().unwrap();
                let ours = self.repo.command().arg("write-tree").output().unwrap();
                return self.compare(check, &ours, &plain, added.status.success());
            }
            Check::Stash => {
                let tree = |output: Output| {
                    let commit = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                    self.plain(&["rev-parse", &format!("{commit}^{{tree}}"), &format!("{commit}^2^{{tree}}")])
                };
                let plain = tree(with_copy(&["stash", "create"], &[]));
                let ours = tree(self.repo.command().args(["stash", "create"]).output().unwrap());
                return self.compare(check, &ours, &plain, ours.status.success());
            }
        };
        let plain = self.plain(arguments);
        let ours = self.repo.command().args(arguments).output().unwrap();
        if ours.stdout != plain.stdout && self.is_fault_of_git(arguments, &plain) {
            return Err(End::FaultOfGit);
        }
        self.compare(check, &ours, &plain, true)
    }

    /// Returns whether the difference remains with a monitor that answers `/` each time.
    fn is_fault_of_git(&self, arguments: &[&str], plain: &Output) -> bool {
        let always = self.repo.outside().join("always.sh");
        fs::write(&always, "#!/bin/sh\nprintf 'tok\\0/\\0'\n").unwrap();
        fs::set_permissions(&always, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = self.repo.command();
        command.env("GIT_OPTIONAL_LOCKS", "0").arg("-c").arg(format!("core.fsmonitor={}", always.display()));
        command.args(arguments).output().unwrap().stdout != plain.stdout
    }

    fn compare(&self, check: Check, ours: &Output, plain: &Output, matters: bool) -> Result<(), End> {
        if !matters || ours.stdout == plain.stdout {
            return Ok(());
        }
        Err(self.failed(&format!("{check:?}\nours:\n{}plain:\n{}", shown(ours), shown(plain))))
    }

    /// Adds the daemon's last answers and its log to a description of a failure.
    fn failed(&self, text: &str) -> End {
        let (status, log) = (self.repo.status(), ascertain_fsmonitor::log(&self.repo.root).unwrap());
        End::Failed(format!("{text}\n{:?}\n{log}", status.last))
    }
}

fn shown(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)?.flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() { copy(&entry.path(), &target)? } else { drop(fs::copy(entry.path(), target)) }
    }
    Ok(())
}

/// The answers of all daemons of a test.
#[derive(Default)]
struct Counts {
    operations: AtomicU64,
    checks: AtomicU64,
    /// Cases that ended because git printed something wrong even with the answer `/`.
    faults_of_git: AtomicU64,
    /// The answers of all cases, and of those without faults.
    answers: [Mutex<Answers>; 2],
}

#[derive(Default)]
struct Answers {
    count: u64,
    everything: BTreeMap<&'static str, u64>,
}

impl Counts {
    fn add(&self, model: &Model) {
        let status = model.repo.status();
        for answers in &self.answers[..=usize::from(model.is_calm)] {
            let mut answers = answers.lock().unwrap();
            answers.count += status.answers;
            for (reason, count) in &status.everything {
                *answers.everything.entry(reason.code()).or_default() += count;
            }
        }
    }
}

impl std::fmt::Display for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Answers { count, everything } = self;
        let short = count - everything.values().sum::<u64>();
        // The first query of an index has no token. Git also removes the token, for example in `git reset --hard`.
        let with_token = count - everything.get("no-token").unwrap_or(&0);
        let share = short as f64 / with_token.max(1) as f64 * 100.0;
        write!(f, "{with_token} queries with a token, {short} of them with a short answer ({share:.1} %), ")?;
        write!(f, "`/`: {everything:?}")
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Counts { operations, checks, faults_of_git, answers } = self;
        writeln!(f, "{operations:?} operations, {checks:?} checks, {faults_of_git:?} faults of git itself")?;
        writeln!(f, "all: {}", answers[0].lock().unwrap())?;
        writeln!(f, "without faults: {}", answers[1].lock().unwrap())
    }
}

/// Runs a case. Returns the number of the failed step, and a description.
fn run_case(case: &Case, counts: &Counts) -> Result<(), (usize, String)> {
    let at = AtomicU64::new(0);
    let run = || {
        let mut model = Model::new(case.limits);
        for step in &case.steps {
            match step {
                Step::Do(operation) => {
                    model.apply(operation, counts)?;
                    counts.operations.fetch_add(1, Relaxed);
                }
                Step::Check(check) => {
                    model.check(*check)?;
                    counts.checks.fetch_add(1, Relaxed);
                }
            }
            at.fetch_add(1, Relaxed);
        }
        counts.add(&model);
        Ok(())
    };
    let why = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(End::FaultOfGit)) => {
            counts.faults_of_git.fetch_add(1, Relaxed);
            return Ok(());
        }
        Ok(Err(End::Failed(why))) => why,
        Err(_) => "the test panicked: see above".into(),
    };
    Err((at.load(Relaxed) as usize, why))
}

/// Removes steps from a failed case as long as it still fails. Stops at the deadline. Begins with half of the steps at
/// a time, so that the runs soon become short.
fn shrink(mut case: Case, (mut failed, mut why): (usize, String), deadline: Instant) -> (Case, String) {
    let mut chunk = case.steps.len();
    case.steps.truncate(failed + 1);
    loop {
        let mut end = case.steps.len();
        let mut is_smaller = false;
        while end > 0 && Instant::now() < deadline {
            let start = end.saturating_sub(chunk);
            let mut less = case.clone();
            less.steps.drain(start..end);
            if let Err(error) = run_case(&less, &Counts::default()) {
                (failed, why) = error;
                less.steps.truncate(failed + 1);
                (case, is_smaller) = (less, true);
            }
            end = start.min(case.steps.len());
        }
        if Instant::now() >= deadline || (chunk == 1 && !is_smaller) {
            return (case, why);
        }
        chunk = (chunk / 2).max(1);
    }
}

/// Reads a number from an environment variable.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Runs cases until they have had this number of operations, in two threads.
fn run(operations: u64) {
    let counts = Counts::default();
    let base = number("PROPTEST_RNG_SEED");
    let base = base.unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64));
    let (next, failure, has_failed) = (AtomicU64::new(1), Mutex::new(None), AtomicBool::new(false));
    let work = || {
        while counts.operations.load(Relaxed) < operations && !has_failed.load(Relaxed) {
            let number = next.fetch_add(1, Relaxed);
            let rng_seed = RngSeed::Fixed(base.wrapping_mul(1_000_003).wrapping_add(number));
            let mut runner = TestRunner::new(Config { rng_seed, ..Config::default() });
            let case = case().new_tree(&mut runner).unwrap().current();
            if let Err(error) = run_case(&case, &counts)
                && !has_failed.swap(true, Relaxed)
            {
                *failure.lock().unwrap() = Some((number, case, error));
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    if let Some((number_of_case, case, error)) = failure.into_inner().unwrap() {
        let count = case.steps.len();
        let seconds = number("ASCERTAIN_MODEL_SHRINK").unwrap_or(100);
        let (Case { limits, steps }, why) = shrink(case, error, Instant::now() + Duration::from_secs(seconds));
        let steps: Vec<String> = steps.iter().map(|step| format!("{step:?}\n")).collect();
        let limits = LIMITS[usize::from(limits)];
        panic!(
            "seed {base}, case {number_of_case}: {} of {count} steps, limits `{limits}`: {why}\n{}",
            steps.len(),
            steps.concat()
        );
    }
    let _ = std::io::Write::write_all(&mut std::io::stdout(), counts.to_string().as_bytes());
}

#[test]
fn git_prints_the_same_with_and_without_the_monitor() {
    run(300);
}

#[test]
#[ignore = "takes several minutes"]
fn model_of_100_000_operations() {
    run(number("ASCERTAIN_MODEL_OPERATIONS").unwrap_or(100_000));
}
