//! Starting programs, and installing the ones that tests meet.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fmt, fs};

use anyhow::{Context, ensure};

use crate::part;

/// The workspace's root.
pub fn root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map(PathBuf::from).unwrap_or(manifest)
}

/// Where cargo puts what it builds.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A path below the root, as programs are given it.
pub fn in_root(path: &str) -> String {
    root().join(path).to_string_lossy().into_owned()
}

/// The same below [`target`].
pub fn in_target(path: &str) -> String {
    target().join(path).to_string_lossy().into_owned()
}

/// Returns all files below a folder that have this extension, sorted.
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

/// A folder below [`target`] in which there is nothing.
pub fn new_folder(path: &str) -> anyhow::Result<String> {
    let path = in_target(path);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path)?;
    Ok(path)
}

/// The file to which each test that cannot run here adds a line (`crates/sys/src/testing.rs`).
pub fn left_out_list() -> PathBuf {
    target().join("xtask-left-out")
}

/// The time that this process has spent on building, in nanoseconds.
static BUILDING_NS: AtomicU64 = AtomicU64::new(0);

/// Returns the time that this process has spent in [`build`] so far.
pub fn time_building() -> Duration {
    Duration::from_nanos(BUILDING_NS.load(Ordering::Relaxed))
}

/// Runs a program that builds something. The table of costs counts its time as building.
pub fn build<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> anyhow::Result<()> {
    counted_as_building(|| run(program, arguments))
}

/// Counts the time of an action as building.
pub fn counted_as_building<T>(action: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = action();
    let elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    BUILDING_NS.fetch_add(elapsed_ns, Ordering::Relaxed);
    result
}

/// The variable for the seed of property tests. Every run draws the same inputs, unless the environment sets another
/// seed.
const SEED: &str = "PROPTEST_RNG_SEED";

/// Runs a program in the workspace's root. The program inherits our standard output and error.
pub fn run<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> anyhow::Result<()> {
    let shown: Vec<_> = arguments.iter().map(|a| a.as_ref().to_string_lossy()).collect();
    println!("$ {program} {}", shown.join(" "));
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root()).env("ASCERTAIN_LEFT_OUT", left_out_list());
    command.env(SEED, env::var_os(SEED).unwrap_or_else(|| "1".into()));
    let status = command.status().with_context(|| format!("could not start {program}"))?;
    ensure!(status.success(), "{program} {} ended with {status}", shown.join(" "));
    Ok(())
}

/// Builds test programs with `cargo test`, then runs all of them, also after a failure.
///
/// `variables` are set for cargo, `options` select the programs, and `harness` goes to each of them.
pub fn cargo_test(variables: &[&str], options: &[&str], harness: &[&str]) -> anyhow::Result<()> {
    let runner = runner("")?;
    cargo_test_without_runner(&[&[&*runner], variables].concat(), options, harness)
}

/// Runs the examples in the workspace's documentation.
pub fn doc_tests() -> anyhow::Result<()> {
    let runner = runner("")?;
    run("env", &[&runner, "cargo", "test", "--quiet", "--workspace", "--doc", "--no-fail-fast"])
}

/// Does the same without the script of [`runner`], for a cargo command that has a runner of its own.
pub fn cargo_test_without_runner(variables: &[&str], options: &[&str], harness: &[&str]) -> anyhow::Result<()> {
    let env = [variables, &["cargo"], options].concat();
    build("env", &[&env[..], &["--no-run", "--quiet"]].concat())?;
    run("env", &[&env[..], &["--no-fail-fast", "--", "--quiet"], harness].concat())
}

/// Writes a script that starts each test program with the installed tools in its PATH, after the lines of `prologue`.
/// Returns the setting with which cargo starts test programs through the script.
///
/// The PATH of cargo itself stays as it is. Another one would reach the build scripts, and cargo would build ring and
/// everything that depends on it again.
pub fn runner(prologue: &str) -> anyhow::Result<String> {
    let script = in_target(if prologue.is_empty() { "xtask-runner.sh" } else { "xtask-stress.sh" });
    fs::create_dir_all(target())?;
    fs::write(&script, format!("#!/bin/sh\n{prologue}export '{}'\nexec \"$@\"\n", path().replace('\'', "'\\''")))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    let machine = output_of("rustc", &["--print", "host-tuple"])?.trim().to_uppercase().replace('-', "_");
    Ok(format!("CARGO_TARGET_{machine}_RUNNER={script}"))
}

