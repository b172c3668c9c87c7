//! Properties of the output that are true for any run, with any names and numbers.

use ascertain_engine::claim::{Bound, Effect, Hypothesis, Judging, Measure, Test};
use ascertain_engine::experiment::{Arm, Better, Level, Point};
use ascertain_engine::finding::{Threat, Unlike};
use ascertain_engine::outcome::{Basis, ClaimResult, Decided, Decision, Outcome, PointSummary, Verdict};
use ascertain_engine::predicate::Predicate;
use ascertain_engine::unit::Unit;
use ascertain_report::hyperfine::{self, CommandTimes};
use ascertain_report::options::TableLayout;
use ascertain_report::terminal::{self, Style};
use ascertain_report::{csv, json, markdown, sentence};
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use crate::common;

/// Any text, often with characters that are special in a format.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a|`\"',\\\\\\n\\r\\x1b *_é和🚀-]{0,12}"]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![prop::num::f64::ANY, -10.0..10.0, 1e3..1e9, Just(0.0), Just(f64::INFINITY)]
}

fn numbers() -> impl Strategy<Value = [Option<f64>; 9]> {
    prop::array::uniform9(prop::option::of(number()))
}

fn unit() -> impl Strategy<Value = Unit> {
    prop::sample::select(vec![Unit::Nanosecond, Unit::Byte, Unit::BytePerSecond, Unit::PerSecond, Unit::One])
}

fn better() -> impl Strategy<Value = Better> {
    prop::sample::select(vec![Better::Lower, Better::Higher])
}

prop_compose! {
    fn at()(levels in prop::collection::btree_map(name(), name(), 0..3)) -> Point {
        Point(levels.into_iter().map(|(factor, level)| (factor, Level::Text(level))).collect())
    }
}

prop_compose! {
    fn point()(
        names in prop::array::uniform3(name()), at in at(), unit in unit(), better in better(), n: u64, numbers in numbers(),
        is_wall: bool, censored in 0..4_u64, limit in prop::option::of(number()), seen in prop::option::of(number()),
    ) -> PointSummary {
        let [experiment, variant, metric] = names;
        let [median, median_low, median_high, p90, p99, mean, std, min, max] = numbers;
        let metric = if is_wall { "wall".into() } else { metric };
        PointSummary {
            experiment, arm: Arm { variant, point: at }, metric, key: String::new(), unit, better, is_share: false, n,
            median, median_low, median_high, p90, p99, mean, std, min, max, censored, limit, seen,
        }
    }
}

fn test() -> impl Strategy<Value = Test> {
    let measure = || {
        (name(), unit(), better()).prop_map(|(metric, unit, better)| Measure {
            metric,
            unit,
            better,
            inputs: Vec::new(),
        })
    };
    let bound = prop_oneof![
        number().prop_map(Bound::AtLeast),
        number().prop_map(Bound::AtMost),
        (number(), number()).prop_map(|(low, high)| Bound::Within(low, high)),
    ];
    let scale = prop::sample::select(vec![Effect::Ratio, Effect::Difference]);
    let arm = || (name(), at()).prop_map(|(variant, point)| common::arm(&variant, &point));
    prop_oneof![
        (measure(), arm(), arm(), scale, bound).prop_map(|(measure, candidate, baseline, scale, bound)| {
            Test::Versus { measure, candidate, baseline, scale, bound }
        }),
        (arm(), name(), prop::option::of(measure())).prop_map(|(arm, predicate, measure)| Test::Predicate {
            arm,
            predicate,
            measure,
            conditions: Vec::new(),
        }),
    ]
}

const VERDICTS: [Verdict; 6] =
    [Verdict::Holds, Verdict::Refuted, Verdict::Undecided, Verdict::Unavailable, Verdict::Failed, Verdict::Deferred];
const DECISIONS: [Decision; 6] =
    [Decision::Faster, Decision::Slower, Decision::Same, Decision::NotSlower, Decision::NotFaster, Decision::Undecided];
const BASES: [Basis; 3] = [Basis::Signs, Basis::Magnitudes, Basis::Interval];

prop_compose! {
    fn judged()(
        counts in any::<[u64; 8]>(), is_decided in any::<bool>(), interferes in any::<bool>(),
        basis in prop::option::of(prop::sample::select(BASES.to_vec())),
        verdict in prop::sample::select(VERDICTS.to_vec()),
        decision in prop::option::of(prop::sample::select(DECISIONS.to_vec())),
    ) -> ClaimResult {
        let [trials, successes, ties, unknown, so_far @ ..] = counts;
        let decided = Decided { trials: so_far[0], successes: so_far[1], ties: so_far[2], unknown: so_far[3] };
        let test = Test::predicate(common::arm("a", &Point::default()), Predicate(Vec::new()));
        ClaimResult {
            trials, successes, ties, unknown, basis, interferes, verdict, decision,
            decided: is_decided.then_some(decided), ..common::blank("", "", Judging::Rate, test)
        }
    }
}

