//! The sentence about a claim, for each kind of claim and result.

use ascertain_engine::claim::{Bound, Effect, Hypothesis, Judging, Test};
use ascertain_engine::experiment::{Arm, Better, Point};
use ascertain_engine::finding::{AtError, EndedBy, Least, Reason, Unlike};
use ascertain_engine::outcome::{ClaimResult, Decided, Decision, Verdict};
use ascertain_engine::unit::Unit;
use ascertain_report::options::{Shown, TableLayout};
use ascertain_report::sentence;
use ascertain_report::terminal::{self, Style};

use crate::common::{self, arm, at_least_8, blank, counted, decided, measure, order, predicate, with_rate, with_ratio};

fn says(claim: &ClaimResult) -> String {
    sentence::claim(claim)
}

fn versus(metric: &str, unit: Unit, better: Better, scale: Effect, bound: Bound) -> ClaimResult {
    let mut measure = measure(metric, unit);
    measure.better = better;
    let (candidate, baseline) = (arm("a", &Point::default()), arm("b", &Point::default()));
    let test = Test::Versus { measure, candidate, baseline, scale, bound };
    counted(blank("x", "", Judging::Rate, test), Verdict::Holds, 20, 20)
}

#[test]
fn a_rate_is_a_share_of_the_time_it_was_measured() {
    let claim = predicate("slo", "", "curl", "wall <= 50 ms");
    let holds = counted(with_rate(claim, 0.99, 0.99003, 0.99976), Verdict::Holds, 2190, 2196);
    assert_eq!(
        says(&holds),
        "Holds: `wall <= 50 ms` was true of `curl` in 2190 of 2196 trials, 99.7 % (interval: over 99 to 99.98 %), so at \
         least 99 % of the time (error at most 0.1 %)."
    );
    let refuted = counted(with_rate(holds, 0.99, 0.9, 0.98), Verdict::Refuted, 940, 1000);
    assert!(says(&refuted).contains("in only 940 of 1000 trials"), "{}", says(&refuted));
    assert!(says(&refuted).contains(", so less than 99 % of the time (error"), "{}", says(&refuted));
}

#[test]
fn a_margin_is_part_of_what_was_shown() {
    let mut claim = counted(predicate("x", "", "a", "wall <= 1 s"), Verdict::Holds, 96, 100);
    (claim.rate_claimed, claim.asked.margin) = (0.95, Some(0.02));
    assert!(says(&claim).contains("so more than 93 % of the time (95 % less the margin of 2 %)"), "{}", says(&claim));
    claim.verdict = Verdict::Refuted;
    assert!(says(&claim).contains("so less than 97 % of the time (95 % plus the margin of 2 %)"), "{}", says(&claim));
}

#[test]
fn what_better_means_depends_on_the_metric() {
    let text = |metric, unit, better, scale, bound| says(&versus(metric, unit, better, scale, bound));
    use Better::{Higher, Lower};
    use Bound::{AtLeast, AtMost, Within};
    use Effect::{Difference, Ratio};
    for (text, expected) in [
        (
            text("time", Unit::Nanosecond, Lower, Ratio, AtLeast(1.5)),
            "`a` was at least 1.5 times as fast as `b` in all",
        ),
        (text("wall", Unit::Nanosecond, Lower, Ratio, AtLeast(1.0)), "`a` was at least as fast as `b` in all"),
        (text("user", Unit::Nanosecond, Lower, Ratio, AtMost(2.0)), "at most 2 times as fast as `b` in `user` in all"),
        (
            text("rate", Unit::BytePerSecond, Higher, Ratio, Within(0.9, 1.1)),
            "from 0.9 to 1.1 times as fast as `b` in `rate`",
        ),
        (
            text("memory_peak", Unit::Byte, Lower, Ratio, AtLeast(2.0)),
            "at least 2 times as small as `b` in `memory_peak`",
        ),
        (text("error", Unit::One, Lower, Ratio, AtLeast(2.0)), "at least 2 times as good as `b` in `error`"),
        (
            text("wall", Unit::Nanosecond, Lower, Difference, AtLeast(5e6)),
            "faster than `b` by at least 5 ms in all 20 trials",
        ),
        (text("share", Unit::One, Higher, Difference, Within(0.1, 0.2)), "better than `b` by 0.1 to 0.2 in `share`"),
        (text("error", Unit::One, Lower, Difference, Within(-1e-6, 1e-6)), "was within ±1e-6 of `b` in `error` in all"),
    ] {
        assert!(text.contains(expected), "{text}\nlacks {expected}");
    }
}

/// A sentence with "0.12 times" also has the inverse, because such a ratio alone is hard to interpret.
#[test]
fn a_ratio_says_whose_amount_it_is_of() {
    use Better::{Higher, Lower};
    let said = |metric: &str, better, [ratio, low, high]: [f64; 3]| {
        let unit = if metric == "error" { Unit::One } else { Unit::Nanosecond };
        let claim = versus(metric, unit, better, Effect::Ratio, Bound::AtLeast(1.5));
        let sentence = says(&with_ratio(claim, ratio, low, high));
        sentence.split_once(", at the median ").and_then(|(_, size)| Some(size.split_once(" (")?.0.to_string()))
    };
    for (metric, better, ratios, expected) in [
        ("time", Lower, [0.12, 0.11, 0.13], "it took 8.3 times as long"),
        ("time", Lower, [0.917, 0.909, 0.925], "it took 9.1 % longer"),
        ("error", Lower, [0.0625, 0.06, 0.065], "its `error` was 16.0 times as high"),
        ("throughput", Higher, [0.12, 0.11, 0.13], "its `throughput` was 88 % lower"),
    ] {
        assert_eq!(said(metric, better, ratios).as_deref(), Some(expected));
    }
    let fast = said("time", Lower, [1.25, 1.24, 1.26]);
    assert_eq!(fast.as_deref(), Some("1.25 times as fast"), "in the unit of the claimed ratio");
}

