//! Faults of runtimes and workloads: wrappers, environments, seeds, crashes, wrong answers, time limits.

use ascertain_engine::finding::{Remark, WorkloadFailure};
use ascertain_engine::suite::WorkloadLack;

use super::*;

/// pyenv/pyenv#2802: the `python` that is found first is a script that starts many processes.
#[test]
fn a_shim_is_followed_and_reported() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    let shim = bench.wrapper("a b/shim", "for i in 1 2 3 4 5; do /bin/true; done;", &python);
    let workload = bench.write("w.py", "pass\n");
    let [a, b] = [format!("A={shim}"), format!("B={}", python.display())];
    let result = files(&[&a, &b], &[&workload], 2);
    let found = remarks(&result, "A").into_iter().find_map(|remark| match remark {
        Remark::StartsAnother(started) => Some(started.clone()),
        _ => None,
    });
    let started = found.unwrap();
    assert_eq!((started.given.as_str(), started.starts.as_str()), (shim.as_str(), python.to_str().unwrap()));
    assert!(started.is_followed && started.kept.is_empty() && started.wrapper_ns > 0.0 && started.program_ns > 0.0);
    let comparison = only(&result);
    assert!(comparison.is_same_build && comparison.left_out.is_empty());
    assert_eq!((comparison.candidate.as_str(), comparison.baseline.as_str()), ("B", "A"));
    let path = |index: usize| result.outcome.facts[index].facts.get("path").unwrap().to_string();
    assert_eq!(path(0), path(1));
    // If the user wants the wrapper to be measured, the remark is there, too.
    let arms = arms(PYTHON, &[&a, &b], &[("workloads", &workload), ("follow", "no")]).unwrap();
    let result = measured(arms, 1).unwrap();
    let is_unfollowed = |remark: &&Remark| matches!(remark, Remark::StartsAnother(started) if !started.is_followed);
    assert!(remarks(&result, "A").iter().any(is_unfollowed));
    assert_eq!(result.outcome.facts[0].facts.get("path").unwrap().to_string(), shim);
}

/// NixOS/nixpkgs#150841: a wrapper gives the program its own name, so the program reports the wrapper as its path.
#[test]
fn a_wrapper_that_keeps_its_name_is_followed_and_reported() {
    let Some(python) = python() else { return };
    if !Path::new("/bin/bash").exists() {
        left_out("Bash is not installed");
        return;
    }
    let bench = Bench::new();
    let text = format!("#!/bin/bash\nexec -a \"$0\" '{}' \"$@\"\n", python.display());
    let shim = bench.script("shim", &text);
    let workload = bench.write("w.py", "pass\n");
    let result = files(&[&format!("A={shim}"), &format!("B={}", python.display())], &[&workload], 1);
    let started = remarks(&result, "A").into_iter().find_map(|remark| match remark {
        Remark::StartsAnother(started) => Some(started.clone()),
        _ => None,
    });
    let started = started.unwrap();
    assert_eq!(Path::new(&started.starts), fs::canonicalize(&python).unwrap());
    assert!(started.is_followed);
}

/// Python runs the `.pth` files of its own folders, and not those of other folders on its path.
#[test]
fn files_of_other_folders_do_not_run_at_the_start() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    bench.write("lib/zz.pth", "import csv\n");
    let with_path = bench.wrapper("a", &format!("export PYTHONPATH='{}';", bench.path("lib").display()), &python);
    let workload = bench.write("w.py", "pass\n");
    let result = files(&[&format!("A={with_path}"), &format!("B={}", python.display())], &[&workload], 1);
    assert_eq!(only(&result).starts, None);
}

