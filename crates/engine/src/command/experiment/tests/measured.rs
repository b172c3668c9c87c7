//! Tests of recorded requests, of failures, and of the order in which set-ups, preparations, commands and clean-ups
//! run.

use std::time::Duration;

use ascertain_sys::machine::Machine;
use ascertain_sys::testing;

use super::*;
use crate::command::{Input, OnFailure, Output, PrintedMetric, counters, metrics};
use crate::experiment::{Accepts, Arm, Factor, Level, Point, Setup, Status};
use crate::finding::{Remark, Work};
use crate::now::Now;

fn around(log: &Log, name: &str) -> NamedCommand {
    let note = |what: &str| Some(log.note(&format!("{what}-{name}")));
    NamedCommand {
        name: name.into(),
        line: log.note(name),
        setup: note("setup"),
        prepare: note("prepare"),
        cleanup: note("cleanup"),
        ..NamedCommand::default()
    }
}

#[test]
fn set_up_and_clean_up_once_and_prepare_before_each_observation() {
    let log = Log::new();
    let experiment = CommandExperiment::new(shell(vec![around(&log, "a"), around(&log, "b")])).unwrap();
    assert!(log.read().is_empty(), "nothing is run yet");
    let mut session = open(&experiment).unwrap();
    assert_eq!(log.read(), ["setup-a", "setup-b"]);
    for arm in [1, 0, 1] {
        session.verify(arm).unwrap();
        measure(&mut *session, arm, 0).unwrap();
    }
    drop(session);
    let run = ["setup-a", "setup-b", "prepare-b", "b", "prepare-a", "a", "prepare-b", "b"];
    assert_eq!(log.read()[..8], run);
    assert_eq!(log.read()[8..], ["cleanup-a", "cleanup-b"]);
    assert!(experiment.cleanup_failures().is_empty());
}

#[test]
fn clean_up_comes_after_a_failure_too() {
    let log = Log::new();
    let experiment =
        CommandExperiment::new(shell(vec![NamedCommand { line: "exit 1".into(), ..around(&log, "a") }])).unwrap();
    let mut session = open(&experiment).unwrap();
    failed(measure(&mut *session, 0, 0));
    drop(session);
    assert_eq!(log.read(), ["setup-a", "prepare-a", "cleanup-a"]);
}

#[test]
fn a_set_up_that_fails_is_named_and_those_before_it_are_cleaned_up_after() {
    let log = Log::new();
    let broken = NamedCommand { setup: Some("exit 7".into()), ..around(&log, "b") };
    let experiment = CommandExperiment::new(shell(vec![around(&log, "a"), broken])).unwrap();
    let reason = failed(open(&experiment));
    assert!(reason.contains("set-up `exit 7` ended with exit code 7"), "{reason}");
    assert_eq!(log.read(), ["setup-a", "cleanup-a"]);
}

#[test]
fn a_preparation_that_fails_is_named_and_the_command_is_not_run() {
    let log = Log::new();
    let broken = NamedCommand { prepare: Some("exit 7".into()), ..around(&log, "a") };
    let experiment = CommandExperiment::new(shell(vec![broken])).unwrap();
    let reason = failed(measure(&mut *open(&experiment).unwrap(), 0, 0));
    assert!(reason.contains("preparation `exit 7` ended with exit code 7"), "{reason}");
    assert_eq!(log.read(), ["setup-a", "cleanup-a"]);
}

#[test]
fn a_clean_up_that_fails_is_told_of() {
    let log = Log::new();
    let broken = NamedCommand { cleanup: Some("exit 7".into()), ..around(&log, "a") };
    let experiment = CommandExperiment::new(shell(vec![broken, around(&log, "b")])).unwrap();
    drop(open(&experiment).unwrap());
    assert_eq!(log.read(), ["setup-a", "setup-b", "cleanup-b"]);
    let failures = experiment.cleanup_failures();
    assert!(failures.len() == 1 && failures[0].contains("clean-up `exit 7`: exit status: 7"), "{failures:?}");
}

