//! The own workloads, their passes, the control, and other languages.

use std::collections::BTreeSet;

use ascertain_engine::experiment::{Session, Setup};
use ascertain_engine::finding::Remark;
use ascertain_sys::machine::Machine;

use super::*;
use crate::runtimes::languages::{LANGUAGES, RESULTS};
use crate::runtimes::workloads::name_beside_own;
use crate::runtimes::{JAVASCRIPT, OTHER};

#[test]
fn every_language_has_the_same_ten_workloads() {
    for language in LANGUAGES.iter().filter(|language| !language.workloads.is_empty()) {
        let names: Vec<&str> = language.workloads.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, RESULTS.map(|(name, _)| name), "{}", language.name);
    }
}

/// pyperformance has a workload `generators`, as this experiment does.
#[test]
fn workloads_of_pyperformance_do_not_take_our_names() {
    let name = |name: &str| name_beside_own(name.into(), named(PYTHON));
    assert_eq!([name("generators"), name("nbody")], ["pyperformance:generators", "nbody"]);
}

#[test]
fn all_own_workloads_give_their_result_in_every_phase() {
    let Some(python) = python() else { return };
    let path = python.display().to_string();
    for (phase, count) in [("start", 10), ("first", 10), ("warm", 10)] {
        let levels = [("phase", phase), ("warm_ms", "1"), ("limit_s", "600")];
        let result = measured(arms(PYTHON, &[&path, &format!("again={path}")], &levels).unwrap(), 2).unwrap();
        let comparison = only(&result);
        assert_eq!((comparison.workloads.len(), comparison.left_out.len()), (count, 0), "{phase}");
        assert!(comparison.is_paired && comparison.is_same_build);
        assert_eq!(comparison.mean.unwrap().like_these.unwrap().degrees, 9.0);
        let sample = result.outcome.suites[0].sample.clone();
        let word = match phase {
            "start" => "from the start of the process to its first result",
            "first" => "the first pass in a fresh process",
            _ => "a pass after 1 ms of passes in a fresh process",
        };
        assert_eq!(sample, word);
        let passes = result.outcome.points.iter().find(|point| point.metric == "pass").unwrap();
        assert!(passes.n > 0);
        assert!(result.outcome.by_key.iter().filter(|point| point.metric == "start").count() >= 20);
    }
}

/// Runtimes are compared only with runtimes that have the same workloads.
#[test]
fn two_lists_of_workloads_are_two_suites() {
    let Some(python) = python() else { return };
    let path = python.display().to_string();
    let of_list = |list: &str| {
        let levels = [("workloads", list), ("phase", "first"), ("limit_s", "600")];
        arms(PYTHON, &[&path, &format!("again={path}")], &levels).unwrap()
    };
    let result = measured([of_list("calls"), of_list("dicts")].concat(), 2).unwrap();
    let means: Vec<u64> = result.outcome.points.iter().filter(|of| of.metric == "suite").map(|of| of.n).collect();
    assert_eq!((means, result.outcome.suites.len()), (vec![2; 4], 2));
}

/// The control needs a library that both runtimes map. One runtime under two names always has the same.
#[test]
fn the_control_works_in_a_library_of_all_runtimes() {
    let Some(python) = python() else { return };
    let path = python.display().to_string();
    let levels = [("workloads", "calls"), ("phase", "first"), ("limit_s", "600")];
    let result = measured(arms(PYTHON, &[&path, &format!("again={path}")], &levels).unwrap(), 2).unwrap();
    let control = remarks(&result, &path).into_iter().find_map(|remark| match remark {
        Remark::Processes { control, .. } => Some(control.clone()),
        _ => None,
    });
    match control.unwrap() {
        Some((library, id)) => {
            assert!(library.starts_with("lib") && id.len() >= 20, "{library} {id}");
            assert_eq!(only(&result).control.as_ref().unwrap().values, [2, 2]);
        }
        None => left_out("this Python has no module that uses a shared library"),
    }
    assert!(only(&result).workloads.iter().all(|of| of.workload != "control"), "it is not part of the mean");
    // The start of a process is not work of the library, so the control is never the start of its process.
    let levels = [("workloads", "calls"), ("phase", "start"), ("limit_s", "600")];
    let started = measured(arms(PYTHON, &[&path, &format!("again={path}")], &levels).unwrap(), 1).unwrap();
    let of_control = |metric: &str| {
        let is_it = |of: &&ascertain_engine::outcome::PointSummary| of.metric == metric && of.key == "control";
        started.outcome.by_key.iter().find(is_it).map(|of| of.median)
    };
    assert_eq!(of_control("time").is_some(), only(&started).control.is_some());
    assert!(of_control("time").is_none() || of_control("time") != of_control("start"));
    // One workload is no sample of workloads.
    assert_eq!(only(&result).mean.unwrap().like_these, None);
}