#[test]
fn figures_are_the_quantile_that_matches_the_rate() {
    let mut claim = with_ratio(at_least_8("x", ""), 7.2, 7.02, 7.41);
    claim = counted(claim, Verdict::Refuted, 0, 18);
    let ends = |claim: &ClaimResult, end: &str| {
        let text = says(claim);
        let wrong = if end.ends_with(')') { "; error at most 0.1 %." } else { " (error at most 0.1 %)." };
        assert!(text.ends_with(&format!("{end}{wrong}")), "{text}");
    };
    ends(&claim, ", at the median 7.2 times as fast (99.9 % interval: 7.0 to 7.4)");
    claim.rate_claimed = 0.98;
    ends(&claim, " in none of 18 trials, 0 % (too few trials for an interval), so less than 98 % of the time");
    let difference = versus("wall", Unit::Nanosecond, Better::Lower, Effect::Difference, Bound::AtLeast(5e6));
    ends(&with_ratio(difference, 5.2e6, 5.1e6, 5.3e6), ", at the median by 5.2 ms (99.9 % interval: 5.1 to 5.3)");
    let open = with_ratio(at_least_8("x", ""), 9.0, 8.5, f64::INFINITY);
    ends(&counted(open, Verdict::Holds, 18, 18), " times as fast (99.9 % interval: at least 8.5)");
}

#[test]
fn what_was_not_judged_says_why() {
    let mut claim = at_least_8("x", "");
    assert_eq!(says(&claim), "Undecided: no trial was completed.");
    claim.verdict = Verdict::Unavailable;
    claim.reasons = vec![common::reason("needs AVX-512 (avx512f)")];
    assert_eq!(says(&claim), "Unavailable: this machine can't measure it: needs AVX-512 (avx512f).");
    claim.verdict = Verdict::Failed;
    claim.reasons = vec![common::reason("wrong answer: 3 is not 4.")];
    assert_eq!(says(&claim), "Failed: wrong answer: 3 is not 4.");
    claim.verdict = Verdict::Deferred;
    claim.reasons = vec![];
    assert_eq!(says(&claim), "Deferred.");
    let undecided = counted(with_rate(at_least_8("x", ""), 0.5, 0.31, 0.79), Verdict::Undecided, 10, 18);
    assert!(
        says(&undecided)
            .ends_with("56 % (interval: 31 to 79 %). More trials are needed to decide whether this is true at least half of the time with an error of at most 0.1 %.")
    );
}

#[test]
fn what_has_no_chance_in_it_was_checked_once() {
    let mut claim = counted(predicate("x", "", "kahan", "error <= 1"), Verdict::Refuted, 0, 1);
    claim.asked.judging = Judging::Exact;
    assert_eq!(
        says(&claim),
        "Refuted: `error <= 1` is not true of `kahan`; it is the same in every trial, so it was checked once."
    );
}

#[test]
fn several_conditions_of_a_claim_are_one() {
    let mut claim = counted(predicate("x", "", "a", "wall <= 1 s"), Verdict::Holds, 20, 20);
    claim.asked.tests.extend(at_least_8("x", "").asked.tests);
    assert!(says(&claim).starts_with("Holds: each of its 2 conditions was true in all 20 trials"), "{}", says(&claim));
}

#[test]
fn comparisons_name_both_commands() {
    let faster = decided(with_ratio(order("B", "A"), 1.0521, 1.0469, 1.0579), Decision::Faster, 41, 43, 1);
    assert_eq!(
        says(&faster),
        "`B` is faster than `A`: it took 5.0 % less time (99.9 % interval: 4.5 to 5.5 %) and won 41 of 43 pairs, 1 tie (error at most 0.1 %)."
    );
    let slower = decided(with_ratio(order("B", "A"), 0.5, 0.4, 0.625), Decision::Slower, 1, 40, 0);
    let text = says(&slower);
    assert!(
        text.starts_with(
            "`B` is slower than `A`: it took 2.0 times as long (99.9 % interval: 1.6 to 2.5) and lost 39 of 40 pairs"
        ),
        "{text}"
    );
    assert!(!text.contains("from all"), "{text}");
    let decisive = Decided { trials: 26, successes: 0, ties: 0, unknown: 0 };
    let text = says(&ClaimResult { decided: Some(decisive), ..slower });
    let longer = "(99.9 % interval: 1.6 to 2.5). It lost all of the first 26 pairs; then the answer was certain (error at most 0.1 %). \
         The factor 2.0 is from all 40 pairs.";
    assert!(text.ends_with(longer), "{text}");
    let skewed = decided(with_ratio(order("B", "A"), 1.0, 0.9, 1.1), Decision::Faster, 15, 43, 28);
    assert!(says(&skewed).starts_with("`B` is faster than `A`: it won 15 of 43 pairs, 28 ties ("), "{}", says(&skewed));
    let open = decided(with_ratio(order("B", "A"), 1.002, 0.991, 1.013), Decision::Undecided, 21, 43, 2);
    assert_eq!(
        says(&open),
        "Not yet clear which is faster: `B` won 21 of 43 pairs, 2 ties against `A`: it took about the same time (99.9 % interval: 1.3 % \
         less time to 0.91 % longer)."
    );
    let bounded = ClaimResult { difference_below: Some(0.0127), ..open };
    assert_eq!(
        says(&bounded),
        "No difference found between `B` and `A`: if there is one, it is below 1.3 % (error at most 0.1 %, if the \
         speed did not drift during the run). `B` won 21 of 43 pairs, 2 ties."
    );
}

