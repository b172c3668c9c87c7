//! Builds one version of Python in different ways from Debian's source package. The experiment `runtimes` then shows
//! how much the build weighs.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, ensure};

use crate::debian::Packages;
use crate::tools::{self, Need};

/// The source package, and the Debian suite that contains it.
const PACKAGE: (&str, &str) = ("python3.11", "bookworm");

/// Name of each build, and the arguments of `configure`.
const BUILDS: [(&str, &[&str]); 3] =
    [("gcc", &["CC=gcc"]), ("gcc-o1", &["CC=gcc", "OPT=-DNDEBUG -g -fwrapv -O1 -Wall"]), ("clang", &["CC=clang"])];

/// Programs and headers that a build needs. Without the libraries, Python lacks modules that workloads use.
const NEEDS: [Need; 6] = [
    Need::Debian("gcc", "gcc"),
    Need::Debian("clang", "clang"),
    Need::Debian("make", "make"),
    Need::Debian("/usr/include/zlib.h", "zlib1g-dev"),
    Need::Debian("/usr/include/bzlib.h", "libbz2-dev"),
    Need::Debian("/usr/include/lzma.h", "liblzma-dev"),
];

/// Builds every Python in [`BUILDS`], and prints the path of each. If it is interrupted, the next call resumes.
pub fn run(words: &[String]) -> anyhow::Result<()> {
    ensure!(words.is_empty(), "`cargo xtask pythons` takes no arguments");
    NEEDS.iter().try_for_each(|need| need.meet()).map_err(anyhow::Error::msg)?;
    let folder = tools::cache().join("pythons").join(PACKAGE.0);
    let source = folder.join("source");
    if !source.exists() {
        println!("fetching the source of {}", PACKAGE.0);
        fetch(&source)?;
    }
    for (name, arguments) in BUILDS {
        let program = build(&source, &folder.join(name), arguments).with_context(|| format!("the build {name}"))?;
        println!("{}", program.display());
    }
    Ok(())
}

/// Fetches the source into a folder, which gets its name only when it is complete.
fn fetch(source: &Path) -> anyhow::Result<()> {
    let unfinished = PathBuf::from(format!("{}.{}", source.display(), std::process::id()));
    let unpacked = unfinished.join("unpacked");
    let fetched = Packages::open_sources(PACKAGE.1, &unfinished)
        .and_then(|packages| packages.unpack_source(PACKAGE.0, &unpacked))
        .and_then(|()| fs::rename(&unpacked, source).context("could not rename the folder of the source"));
    let _ = fs::remove_dir_all(&unfinished);
    fetched
}

/// Builds Python in a folder of its own, in which it can run without installation. Returns the path of the program.
fn build(source: &Path, folder: &Path, arguments: &[&str]) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    if !folder.join("Makefile").exists() {
        let script = "cd \"$0\" && exec \"$1/configure\" -q \"${@:2}\" >configure.log 2>&1";
        let [folder, source] = [folder, source].map(|path| path.to_string_lossy().into_owned());
        tools::output_of("bash", &[&["-c", script, &folder, &source][..], arguments].concat())?;
    }
    let at_once = thread::available_parallelism()?.get().to_string();
    let script = "cd \"$0\" && exec make -s -j \"$1\" >make.log 2>&1";
    tools::output_of("bash", &["-c", script, &folder.to_string_lossy(), &at_once])?;
    let program = folder.join("python");
    tools::output_of(&program, &["-c", "import bz2, json, lzma, math, zlib"])?;
    Ok(program)
}