/// Python ignores the seed of hashes with `-I`, and a wrapper that is measured may set its own.
#[test]
fn runtimes_that_ignore_the_seed_are_named() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    let isolated = bench.script("isolated", &format!("#!/bin/sh\nexec '{}' -I \"$@\"\n", python.display()));
    let seeded = bench.wrapper("seeded", "export PYTHONHASHSEED=7;", &python);
    let workload = bench.write("w.py", "pass\n");
    let unseeded = |follow: &str| {
        let runtimes = [format!("I={isolated}"), format!("S={seeded}"), format!("P={}", python.display())];
        let runtimes = runtimes.each_ref().map(String::as_str);
        let result = measured(arms(PYTHON, &runtimes, &[("workloads", &workload), ("follow", follow)]).unwrap(), 1);
        let found = remarks(&result.unwrap(), "I").into_iter().find_map(|remark| match remark {
            Remark::Processes { unseeded, .. } => Some(unseeded.clone()),
            _ => None,
        });
        found.unwrap()
    };
    assert_eq!(unseeded("yes"), ["I"]);
    assert_eq!(unseeded("no"), ["I", "S"]);
}

/// A wrapper may set options and variables that change how the runtime works. They are part of what the user gave.
#[test]
fn the_settings_of_a_wrapper_are_kept() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    let one = bench.wrapper("one", "export PYTHONMARK='x y'; export UNRELATED=1;", &python);
    let other = bench.script("other", &format!("#!/bin/sh\nexec '{}' -O -X utf8 \"$@\"\n", python.display()));
    // A wrapper may start another wrapper.
    let outer = bench.wrapper("outer", "export PYTHONOUTER=1;", Path::new(&one));
    let workload = bench.write("w.py", "pass\n");
    let result = files(&[&other, &one, &outer], &[&workload], 1);
    let kept = |name: &str| {
        let found = remarks(&result, name).into_iter().find_map(|remark| match remark {
            Remark::StartsAnother(started) => Some(started.kept.join(" ")),
            _ => None,
        });
        found.unwrap()
    };
    assert_eq!(kept(&other), "-O -X utf8");
    assert_eq!(kept(&one), "PYTHONMARK=x y");
    assert_eq!(kept(&outer), "PYTHONMARK=x y PYTHONOUTER=1");
}

/// Links and virtual environments are no wrappers: they are the runtime itself.
#[test]
fn a_link_and_an_environment_are_no_wrappers() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    let link = bench.path("linked python");
    std::os::unix::fs::symlink(&python, &link).unwrap();
    let Some([environment, _]) = environments(&bench, &python) else { return };
    let workload = bench.write("w.py", "pass\n");
    let result = files(&[&format!("A={}", link.display()), &format!("B={environment}")], &[&workload], 1);
    for name in ["A", "B"] {
        assert!(!remarks(&result, name).iter().any(|remark| matches!(remark, Remark::StartsAnother(_))), "{name}");
    }
    assert!(only(&result).is_same_build);
}

/// Makes two virtual environments, and returns their interpreters.
fn environments(bench: &Bench, python: &Path) -> Option<[String; 2]> {
    let made = ["a", "b"].map(|name| {
        let folder = bench.path(name);
        let made = Command::new(python).args(["-m", "venv", "--without-pip"]).arg(&folder).output().unwrap();
        made.status.success().then(|| folder.join("bin/python").display().to_string())
    });
    let [Some(a), Some(b)] = made else {
        left_out("this Python cannot make virtual environments");
        return None;
    };
    Some([a, b])
}

