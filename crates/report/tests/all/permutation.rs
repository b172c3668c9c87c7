//! The output of `permute`: the sentence for each decision is correct, and names are escaped.

use ascertain_engine::unit::Unit;
use ascertain_permute::{Alternative, Comparison, Decision, End};
use ascertain_report::formats::Report;
use ascertain_report::permutation::{Permutation, SampleSummary};
use ascertain_report::terminal::Style;

fn permutation() -> Permutation {
    let sample = |name: &str, value| SampleSummary { name: name.into(), heading: None, n: 10_000, value };
    Permutation {
        decision: Decision::Different,
        end: End::Decided,
        method: "betting".into(),
        statistic: "mean".into(),
        comparison: Comparison::Difference,
        alternative: Alternative::TwoSided,
        shift: 0.0,
        scale: 1.0,
        alpha: 0.05,
        error: None,
        unit: Unit::Nanosecond,
        samples: vec![sample("before.csv", 22.2e6), sample("after.csv", 23.4e6)],
        observed: 1.2e6,
        expected: 0.0,
        shuffles: 84,
        exceedances: 1,
        p_anytime: Some(0.0497),
        log_wealth: Some(3.001),
        p: None,
        p_low: None,
        p_high: None,
        seed: 42,
        elapsed_ns: 250_000,
    }
}

#[test]
fn the_terminal_shows_samples_conclusion_and_p_value() {
    let shown = permutation().text(&Style { color: false, width: 100 });
    assert_eq!(
        shown,
        "\
Sample      Values      Mean
────────────────────────────
before.csv   10000  22.20 ms
after.csv    10000  23.40 ms

Different: the mean of `after.csv` is 1.200 ms above that of `before.csv` (23.40 ms against
22.20 ms), and 1 of 84 reshuffles differed as much. By chance, this has a probability of at most
5 %.
p-value: at most 0.05 (by betting; valid whenever the test is stopped). Null hypothesis: all samples
have the same distribution. Seed: 42.
"
    );
}

#[test]
fn markdown_and_csv_say_the_same() {
    let shown = permutation().markdown();
    assert!(
        shown.starts_with("| Sample | Values | Mean |\n| :--- | ---: | ---: |\n| `before.csv` | 10000 | 22.20 ms |\n")
    );
    assert!(shown.contains("\n\nDifferent: the mean of `after.csv` is 1.200 ms above"), "{shown}");
    let shown = permutation().csv();
    let [heading, line, other] = shown.lines().collect::<Vec<_>>()[..] else { panic!("{shown}") };
    let of = |name: &str| heading.split(',').zip(line.split(',')).find(|(known, _)| *known == name).unwrap().1;
    assert_eq!(heading.split(',').count(), line.split(',').count());
    assert_eq!((of("decision"), of("p_anytime"), of("p"), of("seed")), ("different", "0.0497", "", "42"));
    assert_eq!((of("unit"), of("samples"), of("shuffles")), ("ns", "2", "84"));
    assert_eq!((of("sample"), of("heading"), of("n"), of("value")), ("before.csv", "", "10000", "22200000"));
    assert!(other.ends_with(",after.csv,,10000,23400000"), "one line per sample: {other}");
}

#[test]
fn json_has_null_for_what_is_not_known() {
    let shown = permutation().json();
    for line in
        ["\"schema\": \"ascertain.permute/1\"", "\"decision\": \"different\"", "\"p\": null", "\"unit\": \"ns\""]
    {
        assert!(shown.contains(line), "{line}: {shown}");
    }
}

