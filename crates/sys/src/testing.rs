//! Helpers that the tests of these crates share. They report a test as left out if this machine or user lacks something
//! that the test needs, and they replay inputs that a fuzzer found. They are part of this crate so that the tests of a
//! published package need no unpublished code.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The environment variable that tells a test program which test it runs [`alone`].
const ALONE: &str = "ASCERTAIN_TEST_ALONE";

/// The maximum time that a test waits for an event. It is far above the time that the slowest machine needs, so a test
/// reaches it only if the event never happens.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs the body of a test in its own process: the same test program, started again for this one test.
///
/// Use it for a test that changes or counts something that belongs to the whole process. Examples are signal handlers,
/// the working directory, limits, memory in use, and the number of threads at a `fork`. Call it once in the test
/// function itself, which must be neither generic nor `#[should_panic]`. Under Miri, which cannot start processes, the
/// body runs in place. Set `ASCERTAIN_TEST_ALONE=*` to run every body in place, for example under an emulator that
/// cannot start programs; then run one test at a time.
///
/// ```no_run
/// # use ascertain_sys::testing;
/// fn a_child_has_one_thread() {
///     testing::alone(|| {
///         // ...
///     });
/// }
/// ```
///
/// # Panics
/// If the test fails in its process, or the process cannot be started.
#[track_caller]
pub fn alone<Body: FnOnce()>(body: Body) {
    alone_with(&[], body);
}

/// Runs the body of a test [`alone`], in a process with these environment variables. The test is left out if the body
/// would run in place, without the variables.
///
/// # Panics
/// Panics in the same cases as [`alone`].
#[track_caller]
pub fn alone_with<Body: FnOnce()>(variables: &[(&str, &str)], body: Body) {
    // The name is `program::module::test::{{closure}}`; its middle part is the name that the test harness knows.
    let path = std::any::type_name::<Body>();
    let (_, path) = path.split_once("::").unwrap_or(("", path));
    let test = path.trim_end_matches("::{{closure}}");
    let asked = std::env::var(ALONE).unwrap_or_default();
    if asked == test {
        return body();
    }
    if cfg!(miri) || asked == "*" {
        if variables.is_empty() {
            return body();
        }
        return left_out("the test needs its own process, with other environment variables");
    }
    let program =
        std::env::current_exe().unwrap_or_else(|error| panic!("could not determine the path of this program: {error}"));
    let mut command = Command::new(program);
    command.args([test, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]).env(ALONE, test);
    command.envs(variables.iter().copied());
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("could not start `{test}` in its own process: {error}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    print_notes(&stderr);
    let is_passed = output.status.success() && stdout.contains("1 passed");
    assert!(is_passed, "`{test}` in its own process: {}\n{stdout}{stderr}", output.status);
}

/// Prints the reports about omitted tests again, because the harness hides the output of tests that pass.
fn print_notes(stderr: &str) {
    for note in stderr.lines().filter(|line| line.starts_with("left out: ")) {
        let _ = std::io::stderr().write_all(format!("{note}\n").as_bytes());
    }
}

/// Waits until the condition is true. Checks the condition every millisecond.
///
/// Do not call it on a thread that gets signals all the time: its sleep begins anew after each signal and may never
/// end.
///
/// # Panics
/// After two minutes, so that a test ends although its event never happens.
#[track_caller]
pub fn wait_until(event: &str, mut condition: impl FnMut() -> bool) {
    let deadline = deadline();
    while !condition() {
        assert!(Instant::now() < deadline, "event did not happen within {} s: {event}", LIMIT.as_secs());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the deadline of a test that begins to wait now: two minutes from now. Use it for functions that take a
/// deadline.
#[must_use]
pub fn deadline() -> Instant {
    Instant::now() + LIMIT
}

/// The environment variable with the path of the list to which [`left_out`] appends a line. A test that runs other
/// tests as another user removes the variable, because that user may not write to the list. That test then reports the
/// omitted tests itself.
pub const LIST: &str = "ASCERTAIN_LEFT_OUT";

/// Reports that the test, or some of its checks, is left out, and the reason. The report bypasses the harness, which
/// shows no output of passed tests. It goes to `cargo xtask test`, which prints a list of these reports at its end.
///
/// # Panics
/// If the list cannot be written to.
pub fn left_out(why: impl Display) {
    let thread = std::thread::current();
    let alone = std::env::var(ALONE).ok().filter(|test| test != "*");
    let test = alone.as_deref().or(thread.name()).unwrap_or("a thread that a test started");
    let why = why.to_string().replace('\n', " ");
    let line = format!("{test}: {why}\n");
    let _ = std::io::stderr().write_all(format!("left out: {line}").as_bytes());
    if let Some(list) = std::env::var_os(LIST) {
        let list_it = || File::options().append(true).create(true).open(&list)?.write_all(line.as_bytes());
        list_it().unwrap_or_else(|error| panic!("could not append {line:?} to {list:?}: {error}"));
    }
}

/// Returns the value. If there is an error instead, reports it as the reason why the test is left out, and returns
/// `None`.
pub fn or_left_out<T>(tried: Result<T, impl Display>) -> Option<T> {
    tried.map_err(left_out).ok()
}

/// Calls `target`, a property that a fuzzer also checks, with the content of each file in the folder.
///
/// # Panics
/// If the target panics (the message then contains the file's name), or if the folder is empty.
pub fn replay(folder: &str, target: impl Fn(&[u8])) {
    let files: Vec<_> = fs::read_dir(Path::new(folder)).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(!files.is_empty(), "{folder} is empty");
    let fails = |path: &&_| catch_unwind(AssertUnwindSafe(|| target(&fs::read(path).unwrap()))).is_err();
    let failing: Vec<_> = files.iter().filter(fails).collect();
    assert!(failing.is_empty(), "{failing:?}");
}
