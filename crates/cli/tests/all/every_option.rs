//! Tests the options whose value is a path, each with every kind of object to which a path can lead. Also tests that a
//! secret in the level of a factor is never written to a file. The options come from the program's own definition, so
//! new options are tested automatically.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use crate::common::{Ran, ascertain, command, ran, runs};

/// For each subcommand, the arguments before and after the tested option. They make the subcommand end soon. `RUN` is a
/// recorded run, `CLAIMS` a claims file, `OLD` an existing file, and `NEW` a missing one.
const BASES: &[(&str, &[&str], &[&str])] = &[
    ("compare", &["compare", "--max-trials", "1"], &["true", "true"]),
    ("slo", &["slo", "--at-least", "50%", "--max-trials", "1"], &["--", "true"]),
    ("check", &["check", "--max-trials", "1"], &["CLAIMS"]),
    ("run", &["run", "sum", "--no-claims", "--variants=naive", "--at=elements=1", "--trials=1"], &[]),
    ("continue", &["continue", "--max-trials", "2"], &["RUN"]),
    ("report", &["report"], &["RUN"]),
    ("power", &["power", "--at-least", "90%", "--max-trials", "20"], &[]),
    ("pyperf", &["pyperf"], &["RUN"]),
    ("series", &["series"], &["RUN", "lag(wall, 1)"]),
    ("man", &["man"], &[]),
    ("history", &["history"], &[]),
    ("history list", &["history", "list"], &[]),
    ("history trend", &["history", "trend", "true"], &[]),
    ("history changes", &["history", "changes", "true", "--ratio=true/true"], &[]),
    ("history compare", &["history", "compare"], &["RUN", "RUN"]),
    ("history prune", &["history", "prune", "--keep", "9"], &[]),
    ("put", &["put"], &["OLD", "NEW"]),
    ("get", &["get"], &["OLD", "NEW"]),
    ("ls", &["ls"], &["OLD"]),
    ("permute", &["permute"], &["OLD", "OLD"]),
    ("cost", &["cost", "--type=RUN=a"], &["RUN"]),
    ("clean", &["clean", "--dry-run"], &[]),
];

/// Subcommands that do not end by themselves; they have tests of their own.
const LEFT_OUT: &[&str] = &["barrierd", "calibrate-here", "listen", "fsmonitor"];

/// For each subcommand with an argument that is a path, a command line with `PATH` for the tested path.
const ARGUMENTS: &[(&str, &[&str])] = &[
    ("check", &["check", "--max-trials", "1", "PATH"]),
    ("continue", &["continue", "--max-trials", "2", "PATH"]),
    ("report", &["report", "PATH"]),
    ("history compare", &["history", "compare", "PATH", "latest"]),
    ("put", &["put", "PATH", "NEW"]),
    ("put", &["put", "OLD", "PATH"]),
    ("get", &["get", "PATH", "NEW"]),
    ("get", &["get", "OLD", "PATH"]),
    ("ls", &["ls", "PATH"]),
    ("permute", &["permute", "PATH", "OLD"]),
    ("cost", &["cost", "--prices=OLD", "PATH"]),
    ("pyperf", &["pyperf", "PATH", "OLD"]),
    ("series", &["series", "PATH", "lag(wall, 1)"]),
    ("clean", &["clean", "--dry-run", "PATH"]),
];

/// Arguments of subcommands, other than paths.
const NO_PATHS: &[&str] = &["COMMAND", "CMD", "EXPERIMENT", "ID", "S/N", "METRIC", "SHELL", "EXPR"];

/// The kinds of object to which a path can lead.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    File,
    Link,
    BrokenLink,
    Pipe,
    Folder,
    Missing,
    NoPermission,
    NotUnicode,
}

use Kind::{BrokenLink, Folder, Link, Missing, NoPermission, NotUnicode, Pipe};

const KINDS: [Kind; 8] = [Kind::File, Link, BrokenLink, Pipe, Folder, Missing, NoPermission, NotUnicode];

/// Content of existing files, which must not be lost.
const PRECIOUS: &str = "1\n2\n3\n";

