//! Tests of the cost calculation: known answers, bad input, properties, and the calibration of its intervals.

use ascertain_engine::outcome::Verdict;
use ascertain_report::cost::{CostComparison, CostDecision, CostFinding, CostReport, Load};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::measured::{MachineValue, MeasuredType, Series};
use super::*;
use crate::error::Error;

const PRICES: &str = "name,vcpu,cores,usd_hour\nx.2xl,8,4,0.34\ny.2xl,8,8,0.43\n";
const TIMES: &str = "name,processes,seconds\nx.2xl,1,1.00\nx.2xl,8,1.90\ny.2xl,1,1.00\ny.2xl,8,1.05\n";

fn prices(text: &str) -> Result<PriceList, Error> {
    PriceList::read(text.as_bytes(), "prices.csv")
}

fn figures(text: &str) -> Result<FigureFile, Error> {
    FigureFile::read(text.as_bytes(), "figures.csv")
}

fn asked(prices: &str, figures: &str) -> Cost {
    Cost {
        prices: self::prices(prices).unwrap(),
        machines: self::figures(figures).unwrap().into(),
        today: "2026-11-30".into(),
        ..Cost::default()
    }
}

fn costs(report: &CostReport, processes: u64) -> [Option<String>; 2] {
    let row = report.comparisons[0].workloads.iter().find(|row| row.threads == processes).unwrap();
    [row.reference_cost, row.cost].map(|cost| cost.map(|cost| format!("{cost:.2}")))
}

fn has(report: &CostReport, is_it: impl Fn(&CostFinding) -> bool) -> bool {
    report.findings.iter().any(is_it)
}

#[test]
fn eight_processes_at_once_pay_for_the_whole_machine() {
    let asked = Cost { full_load: true, ..asked(PRICES, TIMES) };
    let report = cost(&asked).unwrap();
    assert_eq!(costs(&report, 8), [Some("22.43".into()), Some("15.68".into())]);
    assert_eq!(costs(&report, 1), [None, None], "one process says nothing about full load");
    assert_eq!(
        report.offers.iter().map(|offer| (offer.cpus, offer.cores)).collect::<Vec<_>>(),
        [(8, Some(4)), (8, Some(8))]
    );
    assert!(report.comparisons[0].suite.as_ref().unwrap().cost_ratio.value < 0.7);
    let has_parts = |finding: &CostFinding| {
        *finding == CostFinding::Cores { whole: vec!["y.2xl".into()], parts: vec!["x.2xl".into()], unknown: Vec::new() }
    };
    assert!(has(&report, has_parts));
}

#[test]
fn one_process_is_not_priced_as_a_whole_machine() {
    let one = TIMES.lines().filter(|line| !line.contains(",8,")).collect::<Vec<_>>().join("\n");
    let full = Cost { full_load: true, ..asked(PRICES, &one) };
    let report = cost(&full).unwrap();
    assert_eq!((costs(&report, 1), &report.comparisons[0].suite), ([None, None], &None));
    assert!(has(&report, |finding| *finding == CostFinding::NoFullLoad { is_required: true, is_known_for_one: false }));
    assert!(report.answers()[0].contains("unknown"), "{:?}", report.answers());
    // Without the option, a process pays for the core that it uses: a quarter of x.2xl, but an eighth of y.2xl.
    let report = cost(&Cost { full_load: false, ..full }).unwrap();
    assert_eq!(costs(&report, 1), [Some("23.61".into()), Some("14.93".into())]);
    assert!(has(&report, |finding| *finding == CostFinding::NoFullLoad { is_required: false, is_known_for_one: false }));
    assert!(has(&report, |finding| matches!(finding, CostFinding::PartLoad { is_left_out: false, .. })));
    assert_eq!(report.comparisons[0].workloads[0].load, Load::Part);
    // A figure under full load of one type alone is known, but has no counterpart.
    let alone = format!("{one}\nx.2xl,8,1.90\n");
    let report = cost(&Cost { full_load: true, ..asked(PRICES, &alone) }).unwrap();
    let known = CostFinding::NoFullLoad { is_required: true, is_known_for_one: true };
    assert!(report.findings.contains(&known), "{:?}", report.findings);
}

