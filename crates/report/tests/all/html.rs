//! The HTML page is well-formed and complete, and all texts are escaped.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ascertain_engine::claim::{Bound, Test};
use ascertain_engine::evidence::{Header, SCHEMA};
use ascertain_engine::experiment::{Arm, Spec, Variant};
use ascertain_engine::finding::{Threat, Unlike};
use ascertain_engine::outcome::{ClaimResult, Decision, Outcome, PointSummary, Verdict};
use ascertain_engine::plan::Plan;
use ascertain_engine::recorded::{ClaimPath, EvidencePoint, RecordedRun, Series, State};
use ascertain_report::{html, pictures};
use roxmltree::{Document, Node, ParsingOptions};

use crate::common;

/// Creates a run with this outcome. Only the trials of the first claims are recorded.
fn run(outcome: Outcome, experiments: &[&str]) -> RecordedRun {
    let spec = |id: &&str| Spec {
        id: id.to_string(),
        title: format!("about {id}"),
        readme: format!("# {id}\n\n**Question.** How fast is `{id}`?\n\n**Design.** Plain.\n\n**Threats.** Heat.\n"),
        emulates: None,
        variants: vec![Variant { name: "naive".into(), about: "a plain loop".into() }],
        factors: Vec::new(),
        metrics: Vec::new(),
        plots: Vec::new(),
    };
    let header = Header {
        schema: SCHEMA.into(),
        run_id: outcome.run_id.clone(),
        started: "2026-11-21T09:30:00.000Z".into(),
        ascertain_version: "0.1.0".into(),
        command_line: ["/usr/bin/ascertain", "check", "it's mine.toml"].map(String::from).into(),
        render: Default::default(),
        label: None,
        revision: None,
        machine: outcome.machine.clone(),
        experiments: experiments.iter().map(spec).collect(),
        plan: Plan::default(),
        unavailable: Vec::new(),
        outcome: Some(outcome.clone()),
        lines_bytes: None,
        lines_checksum: None,
        parquet_checksum: None,
    };
    let path = |claim: &ClaimResult| ClaimPath {
        trials: (0..claim.trials).collect(),
        successes: vec![Some(true); claim.trials as usize],
        statistics: (0..claim.trials).map(|trial| 8.5 + (trial % 5) as f64 * 0.1).collect(),
        evidence: (0..=claim.trials)
            .map(|n| EvidencePoint { counted: n, log_e_holds: 0.6 * n as f64, log_e_refuted: -0.4 * n as f64 })
            .collect(),
        log_threshold_holds: 8.8,
        log_threshold_refuted: 8.8,
        decided_after: Some(15),
    };
    let paths = outcome.claims.iter().map(path).collect();
    let series = |point: &PointSummary| Series {
        experiment: point.experiment.clone(),
        arm: Arm { variant: point.arm.variant.clone(), point: point.arm.point.clone() },
        metric: point.metric.clone(),
        unit: point.unit,
        key: String::new(),
        trials: (0..point.n).collect(),
        offsets_ns: Vec::new(),
        values: vec![point.median.unwrap_or(f64::NAN); point.n as usize].into(),
    };
    let series = outcome.points.iter().map(series).collect();
    let folder = "runs".into();
    RecordedRun {
        observations: Default::default(),
        folder,
        header,
        state: State::Finished,
        outcome,
        series,
        paths,
        rows: 1290,
        faults: Vec::new(),
        has_lost_rows: false,
    }
}

pub fn check() -> RecordedRun {
    run(common::check(), &["sum", "fill-rate"])
}