impl Kind {
    /// Creates an object of this kind in its own folder, and returns the path.
    fn make(self, below: &Path) -> PathBuf {
        let folder = below.join("at");
        fs::create_dir(&folder).unwrap();
        let path = match self {
            NotUnicode => folder.join(OsStr::from_bytes(b"x\xff")),
            _ => folder.join("x"),
        };
        let precious = below.join("precious");
        match self {
            Kind::File | NoPermission | NotUnicode => fs::write(&path, PRECIOUS).unwrap(),
            Link => {
                fs::write(&precious, PRECIOUS).unwrap();
                symlink(&precious, &path).unwrap();
            }
            BrokenLink => symlink(below.join("nowhere/at/all"), &path).unwrap(),
            Pipe => mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap(),
            Folder => {
                fs::create_dir(&path).unwrap();
                fs::write(path.join("inside"), PRECIOUS).unwrap();
            }
            Missing => {}
        }
        if self == NoPermission {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        }
        path
    }

    /// Checks that the path kept its kind and that no half-written file remains.
    fn check(self, path: &Path, said: &str) {
        let kind = fs::symlink_metadata(path).map(|metadata| metadata.file_type());
        match self {
            Link | BrokenLink => assert!(kind.unwrap().is_symlink(), "the link is gone: {said}"),
            Pipe => assert!(kind.unwrap().is_fifo(), "the pipe is gone: {said}"),
            Folder => assert_eq!(fs::read_to_string(path.join("inside")).unwrap(), PRECIOUS, "{said}"),
            Kind::File | NoPermission | NotUnicode => assert!(kind.unwrap().is_file(), "{said}"),
            Missing => {}
        }
        let names = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
        let others: Vec<OsString> = names.filter(|name| Some(name.as_os_str()) != path.file_name()).collect();
        assert!(others.is_empty(), "{others:?} was left beside the path: {said}");
    }
}

/// Serves a named pipe, so that no command hangs on it: reads what a command writes, and ends the input of a command
/// that reads.
fn serve(pipe: &Path, is_over: &AtomicBool) {
    let open = |options: &mut OpenOptions| options.custom_flags(OFlags::NONBLOCK.bits() as i32).open(pipe);
    let mut reader: File = open(OpenOptions::new().read(true)).unwrap();
    let mut bytes = vec![0; 1 << 16];
    while !is_over.load(Ordering::Relaxed) {
        let _ = reader.read(&mut bytes);
        drop(open(OpenOptions::new().write(true)));
        thread::sleep(Duration::from_millis(2));
    }
}

/// A folder with all the files that `BASES` mentions.
struct Stand {
    folder: tempfile::TempDir,
    run: PathBuf,
}

impl Stand {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let recorded = ascertain(folder.path(), &["compare", "--max-trials", "1", "true", "true"]);
        assert_eq!(recorded.code, Some(0), "{}", recorded.stderr);
        fs::write(folder.path().join("old"), PRECIOUS).unwrap();
        let claims = "[[claim]]\nid = \"a\"\ncommand = \"true\"\npredicate = \"exit == 0\"\nrate = 0.5\n";
        fs::write(folder.path().join("claims.toml"), claims).unwrap();
        let run = runs(folder.path()).pop().unwrap();
        Self { folder, run }
    }

    /// Runs a command with a path of this kind in place of `PATH`, and checks how the command ends.
    fn try_path(&self, arguments: &[&str], kind: Kind) {
        let below = tempfile::tempdir_in(self.folder.path()).unwrap();
        let path = kind.make(below.path());
        let fill = |argument: &&str| -> OsString {
            let place = |name| below.path().join(name).into_os_string();
            match *argument {
                "PATH" => path.clone().into(),
                "RUN" => self.run.clone().into(),
                "CLAIMS" => self.folder.path().join("claims.toml").into(),
                "OLD" => self.folder.path().join("old").into(),
                "NEW" => place("new"),
                other => match other.split_once("=PATH") {
                    Some((option, "")) => [OsStr::new(option), OsStr::new("="), path.as_os_str()].into_iter().collect(),
                    _ => other.into(),
                },
            }
        };
        let filled: Vec<OsString> = arguments.iter().map(fill).collect();
        let is_over = AtomicBool::new(false);
        let said = thread::scope(|scope| {
            if kind == Pipe {
                scope.spawn(|| serve(&path, &is_over));
            }
            // If the command hangs, it is killed and the test fails.
            let mut limited = Command::new("timeout");
            limited.args(["--signal=KILL", "120"]).arg(env!("CARGO_BIN_EXE_ascertain")).args(&filled);
            limited.env("XDG_STATE_HOME", self.folder.path()).env("NO_COLOR", "1").current_dir(below.path());
            let ran = ran(limited.stdin(Stdio::null()).output().unwrap());
            is_over.store(true, Ordering::Relaxed);
            let Ran { code, stdout, stderr } = ran;
            let said = format!("{kind:?}: {arguments:?} ended with {code:?}: {stdout}{stderr}");
            assert!(code.is_some_and(|code| (0..=5).contains(&code)), "{said}");
            assert!(!stderr.contains("panicked"), "{said}");
            assert!(code != Some(2) || !stderr.is_empty(), "bad input is explained: {said}");
            said
        });
        kind.check(&path, &said);
    }
}

