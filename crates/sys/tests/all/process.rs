//! Tests that start real commands.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ascertain_sys::process::{Command, Exit, Input, KEPT_BYTES, Output, Prepared, Usage, shell};
use ascertain_sys::testing::{alone, wait_until};
use ascertain_sys::{Error, clock};

use crate::common::program;

const MIB: u64 = 1 << 20;

fn run(command: &Command) -> Usage {
    Prepared::new(command).expect("the program is there").run(None).expect("it starts")
}

fn at(path: &Path) -> Command {
    Command { program: path.into(), ..Command::default() }
}

/// Returns the standard output of the command.
fn output_of(mut command: Command) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("output");
    command.stdout = Output::File(path.clone());
    assert_eq!(run(&command).exit, Exit::Code(0));
    fs::read_to_string(path).unwrap()
}

#[test]
fn exits_are_told_apart() {
    assert_eq!(run(&Command::new("true", &[])).exit, Exit::Code(0));
    assert_eq!(run(&Command::new("false", &[])).exit, Exit::Code(1));
    assert_eq!(run(&Command::new("sh", &["-c", "exit 7"])).exit, Exit::Code(7));
    assert_eq!(run(&shell("exit 127")).exit, Exit::Code(127));
    assert_eq!(run(&shell("kill -9 $$")).exit, Exit::Signal(9));
    assert_eq!(run(&shell("kill -TERM $$")).exit, Exit::Signal(15));
}

#[test]
fn a_command_can_be_run_again_and_by_several_threads() {
    let prepared = Prepared::new(&Command::new("true", &[])).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    assert_eq!(prepared.run(None).unwrap().exit, Exit::Code(0));
                }
            });
        }
    });
}

#[test]
fn it_outlives_the_thread_that_prepared_it() {
    let prepare = || Prepared::new(&Command::new("true", &[])).unwrap();
    let prepared = std::thread::spawn(prepare).join().unwrap();
    assert_eq!(prepared.run(None).unwrap().exit, Exit::Code(0));
}

#[test]
fn arguments_and_environment_arrive() {
    let args = ["%s|", "", "two words", "ü", "$HOME"];
    assert_eq!(output_of(Command::new("printf", &args)), "|two words|ü|$HOME|");
    let mut command = shell("echo \"$ASCERTAIN_TEST/$HOME\"");
    command.env = vec![("ASCERTAIN_TEST".into(), "a b".into()), ("HOME".into(), "/h".into())];
    assert_eq!(output_of(command), "a b//h\n");
    assert_eq!(output_of(shell("echo $0")), "sh\n", "the name as given, not the path");
}

#[test]
fn the_commands_own_path_is_searched() {
    let directory = crate::common::folder();
    program(directory.path(), "only-here", "#!/bin/sh\nexit 9\n");
    let mut command = Command::new("only-here", &[]);
    assert!(matches!(Prepared::new(&command), Err(Error::NotFound { .. })));
    command.env = vec![("PATH".into(), directory.path().into())];
    assert_eq!(run(&command).exit, Exit::Code(9));
    // A program counts as absent if the user may not search its folder. (Root may search the folder, and finds
    // nothing.)
    let closed = tempfile::tempdir().unwrap();
    fs::set_permissions(closed.path(), Permissions::from_mode(0o000)).unwrap();
    command.env = vec![("PATH".into(), closed.path().into())];
    let found = Prepared::new(&command);
    fs::set_permissions(closed.path(), Permissions::from_mode(0o700)).unwrap();
    assert!(matches!(found, Err(Error::NotFound { .. })));
}

#[test]
fn signals_are_as_a_shell_would_leave_them() {
    alone(|| {
        if !crate::common::has_launcher() {
            return;
        }
        // If `yes` ignored SIGPIPE, as Rust programs do, it would print forever.
        assert_eq!(run(&shell("yes | head -c 1")).exit, Exit::Code(0));
        let bits = |status: &str, name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        let ours = fs::read_to_string("/proc/self/status").unwrap();
        let theirs = output_of(Command::new("cat", &["/proc/self/status"]));
        let bit = |signal: i32| 1_u64 << (signal - 1);
        let ignored = bits(&ours, "SigIgn:") & !bit(13) | bit(21) | bit(22);
        assert_eq!(bits(&theirs, "SigIgn:"), ignored);
        assert_eq!(bits(&theirs, "SigBlk:"), 0);
    });
}

