//! Tests for other architectures, other C libraries, no standard library, and older compilers.

use anyhow::{Error, ensure};
use serde_json::Value;

use crate::checkers;
use crate::part::{Input, Part, Skipped};
use crate::tools::{self, Need};

const THIS: Input = Input::Path("xtask/src/elsewhere.rs");

pub const PARTS: &[Part] = &[
    Part::slow(
        "numeric without the standard library",
        &[Need::RustTarget(BARE)],
        &[Input::Package("ascertain-numeric"), THIS],
        without_std,
    ),
    Part::slow("numeric at lower levels of the CPU", &[], &[Input::Package("ascertain-numeric"), THIS], || {
        ["ASCERTAIN_CPU=avx2", "ASCERTAIN_CPU=sse2"]
            .iter()
            .try_for_each(|level| tools::cargo_test(&[level], &["test", "--package", "ascertain-numeric"], &[]))
    }),
    Part::slow("lints for aarch64", ARM_NEEDS, &[Input::Workspace, THIS], || {
        let clippy = ["clippy", "--quiet", "--workspace", "--all-targets", "--target", ARM, "--", "-D", "warnings"];
        tools::build("cargo", &clippy)
    }),
    Part::slow(
        "packages with the oldest compiler that each names",
        &[Need::Rust("1.88"), Need::Rust("1.89"), Need::Rust("1.91")],
        &[
            Input::Package("ascertain-stats"),
            Input::Package("ascertain-plot"),
            Input::Package("ascertain-sys"),
            Input::Package("ascertain-netlab"),
            Input::Package("ascertain-numeric"),
            Input::Package("ascertain-permute"),
            Input::Package("ascertain-transfer"),
            Input::Package("ascertain-sync"),
            THIS,
        ],
        oldest_compilers,
    ),
    Part::slow(
        "a static binary, the machine and synchronisation, with musl",
        MUSL_NEEDS,
        &[Input::Package("ascertain-cli"), Input::Package("ascertain-sys"), Input::Package("ascertain-sync"), THIS],
        musl,
    ),
    Part::slow(
        "NEON and other code for aarch64, emulated",
        EMULATOR,
        &[Input::Package("ascertain-numeric"), Input::Package("ascertain-sys"), Input::Package("ascertain-sync"), THIS],
        emulated,
    ),
];

/// A target without a standard library, on which code that needs one does not compile.
const BARE: &str = "thumbv7em-none-eabihf";

/// Compiles `numeric` for [`BARE`]. Runs its tests on this machine without the standard library, to check that the
/// results have the same bits.
fn without_std() -> anyhow::Result<()> {
    let options = ["--package", "ascertain-numeric", "--no-default-features", "--features", "libm,polynomial"];
    tools::build("cargo", &[&["build", "--quiet", "--target", BARE], &options[..]].concat())?;
    tools::cargo_test(&[], &[&["test"], &options[..]].concat(), &[])
}

/// Versions of Rust that are older than the workspace's, each with the packages that name this version as their
/// `rust-version`.
const OLDEST: &[(&str, &[&str])] = &[
    ("1.88", &["ascertain-stats", "ascertain-plot", "ascertain-sys", "ascertain-netlab"]),
    // These packages use AVX-512, `ascertain-transfer` for its checksums.
    ("1.89", &["ascertain-numeric", "ascertain-permute", "ascertain-transfer"]),
    // Its feature `daemon` needs this version. Without the feature, Rust 1.88 is enough.
    ("1.91", &["ascertain-sync"]),
];

fn oldest_compilers() -> anyhow::Result<()> {
    let metadata: Value =
        serde_json::from_str(&tools::output_of("cargo", &["metadata", "--no-deps", "--format-version", "1"])?)?;
    let all = metadata["packages"].as_array().into_iter().flatten();
    let all: Vec<_> = all.map(|package| (package["name"].as_str(), package["rust_version"].as_str())).collect();
    for (version, packages) in OLDEST {
        for package in *packages {
            let is_named = all.contains(&(Some(package), Some(version)));
            ensure!(is_named, "{package} does not name Rust {version} in its Cargo.toml");
        }
        let toolchain = format!("+{version}");
        let check = [&*toolchain, "check", "--quiet", "--locked", "--all-features"];
        let packages = packages.iter().flat_map(|package| ["--package", package]);
        tools::build("cargo", &check.into_iter().chain(packages).collect::<Vec<_>>())?;
    }
    Ok(())
}