/// Runs a program and returns what it printed, whatever its exit code.
pub fn capture<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, arguments: &[S]) -> anyhow::Result<Output> {
    let name = program.as_ref().to_string_lossy().into_owned();
    let output = Command::new(program).args(arguments).current_dir(root()).stdin(Stdio::null()).output();
    output.with_context(|| format!("{name} can't be started"))
}

/// Runs a program and returns its standard output. Fails if the program fails.
pub fn output_of<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, arguments: &[S]) -> anyhow::Result<String> {
    let name = program.as_ref().to_string_lossy().into_owned();
    let Output { status, stdout, stderr } = capture(program, arguments)?;
    let (output, errors) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    ensure!(status.success(), "{name} ended with {status}: {errors}{output}");
    Ok(output.into_owned())
}

/// Builds the release binary, and the program that benches start as a load. Returns the binary's path.
pub fn release_binary() -> anyhow::Result<PathBuf> {
    static IS_BUILT: OnceLock<()> = OnceLock::new();
    if IS_BUILT.get().is_none() {
        let built = ["--package", "ascertain-cli", "--bins", "--example", "spin"];
        build("cargo", &[&["build", "--quiet", "--release"], &built[..]].concat())?;
        let _ = IS_BUILT.set(());
    }
    Ok(target().join("release/ascertain"))
}

/// Builds the workspace's test programs, and with them the binary. Returns the binary's path.
pub fn test_binary() -> anyhow::Result<PathBuf> {
    build_workspace_tests()?;
    Ok(target().join("debug/ascertain"))
}

/// The options of `cargo test` for every test program of the workspace. Without `--tests`, cargo would also build all
/// examples.
pub const WORKSPACE_TESTS: &[&str] = &["test", "--workspace", "--tests"];

