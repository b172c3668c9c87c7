//! Tests of `ascertain cost`, which prices work on several types of machine.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Ran, ascertain, runs};

fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/instances");
    folder.join(name).to_str().unwrap().to_string()
}

/// Runs `ascertain cost` in a folder with these files.
struct Stand {
    folder: tempfile::TempDir,
}

impl Stand {
    fn new(files: &[(&str, &str)]) -> Stand {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Stand { folder }
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        ascertain(self.folder.path(), arguments)
    }

    fn cost(&self, arguments: &[&str]) -> Ran {
        self.run(&[&["cost"], arguments].concat())
    }

    fn refused(&self, arguments: &[&str]) -> String {
        let ran = self.cost(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
        ran.stderr
    }

    /// Records a run of a command under a label, with a number of page faults that the command determines.
    fn record(&self, label: &str, commands: &[&str]) {
        let measure = ["compare", "--max-trials", "8", "--label", label, "-q"];
        let ran = self.run(&[&measure[..], commands].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }

    fn runs(&self) -> Vec<PathBuf> {
        runs(self.folder.path())
    }
}

const PRICES: &str = "name,vcpu,cores,usd_hour\nx.2xl,8,4,0.34\ny.2xl,8,8,0.43\n";
const TIMES: &str = "name,processes,seconds\nx.2xl,1,1.00\nx.2xl,8,1.90\ny.2xl,1,1.00\ny.2xl,8,1.05\n";

/// Public report vantage-sh/ec2instances.info#906: eight CPUs are eight cores on one type, and four on the other.
#[test]
fn case_11_a_cpu_is_a_core_or_half_a_core() {
    let one = TIMES.lines().filter(|line| !line.contains(",8,")).collect::<Vec<_>>().join("\n");
    let stand = Stand::new(&[("prices.csv", PRICES), ("times.csv", TIMES), ("one.csv", &one)]);
    let ran = stand.cost(&["prices.csv", "times.csv", "--runs", "1000000", "--full-load"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("22.43") && text.contains("15.68"), "{text}");
    assert!(text.starts_with(
        "`y.2xl` is cheaper according to these figures, at a price 26 % above that of `x.2xl`: a unit of work costs \
         30 % less; there is no interval."), "{text}");
    assert!(text.contains("`x.2xl` 0.3400 8 4") || text.contains("x.2xl 0.3400 8 4"), "cores are beside CPUs: {text}");
    assert!(text.contains("a CPU is only a part of a core"), "{text}");
    let ran = stand.cost(&["prices.csv", "one.csv", "--runs", "1000000", "--full-load"]);
    let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("No figure under full load is known, so there is no cost"), "{text}");
    assert!(text.contains("x.2xl 0.3400 8 4") && text.contains("y.2xl 0.4300 8 8"), "{text}");
    assert!(!text.contains("22.43") && !text.contains("23.61"), "{text}");
}

#[test]
fn the_question_of_the_source_has_an_answer() {
    let stand = Stand::new(&[]);
    let (figures, prices, claims) = (example("c6g-c7g.csv"), example("prices.csv"), example("claims.toml"));
    let asked = ["--figures", &figures, "--prices", &prices, "--claims", &claims];
    let text = stand.cost(&asked).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let answer = "`c7g.16xlarge` is worth its price, 6.6 % above that of `c6g.16xlarge`: a unit of work costs 21 % \
                  less (28 to 13 % less for workloads like these). But 4 of 20 workloads cost more: `stress-ng cpu, a \
                  worker per CPU` (1.008 times as fast), `passmark encryption` (1.022), `openssl AES-256-CBC` (1.032) \
                  and `openssl sha256` (1.049).";
    assert!(text.starts_with(answer), "{text}");
    for expected in
        ["Not exact: ", "Left out 247 figures of the file", "CC BY-SA 4.0", "over 4 years ago", "these machines only"]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let json = stand.cost(&[&asked[..], &["--format", "json"]].concat()).json();
    assert_eq!(json["schema"], "ascertain.cost/1");
    let comparison = &json["comparisons"][0];
    assert!((comparison["break_even"].as_f64().unwrap() - 1.0662).abs() < 5e-5, "{comparison}");
    assert_eq!(comparison["reversing"].as_array().unwrap().len(), 4);
    let verdict = |id: &str| {
        json["claims"].as_array().unwrap().iter().find(|claim| claim["id"] == id).unwrap()["verdict"].clone()
    };
    assert_eq!(verdict("c7g.worth-6.6-percent"), "holds");
    assert_eq!(verdict("c7g.general-25-percent"), "undecided");
    assert_eq!(verdict("c7g.floating-point-2-times"), "undecided");
    assert_eq!(verdict("c7g.memory-50-percent"), "undecided");
    // One thread of 64 CPUs has no part in the answer about the price.
    let rows = comparison["workloads"].as_array().unwrap();
    assert_eq!(rows.iter().filter(|row| row["load"] == "part" && row["is_in_mean"] == true).count(), 0);
    assert_eq!(rows.len(), 33);
}

#[test]
fn every_format_has_every_workload() {
    let stand = Stand::new(&[("p.csv", PRICES), ("t.csv", TIMES)]);
    let csv = stand.cost(&["--prices", "p.csv", "--figures", "t.csv", "--format", "csv"]).stdout;
    assert_eq!(csv.lines().count(), 3, "{csv}");
    let fields = csv.lines().map(|line| line.split(',').count()).collect::<Vec<_>>();
    assert!(fields.iter().all(|count| *count == fields[0]), "{csv}");
    let markdown = stand.cost(&["--prices", "p.csv", "--figures", "t.csv", "--format", "markdown"]).stdout;
    assert!(markdown.contains("| `x.2xl` | 0.3400 | 8 | 4 |"), "{markdown}");
    let quiet = stand.cost(&["--prices", "p.csv", "--figures", "t.csv", "-q"]);
    assert_eq!((quiet.code, quiet.stdout.as_str()), (Some(0), ""));
}

/// Figures become runs, which `cost`, `history` and `report` read like any other, and which say where they come from.
#[test]
fn figures_of_others_become_evidence() {
    let stand = Stand::new(&[]);
    let (figures, prices) = (example("c6g-c7g.csv"), example("prices.csv"));
    let types = ["--type", "c6g.16xlarge", "--type", "c7g.16xlarge"];
    let ran = stand.cost(&[&["--figures", &figures][..], &types].concat());
    assert_eq!((ran.code, stand.runs().len()), (Some(0), 2), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("Recorded as other people's figures"), "{}", ran.stdout);
    let direct = stand.cost(&["--figures", &figures, "--prices", &prices, "--format", "json"]).json();
    let through = stand.cost(&["c6g.16xlarge", "c7g.16xlarge", "--prices", &prices, "--format", "json"]);
    let through = through.json();
    for key in ["comparisons", "offers"] {
        assert_eq!(direct[key], through[key], "the way through evidence changes nothing");
    }
    let source = |json: &Value| -> Vec<Value> {
        let findings = json["findings"].as_array().unwrap().iter();
        findings.filter(|finding| finding["code"] == "recorded_by_others").cloned().collect()
    };
    assert_eq!(source(&direct), source(&through));
    let history = stand.run(&["history"]);
    assert!(history.stdout.contains("c7g.16xlarge") && history.stdout.contains("finished"), "{}", history.stdout);
    let table = stand.run(&["report", "c7g.16xlarge", "--format", "table"]);
    let text = table.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains(
            "other people recorded these figures on `c7g.16xlarge` (SpareCores/sc-inspector-data, CC BY-SA 4.0)"
        ),
        "{text}"
    );
    assert_eq!(stand.run(&["report", "c7g.16xlarge"]).code, Some(0));
    let run = &stand.runs()[0];
    let rows = crate::common::restored_lines(run);
    assert!(rows.lines().all(|line| !line.contains("\"worker\":\"\"")), "each row names its machine");
    let continued = stand.run(&["continue", "c7g.16xlarge"]);
    assert_eq!(continued.code, Some(2), "{}", continued.stderr);
}

/// Two records of a figure are one figure of one machine, and not a sample of two machines.
#[test]
fn a_figure_counts_once_for_its_machine() {
    let stand = Stand::new(&[("p.csv", PRICES), ("t.csv", TIMES)]);
    for count in [2, 4] {
        assert_eq!(stand.cost(&["t.csv"]).code, Some(0));
        assert_eq!(stand.runs().len(), count);
    }
    let runs = stand.runs();
    let runs: Vec<&str> = runs.iter().map(|run| run.to_str().unwrap()).collect();
    let stderr = stand.refused(&[&runs[..], &["--prices", "p.csv"]].concat());
    assert!(stderr.contains("have a figure of `the workload` on the same machine (without a name)"), "{stderr}");
}

const HERE: &str = "type,price,currency,per,cpus,date\na,1,USD,hour,CPUS,2026-11-01\nb,1.1,USD,hour,CPUS,2026-11-01\n";

fn prices_here() -> String {
    let cpus = ascertain_sys::machine::describe().cpus_online;
    HERE.replace("CPUS", &cpus.to_string())
}

#[test]
fn runs_of_two_machines_are_priced() {
    let stand = Stand::new(&[("p.csv", &prices_here())]);
    stand.record("one", &["true", "env"]);
    stand.record("two", &["true", "env"]);
    let typed = ["one", "two", "--prices", "p.csv", "--type", "one=a", "--type", "two=b"];
    let ran = stand.cost(&[&typed[..], &["--format", "json"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let json = ran.json();
    let rows = json["comparisons"][0]["workloads"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["workload"].as_str().unwrap()).collect::<Vec<_>>(), ["true", "env"]);
    let codes: Vec<&str> =
        json["findings"].as_array().unwrap().iter().map(|finding| finding["code"].as_str().unwrap()).collect();
    for code in ["these_machines_only", "look_alike", "one_thread_assumed", "few_workloads"] {
        assert!(codes.contains(&code), "{code}: {codes:?}");
    }
    // One thread is not priced as a whole machine; as many threads as CPUs are.
    let cpus = json["offers"][0]["cpus"].as_u64().unwrap();
    let full = stand.cost(&[&typed[..], &["--threads", &cpus.to_string(), "--format", "json"]].concat()).json();
    let cost = |json: &Value| json["comparisons"][0]["workloads"][0]["reference_cost"].as_f64().unwrap();
    let cores = json["offers"][0]["cores"].as_u64().unwrap_or(cpus);
    let share = cost(&json) / cost(&full);
    assert!((share - (1.0 / cores as f64).min(1.0)).abs() < 1e-9, "{share}");
    // Two runs of each type are a sample of their types.
    stand.record("three", &["true", "env"]);
    stand.record("four", &["true", "env"]);
    let more = ["three", "four", "--type", "three=a", "--type", "four=b", "--format", "json"];
    let json = stand.cost(&[&typed[..], &more].concat()).json();
    assert_eq!(json["offers"][0]["machines"], 2);
    assert!(json["comparisons"][0]["workloads"][0]["degrees"].is_number(), "{json}");
}

#[test]
fn runs_that_did_not_measure_the_same_are_refused() {
    let stand = Stand::new(&[("p.csv", &prices_here())]);
    stand.record("one", &["true", "env"]);
    stand.record("two", &["true", "env -i"]);
    let typed = ["one", "two", "--prices", "p.csv", "--type", "one=a", "--type", "two=b"];
    let error = stand.refused(&typed);
    assert!(error.contains("did not measure the same thing: command `env` is only in"), "{error}");
    assert!(error.contains("compare `env -i` is only in") && error.contains("same command line"), "{error}");
    let ran =
        stand.run(&["compare", "--max-trials", "8", "--label", "three", "-q", "--prepare", "true", "true", "env"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let error = stand.refused(&["one", "three", "--prices", "p.csv", "--type", "one=a", "--type", "three=b"]);
    assert!(error.contains("command `true`: prepare null and \"true\""), "{error}");
}

/// Runs of `runtimes` are compared only if they completed the same workloads with the same versions.
#[test]
fn runs_of_runtimes_are_priced_by_workload_and_checked() {
    let script = "import sys; print(sys.executable)";
    let found = std::process::Command::new("python3").args(["-c", script]).output().ok();
    let Some(found) = found.filter(|output| output.status.success()) else {
        return ascertain_sys::testing::left_out("Python 3 is not installed");
    };
    let python = String::from_utf8(found.stdout).unwrap().trim().to_string();
    let work = "import os\nassert not os.path.exists('FAIL')\n";
    let stand = Stand::new(&[("p.csv", &prices_here()), ("w1.py", "pass\n"), ("w2.py", "pass\n"), ("w3.py", "pass\n")]);
    let marker = stand.folder.path().join("marker");
    let failing = work.replace("FAIL", &marker.display().to_string());
    fs::write(stand.folder.path().join("w4.py"), &failing).unwrap();
    let (runtimes, workloads) = (format!("runtime=A={python},B={python}"), "workloads=./w1.py,./w2.py,./w3.py,./w4.py");
    let record = |label: &str| {
        let measure = ["run", "runtimes", "--trials", "2", "--max-time", "1h", "--label", label, "-q"];
        stand.run(&[&measure[..], &["--at", &runtimes, "--at", workloads, "--at", "limit_s=600"]].concat());
    };
    let cost = |label: &str| {
        let typed = format!("{label}=b");
        ["one", label, "--prices", "p.csv", "--type", "one=a", "--type", &typed, "--format", "json"].map(String::from)
    };
    let run = |label: &str| stand.cost(&cost(label).each_ref().map(String::as_str));
    record("one");
    record("two");
    let ran = run("two");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let json = ran.json();
    let rows = json["comparisons"][0]["workloads"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["workload"].as_str().unwrap()).collect();
    // Two runtimes are not two workloads.
    assert_eq!(names, ["w1", "w2", "w3", "w4"], "{json}");
    fs::write(&marker, "").unwrap();
    record("three");
    let error = stand.refused(&cost("three").each_ref().map(String::as_str));
    assert!(error.contains("did not measure the same thing: workload `w4` is only in"), "{error}");
    fs::remove_file(&marker).unwrap();
    fs::write(stand.folder.path().join("w1.py"), "x = 1\n").unwrap();
    record("four");
    let error = stand.refused(&cost("four").each_ref().map(String::as_str));
    assert!(error.contains("did not measure the same thing: files of `A="), "{error}");
}

#[test]
fn mixed_up_runs_are_refused() {
    let stand = Stand::new(&[("p.csv", &prices_here()), ("wide.csv", &HERE.replace("CPUS", "4096"))]);
    stand.record("one", &["true"]);
    stand.record("two", &["true"]);
    let refused = |arguments: &[&str], expected: &str| {
        let error = stand.refused(arguments);
        assert!(error.contains(expected), "{expected}: {error}");
    };
    refused(&["one", "two", "--prices", "p.csv"], "the type of the machine of run");
    refused(&["one", "two", "--prices", "p.csv"], "--type ");
    refused(&["one", "one", "--prices", "p.csv", "--type", "one=a"], "is given twice");
    refused(
        &["one", "two", "--prices", "wide.csv", "--type", "one=a", "--type", "two=b"],
        "4096 CPUs, but the measured machine",
    );
    refused(&["one", "two", "--prices", "p.csv", "--type", "a"], "write --type RUN=a");
    refused(&["one", "two", "--prices", "p.csv", "--type", "tow=a"], "the run `tow`, which is not among the runs");
    refused(&["one", "--prices", "p.csv", "--type", "one=a", "--type", "one=b"], "two types, `a` and `b`");
    refused(
        &["one", "two", "--prices", "p.csv", "--type", "one=a", "--type", "two=c"],
        "has no price of `c`; add a row",
    );
    refused(&["one", "two"], "add --prices FILE");
    refused(&[], "add --prices FILE");
    refused(&["--prices", "p.csv"], "nothing to price is given");
    refused(&["--prices", "nowhere.csv", "--figures", &example("c6g-c7g.csv")], "nowhere.csv can't be opened");
    refused(&["p.csv", "--prices", "p.csv"], "are both files for --prices");
    let metric = ["one", "two", "--prices", "p.csv", "--type", "one=a", "--type", "two=b", "--metric"];
    refused(&[&metric[..], &["memory_peak"]].concat(), "`memory_peak` is neither a time nor a rate");
    refused(&[&metric[..], &["speed"]].concat(), "has no metric `speed`; it has wall");
    // Another processor in the evidence of one of two runs of a type.
    let other = &stand.runs()[1].join("run.json");
    let text = fs::read_to_string(other).unwrap();
    let model = ascertain_sys::machine::describe().cpu_model;
    fs::write(other, text.replace(&model, "Another processor")).unwrap();
    refused(
        &["one", "two", "--prices", "p.csv", "--type", "one=a", "--type", "two=a"],
        "are not from machines of one type, `a`",
    );
}

#[test]
fn regions_are_chosen_by_an_option() {
    let prices = "type,region,price,currency,per,cpus,date\na,r,1,USD,hour,8,2026-11-01\na,s,2,USD,hour,8,2026-11-01\n\
                  b,r,1.1,USD,hour,8,2026-11-01\nb,s,2.2,USD,hour,8,2026-11-01\n";
    let times = TIMES.replace("x.2xl", "a").replace("y.2xl", "b");
    let stand = Stand::new(&[("p.csv", prices), ("t.csv", &times)]);
    let error = stand.refused(&["p.csv", "t.csv"]);
    assert!(error.contains("choose one region (--region r)"), "{error}");
    let json = stand.cost(&["p.csv", "t.csv", "--region", "s", "--format", "json"]).json();
    assert_eq!(json["offers"].as_array().unwrap().len(), 2);
    assert_eq!(json["offers"][0]["price_per_hour"], 2.0);
}