prop_compose! {
    fn claim()(
        names in prop::array::uniform5(name()), reason in prop::option::of(name()), unlike in prop::collection::vec(number(), 0..3),
        judging in prop::sample::select(vec![Judging::Rate, Judging::Exact, Judging::Order]),
        margin in prop::option::of(number()), tests in prop::collection::vec(test(), 0..3),
        judged in judged().boxed(), numbers in numbers(), rate_claimed in number(), error in number(),
    ) -> ClaimResult {
        let [id, says, source, source_value, experiment] = names;
        let [rate, rate_low, rate_high, ratio, ratio_low, ratio_high, log_e_holds, log_e_refuted, _] = numbers;
        ClaimResult {
            id, says, source, source_value, experiment, asked: Hypothesis { judging, margin, tests },
            reasons: reason.iter().map(|words| common::reason(words)).collect(),
            rate, rate_low, rate_high, rate_claimed, error, ratio, ratio_low, ratio_high,
            log_e_holds, log_e_refuted, unlike: unlike.into_iter().map(|correlation| Unlike::Neighbours { correlation }).collect(), ..judged
        }
    }
}

prop_compose! {
    fn run()(
        points in prop::collection::vec(point().boxed(), 0..5), claims in prop::collection::vec(claim().boxed(), 0..5),
        threats in prop::collection::vec(name(), 0..2),
    ) -> Outcome {
        Outcome { threats: threats.into_iter().map(|governor| Threat::Governor { governor }).collect(), ..common::outcome(points, claims) }
    }
}

prop_compose! {
    fn times()(
        command in name(), parameters in prop::collection::vec((name(), name()), 0..3),
        wall_s in prop::collection::vec(number(), 0..4), user_s in prop::collection::vec(number(), 0..4),
        memory_bytes in prop::collection::vec(number(), 0..4), exit_codes: Vec<Option<i32>>,
    ) -> CommandTimes {
        let (line, environment) = (String::new(), Vec::new());
        let (system_s, counts) = (user_s.clone(), vec![("instructions", user_s.clone())]);
        let printed = vec![("score".to_string(), None, user_s.clone())];
        CommandTimes {
            command, line, environment, parameters, system_s, wall_s, user_s, memory_bytes, counts, printed, exit_codes,
        }
    }
}

/// Parses CSV as in RFC 4180.
fn parse_csv(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut chars = text.chars().peekable();
    let mut is_quoted = false;
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => record.push(std::mem::take(&mut field)),
            '\n' if !is_quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            c => field.push(c),
        }
    }
    assert!(!is_quoted && field.is_empty() && record.is_empty(), "the text ends within a record");
    records
}

/// Returns the number of cells in each table row, split like GitHub does: at vertical bars without a backslash before
/// them.
fn table_rows(text: &str) -> Vec<usize> {
    let cells = |line: &str| {
        let mut is_escaped = false;
        let bars = line.chars().filter(|&c| {
            let is_bar = c == '|' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_bar
        });
        bars.count() - 1
    };
    text.lines().filter(|line| line.starts_with("| ") || line.starts_with("|:")).map(cells).collect()
}

/// Checks that all rows of each table have the same number of cells.
fn assert_tables_are_even(text: &str) {
    let mut expected = None;
    for line in text.lines() {
        let is_row = line.starts_with("| ") || line.starts_with("|:");
        let cells = if is_row { table_rows(line).pop() } else { None };
        if let (Some(expected), Some(cells)) = (expected, cells) {
            assert_eq!(cells, expected, "{line}\nof\n{text}");
        }
        expected = cells;
    }
}

fn read_number(text: &str) -> Option<f64> {
    (!text.is_empty()).then(|| text.parse().unwrap())
}

fn known(value: Option<f64>) -> Option<f64> {
    value.filter(|value| !value.is_nan())
}

