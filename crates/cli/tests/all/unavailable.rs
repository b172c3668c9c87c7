//! Tests the reports about arms that this machine can't measure: each reason must appear once, in every format.

use ascertain_sys::machine;

use crate::common::{ascertain, command, ran, runs};

/// For this architecture, two variants of `sum` that no machine can measure, and the reason.
const FOREIGN: (&str, &str, &str) = match cfg!(target_arch = "x86_64") {
    true => ("naive-neon", "dot-neon", "needs neon, which this CPU lacks"),
    false => ("naive-avx512", "dot-avx512", "needs avx512f, which this CPU lacks"),
};

/// Tests lists of two sizes, in which either the first or the second size does not fit in memory.
#[test]
fn a_size_over_memory_is_refused_before_any_other_is_measured() {
    let machine = machine::describe();
    let memory_bytes = machine.memory_limit_bytes.unwrap_or(machine.memory_bytes);
    if memory_bytes / 2 >= 64_000_000_000 {
        return ascertain_sys::testing::left_out("this machine has room for 64 GB");
    }
    for levels in ["elements=1Ki,4000000000", "elements=4000000000,1Ki"] {
        let state = tempfile::tempdir().unwrap();
        let arguments = ["run", "sum", "--variants", "naive", "--at", levels, "--at", "type=f64"];
        let ran = ascertain(state.path(), &arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
        for part in ["--at elements=4000000000", "64000000000 bytes", &format!("{memory_bytes} bytes")] {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert!(runs(state.path()).is_empty(), "nothing was measured");
        // The message ends with the remedy. The array of doubles and its reverse take 16 bytes per element.
        let (_, largest) = ran.stderr.trim().rsplit_once("elements=").unwrap();
        let largest: u64 = largest.parse().unwrap();
        assert!(largest * 16 <= memory_bytes / 2 && (largest + 1) * 16 > memory_bytes / 2, "{}", ran.stderr);
    }
}

#[test]
fn the_reason_why_a_size_is_too_large_is_named() {
    let memory_bytes = machine::describe().memory_bytes;
    // This number of elements fits in memory if they are floats, but not if they are doubles.
    let elements = memory_bytes / 2 / 12;
    if elements >= 1 << 32 {
        return ascertain_sys::testing::left_out("this machine has room for all sizes that there are");
    }
    let state = tempfile::tempdir().unwrap();
    let level = format!("elements={elements}");
    let ran = ascertain(state.path(), &["run", "sum", "--variants", "naive", "--at", "type=f64", "--at", &level]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("--at {level}")) && ran.stderr.contains("type=f64"), "{}", ran.stderr);
}

/// Each arm fits in memory by itself, but all arms together do not. Without the check, the kernel would kill the
/// process.
#[test]
fn sizes_that_do_not_fit_together_are_refused() {
    let machine = machine::describe();
    let room = machine.memory_limit_bytes.unwrap_or(machine.memory_bytes) / 2 / 8;
    // The experiment accepts no sizes above this.
    let largest = room.min(1 << 30);
    let levels: Vec<String> = (0..=room / largest + 1).map(|less| (largest - less).to_string()).collect();
    let levels = format!("elements={}", levels.join(","));
    let state = tempfile::tempdir().unwrap();
    let ran =
        ascertain(state.path(), &["run", "polynomial", "--variants", "additions", "--no-claims", "--at", &levels]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("all its sizes at once"), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("more than half").count(), 1, "{}", ran.stderr);
    assert!(runs(state.path()).is_empty(), "nothing was measured");
}

#[test]
fn one_reason_takes_one_line_in_every_format() {
    let (first, second, reason) = FOREIGN;
    let said = format!("Unavailable here ({reason}): `{first}`, `{second}`.");
    let variants = format!("{first},naive,{second}");
    let sweep = [
        "run",
        "sum",
        "--variants",
        &variants,
        "--at",
        "elements=500,1000",
        "--trials",
        "2",
        "--no-claims",
        "--max-time",
        "10min",
    ];
    let state = tempfile::tempdir().unwrap();
    let ran = ascertain(state.path(), &sweep);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains(&said), "{}", ran.stdout);
    assert!(!ran.stderr.contains(reason), "once is enough: {}", ran.stderr);
    let run = runs(state.path()).pop().unwrap();
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains(&format!("<code>{first}</code>, <code>{second}</code>.")), "in the report too");
    let csv = ascertain(state.path(), &[&sweep[..], &["--no-evidence", "--format", "csv"]].concat());
    assert!(csv.stderr.contains(&said) && !csv.stdout.contains(reason), "a table has no room: {}", csv.stderr);
    for form in [&ran.stdout, &csv.stderr, &page] {
        assert_eq!(form.matches(reason).count(), 1, "{form}");
    }

    let form = |format| ascertain(state.path(), &[&sweep[..], &["--no-evidence", "--format", format]].concat());
    let markdown = form("markdown").stdout;
    assert!(markdown.contains(&said) && markdown.matches(reason).count() == 1, "{markdown}");
    let json = form("json").json();
    let left_out = json["left_out"].as_array().unwrap();
    assert!(left_out.len() >= 4, "two variants at two sizes: {left_out:?}");
    for arm in left_out {
        assert!([first, second].contains(&arm["variant"].as_str().unwrap()), "{arm}");
        assert_eq!((&arm["absence"], &arm["reason"]), (&"unavailable".into(), &reason.into()));
    }
    let quiet = ascertain(state.path(), &[&sweep[..], &["--no-evidence", "-q"]].concat());
    assert_eq!((quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()), (Some(0), "", ""));
}

