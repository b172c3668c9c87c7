//! Tests with correct claims files, and the claims that they contain.

use std::time::Duration;

use serde_json::{Value, json};

use super::{fill_rate, read, read_as, sum};
use crate::claim::{Bound, Claim, Effect, Judging, Measure, Test};
use crate::claims_file::keys::KEYS;
use crate::claims_file::{ClaimsFile, json_schema, merge};
use crate::command::OnFailure;
use crate::experiment::{Accepts, Arm, Better, Level, Point};
use crate::unit::Unit;
use crate::values::Bounds;

/// The examples from the design document.
pub(super) const EXAMPLES: &str = r#"
[[claim]]
id = "sum.kahan-avx512-8x-naive"
says = "Kahan summation with AVX-512 is at least 8 times as fast as the naive loop"
source = "000_301083b0e46b265c.txt"
source_value = "8x"
experiment = "sum"
at = { elements = 187500, type = "f32" }     # factors left out take their declared default
metric = "time"
candidate = { variant = "kahan-avx512", accumulators = 4 }   # a plain string: that variant, at `at`
baseline = "naive"
at_least = 8.0                               # how many times better the candidate is, in each trial
rate = 0.5                                   # the default
analysis = "Why it should hold, and when it will not."

[[claim]]
id = "fill-rate.98-percent"
experiment = "fill-rate"
at = { bins = 1000, capacity = 30000 }
predicate = "fill_rate >= 0.975"
rate = 0.98

[[claim]]
id = "health.p99"
says = "GET /health answers within 50 ms 99 % of the time"
command = "curl -fsS http://localhost:8080/health"   # or candidate and baseline commands
predicate = "exit == 0 and wall <= 50 ms"
rate = 0.99
"#;

fn arm(variant: &str, levels: &[(&str, &str)]) -> Arm {
    let point = levels.iter().fold(Point::default(), |point, (name, level)| point.with(name, Level::parse(level)));
    Arm { variant: variant.into(), point }
}

fn file(claim: &str) -> ClaimsFile {
    read(&format!("[[claim]]\nid = 'x'\n{claim}")).unwrap()
}

fn only(claim: &str) -> Claim {
    let mut file = file(claim);
    assert_eq!(file.claims.len(), 1);
    file.claims.remove(0)
}

#[test]
fn the_examples_of_the_design_are_read() {
    let file = read(EXAMPLES).unwrap();
    let [sum, fill_rate, health] = &file.claims[..] else { panic!("three claims, not {}", file.claims.len()) };

    assert_eq!(sum.id, "sum.kahan-avx512-8x-naive");
    assert_eq!(sum.source_value, "8x");
    assert_eq!(sum.experiment, "sum");
    assert_eq!((sum.asked.judging, sum.rate, sum.look_every), (Judging::Rate, 0.5, 1));
    let versus = Test::Versus {
        measure: Measure { metric: "time".into(), unit: Unit::Nanosecond, better: Better::Lower, inputs: Vec::new() },
        candidate: arm("kahan-avx512", &[("elements", "187500"), ("type", "f32"), ("accumulators", "4")]),
        baseline: arm("naive", &[("elements", "187500"), ("type", "f32"), ("accumulators", "1")]),
        scale: Effect::Ratio,
        bound: Bound::AtLeast(8.0),
    };
    assert_eq!(sum.asked.tests, [versus]);

    assert_eq!(
        fill_rate.says,
        "`greedy`: fill_rate >= 0.975 in at least 98 % of the trials at bins=1000, capacity=30000"
    );
    assert_eq!(fill_rate.rate, 0.98);
    let [Test::Predicate { arm: greedy, conditions, .. }] = &fill_rate.asked.tests[..] else { panic!("a predicate") };
    assert_eq!(*greedy, arm("greedy", &[("bins", "1000"), ("capacity", "30000")]));
    let is_true = |rate| conditions[0].is_true(Bounds::exact(rate));
    assert_eq!([0.975, 0.97].map(is_true), [Some(true), Some(false)]);

    assert_eq!(health.experiment, "health.p99");
    let [commands] = &file.commands[..] else { panic!("one command set") };
    assert_eq!(commands.id, "health.p99");
    assert_eq!(commands.commands[0].line, "curl -fsS http://localhost:8080/health");
    assert_eq!(commands.on_failure, OnFailure::Observe);
    assert_eq!(health.asked.tests[0].arms(), [&arm(&commands.commands[0].name, &[])]);
}

