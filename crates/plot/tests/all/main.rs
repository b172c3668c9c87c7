//! Tests of plots as SVG, for pages and papers, and as text for terminals.

mod any_plot;
mod colours;
#[path = "../../examples/gallery/plots.rs"]
mod plots;

use std::collections::BTreeSet;
use std::path::Path;

use ascertain_plot::svg::{self, Size};
use ascertain_plot::{Axis, Layer, MOST_MARKS, Plot, Prefixes, Scale, Which, text};
use plots::{NONE, TIME};
use roxmltree::{Document, Node, ParsingOptions};

/// Compares a text with a file in `golden/`. With `BLESS=1`, writes the text to the file instead.
fn compare_with_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == text, "{name} differs; look, then bless it\n--- is\n{text}\n--- was\n{golden}");
}

/// Returns a plot as SVG in all three forms: wide, narrow, and as a document.
fn pictures(plot: &Plot) -> [String; 3] {
    [svg::render(plot, Size::Wide), svg::render(plot, Size::Narrow), svg::standalone(plot)]
}

fn parsed(svg: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: false, ..ParsingOptions::default() };
    Document::parse_with_options(svg, options).unwrap_or_else(|error| panic!("{error} in\n{svg}"))
}

/// Returns the texts in a picture: those of its axes, its legend and its rules.
fn texts(svg: &str) -> Vec<String> {
    let document = parsed(svg);
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    texts.filter_map(|node| node.text().map(str::to_string)).collect()
}

#[test]
fn every_kind_of_plot() {
    for plot in [
        plots::quantiles(2),
        plots::strip(100),
        plots::evidence(),
        plots::density(),
        plots::sweep(),
        plots::heat(6, 4),
        plots::curves(),
        plots::forest(3),
        plots::hostile(),
    ] {
        let name = if plot.id.contains('<') { "hostile" } else { &plot.id };
        compare_with_golden(&format!("plot-{name}.svg"), &svg::standalone(&plot));
        compare_with_golden(&format!("plot-{name}.txt"), &text::render(&plot, 80, 20, false));
    }
    compare_with_golden("plot-sweep-narrow.svg", &svg::render(&plots::sweep(), Size::Narrow));
    compare_with_golden("plot-forest-60.txt", &text::render(&plots::forest(3), 60, 20, true));
}

/// The character `○` of the second series must not stand for a hollow dot of the first one.
#[test]
fn hollow_dots_have_a_character_of_their_own() {
    let dots = |series, hollow| Layer::Dots {
        series: Some(series),
        points: vec![[1.0 + f64::from(u8::from(hollow)), 1.0 + series as f64]],
        hollow,
    };
    let plot = |layers| Plot {
        id: "hollow".into(),
        title: "Bounds".into(),
        alt: String::new(),
        x: Axis::new("", Scale::Linear, NONE),
        y: Axis::new("", Scale::Linear, NONE),
        series: vec!["p99".into(), "median".into()],
        layers,
    };
    let text = |layers| text::render(&plot(layers), 60, 12, false);
    let mixed = text(vec![dots(0, true), dots(0, false), dots(1, false)]);
    let legend = mixed.lines().nth(1).unwrap();
    assert!(legend.contains("○ median") && legend.contains("▵ hollow"), "{mixed}");
    // A series that has only hollow dots is named by them.
    let hollow = text(vec![dots(0, true), dots(1, false)]);
    assert_eq!(hollow.lines().nth(1).unwrap().trim_end(), "▵ p99   ○ median");
    assert_eq!(hollow.matches('▵').count(), 2, "{hollow}");
    assert!(!text(vec![dots(0, false), dots(1, false)]).contains('▵'));
}

/// Returns the vertices of a path in the form that [`svg`] writes: `M`, then `m l h v z` with relative coordinates.
fn vertices(data: &str) -> Vec<[f64; 2]> {
    let (mut at, mut start, mut all) = ([0.0, 0.0], [0.0, 0.0], Vec::new());
    let commands: Vec<usize> = data.match_indices(|c: char| c.is_ascii_alphabetic()).map(|(at, _)| at).collect();
    for (index, from) in commands.iter().enumerate() {
        let to = commands.get(index + 1).copied().unwrap_or(data.len());
        let numbers: Vec<f64> = data[from + 1..to]
            .replace('-', " -")
            .split_whitespace()
            .map(|number| number.parse().unwrap_or_else(|_| panic!("`{number}` in {data}")))
            .collect();
        let [a, b] = [0, 1].map(|place| numbers.get(place).copied().unwrap_or(0.0));
        match &data[*from..=*from] {
            "M" => at = [a, b],
            "H" => at[0] = a,
            "m" | "l" => at = [at[0] + a, at[1] + b],
            "h" => at[0] += a,
            "v" => at[1] += a,
            "z" => at = start,
            other => panic!("unknown command {other} in {data}"),
        }
        if matches!(&data[*from..=*from], "M" | "m") {
            start = at;
        }
        all.push(at);
    }
    all
}

