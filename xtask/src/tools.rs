//! Starting programs, and installing the ones that tests meet.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, bail};

/// The workspace's root.
pub fn root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().map(PathBuf::from).unwrap_or(manifest)
}

/// Where cargo puts what it builds.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Runs a program in the workspace's root, its output going where ours goes.
pub fn run<S: AsRef<OsStr>>(program: &str, arguments: &[S]) -> anyhow::Result<()> {
    let shown: Vec<_> = arguments.iter().map(|a| a.as_ref().to_string_lossy().into_owned()).collect();
    println!("$ {program} {}", shown.join(" "));
    let status = Command::new(program).args(arguments).current_dir(root()).status();
    let status = status.with_context(|| format!("{program} can't be started"))?;
    if !status.success() {
        bail!("{program} {} ended with {status}", shown.join(" "));
    }
    Ok(())
}

/// Runs a program and returns what it printed, whatever its exit code.
pub fn capture<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, arguments: &[S]) -> anyhow::Result<Output> {
    let name = program.as_ref().to_string_lossy().into_owned();
    let output = Command::new(program).args(arguments).current_dir(root()).stdin(Stdio::null()).output();
    output.with_context(|| format!("{name} can't be started"))
}

/// Where a program is.
pub fn place_of(program: &str) -> Option<String> {
    let output = capture("sh", &["-c", "command -v \"$0\"", program]).ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Whether a program answers to `--version`.
pub fn has(program: &str) -> bool {
    let started = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    started.is_ok_and(|status| status.success())
}

/// Makes sure of a Debian package's program; the reason why it is left out otherwise.
pub fn debian(program: &str, package: &str) -> Result<(), String> {
    debian_with(program, package, || has(program))
}

/// Makes sure of a Debian package's file, as [`debian`].
pub fn debian_file(path: &str, package: &str) -> Result<(), String> {
    debian_with(path, package, || Path::new(path).exists())
}

fn debian_with(what: &str, package: &str, is_there: impl Fn() -> bool) -> Result<(), String> {
    if is_there() {
        return Ok(());
    }
    let root = capture("id", &["-u"]).is_ok_and(|output| output.stdout == b"0\n");
    if !root || !has("apt-get") {
        return Err(format!("{what} is not installed (as root, `apt-get install {package}` would)"));
    }
    // A new machine installs its updates just now, and a mirror may hiccup.
    let patient = ["-qq", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"];
    let apt_get = |arguments: &[&str]| {
        capture("apt-get", &[&patient, arguments].concat()).is_ok_and(|output| output.status.success())
    };
    let install = || apt_get(&["install", "-y", "--no-install-recommends", package]);
    // The lists of a new machine are empty.
    let installed = install() || (apt_get(&["update"]) && install());
    if installed && is_there() { Ok(()) } else { Err(format!("{package} could not be installed")) }
}

/// Makes sure of Rust's standard library for a target; the reason why it is left out otherwise.
pub fn rust_target(target: &str) -> Result<(), String> {
    let add = ["target", "add", target];
    let added = capture("rustup", &add).is_ok_and(|output| output.status.success());
    if added { Ok(()) } else { Err(format!("there is no standard library for {target} (rustup {})", add.join(" "))) }
}

/// A Python with a package from PyPI, in a folder of its own below `target`.
pub fn python_with(package: &str) -> Result<PathBuf, String> {
    let environment = target().join("xtask-python");
    let python = environment.join("bin/python");
    if !python.exists() {
        let path = environment.to_string_lossy().into_owned();
        let made = capture("python3", &["-m", "venv", &path]);
        if !made.is_ok_and(|output| output.status.success()) {
            return Err("python3 with venv is not installed".into());
        }
    }
    let importable = |python: &PathBuf| {
        capture(python, &["-c", &format!("import {package}")]).is_ok_and(|output| output.status.success())
    };
    if !importable(&python) {
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package];
        let _ = capture(&python, &install);
    }
    if importable(&python) { Ok(python) } else { Err(format!("{package} could not be installed from PyPI")) }
}

/// A program of a Go module, in a folder of its own below `target`.
pub fn go_tool(module: &str) -> Result<PathBuf, String> {
    let folder = target().join("xtask-go");
    let program = folder.join(module.rsplit('/').next().unwrap_or(module));
    if !program.exists() {
        let (bin, module) = (format!("GOBIN={}", folder.display()), format!("{module}@latest"));
        let _ = capture("env", &[&*bin, "go", "install", &module]);
    }
    if program.exists() { Ok(program) } else { Err(format!("`go install {module}@latest` could not be done")) }
}

/// The release binary, built now.
pub fn release_binary() -> anyhow::Result<PathBuf> {
    run("cargo", &["build", "--quiet", "--release", "--package", "ascertain-cli", "--bins", "--examples"])?;
    Ok(target().join("release/ascertain"))
}