#[test]
fn a_thread_that_blocks_signals_does_not_block_the_commands() {
    if !crate::common::has_launcher() {
        return;
    }
    let status = std::thread::spawn(|| {
        // SAFETY: `sigset_t` is plain data, and `sigfillset` makes it a valid set; only the mask of this thread is
        // changed.
        unsafe {
            let mut all = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        }
        output_of(Command::new("cat", &["/proc/self/status"]))
    });
    assert!(status.join().unwrap().contains("SigBlk:\t0000000000000000"));
}

#[test]
fn a_fork_that_drops_a_command_leaves_it_to_us() {
    alone(|| {
        let prepared = Prepared::new(&Command::new("true", &[])).unwrap();
        // SAFETY: the copy drops a value, which frees memory (that works in a copy with the C libraries of Linux) and
        // makes system calls. It ends without running other code of the test.
        unsafe {
            let pid = libc::fork();
            if pid == 0 {
                drop(prepared);
                libc::_exit(0);
            }
            assert_eq!(libc::waitpid(pid, std::ptr::null_mut(), 0), pid);
        }
        assert_eq!(prepared.run(None).unwrap().exit, Exit::Code(0));
    });
}

#[test]
fn no_descriptors_leak_into_the_command() {
    alone(|| {
        let descriptors = output_of(Command::new("ls", &["/proc/self/fd"]));
        // `ls` reads the directory through descriptor 3. The process that runs the tests may have left other
        // descriptors open.
        let ours: Vec<i32> = descriptors.lines().map(|fd| fd.parse().unwrap()).collect();
        let inheritable = fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| {
            let fd = entry.unwrap().file_name().into_string().unwrap();
            let info = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
            let is_closed_by_exec = i64::from_str_radix(flags.trim(), 8).unwrap() & 0o2_000_000 != 0;
            (!is_closed_by_exec).then(|| fd.parse::<i32>().unwrap())
        });
        let inheritable: Vec<i32> = inheritable.collect();
        let unexpected: Vec<_> = ours.iter().filter(|fd| !inheritable.contains(fd)).collect();
        assert!(unexpected.len() <= 1, "{ours:?} but {inheritable:?}");
    });
}

#[test]
fn input_comes_from_a_file_or_from_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("input");
    fs::write(&path, "from a file").unwrap();
    let from = |stdin| Command { stdin, ..Command::new("cat", &[]) };
    assert_eq!(output_of(from(Input::File(path))), "from a file");
    assert_eq!(output_of(from(Input::Null)), "");

    let output = directory.path().join("output");
    let mut command = Command::new("wc", &["-c"]);
    command.stdin = Input::Bytes(vec![b'x'; MIB as usize]);
    command.stdout = Output::File(output.clone());
    let prepared = Prepared::new(&command).unwrap();
    for _ in 0..3 {
        prepared.run(None).unwrap();
        assert_eq!(fs::read_to_string(&output).unwrap().trim(), MIB.to_string());
    }
}

#[test]
fn a_command_cannot_change_the_bytes_it_is_given() {
    let mut command = shell("cat; echo changed >&0; echo changed 1<>/dev/stdin; echo changed > /dev/stdin; :");
    command.stdin = Input::Bytes(b"original ".to_vec());
    let directory = tempfile::tempdir().unwrap();
    command.stdout = Output::File(directory.path().join("output"));
    let prepared = Prepared::new(&command).unwrap();
    for _ in 0..2 {
        prepared.run(None).unwrap();
        assert_eq!(fs::read_to_string(directory.path().join("output")).unwrap(), "original ");
    }
}

#[test]
fn output_goes_to_a_file_that_each_run_empties() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("both");
    let mut command = shell("echo out; echo err >&2; echo out again");
    command.stdout = Output::File(path.clone());
    command.stderr = Output::File(path.clone());
    let prepared = Prepared::new(&command).unwrap();
    for _ in 0..2 {
        prepared.run(None).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "out\nerr\nout again\n");
    }
}