#[test]
fn every_decision_has_its_sentence() {
    let csm = Permutation {
        method: "csm".into(),
        error: Some(0.001),
        p_anytime: None,
        p: Some(0.0),
        p_low: Some(0.0),
        p_high: Some(0.0076),
        alpha: 0.01,
        exceedances: 0,
        shuffles: 2967,
        ..permutation()
    };
    let said = csm.sentence();
    assert!(
        said.contains("none of 2967 reshuffles differed as much, so the p-value is below 0.01; error at most"),
        "{said}"
    );
    let shown = csm.text(&Style { color: false, width: 500 });
    assert!(
        shown.contains("p-value: at most 0.007600, at error 0.1 % (by the confidence sequence method)."),
        "{shown}"
    );
    let seen = Permutation { exceedances: 6, p: Some(0.002), p_low: Some(0.0006), ..csm.clone() };
    let shown = seen.text(&Style { color: false, width: 500 });
    assert!(
        shown.contains("p-value: 0.0020 (0.00060 to 0.0076), at error 0.1 % (by the confidence sequence method)."),
        "{shown}"
    );
    let above = Permutation { decision: Decision::NotShown, exceedances: 300, ..csm.clone() }.sentence();
    assert!(above.starts_with("Not shown: ") && above.contains("so the p-value is above 0.01"), "{above}");
    let futile = Permutation { decision: Decision::NotShown, exceedances: 8, shuffles: 9, ..permutation() };
    assert!(futile.sentence().contains("but 8 of 9 reshuffles differed as much, so chance may explain it"));
    let mut equal = Permutation { observed: 0.0, ..futile.clone() };
    equal.samples[1].value = equal.samples[0].value;
    let said = equal.sentence();
    assert!(said.contains("(22.20 ms against 22.20 ms), and 8 of 9 reshuffles differed as much, so"), "{said}");
    let shifted = Permutation { shift: 1e6, expected: 1e6, ..equal }.sentence();
    assert!(shifted.contains("but 8 of 9 reshuffles came out as far from the null hypothesis"), "{shifted}");
    let undecided = |end| Permutation { decision: Decision::Undecided, end, ..permutation() }.sentence();
    assert!(
        undecided(End::MaxShuffles)
            .contains("1 of 84 reshuffles differed as much when the limit of reshuffles was reached")
    );
    assert!(undecided(End::MaxTime).contains("when the time ran out"));
    assert!(
        undecided(End::Interrupted)
            .contains("when the test was interrupted. More reshuffles are needed to decide at the level 0.05")
    );
}

#[test]
fn values_have_the_digits_that_tell_them_apart() {
    let mut close = Permutation { unit: Unit::One, observed: 0.001_170_7, ..permutation() };
    (close.samples[0].value, close.samples[1].value) = (0.989_793_8, 0.990_964_5);
    assert!(close.sentence().contains("is 0.001171 above that of `before.csv` (0.99096 against 0.98979)"));
    (close.samples[0].value, close.samples[1].value) = (0.0025, 1234.5678);
    assert!(close.sentence().contains("(1235 against 0.002500)"), "{}", close.sentence());
    (close.samples[0].value, close.samples[1].value) = (0.0, 0.0);
    assert!(close.sentence().contains("is equal to that of `before.csv` (0 against 0)"), "{}", close.sentence());
}

#[test]
fn the_null_hypothesis_and_the_side_are_said() {
    let shown = |permutation: &Permutation| permutation.text(&Style { color: false, width: 500 });
    let shifted = shown(&Permutation { shift: 1e6, ..permutation() });
    assert!(shifted.contains("came out as far from the null hypothesis. Under the null hypothesis, this has a"));
    assert!(shifted.contains("Null hypothesis: `after.csv` is `before.csv` plus 1 ms."), "{shifted}");
    let scaled = shown(&Permutation { scale: 1.5, ..permutation() });
    assert!(scaled.contains("`after.csv` is 1.5 times `before.csv`."), "{scaled}");
    let both = shown(&Permutation { scale: 1.5, shift: 1e6, ..permutation() });
    assert!(both.contains("`after.csv` is 1.5 times `before.csv` plus 1 ms."), "{both}");
    assert!(shown(&Permutation { alternative: Alternative::Greater, ..permutation() }).contains("came out as high"));
    assert!(shown(&Permutation { alternative: Alternative::Less, ..permutation() }).contains("came out as low"));
    let below = Permutation { observed: -1.2e6, ..permutation() };
    assert!(below.sentence().contains("is 1.200 ms below that of"), "{}", below.sentence());
    let ratio = Permutation { comparison: Comparison::Ratio, observed: 1.054, ..permutation() };
    assert!(ratio.sentence().contains("is 1.054 times that of"), "{}", ratio.sentence());
    let mut three = permutation();
    three.samples.push(SampleSummary { name: "third".into(), heading: None, n: 5, value: 30e6 });
    three.observed = 7.8e6;
    let said = three.sentence();
    assert!(
        said.contains("the greatest mean, 30.00 ms of `third`, is 7.800 ms above the least, 22.20 ms of `before.csv`"),
        "{said}"
    );
}

#[test]
fn names_are_harmless() {
    let mut hostile = permutation();
    hostile.samples[0].name = "\x1b[31m<script>`|".into();
    let shown = hostile.text(&Style { color: false, width: 100 });
    assert!(!shown.contains('\x1b'), "{shown}");
    let shown = hostile.markdown();
    assert!(!shown.contains('\x1b') && shown.contains("``"), "{shown}");
}