/// A ratio below 1 is often misread, so the sentence also has the difference: "0.92 times as fast" is 9 % longer, not 8
/// %.
#[test]
fn what_a_ratio_is_in_time_stands_beside_it() {
    let text =
        |ratio, low, high, decision| says(&decided(with_ratio(order("B", "A"), ratio, low, high), decision, 0, 14, 0));
    let slower = text(0.92, 0.87, 0.93, Decision::Slower);
    assert!(slower.contains(": it took 8.7 % longer (99.9 % interval: 7.5 to 15 %) and lost all 14 pairs"), "{slower}");
    let long = text(0.017, 0.016, 0.018, Decision::Slower);
    assert!(long.contains(": it took 59 times as long (99.9 % interval: 56 to 62) and lost"), "{long}");
    let claim = decided(with_ratio(order("B", "A"), 0.017, 0.016, 0.018), Decision::Slower, 0, 14, 0);
    let shown = Shown { all: true, only: Vec::new() };
    let table =
        terminal::checked(&common::outcome(vec![], vec![claim]), &shown, None, &Style { color: false, width: 140 });
    assert!(table.contains("59 times as long (99.9 % interval: 56 to 62)"), "{table}");
    let fast = text(2.5, 2.3, 2.8, Decision::Faster);
    assert!(fast.contains(": it was 2.5 times as fast (99.9 % interval: 2.3 to 2.8) and won 0 of 14"), "{fast}");
    // The interval in a table cell has signs if it includes 0 %.
    let cells = |ratio, low, high, decision| {
        let mut run = common::compare();
        run.claims.truncate(1);
        let claim = with_ratio(run.claims[0].clone(), ratio, low, high);
        run.claims = vec![decided(claim, decision, 10, 20, 0)];
        terminal::compare_table(&run, &TableLayout::default(), &Style { color: false, width: 160 })
    };
    let wide = cells(0.8, 0.7, 1.1, Decision::Undecided);
    assert!(wide.contains(" 25 % longer      -9 to +43 %  undecided"), "{wide}");
    let wide = cells(1.1, 0.95, 1.25, Decision::Undecided);
    assert!(wide.contains(" 9 % less time      -20 to +5 %  undecided"), "{wide}");
    let long = cells(0.25, 0.2, 0.3125, Decision::Slower);
    assert!(long.contains(" 4.0 times as long  3.2 to 5.0 times  slower"), "{long}");
    // The sizes of differences may decide an answer before the interval of the ratio excludes 1.
    let early = text(0.92, 0.8, 1.1, Decision::Slower);
    assert!(early.contains(": it took 8.7 % longer and lost all 14 pairs (error"), "{early}");
    let unsettled = " It is certainly slower, but by how much is not known yet (between 9.1 % less time and 25 % longer); \
                     add `--precision 5%` (about 4 s).";
    assert!(early.ends_with(unsettled) && !slower.contains("certainly"), "{early}");
    let slow = ClaimResult {
        elapsed_ns: 10_000_000_000,
        ..decided(with_ratio(order("B", "A"), 0.92, 0.8, 1.1), Decision::Slower, 0, 14, 0)
    };
    assert!(says(&slow).ends_with("; add `--precision 5% --max-time 3min` (about 2 min)."), "{}", says(&slow));
    let untimed = ClaimResult { elapsed_ns: 0, ..slow };
    assert!(says(&untimed).ends_with("; add `--precision 5%`."), "{}", says(&untimed));
    let mut wide = decided(with_ratio(order("B", "A"), 0.8, 0.02, 1.2), Decision::Slower, 3, 20, 0);
    assert!(says(&wide).contains("not known yet (between 0.83 and 50 times as long)"), "{}", says(&wide));
    (wide.ratio_low, wide.ratio_high) = (Some(0.7), Some(0.9));
    (wide.ratio_min, wide.ratio_max) = (Some(0.5), Some(0.95));
    let pairs = "25 % longer (99.9 % interval: 11 to 43 %; single pairs: 5.3 to 100 %)";
    assert!(says(&wide).contains(pairs), "{}", says(&wide));
    let mut few = decided(with_ratio(order("B", "A"), 0.27, 0.0, 0.0), Decision::Slower, 0, 15, 0);
    (few.ratio_low, few.ratio_high, few.ratio_min, few.ratio_max) = (None, None, Some(0.2), Some(0.4));
    assert!(
        says(&few).contains(": it took 3.7 times as long (single pairs: 2.5 to 5.0) and lost all 15"),
        "{}",
        says(&few)
    );
    let mut memory = decided(with_ratio(order("B", "A"), 0.92, 0.87, 0.93), Decision::Slower, 0, 14, 0);
    let Test::Versus { measure, .. } = &mut memory.asked.tests[0] else { unreachable!() };
    (measure.metric, measure.unit) = ("memory_peak".into(), Unit::Byte);
    assert!(
        says(&memory).contains(": 8.7 % more (99.9 % interval: 7.5 to 15 %); it lost all 14 pairs"),
        "{}",
        says(&memory)
    );
}

