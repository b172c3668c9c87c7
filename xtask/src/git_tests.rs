//! Runs git's own tests with our hook. Debian's source package contains them; this repository contains none.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::debian::Packages;
use crate::gits;
use crate::part::{Input, Part};
use crate::tools::{self, Need};

/// The version of git whose tests run, with the Debian suite that contains its source.
const SOURCE: Need = Need::GitSource("2.39", "bookworm");

pub const PARTS: &[Part] = &[Part::slow(
    "git's own tests, with our file system monitor",
    &[Need::Debian("/usr/include/zlib.h", "zlib1g-dev"), Need::Debian("make", "make"), SOURCE],
    &[
        Input::Package("ascertain-fsmonitor"),
        Input::Path("xtask/src/debian.rs"),
        Input::Path("xtask/src/git_tests.rs"),
        Input::Path("xtask/src/git_tests.txt"),
    ],
    tests,
)];

/// The test of monitors. It installs hooks of its own, which are replaced by ours.
const OF_MONITORS: &str = "t7519-status-fsmonitor";
/// Tests of other parts of git, which run with our hook in all their repositories.
const OTHERS: [&str; 12] = [
    "t1091-sparse-checkout-builtin",
    "t2200-add-update",
    "t3600-rm",
    "t3700-add",
    "t3903-stash",
    "t6423-merge-rename-directories",
    "t7061-wtstatus-ignore",
    "t7063-status-untracked-cache",
    "t7064-wtstatus-pv2",
    "t7201-co",
    "t7300-clean",
    "t7508-status",
];

/// The tests that do not pass, each as `SCRIPT: NAME`, with the reasons in lines that begin with `#`.
const DIFFERENT: &str = include_str!("git_tests.txt");

/// Lines that follow the test library in [`OF_MONITORS`]: a test that installs a hook installs ours.
const PRELUDE: &str = r#"
test_hook () {
	cat >/dev/null &&
	mkdir -p .git/hooks &&
	printf '#!/bin/sh\nexec "%s" "$@"\n' "$HOOK" >.git/hooks/fsmonitor-test &&
	chmod +x .git/hooks/fsmonitor-test
}
"#;

fn tests() -> anyhow::Result<()> {
    tools::build("cargo", &["build", "--quiet", "--package", "ascertain-fsmonitor", "--bins"])?;
    let hook = tools::in_target("debug/ascertain-fsmonitor-hook");
    let folder = SOURCE.program().join("t");
    let script = fs::read_to_string(folder.join(format!("{OF_MONITORS}.sh")))?;
    let (before, after) = script.split_once(". ./test-lib.sh\n").context("the test does not use the test library")?;
    let after = ["all", "env"].iter().fold(after.to_owned(), |script, name| {
        script.replace(&format!("$TEST_DIRECTORY/t7519/fsmonitor-{name}"), "$HOOK")
    });
    fs::write(folder.join("t7519-ours.sh"), format!("{before}. ./test-lib.sh\n{PRELUDE}{after}"))?;
    let different = DIFFERENT.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let different: BTreeSet<String> = different.map(str::to_owned).collect();
    let mut failed = BTreeSet::new();
    for name in [OF_MONITORS].iter().chain(&OTHERS) {
        let mut shell = Command::new("sh");
        shell.current_dir(&folder).env("HOOK", &hook);
        if *name == OF_MONITORS {
            shell.arg("t7519-ours.sh");
        } else {
            shell.arg(format!("{name}.sh")).env("GIT_TEST_FSMONITOR", &hook);
        }
        let output = shell.output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let ended = |word: &str| {
            let names = text.lines().filter_map(|line| line.strip_prefix(word)?.split_once(" - "));
            names.filter(|(_, name)| !name.contains(" # ")).map(|(_, test)| format!("{name}: {test}")).collect()
        };
        let (passed, wrong): (Vec<String>, Vec<String>) = (ended("ok "), ended("not ok "));
        ensure!(text.lines().last().is_some_and(|line| line.starts_with("1..")), "{name} did not end: {text}");
        println!("{name}: {} tests pass, {} fail", passed.len(), wrong.len());
        // Git keeps the repositories of a script with failed tests. Our daemons end when their repositories are gone.
        remove_repositories(&folder)?;
        failed.extend(wrong);
    }
    let wrong: Vec<&String> = failed.symmetric_difference(&different).collect();
    ensure!(wrong.is_empty(), "tests that passed or failed contrary to git_tests.txt: {wrong:#?}");
    Ok(())
}

/// Removes the folders in which the tests of git made their repositories.
fn remove_repositories(folder: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("trash directory.") {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Unpacks the source of the git in a Debian suite into `folder`, and builds the programs that its tests need.
pub fn fetch(suite: &str, folder: &Path) -> anyhow::Result<()> {
    let _ = fs::remove_dir_all(folder);
    let lists = PathBuf::from(format!("{}.{}", folder.display(), std::process::id()));
    let unpacked = Packages::open_sources(suite, &lists).and_then(|packages| packages.unpack_source("git", folder));
    let _ = fs::remove_dir_all(&lists);
    unpacked?;
    let without = ["CURL", "OPENSSL", "EXPAT", "GETTEXT", "PERL", "PYTHON", "TCLTK"].map(|name| format!("NO_{name}=1"));
    let path = folder.to_string_lossy().into_owned();
    let cpus = std::thread::available_parallelism()?.to_string();
    let options = ["-C", &path, "-j", &cpus, "CFLAGS=-O1", "SKIP_DASHED_BUILT_INS=1"].map(str::to_owned);
    tools::counted_as_building(|| tools::output_of("make", &[&options[..], &without[..]].concat()))?;
    Ok(fs::write(folder.join(gits::BUILT), "")?)
}