/// Returns the compressed parts of a page, decompressed.
fn unpacked(page: &str) -> Vec<String> {
    let (_, after) = page.split_once("id=\"packed\">").expect("the page has packed parts");
    let digit = |byte: u8| match byte {
        b'!' => b'<' - b'(',
        b'#' => b'>' - b'(',
        _ => byte - b'(',
    };
    let text = &after[..after.find('<').expect("it ends")];
    let filled = usize::from(text.as_bytes()[0] - b'0');
    let digits: Vec<u8> = text.bytes().skip(1).map(digit).collect();
    let word = |five: &[u8]| five.iter().fold(0, |word, digit| word * 85 + u32::from(*digit));
    let bytes: Vec<u8> = digits.chunks(5).flat_map(|five| word(five).to_be_bytes()).collect();
    let unpacked = miniz_oxide::inflate::decompress_to_vec_zlib(&bytes[..bytes.len() - filled]);
    let text = String::from_utf8(unpacked.expect("the packed parts are zlib")).unwrap();
    let (frames, missing): (Vec<String>, BTreeMap<String, String>) = serde_json::from_str(&text).expect("as packed");
    let mut missing: BTreeMap<&str, std::str::Split<char>> =
        missing.iter().map(|(name, values)| (name.as_str(), values.split('\n'))).collect();
    let mut whole = |frame: String| {
        let mut pieces = frame.split('\u{7f}');
        let first = pieces.next().unwrap().to_string();
        pieces.fold(first, |part, piece| {
            let name = part.strip_suffix("=\"").map_or("", |before| before.rsplit(' ').next().unwrap());
            let value = missing.get_mut(name).and_then(Iterator::next).expect("each place gets a value");
            part + value + piece
        })
    };
    let parts = frames.into_iter().map(&mut whole).collect();
    assert!(missing.into_values().all(|mut values| values.next().is_none()), "all values are used");
    parts
}

/// Parses the page without its script, and passes it to `look`. Fails if a tag is not closed or a `<` is not escaped.
pub fn tree_of<T>(page: &str, look: impl FnOnce(&Document) -> T) -> T {
    let (before, after) = page.split_once("<script>").expect("there is a script");
    let markup = format!("{before}<script>{}", &after[after.find("</script>").expect("and it ends")..]);
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    match Document::parse_with_options(&markup, options) {
        Ok(tree) => look(&tree),
        Err(error) => {
            let line = markup.lines().nth(error.pos().row as usize - 1).unwrap_or_default();
            panic!("{error}: {line}")
        }
    }
}

fn is_of(node: &Node, class: &str) -> bool {
    node.attribute("class").is_some_and(|classes| classes.split(' ').any(|other| other == class))
}

fn words(node: Node) -> String {
    node.descendants().filter(Node::is_text).filter_map(|node| node.text()).collect()
}

