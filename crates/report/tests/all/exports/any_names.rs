//! For any names of experiments, variants and claims, each export format can be parsed, has the original names, and is
//! harmless to display.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::common::{blank, measure};

/// Any text, often with characters that are special in a format.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a|`\"'<>&;%:,=/#\\\\\\n\\r\\t\\x00\\x1b\u{fffe} \u{2028}*_é和🚀-]{0,12}",
        Just("]]>".into())
    ]
}

prop_compose! {
    fn run()(names in prop::collection::vec(prop::array::uniform5(name()), 0..5), verdict in 0..6_usize) -> Outcome {
        let verdicts =
            [Verdict::Holds, Verdict::Refuted, Verdict::Undecided, Verdict::Unavailable, Verdict::Failed, Verdict::Deferred];
        let claim = |[id, says, variant, reason, experiment]: &[String; 5]| {
            let test = ascertain_engine::claim::Test::Predicate {
                arm: arm(variant, &Point::default()),
                predicate: "exit == 0".into(),
                measure: Some(measure("wall", Unit::Nanosecond)),
                conditions: Vec::new(),
            };
            let mut claim = common::counted(
                blank(id, says, ascertain_engine::claim::Judging::Rate, test), verdicts[verdict], 3, 5,
            );
            (claim.reasons, claim.experiment) = (vec![common::reason(reason)], experiment.clone());
            claim
        };
        let points = names.iter().map(|[_, _, variant, level, experiment]| PointSummary {
            arm: Arm { variant: variant.clone(), point: Point::default().with("level", level.as_str()) },
            ..point(experiment, variant, "wall", Unit::Nanosecond)
        });
        // An arm has each metric only once.
        let mut seen = BTreeSet::new();
        let points = points.filter(|point| seen.insert((point.experiment.clone(), point.arm.clone())));
        outcome(points.collect(), names.iter().map(claim).collect())
    }
}

/// Returns a text that describes how an element violates `junit-10.xsd`, the schema of Jenkins's xUnit plugin. The
/// violation may be the element itself, its position, an unknown or missing attribute, or a time in another format.
/// `None` if the element is valid.
fn unknown_to_jenkins(node: roxmltree::Node) -> Option<String> {
    const SUITE: &[&str] = &["name", "tests", "failures", "errors", "time", "skipped", "timestamp", "hostname", "file"];
    // An element, its allowed parents, its allowed attributes, and how many of the first attributes are required.
    const KNOWN: [(&str, &[&str], &[&str], usize); 9] = [
        ("testsuites", &[""], &["name", "time", "tests", "failures", "errors"], 0),
        ("testsuite", &["testsuites", "testsuite"], SUITE, 4),
        ("properties", &["testsuite"], &[], 0),
        ("property", &["properties"], &["name", "value"], 2),
        ("testcase", &["testsuite"], &["name", "time", "classname", "group"], 1),
        ("failure", &["testcase"], &["type", "message"], 0),
        ("error", &["testcase"], &["type", "message"], 0),
        ("skipped", &["testcase"], &["type", "message"], 0),
        ("system-out", &["testsuite", "testcase"], &[], 0),
    ];
    let name = node.tag_name().name();
    let Some((_, parents, attributes, needed)) = KNOWN.iter().find(|(known, ..)| *known == name) else {
        return Some(format!("<{name}>"));
    };
    let parent = node.parent().map_or("", |parent| parent.tag_name().name());
    if !parents.contains(&parent) {
        return Some(format!("<{name}> in <{parent}>"));
    }
    let unknown = node.attributes().find(|attribute| !attributes.contains(&attribute.name()));
    let lacking = attributes[..*needed].iter().find(|needed| node.attribute(**needed).is_none());
    let is_time = |time: &str| time.chars().all(|c| c.is_ascii_digit() || c == '.');
    let untimely = node.attribute("time").filter(|time| !is_time(time));
    (unknown.map(|attribute| attribute.name()).or(lacking.copied()).or(untimely))
        .map(|what| format!("{what} of <{name}>"))
}