#[test]
fn what_answers_rest_on_is_said_for_those_that_there_are() {
    let explained = |claims: Vec<ClaimResult>| sentence::explained(&common::outcome(Vec::new(), claims)).join("\n");
    let faster = decided(with_ratio(order("B", "A"), 1.05, 1.04, 1.06), Decision::Faster, 41, 43, 0);
    let by_signs = explained(vec![faster.clone()]);
    assert!(
        by_signs.contains("a chance of one half") && by_signs.contains("wrong with a chance of at most 0.1 %"),
        "{by_signs}"
    );
    assert!(!by_signs.contains("slightly too far in the direction of the verdict"), "more were measured: {by_signs}");
    assert!(!by_signs.contains("With a margin") && !by_signs.contains("A verdict on a rate is"), "{by_signs}");
    let ended = ClaimResult { decided: Some(faster.decisive()), ..faster.clone() };
    assert!(explained(vec![ended]).contains("slightly too far in the direction of the verdict"));
    let mut within = faster;
    within.asked.margin = Some(0.05);
    let by_interval = explained(vec![within]);
    assert!(
        by_interval.contains("assumes that trials are alike. An answer without --margin does not"),
        "{by_interval}"
    );
    assert!(!by_interval.contains("a chance of one half"), "{by_interval}");
    let slo = counted(predicate("slo", "", "curl", "wall <= 50 ms"), Verdict::Holds, 2190, 2196);
    assert!(explained(vec![slo]).starts_with("A verdict on a rate is about the measured trials"));
    assert_eq!(explained(vec![at_least_8("x", "")]), "", "nothing was judged");
}

#[test]
fn a_failure_is_named_once() {
    let mut claim = order("B", "sleep {t}");
    let Test::Versus { baseline, .. } = &mut claim.asked.tests[0] else { unreachable!() };
    baseline.point = Point::default().with("t", 5);
    claim.verdict = Verdict::Failed;
    let failed = |arm: Arm, line: &str, how: &str| {
        vec![Reason::Failed { arm: Some(arm), is_wrong: false, line: Some(line.into()), how: how.into() }]
    };
    let arm = Arm { variant: "sleep {t}".into(), point: Point::default().with("t", 5) };
    claim.reasons = failed(arm, "sleep 5", "command `sleep 5` ended with exit code 1");
    assert_eq!(says(&claim), "Failed: command `sleep 5` ended with exit code 1.");
    claim.reasons =
        failed(Arm { variant: "B".into(), point: Point::default() }, "make", "command `make` ended with exit code 1");
    assert_eq!(says(&claim), "Failed: B: command `make` ended with exit code 1.");
}

#[test]
fn levels_of_one_command_are_named_without_it() {
    let mut claim = decided(with_ratio(order("sleep {t}", "sleep {t}"), 0.5, 0.4, 0.6), Decision::Slower, 0, 20, 0);
    let Test::Versus { candidate, baseline, .. } = &mut claim.asked.tests[0] else { unreachable!() };
    candidate.point = Point::default().with("t", 2).with("beside", 1);
    baseline.point = Point::default().with("t", 1).with("beside", 0);
    let text = says(&claim);
    assert!(text.starts_with("`beside=1 t=2` is slower than `beside=0 t=1`"), "{text}");
}

#[test]
fn a_comparison_at_one_of_several_inputs_says_which() {
    let mut claim = decided(with_ratio(order("chunks", "loop"), 2.0, 1.9, 2.1), Decision::Faster, 20, 20, 0);
    let Test::Versus { candidate, baseline, .. } = &mut claim.asked.tests[0] else { unreachable!() };
    candidate.point = Point::default().with("elements", 100);
    baseline.point = candidate.point.clone();
    let text = says(&claim);
    assert!(text.starts_with("`chunks (elements=100)` is faster than `loop`:"), "{text}");
    let Test::Versus { baseline, .. } = &mut claim.asked.tests[0] else { unreachable!() };
    baseline.variant = "loop {elements}".into();
    let text = says(&claim);
    assert!(text.starts_with("`chunks` is faster than `loop 100`:"), "{text}");
}

#[test]
fn a_printed_metric_is_named_once_with_its_size() {
    let compared = |metric: &str, unit, better| {
        let mut claim = decided(with_ratio(order("b", "a"), 1.25, 1.2, 1.3), Decision::Faster, 20, 20, 0);
        let Test::Versus { measure: by, .. } = &mut claim.asked.tests[0] else { unreachable!() };
        *by = measure(metric, unit);
        by.better = better;
        claim
    };
    let claim = compared("throughput", Unit::BytePerSecond, Better::Higher);
    let expected = "`b` is faster than `a`: its `throughput` was 25 % higher (99.9 % interval: 20 to 30 %); it won all 20 pairs (error at \
                    most 0.1 %).";
    assert_eq!(says(&claim), expected);
    let text = says(&compared("p99", Unit::Nanosecond, Better::Lower));
    assert!(
        text.starts_with("`b` is faster than `a`: its `p99` was 20 % lower (99.9 % interval: 17 to 23 %); "),
        "{text}"
    );
    let text = says(&compared("score", Unit::One, Better::Higher));
    assert!(
        text.starts_with("`b` is better than `a`: its `score` was 25 % higher (99.9 % interval: 20 to 30 %); "),
        "{text}"
    );
    // The size is left out if the median ratio contradicts the answer from the pairs.
    let text = says(&with_ratio(compared("score", Unit::One, Better::Higher), 0.99, 0.98, 1.0));
    assert!(text.starts_with("`b` is better than `a` in `score`: it won all 20 pairs"), "{text}");
}

