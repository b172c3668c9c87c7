//! How commands end, and what that counts as.

use std::time::{Duration, Instant};

use super::*;
use crate::command::{Input, OnFailure, Output, metrics};
use crate::experiment::Status;

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

#[test]
fn a_failure_stops_and_says_which_command() {
    let reason = failed(ending("exit 3", OnFailure::Stop));
    assert!(reason.contains("command `exit 3` ended with exit code 3"), "{reason}");
    assert!(reason.contains("--output inherit") && reason.contains("-i"), "{reason}");
    let reason = failed(ending("kill -9 $$", OnFailure::Stop));
    assert!(reason.contains("was ended by signal 9"), "{reason}");
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
        let started = Instant::now();
        let time_limit = Some(Duration::from_millis(20));
        let set = CommandSet { time_limit, on_failure, ..plain(&["sleep 3600"]) };
        let samples = measure_once(set).unwrap();
        assert!(started.elapsed() < Duration::from_secs(3600));
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
    fs::write(&to, "what was there before, and is longer").unwrap();
    let set = CommandSet {
        input: Input::File(from.into()),
        output: Output::File(to.clone().into()),
        ..shell(vec![command("cat; echo two >&2")])
    };
    let experiment = CommandExperiment::new(set).unwrap();
    assert!(fs::read_to_string(&to).unwrap().starts_with("what"), "nothing is lost before the first trial");
    let mut session = open(&experiment).unwrap();
    for trial in 0..2 {
        measure(&mut *session, 0, trial).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "one\ntwo\n");
    }
}

#[test]
fn output_that_fills_a_pipe_does_not_hang() {
    let set = CommandSet { output: Output::Pipe, ..plain(&["head -c 1000000 /dev/zero"]) };
    measure_once(set).unwrap();
}
