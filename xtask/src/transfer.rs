//! `cargo xtask bench transfer [SECONDS [MEGABYTES]]`: compares `put` and `get` of 1 GB with awscli and rclone.
//!
//! Updates the table in the README of `transfer`, unless another size is given; then only prints the table.

use std::fs;

use anyhow::Context;

use crate::quick::STORES;
use crate::tools;

/// The lines that mark the beginning and the end of the table in the README.
const ENDS: [&str; 2] = ["<!-- cargo xtask bench transfer -->\n", "<!-- to here -->"];
/// Size in KB of all files of the bench, including those in the store.
const NEEDED_KB: u64 = 10_000_000;

pub fn bench() -> anyhow::Result<()> {
    // Missing clients are no failure; the table lists them.
    for reason in STORES.iter().filter_map(|need| need.meet().err()) {
        println!("  {reason}");
    }
    let ascertain = tools::release_binary()?;
    // Unoptimised, because only the programs that it starts are measured.
    tools::run("cargo", &["build", "--quiet", "--package", "ascertain-transfer", "--example", "peers"])?;
    let bench = tools::in_target("debug/examples/peers");
    let folder = if memory_is_enough() { "/dev/shm".into() } else { std::env::temp_dir().display().to_string() };
    let environment = ["-u", "AWS_CA_BUNDLE", "-u", "http_proxy", &tools::path(), &format!("TMPDIR={folder}")];
    // Only the numbers after `transfer` are arguments of this bench.
    let behind = std::env::args().skip_while(|word| word != "transfer").skip(1);
    let numbers: Vec<String> = behind.take_while(|word| word.parse::<u64>().is_ok()).collect();
    let numbers: Vec<&str> = numbers.iter().map(|number| &**number).collect();
    let table =
        tools::output_of("env", &[&environment[..], &[&bench, &ascertain.to_string_lossy()], &numbers].concat())?;
    print!("{table}");
    if numbers.len() > 1 {
        return Ok(());
    }
    let readme = tools::in_root("crates/transfer/README.md");
    let text = fs::read_to_string(&readme)?;
    let (before, rest) = text.split_once(ENDS[0]).context("the README has no mark where the table begins")?;
    let (_, after) = rest.split_once(ENDS[1]).context("the README has no mark where the table ends")?;
    Ok(fs::write(readme, [before, ENDS[0], &table, ENDS[1], after].concat())?)
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