const TWO: &str = "type,region,price,currency,per,cpus,cores,date,source\n\
                   a,r,1.00,USD,hour,2,2,2026-11-01,page\nb,r,1.10,USD,hour,2,2,2026-11-01,page\n";

/// Figures of two types with these speeds, in the order of the workloads.
fn speeds(a: &[f64], b: &[f64]) -> String {
    let mut text = "type,workload,threads,value,unit\n".to_string();
    for (name, speeds) in [("a", a), ("b", b)] {
        for (index, speed) in speeds.iter().enumerate() {
            text += &format!("{name},w{index},2,{speed},op/s\n");
        }
    }
    text
}

fn first(asked: &Cost) -> CostComparison {
    cost(asked).unwrap().comparisons.remove(0)
}

#[test]
fn the_answer_names_the_workloads_that_reverse_it() {
    let comparison = first(&asked(TWO, &speeds(&[1.0; 6], &[1.5, 1.6, 1.4, 1.05, 1.55, 1.09])));
    assert_eq!(comparison.decision, CostDecision::Cheaper);
    assert_eq!(comparison.reversing, ["w3", "w5"]);
    assert!((comparison.break_even - 1.1).abs() < 1e-12);
    let suite = comparison.suite.unwrap();
    let logs = [1.5_f64, 1.6, 1.4, 1.05, 1.55, 1.09].map(f64::ln);
    let interval = ascertain_stats::mean_interval(&logs, 0.05).unwrap().unwrap();
    assert_eq!((suite.speed.low, suite.degrees), (Some(interval.low.exp()), Some(5.0)));
    assert!(suite.chance_cheaper.unwrap() > suite.chance_next_cheaper.unwrap());
    // The other way round, the same workloads are on the other side.
    let turned = first(&Cost {
        types: vec!["b".into(), "a".into()],
        ..asked(TWO, &speeds(&[1.0; 6], &[1.5, 1.6, 1.4, 1.05, 1.55, 1.09]))
    });
    assert_eq!((turned.decision, turned.reversing), (CostDecision::Dearer, vec!["w3".to_string(), "w5".into()]));
}

#[test]
fn fewer_than_three_workloads_say_nothing_about_others() {
    for count in 1..3 {
        let asked = asked(TWO, &speeds(&vec![1.0; count], &vec![1.5; count]));
        let report = cost(&asked).unwrap();
        let suite = report.comparisons[0].suite.as_ref().unwrap();
        assert_eq!((suite.speed.low, suite.chance_next_cheaper), (None, None));
        assert_eq!(report.comparisons[0].decision, CostDecision::CheaperOnTheseFigures);
        assert!(has(&report, |finding| matches!(finding, CostFinding::FewWorkloads { .. })));
    }
}

#[test]
fn spot_and_reserved_prices_are_offers_of_one_type() {
    let text = "type,kind,price,currency,per,cpus,cores,date\na,on demand,1,USD,hour,2,2,2026-11-01\na,spot,0.4,usd,hour,2,2,2026-11-01\n\
                b,reserved,730,USD,month,2,2,2026-11-01\n";
    let report = cost(&asked(text, &speeds(&[1.0; 3], &[1.2; 3]))).unwrap();
    let names: Vec<&str> = report.offers.iter().map(|offer| offer.name.as_str()).collect();
    assert_eq!(names, ["a on demand", "a spot", "b"]);
    assert_eq!(report.offers[2].price_per_hour, 1.0);
    let spot = &report.comparisons[0];
    assert_eq!((spot.break_even, spot.decision), (0.4, CostDecision::Cheaper));
    assert_eq!(spot.suite.as_ref().unwrap().speed.value, 1.0);
}