/// Checks the properties that all pictures must have.
fn check(svg: &str, ids: &mut BTreeSet<String>) {
    let document = parsed(svg);
    let root = document.root_element();
    let view: Vec<f64> = root.attribute("viewBox").unwrap().split(' ').map(|n| n.parse().unwrap()).collect();
    let is_inside = |[x, y]: [f64; 2]| {
        x >= view[0] - 0.06 && y >= view[1] - 0.06 && x <= view[0] + view[2] + 0.06 && y <= view[1] + view[3] + 0.06
    };
    for node in document.descendants().filter(Node::is_element) {
        for attribute in node.attributes() {
            let words = attribute.value().split([' ', ',', '(', ')']);
            let is_number = !attribute.name().starts_with("data-") && attribute.name() != "font-family";
            for word in words.filter(|_| is_number) {
                assert!(!matches!(word, "NaN" | "inf" | "-inf"), "{} of {node:?}", attribute.name());
            }
        }
        if let Some(id) = node.attribute("id") {
            assert!(ids.insert(id.to_string()), "{id} is there twice");
        }
        let number = |name: &str| node.attribute(name).and_then(|value| value.parse::<f64>().ok());
        if let (Some(x), Some(y)) = (number("x"), number("y")) {
            let size = |name: &str| number(name).unwrap_or(0.0);
            assert!(is_inside([x, y]) && is_inside([x + size("width"), y + size("height")]), "{node:?} in {view:?}");
        }
        let is_shape = node.attribute("transform").is_some() || node.ancestors().any(|a| a.has_tag_name("marker"));
        // The outline of a shape is relative to its position, so only the position is checked.
        let is_placed = node.attribute("class").is_some_and(|class| ["mark", "ring"].contains(&class));
        let data = node.attribute("d").map(|data| if is_placed { data.split('m').next().unwrap() } else { data });
        if let Some(data) = data.filter(|_| !is_shape) {
            let outside = vertices(data).into_iter().find(|at| !is_inside(*at));
            assert!(outside.is_none(), "{outside:?} is outside of {view:?}: {data}");
        }
    }
    let known = |reference: &str| assert!(ids.contains(reference), "{reference} is nowhere");
    for node in document.descendants().filter(Node::is_element) {
        node.attribute("href").and_then(|href| href.strip_prefix('#')).into_iter().for_each(known);
        for name in ["fill", "style"] {
            let reference = node.attribute(name).and_then(|value| value.split_once("url(#")?.1.strip_suffix(')'));
            reference.into_iter().for_each(known);
        }
    }
    assert_eq!(root.attribute("role"), Some("img"));
    let is_described = root.attribute("aria-label").is_some() || root.children().any(|node| node.has_tag_name("desc"));
    assert!(is_described);
}

#[test]
fn the_gallery_is_well_formed_in_one_page() {
    let mut ids = BTreeSet::new();
    for plot in plots::all() {
        pictures(&plot).iter().for_each(|svg| check(svg, &mut ids));
    }
}