/// The scripts here do not make the shell fork. On a busy machine a fork can fail, and the shell would exit with the
/// same code as if the output were the wrong device.
#[test]
fn output_is_discarded_by_a_device_that_is_not_dev_null() {
    let succeeds = |script: &str, output: Output| {
        let command = Command { stdout: output.clone(), stderr: output, ..shell(script) };
        assert_eq!(run(&command).exit, Exit::Code(0), "{script}");
    };
    for (stream, number) in [("/dev/stdout", 1), ("/dev/stderr", 2)] {
        succeeds(&format!("test -c {stream}"), Output::Discard);
        succeeds(&format!("test -w {stream}"), Output::Discard);
        succeeds(&format!("test ! {stream} -ef /dev/null"), Output::Discard);
        succeeds(&format!("test ! -t {number}"), Output::Discard);
        succeeds(&format!("exec head -c 10000000 /dev/zero >&{number}"), Output::Discard);
        succeeds(&format!("exec head -c 10000000 /dev/zero > {stream}"), Output::Discard);
        succeeds(&format!("test {stream} -ef /dev/null"), Output::Null);
    }
}

/// The reads of descendants count too.
#[test]
#[cfg(target_os = "linux")]
fn bytes_read_are_counted_on_request() {
    let command = shell("head -c 3000000 /dev/zero; true");
    assert_eq!(run(&command).read_bytes, None);
    let counted = Prepared::new(&command).unwrap().counting_reads().run(None).unwrap();
    let read_bytes = counted.read_bytes.expect("this kernel counts them");
    assert!((3_000_000..4_000_000).contains(&read_bytes), "{read_bytes}");
}

#[test]
fn a_pipe_is_drained() {
    for outputs in ["head -c 10000000 /dev/zero", "head -c 10000000 /dev/zero >&2"] {
        let mut command = shell(outputs);
        command.stdout = Output::Pipe;
        command.stderr = Output::Pipe;
        assert_eq!(run(&command).exit, Exit::Code(0));
    }
    // A command that closes its standard output early.
    let mut command = shell("exec >&-; head -c 1000000 /dev/zero >&2");
    command.stdout = Output::Pipe;
    command.stderr = Output::Null;
    assert_eq!(run(&command).exit, Exit::Code(0));
}

#[test]
fn the_end_of_what_went_to_memory_is_kept_until_the_next_run() {
    let mut command = shell("echo out; head -c 10000000 /dev/zero | tr '\\0' x >&2; echo end >&2");
    command.stdout = Output::Memory;
    command.stderr = Output::Memory;
    let prepared = Prepared::new(&command).unwrap();
    assert_eq!(prepared.captured_output(), b"");
    for _ in 0..2 {
        assert_eq!(prepared.run(None).unwrap().exit, Exit::Code(0));
        let said = prepared.captured_output();
        let kept = KEPT_BYTES as usize;
        assert_eq!((said.len(), &said[kept - 6..]), (kept, &b"xxend\n"[..]));
    }
}

#[test]
fn a_descendant_that_keeps_the_pipe_open_does_not_hold_us_up() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pid");
    let mut command = shell(&format!("sleep 3600 & echo $! > '{}'", path.display()));
    command.stdout = Output::Pipe;
    assert_eq!(run(&command).exit, Exit::Code(0));
    // The descendant still runs, because `run` did not wait for it. The test must end it.
    let pid = fs::read_to_string(path).unwrap();
    let killed = std::process::Command::new("sh").args(["-c", "kill $0", pid.trim()]).status();
    assert!(killed.unwrap().success());
}