#[test]
fn wrong_prices_name_the_line_and_the_way_out() {
    let head = "type,region,price,currency,per,cpus,date,source\na,r,1,USD,hour,2,2026-11-01,s\n";
    for (row, expected) in [
        ("b,r,0,USD,hour,2,2026-11-01,s", "prices.csv:3: the price of `b` is 0; enter the price"),
        ("b,r,-0.0,USD,hour,2,2026-11-01,s", "is 0"),
        ("b,r,-1,USD,hour,2,2026-11-01,s", "prices.csv:3: the price of `b` is negative, -1; enter"),
        ("b,r,,USD,hour,2,2026-11-01,s", "the price of `b` is missing; add it"),
        ("b,r,$1,USD,hour,2,2026-11-01,s", "`$1` of `b` is not a number; write it like 2.176"),
        ("b,r,NaN,USD,hour,2,2026-11-01,s", "is not a number"),
        ("b,r,inf,USD,hour,2,2026-11-01,s", "is not a number"),
        ("b,r,1,,hour,2,2026-11-01,s", "has no currency; enter one"),
        ("b,r,1,USD,fortnight,2,2026-11-01,s", "`fortnight` is not a period of a price; write one of second"),
        ("b,r,1,USD,hour,0,2026-11-01,s", "`0` is not a number of CPUs"),
        ("b,r,1,USD,hour,2.5,2026-11-01,s", "`2.5` is not a number of CPUs"),
        ("b,r,1,USD,hour,2,24.5.2022,s", "`24.5.2022` is not a date; write it like"),
        (",r,1,USD,hour,2,2026-11-01,s", "the type of the machine is empty"),
        ("a,r,2,USD,hour,2,2026-11-01,s", "prices.csv:3: `a` already has a price in line 2; keep one"),
        ("b,r,1,USD,hour,2,2026-11-01", "prices.csv:3: 7 fields where the first line has 8"),
    ] {
        let error = prices(&format!("{head}{row}\n")).unwrap_err().to_string();
        assert!(error.contains(expected), "{row}: {error}");
        assert!(!error.contains("--"), "libraries name no options: {error}");
    }
    assert!(
        prices("type,price\na,1\n").unwrap_err().to_string().contains("has no column `currency`; a price file has")
    );
    assert!(prices("type,price,currency,per\n").unwrap_err().to_string().contains("contains no prices; add a row"));
    assert!(prices("").unwrap_err().to_string().contains("is empty"));
    let error = prices("type,cpus,cores,usd_hour\na,2,4,1\n").unwrap_err().to_string();
    assert!(error.contains("prices.csv:2: `a` has 4 cores but only 2 CPUs"), "{error}");
}

#[test]
fn prices_that_do_not_fit_together_are_refused() {
    let (a, b) = ("a,r,1,USD,hour,2,2026-11-01,s", "b,r,1,USD,hour,2,2026-11-01,s");
    let head = "type,region,price,currency,per,cpus,date,source";
    let refused = |rows: [&str; 2], change: &dyn Fn(&mut Cost)| {
        let mut asked = asked(&format!("{head}\n{}\n{}\n", rows[0], rows[1]), &speeds(&[1.0; 3], &[1.2; 3]));
        change(&mut asked);
        cost(&asked).unwrap_err().to_string()
    };
    let error = refused([a, &b.replace("USD", "EUR")], &|_| {});
    assert_eq!(error, "prices.csv: prices are in USD (line 2) and in EUR (line 3); convert them to one currency");
    let error = refused([a, &b.replace(",r,", ",s,")], &|_| {});
    assert!(error.contains("for the regions `r` (line 2) and `s` (line 3); choose one region"), "{error}");
    let error = refused([a, b], &|asked| asked.region = Some("t".into()));
    assert!(error.contains("no price of `a` in `t`, only in `r`"), "{error}");
    let error = refused([a, &b.replace("b,", "bb,")], &|_| {});
    assert!(error.contains("has no price of `b`; add a row for it; did you mean `bb`?"), "{error}");
    let error = refused([a, b], &|asked| asked.machines.types[1].cpus = Some(64));
    assert!(error.contains("prices.csv:3: this line gives `b` 2 CPUs, but the measured machine has 64"), "{error}");
    let error = refused([&a.replace(",2,", ",,"), b], &|_| {});
    assert!(error.contains("prices.csv:2: the number of CPUs of `a` is not known; add a column cpus"), "{error}");
    let error = refused([a, b], &|asked| asked.types = vec!["a".into()]);
    assert!(error.contains("only one offer, `a`"), "{error}");
    let error = refused([a, b], &|asked| asked.types = vec!["a".into(), "c".into()]);
    assert!(error.contains("no figures of `c`"), "{error}");
    let error = refused([a, b], &|asked| asked.units = 0.0);
    assert!(error.contains("must be a number above 0"), "{error}");
}

