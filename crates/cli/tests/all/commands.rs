//! Tests that each subcommand does its job on real programs. `compare` and `continue` have files of their own.

use std::collections::BTreeSet;
use std::fs::File;
use std::net::TcpListener;
use std::time::Duration;

use ascertain_netlab::store::Store;
use ascertain_stats::Tally;
use serde_json::Value;

use crate::common::{ascertain, command, ran, runs};

#[test]
fn slo_holds_is_refuted_or_undecided() {
    let state = tempfile::tempdir().unwrap();
    let slo = |arguments: &[&str]| {
        ascertain(state.path(), &[&["slo", "--no-evidence", "--max-time", "10min"], arguments].concat())
    };
    let holds = slo(&["--at-least", "80%", "--within", "1h", "--", "true"]);
    assert_eq!(holds.code, Some(0), "{}", holds.stderr);
    assert!(holds.stdout.starts_with("Holds"), "{}", holds.stdout);
    assert_eq!(slo(&["--at-least", "80%", "--", "false"]).code, Some(1));
    assert_eq!(slo(&["--at-least", "80%", "--require", "exit == 1", "--", "false"]).code, Some(0));
    assert_eq!(slo(&["--at-least", "99.99%", "--max-trials", "10", "--", "true"]).code, Some(3));
    assert_eq!(slo(&["--at-least", "80%", "--require", "memory_peak <= 1 B", "--", "true"]).code, Some(1));
}

/// If only the memory is above its limit, the message names the condition on memory, but not the one on time.
#[test]
fn slo_names_the_condition_that_failed() {
    let state = tempfile::tempdir().unwrap();
    let require = ["--require", "memory_peak <= 1 B", "--within", "1h"];
    let slo = |more: &[&str]| {
        let arguments = [&["slo", "--no-evidence", "--max-time", "10min", "--at-least", "80%"], &require[..], more];
        ascertain(state.path(), &arguments.concat())
    };
    let ran = slo(&["--format", "json", "--", "true"]);
    let claim = &ran.json()["claims"][0];
    let trials = claim["trials"].as_u64().unwrap();
    let broken = serde_json::json!({ "condition": "memory_peak <= 1 B", "metric": "memory_peak", "trials": trials });
    assert_eq!(claim["broken"], serde_json::json!([broken]));
    let said = slo(&["--", "true"]).stdout.replace('\n', " ");
    assert!(
        said.contains("Failed condition: `memory_peak <= 1 B` in ") && !said.contains("`wall <= 60 min` in"),
        "{said}"
    );
    let said = slo(&["--", "false"]).stdout.replace('\n', " ");
    assert!(
        said.contains("Failed conditions: `exit == 0` in ") && said.contains(", `memory_peak <= 1 B` in "),
        "{said}"
    );
    assert!(said.contains("`--show-output` shows the output of the command"), "{said}");
    let heard = slo(&["--show-output", "--", "false"]).stdout;
    assert!(!heard.contains("--show-output"), "{heard}");
    let told = slo(&["--", "sh", "-c", "echo no host >&2; exit 6"]).stdout.replace('\n', " ");
    assert!(told.contains("its first failure printed `no host`.") && !told.contains("--show-output"), "{told}");
    let one =
        ascertain(state.path(), &["slo", "--no-evidence", "--max-time", "10min", "--at-least", "80%", "--", "false"])
            .stdout;
    assert!(one.contains("Refuted: `exit == 0`") && !one.contains("Failed condition"), "{one}");
    assert!(!one.contains("median"), "of an exit code there is none: {one}");
}

#[test]
fn slo_reports_the_median_time() {
    let state = tempfile::tempdir().unwrap();
    let slo = ["slo", "--no-evidence", "--max-time", "10min", "--at-least", "80%", "--within", "1h", "--format"];
    let ran = ascertain(state.path(), &[&slo[..], &["json", "--", "true"]].concat()).json();
    let wall = ran["points"].as_array().unwrap().iter().find(|point| point["metric"] == "wall").unwrap();
    assert!(ran["claims"][0]["median"].is_number());
    assert_eq!(ran["claims"][0]["median"], wall["median"]);
    let said = ascertain(state.path(), &[&slo[..], &["table", "--", "true"]].concat()).stdout.replace('\n', " ");
    assert!(said.contains("Its median time was "), "{said}");
}