/// "Too early" is first, with the number of required trials and the options that help. The measured values follow.
#[test]
fn what_is_too_early_to_tell_says_so_first() {
    let early = |claim: ClaimResult, least: Least, most_trials| {
        says(&ClaimResult {
            reasons: vec![Reason::TooEarly {
                least,
                most_trials,
                is_interrupted: false,
                is_shared: false,
                ended_by: EndedBy::Limit,
                run_ns: None,
            }],
            ..claim
        })
    };
    let mut pairs = decided(with_ratio(order("B", "A"), 1.1, 0.0, 0.0), Decision::Undecided, 3, 3, 0);
    (pairs.ratio_low, pairs.ratio_high) = (None, None);
    let at_error = Some(AtError { error: 0.05, trials: 7 });
    let least = Least { verdict: None, trials: 13, takes_ns: Some(84e9), at_error };
    assert_eq!(
        early(pairs.clone(), least, None),
        "Too early to tell which is faster: at least 13 pairs are needed, about 84 s; use `--max-time 2min`, or \
         `--error 0.05` (7 pairs). So far `B` won all 3 pairs against `A`: it took 9.1 % less time."
    );
    let within = ClaimResult { asked: Hypothesis { margin: Some(0.05), ..pairs.asked.clone() }, ..pairs.clone() };
    let limited = early(within, least, Some(3));
    let start = "Too early to tell whether they differ by more than 5 %: at least 13 pairs are needed, about 84 s, but \
                 only 3 were allowed. So far `B` won";
    assert!(limited.starts_with(start), "{limited}");
    // A user who pressed Ctrl-C does not want to wait longer, so the sentence recommends no `--max-time`.
    let interrupted = Reason::TooEarly {
        least,
        most_trials: None,
        is_interrupted: true,
        is_shared: false,
        ended_by: EndedBy::Limit,
        run_ns: None,
    };
    let interrupted = says(&ClaimResult { reasons: vec![interrupted], ..pairs.clone() });
    assert!(interrupted.contains("needed, about 84 s, but the run was interrupted. So far"), "{interrupted}");
    let gate = early(pairs.clone(), Least { takes_ns: Some(7.9e9), ..least }, None);
    assert!(gate.contains("about 7.9 s; use `--max-time 10s`, or `--error 0.05` (7 pairs). So far"), "{gate}");
    // The sentence recommends no time if the run ended for another reason, or if the needed time is unknown.
    for takes_ns in [Some(1e9), None] {
        let ended = early(pairs.clone(), Least { takes_ns, ..least }, None);
        assert!(ended.contains("; allow more time with --max-time. So far"), "{ended}");
    }
    let rate =
        counted(with_rate(predicate("slo", "", "curl", "wall <= 50 ms"), 1.0, 0.14, 1.0), Verdict::Undecided, 5, 5);
    let least = Least { verdict: Some(Verdict::Holds), trials: 731, takes_ns: Some(731e9), at_error: None };
    let is_shared = Reason::TooEarly {
        least,
        most_trials: None,
        is_interrupted: false,
        is_shared: true,
        ended_by: EndedBy::Limit,
        run_ns: None,
    };
    let shared = says(&ClaimResult { reasons: vec![is_shared], ..rate.clone() });
    let alone = "to show that it holds, about 12 min for this claim alone; other claims share the time, so use more than \
                 `--max-time 20min`. So far";
    assert!(shared.contains(alone), "{shared}");
    // All claims of a run recommend the same time: the time that they need together.
    let together = |takes_ns, run_ns| {
        let least = Least { takes_ns: Some(takes_ns), ..least };
        let (is_interrupted, is_shared, ended_by, run_ns) = (false, true, EndedBy::Limit, Some(run_ns));
        let early = Reason::TooEarly { least, most_trials: None, is_interrupted, is_shared, ended_by, run_ns };
        let long = Reason::TooLong { needed_ns: takes_ns, trials: 731, at_error: None, run_ns };
        let deferred = ClaimResult { verdict: Verdict::Deferred, reasons: vec![long], ..rate.clone() };
        [says(&ClaimResult { reasons: vec![early], ..rate.clone() }), says(&deferred)]
    };
    for text in together(731e9, 1e12) {
        assert!(text.contains("12 min; for all claims, use `--max-time 30min` or more. So far"), "{text}");
    }
    for text in together(731e9, 732e9) {
        assert!(text.contains("12 min; use `--max-time 20min` or more. So far"), "{text}");
    }
    let rate = early(rate, least, None);
    let start = "Undecided: too early to tell: at least 731 trials are needed to show that it holds, about 12 min; use \
                 `--max-time 20min` or more. So far `wall <= 50 ms` was true of `curl` in all 5 trials, 100 % (";
    assert!(rate.starts_with(start), "{rate}");
}