#[test]
fn the_age_of_a_price_is_a_finding() {
    for (date, expected) in [
        ("2022-05-24", Some("old_price")),
        ("2025-11-30", None),
        ("2025-11-29", Some("old_price")),
        ("2027-01-01", Some("future_price")),
        ("", Some("undated_price")),
    ] {
        let report = cost(&asked(&TWO.replace("2026-11-01", date), &speeds(&[1.0; 3], &[1.2; 3]))).unwrap();
        let codes: Vec<String> =
            report.findings.iter().map(|finding| serde_json::json!(finding)["code"].to_string()).collect();
        let found = ["old_price", "future_price", "undated_price"]
            .into_iter()
            .find(|code| codes.contains(&format!("\"{code}\"")));
        assert_eq!(found, expected, "{date}");
    }
}

#[test]
fn wrong_figures_name_the_line_and_the_way_out() {
    let head = "type,cpus,workload,threads,value,unit,better\na,2,w,2,1.5,MB/s,higher\n";
    for (row, expected) in [
        ("b,2,w,2,0,MB/s,higher", "figures.csv:3: `0` is not a figure above zero"),
        ("b,2,w,2,-1,MB/s,higher", "`-1` is not a figure above zero"),
        ("b,2,w,2,inf,MB/s,higher", "`inf` is not a figure above zero"),
        ("b,2,w,2,NaN,MB/s,higher", "`NaN` is not a figure above zero"),
        ("b,2,w,2,,MB/s,higher", "the value is missing"),
        ("b,2,w,2,fast,MB/s,higher", "`fast` is not a number"),
        ("b,2,v,2,1,points,higher", "`points` is neither a time, such as s or ms, nor a rate"),
        ("b,2,v,2,1,s,higher", "for figures in s, lower values are better"),
        ("b,2,w,2,1,s,lower", "`w` has another unit than in line 2; give both figures in one unit"),
        ("b,2,w,0,1,MB/s,higher", "`0` is not a number of threads"),
        ("a,4,w,2,1,MB/s,higher", "`a` has another number of CPUs or cores than in line 2"),
        (",2,w,2,1,MB/s,higher", "the type of the machine is empty"),
    ] {
        let error = figures(&format!("{head}{row}\n")).unwrap_err().to_string();
        assert!(error.contains(expected), "{row}: {error}");
    }
    assert!(figures("type,value\na,1\n").unwrap_err().to_string().contains("has no column `unit`"));
    let error = figures(&format!("{head}a,2,w,2,1.5,kB/s\n")).unwrap_err().to_string();
    assert!(error.contains("6 fields where the first line has 7"), "{error}");
}

/// Each workload was measured on another machine, so the type has one machine for each workload, and not two machines.
#[test]
fn recorded_figures_have_as_many_machines_as_priced_ones() {
    let text = "type,workload,value,unit,machine\na,v,1.5,op/s,m1\na,w,2.5,op/s,m2\na,w,2.6,op/s,m3\n";
    let file = figures(text).unwrap();
    let priced = Machines::from(file.clone()).types.remove(0);
    let runs = tempfile::tempdir().unwrap();
    let recorded = file.record(runs.path(), None, &[]).unwrap().remove(0);
    assert_eq!((recorded.machines, recorded.fewest_machines), (2, 1));
    assert_eq!((priced.machines(), priced.fewest_machines()), (2, 1));
}

/// Equal figures of six digits are copies. Equal figures of three digits may be equal by rounding.
#[test]
fn copies_of_a_figure_count_once() {
    let row = |value: &str, machine: &str| format!("a,w,2,{value},op/s,{machine}\n");
    let head = "type,workload,threads,value,unit,machine\n";
    let machines = |rows: &[String]| {
        let file = figures(&(head.to_string() + &rows.concat())).unwrap();
        (file.copies, Machines::from(file).types[0].machines())
    };
    assert_eq!(machines(&[row("21319326.496", "m1"), row("21319326.496", "m2"), row("21319326.497", "m3")]), (1, 2));
    assert_eq!(machines(&[row("1.05", "m1"), row("1.05", "m2")]), (0, 2));
    assert_eq!(machines(&[row("105000000", "m1"), row("105000000", "m2")]), (0, 2), "three significant digits");
    assert_eq!(machines(&[row("1.5", ""), row("1.6", "")]), (0, 1), "without names, they are of one machine");
}