#[test]
fn every_optional_key_is_kept() {
    let file = file(
        "command = 'true'\npredicate = 'exit == 0'\nrate = 0.9\nmargin = 0.05\nerror = 0.01\nmax_time = '1 min'\nmax_trials = 1_000\n\
         time_limit = '10 s'\nshell = true\nsetup = 'make'\nprepare = 'sync'\ncleanup = 'rm x'\nsource = 'us'\nrestated = 'as a rate'",
    );
    let claim = &file.claims[0];
    assert_eq!((claim.asked.margin, claim.error), (Some(0.05), Some(0.01)));
    assert_eq!((claim.max_time, claim.max_trials), (Some(Duration::from_secs(60)), Some(1000)));
    assert_eq!((claim.source.as_str(), claim.restated.as_str()), ("us", "as a rate"));
    let set = &file.commands[0];
    assert_eq!(set.time_limit, Some(Duration::from_secs(10)));
    assert_eq!(set.shell.as_deref(), Some("sh"));
    let command = &set.commands[0];
    assert_eq!(
        [&command.setup, &command.prepare, &command.cleanup].map(Option::as_deref),
        [Some("make"), Some("sync"), Some("rm x")]
    );
}

#[test]
fn commands_are_compared_with_the_baseline_first() {
    let file = file("candidate = 'new'\nbaseline = 'old'\nwithin = [0.95, 2]");
    let set = &file.commands[0];
    assert_eq!(set.commands.iter().map(|command| command.line.as_str()).collect::<Vec<_>>(), ["old", "new"]);
    assert_eq!((&set.on_failure, set.shell.as_deref()), (&OnFailure::Stop, None));
    let claim = &file.claims[0];
    assert_eq!(claim.says, "`new` is from 0.95 to 2 times as fast as `old`");
    let Test::Versus { measure, candidate, baseline, bound, .. } = &claim.asked.tests[0] else { panic!("compares") };
    assert_eq!(measure.metric, "wall");
    assert_eq!((candidate, baseline), (&arm("new", &[]), &arm("old", &[])));
    assert_eq!(*bound, Bound::Within(0.95, 2.0));
}

#[test]
fn levels_in_at_are_parameters_of_commands() {
    let file =
        file("command = 'make -j{jobs}'\nat = { jobs = [1, '4'] }\nover = 'each'\npredicate = 'exit == 0'\nrate = 0.9");
    assert_eq!(file.commands.len(), 1);
    let jobs = &file.commands[0].parameters[0];
    assert_eq!((jobs.name.as_str(), &jobs.default), ("jobs", &Level::Integer(1)));
    assert_eq!(jobs.accepts, Accepts::OneOf(vec![Level::Integer(1), "4".into()]));
    assert_eq!(file.claims[1].id, "x[jobs=4]");
    assert_eq!(file.claims[1].experiment, "x");
    assert_eq!(file.claims[1].asked.tests[0].arms()[0].to_string(), "make -j4");
}

const SWEEP: &str = "experiment = 'sum'\nat = { elements = ['1Ki', 4096], type = 'f64' }\nbaseline = 'naive'\ncandidate = 'kahan'\nat_least = 2\n";

#[test]
fn over_each_makes_a_claim_of_each_point() {
    let claims = file(&format!("{SWEEP}over = 'each'")).claims;
    let ids: Vec<&str> = claims.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!(ids, ["x[elements=1024]", "x[elements=4096]"]);
    assert_eq!(claims[1].says, "`kahan` is at least 2 times as fast as `naive` at elements=4096, type=f64");
    assert_eq!(claims[1].arms().len(), 2);
    let said = file(&format!("{SWEEP}over = 'each'\nsays = 'It is fast'")).claims;
    assert_eq!(said[0].says, "It is fast (elements=1024)");
}

#[test]
fn a_claim_has_its_place() {
    let file = file(&format!("{SWEEP}over = 'each'"));
    let place = file.claims[1].place.as_ref().unwrap();
    assert_eq!((file.claims[1].id.as_str(), place.line, place.column), ("x[elements=4096]", 2, 6));
}

#[test]
fn over_every_makes_a_test_of_each_point() {
    let claim = only(&format!("{SWEEP}over = 'every'"));
    assert_eq!(claim.id, "x");
    assert_eq!(claim.asked.tests.len(), 2);
    assert_eq!(claim.arms().len(), 4);
    assert_eq!(
        claim.says,
        "`kahan` is at least 2 times as fast as `naive` at type=f64, at every one of elements=1024, 4096"
    );
}

#[test]
fn several_lists_are_multiplied_in_the_order_of_the_file() {
    let claims = file(
        "experiment = 'sum'\nat = { type = ['f32', 'f64'], accumulators = [1, 2] }\nover = 'each'\npredicate = 'time < 1 ms'\nrate = 0.9",
    );
    let ids: Vec<&str> = claims.claims.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!(ids[1..3], ["x[type=f32,accumulators=2]", "x[type=f64,accumulators=1]"]);
}

