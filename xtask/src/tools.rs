//! Starts programs, and installs the tools that the tests need.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fmt, fs};

use anyhow::{Context, ensure};

use crate::{git_tests, gits, part};

/// Returns the root folder of the workspace.
pub fn root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map(PathBuf::from).unwrap_or(manifest)
}

/// Returns the target folder of cargo.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Returns the path of a file below the root as text, which can be an argument of a program.
pub fn in_root(path: &str) -> String {
    root().join(path).to_string_lossy().into_owned()
}

/// Returns the path of a file below [`target`] as text.
pub fn in_target(path: &str) -> String {
    target().join(path).to_string_lossy().into_owned()
}

/// Returns the paths of all files below `folder` with this extension, sorted.
pub fn files(folder: &Path, extension: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("could not read {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            found.extend(files(&path, extension)?);
        } else if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Creates an empty folder below [`target`], and returns its path. Removes the old folder if it exists.
pub fn new_folder(path: &str) -> anyhow::Result<String> {
    let path = in_target(path);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path)?;
    Ok(path)
}

/// Returns the path of the file to which each test that cannot run here adds a line (`crates/sys/src/testing.rs`).
pub fn left_out_list() -> PathBuf {
    target().join("xtask-left-out")
}

/// Time in ns that this process has spent on building so far.
static BUILDING_NS: AtomicU64 = AtomicU64::new(0);

/// Returns the time that this process has spent on building so far.
pub fn time_building() -> Duration {
    Duration::from_nanos(BUILDING_NS.load(Ordering::Relaxed))
}

/// Runs a program that builds something. The table of costs counts the time as building. The error contains the first
/// line of standard error that begins with "error", because the summary of all parts shows no more of the log.
pub fn build<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> anyhow::Result<()> {
    counted_as_building(|| {
        let mut command = command(program, arguments);
        let mut child = command.stderr(Stdio::piped()).spawn().with_context(|| format!("could not start {program}"))?;
        let mut first_error = None;
        for line in child.stderr.take().into_iter().flat_map(|pipe| BufReader::new(pipe).split(b'\n')) {
            let line = String::from_utf8_lossy(&line?).into_owned();
            eprintln!("{line}");
            first_error = first_error.or_else(|| line.starts_with("error").then_some(line));
        }
        let status = child.wait()?;
        let reason = first_error.map(|line| format!(": {line}")).unwrap_or_default();
        ensure!(status.success(), "{program} {} ended with {status}{reason}", shown(arguments));
        Ok(())
    })
}

/// Runs `action`, and counts its time as building.
pub fn counted_as_building<T>(action: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = action();
    let elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    BUILDING_NS.fetch_add(elapsed_ns, Ordering::Relaxed);
    result
}

/// The environment variable for the seed of property tests. Every run draws the same inputs, unless the user sets
/// another seed.
const SEED: &str = "PROPTEST_RNG_SEED";

/// Runs a program in the root of the workspace, with our standard output and error. Fails if the program fails.
pub fn run<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> anyhow::Result<()> {
    let status = command(program, arguments).status().with_context(|| format!("could not start {program}"))?;
    ensure!(status.success(), "{program} {} ended with {status}", shown(arguments));
    Ok(())
}

/// Prints a command, and returns it with the environment of the tests, to be run in the root of the workspace.
fn command<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> Command {
    println!("$ {program} {}", shown(arguments));
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root()).env("ASCERTAIN_LEFT_OUT", left_out_list());
    command.env(SEED, env::var_os(SEED).unwrap_or_else(|| "1".into()));
    command
}