#[test]
fn figures_in_other_units_of_one_kind_are_the_same() {
    let text = "type,workload,threads,value,unit\na,w,2,1000,MB/s\nb,w,2,1.5,GB/s\n";
    let comparison = first(&asked(TWO, text));
    assert!((comparison.workloads[0].speed.value - 1.5).abs() < 1e-12);
    assert_eq!(comparison.workloads[0].unit_of_work, "GB");
}

/// A second machine for one workload of three does not make the machines a sample of their type.
#[test]
fn a_second_machine_for_one_workload_is_not_a_sample_of_the_type() {
    let row =
        |name: &str, workload: &str, machine: &str, value: f64| format!("{name},{workload},2,{value},op/s,{machine}\n");
    let mut text = "type,workload,threads,value,unit,machine\n".to_string();
    for (name, value) in [("a", 1.0), ("b", 1.3)] {
        for workload in ["w0", "w1", "w2"] {
            text += &row(name, workload, "m1", value);
        }
        text += &row(name, "w0", "m2", value * 1.01);
    }
    let partial = CostFinding::TheseMachinesOnly { machine_types: vec!["a".into(), "b".into()], is_partial: true };
    let report = cost(&asked(TWO, &text)).unwrap();
    assert!(report.findings.contains(&partial), "{:?}", report.findings);
    assert_eq!((report.offers[0].fewest_machines, report.offers[0].machines), (1, 2));
    assert_eq!(report.comparisons[0].suite.as_ref().unwrap().speed_other_machines, None);
    for (name, value) in [("a", 1.0), ("b", 1.3)] {
        for workload in ["w1", "w2"] {
            text += &row(name, workload, "m2", value * 1.01);
        }
    }
    let report = cost(&asked(TWO, &text)).unwrap();
    assert!(!has(&report, |finding| matches!(finding, CostFinding::TheseMachinesOnly { .. })));
}

/// A machine with more CPUs has full load with more threads.
#[test]
fn full_load_is_compared_with_full_load() {
    let prices = "type,cpus,cores,usd_hour\na,2,2,1\nb,4,4,2\n";
    let text = "type,workload,threads,value,unit\na,w,1,10,op/s\na,w,2,20,op/s\nb,w,1,10,op/s\nb,w,4,44,op/s\n";
    let comparison = first(&asked(prices, text));
    let rows: Vec<(u64, u64, Load, bool)> =
        comparison.workloads.iter().map(|row| (row.reference_threads, row.threads, row.load, row.is_in_mean)).collect();
    assert_eq!(rows, [(1, 1, Load::Part, false), (2, 4, Load::Full, true)]);
    assert!((comparison.workloads[1].cost_ratio.unwrap().value - 20.0 * 2.0 / 44.0).abs() < 1e-12);
    let error = cost(&asked(prices, "type,workload,threads,value,unit\na,w,1,10,op/s\nb,w,4,44,op/s\n")).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains(
            "no workload in common under the same load: the first has `w` with 1 thread, the second `w` with 4 threads"
        ),
        "{error}"
    );
}

/// Work with more threads than CPUs is compared with the same number of threads, if that was measured.
#[test]
fn full_load_prefers_equal_threads() {
    let text = "type,workload,threads,value,unit\na,w,2,20,op/s\na,w,4,16,op/s\nb,w,2,30,op/s\nb,w,4,16,op/s\n";
    let rows = first(&asked(TWO, text)).workloads;
    assert_eq!(rows.iter().map(|row| (row.threads, row.is_in_mean)).collect::<Vec<_>>(), [(2, false), (4, true)]);
    assert!((rows[0].speed.value - 1.5).abs() < 1e-12 && rows[1].speed.value == 1.0);
}

