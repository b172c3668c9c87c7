//! Runs the parsers under libFuzzer with the targets in `fuzz/`, to find new inputs that break them. The other tests
//! only replay the stored inputs.

use std::fs;
use std::process::{Child, Command};
use std::thread;

use anyhow::{Context, ensure};

use crate::part::{Input, Part};
use crate::tools::{self, Need};

/// Name of each target, and the folder with its first inputs, which the other tests replay.
const TARGETS: &[(&str, &str)] = &[
    ("command_lines", "crates/sys/tests/command_lines/corpus"),
    ("barrierd_file", "crates/sync/tests/barrierd_file/corpus"),
    ("claims", "crates/engine/tests/parsers/claims"),
    ("predicates", "crates/engine/tests/parsers/predicates"),
    ("columns", "crates/engine/tests/parsers/columns"),
    ("rows", "crates/engine/tests/parsers/rows"),
    ("headers", "crates/engine/tests/parsers/headers"),
    ("pyperf", "crates/engine/tests/parsers/pyperf"),
    ("messages", "crates/netlab/tests/messages/corpus"),
    ("journals", "crates/transfer/tests/parsers/journals"),
    ("answers", "crates/transfer/tests/parsers/answers"),
    ("addresses", "crates/transfer/tests/parsers/addresses"),
    ("dns", "crates/netlab/tests/dns/corpus"),
    ("dns_texts", "crates/netlab/tests/dns/texts"),
    ("expressions", "crates/streams/tests/parser"),
];

/// The compiler flags that cargo-fuzz uses, except the flags that need a nightly compiler.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

pub const PARTS: &[Part] = &[Part::slow(
    "parsers, fuzzed for new inputs",
    // For compiling libFuzzer, which is written in C++.
    &[Need::Debian("c++", "g++")],
    // The targets include code from these folders of tests, and start with the inputs there.
    &[
        Input::Package("ascertain-fuzz"),
        Input::Path("crates/engine/tests"),
        Input::Path("crates/netlab/tests"),
        Input::Path("crates/streams/tests"),
        Input::Path("crates/sync/tests"),
        Input::Path("crates/sys/tests"),
        Input::Path("crates/transfer/tests"),
        Input::Path("xtask/src/fuzz.rs"),
    ],
    fuzz,
)];

/// Time for which each target searches for new inputs, in seconds.
const TIME_S: u64 = 60;

fn fuzz() -> anyhow::Result<()> {
    let folder = tools::target().join("xtask-fuzz");
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let manifest = tools::in_root("fuzz/Cargo.toml");
    // With an explicit target, the flags do not apply to build scripts, which run without libFuzzer.
    let build = ["build", "--quiet", "--release", "--manifest-path", &manifest, "--target", &triple];
    let variables = [format!("RUSTFLAGS={FLAGS}"), format!("CARGO_TARGET_DIR={}", tools::in_target(""))];
    tools::build("env", &[&variables.each_ref().map(String::as_str)[..], &["cargo"], &build].concat())?;
    let at_once = thread::available_parallelism()?.get();
    for targets in TARGETS.chunks(at_once) {
        let running = targets.iter().map(|(name, corpus)| {
            println!("$ {name}, from {corpus}");
            let found = folder.join("found").join(name);
            fs::create_dir_all(&found)?;
            let program = tools::target().join(&triple).join("release").join(name);
            let log = fs::File::create(folder.join(format!("{name}.log")))?;
            let mut command = Command::new(program);
            // libFuzzer adds new inputs to the first folder that is given, and only reads the second one.
            command.arg(&found).arg(tools::root().join(corpus)).current_dir(&folder);
            // The time limits are generous, because a busy machine may pause any process for a while.
            command.arg(format!("-max_total_time={TIME_S}"));
            command.args(["-timeout=60", "-max_len=4096", "-print_final_stats=1"]);
            command.arg(format!("-artifact_prefix={}-", folder.join(name).display()));
            command.stdout(log.try_clone()?).stderr(log);
            Ok((*name, command.spawn().with_context(|| format!("could not start {name}"))?))
        });
        let running: Vec<(&str, Child)> = running.collect::<anyhow::Result<_>>()?;
        let ended = running.into_iter().map(|(name, mut child)| Ok((name, child.wait()?)));
        for (name, status) in ended.collect::<anyhow::Result<Vec<_>>>()? {
            let log = fs::read_to_string(folder.join(format!("{name}.log")))?;
            ensure!(status.success(), "{name}: {status}\n{log}");
            let runs = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
            println!("{name}: {} inputs", runs.context("libFuzzer printed no number of inputs")?.trim());
        }
    }
    Ok(())
}