fn shown<S: AsRef<OsStr>>(arguments: &[S]) -> String {
    arguments.iter().map(|argument| argument.as_ref().to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Builds test programs with `cargo test`, and then runs all of them, even after a failure.
///
/// `variables` are set for cargo, `options` select the test programs, and `harness` is passed to each test program.
pub fn cargo_test(variables: &[&str], options: &[&str], harness: &[&str]) -> anyhow::Result<()> {
    let runner = runner("")?;
    cargo_test_without_runner(&[&[&*runner], variables].concat(), options, harness)
}

/// Runs the examples in the documentation of the workspace.
pub fn doc_tests() -> anyhow::Result<()> {
    let runner = runner("")?;
    run("env", &[&runner, "cargo", "test", "--quiet", "--workspace", "--doc", "--no-fail-fast"])
}

/// Does the same as [`cargo_test`], but without the script that [`runner`] writes. Use it for cargo commands that set
/// their own runner.
pub fn cargo_test_without_runner(variables: &[&str], options: &[&str], harness: &[&str]) -> anyhow::Result<()> {
    let env = [variables, &["cargo"], options].concat();
    build("env", &[&env[..], &["--no-run", "--quiet"]].concat())?;
    run("env", &[&env[..], &["--no-fail-fast", "--", "--quiet"], harness].concat())
}

/// Writes a script that starts a test program with the installed tools in its PATH. The script begins with the lines of
/// `prologue`. Returns the environment variable that makes cargo start test programs through the script.
///
/// The PATH of cargo itself is not changed. Otherwise build scripts would see another PATH, and cargo would rebuild the
/// crate `ring` and all crates that depend on it.
pub fn runner(prologue: &str) -> anyhow::Result<String> {
    let script = in_target(if prologue.is_empty() { "xtask-runner.sh" } else { "xtask-stress.sh" });
    fs::create_dir_all(target())?;
    fs::write(&script, format!("#!/bin/sh\n{prologue}export '{}'\nexec \"$@\"\n", path().replace('\'', "'\\''")))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    let machine = output_of("rustc", &["--print", "host-tuple"])?.trim().to_uppercase().replace('-', "_");
    Ok(format!("CARGO_TARGET_{machine}_RUNNER={script}"))
}

/// Runs a program and returns its output, whatever its exit code is.
pub fn capture<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, arguments: &[S]) -> anyhow::Result<Output> {
    let name = program.as_ref().to_string_lossy().into_owned();
    let output = Command::new(program).args(arguments).current_dir(root()).stdin(Stdio::null()).output();
    output.with_context(|| format!("could not start {name}"))
}

/// Runs a program and returns its standard output. Fails if the program fails.
pub fn output_of<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, arguments: &[S]) -> anyhow::Result<String> {
    let name = program.as_ref().to_string_lossy().into_owned();
    let Output { status, stdout, stderr } = capture(program, arguments)?;
    let (output, errors) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    ensure!(status.success(), "{name} ended with {status}: {errors}{output}");
    Ok(output.into_owned())
}

/// Builds the release binary, and the program that benches run as a load. Returns the path of the binary.
pub fn release_binary() -> anyhow::Result<PathBuf> {
    static IS_BUILT: OnceLock<()> = OnceLock::new();
    if IS_BUILT.get().is_none() {
        let built = ["--package", "ascertain-cli", "--bins", "--example", "spin"];
        build("cargo", &[&["build", "--quiet", "--release"], &built[..]].concat())?;
        let _ = IS_BUILT.set(());
    }
    Ok(target().join("release/ascertain"))
}

/// Builds the test programs of the workspace, which also builds the `ascertain` binary. Returns the path of the binary.
pub fn test_binary() -> anyhow::Result<PathBuf> {
    build_workspace_tests()?;
    Ok(target().join("debug/ascertain"))
}

/// Runs `ascertain compare` of this binary without recording evidence. Returns its output.
pub fn compare(binary: PathBuf, arguments: &[&[&str]]) -> anyhow::Result<String> {
    output_of(binary, &[&["compare", "--no-evidence"], &arguments.concat()[..]].concat())
}

/// The options of `cargo test` for all test programs of the workspace. Without `--tests`, cargo would also build all
/// examples.
pub const WORKSPACE_TESTS: &[&str] = &["test", "--workspace", "--tests"];

/// Builds the test programs of the workspace, and the examples that the tests of `ascertain` start.
pub fn build_workspace_tests() -> anyhow::Result<()> {
    static IS_BUILT: OnceLock<()> = OnceLock::new();
    if IS_BUILT.get().is_none() {
        build("cargo", &[WORKSPACE_TESTS, &["--quiet", "--no-run"]].concat())?;
        let sources = files(&root().join("crates/ascertain/examples"), "rs")?;
        build_examples(&sources.iter().filter_map(|path| path.file_stem()?.to_str()).collect::<Vec<_>>())?;
        let _ = IS_BUILT.set(());
    }
    Ok(())
}

/// Builds an example with the same libraries that the workspace's tests use. Returns the path of the example.
pub fn example(name: &str) -> anyhow::Result<String> {
    build_examples(&[name])?;
    Ok(in_target(&format!("debug/examples/{name}")))
}

fn build_examples(names: &[&str]) -> anyhow::Result<()> {
    let options = names.iter().flat_map(|name| ["--example", name]);
    build("cargo", &["build", "--quiet", "--workspace"].into_iter().chain(options).collect::<Vec<_>>())
}

/// Returns the path of a program in PATH; `None` if the program is not installed.
pub fn place_of(program: &str) -> Option<String> {
    output_of("sh", &["-c", "command -v \"$0\"", program]).ok().map(|output| output.trim().to_owned())
}