/// Numbers of threads apply to figures without a number. A number that applies to nothing, or twice to the same
/// figures, is a mistake.
#[test]
fn numbers_of_threads_are_of_measured_types_and_given_once() {
    let text = "type,workload,value,unit\na,w,10,op/s\nb,w,11,op/s\n";
    let with = |threads: &[(Option<&str>, u64)]| {
        let threads = threads.iter().map(|(name, threads)| (name.map(String::from), *threads)).collect();
        cost(&Cost { threads, ..asked(TWO, text) })
    };
    let threads = |given: &[(Option<&str>, u64)]| {
        let row = with(given).unwrap().comparisons.remove(0).workloads.remove(0);
        (row.reference_threads, row.threads)
    };
    assert_eq!(threads(&[]), (1, 1));
    assert_eq!(threads(&[(None, 2)]), (2, 2));
    // The number for a type takes precedence over the number for all other types, in any order.
    assert_eq!(threads(&[(Some("a"), 3), (None, 2)]), (3, 2));
    assert_eq!(threads(&[(None, 2), (Some("a"), 3)]), (3, 2));
    for (given, expected) in [
        (&[(None, 1), (None, 2)][..], "two numbers of threads are given for all types; remove one"),
        (&[(None, 1), (None, 1)], "two numbers of threads are given for all types; remove one"),
        (&[(Some("b"), 1), (None, 1), (Some("b"), 2)], "two numbers of threads are given for `b`; remove one"),
        (
            &[(Some("c7g.large"), 2)],
            "a number of threads is given for the type `c7g.large`, which has no figures; remove it, or correct the name",
        ),
    ] {
        assert_eq!(with(given).unwrap_err().to_string(), expected);
    }
    // The types of a request are those that it compares.
    let times = TIMES.replace("processes", "threads");
    let of_large = |name: &str| Cost { threads: vec![(Some(name.into()), 8)], ..asked(PRICES, &times) };
    assert!(cost(&of_large("y.2xl")).is_ok());
    let error = cost(&of_large("z.2xl")).unwrap_err().to_string();
    assert!(error.contains("`z.2xl`, which has no figures; did you mean `"), "{error}");
}

const CLAIM: &str =
    "[[claim]]\nid = \"c\"\nsays = \"b is fast\"\ncandidate = \"b\"\nbaseline = \"a\"\nat_least = 1.2\n";

#[test]
fn claims_are_judged_by_the_interval_for_workloads_like_these() {
    let judged = |claim: &str, b: &[f64]| {
        let asked =
            Cost { claims: read_claims(claim, "c.toml").unwrap(), ..asked(TWO, &speeds(&vec![1.0; b.len()], b)) };
        cost(&asked).unwrap().claims.remove(0)
    };
    assert_eq!(judged(CLAIM, &[1.5, 1.6, 1.4]).verdict, Verdict::Holds);
    let refuted = judged(CLAIM, &[1.05, 1.01, 1.06, 1.21, 1.02, 1.03, 1.04]);
    assert_eq!(refuted.verdict, Verdict::Refuted);
    assert_eq!(refuted.contrary, [("w3".to_string(), 1.21_f64.ln().exp())]);
    let open = judged(CLAIM, &[1.5, 1.0, 1.4]);
    assert_eq!(open.verdict, Verdict::Undecided);
    assert!(open.reason.contains("contains the bound"), "{}", open.reason);
    let few = judged(CLAIM, &[1.5, 1.6]);
    assert_eq!((few.verdict, few.workloads), (Verdict::Undecided, 2));
    assert!(few.reason.contains("fewer than three"), "{}", few.reason);
    let worth = judged(&CLAIM.replace("1.2", "\"break-even\""), &[1.5, 1.6, 1.4, 1.08]);
    assert!((worth.at_least - 1.1).abs() < 1e-12);
    let listed = judged(&format!("{CLAIM}workloads = [\"w0\", \"w1\", \"w2\"]\n"), &[1.5, 1.6, 1.4, 0.1]);
    assert_eq!((listed.verdict, listed.workloads), (Verdict::Holds, 3));
}

/// One thread uses a half of `a` and a quarter of `b`, so at twice the price, `b` pays if it is as fast.
#[test]
fn the_break_even_of_a_claim_is_that_of_the_comparison() {
    let prices = "type,cpus,cores,usd_hour\na,2,2,1\nb,4,4,2\n";
    let speeds = speeds(&[1.0; 4], &[1.2, 1.3, 1.25, 1.2]).replace(",2,", ",1,");
    let claims = read_claims(&CLAIM.replace("1.2", "\"break-even\""), "c.toml").unwrap();
    let asked = Cost { claims, ..asked(prices, &speeds) };
    let mut report = cost(&asked).unwrap();
    let claim = report.claims.remove(0);
    assert_eq!((claim.verdict, claim.at_least), (Verdict::Holds, report.comparisons[0].break_even));
    assert!((claim.at_least - 1.0).abs() < 1e-12);
    let claim = cost(&Cost { full_load: true, ..asked }).unwrap().claims.remove(0);
    assert_eq!((claim.verdict, claim.workloads), (Verdict::Undecided, 0), "no workload has a cost");
}