#[test]
fn the_time_limit_ends_the_whole_group() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pid");
    let mut command = shell("sleep 3600 & echo $!; sleep 3600");
    command.stdout = Output::File(path.clone());
    let prepared = Prepared::new(&command).unwrap();
    // On a busy machine the command may need more time to start its grandchild.
    let pid = [50, 500, 5_000, 60_000].into_iter().find_map(|limit_ms| {
        let start_ns = clock::now_ns();
        let usage = prepared.run(Some(Duration::from_millis(limit_ms))).unwrap();
        assert_eq!(usage.exit, Exit::TimedOut);
        assert!((limit_ms * 1_000_000..=clock::now_ns() - start_ns).contains(&usage.wall_ns));
        Some(fs::read_to_string(&path).unwrap().trim().to_owned()).filter(|pid| !pid.is_empty())
    });
    // A killed process may take a moment to end, or stay as a zombie if no process waits for it.
    let status = PathBuf::from(format!("/proc/{}/status", pid.unwrap()));
    let is_gone = || fs::read_to_string(&status).map_or(true, |text| text.contains("Z (zombie)"));
    wait_until("the grandchild is gone", is_gone);
}

#[test]
fn a_command_within_its_time_limit_is_as_without() {
    let prepared = Prepared::new(&shell("exit 3")).unwrap();
    for limit in [Duration::from_secs(3600), Duration::MAX] {
        assert_eq!(prepared.run(Some(limit)).unwrap().exit, Exit::Code(3));
    }
    let usage = Prepared::new(&Command::new("sleep", &["3600"])).unwrap();
    assert_eq!(usage.run(Some(Duration::ZERO)).unwrap().exit, Exit::TimedOut);
}

#[test]
fn times_are_those_of_the_command() {
    let spinner = shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done");
    let usage = run(&spinner);
    assert!(usage.user_ns > 1_000_000, "{usage:?}");
    let sleeper = run(&Command::new("sleep", &["0.2"]));
    assert!(sleeper.wall_ns >= 200_000_000, "{sleeper:?}");
    // The command uses no CPU while it sleeps, however long the rest takes. The kernel may count CPU time in ticks.
    let without_cpu_ns = sleeper.wall_ns.saturating_sub(sleeper.user_ns + sleeper.system_ns);
    assert!(without_cpu_ns >= 100_000_000, "{sleeper:?}");
}

#[test]
fn programs_that_cannot_be_started_are_errors() {
    let directory = crate::common::folder();
    let error = |command: &Command| match Prepared::new(command) {
        Err(error) => error,
        Ok(prepared) => prepared.run(None).expect_err("it must not start"),
    };
    let says = |error: Error, words: &[&str]| {
        let text = error.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };

    let missing = error(&Command::new("no-such-program", &[])).to_string();
    assert_eq!(missing.lines().count(), 1, "{missing}");
    assert!(missing.len() < 120, "PATH itself is not printed: {missing}");
    says(error(&Command::new("no-such-program", &[])), &["no-such-program", "PATH", "use a shell"]);
    says(error(&Command::new("/no/such/program", &[])), &["/no/such/program"]);
    assert!(matches!(error(&Command::new("", &[])), Error::NotFound { .. }));
    assert!(matches!(error(&at(directory.path())), Error::IsDirectory { .. }));

    let plain = directory.path().join("plain");
    fs::write(&plain, "text").unwrap();
    assert!(matches!(error(&at(&plain)), Error::NotExecutable { .. }));
    let mut by_name = Command::new("plain", &[]);
    by_name.env = vec![("PATH".into(), directory.path().into())];
    says(error(&by_name), &["plain", "chmod +x"]);

    let script = program(directory.path(), "script", "exit 0\n");
    says(error(&at(&script)), &["script", "#!"]);
    let orphan = program(directory.path(), "orphan", "#!/no/such/interpreter\n");
    says(error(&at(&orphan)), &["orphan", "/no/such/interpreter"]);
    let foreign = program(directory.path(), "foreign", "\u{7f}ELF and nothing more");
    says(error(&at(&foreign)), &["another kind of machine"]);

    let nul = Command::new("true", &["a\0b"]);
    assert!(matches!(error(&nul), Error::Nul { text } if text == "a\0b"));
    let large = Command::new("true", &[&"x".repeat(16 << 20)]);
    assert!(matches!(error(&large), Error::Start { .. }));
}