/// Returns the text with escapes for characters that are invisible or not allowed in XML 1.0.
fn in_xml(text: &str) -> String {
    let is_legal =
        |c: char| matches!(c, '\t' | '\n' | '\r') || !(c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'));
    let written = |c: char| match is_legal(c) && !steers(c) {
        true => c.to_string(),
        false => c.escape_unicode().to_string(),
    };
    text.chars().map(written).collect()
}

/// Returns whether a character, other than a control character, changes how the text around it looks.
fn steers(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Names are unchanged only in CSV, because CSV has no escapes and only programs read it.
#[test]
fn no_kind_lets_a_name_steer_what_shows_it() {
    let hostile = "\u{202e}a\u{9b}2J\u{1b}[31m\u{200b}";
    let mut claim = common::counted(at_least_8(hostile, hostile), Verdict::Failed, 1, 2);
    (claim.reasons, claim.experiment) = (vec![common::reason(hostile)], hostile.into());
    let run = outcome(vec![point(hostile, hostile, "wall", Unit::Nanosecond)], vec![claim]);
    let purpose = placed([&hostile.to_string()], hostile, 1);
    let texts = FORMATS.iter().filter(|kind| kind.option != "export-csv");
    let mut texts: Vec<(&str, String)> =
        texts.map(|kind| (kind.option, written(kind.option, &run, &purpose))).collect();
    texts.push(("annotations", annotated(&run, &purpose)));
    texts.push(("json", ascertain_report::json::outcome(&run)));
    texts.push(("markdown", ascertain_report::markdown::outcome(&run, &Default::default())));
    for (kind, text) in texts {
        assert!(text.contains("202e"), "{kind}: {text}");
        assert!(!text.chars().any(|c| c != '\n' && (c.is_control() || steers(c))), "{kind}: {text:?}");
    }
}

fn unescaped(text: &str) -> String {
    text.replace("%2C", ",").replace("%3A", ":").replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn junit_always_parses_and_names_read_back(run in run(), file in name()) {
        let ids: BTreeSet<&String> = run.claims.iter().map(|claim| &claim.id).collect();
        let text = written("export-junit", &run, &placed(ids.iter().copied(), &file, 7));
        let document = roxmltree::Document::parse(&text).unwrap();
        let cases: Vec<_> = document.descendants().filter(|node| node.has_tag_name("testcase")).collect();
        prop_assert_eq!(cases.len(), run.claims.len());
        let mut read: Vec<_> = cases.iter().map(|case| (case.attribute("classname").unwrap(), case.attribute("name").unwrap())).collect();
        let claimed: Vec<_> = run.claims.iter().map(|claim| (in_xml(&claim.experiment), in_xml(&claim.id))).collect();
        let mut claimed: Vec<_> = claimed.iter().map(|(class, name)| (class.as_str(), name.as_str())).collect();
        read.sort_unstable();
        claimed.sort_unstable();
        prop_assert_eq!(read, claimed);
        // In an attribute, some characters of the text would become spaces.
        let place = format!("{}:7\n", in_xml(&file));
        let outputs = cases.iter().map(|case| case.children().find(|node| node.has_tag_name("system-out")).unwrap());
        prop_assert!(outputs.map(|output| output.text().unwrap().to_string()).all(|output| output.starts_with(&place)));
        for node in document.descendants().filter(|node| node.is_element()) {
            prop_assert_eq!(unknown_to_jenkins(node), None);
        }
        let count = |tag: &str| document.descendants().filter(|node| node.has_tag_name(tag)).count().to_string();
        for (attribute, tag) in [("failures", "failure"), ("errors", "error"), ("tests", "testcase")] {
            let counted = count(tag);
            prop_assert_eq!(document.root_element().attribute(attribute), Some(counted.as_str()));
        }
    }

    #[test]
    fn go_lines_have_a_name_of_one_word_each_and_values_read_back(run in run(), values in prop::collection::vec(1e-3..1e12_f64, 1..9)) {
        let all: Vec<Vec<f64>> = run.points.iter().map(|_| values.clone()).collect();
        let text = written_of("export-go", &run, &all, &Plan::default());
        let mut by_name: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for line in text.lines().filter(|line| line.starts_with("Benchmark")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            prop_assert_eq!((words.len(), words[1], words[3]), (4, "1", "ns/op"));
            by_name.entry(words[0]).or_default().push(words[2].parse().unwrap());
        }
        prop_assert_eq!(by_name.len(), run.points.len());
        prop_assert!(by_name.values().all(|read| *read == values));
        let others = text.lines().filter(|line| !line.starts_with("Benchmark"));
        let known = ["# ", "goos: ", "goarch: ", "cpu: ", "Unit ", "pkg: "];
        prop_assert!(others.into_iter().all(|line| known.iter().any(|known| line.starts_with(known))), "{}", text);
    }

    #[test]
    fn github_reads_each_command_on_a_line_of_its_own(run in run()) {
        let text = annotated(&run, &Plan::default());
        let failing = run.claims.iter().filter(|claim| !matches!(claim.verdict, Verdict::Holds | Verdict::Unavailable));
        prop_assert_eq!(text.lines().count(), failing.clone().count());
        for (line, claim) in text.lines().zip(failing) {
            let (title, message) = line.split_once(" title=").unwrap().1.split_once("::").unwrap();
            prop_assert!(!title.contains([':', ',']) && !line.chars().any(char::is_control), "{}", line);
            prop_assert!(unescaped(title).ends_with(claim.verdict.word()));
            prop_assert!(unescaped(message).ends_with(&ascertain_report::sentence::claim(claim)), "{}", line);
        }
    }

    #[test]
    fn json_kinds_read_back(run in run()) {
        let purpose = Plan::default();
        let arms: BTreeSet<_> = run.points.iter().map(|point| (&point.experiment, &point.arm.variant, &point.arm.point)).collect();
        let bencher: Value = serde_json::from_str(&written("export-bencher", &run, &purpose)).unwrap();
        prop_assert_eq!(bencher.as_object().unwrap().len(), arms.len());
        let google: Value = serde_json::from_str(&written("export-google-benchmark", &run, &purpose)).unwrap();
        let names: BTreeSet<&str> = google["benchmarks"].as_array().unwrap().iter().map(|entry| entry["run_name"].as_str().unwrap()).collect();
        prop_assert_eq!(names.len(), arms.len());
    }
}