#[test]
fn wrong_claims_name_the_line() {
    for (text, expected) in [
        ("claim = 1", "c.toml:1: "),
        ("[[claim]]\nid = \"c\"\n", "c.toml:1: missing field `says`"),
        (&format!("{CLAIM}colour = 1\n"), "c.toml:7: unknown field `colour`"),
        (&CLAIM.replace("1.2", "0.0"), "c.toml:6: `at_least` must be a factor above 0"),
        (&CLAIM.replace("1.2", "\"much\""), "`at_least` must be"),
        (&format!("{CLAIM}{CLAIM}"), "c.toml:7: another claim already has the id `c`"),
        (&format!("{CLAIM}workloads = [\"w\", \"w\"]\n"), "the workload `w` is listed twice"),
    ] {
        let error = read_claims(text, "c.toml").unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    for (text, expected) in [
        (CLAIM.replace("\"b\"", "\"bb\""), "c.toml:1: there are no priced figures of `bb`"),
        (
            format!("{CLAIM}workloads = [\"w9\"]\n"),
            "c.toml:1: both types have no comparable figure of the workload `w9`",
        ),
    ] {
        let asked = Cost { claims: read_claims(&text, "c.toml").unwrap(), ..asked(TWO, &speeds(&[1.0; 3], &[1.2; 3])) };
        let error = cost(&asked).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

proptest! {
    /// The mean depends neither on the length of a workload nor on the unit of a figure.
    #[test]
    fn the_mean_is_unchanged_by_lengths_and_units(
        logs in proptest::collection::vec((-1.0..1.0_f64, -0.5..0.5_f64), 3..9),
        longer in 0..3_usize,
        times in 1e-3..1e3_f64,
    ) {
        let a: Vec<f64> = logs.iter().map(|(base, _)| base.exp()).collect();
        let b: Vec<f64> = logs.iter().map(|(base, gain)| (base + gain).exp()).collect();
        let scaled = |speeds: &[f64]| -> Vec<f64> {
            speeds.iter().enumerate().map(|(index, speed)| if index == longer { speed * times } else { *speed }).collect()
        };
        let before = first(&asked(TWO, &speeds(&a, &b))).suite.unwrap();
        let after = first(&asked(TWO, &speeds(&scaled(&a), &scaled(&b)))).suite.unwrap();
        let kilo = first(&asked(TWO, &speeds(&a, &b).replace("op/s", "kB/s"))).suite.unwrap();
        for other in [after, kilo] {
            for (one, other) in [
                (before.speed.value, other.speed.value),
                (before.speed.low.unwrap(), other.speed.low.unwrap()),
                (before.cost_ratio.value, other.cost_ratio.value),
                (before.chance_cheaper.unwrap(), other.chance_cheaper.unwrap()),
            ] {
                prop_assert!((one / other - 1.0).abs() < 1e-6 || (one - other).abs() < 1e-9, "{one} and {other}");
            }
        }
    }

    /// Exchanging the two types inverts every ratio.
    #[test]
    fn exchanged_types_give_inverse_ratios(gains in proptest::collection::vec(0.2..5.0_f64, 3..9)) {
        let asked = asked(TWO, &speeds(&vec![1.0; gains.len()], &gains));
        let turned = Cost { types: vec!["b".into(), "a".into()], ..asked.clone() };
        let (one, other) = (first(&asked), first(&turned));
        let (one, other) = (one.suite.unwrap(), other.suite.unwrap());
        prop_assert!((one.cost_ratio.value * other.cost_ratio.value - 1.0).abs() < 1e-9);
        prop_assert!((one.cost_ratio.low.unwrap() * other.cost_ratio.high.unwrap() - 1.0).abs() < 1e-9);
        prop_assert!((one.chance_cheaper.unwrap() + other.chance_cheaper.unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn no_file_makes_the_parsers_panic(text in "[a-z0-9,.\"\n_/-]{0,200}") {
        let _ = prices(&text);
        let _ = prices(&format!("type,price,currency,per,cpus,date\n{text}"));
        let _ = figures(&format!("type,workload,threads,value,unit\n{text}"));
        let _ = read_claims(&text, "c.toml");
        let _ = read_claims(&format!("{CLAIM}{text}"), "c.toml");
    }
}

/// Draws from a normal distribution, by the method of Box and Muller.
fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    let (one, other): (f64, f64) = (random.random(), random.random());
    (-2.0 * (1.0 - one).ln()).sqrt() * (std::f64::consts::TAU * other).cos()
}

/// The size of a simulated measurement.
#[derive(Clone, Copy, Debug)]
struct Design {
    machines: [usize; 2],
    workloads: usize,
    /// Standard deviation between machines of a type, in logarithms.
    between_machines: f64,
    /// Standard deviation of a workload on a machine.
    within: f64,
    /// Standard deviation between the true ratios of workloads.
    between_workloads: f64,
}

/// Returns types `a` and `b` that differ by the factor 1.2 in the mean, with the true mean of the chosen workloads.
fn simulated(design: Design, random: &mut Xoshiro256PlusPlus) -> (Machines, f64) {
    let gains: Vec<f64> =
        (0..design.workloads).map(|_| 1.2_f64.ln() + design.between_workloads * normal(random)).collect();
    let mut types = Vec::new();
    for (side, name) in ["a", "b"].into_iter().enumerate() {
        let effects: Vec<f64> = (0..design.machines[side]).map(|_| design.between_machines * normal(random)).collect();
        let series = gains.iter().enumerate().map(|(index, gain)| {
            let values = effects.iter().enumerate().map(|(machine, effect)| {
                let log = effect + if side == 1 { *gain } else { 0.0 } + design.within * normal(random);
                MachineValue { machine: machine.to_string(), value: log.exp(), low: None, high: None }
            });
            let machines = values.collect();
            let unit = WorkUnit::PerSecond("op".into());
            Series { workload: format!("w{index}"), threads: Some(2), unit, machines }
        });
        let series = series.collect();
        types.push(MeasuredType {
            machine_type: name.into(),
            cpus: Some(2),
            cores: Some(2),
            series,
            ..MeasuredType::default()
        });
    }
    (Machines { types, ..Machines::default() }, gains.iter().sum::<f64>() / gains.len() as f64)
}

/// The intervals cover the true ratio in about 95 % of simulated measurements. There is one for a workload on other
/// machines, one for the suite on other machines, and one for other workloads and machines.
#[test]
fn intervals_are_right_in_95_of_100() {
    const RUNS: usize = 500;
    for design in [
        Design { machines: [3, 3], workloads: 5, between_machines: 0.05, within: 0.01, between_workloads: 0.1 },
        Design { machines: [5, 2], workloads: 10, between_machines: 0.05, within: 0.05, between_workloads: 0.05 },
        Design { machines: [4, 6], workloads: 3, between_machines: 0.03, within: 0.02, between_workloads: 0.0 },
        Design { machines: [2, 10], workloads: 6, between_machines: 0.05, within: 0.02, between_workloads: 0.05 },
        Design { machines: [2, 2], workloads: 8, between_machines: 0.1, within: 0.01, between_workloads: 0.2 },
    ] {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut covered = [0_usize; 3];
        for _ in 0..RUNS {
            let (machines, mean_of_these) = simulated(design, &mut random);
            let asked = Cost { prices: prices(TWO).unwrap(), machines, today: "2026-11-30".into(), ..Cost::default() };
            let comparison = first(&asked);
            let suite = comparison.suite.unwrap();
            let has = |interval: ascertain_report::cost::Interval, truth: f64| {
                usize::from(interval.low.unwrap() <= truth && truth <= interval.high.unwrap())
            };
            covered[0] += has(suite.speed, 1.2);
            covered[1] += has(suite.speed_other_machines.unwrap(), mean_of_these.exp());
            if design.between_workloads == 0.0 {
                covered[2] += has(comparison.workloads[0].speed, 1.2);
            }
        }
        let shares = covered.map(|count| count as f64 / RUNS as f64);
        assert!(shares[0] > 0.93, "{design:?}: {shares:?}");
        assert!(shares[1] > 0.93, "{design:?}: {shares:?}");
        assert!(design.between_workloads > 0.0 || shares[2] > 0.93, "{design:?}: {shares:?}");
    }
}