#[test]
fn a_program_that_vanishes_is_an_error_and_may_come_back() {
    let directory = crate::common::folder();
    let script = program(directory.path(), "script", "#!/bin/sh\nexit 4\n");
    let prepared = Prepared::new(&at(&script)).unwrap();
    assert_eq!(prepared.run(None).unwrap().exit, Exit::Code(4));
    fs::remove_file(&script).unwrap();
    assert!(matches!(prepared.run(None), Err(Error::NotFound { .. })));
    program(directory.path(), "script", "#!/bin/sh\nexit 5\n");
    assert_eq!(prepared.run(None).unwrap().exit, Exit::Code(5));
}

#[test]
fn files_that_cannot_be_opened_are_errors() {
    let missing = PathBuf::from("/no/such/folder/file");
    let mut command = Command::new("true", &[]);
    command.stdin = Input::File(missing.clone());
    let error = Prepared::new(&command).unwrap().run(None).unwrap_err();
    assert!(matches!(&error, Error::InputFile { path, .. } if *path == missing), "{error}");
    command.stdin = Input::File("/".into());
    let error = Prepared::new(&command).unwrap().run(None).unwrap_err();
    assert!(matches!(&error, Error::InputFile { .. }), "{error}");
    command.stdin = Input::Null;
    command.stderr = Output::File(missing.clone());
    let error = Prepared::new(&command).unwrap().run(None).unwrap_err();
    assert!(matches!(&error, Error::OutputFile { path, .. } if *path == missing), "{error}");
}

#[test]
fn nothing_is_left_behind() {
    alone(|| {
        if !crate::common::has_launcher() {
            return;
        }
        let count = || {
            let own = std::process::id().to_string();
            let parent = |stat: &str| stat.rsplit(')').next()?.split(' ').nth(2).map(str::to_owned);
            let processes = fs::read_dir("/proc")
                .unwrap()
                .filter_map(|entry| fs::read_to_string(entry.unwrap().path().join("stat")).ok());
            let name = "(ascertain-start)";
            processes.filter(|stat| parent(stat) == Some(own.clone()) && stat.contains(name)).count()
        };
        let prepare = |_| Prepared::new(&Command::new("true", &[])).unwrap();
        let prepared: Vec<Prepared> = (0..10).map(prepare).collect();
        assert_eq!(count(), 10);
        for prepared in &prepared {
            prepared.run(None).unwrap();
        }
        drop(prepared);
        wait_until("the launchers end", || count() == 0);
    });
}

#[test]
fn arguments_need_not_be_unicode() {
    use std::os::unix::ffi::OsStringExt;
    let mut command = Command::new("printf", &["%s"]);
    command.args.push(OsString::from_vec(vec![b'a', 0xff]));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("output");
    command.stdout = Output::File(path.clone());
    run(&command);
    assert_eq!(fs::read(path).unwrap(), [b'a', 0xff]);
}

/// A process migrates if it pins itself first to one CPU and then to another. A process gives up its CPU if it sleeps,
/// even on a busy machine.
#[cfg(target_os = "linux")]
#[test]
fn a_command_and_its_children_are_counted() {
    use ascertain_sys::{affinity, perf::Counter, testing::left_out};

    let [one, other, ..] = affinity::allowed()[..] else { return left_out("there is only one CPU") };
    let count = |usage: Usage, counter: Counter| usage.counts[counter as usize];
    let moves = format!("taskset -c {one} taskset -c {other} taskset -c {one} sleep 0.001");
    let prepared = Prepared::new(&shell(&format!("{moves}; {moves}"))).unwrap();
    let usage = prepared.run(None).unwrap();
    assert!(count(usage, Counter::PageFaults).unwrap() > 100);
    assert!(count(usage, Counter::ContextSwitches).unwrap() >= 2);
    assert_eq!(count(usage, Counter::CpuMigrations), None, "nobody asked");

    let prepared = prepared.counting();
    for _ in 0..2 {
        let usage = prepared.run(None).unwrap();
        assert_eq!(usage.exit, Exit::Code(0));
        for counter in Counter::ALL {
            assert_eq!(count(usage, counter).is_some(), counter.available().is_ok(), "{counter:?}");
        }
        if let Some(migrations) = count(usage, Counter::CpuMigrations) {
            assert!(migrations >= 4, "{migrations}");
        }
    }
}