/// `slo --for` refuses `--max-time`, so its sentences recommend `--for`. More time does not help a command that ends.
#[test]
fn a_long_measurement_that_is_too_short_recommends_its_own_option() {
    let claim =
        counted(with_rate(predicate("slo", "", "curl", "wall <= 50 ms"), 1.0, 0.14, 1.0), Verdict::Undecided, 5, 5);
    let text = |takes_ns, ended_by| {
        let least = Least { verdict: Some(Verdict::Holds), trials: 731, takes_ns, at_error: None };
        let reason = Reason::TooEarly {
            least,
            most_trials: None,
            is_interrupted: false,
            is_shared: false,
            ended_by,
            run_ns: None,
        };
        says(&ClaimResult { reasons: vec![reason], ..claim.clone() })
    };
    let slow = text(Some(731e9), EndedBy::Duration);
    assert!(slow.contains("needed to show that it holds, about 12 min; use `--for 20min` or more. So far"), "{slow}");
    let unknown = text(None, EndedBy::Duration);
    assert!(unknown.contains("; measure for a longer time with --for. So far"), "{unknown}");
    let early = text(Some(731e9), EndedBy::Early);
    assert!(early.contains("about 12 min, but the run ended before that. So far"), "{early}");
    for text in [slow, unknown, early] {
        assert!(!text.contains("--max-time"), "{text}");
    }
}

/// The verdict comes from the first trials. The share, its interval, the failed conditions and the median are about all.
#[test]
fn the_figures_of_all_trials_have_a_sentence_of_their_own() {
    let claim = with_rate(predicate("slo", "", "curl", "wall <= 50 ms"), 0.95, 0.98, 0.995);
    let claim = counted(claim, Verdict::Holds, 99_000, 100_000);
    let first = Decided { trials: 152, successes: 151, ties: 0, unknown: 0 };
    let went_on = ClaimResult { decided: Some(first), median: Some(1e6), unknown: 3, ..claim.clone() };
    assert_eq!(
        says(&went_on),
        "Holds: `wall <= 50 ms` was true of `curl` in 151 of the first 152 trials, so at least 95 % of the time (error \
         at most 0.1 %). This was true in 99,000 of all 100,000 trials (3 left open), 99.0 % (interval: 98.0 to \
         99.5 %). Its median time in all trials was 1.000 ms."
    );
    let ended = says(&claim);
    let figures = "in 99,000 of 100,000 trials, 99.0 % (interval: 98.0 to 99.5 %), so at least 95 %";
    assert!(ended.contains(figures), "{ended}");
}

#[test]
fn a_ratio_that_nothing_bounds_yet_has_two_digits() {
    let mut claim = decided(with_ratio(order("B", "A"), 0.9157, 0.0, 0.0), Decision::Undecided, 1, 3, 0);
    (claim.ratio_low, claim.ratio_high) = (None, None);
    let text = says(&claim);
    assert!(text.ends_with("against `A`: it took 9.2 % longer."), "{text}");
}

#[test]
fn answers_from_an_interval_are_labelled() {
    let margin = |mut claim: ClaimResult| {
        claim.asked.margin = Some(0.05);
        says(&claim)
    };
    let same = margin(decided(with_ratio(order("B", "A"), 1.002, 0.991, 1.013), Decision::Same, 21, 43, 0));
    assert!(
        same.starts_with(
            "`B` is as fast as `A` within 5 %: it took about the same time (99.9 % interval: 1.3 % less time to \
             0.91 % longer); error"
        ),
        "{same}"
    );
    let faster = margin(decided(with_ratio(order("B", "A"), 1.1, 1.06, 1.14), Decision::Faster, 43, 43, 0));
    let start =
        "`B` is faster than `A` by more than 5 %: it took 9.1 % less time (99.9 % interval: 5.7 to 12 %); error";
    assert!(faster.starts_with(start), "{faster}");
    for text in [&same, &faster] {
        assert!(text.ends_with("at most 0.1 %, if the speed did not drift during the run."), "{text}");
    }
}

#[test]
fn signs_of_unlike_trials_are_a_warning() {
    let mut claim = counted(at_least_8("x", ""), Verdict::Holds, 20, 20);
    assert_eq!(sentence::warning(&claim), None);
    claim.unlike = vec![Unlike::Drifts { early: 0.25, late: 0.75 }, Unlike::Neighbours { correlation: 0.5 }];
    let warning = sentence::warning(&claim).unwrap();
    let [changed, similar] = [
        "Careful: the results changed during the run: the claim was true in 25.0 % of the first half of the trials, and \
         75.0 % of the second half; neighbouring",
        "half; neighbouring trials tend to be similar (lag-1 correlation 0.50). The verdict is valid for the trials that \
         were measured,",
    ];
    assert!(warning.starts_with(changed) && warning.contains(similar), "{warning}");
}

#[test]
fn an_answer_from_few_pairs_says_what_they_cannot_show() {
    let mut claim = decided(order("b", "a"), Decision::Slower, 0, 14, 0);
    claim.undiagnosed = true;
    let said = sentence::undiagnosed(std::slice::from_ref(&claim)).unwrap();
    assert!(
        said.starts_with("14 pairs are too few to notice a lasting disturbance") && said.contains("`--min-runs 40`"),
        "{said}"
    );
    let mut bench = common::functions().claims;
    bench.iter_mut().for_each(|claim| claim.undiagnosed = true);
    let said = sentence::undiagnosed(&bench).unwrap();
    assert!(said.ends_with("The check for that needs 40 pairs."), "a bench has no such option: {said}");
    let undecided = ClaimResult { verdict: Verdict::Undecided, ..claim.clone() };
    let enough = ClaimResult { undiagnosed: false, ..claim };
    assert_eq!(sentence::undiagnosed(&[undecided, enough]), None);
}