#[test]
fn javascript_gives_the_same_results() {
    let [Some(node), Some(python)] =
        [installed(named(JAVASCRIPT)).into_iter().next().map(|of| of.program.path.clone()), python()]
    else {
        left_out("Node.js is not installed");
        return;
    };
    let [node, python] = [node, python].map(|path| path.display().to_string());
    let levels = [("phase", "first"), ("limit_s", "600")];
    let mut both = arms(JAVASCRIPT, &[&node, &format!("again={node}")], &levels).unwrap();
    both.pop();
    both.extend(arms(PYTHON, &[&python, &format!("again={python}")], &levels).unwrap().into_iter().take(1));
    let result = measured(both, 1).unwrap();
    let comparison = only(&result);
    assert_eq!((comparison.workloads.len(), comparison.left_out.len()), (10, 0), "{:?}", result.outcome.remarks);
    // Two languages have no library in common that would do the same work.
    assert_eq!(comparison.control, None);
}

/// A fixed order would give a workload the same neighbours in each trial, and a runtime the same position.
#[test]
fn workloads_and_runtimes_are_in_another_random_order_in_each_trial() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    let log = bench.path("log");
    let runtimes = ["a", "b"].map(|name| {
        let script = bench.wrapper(&format!("run-{name}"), &format!("export PYTHONMARK={name};"), &python);
        format!("{name}={script}")
    });
    let workloads = ["one", "two", "three", "four"].map(|name| {
        let noted = format!("' '.join(('{name}', os.environ['PYTHONMARK'], os.environ['PYTHONHASHSEED']))");
        let log = log.display().to_string();
        bench.write(&format!("{name}.py"), &format!("import os\nprint({noted}, file=open({log:?}, 'a'))\n"))
    });
    let (trials, workloads) = (6, workloads.each_ref().map(String::as_str));
    files(&[&runtimes[0], &runtimes[1]], &workloads, trials);
    let noted = fs::read_to_string(&log).unwrap();
    let processes = noted.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    // Checks of results before and between trials have a seed of their own.
    let measured: Vec<Vec<&str>> = processes.filter(|process| process[2] != "1").collect();
    assert_eq!(measured.len() as u64, trials * 8, "{noted}");
    let (mut orders, mut first_runtimes) = (BTreeSet::new(), BTreeSet::new());
    for trial in measured.chunks(8) {
        let of_workloads: Vec<(&str, &str)> = trial.chunks(2).map(|pair| (pair[0][0], pair[0][1])).collect();
        // The runtimes of a workload follow one another.
        assert!(trial.chunks(2).all(|pair| pair[0][0] == pair[1][0] && pair[0][1] != pair[1][1]), "{trial:?}");
        assert_eq!(of_workloads.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>().len(), 4, "{trial:?}");
        orders.insert(of_workloads.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        first_runtimes.insert(of_workloads.iter().map(|(_, runtime)| *runtime).collect::<Vec<_>>());
    }
    // The run has a fixed seed, so its orders are the same each time.
    assert!(orders.len() >= 4, "{orders:?}");
    assert!(first_runtimes.len() >= 4, "{first_runtimes:?}");
}

/// Any program that runs a file is a runtime.
#[test]
fn other_programs_run_files() {
    let bench = Bench::new();
    let workload = bench.write("w", "echo done\n");
    let arms = arms(OTHER, &["/bin/sh", "again=/bin/sh"], &[("workloads", &workload)]).unwrap();
    let result = measured(arms, 2).unwrap();
    assert_eq!(only(&result).workloads.len(), 1);
    assert!(only(&result).is_same_build);
}

/// A shim of rbenv is a script. The program that it starts is unknown, so its content does not identify a build.
#[test]
fn a_script_that_starts_another_program_is_reported() {
    let bench = Bench::new();
    let workload = bench.write("w", "echo done\n");
    let [one, other] = ["one", "other"].map(|name| bench.wrapper(name, "", Path::new("/bin/sh")));
    let result = measured(self::arms(OTHER, &[&one, &other], &[("workloads", &workload)]).unwrap(), 1).unwrap();
    let is_it = |remark: &&Remark| matches!(remark, Remark::ScriptRuntime { given, .. } if *given == one);
    assert!(remarks(&result, &one).iter().any(is_it), "{:?}", result.outcome.remarks);
    assert!(!only(&result).is_same_build);
}

#[test]
fn arms_without_a_program_are_unavailable() {
    let point = Runtimes.spec().default_point().with("runtime", "/no/such/python");
    let arm = Runtimes.trimmed(&Arm { variant: PYTHON.into(), point });
    let lack = Runtimes.available(&arm, &Machine::default()).unwrap_err().to_string();
    assert!(lack.contains("there is no file `/no/such/python`"), "{lack}");
    let opened: Result<Box<dyn Session>, _> = Runtimes.open(&[arm], &Setup::default());
    assert!(opened.is_err());
}

/// The folder of sources is removed with the session.
#[test]
fn nothing_is_left_behind() {
    let folder = crate::runtimes::workloads::Folder::new().unwrap();
    folder.write_all().unwrap();
    let path = folder.path().to_path_buf();
    assert!(path.join("python/drive.py").is_file() && path.join("javascript/calls.js").is_file());
    drop(folder);
    assert!(!path.exists());
}