#[test]
fn a_small_page_is_as_it_was() {
    let page = html::page(&[run(common::slo(), &["slo"])]);
    // Other tests check the pictures. The style and the script are tested in a browser.
    let (head, rest) = page.split_once("<style>").unwrap();
    let (body, script) = rest[rest.find("</style>").unwrap()..].split_once("<script>").unwrap();
    let policy = head.find("style-src").unwrap()..head.find("; base-uri").unwrap();
    let head = head.replace(&head[policy], "…");
    let page = format!("{head}<style>…{body}<script>…{}", &script[script.find("</script>").unwrap()..]);
    let mut parts = page.split("</figcaption>");
    let first = parts.next().unwrap_or_default().to_string();
    let page = parts.fold(first, |page, part| page + "</figcaption>…" + &part[part.find("</figure>").unwrap()..]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/report.html");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap_or_default() == page, "report.html differs; look, then bless it:\n{page}");
}

#[test]
fn every_claim_is_there_with_its_verdict() {
    let run = check();
    tree_of(&html::page(std::slice::from_ref(&run)), |page| {
        let claims: Vec<Node> = page.descendants().filter(|node| is_of(node, "row")).collect();
        assert_eq!(claims.len(), run.outcome.claims.len());
        for (node, claim) in claims.iter().zip(&run.outcome.claims) {
            let text = words(*node);
            assert!(text.contains(&claim.says) && text.contains(claim.verdict.word()), "{text}");
            assert!(claim.unlike.is_empty() || text.contains("Careful"), "{text}");
        }
        let text = words(page.root());
        for said in [
            "it'\\''s mine.toml",
            "Example 9000",
            "42",
            "0.1 %: the highest chance that any of the",
            "kahan-neon",
            "How fast is",
            "Heat.",
            "1,290",
        ] {
            assert!(text.contains(said), "{said}");
        }
    });
}

#[test]
fn headings_descend_by_one_and_addresses_are_unique() {
    for runs in [vec![check()], vec![check(), run(common::compare(), &["compare"])]] {
        tree_of(&html::page(&runs), |page| {
            let levels =
                page.descendants().filter_map(|node| node.tag_name().name().strip_prefix('h')?.parse::<u8>().ok());
            let levels: Vec<u8> = levels.collect();
            assert_eq!(levels[0], 1);
            assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{levels:?}");
            let mut ids: Vec<&str> = page.descendants().filter_map(|node| node.attribute("id")).collect();
            ids.sort_unstable();
            let all = ids.len();
            ids.dedup();
            assert_eq!(ids.len(), all);
            let named = page.descendants().filter_map(|node| node.attribute("aria-labelledby"));
            assert!(named.flat_map(str::split_whitespace).all(|id| ids.contains(&id)));
        });
    }
}

#[test]
fn hostile_text_in_a_run_does_nothing() {
    let hostile = "</style><script>alert(1)</script>\" onload='x' \x1b[31m\u{202e}\u{0}";
    let mut run = check();
    run.header.command_line = vec!["ascertain".into(), hostile.into()];
    run.header.run_id = hostile.into();
    run.header.experiments[0].readme =
        format!("**Question.** {hostile}\n\n## {hostile}\n\n![x](http://example.org/x.png)\n");
    run.outcome.machine.cpu_model = hostile.into();
    run.outcome.threats = vec![Threat::Governor { governor: hostile.into() }];
    for claim in &mut run.outcome.claims {
        (claim.says, claim.id, claim.source, claim.source_value) =
            (hostile.into(), hostile.into(), hostile.into(), hostile.into());
        claim.reasons = vec![common::reason(hostile)];
        claim.unlike = vec![Unlike::Neighbours { correlation: 0.5 }];
    }
    run.outcome.by_key = vec![PointSummary { key: hostile.into(), ..run.outcome.points[0].clone() }];
    for arm in &mut run.outcome.left_out {
        (arm.arm.variant, arm.reason) = (hostile.into(), common::reason(hostile));
    }
    let page = html::page(&[run.clone(), run]);
    assert_eq!(page.matches("<script>").count(), 1);
    // The compressed parts of the page are checked, too.
    let packed = format!("<div>{}</div>", unpacked(&page).concat());
    let page = page.replacen("</footer>", &format!("{packed}</footer>"), 1);
    let steers = |c: char| {
        c != '\n'
            && (c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
    };
    let line = page.lines().find(|line| line.contains(steers));
    assert_eq!(line, None);
    tree_of(&page, |page| {
        for node in page.descendants() {
            assert!(node.attributes().all(|attribute| !attribute.name().starts_with("on")), "{node:?}");
            assert!(!["img", "iframe", "object", "link", "base"].contains(&node.tag_name().name()), "{node:?}");
            assert!(node.attribute("src").is_none(), "{node:?}");
        }
    });
}

#[test]
fn a_run_that_did_not_end_says_so_first() {
    for (state, words_of_it) in [
        (State::Killed, Some("was killed")),
        (State::Running, Some("has not ended")),
        (State::Interrupted, Some("was interrupted")),
        (State::Finished, None),
    ] {
        let page = html::page(&[RecordedRun { state, ..check() }]);
        tree_of(&page, |page| {
            let notice = page.descendants().find(|node| node.attribute("role") == Some("note")).map(words);
            assert_eq!(notice.is_some(), words_of_it.is_some(), "{state:?}");
            assert!(notice.unwrap_or_default().contains(words_of_it.unwrap_or_default()), "{state:?}");
        });
    }
}

/// The evidence may have been emptied or truncated after the run.
#[test]
fn verdicts_without_their_trials_say_so() {
    let whole = check();
    assert_eq!(html::missing_trials(&whole), None);
    let mut run = whole.clone();
    let cut = run.outcome.claims.iter().position(|claim| claim.trials > 4).unwrap();
    run.paths[cut].trials.truncate(3);
    run.paths[cut].successes.truncate(3);
    run.paths[cut].statistics.truncate(3);
    let said = html::missing_trials(&run).unwrap();
    let ClaimResult { id, trials, .. } = &run.outcome.claims[cut];
    assert!(
        said.contains(&format!("counts {trials} trials, but the evidence has 3.")) && said.contains(&format!("`{id}`")),
        "{said}"
    );
    tree_of(&html::page(&[run]), |page| {
        let notice = page.descendants().find(|node| node.attribute("role") == Some("note")).map(words).unwrap();
        assert!(notice.contains("is incomplete"), "{notice}");
        let warned = page.descendants().filter(|node| node.attribute("class") == Some("warning")).map(words);
        assert_eq!(warned.filter(|warning| warning.contains("has only 3 of the ")).count(), 1);
    });
    let fault = "trials.parquet is damaged; the rows are those of trials.jsonl";
    tree_of(&html::page(&[RecordedRun { faults: vec![fault.into()], ..whole.clone() }]), |page| {
        let notice = page.descendants().find(|node| node.attribute("role") == Some("note")).map(words).unwrap();
        assert!(notice.contains(fault), "{notice}");
    });
    let mut run = whole;
    run.outcome.claims.clear();
    run.paths.clear();
    assert_eq!(html::missing_trials(&run), None);
    run.series.clear();
    assert!(html::missing_trials(&run).unwrap().contains("the tables count more trials"));
}

/// A reader may have only this file, so it begins with the answer and its error.
#[test]
fn a_page_begins_with_the_answer() {
    let compare = || {
        let mut outcome = common::compare();
        outcome.claims.iter_mut().for_each(|claim| claim.experiment = "compare".into());
        outcome
    };
    let hero = |run: &RecordedRun| {
        tree_of(&html::page(std::slice::from_ref(run)), |page| {
            let hero = page.descendants().find(|node| node.attribute("class") == Some("hero")).unwrap();
            let of = |is_it: &dyn Fn(&Node) -> bool| hero.descendants().find(is_it).map(words).unwrap();
            let title = page.descendants().find(|node| node.has_tag_name("title")).map(words).unwrap();
            let lead = of(&|node| node.attribute("class") == Some("lead")).replace('\u{a0}', " ");
            (of(&|node| node.has_tag_name("h1")).replace('\u{a0}', " "), lead, title.replace('\u{a0}', " "))
        })
    };
    let (headline, lead, title) = hero(&check());
    assert!(headline.contains(" claims hold") && title.starts_with(&headline), "{headline} in {title}");
    assert!(lead.contains("even one of these verdicts is wrong about its trials is at most 0.1 %"), "{lead}");
    // The duration of a trial is known, so the claim may have been tried. The page must not say anything else.
    assert!(lead.contains("1 did not fit in the time limit. ") && !lead.contains("tried"), "{lead}");
    let (headline, lead, _) = hero(&run(common::slo(), &["slo"]));
    assert!(headline.starts_with("Holds: ") && lead.contains("of the time (error at most "), "{lead}");
    let (headline, lead, _) = hero(&run(compare(), &["compare"]));
    assert_eq!(headline, "sort -n --parallel=2 --buffer-size=50% big.txt is the fastest");
    assert!(lead.contains("has the best median") && lead.contains("aster than the reference: "), "{lead}");
    let mut parameters = compare();
    if let Test::Versus { baseline, .. } = &mut parameters.claims[1].asked.tests[0] {
        baseline.variant = "sort -n small.txt".into();
    }
    let (headline, lead, _) = hero(&run(parameters, &["compare"]));
    assert!(headline.ends_with("than their reference"), "{headline}");
    assert!(lead.starts_with("Each command is compared with the reference that has the same parameters."), "{lead}");
    assert!(lead.contains("aster than its reference: ") && !lead.contains("best"), "{lead}");
    // The reference is the fastest command at both inputs.
    let mut inputs = compare();
    inputs.claims.retain(|claim| claim.decision.is_some());
    inputs.claims.truncate(2);
    for (claim, n) in inputs.claims.iter_mut().zip([10, 1000]) {
        claim.decision = Some(Decision::Slower);
        if let Test::Versus { candidate, baseline, .. } = &mut claim.asked.tests[0] {
            for arm in [candidate, baseline] {
                arm.point = arm.point.clone().with("n", n);
            }
        }
    }
    assert_eq!(hero(&run(inputs.clone(), &["compare"])).0, "sort -n big.txt is the fastest");
    inputs.claims[1].decision = Some(Decision::Faster);
    let headline = hero(&run(inputs, &["compare"])).0;
    assert!(
        headline.starts_with("sort -n big.txt is the fastest at n=10, ") && headline.ends_with(" at n=1000"),
        "{headline}"
    );
    let mut slower = compare();
    slower.claims.retain(|claim| claim.decision.is_some());
    slower.claims.iter_mut().for_each(|claim| claim.decision = Some(Decision::Slower));
    let others = slower.claims.len();
    assert_eq!(
        hero(&run(slower.clone(), &["compare"])).0,
        format!("sort -n big.txt is faster than the other {others}")
    );
    slower.claims[0].decision = Some(Decision::Undecided);
    slower.claims.truncate(2);
    assert_eq!(hero(&run(slower, &["compare"])).0, "Neither is faster than sort -n big.txt");
    let mut two = compare();
    two.claims.retain(|claim| claim.decision == Some(Decision::Slower));
    two.claims.truncate(1);
    let (headline, lead, title) = hero(&run(two.clone(), &["compare"]));
    assert!(headline.contains(" is slower than ") && headline.ends_with(": it took 5.2 % longer"), "{headline}");
    assert!(title.starts_with("awk ") && title.contains(" is slower than sort "), "{title}");
    assert!(lead.contains(" against ") && lead.contains("Difference: 99.9 % interval: 3.8 to 7.4 %. "), "{lead}");
    two.claims = vec![common::with_ratio(two.claims.remove(0), 0.017, 0.016, 0.018)];
    let headline = hero(&run(two, &["compare"])).0;
    assert!(headline.ends_with(": it took 59 times as long"), "{headline}");
}

/// The pictures in closed sections are part of the page: each picture of each claim is in it, with its id.
#[test]
fn every_picture_is_in_the_page() {
    let run = check();
    let page = html::page(std::slice::from_ref(&run));
    let parts = unpacked(&page);
    let claims = (0..run.outcome.claims.len()).flat_map(|claim| pictures::of_claim(&run, claim));
    let ids: Vec<String> = claims.chain(pictures::overview(&run)).map(|picture| picture.plot.id).collect();
    assert!(ids.len() > 8, "{ids:?}");
    for id in ids {
        let figures = parts.iter().map(|part| {
            part.matches(&format!("<figure class=\"picture judged\" id=\"{id}\">")).count()
                + part.matches(&format!("<figure class=\"picture\" id=\"{id}\">")).count()
        });
        assert_eq!(figures.sum::<usize>(), 1, "{id}");
    }
    tree_of(&page, |page| {
        let mut places: Vec<usize> =
            page.descendants().filter_map(|node| node.attribute("data-packed")?.parse().ok()).collect();
        places.sort_unstable();
        assert!(places.into_iter().eq(0..parts.len()), "each packed part has an element");
    });
}

/// Returns a page with these claims, repeated until there are many.
fn many(claims: &[ClaimResult]) -> String {
    let numbered = |round: usize| {
        claims.iter().map(move |claim| ClaimResult { id: format!("{}-{round}", claim.id), ..claim.clone() })
    };
    let claims = (0..10).flat_map(numbered).collect();
    html::page(&[run(Outcome { claims, ..common::check() }, &["sum"])])
}

/// Returns the alternative text of the drawing for a claim, and the path of the band in this drawing, if there is one.
fn standing_of(bound: Bound, [ratio, low, high]: [f64; 3]) -> (String, Option<String>) {
    let mut claim = common::with_ratio(common::at_least_8("sum.x", "it is so"), ratio, low, high);
    let Test::Versus { bound: asked, .. } = &mut claim.asked.tests[0] else { panic!("a ratio") };
    *asked = bound;
    let claim = common::counted(claim, Verdict::Holds, 20, 20);
    tree_of(&html::page(&[run(Outcome { claims: vec![claim], ..common::check() }, &["sum"])]), |page| {
        let mark = page.descendants().find(|node| is_of(node, "mini")).unwrap();
        let band = mark.children().find(|node| is_of(node, "band"));
        let drawn = band.map(|band| band.attribute("d").unwrap().to_string());
        (mark.attribute("aria-label").unwrap().to_string(), drawn)
    })
}

#[test]
fn all_claims_share_an_axis_on_which_one_is_as_claimed() {
    let said = |bound, figures| standing_of(bound, figures).0;
    assert_eq!(said(Bound::AtLeast(8.0), [4.0, 3.0, 5.0]), "0.50 (0.38 to 0.62) times what was claimed");
    assert_eq!(said(Bound::AtMost(8.0), [4.0, 3.0, 5.0]), "2.0 (1.6 to 2.7) times what was claimed");
    let within = Bound::Within(2.0, 8.0);
    assert_eq!(said(within, [4.0, 3.0, 5.0]), "2.0 (1.5 to 2.0) times what was claimed");
    assert_eq!(said(within, [16.0, 10.0, 20.0]), "0.50 (0.40 to 0.80) times what was claimed");
    // The band ends at a ratio of 2, the middle of the range relative to its ends. The axis ends at 5.
    assert_eq!(standing_of(within, [16.0, 10.0, 20.0]).1.as_deref(), Some("M110 0h44.8v20H110"));
    assert_eq!(standing_of(Bound::AtLeast(8.0), [4.0, 3.0, 5.0]).1, None);
}

#[test]
fn claims_are_found_under_their_ids_and_the_furthest_are_named_first() {
    let claim = |id: &str, ratio: f64| {
        let claim = common::with_ratio(common::at_least_8(id, id), ratio, ratio * 0.9, ratio * 1.1);
        common::counted(claim, if ratio < 8.0 { Verdict::Refuted } else { Verdict::Holds }, 0, 20)
    };
    let page = many(&[claim("sum.near", 7.0), claim("sum.far", 0.5), claim("sum.holds", 9.0), claim("no-point", 2.0)]);
    tree_of(&page, |page| {
        let rows: Vec<&str> =
            page.descendants().filter(|node| is_of(node, "row")).filter_map(|node| node.attribute("id")).collect();
        assert_eq!(rows[..4], ["sum.near-0", "sum.far-0", "sum.holds-0", "claim-4"]);
        let furthest = page.descendants().find(|node| is_of(node, "furthest")).unwrap();
        let leads: Vec<&str> = furthest.descendants().filter_map(|node| node.attribute("href")).collect();
        assert_eq!(leads, ["#sum.far-0", "#sum.far-1", "#sum.far-2"]);
        let bar = page.descendants().find(|node| is_of(node, "bar")).unwrap();
        assert_eq!(bar.attribute("aria-label"), Some("10 hold, 30 refuted"));
        let held = page.descendants().find(|node| node.has_tag_name("em")).map(words);
        assert_eq!(held.as_deref(), Some("10 of 40 hold"));
    });
}

/// Each number must be written with its meaning: a ratio with the names of both variants, a percentage with its total,
/// such as "of the trials".
#[test]
fn the_furthest_say_what_was_claimed_and_what_came_of_it() {
    let furthest = |claim: ClaimResult| {
        tree_of(&many(&[common::counted(claim, Verdict::Refuted, 0, 143)]), |page| {
            words(page.descendants().find(|node| node.has_tag_name("li")).unwrap()).replace('\u{a0}', " ")
        })
    };
    let slow = common::with_ratio(common::at_least_8("sum.slow", "It is fast"), 0.12, 0.11, 0.13);
    let slow = ClaimResult { emulated: Some("a provider".into()), ..slow };
    let said = "It is fast emulated. Claimed: kahan-avx512 (accumulators=4) at least 8 times as fast as naive (accumulators=1). \
                Here: 8.3 times as long.";
    assert_eq!(furthest(slow.clone()), said);
    tree_of(&many(&[common::counted(slow, Verdict::Refuted, 0, 143)]), |page| {
        let row = page.descendants().find(|node| is_of(node, "row")).unwrap();
        assert_eq!(words(row.descendants().find(|node| is_of(node, "says")).unwrap()), "It is fast emulated");
        assert!(words(row).contains("Emulated here: a provider. A real one may differ."), "{}", words(row));
    });
    let range = common::predicate("barrier.range", "It takes a while", "naive", "wall >= 25 ms and wall <= 50 ms");
    let mut range = common::with_rate(range, 0.9, 0.0, 0.1);
    range.median = Some(8.169e6);
    let said = "It takes a while. Claimed: 25 to 50 ms in at least 90 % of the trials. Here: in 0 of 143 trials, with a \
                median time of 8.169 ms.";
    assert_eq!(furthest(range), said);
}

#[test]
fn a_range_that_a_predicate_asks_for_is_said_as_one() {
    let claimed = |predicate| {
        let claim = common::predicate("sum.x", "it is so", "naive", predicate);
        let claim = common::with_rate(common::counted(claim, Verdict::Holds, 20, 20), 0.9, 0.8, 1.0);
        tree_of(&many(&[claim]), |page| words(page.descendants().find(|node| is_of(node, "said")).unwrap()))
    };
    assert_eq!(claimed("time >= 25 ms and time <= 50 ms"), "25 to 50 ms in 90 % of trials");
    assert_eq!(claimed("time >= 10 ms and time <= 1 s"), "10 ms to 1 s in 90 % of trials");
    assert_eq!(claimed("size >= 660 B and size <= 1.1 kB"), "size 660 B to 1.1 kB in 90 % of trials");
    assert_eq!(claimed("rate >= 0.9 and rate <= 1"), "rate 0.9 to 1 in 90 % of trials");
    let others = ["exit == 0 and time <= 5 ms", "time >= 1 ms and time <= 5 ms and size <= 2 B"];
    others.iter().for_each(|other| assert_eq!(claimed(other), format!("{other} in 90 % of trials")));
}

#[test]
fn the_same_claims_of_several_runs_stand_in_one_row() {
    let (first, mut second) = (check(), check());
    second.outcome.claims.swap(0, 1);
    second.outcome.claims.pop();
    tree_of(&html::page(&[first.clone(), second]), |page| {
        let table = page.descendants().find(|node| node.attribute("class") == Some("aligned")).unwrap();
        let rows: Vec<Node> = table.descendants().filter(|node| node.has_tag_name("tr")).skip(1).collect();
        assert_eq!(rows.len(), first.outcome.claims.len());
        for (row, claim) in rows.iter().zip(&first.outcome.claims) {
            let cells: Vec<String> = row.children().filter(|node| node.has_tag_name("td")).map(words).collect();
            assert!(words(*row).contains(&claim.says) && cells[0].contains(claim.verdict.word()));
            let last = claim.id == first.outcome.claims.last().unwrap().id;
            assert!(if last { cells[1] == "not asked" } else { cells[0] == cells[1] }, "{cells:?}");
        }
        assert!(words(page.root()).contains("within a run, not between runs"));
    });
}

#[test]
fn claims_of_one_name_that_ask_something_else_have_rows_of_their_own() {
    let (mut first, mut second) = (run(common::slo(), &["slo"]), run(common::slo(), &["slo"]));
    first.outcome.claims[0].rate_claimed = 0.9;
    second.outcome.claims[0].rate_claimed = 0.95;
    tree_of(&html::page(&[first, second]), |page| {
        let table = page.descendants().find(|node| node.attribute("class") == Some("aligned")).unwrap();
        let rows: Vec<String> = table.descendants().filter(|node| node.has_tag_name("tr")).skip(1).map(words).collect();
        assert_eq!(rows.len(), 2);
        assert!(rows[0].contains("at least 90\u{a0}%") && rows[1].contains("at least 95\u{a0}%"), "{rows:?}");
        assert!(rows.iter().all(|row| row.contains("not asked")), "{rows:?}");
    });
}

#[test]
fn an_open_claim_says_why_it_is_open() {
    for (state, why) in [
        (State::Killed, "the run was killed before"),
        (State::Running, "the run has not ended, and"),
        (State::Interrupted, "the run was interrupted before"),
        (State::Finished, "the time or the trials ran out before"),
    ] {
        let mut undecided = run(common::slo(), &["slo"]);
        undecided.state = state;
        undecided.outcome.claims[0].verdict = Verdict::Undecided;
        let page = html::page(&[undecided]);
        assert!(page.contains(why), "{state:?}");
        assert!(state == State::Finished || !page.contains("the time or the trials ran out before"), "{state:?}");
    }
}

#[test]
fn what_was_cut_off_neither_succeeded_nor_failed() {
    let mut open = common::slo();
    let claim = &mut open.claims[0];
    (claim.trials, claim.successes, claim.ties, claim.unknown) = (100, 90, 0, 7);
    claim.rate = Some(0.9);
    let page = html::page(&[run(open, &["slo"])]);
    let [missed, left] = ["refuted\">3</b> not as claimed", "undecided\">7</b> left open"];
    assert!(page.contains(missed) && page.contains(left), "{page}");
    assert!(page.contains("true in 90 of 100 trials, 7 left open"), "{page}");
    assert!(page.contains("90 of 100 trials succeeded and 3 failed, 7 were left open"), "{page}");
}

#[test]
fn nothing_is_fetched() {
    let page = html::page(&[check()]);
    assert!(page.contains("default-src &#39;none&#39;") && !page.contains("@import"));
    assert_eq!(page.matches("url(").count(), page.matches("url(#").count(), "only to what is in the page");
}