/// astral-sh/uv#6426: a file of one environment imports modules at every start.
#[test]
fn what_runs_at_the_start_of_one_side_only_is_listed() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    let Some([a, b]) = environments(&bench, &python) else { return };
    let packages = |environment: &str| {
        let script = "import site; print(site.getsitepackages()[0])";
        let found = Command::new(environment).args(["-c", script]).output().unwrap();
        PathBuf::from(String::from_utf8(found.stdout).unwrap().trim())
    };
    fs::write(packages(&b).join("zz.pth"), "import contextlib, email.parser\n").unwrap();
    // Lines that only name folders run nothing. A file that is the same on both sides makes no difference, and a file
    // of the same name with other content does.
    fs::write(packages(&b).join("folders.pth"), "/tmp\n# import x\n").unwrap();
    for (environment, text) in [(&a, "import os\n"), (&b, "import os\n")] {
        fs::write(packages(environment).join("same.pth"), text).unwrap();
    }
    fs::write(packages(&a).join("other.pth"), "import\tcsv\n").unwrap();
    fs::write(packages(&b).join("other.pth"), "import\tjson\n").unwrap();
    fs::write(packages(&a).join("usercustomize.py"), "").unwrap();
    fs::write(packages(&a).join("sitecustomize.py"), "x = 1\n").unwrap();
    // The same file may import a package that only one environment has.
    let import = ["both", "single"]
        .map(|name| format!("import importlib.util; importlib.util.find_spec('{name}') and __import__('{name}')\n"));
    for (environment, names) in [(&a, &["both"][..]), (&b, &["both", "single"])] {
        fs::write(packages(environment).join("packages.pth"), import.concat()).unwrap();
        names.iter().for_each(|name| fs::write(packages(environment).join(format!("{name}.py")), "x = 1\n").unwrap());
    }
    let workload = bench.write("w.py", "pass\n");
    let result = files(&[&format!("A={a}"), &format!("B={b}")], &[&workload], 1);
    let starts = only(&result).starts.clone().unwrap();
    let (only_here, only_baseline) = (starts.candidate, starts.baseline);
    assert!(only_here.contains(&"zz.pth".to_string()) && only_here.contains(&"other.pth".to_string()), "{only_here:?}");
    assert!(only_here.contains(&"single".to_string()), "{only_here:?}");
    let is_on_both_sides = |name: &String| ["same.pth", "folders.pth", "packages.pth", "both"].contains(&name.as_str());
    assert!(!only_here.iter().any(is_on_both_sides), "{only_here:?}");
    let is_there = |name: &str| only_baseline.iter().any(|found| found == name);
    assert!(is_there("other.pth") && is_there("sitecustomize"), "{only_baseline:?}");
}

/// python/mypy#18285: the time of a process depends on its hash seed. All runtimes of a trial get the same seed, and
/// the same total size of strings, which a workload can see. Each trial gets new ones.
#[test]
fn seeds_and_sizes_are_the_same_on_both_sides() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    let long = bench.wrapper("a/long/path/to a/runtime", "export PYTHONMARK=a-long-value;", &python);
    // Any difference between the two outputs would be a wrong answer.
    let text = "import os\nline = open('/proc/self/cmdline', 'rb').read()\n\
                size = len(line) + len(open('/proc/self/environ', 'rb').read()) + len(line.split(b'\\0')[0]) + 1\n\
                print(os.environ['PYTHONHASHSEED'], hash('k'), size)\n";
    let workload = bench.write("w.py", text);
    let [a, b] = [format!("A={}", python.display()), format!("B={long}")];
    let result = files(&[&a, &b], &[&workload], 5);
    let comparison = only(&result);
    assert!(comparison.left_out.is_empty(), "{:?}", result.outcome.remarks);
    assert_eq!(comparison.workloads[0].values, [5, 5]);
    assert!(!result.outcome.remarks.iter().any(|one| matches!(one.remark, Remark::UnstableOutput { .. })));
    let seeds = remarks(&result, "A").into_iter().find_map(|remark| match remark {
        Remark::Processes { seeds, .. } => Some(seeds.clone()),
        _ => None,
    });
    let mut seeds = seeds.unwrap();
    assert_eq!(seeds.len(), 5);
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 5, "each trial has its own seed");
}

/// Two runtimes that differ only by a mark, so that a workload can behave differently in them.
fn marked(bench: &Bench, python: &Path) -> [String; 2] {
    ["a", "b"].map(|name| {
        format!("{name}={}", bench.wrapper(&format!("run-{name}"), &format!("export PYTHONMARK={name};"), python))
    })
}

/// Text of a workload that does something only in the runtime `b`.
fn only_in_b(what: &str) -> String {
    format!("import os, sys, time\nif os.environ['PYTHONMARK'] == 'b':\n    {what}\nprint('done')\n")
}