#[test]
fn a_difference_is_a_quantity_of_the_metric() {
    let bound = |text: &str| {
        let claim =
            only(&format!("experiment = 'sum'\ncandidate = 'kahan'\nbaseline = 'naive'\ndifference = true\n{text}"));
        match claim.asked.tests[0] {
            Test::Versus { scale: Effect::Difference, bound, .. } => (bound, claim.says),
            _ => panic!("a difference"),
        }
    };
    assert_eq!(bound("at_least = '-5 ms'").0, Bound::AtLeast(-5e6));
    assert_eq!(bound("at_least = '5 ms'").1, "`kahan` is faster than `naive` by at least 5 ms");
    assert_eq!(bound("at_most = 0").0, Bound::AtMost(0.0));
    assert_eq!(bound("metric = 'error'\nat_most = 1e-9").0, Bound::AtMost(1e-9));
    let (memory, says) = bound("metric = 'memory'\nwithin = [0, '1 KiB']");
    assert_eq!(memory, Bound::Within(0.0, 1024.0));
    assert_eq!(says, "`kahan` is better than `naive` by 0 B to 1.024 kB in `memory`");
    assert_eq!(bound("within = ['-5 ms', '5 ms']").1, "`kahan` is within ±5 ms of `naive`");
}

#[test]
fn an_exact_claim_needs_no_rate() {
    let claim = only(
        "experiment = 'sum'\nkind = 'exact'\ncandidate = { variant = 'kahan', type = 'f64' }\npredicate = 'error <= 1e-12'",
    );
    assert_eq!(claim.asked.judging, Judging::Exact);
    assert_eq!(claim.says, "`kahan` with type=f64: error <= 1e-12");
    assert_eq!(claim.arms()[0].point.get("type"), Some(&"f64".into()));
}

#[test]
fn a_sentence_names_what_is_compared_and_how_often() {
    let says = |text: &str| only(&format!("experiment = 'sum'\ncandidate = 'kahan'\nbaseline = 'naive'\n{text}")).says;
    assert_eq!(
        says("at_least = 0.9\nrate = 0.999"),
        "`kahan` is at least 0.9 times as fast as `naive` in at least 99.9 % of the trials"
    );
    assert_eq!(
        says("at_most = 2\nmetric = 'throughput'"),
        "`kahan` is at most 2 times as fast as `naive` in `throughput`"
    );
    assert_eq!(says("at_least = 10\nmetric = 'error'"), "`kahan` is at least 10 times as good as `naive` in `error`");
}

#[test]
fn an_arm_may_be_written_as_a_table_of_its_own() {
    let text = "experiment = 'sum'\nat_least = 1\nbaseline.variant = 'kahan'\nbaseline.accumulators = 0x8\n[claim.candidate]\nvariant = 'kahan'";
    let claim = only(text);
    let [candidate, baseline] = claim.asked.tests[0].arms()[..] else { panic!("two arms") };
    assert_eq!(candidate.to_string(), "kahan (accumulators=1 elements=1024 type=f32)");
    assert_eq!(baseline.to_string(), "kahan (accumulators=8 elements=1024 type=f32)");
}

#[test]
fn files_are_merged_unless_an_id_is_in_two() {
    let one = "[[claim]]\nid = 'a'\ncommand = 'true'\npredicate = 'exit == 0'\nrate = 0.9";
    let files = [("a.toml", one.to_string()), ("b.toml", one.replace("'a'", "'b'")), ("c.toml", one.to_string())];
    let [a, b, c] = files.map(|(name, text)| read_as(&text, name).unwrap());
    let merged = merge([a.clone(), b.clone()]).unwrap();
    assert_eq!((merged.claims.len(), merged.commands.len()), (2, 2));
    let error = merge([a, b, c]).unwrap_err();
    assert_eq!(error.to_string(), "c.toml:2:6: the claim at a.toml:2:6 already has the id `a`; choose another id");
}

fn claim_schema() -> Value {
    json_schema(&[&sum(), &fill_rate()])["properties"]["claim"]["items"].clone()
}

