//! What tests of these crates share: the one way to do without what the machine, or the user, does not have, and inputs
//! that a fuzzer has found, given to its target again. It is here so that a package's tests need nothing but packages.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The environment variable that tells a test program which test it runs [`alone`].
const ALONE: &str = "ASCERTAIN_TEST_ALONE";

/// The time after which a test stops waiting for an event. It is far above the time that the slowest machine needs, so
/// that a test reaches it only if the event never happens.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs the body of a test in its own process: the same test program, started again for this one test.
///
/// Use it for a test that changes or counts something that belongs to the whole process, such as signal handlers, the
/// working directory, limits, memory in use, or the number of threads at a `fork`. Call it once in the test function
/// itself, which must be neither generic nor `#[should_panic]`. Under Miri, which cannot start processes, the body runs
/// in place. Set `ASCERTAIN_TEST_ALONE=*` to run every body in place, for example under an emulator that cannot start
/// programs; then run one test at a time.
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
/// As [`alone`].
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
        return left_out("it needs a process of its own, with other environment variables");
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

/// Repeats the notes about skipped tests, which the harness would hide.
fn print_notes(stderr: &str) {
    for note in stderr.lines().filter(|line| line.starts_with("left out: ")) {
        let _ = std::io::stderr().write_all(format!("{note}\n").as_bytes());
    }
}

/// Waits until the condition is true. Checks the condition every millisecond.
///
/// Do not call it on a thread that gets signals all the time: its sleep begins anew after each one and may never end.
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

/// The environment variable with the path of the list that [`left_out`] adds to. A test that runs tests as another user
/// removes it, since that one may not write there, and says what they left out itself.
pub const LIST: &str = "ASCERTAIN_LEFT_OUT";

/// Says that the test is left out, or a part of it, and why: past the harness, which shows nothing of what passes, and
/// to `cargo xtask test`, which ends with a list of them.
///
/// # Panics
/// When that list can't be written to.
pub fn left_out(why: impl Display) {
    let thread = std::thread::current();
    let alone = std::env::var(ALONE).ok().filter(|test| test != "*");
    let test = alone.as_deref().or(thread.name()).unwrap_or("a thread of a test");
    let why = why.to_string().replace('\n', " ");
    let line = format!("{test}: {why}\n");
    let _ = std::io::stderr().write_all(format!("left out: {line}").as_bytes());
    if let Some(list) = std::env::var_os(LIST) {
        let list_it = || File::options().append(true).create(true).open(&list)?.write_all(line.as_bytes());
        list_it().unwrap_or_else(|error| panic!("{list:?}, where it would say {line:?}: {error}"));
    }
}

/// What there is; where there is none, that is said.
pub fn or_left_out<T>(tried: Result<T, impl Display>) -> Option<T> {
    tried.map_err(left_out).ok()
}

/// Gives the target each file of the folder.
///
/// # Panics
/// When it fails with one, which is named, or there is none.
pub fn replay(folder: &str, target: impl Fn(&[u8])) {
    let files: Vec<_> = fs::read_dir(Path::new(folder)).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(!files.is_empty(), "{folder} is empty");
    let fails = |path: &&_| catch_unwind(AssertUnwindSafe(|| target(&fs::read(path).unwrap()))).is_err();
    let failing: Vec<_> = files.iter().filter(fails).collect();
    assert!(failing.is_empty(), "{failing:?}");
}