/// A subcommand and one of its options that takes a path, such as `("history prune", "--evidence")`.
type PathOption = (String, String);

/// Returns the options with paths, from the program's completions for fish.
fn path_options() -> Vec<PathOption> {
    let state = tempfile::tempdir().unwrap();
    let completions = ascertain(state.path(), &["completions", "fish"]).stdout;
    let option = |line: &str| {
        let (_, rest) = line.split_once("__fish_ascertain_using_subcommand ")?;
        let (condition, rest) = rest.split_once('"')?;
        let subcommand = match condition.split_once("; and __fish_seen_subcommand_from ") {
            Some((subcommand, nested)) => format!("{subcommand} {nested}"),
            None => condition.split(';').next().unwrap_or_default().to_string(),
        };
        let is_path = rest.ends_with(" -r -F") || rest.contains("__fish_complete_directories");
        let name = rest.split_once(" -l ")?.1.split(' ').next()?;
        is_path.then(|| (subcommand, format!("--{name}")))
    };
    completions.lines().filter_map(option).collect()
}

fn is_left_out(subcommand: &str) -> bool {
    LEFT_OUT.iter().any(|name| subcommand.split(' ').next() == Some(name))
}

#[test]
fn every_option_with_a_path_handles_every_kind_of_file() {
    let options = path_options();
    let names: BTreeSet<&str> = options.iter().map(|(_, option)| option.as_str()).collect();
    assert!(["--evidence", "--export-junit", "--recorded"].iter().all(|name| names.contains(name)), "{names:?}");
    let tries = options.iter().filter(|(subcommand, _)| !is_left_out(subcommand)).flat_map(|(subcommand, option)| {
        let base = BASES.iter().find(|(name, ..)| name == subcommand);
        let (_, before, behind) = base.unwrap_or_else(|| panic!("`{subcommand}` has {option}: add it to BASES"));
        let given = format!("{option}=PATH");
        let all = [before, &[&*given][..], behind].concat();
        let all: Vec<String> = all.into_iter().map(String::from).collect();
        KINDS.map(|kind| (all.clone(), kind))
    });
    try_all(&tries.collect::<Vec<_>>());
}

#[test]
fn every_argument_that_is_a_path_handles_every_kind_of_file() {
    let arguments = ARGUMENTS.iter().map(|(_, arguments)| arguments.iter().map(ToString::to_string).collect());
    let tries = arguments.flat_map(|arguments: Vec<String>| KINDS.map(|kind| (arguments.clone(), kind)));
    try_all(&tries.collect::<Vec<_>>());
}

/// Runs all cases, in two threads.
fn try_all(tries: &[(Vec<String>, Kind)]) {
    thread::scope(|scope| {
        for half in tries.chunks(tries.len().div_ceil(2)) {
            scope.spawn(move || {
                let stand = Stand::new();
                for (arguments, kind) in half {
                    stand.try_path(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), *kind);
                }
            });
        }
    });
}

/// Every argument must be in the list of tested arguments or in the list of arguments that are not paths.
#[test]
fn no_argument_is_forgotten() {
    let state = tempfile::tempdir().unwrap();
    let help = |arguments: &[&str]| ascertain(state.path(), arguments).stdout;
    let all = help(&["--help"]);
    // The subcommands are the indented lines before the options.
    let (commands, _) = all.split_once("Options:\n").unwrap();
    let names = commands.lines().filter(|line| line.starts_with("  "));
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"compare") && names.contains(&"put"), "{names:?}");
    let nested = ["list", "trend", "changes", "compare", "prune"].map(|name| format!("history {name}"));
    for subcommand in names.into_iter().map(String::from).chain(nested) {
        if is_left_out(&subcommand) {
            continue;
        }
        let words: Vec<&str> = subcommand.split(' ').chain(["--help"]).collect();
        let said = help(&words);
        let arguments = said.split_once("\nArguments:\n").map_or("", |(_, rest)| rest);
        let arguments = arguments.lines().take_while(|line| line.is_empty() || line.starts_with(' '));
        for line in arguments.filter(|line| line.starts_with("  [") || line.starts_with("  <")) {
            let is_path =
                !NO_PATHS.iter().any(|name| line.contains(&format!("{name}>")) || line.contains(&format!("{name}]")));
            let is_tried = ARGUMENTS.iter().any(|(name, _)| *name == subcommand);
            assert!(!is_path || is_tried, "`{subcommand}` has {}: add it to ARGUMENTS or NO_PATHS", line.trim());
        }
    }
}