#[test]
fn arms_and_sessions_share_the_same_set_up() {
    let log = Log::new();
    let same = |name: &str| NamedCommand {
        name: name.into(),
        setup: Some(log.note("setup")),
        cleanup: Some(log.note("cleanup")),
        ..command("true")
    };
    let experiment = CommandExperiment::new(shell(vec![same("a"), same("b")])).unwrap();
    let (first, mut second) = (open(&experiment).unwrap(), open(&experiment).unwrap());
    drop(first);
    assert_eq!(log.read(), ["setup"], "the second session still needs it");
    measure(&mut *second, 1, 0).unwrap();
    drop(second);
    assert_eq!(log.read(), ["setup", "cleanup"]);
    drop(open(&experiment).unwrap());
    assert_eq!(log.read(), ["setup", "cleanup", "setup", "cleanup"]);
}

#[test]
fn parameters_are_replaced_in_every_line() {
    let log = Log::new();
    let levels = vec![Level::Integer(1), Level::Text("two".into())];
    let parameter = Factor {
        name: "n".into(),
        about: String::new(),
        default: levels[0].clone(),
        accepts: Accepts::OneOf(levels.clone()),
    };
    let set = CommandSet { parameters: vec![parameter], ..shell(vec![around(&log, "{n}-{m}")]) };
    let experiment = CommandExperiment::new(set).unwrap();
    let arm = |level: &Level| Arm { variant: "{n}-{m}".into(), point: Point::default().with("n", level.clone()) };
    let arms: Vec<Arm> = levels.iter().map(arm).collect();
    let mut session = experiment.open(&arms, &Setup { seed: 0, ..Setup::default() }).unwrap();
    measure(&mut *session, 1, 0).unwrap();
    drop(session);
    let expected = ["setup-1-{m}", "setup-two-{m}", "prepare-two-{m}", "two-{m}", "cleanup-1-{m}", "cleanup-two-{m}"];
    assert_eq!(log.read(), expected);
    drop(open(&experiment).unwrap());
    assert_eq!(log.read()[6..], ["setup-1-{m}", "cleanup-1-{m}"], "the default level");
}

#[test]
fn a_program_may_be_made_beforehand() {
    let log = Log::new();
    let program = log.path("program");
    let quoted = format!("'{program}'");
    // A link, because temporary files may be on a file system that starts no programs.
    let make = Some(format!("ln -sf /bin/sh '{program}'"));
    let by_setup = NamedCommand { setup: make.clone(), cleanup: Some(format!("rm '{program}'")), ..command(&quoted) };
    let by_preparation = NamedCommand { prepare: make, ..command(&quoted) };
    for command in [by_setup, by_preparation] {
        measure_once(CommandSet { commands: vec![command], ..plain(&[]) }).unwrap();
    }
    let _ = fs::remove_file(&program);
    let never = NamedCommand { setup: Some("true".into()), ..command(&quoted) };
    let reason = failed(measure_once(CommandSet { commands: vec![never], ..plain(&[]) }));
    assert!(reason.contains("was not found"), "{reason}");
}

const REQUESTS: [&str; 5] = ["a", "two words", "it's", "$(touch intruder) \"*\" \\", ""];

fn recorded(line: &str, shell: Option<&str>, log: &Log) -> CommandExperiment {
    let set = CommandSet {
        shell: shell.map(str::to_string),
        requests: Some(REQUESTS.map(String::from).into()),
        ..plain(&[&line.replace("LOG", &format!("\"{}\"", log.path("log")))])
    };
    CommandExperiment::new(set).unwrap()
}