const MUSL: &str = "x86_64-unknown-linux-musl";
const MUSL_IS_HERE: bool = cfg!(all(target_os = "linux", target_arch = "x86_64"));
/// A C compiler for the target, because the TLS code is partly written in C.
const MUSL_CC: Need = Need::Debian("x86_64-linux-musl-gcc", "musl-tools");
const MUSL_NEEDS: &[Need] = if MUSL_IS_HERE { &[Need::RustTarget(MUSL), MUSL_CC] } else { &[] };

/// Builds and checks a static binary, because users copy such binaries to servers.
fn musl() -> anyhow::Result<()> {
    if !MUSL_IS_HERE {
        return Err(Error::new(Skipped(format!("{MUSL} does not run here"))));
    }
    let plain = ["CARGO_PROFILE_DEV_DEBUG=0"];
    let tests = ["test", "--target", MUSL, "--package", "ascertain-sys", "--package", "ascertain-sync"];
    tools::cargo_test(&plain, &tests, &[])?;
    // Even the crates that are optimised for tests are built without optimisation, because it does not affect linking.
    let unoptimised = ["ascertain-stats", "ascertain-transfer", "crc-fast", "hickory-proto", "md-5"]
        .map(|package| format!("--config=profile.dev.package.{package}.opt-level=0"));
    let build = ["env", plain[0], "cargo", "build", "--target", MUSL, "--quiet", "--package", "ascertain-cli"];
    let options = unoptimised.iter().map(String::as_str);
    tools::build(build[0], &build[1..].iter().copied().chain(options).collect::<Vec<_>>())?;
    let program = tools::in_target(&format!("{MUSL}/debug/ascertain"));
    let is_dynamic = std::fs::read(&program)?.windows(8).any(|bytes| bytes == b"/lib/ld-");
    ensure!(!is_dynamic, "{program} names a dynamic loader");
    tools::compare(program.into(), &[&["-r", "5", "true", "sleep 0.001"]]).map(drop)
}

const ARM: &str = "aarch64-unknown-linux-gnu";
/// The tools for building for aarch64. A C compiler and the headers of the C library are needed, because the TLS code
/// is partly written in C.
const ARM_NEEDS: &[Need] = &[
    Need::RustTarget(ARM),
    Need::Debian("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
    Need::Debian("/usr/aarch64-linux-gnu/lib/libc.so", "libc6-dev-arm64-cross"),
];
const EMULATOR: &[Need] = if cfg!(target_arch = "aarch64") {
    &[]
} else {
    &[ARM_NEEDS[0], Need::Debian("qemu-aarch64", "qemu-user"), ARM_NEEDS[1], ARM_NEEDS[2]]
};

/// Runs the code that is specific to aarch64 under qemu's emulation. Tests results, not speed.
fn emulated() -> anyhow::Result<()> {
    if cfg!(target_arch = "aarch64") {
        let why = "this machine needs no emulation: the other tests ran the same code";
        return Err(Error::new(Skipped(why.into())));
    }
    let test = |arguments: &[&str], options: &[&str]| {
        let variables = [
            // The folder is where Debian's cross compiler has its C library.
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64 -L /usr/aarch64-linux-gnu",
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc",
            // Optimised because emulation is slow; assertions stay enabled.
            "CARGO_PROFILE_DEV_OPT_LEVEL=1",
            "CARGO_PROFILE_DEV_DEBUG=0",
            // The tests must not start themselves again, because qemu cannot start programs of the emulated
            // architecture.
            "ASCERTAIN_TEST_ALONE=*",
        ];
        tools::cargo_test(
            &variables,
            &[&["test", "--target", ARM], arguments].concat(),
            &[&["--test-threads=1"], options].concat(),
        )
    };
    test(&["--package", "ascertain-numeric"], &[])?;
    // qemu aborts if a child made by fork starts a thread, and cannot start programs of the emulated architecture.
    test(
        &["--package", "ascertain-sync", "--test", "all"],
        &[checkers::TESTS, &["barrier::", "--skip", "child"]].concat(),
    )?;
    test(
        &["--package", "ascertain-sys", "--lib"],
        &["--skip", "process", "--skip", "a_command_that_signals_do_not_reach"],
    )?;
    test(&["--package", "ascertain-sys", "--test", "all"], &["words::"])
}