/// Returns the folder for tools that no package manager installs. All clones of this repository share it.
pub fn cache() -> PathBuf {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(env::home_dir()?.join(".cache"))).unwrap_or_else(target);
    cache.join("ascertain-xtask")
}

/// A tool or package that a part of the tests needs and that a machine may lack.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The name of a program, or the absolute path of a file, and the Debian package that contains it.
    Debian(&'static str, &'static str),
    /// A Python package from PyPI.
    Python(&'static str),
    /// A program, and the PyPI package that contains it, with a version.
    PythonProgram(&'static str, &'static str),
    /// The npm packages in `web/package-lock.json`.
    Npm,
    /// A program, and the npm package that contains it, with a version.
    NpmProgram(&'static str, &'static str),
    /// A program by its Go module, with a version.
    Go(&'static str),
    /// A program from crates.io, with its version.
    Crate(&'static str, &'static str),
    /// The source code of a package on crates.io, by name and version.
    Source(&'static str, &'static str),
    /// A version of git, beside the installed one, and the Debian suite that contains it.
    Git(&'static str, &'static str),
    /// The source of a version of git with its tests, built, and the Debian suite that contains it.
    GitSource(&'static str, &'static str),
    /// The standard library of Rust for a target.
    RustTarget(&'static str),
    /// A component of Rust's nightly toolchain.
    Nightly(&'static str),
    /// A stable toolchain of Rust, by its version.
    Rust(&'static str),
}

impl fmt::Display for Need {
    /// Writes the name of the tool, its source and its folder.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Debian(_, package) => write!(f, "{package}, a Debian package (apt-get install, as root)"),
            Need::Python(package) => write!(f, "{package}, from PyPI into {}", self.folder().display()),
            Need::PythonProgram(_, package) => write!(f, "{package}, from PyPI into {}", self.folder().display()),
            Need::Npm => write!(f, "web/package-lock.json, from npm into {}", self.folder().display()),
            Need::NpmProgram(_, package) => write!(f, "{package}, from npm into {}", self.folder().display()),
            Need::Go(module) => write!(f, "{module}, a Go module, into {}", self.folder().display()),
            Need::Crate(name, version) => {
                write!(f, "{name} {version}, from crates.io into {}", self.folder().display())
            }
            Need::Source(name, version) => {
                write!(f, "the source of {name} {version}, from crates.io into cargo's own folder")
            }
            Need::Git(version, suite) => {
                write!(f, "git {version} of Debian's {suite}, with its C library, into {}", self.folder().display())
            }
            Need::GitSource(version, suite) => {
                write!(f, "the source of git {version} of Debian's {suite}, into {}", self.folder().display())
            }
            Need::RustTarget(target) => write!(f, "the standard library for {target} (rustup)"),
            Need::Nightly(component) => write!(f, "{component} of the nightly tool chain (rustup)"),
            Need::Rust(version) => write!(f, "Rust {version} (rustup)"),
        }
    }
}

impl Need {
    pub const HYPERFINE: Need = Need::Debian("hyperfine", "hyperfine");

    /// Returns the folder in which the tool is installed, unless Debian, rustup or cargo chooses the folder. Each
    /// version has its own folder, which all clones of this repository share.
    fn folder(self) -> PathBuf {
        let name = match self {
            Need::Python(_) => "python".into(),
            Need::Npm => "web".into(),
            Need::NpmProgram(_, package) | Need::PythonProgram(_, package) => package.to_owned(),
            Need::Go(module) => module.replace('/', "-"),
            Need::Crate(name, version) => format!("{name}@{version}"),
            Need::Git(version, _) => format!("gits/{version}"),
            Need::GitSource(version, _) => format!("gits/{version}-source"),
            Need::Debian(..) | Need::Source(..) | Need::RustTarget(_) | Need::Nightly(_) | Need::Rust(_) => {
                String::new()
            }
        };
        cache().join(name)
    }

    /// Returns the path of the program that is installed for this need, or the folder of a source.
    pub fn program(self) -> PathBuf {
        let name = match self {
            Need::NpmProgram(name, _) | Need::PythonProgram(name, _) | Need::Crate(name, _) | Need::Debian(name, _) => {
                name
            }
            Need::Go(module) => name_of(module),
            Need::Git(..) => return self.folder().join("usr/bin/git"),
            Need::GitSource(..) => return self.folder(),
            _ => "python",
        };
        self.folder().join("bin").join(name)
    }

    /// Returns whether the tool is installed.
    pub fn is_met(self) -> bool {
        match self {
            Need::Debian(file, _) if file.starts_with('/') => Path::new(file).exists(),
            Need::Debian(program, _) => place_of(program).is_some(),
            Need::Python(package) => succeeds(python(), &["-c", &format!("import {package}")]),
            Need::Npm => {
                let lock = |folder: PathBuf| fs::read(folder.join("package-lock.json")).ok();
                npm_folder().join("node_modules").exists() && lock(npm_folder()) == lock(root().join("web"))
            }
            Need::NpmProgram(..) | Need::PythonProgram(..) | Need::Go(_) | Need::Crate(..) => self.program().exists(),
            Need::Source(name, version) => source(name, version).is_some(),
            Need::Git(..) => succeeds(self.program(), &["--version"]),
            Need::GitSource(..) => self.folder().join(gits::BUILT).exists(),
            Need::RustTarget(target) => {
                let folder = output_of("rustc", &["--print", "target-libdir", "--target", target]);
                folder.is_ok_and(|folder| Path::new(folder.trim()).exists())
            }
            Need::Nightly(component) => {
                let installed = output_of("rustup", &["component", "list", "--toolchain", "nightly", "--installed"]);
                installed.is_ok_and(|list| list.lines().any(|line| line.starts_with(component)))
            }
            Need::Rust(version) => {
                ["rustc", "cargo"].iter().all(|program| succeeds("rustup", &["run", version, program, "--version"]))
            }
        }
    }

    /// Installs the tool if it is not installed yet. Returns the reason if it cannot be installed.
    pub fn meet(self) -> Result<(), String> {
        if self.is_met() {
            return Ok(());
        }
        match self {
            Need::Debian(_, package) => apt_get_install(package)?,
            Need::Python(package) => pip_install(&[package])?,
            Need::PythonProgram(_, package) => {
                pip_install(&["--target", &self.folder().to_string_lossy(), package])?;
            }
            Need::Npm => npm_ci().map_err(|error| format!("{self}: {error:#}"))?,
            Need::NpmProgram(_, package) => {
                let install = ["install", "--global", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"];
                attempt("npm", &[&install[..], &[&self.folder().to_string_lossy(), package]].concat());
            }
            Need::Go(module) => {
                let folder = format!("GOBIN={}", self.folder().join("bin").display());
                attempt("env", &[&folder, "go", "install", module]);
            }
            Need::Crate(name, version) => {
                // Unoptimised, because building an optimised tool would take longer than running the tool.
                let folder = self.folder().to_string_lossy().into_owned();
                let install =
                    ["install", "--quiet", "--locked", "--profile", "dev", "--config", "profile.dev.debug=false"];
                // The other features of mdBook watch files and serve pages.
                let features: &[&str] = if name == "mdbook" { &["--no-default-features"] } else { &[] };
                let package = ["--root", &folder, name, "--version", version];
                let _ = build("cargo", &[&install[..], features, &package].concat());
            }
            Need::Git(_, suite) => {
                gits::fetch(suite, &self.folder()).map_err(|error| format!("{self}: {error:#}"))?;
            }
            Need::GitSource(_, suite) => {
                git_tests::fetch(suite, &self.folder()).map_err(|error| format!("{self}: {error:#}"))?;
            }
            Need::Source(name, version) => attempt("cargo", &["info", "--quiet", &format!("{name}@{version}")]),
            Need::RustTarget(target) => attempt("rustup", &["target", "add", target]),
            Need::Nightly(component) => attempt("rustup", &["component", "add", "--toolchain", "nightly", component]),
            Need::Rust(version) => {
                let install = ["toolchain", "install", version, "--profile", "minimal", "--no-self-update"];
                attempt("rustup", &install);
                // The first attempt may have ended between two components.
                if !self.is_met() {
                    attempt("rustup", &install);
                }
            }
        }
        if self.is_met() { Ok(()) } else { Err(format!("could not install {self}")) }
    }
}

/// Returns the folder into which cargo unpacked the source code of a package; `None` if there is none.
pub fn source(name: &str, version: &str) -> Option<PathBuf> {
    unpacked().map(|registry| registry.join(format!("{name}-{version}"))).find(|path| path.is_dir())
}

/// Returns the folders into which cargo unpacks packages. There is one folder per registry.
fn unpacked() -> impl Iterator<Item = PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    let registries = home.and_then(|home| fs::read_dir(home.join("registry/src")).ok());
    registries.into_iter().flatten().flatten().map(|registry| registry.path())
}

/// Returns whether a program could be started and exited with success.
fn succeeds<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, arguments: &[S]) -> bool {
    output_of(program, arguments).is_ok()
}

/// Runs an installation and ignores its result. The caller checks afterwards whether the tool is installed.
fn attempt<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, arguments: &[S]) {
    let _ = output_of(program, arguments);
}