/// Some characters are two columns wide. A table that does not fit because of these characters gets another layout.
#[test]
fn wide_characters_and_spaces_take_their_room() {
    let mut run = common::compare();
    run.claims.clear();
    run.points.truncate(1);
    let point = &mut run.points[0];
    (point.n, point.median, point.metric) = (10_u64.pow(18), None, "和🚀和🚀和🚀和🚀".into());
    point.arm.variant = "words   ".repeat(9);
    for width in 60..200 {
        let table = terminal::points_table(&run, &Style { color: false, width });
        assert!(table.lines().all(|line| line.width() <= width), "{table} at {width}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn csv_reads_back(run in run()) {
        let records = parse_csv(&csv::outcome(&run));
        prop_assert_eq!(records.len(), run.points.len() + 1);
        for (record, point) in records[1..].iter().zip(&run.points) {
            prop_assert_eq!(record.len(), records[0].len());
            prop_assert_eq!(&record[0], &point.experiment);
            prop_assert_eq!(&record[1], &point.arm.variant);
            prop_assert_eq!(&record[2], &point.arm.point.to_string());
            prop_assert_eq!(read_number(&record[6]), known(point.median));
            prop_assert_eq!(read_number(&record[14]), known(point.max));
        }
        let records = parse_csv(&csv::claims(&run));
        prop_assert_eq!(records.len(), run.claims.len() + 1);
        for (record, claim) in records[1..].iter().zip(&run.claims) {
            prop_assert_eq!(record.len(), records[0].len());
            prop_assert_eq!(&record[1], &claim.says);
            prop_assert_eq!(read_number(&record[11]), known(claim.rate));
        }
    }

    #[test]
    fn json_reads_back(run in run()) {
        let text = json::outcome(&run);
        prop_assert_eq!(text.chars().last(), Some('\n'));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        for (read, point) in value["points"].as_array().unwrap().iter().zip(&run.points) {
            prop_assert_eq!(read["variant"].as_str(), Some(point.arm.variant.as_str()));
            prop_assert_eq!(read["median"].as_f64(), point.median.filter(|median| median.is_finite()));
        }
        for (read, claim) in value["claims"].as_array().unwrap().iter().zip(&run.claims) {
            prop_assert_eq!(read["verdict"].as_str(), Some(claim.verdict.word()));
            prop_assert_eq!(read["trials"].as_u64(), Some(claim.trials));
        }
    }

    #[test]
    fn markdown_tables_are_even(run in run(), times in prop::collection::vec(times(), 0..4)) {
        assert_tables_are_even(&markdown::outcome(&run, &TableLayout::default()));
        let text = hyperfine::markdown(&times, TableLayout::default());
        assert_tables_are_even(&text);
        prop_assert_eq!(table_rows(&text).len(), times.len() + 2);
    }

    #[test]
    fn nothing_steers_the_terminal_or_leaves_it(run in run(), width in 0..200_usize) {
        let style = Style { color: false, width };
        let texts = [
            terminal::check_table(&run, &style),
            terminal::compare_table(&run, &TableLayout::default(), &style),
            terminal::points_table(&run, &style),
            terminal::sentences(&run, &style),
            terminal::slo(&run, &style),
            terminal::threats(&run, &style),
            terminal::checked(&run, &ascertain_report::options::Shown::default(), None, &style),
            markdown::outcome(&run, &TableLayout::default()),
        ];
        for text in &texts {
            prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", text);
        }
        for line in texts[..6].iter().flat_map(|text| text.lines()).filter(|_| width >= 60) {
            // A single word is never broken. Beside the headings of a row there are 40 columns for text.
            let is_long = line.split(' ').any(|word| word.width() > 40);
            prop_assert!(line.width() <= width || is_long, "{:?} at {}", line, width);
        }
        for claim in &run.claims {
            let text = sentence::claim(claim);
            prop_assert!(text.ends_with(['.', '!', '?', '…']) && !text.contains("NaN") && !text.contains('\u{1}'), "{}", text);
        }
        // With colours, no text is cut within a character, which would panic.
        terminal::check_table(&run, &Style { color: true, width });
        terminal::compare_table(&run, &TableLayout::default(), &Style { color: true, width });
    }

    #[test]
    fn hyperfine_exports_read_back(times in prop::collection::vec(times(), 0..4)) {
        let read = |text: String| -> serde_json::Value { serde_json::from_str(&text).unwrap() };
        let newer = read(hyperfine::json(&times, &common::machine()));
        for (read, times) in newer["results"].as_array().unwrap().iter().zip(&times) {
            let name = read.get("name").unwrap_or(&read["command"]);
            prop_assert_eq!(name.as_str(), Some(times.command.as_str()));
            prop_assert_eq!(read["measurements"].as_array().unwrap().len(), times.wall_s.len());
        }
        let value = read(hyperfine::json_1(&times));
        let results = value["results"].as_array().unwrap();
        prop_assert_eq!(results.len(), times.len());
        for (read, times) in results.iter().zip(&times) {
            prop_assert_eq!(read["command"].as_str(), Some(times.command.as_str()));
            prop_assert_eq!(read["times"].as_array().unwrap().len(), times.wall_s.len());
        }
        let records = parse_csv(&hyperfine::csv(&times));
        prop_assert_eq!(records.len(), times.len() + 1);
        prop_assert!(records.iter().all(|record| record.len() == records[0].len()));
        hyperfine::asciidoc(&times, TableLayout::default());
    }
}

#[test]
fn a_run_survives_json() {
    for run in [common::check(), common::compare(), common::slo()] {
        assert_eq!(serde_json::from_str::<Outcome>(&serde_json::to_string(&run).unwrap()).unwrap(), run);
    }
}