/// Builds the workspace's test programs, and the examples that the tests of `ascertain` start.
pub fn build_workspace_tests() -> anyhow::Result<()> {
    static IS_BUILT: OnceLock<()> = OnceLock::new();
    if IS_BUILT.get().is_none() {
        build("cargo", &[WORKSPACE_TESTS, &["--quiet", "--no-run"]].concat())?;
        let folder = fs::read_dir(in_root("crates/ascertain/examples"))?;
        let sources = folder.filter_map(Result::ok).map(|entry| entry.path());
        let sources = sources.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
        let names: Vec<_> = sources.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
        build_examples(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
        let _ = IS_BUILT.set(());
    }
    Ok(())
}

/// Builds an example with the libraries of the workspace's tests, and returns its path.
pub fn example(name: &str) -> anyhow::Result<String> {
    build_examples(&[name])?;
    Ok(in_target(&format!("debug/examples/{name}")))
}

fn build_examples(names: &[&str]) -> anyhow::Result<()> {
    let options = names.iter().flat_map(|name| ["--example", name]);
    build("cargo", &["build", "--quiet", "--workspace"].into_iter().chain(options).collect::<Vec<_>>())
}

/// Where a program is.
pub fn place_of(program: &str) -> Option<String> {
    output_of("sh", &["-c", "command -v \"$0\"", program]).ok().map(|output| output.trim().to_owned())
}

/// What a part of the tests needs and a machine may lack.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A program, or a file by its whole path, and Debian's package of it.
    Debian(&'static str, &'static str),
    /// A package from PyPI.
    Python(&'static str),
    /// What `web/package-lock.json` names.
    Npm,
    /// A program, and npm's package of it with its version.
    NpmProgram(&'static str, &'static str),
    /// A program's Go module with its version.
    Go(&'static str),
    /// A program from crates.io with its version.
    Crate(&'static str, &'static str),
    /// The source of a package on crates.io, by name and version.
    Source(&'static str, &'static str),
    /// Rust's standard library for a target.
    RustTarget(&'static str),
    /// A component of Rust's nightly tool chain.
    Nightly(&'static str),
    /// A version of Rust.
    Rust(&'static str),
}

impl fmt::Display for Need {
    /// What it is, where it comes from and where it goes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Debian(_, package) => write!(f, "{package}, a package of Debian's (apt-get install, as root)"),
            Need::Python(package) => write!(f, "{package}, from PyPI into {}", self.folder().display()),
            Need::Npm => write!(f, "web/package-lock.json, from npm into {}", self.folder().display()),
            Need::NpmProgram(_, package) => write!(f, "{package}, from npm into {}", self.folder().display()),
            Need::Go(module) => write!(f, "{module}, a Go module, into {}", self.folder().display()),
            Need::Crate(name, version) => {
                write!(f, "{name} {version}, from crates.io into {}", self.folder().display())
            }
            Need::Source(name, version) => {
                write!(f, "the source of {name} {version}, from crates.io into cargo's own folder")
            }
            Need::RustTarget(target) => write!(f, "the standard library for {target} (rustup)"),
            Need::Nightly(component) => write!(f, "{component} of the nightly tool chain (rustup)"),
            Need::Rust(version) => write!(f, "Rust {version} (rustup)"),
        }
    }
}

impl Need {
    pub const HYPERFINE: Need = Need::Debian("hyperfine", "hyperfine");

    /// Returns the folder that the tool is installed into, unless Debian, rustup or cargo chooses it. Each version has
    /// its own folder, and all clones of this repository share these folders.
    fn folder(self) -> PathBuf {
        let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(env::home_dir()?.join(".cache"))).unwrap_or_else(target);
        let name = match self {
            Need::Python(_) => "python".into(),
            Need::Npm => "web".into(),
            Need::NpmProgram(_, package) => package.to_owned(),
            Need::Go(module) => module.replace('/', "-"),
            Need::Crate(name, version) => format!("{name}@{version}"),
            Need::Debian(..) | Need::Source(..) | Need::RustTarget(_) | Need::Nightly(_) | Need::Rust(_) => {
                String::new()
            }
        };
        cache.join("ascertain-xtask").join(name)
    }

    /// Returns the path of the program that was installed for this need.
    pub fn program(self) -> PathBuf {
        let name = match self {
            Need::NpmProgram(name, _) | Need::Crate(name, _) | Need::Debian(name, _) => name,
            Need::Go(module) => name_of(module),
            _ => "python",
        };
        self.folder().join("bin").join(name)
    }

    /// Whether it is there.
    pub fn is_met(self) -> bool {
        match self {
            Need::Debian(file, _) if file.starts_with('/') => Path::new(file).exists(),
            Need::Debian(program, _) => place_of(program).is_some(),
            Need::Python(package) => succeeds(python(), &["-c", &format!("import {package}")]),
            Need::Npm => {
                let lock = |folder: PathBuf| fs::read(folder.join("package-lock.json")).ok();
                npm_folder().join("node_modules").exists() && lock(npm_folder()) == lock(root().join("web"))
            }
            Need::NpmProgram(..) | Need::Go(_) | Need::Crate(..) => self.program().exists(),
            Need::Source(name, version) => source(name, version).is_some(),
            Need::RustTarget(target) => {
                let folder = output_of("rustc", &["--print", "target-libdir", "--target", target]);
                folder.is_ok_and(|folder| Path::new(folder.trim()).exists())
            }
            Need::Nightly(component) => {
                let installed = output_of("rustup", &["component", "list", "--toolchain", "nightly", "--installed"]);
                installed.is_ok_and(|list| list.lines().any(|line| line.starts_with(component)))
            }
            Need::Rust(version) => succeeds("rustup", &["run", version, "rustc", "--version"]),
        }
    }

    /// Makes sure of it; the reason where that can't be done.
    pub fn meet(self) -> Result<(), String> {
        if self.is_met() {
            return Ok(());
        }
        match self {
            Need::Debian(_, package) => apt_get_install(package)?,
            Need::Python(package) => {
                let folder = self.folder();
                if !python().exists() && !succeeds("python3", &["-m", "venv", &folder.to_string_lossy()]) {
                    return Err("python3 with venv is not installed".into());
                }
                succeeds(python(), &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]);
            }
            Need::Npm => npm_ci().map_err(|error| format!("{self}: {error:#}"))?,
            Need::NpmProgram(_, package) => {
                let install = ["install", "--global", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"];
                succeeds("npm", &[&install[..], &[&self.folder().to_string_lossy(), package]].concat());
            }
            Need::Go(module) => {
                let folder = format!("GOBIN={}", self.folder().join("bin").display());
                succeeds("env", &[&folder, "go", "install", module]);
            }
            Need::Crate(name, version) => {
                // Unoptimised, because building the tool takes longer than it ever runs.
                let folder = self.folder().to_string_lossy().into_owned();
                let install =
                    ["install", "--quiet", "--locked", "--profile", "dev", "--config", "profile.dev.debug=false"];
                let _ = build("cargo", &[&install[..], &["--root", &folder, name, "--version", version]].concat());
            }
            Need::Source(name, version) => {
                succeeds("cargo", &["info", "--quiet", &format!("{name}@{version}")]);
            }
            Need::RustTarget(target) => {
                succeeds("rustup", &["target", "add", target]);
            }
            Need::Nightly(component) => {
                succeeds("rustup", &["component", "add", "--toolchain", "nightly", component]);
            }
            Need::Rust(version) => {
                succeeds("rustup", &["toolchain", "install", version, "--profile", "minimal"]);
            }
        }
        if self.is_met() { Ok(()) } else { Err(format!("could not be installed: {self}")) }
    }
}

/// Where cargo has unpacked the source of a package.
pub fn source(name: &str, version: &str) -> Option<PathBuf> {
    unpacked().map(|registry| registry.join(format!("{name}-{version}"))).find(|path| path.is_dir())
}

/// The folders in which cargo unpacks packages, one of each registry.
fn unpacked() -> impl Iterator<Item = PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    let registries = home.and_then(|home| fs::read_dir(home.join("registry/src")).ok());
    registries.into_iter().flatten().flatten().map(|registry| registry.path())
}

/// Whether a program could be started and says that all is well.
fn succeeds<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, arguments: &[S]) -> bool {
    output_of(program, arguments).is_ok()
}