/// Runs `pip install` with the Python interpreter of [`Need::Python`], and creates its virtual environment if
/// necessary.
fn pip_install(arguments: &[&str]) -> Result<(), String> {
    let folder = Need::Python("").folder();
    if !python().exists() && !succeeds("python3", &["-m", "venv", &folder.to_string_lossy()]) {
        return Err("python3 with venv is not installed; install python3-venv".into());
    }
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    attempt(python(), &[&install[..], arguments].concat());
    Ok(())
}

fn apt_get_install(package: &str) -> Result<(), String> {
    let is_root = output_of("id", &["-u"]).is_ok_and(|user| user == "0\n");
    if !is_root || place_of("apt-get").is_none() {
        return Err(format!("{package} is not installed; as root, run `apt-get install {package}`"));
    }
    // A new machine may be installing updates at the same time, and a mirror may fail for a moment, so apt-get waits
    // and retries.
    let patient = ["-qq", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"];
    let apt_get = |arguments: &[&str]| succeeds("apt-get", &[&patient, arguments].concat());
    let install = || apt_get(&["install", "-y", "--no-install-recommends", package]);
    // On a new machine the package lists are empty, so they are fetched after a first failure.
    if without_daemons(|| install() || (apt_get(&["update"]) && install())) {
        Ok(())
    } else {
        Err(format!("could not install {package}"))
    }
}

/// Runs an installation of Debian packages without starting their servers, because the tests start the servers. As in
/// container images, a file `policy-rc.d` forbids the start; an existing file is kept.
fn without_daemons(install: impl FnOnce() -> bool) -> bool {
    const POLICY: &str = "/usr/sbin/policy-rc.d";
    let policy = File::options().write(true).create_new(true).mode(0o755).open(POLICY);
    let is_ours = policy.is_ok_and(|mut file| file.write_all(b"#!/bin/sh\nexit 101\n").is_ok());
    let is_installed = install();
    if is_ours {
        let _ = fs::remove_file(POLICY);
    }
    is_installed
}

fn npm_ci() -> anyhow::Result<()> {
    // Node 20 is the oldest version that playwright-core supports.
    let is_new = succeeds("node", &["-e", "process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)"]);
    anyhow::ensure!(is_new, "node 20 or newer is not installed");
    let folder = npm_folder();
    fs::create_dir_all(&folder)?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(root().join("web").join(file), folder.join(file))?;
    }
    run("npm", &["ci", "--prefix", &folder.to_string_lossy(), "--no-audit", "--no-fund", "--ignore-scripts"])
}