#[test]
fn a_workload_that_fails_on_one_side_is_left_out_on_both() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    let [a, b] = marked(&bench, &python);
    let fine = bench.write("fine.py", "print('done')\n");
    let failing: Vec<String> = [
        ("crash.py", "sys.exit('out of luck')"),
        ("killed.py", "os.kill(os.getpid(), 9)"),
        ("missing.py", "import no_such_module"),
        ("wrong.py", "print('something else')"),
    ]
    .map(|(name, what)| bench.write(name, &only_in_b(what)))
    .into();
    let unstable = bench.write("unstable.py", "import time\nprint(time.time())\n");
    let noisy = bench.write("noisy.py", &only_in_b("sys.stderr.write('a warning\\n')"));
    let all: Vec<&str> = failing.iter().chain([&fine, &unstable, &noisy]).map(String::as_str).collect();
    let result = files(&[&a, &b], &all, 2);
    let comparison = only(&result);
    let measured: Vec<&str> = comparison.workloads.iter().map(|of| of.workload.as_str()).collect();
    assert_eq!(measured, ["fine", "noisy", "unstable"]);
    let left_out: Vec<(&str, &[String])> =
        comparison.left_out.iter().map(|of| (of.workload.as_str(), of.arms.as_slice())).collect();
    assert_eq!(left_out.len(), 4);
    assert!(left_out.iter().all(|(_, arms)| *arms == ["b"]), "{left_out:?}");
    let failures = remarks(&result, "b").into_iter().find_map(|remark| match remark {
        Remark::FailedWorkloads { failures } => Some(failures.clone()),
        _ => None,
    });
    let failures = failures.unwrap();
    let how = |name: &str| failures.iter().find(|failed| failed.workload == name).unwrap();
    assert_eq!(how("crash").how, "it ended with exit code 1: out of luck");
    assert_eq!(how("killed").how, "signal 9 ended it");
    assert_eq!(how("missing").kind, WorkloadFailure::Missing);
    assert_eq!(how("missing").how, "ModuleNotFoundError: No module named 'no_such_module'");
    assert_eq!(
        (how("wrong").kind, how("wrong").how.as_str()),
        (WorkloadFailure::Wrong, "it printed `something else`, and `a` printed `done`")
    );
    assert!(result.target_failed, "a crash makes the run fail");
    let printed = remarks(&result, "b").into_iter().find_map(|remark| match remark {
        Remark::PrintedErrors { printed } => Some(printed.clone()),
        _ => None,
    });
    let printed: Vec<String> = printed.unwrap().iter().map(|(workload, line)| format!("{workload}: {line}")).collect();
    let expected = ["crash: out of luck", "missing: Traceback (most recent call last):", "noisy: a warning"];
    assert_eq!(printed, expected);
    let is_unstable = |one: &ArmRemark| matches!(one.remark, Remark::UnstableOutput { .. });
    assert!(result.outcome.remarks.iter().any(is_unstable));
    // The geometric mean of a trial has the same workloads on both sides.
    assert!(result.outcome.points.iter().all(|point| point.metric != "suite" || point.n == 2));
}

#[test]
fn a_missing_module_alone_is_no_failure_of_the_run() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    let [a, b] = marked(&bench, &python);
    let fine = bench.write("fine.py", "print('done')\n");
    let missing = bench.write("missing.py", &only_in_b("import no_such_module"));
    assert!(!files(&[&a, &b], &[&fine, &missing], 1).target_failed);
    // A runtime without any workload fails, and the others are still compared.
    let result = files(&[&a, &b], &[&missing], 1);
    assert!(result.target_failed && result.outcome.suites.is_empty());
    let reason = format!("{:?}", result.outcome.left_out);
    assert!(reason.contains("`b` completed no workload; missing: ModuleNotFoundError"), "{reason}");
}

