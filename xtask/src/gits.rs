//! Fetches other versions of git from Debian's archive, for tests and for the experiment `git-status`. They are
//! unpacked, not installed, so the installed git stays as it is.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::debian::Packages;
use crate::part::{Input, Part};
use crate::tools::{self, Need};

/// Versions of git, each with the Debian suite that contains it. The last one has its own file system monitor on Linux.
pub const GITS: [Need; 3] = [Need::Git("2.30", "bullseye"), Need::Git("2.39", "bookworm"), Need::Git("2.55", "sid")];

/// Packages whose tests also use the gits above and watchman, if they are there.
const PACKAGES: [&str; 2] = ["ascertain-fsmonitor", "ascertain-experiments-host"];
const INPUTS: &[Input] = &[
    Input::Package("ascertain-experiments-host"),
    Input::Package("ascertain-fsmonitor"),
    Input::Path("xtask/src/debian.rs"),
    Input::Path("xtask/src/gits.rs"),
];

pub const PARTS: &[Part] = &[Part::slow(
    "monitors with old and new versions of git, and with watchman",
    &[GITS[0], GITS[1], GITS[2], Need::Debian("watchman", "watchman")],
    INPUTS,
    tests,
)];

/// A file in the folder of a source that has been built.
pub const BUILT: &str = "built";

/// The programs of git that the loader of the C library starts.
const PROGRAMS: [&str; 2] = ["usr/bin/git", "usr/lib/git-core/git"];
/// Paths of the C library and its loader in the packages of both architectures.
const LIBRARIES: [(&str, &str); 2] =
    [("usr/lib/x86_64-linux-gnu", "ld-linux-x86-64.so.2"), ("usr/lib/aarch64-linux-gnu", "ld-linux-aarch64.so.1")];

/// Fetches every git in [`GITS`] that is missing, and prints the path of each.
pub fn run(words: &[String]) -> anyhow::Result<()> {
    ensure!(words.is_empty(), "`cargo xtask gits` takes no arguments");
    for git in GITS {
        if !git.is_met() {
            println!("fetching {git}");
        }
        git.meet().map_err(anyhow::Error::msg)?;
        println!("{}", git.program().display());
    }
    Ok(())
}

fn tests() -> anyhow::Result<()> {
    // The tests start the hook, which is a separate program.
    tools::build("cargo", &["build", "--quiet", "--package", PACKAGES[0], "--bins"])?;
    let packages = PACKAGES.iter().flat_map(|package| ["--package", package]);
    tools::run("cargo", &["test", "--quiet"].into_iter().chain(packages).collect::<Vec<_>>())
}

/// Unpacks the git of a Debian suite into `folder`.
pub fn fetch(suite: &str, folder: &Path) -> anyhow::Result<()> {
    let unfinished = PathBuf::from(format!("{}.{}", folder.display(), std::process::id()));
    let result = fetch_into(suite, &unfinished, folder);
    let _ = fs::remove_dir_all(&unfinished);
    result
}

fn fetch_into(suite: &str, unfinished: &Path, folder: &Path) -> anyhow::Result<()> {
    let packages = Packages::open(suite, &unfinished.join("apt"))?;
    let root = unfinished.join("root");
    packages.unpack("git", &root)?;
    if tools::output_of(root.join(PROGRAMS[0]), &["--version"]).is_err() {
        // This machine's C library is too old, so the git gets the C library of its own suite.
        packages.unpack("libc6", &root)?;
        packages.unpack("patchelf", &unfinished.join("patchelf"))?;
        let is_there = |(folder, loader): &(&str, &str)| root.join(folder).join(loader).exists();
        let (libraries, loader) = LIBRARIES.into_iter().find(is_there).context("the package libc6 has no loader")?;
        let patchelf = unfinished.join("patchelf/usr/bin/patchelf");
        for program in PROGRAMS {
            // patchelf has the same C library. The new paths are those after the folder has its final name.
            let library = folder.join(libraries);
            let run: [&Path; 8] = [
                "--library-path".as_ref(),
                &root.join(libraries),
                &patchelf,
                "--set-interpreter".as_ref(),
                &library.join(loader),
                "--set-rpath".as_ref(),
                &library,
                &root.join(program),
            ];
            tools::output_of(root.join(libraries).join(loader), &run)?;
        }
    }
    let _ = fs::remove_dir_all(folder);
    fs::rename(&root, folder).with_context(|| format!("could not create {}", folder.display()))
}