#[test]
fn names_are_shown_and_harmless() {
    let plot = plots::hostile();
    for svg in pictures(&plot) {
        for bad in ["<script", "<img", "<b>", "\u{202e}", "\u{1b}", "\u{0}", "\u{ffff}", "\u{7}"] {
            assert!(!svg.contains(bad), "{bad:?}");
        }
        let shown = texts(&svg);
        assert!(shown.contains(&"<script>alert('1')</script>".to_string()));
        assert!(shown.contains(&r#"\u{202e}evil "quoted""#.to_string()));
        assert!(shown.contains(&"和 🚀 naïve".to_string()));
    }
    let text = text::render(&plot, 100, 30, false);
    assert!(!text.contains(|c: char| c.is_control() && c != '\n') && !text.contains('\u{202e}'));
    assert!(text.contains("和 🚀 naïve"));
}

#[test]
fn names_that_are_too_long_are_cut_and_kept_as_titles() {
    let plot = plots::long_names();
    let svg = svg::render(&plot, Size::Narrow);
    let document = parsed(&svg);
    let titled = document.descendants().filter(|node| node.has_tag_name("text")).filter_map(|node| {
        let title = node.children().find(|child| child.has_tag_name("title"))?;
        Some((node.text()?, title.text()?))
    });
    let cut: Vec<(&str, &str)> = titled.collect();
    assert!(cut.len() >= 4, "{cut:?}");
    for (short, whole) in cut {
        let (head, tail) = short.split_once('…').unwrap();
        assert!(whole.starts_with(head) && whole.ends_with(tail) && !head.is_empty(), "{short} of {whole}");
    }
}

#[test]
fn ticks_are_at_round_numbers_with_units() {
    let labels = |scale: Scale, unit: Prefixes, from: f64, to: f64| -> Vec<String> {
        let x = Axis::new("", scale, unit).showing(from, to);
        let y = Axis::new("", Scale::Names(Vec::new()), NONE);
        let plot = Plot { id: "p".into(), title: "t".into(), alt: "a".into(), x, y, series: vec![], layers: vec![] };
        texts(&svg::render(&plot, Size::Narrow))
    };
    assert_eq!(labels(Scale::Linear, TIME, 0.0, 9.1e7), ["0", "20 ms", "40 ms", "60 ms", "80 ms"]);
    assert_eq!(labels(Scale::Linear, NONE, 0.0, 1.0), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    assert_eq!(labels(Scale::Linear, TIME, 0.0, 3e11), ["0", "1 min", "2 min", "3 min", "4 min", "5 min"]);
    assert_eq!(labels(Scale::Log, TIME, 1e3, 1e6), ["1 µs", "10 µs", "100 µs", "1 ms"]);
    assert_eq!(labels(Scale::Log, NONE, 1.0, 20.0), ["1", "2", "5", "10", "20"]);
    assert_eq!(labels(Scale::Log, NONE, 0.96, 1.26), ["1.00", "1.05", "1.10", "1.15", "1.20", "1.25"]);
    assert_eq!(labels(Scale::Logit, NONE, 0.01, 0.9991), ["p1", "p10", "p50", "p90", "p99", "p99.9"]);
    assert_eq!(labels(Scale::Linear, NONE, 7.0, 7.0)[..2], ["6.4", "6.6"]);
}

#[test]
fn sizes_have_ticks_at_powers_of_two() {
    let shown = texts(&svg::render(&plots::sweep(), Size::Narrow));
    for label in ["1 KiB", "32 KiB", "1 MiB", "32 MiB", "L2 1 MiB"] {
        assert!(shown.iter().any(|text| text == label), "{label} in {shown:?}");
    }
}

#[test]
fn a_rule_out_of_reach_is_told_of_at_the_edge() {
    let mut plot = plots::strip(100);
    plot.layers.push(Layer::Rule { on: Which::Y, at: 8.0, label: "at least 8".into() });
    plot.layers.push(Layer::Rule { on: Which::X, at: 150.0, label: "within reach".into() });
    let shown = texts(&svg::render(&plot, Size::Wide));
    assert!(shown.contains(&"↑ at least 8".to_string()) && shown.contains(&"within reach".to_string()), "{shown:?}");
    assert!(text::render(&plot, 80, 24, false).contains("↑ at least 8"));
}

#[test]
fn a_hundred_thousand_dots_stay_small() {
    let plot = plots::strip(100_000);
    let svg = svg::render(&plot, Size::Wide);
    assert!(svg.len() < 60_000, "{} bytes", svg.len());
    let document = parsed(&svg);
    let dots = document.descendants().filter(|node| node.attribute("class") == Some("dots"));
    let drawn: usize = dots.map(|node| vertices(node.attribute("d").unwrap()).len() / 2).sum();
    assert!((MOST_MARKS / 2..=MOST_MARKS).contains(&drawn), "{drawn}");
    assert!(svg.contains("has 105000 marks"));
}

/// Returns a plot of fifty values around 1 ms, followed by the values `others`.
fn strip_with(others: &[f64]) -> Plot {
    let value = |place: usize| 1e6 + 1e4 * (place * 7 % 11) as f64;
    let values = (0..50).map(value).chain(others.iter().copied());
    let points = values.enumerate().map(|(trial, value)| [trial as f64, value]).collect();
    let layers = vec![Layer::Dots { series: Some(0), points, hollow: false }];
    Plot {
        id: "strip".into(),
        title: "Time".into(),
        alt: String::new(),
        x: Axis::new("trial", Scale::Linear, NONE),
        y: Axis::new("time", Scale::Linear, TIME),
        series: vec!["a".into()],
        layers,
    }
}

#[test]
fn outliers_do_not_hide_the_others_and_are_counted() {
    let said = |others: &[f64]| {
        let texts = texts(&svg::render(&strip_with(others), Size::Wide));
        texts.into_iter().find(|text| text.contains(" to ")).unwrap_or_default()
    };
    assert_eq!(said(&[]), "");
    assert_eq!(said(&[5e6, 9e6]), "↑ 2 higher, to 9 ms");
    assert_eq!(said(&[1e3]), "↓ 1 lower, to 1 µs");
    assert_eq!(said(&[1.2e6]), "", "a value that leaves room for the others is not clipped");
    let twice: Vec<f64> = (0..50).map(|place| 9e6 + 1e4 * f64::from(place)).collect();
    assert_eq!(said(&twice), "", "half of the values can't be outliers");
    // An outlier is drawn at the edge, so the other values still have the same number of ticks.
    let ticks = |others: &[f64]| texts(&svg::render(&strip_with(others), Size::Wide)).len();
    assert!(ticks(&[9e6]) >= ticks(&[]));
}

#[test]
fn an_axis_that_is_cut_says_so() {
    let labels = |plot: &Plot| texts(&svg::render(plot, Size::Narrow));
    assert!(labels(&strip_with(&[])).contains(&"time (not starting at 0)".to_string()));
    let whole = Plot { y: Axis::new("time", Scale::Linear, TIME).showing(0.0, 0.0), ..strip_with(&[]) };
    assert!(labels(&whole).contains(&"time".to_string()) && labels(&whole).contains(&"0".to_string()));
}
