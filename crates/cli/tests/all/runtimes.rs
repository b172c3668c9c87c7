//! The experiment `runtimes` from the command line: the faults of public reports, as the output describes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{Ran, command, ran, write_script};

/// A folder with workloads and runtimes.
struct Stand {
    folder: tempfile::TempDir,
    /// The Python that the tests measure.
    python: PathBuf,
}

impl Stand {
    /// Returns `None` if this machine has no Python.
    fn new() -> Option<Stand> {
        let script = "import sys; print(sys.executable)";
        let found = Command::new("python3").args(["-c", script]).output().ok().filter(|output| output.status.success());
        let Some(found) = found else {
            ascertain_sys::testing::left_out("Python 3 is not installed");
            return None;
        };
        let python = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim());
        Some(Stand { folder: tempfile::tempdir().unwrap(), python })
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Compares the runtimes `A` and `B` over workloads in two trials.
    fn run(&self, [a, b]: [&Path; 2], workloads: &str, more: &[&str]) -> Ran {
        let runtimes = format!("runtime=A={},B={}", a.display(), b.display());
        let arguments = ["run", "runtimes", "--trials", "2", "--max-time", "1h", "--no-evidence", "--at", &runtimes];
        let at = ["--at", workloads, "--at", "limit_s=600"];
        let mut command = command(self.folder.path(), &[&arguments[..], &at, more].concat());
        let ran = ran(command.env("PYTHONHASHSEED", "1").env("PYTHONMARK", "1").output().unwrap());
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
        ran
    }
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// pyenv/pyenv#2802: the `python` that is found first is a script that starts many processes.
#[test]
fn case_1_a_shim_is_named_with_the_time_of_a_start() {
    let Some(stand) = Stand::new() else { return };
    let shim = stand.folder.path().join("shim");
    let python = stand.python.display();
    write_script(&shim, &format!("#!/bin/sh\nfor i in 1 2 3; do /bin/true; done\nexec '{python}' \"$@\"\n"));
    stand.write("w.py", "pass\n");
    let text = words(&stand.run([&shim, &stand.python], "workloads=./w.py", &[]).stdout);
    let named = format!("`{}` starts another program, `{python}`: an empty program takes ", shim.display());
    assert!(text.contains(&named) && text.contains("the program was measured, and not the wrapper"), "{text}");
    assert!(text.contains("`B` is") && text.contains("times as fast as `A`, which is the same build"), "{text}");
}

/// A wrapper may also unset variables, and give the program its own name. The program is measured in the same way.
#[test]
fn case_1_a_wrapper_that_unsets_a_variable_and_keeps_its_name_is_followed() {
    let Some(stand) = Stand::new() else { return };
    if !Path::new("/bin/bash").exists() {
        return ascertain_sys::testing::left_out("Bash is not installed");
    }
    let shim = stand.folder.path().join("shim");
    let python = stand.python.display();
    write_script(&shim, &format!("#!/bin/bash\nunset PYTHONMARK\nexec -a \"$0\" '{python}' \"$@\"\n"));
    stand.write("unset.py", "import os\nassert 'PYTHONMARK' not in os.environ\n");
    let text = words(&stand.run([&shim, &shim], "workloads=./unset.py", &[]).stdout);
    assert!(text.contains("the program was measured, and not the wrapper"), "{text}");
    assert!(text.contains("what the wrapper changes: PYTHONMARK (unset)"), "{text}");
    assert!(!text.contains("Left out") && text.contains("`B` is"), "{text}");
}

/// astral-sh/uv#6426: a `.pth` file imports modules at every start of one environment.
#[test]
fn case_2_a_comparison_of_environments_is_named_as_such() {
    let Some(stand) = Stand::new() else { return };
    let environment = |name: &str| {
        let folder = stand.folder.path().join(name);
        let made = Command::new(&stand.python).args(["-m", "venv", "--without-pip"]).arg(&folder).output().unwrap();
        made.status.success().then(|| folder.join("bin/python"))
    };
    let [Some(a), Some(b)] = ["a", "b"].map(environment) else {
        return ascertain_sys::testing::left_out("this Python cannot make virtual environments");
    };
    let script = "import site; print(site.getsitepackages()[0])";
    let packages = Command::new(&b).args(["-c", script]).output().unwrap().stdout;
    let packages = PathBuf::from(String::from_utf8(packages).unwrap().trim());
    fs::write(packages.join("zz.pth"), "import contextlib, email.parser\n").unwrap();
    stand.write("w1.py", "pass\n");
    stand.write("w2.py", "import contextlib, email.parser\n");
    let text = words(&stand.run([&a, &b], "workloads=./w1.py,./w2.py", &[]).stdout);
    assert!(text.contains("These run on one side only: zz.pth at each start of `B`."), "{text}");
    assert!(text.contains("So environments are compared, and not only runtimes."), "{text}");
}

/// python/mypy#18285: the time of a workload depends on the hash seed alone.
#[test]
fn case_4_seeds_are_listed_and_the_seed_of_the_caller_is_overruled() {
    let Some(stand) = Stand::new() else { return };
    // The outputs of both sides are compared, so a seed of one side alone would be a wrong answer.
    stand.write("w.py", "print(hash('k'))\n");
    let both = [stand.python.as_path(), &stand.python];
    let text = words(&stand.run(both, "workloads=./w.py", &[]).stdout);
    assert!(text.contains("PYTHONHASHSEED of your environment was overruled"), "{text}");
    assert!(text.contains("one hash seed for all runtimes (2 seeds in the JSON)"), "{text}");
    let json = stand.run(both, "workloads=./w.py", &["--format", "json"]).json();
    assert_eq!(json["suites"][0]["comparisons"][0]["left_out"], Value::Null, "{json}");
    let seeds = json["remarks"].as_array().unwrap().iter().find_map(seeds);
    let seeds = seeds.unwrap_or_else(|| panic!("{json}"));
    assert!(seeds.len() == 2 && seeds[0] != seeds[1] && !seeds.contains(&1), "{seeds:?}");
}

/// Returns the hash seeds of a remark, if it has them.
fn seeds(remark: &Value) -> Option<Vec<u64>> {
    match remark {
        Value::Object(of) => of.iter().find_map(|(key, value)| match (key.as_str(), value) {
            ("seeds", Value::Array(seeds)) => Some(seeds.iter().filter_map(Value::as_u64).collect()),
            (_, value) => seeds(value),
        }),
        _ => None,
    }
}