/// The words are "less" and "more" for resources of commands, and "fewer" and "more" for counters.
#[test]
fn what_is_taken_beside_time_is_said_by_its_amount() {
    let by = |metric: &str, decision, ratio: [f64; 3], margin| {
        let mut claim = order("new", "old");
        if let Test::Versus { measure: by, .. } = &mut claim.asked.tests[0] {
            *by = measure(metric, Unit::One);
        }
        claim.asked.margin = margin;
        let [ratio, low, high] = ratio;
        says(&decided(with_ratio(claim, ratio, low, high), decision, 30, 40, 0))
    };
    let less = by("memory_peak", Decision::Faster, [1.25, 1.2, 1.3], None);
    assert!(
        less.starts_with("`new` uses less memory than `old`: 20 % less (99.9 % interval: 17 to 23 %); it won 30 of 40"),
        "{less}"
    );
    let more = by("user", Decision::Slower, [0.8, 0.78, 0.82], None);
    assert!(
        more.starts_with("`new` uses more user time than `old`: 25 % more (99.9 % interval: 22 to 28 %); it lost 10"),
        "{more}"
    );
    let twice = by("page_faults", Decision::Slower, [0.4, 0.38, 0.42], None);
    assert!(
        twice.starts_with("`new` has more page faults than `old`: 2.5 times as many (99.9 % interval: 2.4 to 2.6); "),
        "{twice}"
    );
    let open = by("cycles", Decision::Undecided, [1.01, 0.9, 1.2], None);
    assert!(
        open.contains(
            "`new` won 30 of 40 pairs against `old` in cycles: 1 % fewer (99.9 % interval: 17 % fewer to 11 % more)"
        ),
        "{open}"
    );
    assert!(open.starts_with("Not yet clear which takes fewer cycles: "), "{open}");
    let same = by("instructions", Decision::Same, [1.0, 0.98, 1.01], Some(0.05));
    assert!(
        same.starts_with("`new` executes as many instructions as `old` within 5 %: about the same number ("),
        "{same}"
    );
    let not_more = by("system", Decision::NotSlower, [1.2, 1.1, 1.3], Some(0.05));
    assert!(
        not_more.starts_with("`new` does not use more system time than `old` by more than 5 %: 17 % less ("),
        "{not_more}"
    );
    // Zeros can be ordered, but their ratio is unknown.
    let mut zeros = order("new", "old");
    if let Test::Versus { measure: by, .. } = &mut zeros.asked.tests[0] {
        *by = measure("cpu_migrations", Unit::One);
    }
    let zeros = says(&decided(zeros, Decision::Faster, 14, 14, 0));
    assert!(zeros.starts_with("`new` has fewer CPU migrations than `old`: it won all 14 pairs ("), "{zeros}");
}

/// The percentage in this claim, "only 1.3 % of the races", is a value of the metric. It is not the rate of successful
/// trials, which may be 100 %. Both numbers in one sentence would be confusing, so the sentence has only the metric.
#[test]
fn a_figure_here_is_of_what_the_claim_speaks_of() {
    let claim = |condition: &str, median: f64, successes: u64, verdict| {
        let mut claim = predicate("races.few-won", "The network won only 1.3 % of the races", "race", condition);
        claim.median = Some(median);
        counted(with_rate(claim, 0.5, 0.4, 1.0), verdict, successes, 22)
    };
    let holds = claim("network_won <= 1.3 %", 0.0041, 22, Verdict::Holds);
    assert!(says(&holds).ends_with(" Its median `network_won` was 0.41 %."), "{}", says(&holds));
    // A count is not written in percent.
    let counted = claim("network_won >= 10", 12.0, 22, Verdict::Holds);
    assert!(says(&counted).ends_with(" Its median `network_won` was 12."), "{}", says(&counted));
    // On a screen of many claims, the value is that of the metric as well.
    let mut many = common::many();
    many.claims.push(claim("network_won <= 1.3 %", 0.031, 3, Verdict::Refuted));
    let screen = |width| terminal::checked(&many, &Shown::default(), None, &Style { color: false, width });
    let line = |width| screen(width).lines().find(|line| line.contains("3.1 %, 14 % true")).map(str::to_string);
    assert!(line(80).is_some_and(|line| line.contains("  network_won <= 1.3 %  ")), "{}", screen(80));
    assert!(line(40).is_some_and(|line| line.ends_with("network_won <= 1.3 %")), "{}", screen(40));
}

