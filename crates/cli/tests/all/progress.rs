//! Tests of the progress line: on terminals of several widths, on a terminal that can't move its cursor, and in a pipe.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::common::{MANY_FAULTS, Ran, ascertain, command, ran, runs, send_signal, write_script};

/// Command line of a command that waits for a file, so that a test can look at the progress during the first
/// observation. After the wait, the command takes a second. An answer needs at least 14 pairs, which take longer than
/// the time limit of 12 s.
const WAITS: &str = "sh -c 'until [ -e go ]; do sleep 0.02; done; sleep 1'";

/// The note after the first pair, about the time that an answer needs.
const NEEDED: &str = "at least 14 pairs are needed, about";

/// The part of the progress line about the time that an answer needs.
const EXPECTED: &str = "14+ pairs: over ";

/// A run that has a terminal as its standard error.
struct Watched {
    screen: File,
    seen: String,
    child: Child,
}

/// Opens a pseudoterminal. Returns its two sides: the one for reading and the one for writing.
fn terminal(columns: u16) -> (File, OwnedFd) {
    // Close it in child processes: they would keep the terminal open.
    #[cfg(target_os = "linux")]
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    #[cfg(not(target_os = "linux"))]
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let path = ptsname(&master, Vec::new()).unwrap();
    let terminal: OwnedFd =
        rustix::fs::open(&path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    (File::from(master), terminal)
}

impl Watched {
    fn new(state: &Path, columns: u16, environment: &[(&str, &str)], arguments: &[&str]) -> Watched {
        let (screen, terminal) = terminal(columns);
        let mut command = command(state, arguments);
        command.env_remove("COLUMNS").env_remove("LC_ALL").env("TERM", "xterm").envs(environment.iter().copied());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::from(terminal)).spawn().unwrap();
        Watched { screen, seen: String::new(), child }
    }

    /// Waits until `moments` versions of the progress line have contained this text.
    fn until(mut self, words: &str, moments: usize) -> Watched {
        let started = Instant::now();
        let said = |seen: &str| seen.split(['\r', '\n']).filter(|line| line.contains(words)).count();
        while said(&self.seen) < moments {
            assert!(self.read() && started.elapsed() < Duration::from_secs(300), "{:?}", self.seen);
        }
        self
    }

    /// Reads the new output. Returns `false` after the last writer has closed the terminal.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let count = self.screen.read(&mut bytes).unwrap_or(0);
        // A character that is split between two reads is replaced. No test looks for such characters.
        self.seen += &String::from_utf8_lossy(&bytes[..count]);
        count > 0
    }

    /// Lets the command end, waits for the note that follows the first pair, and ends the run by a signal.
    fn stopped_after_the_first_pair(self, state: &Path) -> (String, Ran) {
        let_go(state);
        let watched = self.until(NEEDED, 1);
        send_signal(&watched.child, "-TERM");
        let (seen, printed) = watched.ended();
        assert_eq!(printed.code, Some(130), "{seen}");
        (seen, printed)
    }

    /// Returns all output on the terminal, and the standard output.
    fn ended(mut self) -> (String, Ran) {
        while self.read() {}
        (self.seen.replace("\r\n", "\n"), ran(self.child.wait_with_output().unwrap()))
    }
}

fn begun(state: &Path, columns: u16, environment: &[(&str, &str)]) -> Watched {
    let arguments = ["compare", "--no-evidence", "--max-time", "12s", "-n", "waiting", WAITS, "true"];
    Watched::new(state, columns, environment, &arguments)
}

/// Creates the file for which the measured command waits.
fn let_go(state: &Path) {
    File::create(state.join("go")).unwrap();
}

#[test]
fn a_long_measurement_is_a_picture_that_is_redrawn() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["slo", "--for", "10min", "--window", "1s", "--lines", "--unit", "ms", "--no-evidence", "--shell"];
    let script = ["--", "while true; do echo 3; sleep 0.01; done"];
    let watched = Watched::new(state.path(), 100, &[], &[&arguments[..], &script].concat());
    let watched = watched.until("value: p99 and median by window", 3);
    send_signal(&watched.child, "-TERM");
    let (seen, printed) = watched.ended();
    assert_eq!(printed.code, Some(130), "{seen}");
    let (before, pictures) = seen.split_once("value: p99 and median by window").unwrap();
    assert!(before.contains("Memory: ") && before.contains("in 600 windows of 1 s"), "{before}");
    let rows = pictures.split("\x1b[").filter_map(|part| part.split_once('A')).map(|(rows, _)| rows);
    let heights: Vec<usize> = rows.filter_map(|rows| rows.parse().ok()).collect();
    assert!(heights.len() >= 2 && heights.iter().all(|height| (10..=14).contains(height)), "{heights:?}");
    assert!(printed.stdout.contains("value: p99 and median by window"), "{}", printed.stdout);
}