/// Returns the contents and names of all files below a folder.
fn all_files(folder: &Path) -> Vec<u8> {
    let mut all = folder.as_os_str().as_bytes().to_vec();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => all.extend(all_files(&entry.path())),
            kind if kind.is_file() => all.extend(fs::read(entry.path()).unwrap()),
            _ => {}
        }
    }
    all
}

/// Levels are recorded, and reports are shared, so a secret in an address must never reach a file. The secret must not
/// be printed either.
#[test]
fn no_level_with_a_secret_is_written_down() {
    let state = tempfile::tempdir().unwrap();
    let list = ascertain(state.path(), &["list", "--format", "json"]).json();
    let mut addresses = 0;
    for experiment in list["experiments"].as_array().unwrap() {
        let id = experiment["id"].as_str().unwrap();
        for factor in experiment["factors"].as_array().unwrap() {
            let Some(schemes) = factor["accepts"]["address"]["schemes"].as_array() else { continue };
            addresses += 1;
            let (name, scheme) = (factor["name"].as_str().unwrap(), schemes[0].as_str().unwrap());
            for secret in ["user:PLANTED@host/", "host/?token=PLANTED", "host/a#PLANTED", "PLANTED@host:x/"] {
                let at = format!("{name}={scheme}{secret}");
                let asked = ["run", id, "--at", &at, "--max-time", "1s", "--max-trials", "1"];
                let ran = ascertain(state.path(), &asked);
                let said = format!("{}{}", ran.stdout, ran.stderr);
                assert_eq!(ran.code, Some(2), "{id} {at}: {said}");
                assert!(!said.contains("PLANTED"), "{id} {at}: {said}");
            }
        }
    }
    assert!(addresses >= 4, "{addresses}");
    let written = all_files(state.path());
    assert!(!written.windows(7).any(|window| window == b"PLANTED"));
}

/// If the address is in an environment variable, it must be neither recorded nor printed, not even in an error message.
/// `continue` needs the variable again.
#[test]
fn an_address_in_a_variable_stays_there() {
    let state = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let page = format!("http://{}/?token=PLANTED", listener.local_addr().unwrap());
    // This server fails every request, which leads to an error about the address.
    thread::spawn(move || listener.incoming().for_each(drop));
    let mut first = command(
        state.path(),
        &["run", "first-flight", "--variants=http", "--at=url=$PAGE", "--trials=2", "--max-time=5s", "--format=json"],
    );
    let measured = ran(first.env("PAGE", &page).output().unwrap());
    assert!(matches!(measured.code, Some(4 | 5)), "{:?} {}{}", measured.code, measured.stdout, measured.stderr);
    let said = format!("{}{}", measured.stdout, measured.stderr);
    assert!(said.contains("$PAGE") && !said.contains("PLANTED"), "{said}");
    let run = runs(state.path()).pop().unwrap();
    let report = ran(command(state.path(), &["report", run.to_str().unwrap()]).output().unwrap());
    assert!(!report.stderr.contains("PLANTED"), "{}", report.stderr);
    let written = all_files(state.path());
    assert!(written.windows(5).any(|window| window == b"$PAGE"));
    assert!(!written.windows(7).any(|window| window == b"PLANTED"));

    // The errors of some libraries contain paths and host names.
    for page in ["http://127.0.0.1:1/a b?token=PLANTED", "http://PLANTED.invalid/x", "https://PLANTED.invalid:1/"] {
        let asked = ["run", "first-flight", "--at=url=$PAGE", "--trials=1", "--max-time=2s"];
        let ran = ran(command(state.path(), &asked).env("PAGE", page).output().unwrap());
        assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("PLANTED"), "{page}: {}{}", ran.stdout, ran.stderr);
    }
    assert!(!all_files(state.path()).windows(7).any(|window| window == b"PLANTED"));

    let without = ascertain(state.path(), &["continue", run.to_str().unwrap()]);
    let says = "the environment variable PAGE is not set";
    assert!(without.code == Some(2) && without.stderr.contains(says), "{:?} {}", without.code, without.stderr);
}