/// Returns the folder with the packages of [`Need::Npm`].
pub fn npm_folder() -> PathBuf {
    Need::Npm.folder()
}

/// Runs one of our scripts that drive a browser. Fails if Chromium or [`Need::Npm`] is not installed.
pub fn node(script: &str, argument: &str) -> anyhow::Result<()> {
    let path = format!("NODE_PATH={}", npm_folder().join("node_modules").display());
    let chromium = format!("CHROMIUM={}", place_of("chromium").context("chromium is not installed")?);
    run("env", &[&*path, &chromium, "node", &in_root(script), argument])
}

/// Returns the Python interpreter that has the packages of each [`Need::Python`].
pub fn python() -> PathBuf {
    Need::Python("").program()
}

/// Returns a value of PATH in which the folders of the installed tools come before the machine's own.
pub fn path() -> String {
    let is_ours = |need: &&Need| {
        matches!(need, Need::Go(_) | Need::NpmProgram(..) | Need::Crate(..) | Need::Python(_) | Need::PythonProgram(..))
    };
    let folders = part::all().flat_map(|part| part.needs).filter(is_ours).filter_map(|need| {
        let folder = need.program().parent()?.to_owned();
        folder.exists().then(|| folder.to_string_lossy().into_owned())
    });
    let folders: BTreeSet<String> = folders.collect();
    let folders: Vec<String> = folders.into_iter().chain(env::var("PATH")).collect();
    format!("PATH={}", folders.join(":"))
}

/// Returns the name of the program in a Go module path, such as `benchstat` of
/// `golang.org/x/perf/cmd/benchstat@latest`.
fn name_of(module: &str) -> &str {
    let path = module.split('@').next().unwrap_or(module);
    path.rsplit('/').next().unwrap_or(path)
}