/// Returns the progress lines, each of which overwrites the previous line. Lines that stay visible are not included.
fn drawn(seen: &str) -> Vec<&str> {
    let lines = seen.split('\r').flat_map(|rest| rest.split('\n'));
    lines.filter_map(|line| line.strip_suffix("\x1b[K")).filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_line_moves_during_an_observation_and_shows_the_expected_time() {
    for columns in [80, 40] {
        let state = tempfile::tempdir().unwrap();
        // During a trial, the line shows the seconds so far, and how long the run must therefore take at least.
        let watched = begun(state.path(), columns, &[]).until(EXPECTED, 2);
        let (seen, printed) = watched.stopped_after_the_first_pair(state.path());
        let lines = drawn(&seen);
        assert!(lines.len() > 2, "{seen:?}");
        for line in &lines {
            assert!(line.chars().count() < usize::from(columns), "{line}");
        }
        assert!(
            columns == 40 || lines.iter().any(|line| line.contains(" · running ") && line.ends_with(" · waiting")),
            "{lines:?}"
        );
        let notes = seen.replace("\r\n", "\n");
        let [_, said] = notes.split("at least 14 ").collect::<Vec<_>>()[..] else { panic!("{seen:?}") };
        let said = format!("at least 14 {}", said.split('\r').next().unwrap().trim_end());
        let too_wide = |line: &&str| line.chars().count() > usize::from(columns);
        assert_eq!(said.lines().find(too_wide), None, "wrapped: {said}");
        let said = said.replace('\n', " ");
        assert!(said.contains(NEEDED) && said.contains(", but 12 s allow only "), "{said}");
        assert!(said.contains("`--max-time ") && said.ends_with(", or `--error 0.05` (8 pairs)"), "{said}");
        assert!(seen.ends_with("\r\x1b[K"), "nothing of it stays: {seen:?}");
        let printed_words = printed.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(printed_words.contains("Too early to tell which is faster: at least 14 pairs"), "{printed_words}");
    }
}

#[test]
fn a_terminal_without_a_cursor_gets_plain_lines() {
    let state = tempfile::tempdir().unwrap();
    let watched = begun(state.path(), 80, &[("TERM", "dumb"), ("LC_ALL", "C")]).until(EXPECTED, 1);
    let (seen, _) = watched.stopped_after_the_first_pair(state.path());
    assert!(seen.chars().all(|c| c == '\n' || (c.is_ascii() && !c.is_ascii_control())), "{seen:?}");
    assert!(seen.lines().all(|line| line.len() <= 80), "{seen:?}");
}

#[test]
fn the_line_is_ascii_in_an_ascii_locale() {
    let state = tempfile::tempdir().unwrap();
    let watched = begun(state.path(), 80, &[("LC_ALL", "C")]).until(EXPECTED, 1);
    let (seen, _) = watched.stopped_after_the_first_pair(state.path());
    assert!(seen.is_ascii() && seen.contains(" - 14+ pairs: over "), "{seen:?}");
}

/// A pipe gets no redrawn progress lines, which its readers would have to skip.
#[test]
fn a_pipe_gets_the_required_time_and_no_progress() {
    let state = tempfile::tempdir().unwrap();
    // An answer needs 14 pairs, which take over 14 s. The run is stopped as soon as it prints this.
    let arguments = ["compare", "--no-evidence", "--max-time", "12s", "sleep 0.5", "sleep 0.55"];
    let mut child = command(state.path(), &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains(NEEDED) {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "{said}");
    }
    send_signal(&child, "-TERM");
    stderr.read_to_string(&mut said).unwrap();
    let stdout = ran(child.wait_with_output().unwrap()).stdout;
    // If other load delays the first pair, the output has one more line before this note.
    let lines = said.lines().filter(|line| !line.ends_with(", if all take as long as the first one"));
    assert_eq!(lines.count(), 1, "{said}");
    assert!(!said.contains(['\r', '\x1b']) && !said.contains(" left"), "{said}");
    assert!(stdout.contains("sleep 0.55  ") && stdout.replace('\n', " ").contains(" against `sleep 0.5`"), "{stdout}");
    let quiet = ["compare", "-q", "--no-evidence", "--max-time", "50ms", "sleep 0.06", "sleep 0.07"];
    assert_eq!(ascertain(state.path(), &quiet).stderr, "");
}

/// If the first observation takes long, a note reports the minimum duration of the run, even before the observation
/// ends.
#[test]
fn a_pipe_gets_the_required_time_before_the_first_pair_has_ended() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["compare", "--no-evidence", "--max-time", "12s", WAITS, "true"];
    let mut child = command(state.path(), &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    // The estimate is based on the observation that is still running, or on the previous observation.
    let [begins, ends] = ["at least 14 pairs are needed: ", ", if all take as long as the first one"];
    assert!(first.starts_with(begins) && first.ends_with(ends), "{first}");
    assert_eq!(child.try_wait().unwrap(), None);
    let_go(state.path());
    let then = lines.next().unwrap().unwrap();
    assert!(then.starts_with(NEEDED), "{then}");
    send_signal(&child, "-TERM");
    assert_eq!(lines.map(Result::unwrap).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// The client and the server in Go are built before the run. Here `go` is a script that waits for a file, and then
/// fails.
#[test]
fn preparation_before_a_run_is_reported() {
    let state = tempfile::tempdir().unwrap();
    let programs = state.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    let waits = format!("#!/bin/sh\nuntil [ -e {}/go ]; do sleep 0.02; done; exit 1\n", state.path().display());
    write_script(&programs.join("go"), &waits);
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let by_go = ["run", "https-throughput", "--no-evidence", "--at", "client=go", "--at", "server=go"];
    let watched = Watched::new(state.path(), 80, &[("PATH", &path)], &by_go);
    let watched = watched.until("https-throughput · checking what can be measured here · ", 2);
    let_go(state.path());
    let (seen, printed) = watched.ended();
    assert!(seen.ends_with("\r\x1b[K"), "nothing of it stays: {seen:?}");
    assert!(printed.stdout.contains("`go build` failed"), "{}", printed.stdout);
}

/// The progress line must not overwrite the output that commands write to the terminal.
#[test]
fn no_progress_is_drawn_over_the_output_of_commands() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["compare", "--no-evidence", "-r", "1", "--show-output", "sh -c 'sleep 1.2; echo seen >&2'"];
    let (seen, _) = Watched::new(state.path(), 80, &[], &arguments).ended();
    assert_eq!(seen, "seen\n");
}

#[test]
fn colours_are_for_terminals_that_have_them() {
    for (term, is_colored) in [("xterm", true), ("dumb", false)] {
        let state = tempfile::tempdir().unwrap();
        let (mut screen, terminal) = terminal(80);
        let mut command = command(state.path(), &["judge", "99/100", "--at-least", "50%"]);
        command.env("TERM", term).env_remove("NO_COLOR").stdout(Stdio::from(terminal));
        assert!(command.status().unwrap().success());
        drop(command);
        let mut seen = [0; 4096];
        let count = screen.read(&mut seen).unwrap();
        let seen = String::from_utf8_lossy(&seen[..count]);
        assert!(seen.contains("Holds") && seen.contains('\x1b') == is_colored, "{term}: {seen:?}");
    }
}

/// Tables, plots and sentences are limited to ASCII if the locale is, but formats for programs are not.
#[test]
fn tables_plots_and_sentences_are_ascii_in_an_ascii_locale() {
    let state = tempfile::tempdir().unwrap();
    let in_c = |arguments: &[&str]| ran(command(state.path(), arguments).env("LC_ALL", "C").output().unwrap());
    for arguments in [
        &["compare", "-r", "3", "--mean", "--plot", "true", "env"][..],
        &["power", "--at-least", "90%", "--max-trials", "500"],
        &["list", "sum"],
        &["explain", "sum"],
    ] {
        let Ran { code, stdout, stderr } = in_c(arguments);
        let other = stdout.chars().chain(stderr.chars()).find(|c| !c.is_ascii());
        assert!(code == Some(0) && other.is_none_or(|c| c == 'š'), "{other:?} in {stdout}{stderr}");
    }
    assert!(in_c(&["explain", "sum", "--format", "json"]).stdout.contains('…'));
}

/// Notes at the end of a run begin on a line of their own, after the progress line.
#[test]
fn the_line_is_removed_before_other_notes() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["compare", "--metric", "page_faults", "-r", "9", "sleep 0.05", MANY_FAULTS];
    let (seen, _) = Watched::new(state.path(), 80, &[], &arguments).ended();
    let rest = seen.rsplit_once("\x1b[K").unwrap().1;
    assert!(seen.contains(" left") && rest.starts_with("undecided; "), "{seen:?}");
    let name = runs(state.path()).pop().unwrap();
    let how = format!("undecided; `ascertain continue {} --max-trials 18`", name.file_name().unwrap().display());
    assert!(rest.contains(&how), "{seen:?}");
}