#[test]
fn recorded_requests_are_taken_in_whole_sets() {
    let state = tempfile::tempdir().unwrap();
    std::fs::write(state.path().join("requests"), "a b\n\nc\n'd'\n").unwrap();
    let arguments = [
        "slo",
        "--at-least",
        "60%",
        "--max-time",
        "10min",
        "--shell",
        "--recorded",
        "requests",
        "--format",
        "json",
        "--",
        "echo {request} >> log",
    ];
    let json = ascertain(state.path(), &arguments).json();
    let trials = json["claims"][0]["trials"].as_u64().unwrap();
    assert_eq!((trials % 3, json["claims"][0]["verdict"].as_str()), (0, Some("holds")));
    let log = std::fs::read_to_string(state.path().join("log")).unwrap();
    let count = |line: &str| log.lines().filter(|logged| *logged == line).count() as u64;
    assert_eq!((count("a b"), count("c"), count("'d'")), (trials / 3, trials / 3, trials / 3));
}

#[test]
fn check_judges_a_file_and_gates() {
    let state = tempfile::tempdir().unwrap();
    std::fs::write(
        state.path().join("claims.toml"),
        "[[claim]]\nid = \"works\"\ncommand = \"true\"\npredicate = \"exit == 0 and wall <= 1 h\"\nrate = 0.6\n\
         [[claim]]\nid = \"smaller\"\ncandidate = \"true\"\n\
         baseline = \"dd if=/dev/zero of=/dev/null bs=50000000 count=1\"\n\
         metric = \"memory_peak\"\nat_least = 2.0\n",
    )
    .unwrap();
    let ran = ascertain(state.path(), &["check", "claims.toml", "--max-time", "10min", "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let json = ran.json();
    assert_eq!(
        (json["claims"][0]["verdict"].as_str(), json["claims"][1]["verdict"].as_str()),
        (Some("holds"), Some("holds"))
    );
    assert!(runs(state.path()).pop().unwrap().join("report.html").is_file());
    let text = "[[claim]]\nid = \"x\"\ncommand = \"false\"\npredicate = \"wall <= 1 h\"\nrate = 0.6\n";
    std::fs::write(state.path().join("claims.toml"), text).unwrap();
    assert_eq!(ascertain(state.path(), &["check", "claims.toml"]).code, Some(1));
    assert_eq!(ascertain(state.path(), &["check", "claims.toml", "--fail-on", "nothing"]).code, Some(0));
}

#[test]
fn run_prints_tables_and_judges_the_shipped_claims() {
    let state = tempfile::tempdir().unwrap();
    let mut arguments = vec!["run", "fill-rate", "--trials", "3"];
    arguments.extend(["--seed", "1", "--max-time", "10min", "--export-github", "summary.md"]);
    let ran = ascertain(state.path(), &arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("thrown") && ran.stdout.contains("fill_rate"), "{}", ran.stdout);
    assert!(ran.stdout.contains("Holds: ") && ran.stdout.contains("fill-rate.almost-98"), "{}", ran.stdout);
    let summary = std::fs::read_to_string(state.path().join("summary.md")).unwrap();
    let report = ascertain(state.path(), &["report", "--output", "-"]).stdout;
    for (text, row) in
        [(&ran.stdout, "drawn "), (&summary, "| `drawn` |"), (&report, "<tr><th scope=\"row\"><code>drawn</code>")]
    {
        let rows = text.lines().filter(|line| line.starts_with(row)).count();
        assert_eq!(rows, 1, "a claim adds two more, which were not asked for: {text}");
    }
}

/// The guide documents every key of each JSON schema.
#[test]
fn the_guide_has_the_keys_of_each_schema() {
    fn keys(value: &Value, depth: usize, known: &mut Vec<String>) {
        match value {
            Value::Object(map) if depth > 0 => map.iter().for_each(|(key, value)| {
                known.push(key.clone());
                let explained_elsewhere = ["accepts", "asked", "at", "cpu_times", "machine", "reduce"];
                let is_explained_elsewhere = explained_elsewhere.contains(&key.as_str()) || key.ends_with("_codes");
                keys(value, if is_explained_elsewhere { 0 } else { depth - 1 }, known);
            }),
            Value::Array(all) => all.iter().for_each(|value| keys(value, depth, known)),
            _ => {}
        }
    }
    let reference =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/json.md")).unwrap();
    let state = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(state.path().join(name), text).unwrap();
    write("a.csv", "1\n2\n3\n");
    write("b.csv", "2\n3\n4\n");
    File::create(state.path().join("file")).unwrap().set_len(40 << 20).unwrap();
    // A latency above the limit of 2 ms makes the transfer plan how many connections to use.
    let store = Store { latency: Duration::from_millis(5), ..Store::s3() };
    let store = store.start(TcpListener::bind("127.0.0.1:0").unwrap(), None).unwrap();
    let judge: &[&str] = &["judge", "3972/4000", "--at-least", "98%"];
    for (arguments, schema, depth) in [
        (judge, "ascertain.judgement/1", 1),
        (&["compare", "true", "sleep 0.001", "-r", "2", "--no-evidence"], "ascertain.run/1", 2),
        (&["slo", "--at-least", "80%", "--within", "10s", "--no-evidence", "--", "false"], "ascertain.run/1", 2),
        (&["list"], "ascertain.list/1", 3),
        (&["explain", "sum"], "ascertain.explanation/1", 3),
        (&["explain", "sum.kahan-avx512-8x-naive"], "ascertain.explanation/1", 5),
        (&["explain", "cache-race.network-wins-1-percent"], "ascertain.explanation/1", 5),
        (&["power", "--at-least", "90%"], "ascertain.power/1", 2),
        (&["permute", "a.csv", "b.csv"], "ascertain.permute/1", 2),
        (&["put", "file", "s3://bucket/file", "--endpoint-url", &store.url()], "ascertain.transfer/1", 4),
    ] {
        let mut command = command(state.path(), &[&arguments[..1], &["--format", "json"], &arguments[1..]].concat());
        let (account, secret) = (&store.store().account, &store.store().secret);
        command.env("AWS_ACCESS_KEY_ID", account).env("AWS_SECRET_ACCESS_KEY", secret);
        let json = ran(command.output().unwrap()).json();
        assert_eq!(json["schema"], schema);
        let (_, section) = reference.split_once(&format!("\n## {schema}\n")).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let names = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let names: BTreeSet<&str> = names.flat_map(|name| name.split(['.', '[', ']'])).collect();
        let mut known = Vec::new();
        keys(&json, depth, &mut known);
        for key in known.iter().filter(|key| *key != "schema") {
            assert!(names.contains(&**key), "docs/reference/json.md lacks `{key}` of {schema}");
        }
        if schema == "ascertain.transfer/1" {
            assert!(json["files"][0]["plan"].is_object() && json["files"][0]["requests"].is_object(), "{json}");
        }
    }
}

#[test]
fn list_and_explain_show_the_experiments() {
    let state = tempfile::tempdir().unwrap();
    let list = ascertain(state.path(), &["list"]);
    assert!(
        list.stdout.starts_with("Numbers\n  sum: Adding up floating-point numbers: speed and error ("),
        "{}",
        list.stdout
    );
    assert!(list.stdout.contains("\nChance\n  fill-rate: "), "{}", list.stdout);
    // Each line with unavailable variants may be wrapped, so the number of lines depends on the machine.
    assert!(list.stdout.lines().count() < 60, "a screen: {}", list.stdout);
    let list = ascertain(state.path(), &["list", "sum", "reshuffle"]);
    assert!(list.stdout.contains("\nHow fast, and how exactly, can an array"), "{}", list.stdout);
    assert!(list.stdout.contains("kahan-avx512") && !list.stdout.contains("fill-rate"), "{}", list.stdout);
    let lines: Vec<&str> = list.stdout.lines().collect();
    assert_eq!(lines.iter().find(|line| line.chars().count() > 100), None, "a line without end");
    assert!(lines.contains(&"    sum.kahan-avx512-8x-naive"), "{}", list.stdout);
    let reasons: Vec<&&str> = lines.iter().filter(|line| line.starts_with("  unavailable: ")).collect();
    let lacks_neon = list.stdout.split_whitespace().filter(|word| *word == "neon,").count();
    assert!(lacks_neon <= 1 && reasons.len() == reasons.iter().collect::<BTreeSet<_>>().len(), "{}", list.stdout);
    let json = ascertain(state.path(), &["list", "--format", "json"]).json();
    assert_eq!((&json["schema"], &json["experiments"][0]["id"]), (&"ascertain.list/1".into(), &"sum".into()));
    let json = ascertain(state.path(), &["explain", "sum.kahan-avx512-8x-naive", "--format", "json"]).json();
    assert_eq!((&json["schema"], &json["claim"]["rate"]), (&"ascertain.explanation/1".into(), &0.5.into()));
    let json = ascertain(state.path(), &["explain", "reshuffle", "--format", "json"]).json();
    assert_eq!(json["experiment"]["claims"].as_array().map(Vec::len), Some(1));
    assert_eq!(ascertain(state.path(), &["explain", "sum", "--format", "csv"]).code, Some(2));
    let explain = ascertain(state.path(), &["explain", "sum"]);
    assert!(explain.stdout.contains("\nQuestion. How fast") && explain.stdout.contains("sum.kahan-avx512-8x-naive"));
    assert!(
        list.stdout.contains("type of the numbers; numbers of either type are summed into an f64 [f32, f64]\n"),
        "{}",
        list.stdout
    );
    assert!(
        list.stdout.contains("number of values to add up [whole numbers from 1 to 4294967296]\n"),
        "{}",
        list.stdout
    );
    assert!(!list.stdout.contains(" 1 claims"), "{}", list.stdout);
    let claim = ascertain(state.path(), &["explain", "sum.kahan-avx512-8x-naive"]);
    assert!(claim.stdout.contains("source: Zach Bjornson, Fast, accurate summation"), "{}", claim.stdout);
    let test = "test: `kahan-avx512 (accumulators=4)` is at least 7.2 times as fast as `naive (accumulators=1)`\n  \
                metric: time, in ns; lower is better\n  \
                candidate: kahan-avx512 (accumulators=4 elements=187500 type=f32)\n  \
                baseline: naive (accumulators=1 elements=187500 type=f32)\n\
                judged: true in at least 50 % of the trials\n";
    assert!(claim.stdout.ends_with(test), "{}", claim.stdout);
    let narrow =
        command(state.path(), &["explain", "sum.kahan-avx512-8x-naive"]).env("COLUMNS", "40").output().unwrap();
    let narrow = String::from_utf8(narrow.stdout).unwrap();
    assert_eq!(narrow.lines().find(|line| line.chars().count() > 40), None, "{narrow}");
    let words = |text: &str| text.split_whitespace().map(String::from).collect::<Vec<_>>();
    assert_eq!(words(&narrow), words(&claim.stdout));
    for quiet in [&["list", "-q"][..], &["list", "sum", "-q"], &["explain", "sum", "-q"]] {
        let ran = ascertain(state.path(), quiet);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{quiet:?}");
    }
    assert_eq!(ascertain(state.path(), &["explain", "sun", "-q"]).code, Some(2));
    let claim = ascertain(state.path(), &["explain", "cbrt.tab1-error"]);
    assert!(claim.stdout.contains("test: `error_percent >= "), "{}", claim.stdout);
}

#[test]
fn only_requested_variants_are_measured() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["run", "sum", "cbrt", "--variants", "naive,pairwise", "--trials", "2"];
    let levels = ["--at", "elements=10", "--at", "elements=93750", "--format", "json"];
    let ran = ascertain(state.path(), &[&arguments[..], &levels].concat());
    let json = ran.json();
    let measured = |point: &Value| (point["variant"] == "naive" || point["variant"] == "pairwise") && point["n"] != 0;
    let points = json["points"].as_array().unwrap();
    assert!(points.iter().all(measured), "{json}");
    let elements: BTreeSet<u64> = points.iter().filter_map(|point| point["at"]["elements"].as_u64()).collect();
    assert!(elements.contains(&10) && elements.contains(&93_750), "--at of one factor is taken together: {elements:?}");
    assert!(!json["claims"].as_array().unwrap().is_empty(), "those on these variants are judged");
    let others = "claims not judged: they are about other levels than those of --at";
    assert!(ran.stderr.contains(others), "{}", ran.stderr);
    assert!(ran.stderr.contains("claims not judged: they need variants that --variants leaves out"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`cbrt` is not measured: it has no variant `naive`, `pairwise`"), "{}", ran.stderr);
}

/// With `--at`, no arms at other levels are measured, as they would take extra time. So claims about other levels are
/// not judged.
#[test]
fn only_requested_levels_are_measured() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["run", "fill-rate", "--trials", "1", "--max-time", "1s", "--format", "json"];
    let at = |levels: &[&str]| ascertain(state.path(), &[&arguments[..], levels].concat());
    let elsewhere = at(&["--at", "bins=50", "--at", "capacity=3000"]);
    let json = elsewhere.json();
    assert_eq!(json["claims"].as_array().unwrap().len(), 0, "{json}");
    let is_asked = |point: &Value| point["at"]["bins"] == 50 && point["at"]["capacity"] == 3000;
    assert!(json["points"].as_array().unwrap().iter().all(is_asked), "{json}");
    assert!(elsewhere.stderr.contains("3 claims not judged: they are about other levels than"), "{}", elsewhere.stderr);
    let here = at(&["--at", "bins=1000"]);
    assert_eq!(here.json()["claims"].as_array().unwrap().len(), 2, "{}", here.stdout);
    let all = at(&[]);
    assert_eq!(all.json()["claims"].as_array().unwrap().len(), 3);
    let more = "1 of 3 claims needs levels that are not in the table; these levels are measured too, unless you add --no-claims";
    assert!(all.stderr.contains(more), "{}", all.stderr);
}

#[test]
fn judge_gives_the_published_results() {
    let state = tempfile::tempdir().unwrap();
    let arguments =
        ["judge", "3972/4000", "--at-least", "0.98", "--error", "0.001", "--method", "csm", "--format", "json"];
    let ran = ascertain(state.path(), &arguments);
    let json = ran.json();
    assert_eq!((ran.code, json["verdict"].as_str()), (Some(0), Some("holds")));
    assert_eq!(json["log_level"].as_f64(), Some(-17.238559826956475));
    assert!((json["credible_low"].as_f64().unwrap() - 0.98752632).abs() < 1e-8);
    assert!((json["credible_high"].as_f64().unwrap() - 0.99637692).abs() < 1e-8);
    // `--method` selects the method for the interval too.
    let interval = |json: &Value| ["rate_low", "rate_high"].map(|end| json[end].as_f64().unwrap());
    let csm = ascertain_stats::csm_interval(Tally::new(4000, 3972).unwrap(), 0.001).unwrap();
    assert_eq!(interval(&json), [csm.low, csm.high]);
    let mixture = ascertain_stats::rate_interval(Tally::new(4000, 3972).unwrap(), 0.001, 0.001).unwrap();
    let by_mixture: Vec<&str> = arguments.iter().copied().filter(|word| !["--method", "csm"].contains(word)).collect();
    assert_eq!(interval(&ascertain(state.path(), &by_mixture).json()), [mixture.low, mixture.high]);
    let said = |method: &str| {
        ascertain(state.path(), &["judge", "3972/4000", "--at-least", "0.98", "--method", method]).stdout
    };
    let flat = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat(said("csm")).contains("error at most 0.1 % for both ends together (by the confidence sequence method)")
    );
    assert!(flat(said("mixture")).contains("error at most 0.1 % for each end"));
    assert_eq!(ascertain(state.path(), &["judge", "1/40", "--at-least", "0.9"]).code, Some(1));
    assert_eq!(ascertain(state.path(), &["judge", "9/10", "--at-least", "0.9"]).code, Some(3));
    assert_eq!(ascertain(state.path(), &["judge", "0/0", "--at-least", "0.9"]).code, Some(3));
}

#[test]
fn completions_name_subcommands_experiments_and_claims() {
    let state = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let ran = ascertain(state.path(), &["completions", shell]);
        assert_eq!(ran.code, Some(0), "{shell}");
        let knows = |word| ran.stdout.contains(word);
        assert!(knows("compare"), "{shell}");
        assert!(shell == "fish" || knows("core-latency") && knows("cbrt.tab0-6.7x-ncubic"), "{shell}");
    }
}