/// If this machine can't measure anything, a single sentence is the result.
#[test]
fn nothing_to_measure_is_reported_once() {
    let (first, _, reason) = FOREIGN;
    let state = tempfile::tempdir().unwrap();
    for format in ["table", "csv"] {
        let arguments = ["run", "sum", "--variants", first, "--no-claims", "--no-evidence", "--format", format];
        let ran = ascertain(state.path(), &arguments);
        assert_eq!(ran.code, Some(4), "{}", ran.stderr);
        let said = ran.stdout + &ran.stderr;
        assert_eq!(said.matches(reason).count(), 1, "{format}: {said}");
    }
}

#[test]
fn a_claim_that_can_not_be_measured_is_reported_with_its_verdict() {
    let (first, _, reason) = FOREIGN;
    let state = tempfile::tempdir().unwrap();
    let claim = |id: &str, variant: &str| {
        format!(
            "[[claim]]\nid = \"{id}\"\nexperiment = \"sum\"\nat = {{ elements = 100 }}\n\
             predicate = \"error <= 1\"\nkind = \"exact\"\ncandidate = \"{variant}\"\n"
        )
    };
    std::fs::write(state.path().join("claims.toml"), claim("lacks", first) + &claim("has", "naive")).unwrap();
    let ran = ascertain(state.path(), &["check", "claims.toml"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let said = (ran.stdout + &ran.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("Unavailable: ") && said.contains(first), "{said}");
    assert_eq!(said.matches(reason).count(), 1, "{said}");
}

/// A command that fails is not reported as missing.
#[test]
fn a_failure_is_not_called_unavailable() {
    let state = tempfile::tempdir().unwrap();
    let ran = ascertain(state.path(), &["compare", "--max-trials", "3", "--no-evidence", "false"]);
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    let said = ran.stdout + &ran.stderr;
    assert!(said.contains("Failed (") && !said.contains("Unavailable"), "{said}");
}

/// Requests memory barriers that use interrupts, as a user without permission to load programs into the kernel.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_missing_privilege_is_reported_as_such() {
    use std::fs::{self, Permissions};
    use std::io::ErrorKind;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;

    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("ascertain");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    // Copy the binary through another process. If this process wrote the copy, a child of another test that is between
    // fork and exec could still have it open, and then the copy could not be started.
    let copied = std::process::Command::new("cp").arg(env!("CARGO_BIN_EXE_ascertain")).arg(&program).status();
    assert!(copied.unwrap().success());
    let mut command = std::process::Command::new(program);
    command.args([
        "run",
        "barrier",
        "--variants",
        "none,interrupts,heartbeat",
        "--no-claims",
        "--no-evidence",
        "--max-time",
        "10min",
    ]);
    command.args(["--trials", "2", "--format", "csv"]).current_dir("/").env("NO_COLOR", "1");
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(65534).gid(65534);
    }
    let ran = match command.output() {
        Ok(output) => ran(output),
        // Root in a container may be unable to switch to another user, or there may be no other user. The folder for
        // temporary files may not allow to execute programs, or may be inaccessible to other users.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput) => {
            return ascertain_sys::testing::left_out("no other user may start a program here");
        }
        Err(error) => panic!("{error}"),
    };
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let said = ran.stderr.lines().next().unwrap_or_default();
    // The reason is a different one on a kernel without bpf(2), and on one that allows bpf(2) to every user.
    if said.contains("not permitted") {
        assert!(said.contains("root (sudo)") && said.contains("CAP_BPF") && !said.contains("no memory"), "{said}");
        assert!(said.ends_with(": `heartbeat`, `interrupts`."), "{said}");
    }
}

/// A client or server in Go is built before the run begins, so the time for building does not count towards the time
/// limit. If the build fails, the variant is unavailable.
#[cfg(target_os = "linux")]
#[test]
fn go_builds_before_the_run_begins() {
    let state = tempfile::tempdir().unwrap();
    let go = state.path().join("go");
    crate::common::write_script(&go, "#!/bin/sh\necho nothing to build with >&2\nexit 1\n");
    let arguments = ["run", "https-throughput", "--no-claims", "--at", "server=go", "--variants", "plain"];
    let ran = ran(command(state.path(), &arguments).env("PATH", state.path()).output().unwrap());
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(ran.code == Some(4) && said.contains("`go build` failed; its output: nothing to build with"), "{said}");
}

/// If the user requests a server or a record, the experiment never replays a trace instead.
#[cfg(target_os = "linux")]
#[test]
fn a_requested_server_or_record_is_never_replaced_by_a_replay() {
    let state = tempfile::tempdir().unwrap();
    let said = |levels: &[&str]| {
        let arguments = [&["run", "cache-race", "--no-claims"], levels].concat();
        let ran = ran(command(state.path(), &arguments).env("PATH", state.path()).output().unwrap());
        assert_eq!(ran.code, Some(4), "{}{}", ran.stdout, ran.stderr);
        assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("stalls"), "{}{}", ran.stdout, ran.stderr);
        format!("{}{}", ran.stdout, ran.stderr)
    };
    assert!(said(&["--at", "server=caddy"]).contains("caddy"));
    assert!(said(&["--variants", "always", "--at", "record=x.csv"]).contains("only `never`"));
}
