//! Tests of `ascertain power`, which predicts verdicts.

use ascertain_stats::{Judge, power};
use serde_json::Value;

use crate::common::{Ran, ascertain};

fn run(arguments: &[&str]) -> Ran {
    let state = tempfile::tempdir().unwrap();
    ascertain(state.path(), &[&["power"], arguments].concat())
}

fn json(arguments: &[&str]) -> Value {
    run(&[arguments, &["--format", "json"]].concat()).json()
}

#[test]
fn the_claim_is_all_that_must_be_said() {
    let json = json(&["--at-least", "60%"]);
    assert_eq!(json["schema"], "ascertain.power/1");
    let asked = (&json["judging"], &json["rate_claimed"], &json["max_trials"]);
    assert_eq!(asked, (&"rate".into(), &0.6.into(), &5000.into()));
    let rates = json["rates"].as_array().unwrap();
    let column = |name: &str| rates.iter().map(|at| at[name].as_f64().unwrap()).collect::<Vec<_>>();
    assert!(column("holds").is_sorted() && column("refuted").iter().rev().is_sorted(), "{rates:?}");
    assert!(column("true_rate").contains(&0.6) && column("true_rate").len() == 11);
    assert!(json["curve"].as_array().unwrap().len() > 30);
    // By default, the number of trials is enough if the true odds of failure are a fifth lower than claimed.
    assert!(rates.iter().filter(|at| at["trials_95"].is_u64()).count() >= 8, "{rates:?}");
    let text = run(&["--at-least", "60%", "--max-trials", "500"]).stdout.replace('\n', " ");
    assert!(text.contains("True rate") && text.contains("except by chance"), "{text}");
    assert!(text.contains("The chance of each verdict in 500 trials"), "there is a plot: {text}");
}

#[test]
fn power_is_of_the_judge_that_runs() {
    for (arguments, judge) in [
        (&["--at-least", "0.9"][..], Judge::new(0.9, 0.001).unwrap()),
        (&["--at-least", "0.9", "--two-sided", "--error", "0.02"], Judge::with_errors(0.9, 0.01, 0.01).unwrap()),
        (&["--at-least", "0.9", "--margin", "2%"], Judge::with_margin(0.9, 0.02, 0.001).unwrap()),
        (&["--compare"], Judge::with_errors(0.5, 0.0005, 0.0005).unwrap()),
    ] {
        let json = json(&[arguments, &["--true", "0.95", "--true", "40%", "--max-trials", "300"]].concat());
        for (at, true_rate) in json["rates"].as_array().unwrap().iter().zip([0.95, 0.4]) {
            let expected = power(&judge, true_rate, 300).unwrap();
            assert_eq!(at["true_rate"], true_rate);
            assert_eq!((&at["holds"], &at["refuted"]), (&expected.holds.into(), &expected.refuted.into()));
            assert_eq!(at["expected_trials"], expected.expected_trials);
            for (trials, share) in [("trials_80", 0.8), ("trials_95", 0.95)] {
                let decided_by = |trials: u64| 1.0 - power(&judge, true_rate, trials).unwrap().undecided;
                match at[trials].as_u64() {
                    Some(trials) => assert!(decided_by(trials) >= share && decided_by(trials - 1) < share, "{at}"),
                    None => assert!(decided_by(300) < share, "{at}"),
                }
            }
        }
    }
}

#[test]
fn how_many_pairs_it_takes() {
    let ran = run(&["--compare", "--true", "80%"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("If it wins 80 % of the pairs"), "{}", ran.stdout);
    let flat = ran.stdout.replace('\n', " ");
    assert!(
        flat.contains("48.4 pairs on average. It has an answer with a chance of 80 % after 65 pairs, and with"),
        "{flat}"
    );
    assert_eq!(json(&["--compare", "--max-trials", "100"])["rates"][0]["true_rate"], 0.5);
}

#[test]
fn formats_and_the_picture() {
    let state = tempfile::tempdir().unwrap();
    let csv = ascertain(
        state.path(),
        &["power", "--at-least", "90%", "--max-trials", "500", "--format", "csv", "--svg", "plot.svg"],
    );
    assert!(csv.stdout.starts_with("true_rate,holds,refuted,undecided,expected_trials,trials_80,trials_95\n"));
    let svg = std::fs::read_to_string(state.path().join("plot.svg")).unwrap();
    assert!(svg.contains("<svg") && svg.contains("undecided"), "{svg}");
    let markdown = run(&["--at-least", "90%", "--max-trials", "500", "--format", "markdown"]).stdout;
    assert!(markdown.contains("| ---: |"), "{markdown}");
    assert_eq!(run(&["--at-least", "90%", "--max-trials", "500", "-q"]).stdout, "");
    let svg = run(&["--at-least", "90%", "--max-trials", "500", "--svg", "-"]).stdout;
    assert!(svg.starts_with("<?xml") && svg.trim_end().ends_with("</svg>"), "and nothing else: {svg}");
}

#[test]
fn questions_that_power_refuses() {
    for (arguments, message) in [
        (&["--true", "90%"][..], "--at-least"),
        (&["--at-least", "100%"], "strictly between 0 and 1"),
        (&["--at-least", "98"], "strictly between 0 and 1"),
        (&["--at-least", "98%", "--true", "100%"], "below 1, such as 0.01% or 99.99%"),
        (&["--at-least", "98%", "--true", "0"], "above 0 and below 1"),
        (&["--at-least", "98%", "--true", "1.5"], "strictly between 0 and 1"),
        (&["--at-least", "98%", "--true", "often"], "often"),
        (&["--at-least", "98%", "--error", "0"], "strictly between 0 and 1"),
        (&["--at-least", "98%", "--margin", "5%"], "must be above 0, and"),
        (&["--at-least", "98%", "--max-trials", "0"], "0 is not in"),
        (&["--at-least", "98%", "--max-trials", "9007199254740993"], "not in"),
        (&["--at-least", "50%", "--max-trials", "1000000000000"], "trials (--max-trials "),
        (&["--at-least", "98%", "--compare"], "--compare"),
        (&["--compare", "--margin", "5%"], "--margin"),
        (&["--at-least", "98%", "--max-trials", "100", "--svg", "no/such/plot.svg"], "no/such/plot.svg"),
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}{}", ran.stderr, ran.stdout);
        assert!(ran.stderr.contains(message), "{arguments:?} should say {message:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{arguments:?}");
    }
}
