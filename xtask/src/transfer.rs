//! `cargo xtask bench transfer`: compares `put` and `get` with s5cmd, rclone and awscli.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use crate::quick::{AWSCLI, AWSCRT, MINIO, RCLONE};
use crate::tools::{self, Need};

const S5CMD: Need = Need::Python("s5cmd");

/// The server, and the clients that are compared. Debian's awscli is version 2, which can use the CRT.
const NEEDS: &[Need] = &[MINIO, S5CMD, RCLONE, AWSCLI, AWSCRT, Need::Debian("/usr/bin/aws", "awscli")];

/// The lines that mark the beginning and the end of the tables in the README.
const ENDS: [&str; 2] = ["<!-- output: bench transfer -->\n", "<!-- to here -->"];
/// Smallest number of rounds whose result is written into the README.
const LEAST_ROUNDS: u64 = 10;
/// Size in KB of all files of the bench, including those in the store.
const NEEDED_KB: u64 = 10_000_000;

/// Measures with the options in `words`. The usage message of the example `peers` lists these options. Writes the
/// result into the README of `transfer` if all rows and clients were measured in enough rounds.
pub fn bench(words: &[String]) -> anyhow::Result<()> {
    // Missing clients are no failure; the result lists them.
    for reason in NEEDS.iter().filter_map(|need| need.meet().err()) {
        println!("  {reason}");
    }
    let result = peers(&tools::release_binary()?, words)?;
    print!("{result}");
    let is_complete = match words {
        [] => true,
        [option, number] => option == "--rounds" && number.parse().is_ok_and(|rounds: u64| rounds >= LEAST_ROUNDS),
        _ => false,
    };
    if !is_complete {
        println!("  the README is unchanged; only all rows and clients in {LEAST_ROUNDS} rounds or more replace it");
        return Ok(());
    }
    let readme = tools::in_root("crates/transfer/README.md");
    let text = fs::read_to_string(&readme)?;
    let (before, rest) = text.split_once(ENDS[0]).context("the README has no mark where the tables begin")?;
    let (_, after) = rest.split_once(ENDS[1]).context("the README has no mark where the tables end")?;
    Ok(fs::write(readme, [before, ENDS[0], &result, ENDS[1], after].concat())?)
}

/// Runs the example `peers`, which compares `ascertain` with the installed clients, and returns its output.
fn peers(ascertain: &Path, words: &[String]) -> anyhow::Result<String> {
    // Unoptimised, because only the programs that it starts are measured.
    tools::build("cargo", &["build", "--quiet", "--package", "ascertain-transfer", "--example", "peers"])?;
    let folder = if memory_is_enough() { "/dev/shm".into() } else { std::env::temp_dir().display().to_string() };
    let mut command = Command::new("env");
    for name in ["AWS_CA_BUNDLE", "AWS_PROFILE", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.args(["-u", name]);
    }
    let path = tools::path();
    let path = path.strip_prefix("PATH=").unwrap_or(&path);
    // The program `s5cmd` of the Python package would start Python first.
    let s5cmd = "import os, s5cmd; print(os.path.dirname(s5cmd.__file__))";
    let path = match tools::output_of(tools::python(), &["-c", s5cmd]) {
        Ok(package) => format!("PATH={}/bin:{path}", package.trim()),
        Err(_) => format!("PATH={path}"),
    };
    command.args([path, format!("TMPDIR={folder}")]);
    if let Ok(crt) = crt_package() {
        command.arg(format!("PEERS_AWSCRT={crt}"));
    }
    command.arg(tools::in_target("debug/examples/peers")).arg(ascertain).args(words);
    let output = command.current_dir(tools::root()).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let result = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "peers ended with {}\n{result}", output.status);
    Ok(result)
}

/// Creates a folder that contains only the Python package awscrt, and returns its path. Version 2 of awscli must not
/// find the packages of version 1, which are installed in the same folder as awscrt.
fn crt_package() -> anyhow::Result<String> {
    let script = "import awscrt, _awscrt; print(awscrt.__path__[0], _awscrt.__file__)";
    let paths = tools::output_of(tools::python(), &["-c", script])?;
    let folder = tools::new_folder("xtask-awscrt")?;
    for path in paths.split_whitespace().map(Path::new) {
        symlink(path, Path::new(&folder).join(path.file_name().context("a package has no name")?))?;
    }
    Ok(folder)
}

/// Returns whether the files fit into memory, so that transfers are not limited by a disk.
fn memory_is_enough() -> bool {
    let number = |text: &str| text.split_whitespace().find_map(|word| word.parse::<u64>().ok());
    let free = tools::output_of("df", &["-k", "--output=avail", "/dev/shm"]).ok();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = memory.lines().find(|line| line.starts_with("MemAvailable")).and_then(number);
    let free = free.as_deref().and_then(number);
    memory.zip(free).is_some_and(|(memory, free)| memory.min(free) >= NEEDED_KB)
}