#[test]
fn the_schema_has_every_key_with_a_description() {
    let schema = claim_schema();
    let properties = schema["properties"].as_object().unwrap();
    let mut names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    names.sort_unstable();
    let mut known: Vec<&str> = properties.keys().map(String::as_str).collect();
    known.sort_unstable();
    assert_eq!(known, names);
    assert!(properties.values().all(|schema| schema["description"].is_string()));
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn the_schema_names_what_can_be_measured() {
    let schema = claim_schema();
    assert_eq!(schema["properties"]["experiment"]["enum"], json!(["sum", "fill-rate"]));
    let of_sum = &schema["allOf"][0];
    assert_eq!(of_sum["if"]["properties"]["experiment"]["const"], "sum");
    let properties = &of_sum["then"]["properties"];
    assert_eq!(properties["metric"]["enum"], json!(["time", "error", "memory", "throughput"]));
    assert_eq!(properties["candidate"]["anyOf"][0]["enum"], json!(["naive", "kahan", "kahan-avx512"]));
    assert_eq!(properties["candidate"]["anyOf"][1]["properties"]["type"]["enum"], json!(["f32", "f64"]));
    let elements = &properties["at"]["properties"]["elements"]["anyOf"];
    assert_eq!(elements[0]["anyOf"][0], json!({"type": "integer", "minimum": 1, "maximum": 1 << 30}));
    assert_eq!(elements[1]["items"], elements[0]);
    assert_eq!(properties["at"]["properties"]["accumulators"]["anyOf"][0]["anyOf"][0]["enum"], json!([1, 2, 4, 8]));
}

#[test]
fn the_schema_wants_exactly_one_bound() {
    let schema = claim_schema();
    let bounds = &schema["allOf"][2]["oneOf"];
    assert_eq!(bounds[3], json!({"required": ["predicate"]}));
    assert_eq!(bounds.as_array().map(Vec::len), Some(4));
}

#[test]
fn the_reference_explains_every_key() {
    let reference = include_str!("../mod.rs");
    for key in KEYS {
        assert!(reference.contains(&format!("//! | `{}` |", key.name)), "{}", key.name);
    }
}

#[test]
fn commands_may_print_what_is_compared() {
    const COMMANDS: &str = "candidate = 'a'\nbaseline = 'b'\nat_least = 2\n";
    let compared = |keys: &str| {
        let file = file(&format!("{COMMANDS}{keys}"));
        let Test::Versus { measure, .. } = file.claims[0].asked.tests[0].clone() else { panic!("{keys}") };
        (measure.metric, measure.unit, measure.better, file.claims[0].says.clone())
    };
    let (name, unit, better, says) = compared("metric = 'throughput=([0-9.]+) MB/s'");
    assert_eq!((name.as_str(), unit, better), ("throughput", Unit::BytePerSecond, Better::Higher));
    assert_eq!(says, "`a` is at least 2 times as fast as `b` in `throughput`");
    let (name, _, better, _) =
        compared("metrics = { score = { pattern = 'json:.s', better = 'higher' }, p = '(.) ms' }");
    assert_eq!((name.as_str(), better), ("score", Better::Higher), "the first of them unless one is named");
    let (name, unit, better, _) = compared("metric = 'p'\nmetrics = { score = '(.)', p = '(.) ms' }");
    assert_eq!((name.as_str(), unit, better), ("p", Unit::Nanosecond, Better::Lower));
    let (name, unit, ..) = compared("metrics = { p = { pattern = 'json:.p', unit = 'GiB/s' } }");
    assert_eq!((name.as_str(), unit), ("p", Unit::BytePerSecond));
    assert_eq!(compared("metric = 'wall'\nmetrics = { p = '(.) ms' }").0, "wall");

    let file = file("command = 'a'\nmetrics = { p99 = 'json:.p99' }\npredicate = 'p99 <= 5'\nrate = 0.9");
    assert_eq!(file.commands[0].printed.len(), 1);
    assert_eq!(file.claims[0].says, "`a`: p99 <= 5 in at least 90 % of the trials");
}

#[test]
fn a_metric_may_be_an_expression() {
    let claim =
        only("experiment = 'sum'\ncandidate = 'kahan'\nbaseline = 'naive'\nmetric = 'memory / time'\nat_least = 2");
    let [Test::Versus { measure, .. }] = &claim.asked.tests[..] else { panic!("a comparison") };
    let inputs = ["time", "memory"].map(String::from);
    let expected = Measure {
        metric: "memory / time".into(),
        unit: Unit::BytePerSecond,
        better: Better::Higher,
        inputs: inputs.into(),
    };
    assert_eq!(*measure, expected);
    assert_eq!(claim.says, "`kahan` is at least 2 times as fast as `naive` in `memory / time`");
    let claim = only("experiment = 'sum'\npredicate = 'quantile(.9, window(time, 20)) <= 50 ms'\nrate = 0.9");
    assert_eq!(claim.says, "`naive`: quantile(.9, window(time, 20)) <= 50 ms in at least 90 % of the values");
    let [(arm, "time")] = claim.asked.tests[0].observed()[..] else { panic!("one arm and one metric") };
    assert_eq!(arm.variant, "naive");
    let of_commands = file("candidate = 'true'\nbaseline = 'sleep 1'\nmetric = 'mean(window(wall, 2))'\nat_least = 2");
    assert!(of_commands.commands[0].printed.is_empty());
    assert_eq!(of_commands.claims[0].asked.tests[0].observed()[0].1, "wall");
    let read: Claim = serde_json::from_value(serde_json::to_value(&claim).unwrap()).unwrap();
    assert_eq!(read, claim);
}