#[test]
fn what_is_deferred_says_what_it_takes_and_what_was_seen() {
    let mut deferred = with_ratio(at_least_8("slow", ""), 6.1, 6.0, 6.2);
    (deferred.ratio_low, deferred.ratio_high) = (None, None);
    let mut deferred = counted(deferred, Verdict::Deferred, 0, 1);
    deferred.reasons = vec![common::too_long(63e9)];
    let text = says(&deferred);
    let why = "Deferred: a verdict needs at least 15 trials, 63 s; use `--max-time 90s` or more, or `--error \
               0.05` (9 trials). So far `kahan-avx512 (accumulators=4)` was at least 8 times as fast as `naive \
               (accumulators=1)` in 0 of 1 trial, at the median 6.1 times as fast";
    assert!(text.starts_with(why), "{text}");
    let mut run = common::check();
    run.claims = vec![deferred];
    let text = terminal::checked(&run, &Shown::default(), None, &Style { color: false, width: 100 });
    assert!(!text.contains("152.4 µs"), "a table has more of it: {text}");
    run.points.iter_mut().for_each(|point| point.n = 1);
    let text = terminal::checked(&run, &Shown::default(), None, &Style { color: false, width: 100 });
    assert!(text.contains("152.4 µs") && text.contains("kahan-avx512"), "the medians: {text}");
    assert!(!text.contains("23.12 µs") && !text.contains("fill_rate"), "and no others: {text}");
    run.claims[0].trials = 0;
    let text = terminal::checked(&run, &Shown::default(), None, &Style { color: false, width: 100 });
    assert!(!text.contains("So far") && !text.contains("152.4 µs"), "{text}");
}

#[test]
fn what_did_not_fit_is_said_once_with_what_it_takes() {
    let mut many = common::many();
    let mut another = at_least_8("sum.huge", "");
    (another.verdict, another.reasons) = (Verdict::Deferred, vec![common::too_long(12e9)]);
    let mut untried = at_least_8("sum.untried", "");
    untried.verdict = Verdict::Deferred;
    untried.reasons = vec![Reason::TimeUp { was_tried: false, all_tried_ns: Some(61e9) }];
    many.claims.extend([another, untried]);
    let text = terminal::checked(&many, &Shown::default(), None, &Style { color: false, width: 500 });
    let line = "do not fit in the time: 2 claims, sum.large, sum.huge; alone each needs 12 s to 3 min 12 s; use more \
                than `--max-time 4min`\n";
    assert!(text.contains(line), "{text}");
    let line = "was tried; trying all arms takes about 61 s: use `--max-time 3min` or more: sum.untried\n";
    assert!(text.contains(line), "{text}");
}

/// An interrupted pair is not counted as won or lost, and the sentence mentions the consequence.
#[test]
fn a_pair_that_was_cut_off_has_no_winner() {
    let mut claim = decided(order("b", "a"), Decision::Undecided, 0, 2, 0);
    let left_open = Reason::LeftOpen { trials: 1, all: 2, has_met_limit: false };
    let least = Least { verdict: None, trials: 13, takes_ns: Some(26e9), at_error: None };
    let early = Reason::TooEarly {
        least,
        most_trials: None,
        is_interrupted: true,
        is_shared: false,
        ended_by: EndedBy::Limit,
        run_ns: None,
    };
    (claim.unknown, claim.reasons) = (1, vec![early, left_open]);
    let text = says(&claim);
    assert!(text.contains("So far `b` won 0 of 1 pair against `a`."), "{text}");
    assert!(text.ends_with(" The interrupted trial has no result and counts against both possible answers."), "{text}");
}

#[test]
fn a_slo_names_its_command_once_and_shows_every_exit_code() {
    let mut run = common::slo();
    let mut exit = run.points[0].clone();
    (exit.metric, exit.unit) = ("exit".into(), Unit::One);
    (exit.median, exit.min, exit.max) = (Some(0.0), Some(0.0), Some(7.0));
    run.points.push(exit);
    let text = terminal::slo(&run, &Style { color: false, width: 160 });
    assert_eq!(text.matches("localhost:8080").count(), 1, "{text}");
    assert!(text.contains("0 to 7"), "{text}");
}

#[test]
fn a_table_of_many_rows_is_folded_to_those_that_claims_are_about_and_the_best() {
    let mut run = common::check();
    let point = run.points[0].clone();
    run.points.extend((0..30).map(|number| {
        let mut other = point.clone();
        (other.arm.variant, other.median) = (format!("other-{number:02}"), Some(1e5 - 1e3 * f64::from(number)));
        other
    }));
    let style = Style { color: false, width: 100 };
    let text = terminal::points_screen(&run, &style);
    let rows: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    // The remaining rows keep their order: those of the claims' arms, and of the five fastest arms.
    let kept = ["naive", "kahan-avx512", "kahan-avx512", "other-27", "other-28", "other-29"];
    let is_row = |row: &&&str| kept.contains(row) || row.starts_with("other");
    assert_eq!(rows.iter().filter(is_row).copied().collect::<Vec<_>>(), kept, "{text}");
    assert!(text.contains("… and 27 more rows; `--all` prints them.\n"), "{text}");
    run.claims.clear();
    assert_eq!(terminal::points_screen(&run, &style), terminal::points_table(&run, &style));
}

#[test]
fn a_comparison_is_printed_without_claims_and_verdicts() {
    let style = Style { color: false, width: 160 };
    let printed = |all, only: &[Verdict]| {
        terminal::checked(&common::compare(), &Shown { all, only: only.to_vec() }, None, &style)
    };
    let all = printed(true, &[]);
    assert!(all.contains("is slower than") && all.contains("vs. reference"), "{all}");
    for text in [all, printed(false, &[Verdict::Refuted])] {
        assert!(!text.contains("laim") && !text.contains("erdict") && !text.contains("efuted"), "{text}");
    }
}