fn apt_get_install(package: &str) -> Result<(), String> {
    let is_root = output_of("id", &["-u"]).is_ok_and(|user| user == "0\n");
    if !is_root || place_of("apt-get").is_none() {
        return Err(format!("{package} is not installed (as root, `apt-get install {package}` would)"));
    }
    // A new machine installs its updates just now, and a mirror may hiccup.
    let patient = ["-qq", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"];
    let apt_get = |arguments: &[&str]| succeeds("apt-get", &[&patient, arguments].concat());
    let install = || apt_get(&["install", "-y", "--no-install-recommends", package]);
    // The lists of a new machine are empty.
    if without_daemons(|| install() || (apt_get(&["update"]) && install())) {
        Ok(())
    } else {
        Err(format!("{package} could not be installed"))
    }
}

/// Has Debian's packages start nothing when they are installed: servers are for tests to start. Images of containers
/// say so themselves, and what somebody has said here already stays.
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
    // What playwright-core asks for.
    let is_new = succeeds("node", &["-e", "process.exit(parseInt(process.versions.node) >= 20 ? 0 : 1)"]);
    anyhow::ensure!(is_new, "node 20 or newer is not installed");
    let folder = npm_folder();
    fs::create_dir_all(&folder)?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(root().join("web").join(file), folder.join(file))?;
    }
    run("npm", &["ci", "--prefix", &folder.to_string_lossy(), "--no-audit", "--no-fund", "--ignore-scripts"])
}

/// Where [`Need::Npm`] is.
pub fn npm_folder() -> PathBuf {
    Need::Npm.folder()
}

/// Runs one of our scripts that drive a browser; both must have been met.
pub fn node(script: &str, argument: &str) -> anyhow::Result<()> {
    let path = format!("NODE_PATH={}", npm_folder().join("node_modules").display());
    let chromium = format!("CHROMIUM={}", place_of("chromium").context("chromium is gone")?);
    run("env", &[&*path, &chromium, "node", &in_root(script), argument])
}

/// The Python that has each [`Need::Python`].
pub fn python() -> PathBuf {
    Need::Python("").program()
}

/// Returns a setting of PATH in which the tools installed for the parts come before those of the machine.
pub fn path() -> String {
    let is_ours = |need: &&Need| matches!(need, Need::Go(_) | Need::NpmProgram(..) | Need::Crate(..) | Need::Python(_));
    let folders = part::all().flat_map(|part| part.needs).filter(is_ours).filter_map(|need| {
        let folder = need.program().parent()?.to_owned();
        folder.exists().then(|| folder.to_string_lossy().into_owned())
    });
    let folders: BTreeSet<String> = folders.collect();
    let folders: Vec<String> = folders.into_iter().chain(env::var("PATH")).collect();
    format!("PATH={}", folders.join(":"))
}

/// The program's name in `golang.org/x/perf/cmd/benchstat@latest`.
fn name_of(module: &str) -> &str {
    let path = module.split('@').next().unwrap_or(module);
    path.rsplit('/').next().unwrap_or(path)
}