/// A workload that fails only in a later trial is left out of all trials, on both sides.
#[test]
fn a_later_failure_removes_the_workload() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    let [a, b] = marked(&bench, &python);
    let count = bench.path("count");
    let text = only_in_b(&format!(
        "open({0:?}, 'a').write('x'); sys.exit(os.path.getsize({0:?}) > 2)",
        count.display().to_string()
    ));
    let [fine, late] =
        [bench.write("fine.py", "print('done')\n"), bench.write("late.py", &text.replace("print('done')", ""))];
    let result = files(&[&a, &b], &[&fine, &late], 4);
    let comparison = only(&result);
    assert_eq!(comparison.workloads.len(), 1);
    assert_eq!(
        (comparison.left_out[0].workload.as_str(), comparison.left_out[0].reason),
        ("late", WorkloadLack::Failed)
    );
}

/// A process that reaches the limit has a time above it, and the mean is known from one side only.
#[test]
fn a_time_at_the_limit_enters_the_mean_as_an_interval() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    let [a, b] = marked(&bench, &python);
    let fine = bench.write("fine.py", "print('done')\n");
    let endless = bench.write("endless.py", &only_in_b("time.sleep(3600)"));
    let list = format!("{fine},{endless}");
    let arms = arms(PYTHON, &[&a, &b], &[("workloads", &list), ("limit_s", "20")]).unwrap();
    // The limit must be long enough for a busy machine to start a Python, so a single trial has to do.
    let result = measured(arms, 1).unwrap();
    let comparison = only(&result);
    let mean = comparison.mean.unwrap();
    assert_eq!((mean.ratio.value(), mean.ratio.low), (None, None));
    assert!(mean.ratio.high.is_some());
    let of_endless = comparison.workloads.iter().find(|of| of.workload == "endless").unwrap();
    assert_eq!((of_endless.censored, of_endless.ratio.low), (1, None));
    assert!(!result.target_failed);
}

#[test]
fn copies_of_a_build_do_not_count_as_builds() {
    let Some(python) = python() else { return };
    let bench = Bench::new();
    let wrappers = ["x", "y", "z"].map(|name| format!("3.x={}", bench.wrapper(name, "", &python)));
    let workload = bench.write("w.py", "pass\n");
    let result = files(&[&wrappers[0], &wrappers[1], &wrappers[2]], &[&workload], 2);
    let [group] = &result.outcome.suites[0].builds[..] else { panic!("{:?}", result.outcome.suites[0].builds) };
    assert_eq!((group.builds.len(), group.copies.len()), (1, 2));
    assert_eq!((group.like_these, group.two_builds, group.range), (None, None, None));
    assert!(result.outcome.suites[0].comparisons.iter().all(|of| of.is_same_build));
}

#[test]
fn broken_runtimes_and_levels_are_refused_with_a_way_out() {
    let bench = Bench::new();
    let text = bench.write("text", "no program\n");
    let folder = bench.path("").display().to_string();
    let refused = |levels: &[(&str, &str)], runtimes: &[&str]| arms(PYTHON, runtimes, levels).unwrap_err();
    assert!(refused(&[], &["/no/such/python"]).starts_with("there is no file `/no/such/python`; give the path"));
    assert!(refused(&[], &[&text]).ends_with("cannot be executed; give the path of a program that runs files"));
    assert!(refused(&[], &[&folder]).contains("cannot be executed"));
    assert!(refused(&[], &["no-such-runtime"]).contains("neither on PATH nor among the runtimes"));
    let Some(python) = python() else { return };
    let python = python.display().to_string();
    assert!(refused(&[], &[&python]).starts_with("a comparison needs two runtimes"));
    let workloads = |list: &str| refused(&[("workloads", list)], &[&python]);
    assert!(workloads("nonsense").starts_with("there is no workload `nonsense`; give `own`, `pyperformance`, a file"));
    assert!(workloads("./no-such-file.py").contains("name the file of a workload"));
    assert!(workloads(&folder).contains("is not a file"));
    let select = |list: &str| {
        let other = format!("B={python}");
        let arms = arms(PYTHON, &[&python, &other], &[("workloads", list)]).unwrap();
        super::super::workloads::select(&arms[0], named(PYTHON)).unwrap_err()
    };
    assert!(select("calls,calls").starts_with("the workload `calls` is listed twice"));
    assert!(select(&format!("calls,{text}")).contains("measure them separately"));
}
