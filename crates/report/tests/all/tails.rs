//! The sentences about the tails of compared commands.

use ascertain_engine::claim::Test;
use ascertain_engine::experiment::Better;
use ascertain_engine::outcome::{ClaimResult, Decision, TailDecision, TailHint, TailResult};
use ascertain_engine::unit::Unit;
use ascertain_report::options::TableLayout;
use ascertain_report::terminal::{self, Style};
use ascertain_report::{json, markdown};

use crate::common::{self, decided, order};

/// A tail of 712 pairs, in which the candidate was beyond the threshold 21 times and the reference 3 times.
fn tail(decision: TailDecision) -> TailResult {
    TailResult {
        level: 0.99,
        decision,
        is_withdrawn: false,
        error: 0.001 / 3.0,
        pairs_before: 250,
        pairs: 712,
        decided: (decision != TailDecision::Undecided).then_some(640),
        candidate_beyond: 21,
        reference_beyond: 3,
        only_candidate: 20,
        only_reference: 2,
        unknown: 0,
        threshold_low: Some(8.1e6),
        threshold_high: Some(8.4e6),
        log_e_more: 8.1,
        log_e_less: -3.0,
    }
}

fn claim(tails: Vec<TailResult>) -> ClaimResult {
    ClaimResult { tails, ..decided(order("B", "A"), Decision::Faster, 900, 962, 0) }
}

fn says(claim: ClaimResult) -> String {
    terminal::tails(&common::outcome(Vec::new(), vec![claim]), &Style { color: false, width: 1000 })
}

#[test]
fn an_answer_about_a_tail_says_what_was_tested() {
    assert_eq!(
        says(claim(vec![tail(TailDecision::MoreOften)])),
        "Tail 99 %: `B` was above the threshold more often than `A` in these trials (2.9 % against 0.42 %; thresholds \
         8.1 to 8.4 ms; error at most 0.034 %).\n"
    );
    let same = TailResult { threshold_high: Some(8.1e6), ..tail(TailDecision::LessOften) };
    assert_eq!(
        says(claim(vec![same])),
        "Tail 99 %: `B` was above the threshold less often than `A` in these trials (2.9 % against 0.42 %; threshold \
         8.100 ms; error at most 0.034 %).\n"
    );
}

/// For a metric whose higher values are better, the tail is at the lower end.
#[test]
fn a_tail_of_a_rate_is_below_its_threshold() {
    let mut claim = claim(vec![tail(TailDecision::MoreOften)]);
    let [Test::Versus { measure, .. }] = claim.asked.tests.as_mut_slice() else { panic!("a comparison") };
    (measure.metric, measure.unit, measure.better) = ("rate".into(), Unit::BytePerSecond, Better::Higher);
    let text = says(claim);
    assert!(text.starts_with("Tail 99 %: `B` was below the threshold more often than `A` in `rate` in"), "{text}");
    assert!(text.contains("thresholds 8.1 to 8.4 MB/s"), "{text}");
}

#[test]
fn a_tail_without_an_answer_has_its_reason() {
    let open = tail(TailDecision::Undecided);
    assert_eq!(
        says(claim(vec![TailResult { unknown: 2, ..open.clone() }])),
        "Tail 99 %: undecided after 712 pairs (2 cut off). `B` was above the threshold in 2.9 % of them, `A` in 0.42 % \
         (thresholds 8.1 to 8.4 ms).\n"
    );
    let withdrawn = says(claim(vec![TailResult { is_withdrawn: true, ..open.clone() }]));
    let why = "no answer after 712 pairs: the pairs after the first answer contradict it. `B` was";
    assert!(withdrawn.contains(why), "{withdrawn}");
    let early = TailResult { pairs: 0, pairs_before: 2500, threshold_low: None, threshold_high: None, ..open };
    assert_eq!(
        says(claim(vec![early])),
        "Tail 99 %: undecided. The level counts from pair 2,500 on, and 962 were measured.\n"
    );
}

/// The hint names the arm that won, the figures and the option that tests the tail.
#[test]
fn a_hint_names_the_option() {
    let tail_hint = Some(TailHint {
        level: 0.95,
        p_value: 0.0004,
        threshold: 9.3e6,
        pairs: 400,
        faster_beyond: 32,
        slower_beyond: 8,
    });
    let faster = ClaimResult { tail_hint, ..claim(Vec::new()) };
    assert_eq!(
        says(faster.clone()),
        "The tail of `B` looks worse: it was above 9.300 ms in 8 % of the pairs, and `A` in 2 %. Test this with `--tail \
         95`.\n"
    );
    let slower = ClaimResult { decision: Some(Decision::Slower), ..faster };
    assert!(
        says(slower).starts_with("The tail of `A` looks worse: it was above 9.300 ms in 8 % of the pairs, and `B`")
    );
}

#[test]
fn tails_are_in_markdown_and_json() {
    let mut outcome = common::compare();
    outcome.claims[0].tails = vec![tail(TailDecision::MoreOften)];
    let text = markdown::outcome(&outcome, &TableLayout::default());
    assert!(text.contains("\nTail 99 %: `sort -n"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&json::outcome(&outcome)).unwrap();
    let tail = &json["claims"][0]["tails"][0];
    assert_eq!((&tail["decision"], &tail["pairs"]), (&"more_often".into(), &712.into()), "{tail}");
    assert!(json["claims"][1].get("tails").is_none() && json["claims"][0].get("tail_hint").is_none());
}