#[test]
fn slo_and_check_judge_printed_figures() {
    let state = tempfile::tempdir().unwrap();
    let slo = |line: &str| {
        let metric = ["--metric", "throughput=([0-9.]+) MB/s", "--require", "throughput >= 100 MB/s"];
        let common = ["slo", "--no-evidence", "--max-time", "10min", "--at-least", "80%"];
        let ran = ascertain(state.path(), &[&common[..], &metric, &["--", line]].concat());
        (ran.code, ran.stdout.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (code, said) = slo("echo 120 MB/s");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("Its median `throughput` was 120.0 MB/s."), "{said}");
    assert_eq!(slo("echo 90 MB/s").0, Some(1));
    let (code, said) = slo("echo 90 GB");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("Failed condition: `throughput >= 100 MB/s` in 7 of 7 trials"), "{said}");
    assert!(said.contains("matches no line of its output; the output ends with `90 GB`"), "{said}");

    let claims = "[[claim]]\nid = 'more'\ncandidate = 'echo 12 MB/s'\nbaseline = 'echo 10 MB/s'\n\
                  metric = 'throughput=([0-9.]+) MB/s'\nat_least = 1.1\n\
                  [[claim]]\nid = 'none'\ncommand = 'echo 5'\nmetrics = { p99 = 'json:.p99' }\n\
                  predicate = 'p99 <= 5'\nrate = 0.8\n";
    std::fs::write(state.path().join("claims.toml"), claims).unwrap();
    let ran = ascertain(state.path(), &["check", "--max-time", "10min", "claims.toml"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("more Holds: `echo 12 MB/s` ") && words.contains("`throughput`"), "{words}");
    assert!(words.contains("printed no `p99`: no line of its output begins with a JSON object or list"), "{words}");
}

/// `runtimes` compares the arms of its table, so the comparison has no trials of its own. It would take many more to
/// find a difference between a program and itself.
#[test]
fn runtimes_measures_the_requested_number_of_trials() {
    let state = tempfile::tempdir().unwrap();
    let workload = state.path().join("w");
    std::fs::write(&workload, "exit 0\n").unwrap();
    let levels = ["runtime=A=/bin/sh,B=/bin/sh".to_string(), format!("workloads={}", workload.display())];
    let arguments = ["run", "runtimes", "--trials", "2", "--max-time", "10min", "--format", "json"];
    let at: Vec<&str> = levels.iter().flat_map(|level| ["--at", level]).collect();
    let ran = ascertain(state.path(), &[&arguments[..], &at].concat());
    let json = ran.json();
    let points: Vec<&Value> =
        json["points"].as_array().unwrap().iter().filter(|point| point["metric"] == "suite").collect();
    assert!(points.len() == 2 && points.iter().all(|point| point["n"] == 2), "{} {json}", ran.stderr);
    assert_eq!(json["claims"][0]["trials"], 2);
}

/// A forced level hides instruction sets from the variants and from compilers, and the result says so.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_forced_level_hides_instruction_sets() {
    let state = tempfile::tempdir().unwrap();
    let arguments = ["run", "sum", "--variants", "naive,naive-avx2", "--no-claims", "--max-trials", "2"];
    let json = [&arguments[..], &["--format", "json"]].concat();
    let ran = ran(command(state.path(), &json).env("ASCERTAIN_CPU", "sse2").output().unwrap());
    let machine = &ran.json()["machine"];
    assert_eq!((&machine["forced_level"], &machine["features"]), (&Value::from("sse2"), &serde_json::json!(["sse2"])));
    let text = ran.json().to_string();
    assert!(text.contains(r#""code":"forced_level""#), "{text}");
    assert!(text.contains("needs avx2, which ASCERTAIN_CPU=sse2 hides"), "{text}");
}