/// Returns the lines that the command has appended for each request of a pass.
fn noted(experiment: &CommandExperiment, pass: u64, log: &Log) -> Vec<String> {
    let mut session = open(experiment).unwrap();
    let _ = fs::remove_file(log.path("log"));
    for place in 0..REQUESTS.len() as u64 {
        measure(&mut *session, 0, pass * REQUESTS.len() as u64 + place).unwrap();
    }
    log.read()
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

#[test]
fn requests_arrive_as_they_are_wherever_they_are_taken() {
    let expected = |around: [&str; 2]| sorted(REQUESTS.map(|text| [around[0], text, around[1]].concat()).into());
    let print = r#"printf "%s\n""#;
    for (line, shell, around) in [
        // As an argument. The inner `sh` only writes its arguments to the log.
        (r#"sh -c 'printf "%s\n" "$1" >> LOG' sh {request}"#, None, ["", ""]),
        (r#"sh -c 'printf "%s\n" "$1" >> LOG' sh "<{request}>""#, None, ["<", ">"]),
        // In a script, in which the placeholder may stand within quotes.
        (&*format!("{print} {{request}} >> LOG"), Some("sh"), ["", ""]),
        (&*format!("{print} \"<{{request}}>\" >> LOG"), Some("sh"), ["<", ">"]),
        (&*format!("{print} '<{{request}}>' >> LOG"), Some("sh -e"), ["<", ">"]),
        // On standard input.
        ("sh -c 'cat >> LOG'", None, ["", ""]),
        ("cat >> LOG", Some("sh"), ["", ""]),
    ] {
        let log = Log::new();
        let experiment = recorded(line, shell, &log);
        for pass in 0..2 {
            assert_eq!(sorted(noted(&experiment, pass, &log)), expected(around), "{line}");
        }
    }
    assert!(!std::path::Path::new("intruder").exists());
}

#[test]
fn the_same_seed_gives_the_same_order_and_all_arms_of_a_trial_the_same_request() {
    let log = Log::new();
    let line = format!("cat >> '{}'", log.path("log"));
    let set = CommandSet {
        requests: Some((0..20).map(|number| number.to_string()).collect()),
        ..shell(vec![command(&line), command(&line)])
    };
    let experiment = CommandExperiment::new(set).unwrap();
    let order = |seed, arm| {
        let mut session = experiment.open(&arms(&experiment), &Setup { seed, ..Setup::default() }).unwrap();
        let _ = fs::remove_file(log.path("log"));
        for trial in 0..20 {
            measure(&mut *session, arm, trial).unwrap();
        }
        log.read()
    };
    assert_eq!(order(1, 0), order(1, 1));
    assert_ne!(order(1, 0), order(2, 0));
}

fn value(samples: &[Sample], metric: &str) -> (f64, Status) {
    let index = metrics().iter().position(|known| known.name == metric).unwrap();
    let of_metric: Vec<&Sample> = samples.iter().filter(|sample| sample.metric == index).collect();
    assert_eq!(of_metric.len(), 1, "{metric}");
    (of_metric[0].value, of_metric[0].status)
}

fn ending(line: &str, on_failure: OnFailure) -> Result<Vec<Sample>, TargetError> {
    measure_once(CommandSet { on_failure, ..shell(vec![command(line)]) })
}

#[test]
fn a_success_has_all_five_metrics() {
    let samples = measure_once(plain(&["true"])).unwrap();
    assert_eq!(value(&samples, "exit"), (0.0, Status::Ok));
    assert!(value(&samples, "wall").0 > 0.0);
    for metric in ["wall", "user", "system", "memory_peak"] {
        let (value, status) = value(&samples, metric);
        assert!(value.is_finite() && value >= 0.0 && status == Status::Ok, "{metric}");
    }
}

/// The counters follow the five basic metrics, at the indices that the spec gives them.
#[test]
fn what_is_counted_is_observed_where_it_is_asked_for() {
    let set = CommandSet { counters: true, ..plain(&["true"]) };
    let experiment = CommandExperiment::new(set.clone()).unwrap();
    let (spec, samples) = (experiment.spec().clone(), measure_once(set).unwrap());
    let arm = Arm { variant: "true".into(), point: Point::default() };
    assert_eq!(spec.metrics.len(), metrics().len() + counters().len());
    for (index, metric) in spec.metrics.iter().enumerate() {
        let seen = samples.iter().find(|sample| sample.metric == index);
        let shown = experiment.shows(&arm, index, &Machine::default());
        assert!(seen.is_none() || shown.is_ok(), "{}: {shown:?}", metric.name);
        // Hardware counters are missing in a trial if other programs also used them during the trial.
        if metric.name == "page_faults" {
            assert_eq!(seen.is_some(), shown.is_ok(), "{shown:?}");
        }
        let is_right = |value: f64| match metric.name.as_str() {
            "page_faults" => value > 10.0,
            _ => value >= 0.0,
        };
        assert!(seen.is_none_or(|sample| is_right(sample.value) && sample.status == Status::Ok), "{seen:?}");
    }
}

#[test]
fn a_failure_stops_and_says_which_command() {
    let reason = failed(ending("exit 3", OnFailure::Stop));
    assert!(reason.contains("command `exit 3` ended with exit code 3"), "{reason}");
    assert!(reason.contains("show its output") && reason.contains("ignore its failures"), "{reason}");
    let reason = failed(ending("kill -9 $$", OnFailure::Stop));
    assert!(reason.contains("was killed by signal 9"), "{reason}");
}

#[test]
fn a_failure_is_told_with_its_last_words() {
    let script = "for n in 1 2 3 4; do echo line $n >&2; done; echo; exit 3";
    let reason = failed(ending(script, OnFailure::Stop));
    assert!(
        reason.ends_with("; its output ends with `line 2 / line 3 / line 4`; ignore its failures to measure it anyway"),
        "{reason}"
    );
    let long = failed(ending("printf '%0400d' 7 >&2; exit 3", OnFailure::Stop));
    assert!(long.contains(&format!("its output ends with `…{}7`", "0".repeat(299))), "{long}");
    let prepare = Some("echo on its way; echo not there >&2; exit 1".into());
    let around = failed(measure_once(shell(vec![NamedCommand { prepare, ..command("true") }])));
    assert!(around.ends_with("its output ends with `on its way / not there`"), "{around}");
}

/// Only the output of the first execution is kept. A background process that outlives its command does not delay an
/// execution, and it can still write to its output.
#[test]
fn later_runs_are_as_they_were() {
    let log = Log::new();
    let script = log.note("$(readlink /proc/self/fd/2 | cut -c -10)");
    let experiment = CommandExperiment::new(shell(vec![command(&script.replace('\'', "\""))])).unwrap();
    let mut session = open(&experiment).unwrap();
    (0..3).for_each(|trial| drop(measure(&mut *session, 0, trial).unwrap()));
    assert_eq!(log.read(), ["/memfd:out", "/dev/zero", "/dev/zero"]);

    let (path, go) = (log.path("left behind"), log.path("go"));
    let wait = format!("until test -e '{go}'; do sleep 0.01; done");
    let stays = format!("({wait}; echo x >&2; echo $? > '{path}.new'; mv '{path}.new' '{path}') &");
    measure_once(shell(vec![command(&stays)])).unwrap();
    fs::write(go, "").unwrap();
    testing::wait_until("a process that was left behind writes", || fs::exists(&path).unwrap());
    assert_ne!(fs::read_to_string(&path).unwrap().trim(), "0", "its output is not kept in memory");
}

#[test]
fn an_ignored_failure_keeps_its_time() {
    let samples = ending("exit 3", OnFailure::Ignore).unwrap();
    assert_eq!(value(&samples, "exit"), (3.0, Status::Ok));
    assert_eq!(value(&samples, "wall").1, Status::Ok);
}

#[test]
fn an_observed_failure_is_marked_as_failed() {
    let samples = ending("kill -9 $$", OnFailure::Observe).unwrap();
    assert_eq!(value(&samples, "exit"), (137.0, Status::Ok));
    let (wall, status) = value(&samples, "wall");
    assert!(wall.is_finite() && status == Status::Failed);
}

#[test]
fn a_time_out_is_a_time_above_the_limit_whatever_failures_mean() {
    for on_failure in [OnFailure::Stop, OnFailure::Ignore, OnFailure::Observe] {
        let time_limit = Some(Duration::from_millis(20));
        let set = CommandSet { time_limit, on_failure, ..plain(&["sleep 3600"]) };
        let samples = measure_once(set).unwrap();
        assert_eq!(value(&samples, "wall"), (20e6, Status::Censored));
        assert_eq!(value(&samples, "exit"), (0.0, Status::Censored));
        let (memory, status) = value(&samples, "memory_peak");
        assert!(memory.is_finite() && status == Status::Censored, "it might have taken more");
    }
}

#[test]
fn input_and_output_are_connected() {
    let log = Log::new();
    let (from, to) = (log.path("from"), log.path("to"));
    fs::write(&from, "one\n").unwrap();
    fs::write(&to, "old content that is longer than the new content").unwrap();
    let set = CommandSet {
        input: Input::File(from.into()),
        output: Output::File(to.clone().into()),
        ..shell(vec![command("cat; echo two >&2")])
    };
    let experiment = CommandExperiment::new(set).unwrap();
    assert!(fs::read_to_string(&to).unwrap().starts_with("old"), "nothing is lost before the first trial");
    let mut session = open(&experiment).unwrap();
    for trial in 0..2 {
        measure(&mut *session, 0, trial).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "one\ntwo\n");
    }
}

/// The command of this test recognises `/dev/null` and then does less work, as GNU grep and tar do.
#[test]
#[cfg(target_os = "linux")]
fn a_command_that_recognises_dev_null_is_found_out() {
    let line = "test /dev/stdout -ef /dev/null || head -c 1000000 /dev/zero >&2";
    let remarks_with = |output: Output, line: &str| {
        let experiment = CommandExperiment::new(CommandSet { output, ..shell(vec![command(line)]) }).unwrap();
        let now = Now::new(vec![vec!["arm".into()]]);
        let setup = Setup { now: now.clone(), ..Setup::default() };
        let arm = Arm { variant: line.into(), point: Point::default() };
        let mut session = experiment.open(&[arm], &setup).unwrap();
        now.set_measuring(0, 0, 0);
        for trial in 0..2 {
            measure(&mut *session, 0, trial).unwrap();
        }
        now.all_remarks()
    };
    let remarks = remarks_with(Output::Null, line);
    let [(_, Remark::RecognisesNull { null, neutral })] = &remarks[..] else { panic!("{remarks:?}") };
    assert!(neutral.read_bytes > null.read_bytes.map(|bytes| bytes + 900_000), "{remarks:?}");
    assert_eq!(remarks_with(Output::Discard, line), []);
    assert_eq!(remarks_with(Output::Null, "head -c 1000000 /dev/zero"), []);
}

#[test]
fn less_work_is_told_from_noise() {
    let work = |cpu_ms: u64, read_bytes| Work { cpu_ns: cpu_ms * 1_000_000, read_bytes };
    for (null, neutral, is_other) in [
        (work(1, Some(79)), work(1, Some(100)), true),
        (work(1, Some(81)), work(1, Some(100)), false),
        // With `/dev/null` the command read more, not less. The difference is due to chance.
        (work(1, Some(100)), work(1, Some(50)), false),
        // The CPU time of a short command varies.
        (work(1, Some(100)), work(5, Some(100)), false),
        (work(10, None), work(100, None), true),
        (work(90, None), work(100, None), false),
    ] {
        assert_eq!(crate::command::experiment::is_other_work(null, neutral), is_other, "{null:?} {neutral:?}");
    }
}

#[test]
fn output_that_fills_a_pipe_does_not_hang() {
    let set = CommandSet { output: Output::Pipe, ..plain(&["head -c 1000000 /dev/zero"]) };
    measure_once(set).unwrap();
}

#[test]
fn what_concludes_an_observation_comes_after_it_whatever_came_of_it() {
    let log = Log::new();
    let concluded = |line: &str| NamedCommand { conclude: Some(log.note("conclude")), ..command(line) };
    for (line, is_fine) in [("true", true), ("exit 1", false)] {
        let experiment = CommandExperiment::new(shell(vec![concluded(line)])).unwrap();
        assert_eq!(measure(&mut *open(&experiment).unwrap(), 0, 0).is_ok(), is_fine);
    }
    assert_eq!(log.read(), ["conclude", "conclude"]);
    let broken = NamedCommand { conclude: Some("exit 7".into()), ..command("true") };
    let reason = failed(measure_once(shell(vec![broken])));
    assert!(reason.contains("conclusion `exit 7` ended with exit code 7"), "{reason}");
}

#[test]
fn variables_reach_the_command_and_what_goes_around_it() {
    let log = Log::new();
    let note = format!("echo \"$V $ASCERTAIN_ITERATION $HYPERFINE_ITERATION\" >> '{}'", log.path("log"));
    let hook = || Some(note.clone());
    let command = NamedCommand {
        setup: hook(),
        prepare: hook(),
        conclude: hook(),
        cleanup: hook(),
        env: vec![("V".into(), Some("a b".into()))],
        ..command(&note)
    };
    let experiment = CommandExperiment::new(shell(vec![command])).unwrap();
    let mut session = open(&experiment).unwrap();
    for trial in [crate::block::Block::WARM_UP, crate::block::Block::WARM_UP, 0] {
        measure(&mut *session, 0, trial).unwrap();
    }
    drop(session);
    let (none, of) = ("a b  ".to_string(), |iteration: &str| format!("a b {iteration} {iteration}"));
    let trials = ["warmup-0", "warmup-1", "0"].map(|iteration| vec![of(iteration); 3]).concat();
    assert_eq!(log.read(), [vec![none.clone()], trials, vec![none]].concat());
}

#[test]
fn a_hook_gets_a_shell_where_it_needs_one_and_the_command_none() {
    let log = Log::new();
    let prepare = Some(format!("{} && true", log.note("prepare")));
    measure_once(CommandSet { commands: vec![NamedCommand { prepare, ..command("true") }], ..plain(&[]) }).unwrap();
    assert_eq!(log.read(), ["prepare"]);
}

#[test]
fn exit_codes_that_are_ignored_are_those_that_were_named() {
    let codes = || OnFailure::IgnoreCodes(vec![3, 137]);
    assert_eq!(value(&ending("exit 3", codes()).unwrap(), "exit"), (3.0, Status::Ok));
    assert_eq!(value(&ending("kill -9 $$", codes()).unwrap(), "exit"), (137.0, Status::Ok));
    assert!(failed(ending("exit 4", codes())).contains("exit code 4"));
}

#[test]
fn outputs_may_differ() {
    let log = Log::new();
    let to = |name: &str| NamedCommand { output: Some(Output::File(log.path(name).into())), ..command("echo x") };
    let set = CommandSet { commands: vec![to("a"), to("b"), command("echo x")], ..plain(&[]) };
    let experiment = CommandExperiment::new(set).unwrap();
    let mut session = open(&experiment).unwrap();
    measure(&mut *session, 0, 0).unwrap();
    assert_eq!(fs::read_to_string(log.path("a")).unwrap(), "x\n");
    assert_eq!(fs::read_to_string(log.path("b")).unwrap(), "");
}

/// A set-up that changes the file of another command is found, even if that command belongs to another session and has
/// been measured.
#[test]
fn a_set_up_that_changes_what_another_left_spoils_both() {
    let log = Log::new();
    let (mine, yours) = (log.path("mine"), log.path("yours"));
    let of = |name: &str, line: String, setup: String| NamedCommand {
        name: name.into(),
        setup: Some(setup),
        ..command(&line)
    };
    let set = shell(vec![
        of("a", format!("cat '{mine}'"), format!("echo 1 > '{mine}'")),
        of("b", format!("cat '{yours}'"), format!("echo 1 > '{yours}'")),
        of("c", format!("cat '{mine}' '{yours}'"), format!("echo 22 > '{mine}'")),
    ]);
    let experiment = CommandExperiment::new(set).unwrap();
    let arms = arms(&experiment);
    let mut session = experiment.open(&arms[..2], &Setup::default()).unwrap();
    measure(&mut *session, 0, 0).unwrap();
    let reason = failed(experiment.open(&arms[2..], &Setup::default()).map(drop));
    assert!(
        reason.contains("echo 22") && reason.contains("/mine`") && reason.contains("prepare each observation"),
        "{reason}"
    );
    assert_eq!(failed(measure(&mut *session, 1, 1)), reason);
}

fn printing(line: &str, metric: &str, on_failure: OnFailure) -> CommandSet {
    let printed = vec![PrintedMetric::parse(metric).unwrap()];
    CommandSet { printed, on_failure, ..shell(vec![command(line)]) }
}

/// Returns the samples of the first printed metric.
fn printed(set: &CommandSet) -> Result<Vec<(f64, Status)>, TargetError> {
    let index = set.metrics().iter().position(|metric| metric.name == set.printed[0].name).unwrap();
    let samples = measure_once(set.clone())?;
    Ok(samples.iter().filter(|sample| sample.metric == index).map(|sample| (sample.value, sample.status)).collect())
}

#[test]
fn a_printed_figure_follows_the_others_with_counters_and_without() {
    let set = printing("echo warming up; echo 5 MB/s; echo 12.5 MB/s >&2", "rate=([0-9.]+) MB/s", OnFailure::Stop);
    assert_eq!(printed(&set), Ok(vec![(12.5e6, Status::Ok)]), "the last match in both outputs");
    let counting = CommandSet { counters: true, ..set };
    assert_eq!(counting.metrics().last().unwrap().name, "rate");
    assert_eq!(printed(&counting), Ok(vec![(12.5e6, Status::Ok)]));
    let arm = Arm { variant: "x".into(), point: Point::default() };
    for set in [counting.clone(), CommandSet { counters: false, ..counting }] {
        let experiment = CommandExperiment::new(set.clone()).unwrap();
        let index = set.metrics().len() - 1;
        assert_eq!(experiment.shows(&arm, index, &Machine::default()), Ok(()), "no counter has that place");
    }
}

#[test]
fn a_trial_without_the_figure_has_failed() {
    let metric = "rate=([0-9.]+) MB/s";
    let error = failed(printed(&printing("echo hello; echo 5 MB", metric, OnFailure::Stop)));
    let expected = "command `echo hello; echo 5 MB` printed no `rate`: `([0-9.]+) MB/s` matches no line of its output; \
                    the output ends with `hello / 5 MB`";
    assert_eq!(error, expected);
    for ignoring in [OnFailure::Ignore, OnFailure::IgnoreCodes(vec![3])] {
        let error = failed(printed(&printing("exit 3", metric, ignoring.clone())));
        assert!(error.contains("command `exit 3` ended with exit code 3 and printed no `rate`: "), "{error}");
        assert!(error.ends_with("; it printed nothing"), "{error}");
        let both = printed(&printing("echo 5 MB/s; exit 3", metric, ignoring));
        assert_eq!(both, Ok(vec![(5e6, Status::Ok)]), "an ignored failure does not discard the printed figure");
    }
    let error = failed(printed(&printing("echo nan MB/s", "rate=(.*) MB/s", OnFailure::Stop)));
    assert!(error.contains("printed `nan` as `rate`, which is not a finite number"), "{error}");
    assert_eq!(printed(&printing("echo hello", metric, OnFailure::Observe)), Ok(Vec::new()), "a predicate is false");
}

#[test]
fn a_figure_of_a_command_that_was_stopped_is_not_known() {
    let set = printing("echo 5 MB/s; sleep 3600", "rate=([0-9.]+) MB/s", OnFailure::Stop);
    let set = CommandSet { time_limit: Some(Duration::from_millis(20)), ..set };
    let samples = printed(&set).unwrap();
    assert!(matches!(samples[..], [(value, Status::Censored)] if value.is_nan()), "{samples:?}");
}
