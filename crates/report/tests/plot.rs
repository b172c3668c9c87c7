//! Plots as pages, papers and terminals show them.

mod common;
#[path = "../examples/gallery/plots.rs"]
mod plots;

use std::collections::BTreeSet;

use ascertain::unit::Unit;
use ascertain_report::plot::svg::{self, DARK, GROUND, LIGHT, Size};
use ascertain_report::plot::{
    Axis, Cell, Interval, Layer, MOST_MARKS, Plot, Range, Scale, Which, text, thin, thin_ranges,
};
use common::compare_with_golden;
use proptest::prelude::*;
use roxmltree::{Document, Node, ParsingOptions};
use unicode_width::UnicodeWidthStr;

/// A picture in every form that is XML.
fn pictures(plot: &Plot) -> [String; 3] {
    [svg::render(plot, Size::Wide), svg::render(plot, Size::Narrow), svg::standalone(plot)]
}

fn parsed(svg: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: false, ..ParsingOptions::default() };
    Document::parse_with_options(svg, options).unwrap_or_else(|error| panic!("{error} in\n{svg}"))
}

/// The texts of the axes, the legend and the rules.
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

/// The vertices of a path as [`svg`] writes them: `M`, then `m l h v z` with differences.
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

/// Everything that may be wrong with a picture without looking at it.
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
        if let Some(data) = node.attribute("d").filter(|_| !is_shape) {
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
    let labels = |scale: Scale, unit: Unit, from: f64, to: f64| -> Vec<String> {
        let x = Axis::new("", scale, unit).showing(from, to);
        let y = Axis::new("", Scale::Names(Vec::new()), Unit::One);
        let plot = Plot { id: "p".into(), title: "t".into(), alt: "a".into(), x, y, series: vec![], layers: vec![] };
        texts(&svg::render(&plot, Size::Narrow))
    };
    assert_eq!(labels(Scale::Linear, Unit::Nanosecond, 0.0, 9.1e7), ["0", "20 ms", "40 ms", "60 ms", "80 ms"]);
    assert_eq!(labels(Scale::Linear, Unit::One, 0.0, 1.0), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    assert_eq!(labels(Scale::Linear, Unit::Nanosecond, 0.0, 3e11), ["0", "1 min", "2 min", "3 min", "4 min", "5 min"]);
    assert_eq!(labels(Scale::Log, Unit::Nanosecond, 1e3, 1e6), ["1 µs", "10 µs", "100 µs", "1 ms"]);
    assert_eq!(labels(Scale::Log, Unit::One, 1.0, 20.0), ["1", "2", "5", "10", "20"]);
    assert_eq!(labels(Scale::Log, Unit::One, 0.96, 1.26), ["1.00", "1.05", "1.10", "1.15", "1.20", "1.25"]);
    assert_eq!(labels(Scale::Nines, Unit::One, 0.01, 0.9991), ["p1", "p10", "p50", "p90", "p99", "p99.9"]);
    assert_eq!(labels(Scale::Linear, Unit::One, 7.0, 7.0)[..2], ["6.4", "6.6"]);
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
    assert!(svg.contains("Of 105000 marks"));
}

/// Relative luminance and OKLab (Ottosson 2020) of a colour as a vision sees it.
fn seen(hex: &str, vision: [[f64; 3]; 3]) -> (f64, [f64; 3]) {
    let apply = |matrix: [[f64; 3]; 3], v: [f64; 3]| matrix.map(|row| row[0] * v[0] + row[1] * v[1] + row[2] * v[2]);
    let linear = [1, 3, 5].map(|at| {
        let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    });
    let [red, green, blue] = apply(vision, linear).map(|v| v.clamp(0.0, 1.0));
    let cones = apply(
        [
            [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
            [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
            [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
        ],
        [red, green, blue],
    );
    let lab = apply(
        [
            [0.210_454_255_3, 0.793_617_785_0, -0.004_072_046_8],
            [1.977_998_495_1, -2.428_592_205_0, 0.450_593_709_9],
            [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766_0],
        ],
        cones.map(f64::cbrt),
    );
    (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2], lab)
}

/// What each kind of colour vision makes of linear red, green and blue: normal, and Machado, Oliveira and Fernandes
/// 2009 for protanopia, deuteranopia and tritanopia (severity 1).
const VISIONS: [[[f64; 3]; 3]; 4] = [
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
];

#[test]
fn colours_are_told_apart_by_everybody() {
    let contrast = |a: &str, b: &str| {
        let [a, b] = [a, b].map(|hex| seen(hex, VISIONS[0]).0 + 0.05);
        a.max(b) / a.min(b)
    };
    let paper = GROUND.iter().find(|(name, ..)| *name == "paper").unwrap();
    for (colors, ground) in [(LIGHT, paper.1), (DARK, paper.2)] {
        for (index, color) in colors.iter().enumerate() {
            assert!(contrast(color, ground) >= 3.0, "{color} on {ground}");
            for other in &colors[..index] {
                for vision in VISIONS {
                    let [a, b] = [color, other].map(|hex| seen(hex, vision).1);
                    let distance = (0..3).map(|at| (a[at] - b[at]).powi(2)).sum::<f64>().sqrt();
                    assert!(distance >= 0.1, "{color} and {other} are {distance:.3} apart");
                }
            }
        }
    }
    for (name, light, dark) in GROUND.iter().filter(|(name, ..)| matches!(*name, "ink" | "muted")) {
        assert!(contrast(light, paper.1) >= 4.5 && contrast(dark, paper.2) >= 4.5, "{name} is for text");
    }
}

#[test]
fn sixteen_series_differ_beyond_their_colours() {
    let svg = svg::render(&plots::sixteen(), Size::Wide);
    let document = parsed(&svg);
    let styles = document.descendants().filter(|node| node.attribute("class") == Some("line")).map(|line| {
        let color = line.parent_element().and_then(|group| group.attribute("class")).unwrap_or_default();
        (color.to_string(), line.attribute("stroke-dasharray").unwrap_or_default().to_string())
    });
    assert_eq!(styles.collect::<BTreeSet<_>>().len(), 16);
    let text = text::render(&plots::sixteen(), 100, 30, false);
    let samples: BTreeSet<&str> = text.split_whitespace().filter(|word| word.starts_with('─')).collect();
    assert_eq!(samples.iter().filter(|sample| sample.chars().count() == 3).count(), 16);
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..1.0,
        4 => -5.0..40.0,
        2 => 1e-6..1e12,
        1 => prop::num::f64::ANY,
        1 => prop::sample::select(vec![
            0.0, -0.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-300, 1e300, -1e300, f64::MAX, f64::MIN,
            5e-324, 1.0 - f64::EPSILON, 1e15 + 1.0,
        ]),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z<>&'\"\\x1b\\n é和🚀-]{0,60}"]
}

fn axis() -> impl Strategy<Value = Axis> {
    let scale = prop_oneof![
        Just(Scale::Linear),
        Just(Scale::Log),
        Just(Scale::Nines),
        prop::collection::vec(name(), 0..6).prop_map(Scale::Names),
    ];
    let unit =
        prop::sample::select(vec![Unit::Nanosecond, Unit::Byte, Unit::BytePerSecond, Unit::PerSecond, Unit::One]);
    let domain = prop::option::of((number(), number()));
    let axis = (name(), scale, unit, domain, any::<bool>());
    axis.prop_map(|(label, scale, unit, domain, in_percent)| Axis { label, scale, unit, domain, in_percent })
}

fn layer() -> impl Strategy<Value = Layer> {
    let points = || prop::collection::vec([number(), number()], 0..40);
    let series = || prop::option::of(0..4usize);
    let range = (number(), number(), number()).prop_map(|(x, low, high)| Range { x, low, high });
    let row =
        [number(), number(), number(), number()].prop_map(|[y, value, low, high]| Interval { y, value, low, high });
    let cell = (0..7usize, 0..7usize, number()).prop_map(|(x, y, value)| Cell { x, y, value });
    prop_oneof![
        (series(), points(), any::<bool>(), any::<bool>()).prop_map(|(series, points, steps, dashed)| Layer::Line {
            series,
            points,
            steps,
            dashed
        }),
        (series(), prop::collection::vec(range, 0..20)).prop_map(|(series, ranges)| Layer::Band { series, ranges }),
        (series(), points(), any::<bool>()).prop_map(|(series, points, hollow)| Layer::Dots { series, points, hollow }),
        (series(), points()).prop_map(|(series, points)| Layer::Area { series, points }),
        (series(), prop::collection::vec(row, 0..8)).prop_map(|(series, rows)| Layer::Intervals { series, rows }),
        (prop::collection::vec(cell, 0..30), name()).prop_map(|(cells, label)| Layer::Cells {
            cells,
            label,
            unit: Unit::Nanosecond
        }),
        (any::<bool>(), number(), name())
            .prop_map(|(is_x, at, label)| { Layer::Rule { on: if is_x { Which::X } else { Which::Y }, at, label } }),
    ]
}

prop_compose! {
    fn plot()(
        names in [name(), name(), name()], axes in (axis(), axis()), series in prop::collection::vec(name(), 0..4),
        layers in prop::collection::vec(layer(), 0..6),
    ) -> Plot {
        let [id, title, alt] = names;
        Plot { id, title, alt, x: axes.0, y: axes.1, series, layers }
    }
}

/// The text without the escapes for colours.
fn colorless(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_string();
    first + &parts.map(|part| part.split_once('m').expect("a colour ends").1).collect::<String>()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_plot_is_drawn_inside_of_its_picture(plot in plot()) {
        for svg in pictures(&plot) {
            check(&svg, &mut BTreeSet::new());
            prop_assert!(!svg.contains(|c: char| c.is_control() && c != '\n'));
        }
    }

    #[test]
    fn any_plot_fits_its_terminal(plot in plot(), width in 40..130usize, height in 0..40usize) {
        let plain = text::render(&plot, width, height, false);
        for line in plain.lines() {
            prop_assert!(line.width() <= width, "{} columns of {width}: {line}", line.width());
        }
        prop_assert!(!plain.contains(|c: char| c.is_control() && c != '\n'));
        // Cells have their ground to their ends.
        let colored = colorless(&text::render(&plot, width, height, true));
        prop_assert!(colored.lines().map(str::trim_end).eq(plain.lines()));
    }

    #[test]
    fn thinning_keeps_extremes_and_order(
        ys in prop::collection::vec(prop_oneof![9 => -100.0..100.0, 1 => Just(f64::NAN)], 0..400), most in 0..120usize,
    ) {
        let points: Vec<[f64; 2]> = ys.iter().enumerate().map(|(at, y)| [at as f64, *y]).collect();
        let kept = thin(&points, most);
        prop_assert!(kept.len() <= most);
        prop_assert!(kept.windows(2).all(|pair| pair[0][0] < pair[1][0]));
        let few = kept.len();
        prop_assert_eq!(thin(&kept, few.max(most)).len(), few);
        if points.len() <= most {
            prop_assert_eq!(kept.len(), points.len());
        }
        let ends = |points: &[[f64; 2]]| {
            let finite = || points.iter().map(|p| p[1]).filter(|y| y.is_finite());
            (finite().reduce(f64::min), finite().reduce(f64::max))
        };
        if most >= 2 {
            prop_assert_eq!(ends(&kept), ends(&points));
        }
        // Where there is a stretch for each, a line keeps its ends, and a break stays one.
        if most >= 8 && points.len() > most && ys.iter().all(|y| y.is_finite()) {
            prop_assert_eq!((kept[0], kept[few - 1]), (points[0], points[points.len() - 1]));
        }
        if most >= 10 && ys.iter().any(|y| y.is_nan()) {
            prop_assert!(kept.iter().any(|p| p[1].is_nan()));
        }
    }

    #[test]
    fn thinned_bands_keep_their_ends(lows in prop::collection::vec(-100.0..100.0, 1..300), most in 4..80usize) {
        let range = |(at, low): (usize, &f64)| Range { x: at as f64, low: *low, high: low + 1.0 + (at % 7) as f64 };
        let ranges: Vec<Range> = lows.iter().enumerate().map(range).collect();
        let kept = thin_ranges(&ranges, most);
        prop_assert!(kept.len() <= most);
        let low = |ranges: &[Range]| ranges.iter().map(|r| r.low).reduce(f64::min);
        let high = |ranges: &[Range]| ranges.iter().map(|r| r.high).reduce(f64::max);
        prop_assert_eq!((low(&kept), high(&kept)), (low(&ranges), high(&ranges)));
    }
}
